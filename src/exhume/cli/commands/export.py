"""`exhume export`: sessions as JSON lines, ADK session JSON, or an eval set."""

from __future__ import annotations

from typing import Annotated

import typer

from exhume.cli.options import AllowGlobal, App, Output, Session, Source, SourceTimezone, TablePrefix, User, reading
from exhume.export.interface import ExportFormat, ExportOptions, Redact


def command(
    source: Source,
    format: Annotated[
        ExportFormat,
        typer.Option("--format", "-f", help="JSON lines of events, ADK session JSON, or an eval set of ADK."),
    ] = ExportFormat.JSONL,
    output: Output = None,
    app: App = None,
    user: User = None,
    session: Session = None,
    redact: Annotated[
        Redact, typer.Option("--redact", help="Take out credentials, or all texts (equal ones stay equal).")
    ] = Redact.NOTHING,
    name: Annotated[str, typer.Option("--name", help="Id of the eval set.")] = "exhume",
    source_timezone: SourceTimezone = "auto",
    allow_global: AllowGlobal = None,
    table_prefix: TablePrefix = "",
) -> None:
    """Write sessions in a form that other tools read: to replay, to share, or to test against."""
    from exhume import api
    from exhume.cli.output import deliver, say
    from exhume.export.run import export

    read = reading(source_timezone, allow_global, app=app, user=user, session=session)
    scoped = session is not None or user is not None
    options = ExportOptions(format=format, redact=redact, name=name, scoped=scoped)
    with api.opened(source, read, table_prefix=table_prefix) as (reader, detection):
        result = export(reader, detection, options)
        deliver(result.pieces, output)
    if not result.writing.sessions and (app, user, session) != (None, None, None):
        say("No session has the app, user or id that was asked for.")
    for note in result.notes:
        say(note)
