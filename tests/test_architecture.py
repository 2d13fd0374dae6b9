"""The architecture holds: what may import what, what may print or exit, what may never be there at all."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parent.parent / "src" / "exhume"
MODULES = sorted(SRC.rglob("*.py"))
FORBIDDEN = {"pickle", "_pickle", "cPickle", "marshal", "cloudpickle", "dill", "shelve", "google"}


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_nothing_can_run_a_pickle_and_nothing_needs_adk(path: Path) -> None:
    roots = {name.partition(".")[0] for name in imports_of(path)}
    assert not roots & FORBIDDEN
    called = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"eval", "exec", "compile", "__import__"}


@pytest.mark.parametrize(
    "path", [p for p in MODULES if "cli" not in p.relative_to(SRC).parts], ids=lambda p: str(p.relative_to(SRC))
)
def test_only_the_command_line_prints_or_exits(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            assert name not in {"print", "exit", "quit", "sys.exit", "os._exit"}, f"{path}:{node.lineno}"
            assert not name.startswith(("sys.stdout.", "sys.stderr.")), f"{path}:{node.lineno}"
        if isinstance(node, ast.Raise) and node.exc is not None:
            assert "SystemExit" not in ast.unparse(node.exc), f"{path}:{node.lineno}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_a_stage_imports_only_stages_to_its_left() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=SRC.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


HEAVY = ("sqlalchemy", "alembic", "fickling", "rich", "jsonschema", "psycopg", "pymysql", "orjson")


def loaded_by(*arguments: str) -> set[str]:
    """Heavy modules that one run of the command loads."""
    code = (
        "import sys; from exhume.cli.main import run; code = run(sys.argv[1:]); "
        f"print('loaded:', *[m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.strip().splitlines()[-1].split()[1:])


def test_help_starts_at_once() -> None:
    assert loaded_by("--help") == set()
