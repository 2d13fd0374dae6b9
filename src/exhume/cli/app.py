"""The tree of commands. Each command is one module in `exhume.cli.commands`; a line here registers it.

Rich markup is off, so that `--help` starts at once and no text is ever interpreted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from exhume.cli.command import Command
from exhume.cli.config import use
from exhume.cli.parameters import QuickHelp, quick

#: Name of a command -> module in `exhume.cli.commands` and its function. A run imports the one that it is of.
_COMMANDS = {
    "detect": ("detect", "command"),
    "scan": ("scan", "command"),
    "migrate": ("migrate", "command"),
    "verify": ("verify", "command"),
    "audit": ("audit", "command"),
    "show": ("show", "command"),
    "approvals": ("approvals", "command"),
    "export": ("export", "command"),
    "layouts": ("layouts", "command"),
    "rules": ("catalogue", "rules"),
    "explain": ("catalogue", "explain"),
    "schema": ("schema", "command"),
}
_EPILOG = (
    "Exit codes: 0 done; 1 findings, or not what was required; 2 usage; 3 nothing to look at; 4 refused, nothing "
    "written; 5 incomplete or not equal; 70 internal error; 130 interrupted. Every option can also be set as "
    "EXHUME_COMMAND_OPTION, for instance EXHUME_MIGRATE_SOURCE_TIMEZONE."
)


def build() -> Any:
    """The click command that `exhume` is."""
    app = typer.Typer(
        name="exhume",
        cls=_Group,
        help="Understand, migrate and audit session databases of Google's Agent Development Kit (ADK).",
        epilog=_EPILOG,
        invoke_without_command=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "EXHUME"},
    )
    app.callback()(_root)
    root: Any = get_command(app)
    root.commands = _Commands()
    root.params = [quick(parameter) for parameter in root.params]
    for parameter in root.params:
        if parameter.name != "config":
            # EXHUME_VERSION in an environment must not turn every command into `--version`
            parameter.allow_from_autoenv = False
    return root


class _Commands(Mapping[str, Any]):
    """The click commands by name; each is made when somebody asks for it."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            app = typer.Typer(rich_markup_mode=None, add_completion=False)
            app.command(name, cls=Command)(_function(name))
            self._made[name] = get_command(app)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Group(QuickHelp, TyperGroup):
    """`exhume` itself, which holds the commands."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - it is the signature of typer
        """Lists the commands in typer's form, without their options: to make all those takes longer than the rest."""
        limit = formatter.width - 6 - max(map(len, _COMMANDS))
        headings = (Command(name, help=getdoc(_function(name))) for name in _COMMANDS)
        with formatter.section("Commands"):
            formatter.write_dl([(heading.name, heading.get_short_help_str(limit)) for heading in headings])


def _function(name: str) -> Callable[..., None]:
    module, function = _COMMANDS[name]
    found: Callable[..., None] = getattr(import_module(f"exhume.cli.commands.{module}"), function)
    return found


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Defaults and suppressions (default: exhume.toml or [tool.exhume] of pyproject.toml here).",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say on stderr what this run ran on, and how long it took.")
    ] = False,
) -> None:
    if verbose:
        context.call_on_close(_run_record(context))
    if version:
        from exhume import __version__

        print(f"exhume {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is not None:
        use(context, config)
        return
    print(context.get_help())


def _run_record(context: typer.Context) -> Callable[[], None]:
    """What `--verbose` says when the run is over: versions, configuration, time."""
    import platform
    import sqlite3
    import time

    from exhume import __version__
    from exhume.cli.config import of
    from exhume.cli.output import say

    started = time.monotonic()

    def tell() -> None:
        config = of(context)
        path = None if config is None else config.path
        say(
            f"exhume {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}; "
            f"configuration: {path or 'none'}; {time.monotonic() - started:.2f} s"
        )

    return tell
