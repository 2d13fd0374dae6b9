"""`exhume show`: one session as a causal timeline."""

from __future__ import annotations

from typing import Annotated

import typer

from exhume.cli.options import AllowGlobal, App, Output, ReportFormat, Source, SourceTimezone, TablePrefix, User
from exhume.report.formats import Format


def command(
    source: Source,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="Id of the session.", show_envvar=False)],
    app: App = None,
    user: User = None,
    reveal: Annotated[bool, typer.Option("--reveal", help="Show credentials, too.")] = False,
    format: ReportFormat = Format.TABLE,
    output: Output = None,
    source_timezone: SourceTimezone = "auto",
    allow_global: AllowGlobal = None,
    table_prefix: TablePrefix = "",
) -> None:
    """Tell one session in causal order: turns, calls with their responses, requests, decisions, state, times."""
    from exhume.audit.timeline import timeline
    from exhume.cli.output import emit
    from exhume.cli.reading import opened
    from exhume.events.interface import ReadOptions
    from exhume.report.documents import Span
    from exhume.report.results import of_timeline
    from exhume.report.wire import now

    started = now()
    read = ReadOptions(
        timezone=source_timezone, allow_globals=tuple(allow_global or ()), app=app, user=user, session=session
    )
    with opened(source, read, table_prefix=table_prefix) as (reader, detection):
        found = timeline(reader, detection, session=session, reveal=reveal)
    emit(of_timeline(found, span=Span(started, now())), format, output)
