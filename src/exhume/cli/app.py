"""The tree of commands. Each command is one module in `exhume.cli.commands`; a line here registers it.

Rich markup is off, so that `--help` starts at once and no text is ever interpreted.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_command

from exhume.cli.command import Command
from exhume.cli.commands import (
    approvals,
    audit,
    catalogue,
    detect,
    export,
    layouts,
    migrate,
    scan,
    schema,
    show,
    verify,
)
from exhume.cli.config import use

_EPILOG = (
    "Exit codes: 0 done; 1 findings, or not what was required; 2 usage; 3 nothing to look at; 4 refused, nothing "
    "written; 5 incomplete or not equal; 70 internal error; 130 interrupted. Every option can also be set as "
    "EXHUME_COMMAND_OPTION, for instance EXHUME_MIGRATE_SOURCE_TIMEZONE."
)


def build() -> Any:
    """The click command that `exhume` is."""
    app = typer.Typer(
        name="exhume",
        help="Understand, migrate and audit session databases of Google's Agent Development Kit (ADK).",
        epilog=_EPILOG,
        invoke_without_command=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "EXHUME"},
    )
    app.callback()(_root)
    app.command("detect", cls=Command)(detect.command)
    app.command("scan", cls=Command)(scan.command)
    app.command("migrate", cls=Command)(migrate.command)
    app.command("verify", cls=Command)(verify.command)
    app.command("audit", cls=Command)(audit.command)
    app.command("show", cls=Command)(show.command)
    app.command("approvals", cls=Command)(approvals.command)
    app.command("export", cls=Command)(export.command)
    app.command("layouts", cls=Command)(layouts.command)
    app.command("rules", cls=Command)(catalogue.rules)
    app.command("explain", cls=Command)(catalogue.explain)
    app.command("schema", cls=Command)(schema.command)
    root = get_command(app)
    for parameter in root.params:
        if parameter.name != "config":
            # EXHUME_VERSION in an environment must not turn every command into `--version`
            setattr(parameter, "allow_from_autoenv", False)  # noqa: B010 - typer does not declare it
    return root


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
