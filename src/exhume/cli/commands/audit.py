"""`exhume audit`: duplicate approvals, double executions, orphaned ids and the rest of the catalogue."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exhume.cli.options import (
    AllowGlobal,
    App,
    Output,
    ReportFormat,
    Session,
    Source,
    SourceTimezone,
    TablePrefix,
    User,
    reading,
)
from exhume.report.formats import Format

if TYPE_CHECKING:
    from exhume.audit.engine import AuditOptions
    from exhume.audit.findings import AuditReport


class FailOn(enum.StrEnum):
    """What `--fail-on` takes."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


def command(
    context: typer.Context,
    source: Source,
    format: ReportFormat = Format.TABLE,
    output: Output = None,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="Least severity that makes the exit code 1.")
    ] = FailOn.ERROR,
    select: Annotated[
        list[str] | None, typer.Option("--select", metavar="RULE", help="Only rules whose id starts so. Repeatable.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", metavar="RULE", help="No rules whose id starts so. Repeatable.")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", metavar="FILE", help="Findings known before; they do not count.")
    ] = None,
    write_baseline: Annotated[
        Path | None,
        typer.Option("--write-baseline", metavar="FILE", help="Write the fingerprints of all findings to FILE."),
    ] = None,
    window: Annotated[
        str, typer.Option("--window", metavar="TIME", help="Longest time between repeated approvals: 7d, 12h, ...")
    ] = "7d",
    app: App = None,
    user: User = None,
    session: Session = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only findings at or after this time (ISO 8601).")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Only findings at or before this time (ISO 8601).")
    ] = None,
    source_timezone: SourceTimezone = "auto",
    allow_global: AllowGlobal = None,
    table_prefix: TablePrefix = "",
) -> None:
    """Read an event log as an investigator would; nothing is written to the source."""
    from exhume import api
    from exhume.audit.engine import AuditOptions, rare_collections
    from exhume.audit.findings import Severity
    from exhume.cli.exits import after_audit
    from exhume.cli.output import emit
    from exhume.cli.parse import duration, moment
    from exhume.report.results import of_audit

    options = AuditOptions(
        select=tuple(select or ()),
        ignore=tuple(ignore or ()),
        window=duration(window),
        app=app,
        user=user,
        session=session,
        since=moment(since),
        until=moment(until),
    )
    read = reading(source_timezone, allow_global)
    with rare_collections():  # arranging and writing many findings leaves no garbage that has to be looked for, either
        report = api.audit(source, options, read=read, table_prefix=table_prefix)
        _cover(context, report, options, baseline)
        if write_baseline is not None:
            from exhume.audit.baseline import write
            from exhume.cli.output import say

            say(f"{write(write_baseline, report.findings)} findings written to {write_baseline}")
        emit(of_audit(report), format, output)
    raise typer.Exit(after_audit(report, fail_on=Severity[fail_on.name]))


def _cover(context: typer.Context, report: AuditReport, options: AuditOptions, baseline: Path | None) -> None:
    """Applies suppressions of the configuration and the baseline."""
    from exhume.cli.config import of

    config = of(context)
    suppressions = () if config is None else config.suppressions
    if not suppressions and baseline is None:
        return
    from exhume.audit.baseline import read
    from exhume.audit.suppress import cover

    filters = (options.select, options.ignore, options.app, options.user, options.session, options.since, options.until)
    known = None if baseline is None else read(baseline)
    cover(report, suppressions, baseline=known, whole=not any(filters))
