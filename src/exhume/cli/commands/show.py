"""`exhume show`: one session as a causal timeline."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from exhume.cli.options import (
    AllowGlobal,
    App,
    Output,
    ReportFormat,
    Source,
    SourceTimezone,
    TablePrefix,
    User,
    reading,
)
from exhume.report.formats import Format


class Only(enum.StrEnum):
    """What `--only` takes: the groups of `exhume.audit.timeline_filter`."""

    APPROVALS = "approvals"
    CALLS = "calls"
    STATE = "state"
    TEXT = "text"
    CONTROL = "control"


def command(
    source: Source,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="Id of the session.", show_envvar=False)],
    app: App = None,
    user: User = None,
    invocation: Annotated[str | None, typer.Option("--invocation", metavar="ID", help="Only this invocation.")] = None,
    author: Annotated[str | None, typer.Option("--author", help="Only what this author said or did.")] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="TIME", help="From this time on (ISO 8601).")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Up to this time (ISO 8601).")] = None,
    only: Annotated[
        list[Only] | None, typer.Option("--only", help="Only this kind of thing that happened. Repeatable.")
    ] = None,
    reveal: Annotated[bool, typer.Option("--reveal", help="Show credentials, too.")] = False,
    format: ReportFormat = Format.TABLE,
    output: Output = None,
    source_timezone: SourceTimezone = "auto",
    allow_global: AllowGlobal = None,
    table_prefix: TablePrefix = "",
) -> None:
    """Tell one session in causal order: turns, calls with their responses, requests, decisions, state, times."""
    from exhume import api
    from exhume.audit.timeline import timeline
    from exhume.audit.timeline_filter import TimelineFilter
    from exhume.cli.output import emit
    from exhume.cli.parse import moment
    from exhume.report.documents import Span
    from exhume.report.results import of_timeline
    from exhume.report.wire import now

    started = now()
    read = reading(source_timezone, allow_global, app=app, user=user, session=session)
    with api.opened(source, read, table_prefix=table_prefix) as (reader, detection):
        found = timeline(reader, detection, session=session, reveal=reveal)
    chosen = TimelineFilter(
        invocation=invocation,
        author=author,
        since=moment(since),
        until=moment(until),
        only=tuple(one.value for one in only or ()),
    )
    found = chosen.apply(found)
    emit(of_timeline(found, span=Span(started, now())), format, output)
