"""`exhume detect`: which schema is this, who wrote it, what contradicts what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from exhume.cli.options import Output, ReportFormat, Source, TablePrefix
from exhume.report.formats import Format

if TYPE_CHECKING:
    from exhume.events.model import TimeZoneReport
    from exhume.schema.detection import Detection
    from exhume.stores.interface import Store

#: Files of more events are not read for their zone unless that is asked for: `detect` answers at once.
_MOST_READ_FOR_ZONE = 20_000


def command(
    source: Source,
    format: ReportFormat = Format.TABLE,
    output: Output = None,
    require: Annotated[
        str | None,
        typer.Option("--require", metavar="VERSION", help="Exit 1 unless the tables are of this schema version."),
    ] = None,
    drift: Annotated[bool, typer.Option("--drift", help="Compare with the declared layout (by Alembic).")] = False,
    sql: Annotated[
        str | None,
        typer.Option(
            "--sql",
            metavar="RELEASE",
            help="Print the statements that let this ADK release read a v0 database, and nothing else.",
        ),
    ] = None,
    time_zone: Annotated[
        bool,
        typer.Option(
            "--time-zone", help="Find the zone of the times of a large database, too (reads every event's time)."
        ),
    ] = False,
    table_prefix: TablePrefix = "",
) -> None:
    """Tell the schema of a database by all its marks, and report marks that disagree."""
    from contextlib import closing

    from exhume.cli.exits import after_detect
    from exhume.cli.output import deliver, emit, say
    from exhume.report.documents import Span
    from exhume.report.results import of_detection
    from exhume.report.wire import now
    from exhume.schema.detect import detect, meets
    from exhume.stores import open_store

    started = now()
    with closing(open_store(source)) as store:
        detection = detect(store, table_prefix=table_prefix, drift=drift)
        if sql is not None:
            from exhume.schema.upgrade_sql import NEWEST, is_beyond, upgrade_sql

            statements = upgrade_sql(store, detection, sql)
            if is_beyond(sql):
                say(f"exhume knows releases up to {NEWEST}; this is what {NEWEST} needs.")
            if not statements:
                say(f"Nothing is needed: ADK {sql} finds every column that it reads.")
            deliver((f"{statement};\n" for statement in statements), output)
            return
        zone = _time_zone(store, detection, always=time_zone)
    emit(of_detection(detection, span=Span(started, now()), time_zone=zone), format, output)
    required = None if require is None else meets(detection, require)
    if required is False:
        say(f"exhume: not what --require asks for: schema {require}, marked as such and without a contradiction.")
    raise typer.Exit(after_detect(detection, required=required))


def _time_zone(store: Store, detection: Detection, *, always: bool) -> TimeZoneReport | None:
    """In which zone the times of events are; None where nothing reads them, or they cannot be read."""
    from exhume.cli.output import say
    from exhume.errors import ExhumeError
    from exhume.events.interface import ReadOptions
    from exhume.events.readers import open_reader, readable_layouts
    from exhume.schema.detection import Layout

    if detection.layout is Layout.EXPORT or detection.layout not in readable_layouts():
        return None
    events = detection.tables.get("events")
    count = detection.counts.get(events.name, 0) if events is not None else 0
    if count > _MOST_READ_FOR_ZONE and not always:
        say(f"The zone of the times was not looked for in {count:,} events; --time-zone does it.")
        return None
    try:
        return open_reader(store, detection, ReadOptions()).time_zone()
    except ExhumeError:
        return None  # `detect` says what a damaged store is, too; reading it says what is damaged
