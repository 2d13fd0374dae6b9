"""`exhume audit`: duplicate approvals, double executions, orphaned ids and the rest of the catalogue."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from exhume.cli.options import AllowGlobal, App, Output, ReportFormat, Session, Source, SourceTimezone, TablePrefix, User
from exhume.report.formats import Format


class FailOn(enum.StrEnum):
    """What `--fail-on` takes."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


def command(
    source: Source,
    fmt: ReportFormat = Format.TABLE,
    output: Output = None,
    fail_on: Annotated[FailOn | None, typer.Option("--fail-on", help="Least severity that makes the exit code 1 (default: error).")] = None,
    select: Annotated[list[str] | None, typer.Option("--select", metavar="RULE", help="Only rules whose id starts so. Repeatable.")] = None,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", metavar="RULE", help="No rules whose id starts so. Repeatable.")] = None,
    baseline: Annotated[Path | None, typer.Option("--baseline", metavar="FILE", help="Known findings, which do not count.")] = None,
    write_baseline: Annotated[
        Path | None, typer.Option("--write-baseline", metavar="FILE", help="Write the fingerprints of all findings to FILE.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="exhume.toml or pyproject.toml (default: of the working folder).")
    ] = None,
    window: Annotated[str | None, typer.Option("--window", metavar="TIME", help="Longest time between repeated approvals, e.g. 7d, 12h.")] = None,
    app: App = None,
    user: User = None,
    session: Session = None,
    since: Annotated[str | None, typer.Option("--since", metavar="TIME", help="Only findings at or after this time (RFC 3339).")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only findings before this time (RFC 3339).")] = None,
    source_timezone: SourceTimezone = "auto",
    allow_global: AllowGlobal = None,
    table_prefix: TablePrefix = "",
) -> None:
    """Read an event log as an investigator would; nothing is written to the source."""
