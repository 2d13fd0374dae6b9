"""Values that are taken quickly are what typer makes of them, and a usual run needs no pydantic."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperArgument, TyperOption

from exhume.cli.app import build
from exhume.cli.parameters import quick

REFUND_DESK = Path(__file__).resolve().parents[2] / "fixtures" / "refund-desk-1.21.0.db"
ROOT = build()
PARAMETERS: dict[str, Any] = {
    f"{name}-{parameter.name}": parameter
    for name, command in (("exhume", ROOT), *ROOT.commands.items())
    for parameter in command.params
    if parameter.callback is None
}
#: What a command line, the environment, a configuration or a default can give.
VALUES: list[Any] = [
    None,
    "",
    "json",
    "JSON",
    "error",
    "\udcff",
    "a\nb",
    "\0",
    "yes",
    ".",
    __file__,
    f"{__file__}/below",
    "x" * 300,
    "not/there",
    True,
    False,
    3,
    b"bytes",
    [],
    ["approvals", "calls"],
    ("approvals", "nothing"),
    ["\udcff", 3],
    *(parameter.default for parameter in PARAMETERS.values()),
]


def outcome(process: Any, parameter: Any, value: Any) -> tuple[type, Any]:
    """What became of a value: the result, or the message of the refusal."""
    try:
        result = process(parameter, typer.Context(ROOT), value)
    except typer.BadParameter as error:
        return type(error), error.format_message()
    return type(result), result


@pytest.mark.parametrize("parameter", PARAMETERS.values(), ids=PARAMETERS)
def test_a_value_is_what_typer_makes_of_it(parameter: Any) -> None:
    usual = TyperOption if isinstance(parameter, TyperOption) else TyperArgument
    for value in VALUES:
        quickly = outcome(type(parameter).process_value, parameter, value)
        assert quickly == outcome(usual.process_value, parameter, value), repr(value)


def test_a_function_of_an_option_sees_its_value() -> None:
    app = typer.Typer()
    seen = []

    def marked(value: str) -> str:
        seen.append(value)
        return f"<{value}>"

    @app.command()
    def command(name: str = typer.Option("x", callback=marked)) -> None:
        seen.append(name)

    made = typer.main.get_command(app)
    made.params = [quick(parameter) for parameter in made.params]
    made.main(["--name", "y"], standalone_mode=False)
    assert seen == ["y", "<y>"]


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["layouts"], ["detect", REFUND_DESK, "--format", "json"], ["audit", REFUND_DESK, "-o", "report.txt"]],
    ids=lambda arguments: arguments[0],
)
def test_a_usual_run_does_without_pydantic(arguments: list[Any], tmp_path: Path) -> None:
    code = "import sys; from exhume.cli.main import run; run(sys.argv[1:]); sys.exit('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
