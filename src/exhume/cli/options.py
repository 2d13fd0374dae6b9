"""Arguments and options that several commands share, spelt once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exhume.report.formats import Format

if TYPE_CHECKING:
    from exhume.events.interface import ReadOptions

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE", help="A database file, a URL as ADK accepts it, or an exported event log.", show_envvar=False
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the report to FILE (complete or not at all)."),
]
ReportFormat = Annotated[Format, typer.Option("--format", "-f", help="How to print the report.")]
TablePrefix = Annotated[str, typer.Option("--table-prefix", help="What stands before the usual names of the tables.")]
AllowGlobal = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-global",
        metavar="MODULE.NAME",
        help="Decode this type, too, inertly (MODULE.* for one module). Nothing is ever executed. Repeatable.",
    ),
]
SourceTimezone = Annotated[
    str,
    typer.Option(
        "--source-timezone",
        metavar="ZONE|auto",
        help="Zone of naive event times: an IANA name, an offset like -05:00, or auto (read off the data).",
    ),
]
App = Annotated[str | None, typer.Option("--app", help="Only this app.")]
User = Annotated[str | None, typer.Option("--user", help="Only this user.")]
Session = Annotated[str | None, typer.Option("--session", help="Only this session id.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes on stderr.")]


def reading(
    timezone: str,
    allow_globals: list[str] | None,
    *,
    app: str | None = None,
    user: str | None = None,
    session: str | None = None,
) -> ReadOptions:
    """How to read, from the options that most commands share."""
    from exhume.events.interface import ReadOptions

    return ReadOptions(timezone, tuple(allow_globals or ()), app, user, session)
