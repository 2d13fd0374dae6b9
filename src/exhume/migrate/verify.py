"""The command `verify`: two stores side by side, event by event and value by value, whatever their layouts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from exhume.errors import Incomplete
from exhume.events.interface import Reader
from exhume.events.json_text import is_giant
from exhume.events.model import EventKey, EventRecord, StateRecord, TimeZoneReport
from exhume.events.readers import open_reader
from exhume.migrate.chain import readable_detection
from exhume.migrate.compare import ValueDifference, differences, same, same_time, shown
from exhume.migrate.interface import Difference, VerifyOptions, VerifyReport, VerifyTable
from exhume.migrate.matching import match_events, match_states, state_key
from exhume.migrate.rows import escaped, without_surrogates
from exhume.schema.detect import detect
from exhume.schema.detection import Detection, Layout
from exhume.schema.layouts import METADATA_TABLE, SCHEMA_VERSION_KEY
from exhume.stores import open_store
from exhume.stores.interface import Store

#: Differences that a report lists.
LISTED = 100
#: Progress is told after so many rows.
_TELL_EVERY = 500
#: Parts of `event_data` that are compared as columns: there ADK reads them from.
_KEYS = frozenset({"id", "invocation_id", "timestamp"})


def verify(
    source: str | os.PathLike[str], destination: str | os.PathLike[str], options: VerifyOptions | None = None
) -> VerifyReport:
    """Compares sessions, events and states of two stores; both are only read.

    Events are compared as the event model has them, so the layouts may differ: names in any spelling, keys in any
    order, numbers by value, times to the microsecond. Of a row that cannot be read the readable rest is compared, and
    the unreadable part is a difference.

    Raises:
        NothingToLookAt: a store cannot be read.
        Refused: a store is of a layout that has no reader.
        Incomplete: a store changed meanwhile.
    """
    chosen = options or VerifyOptions()
    with closing(open_store(source)) as ours, closing(open_store(destination, what="destination")) as theirs:
        comparison = _Comparison(ours, theirs, chosen)
        report = comparison.run()
        for store in (ours, theirs):
            if store.check_unchanged() != store.info().sha256:
                raise Incomplete(
                    f"{store.info().name} changed while it was read.", todo="Compare copies, or run again."
                )
        return report


class _Comparison:
    def __init__(self, source: Store, destination: Store, options: VerifyOptions) -> None:
        self.started = datetime.now(UTC)
        self.stores = (source, destination)
        self.options = options
        ours = readable_detection(detect(source, table_prefix=options.table_prefix))
        other = self._detect_other(destination)
        theirs = readable_detection(_readable_v1(other))
        self.layouts = (str(ours.layout), str(readable_detection(other).layout))
        #: SqliteSessionService cannot read lone surrogates: they are compared by their escapes.
        self.strict = theirs.layout is Layout.SQLITE_SERVICE
        self.detections = (ours, theirs)
        self.readers: tuple[Reader, Reader] = (
            open_reader(source, ours, options.read),
            open_reader(destination, theirs, options.read),
        )
        self.tables: dict[str, VerifyTable] = {}
        self.found: list[Difference] = []
        self.count = 0
        self.done = 0

    def _detect_other(self, store: Store) -> Detection:
        """The destination of a migration has plain names even where the source's have a prefix."""
        prefix = self.options.table_prefix
        if prefix and not any(name.startswith(prefix) for name in store.tables()):
            prefix = ""
        return detect(store, table_prefix=prefix)

    def run(self) -> VerifyReport:
        ours, theirs = self.readers
        unmarked = self._mark()
        self._states("sessions", ours.sessions(), theirs.sessions())
        self._events()
        self._states("app_states", ours.app_states(), theirs.app_states())
        self._states("user_states", ours.user_states(), theirs.user_states())
        zones = (ours.time_zone(), theirs.time_zone())
        first, second = (store.info() for store in self.stores)
        return VerifyReport(
            equal=self.count == 0,
            source=first.name,
            destination=second.name,
            source_layout=self.layouts[0],
            destination_layout=self.layouts[1],
            tables=self.tables,
            differences=self.found,
            difference_count=self.count,
            source_time_zone=zones[0],
            destination_time_zone=zones[1],
            notes=self._notes(zones) + unmarked,
            started_at=_rfc3339(self.started),
            finished_at=_rfc3339(datetime.now(UTC)),
        )

    def _mark(self) -> list[str]:
        """The row with which v1 says its version, without which ADK does not know it; gives notes."""
        ours, theirs = self.detections
        if theirs.layout not in (Layout.V1, Layout.V1_UNMARKED) or theirs.declared_version == "1":
            return []
        if ours.layout is Layout.V1_UNMARKED and ours.declared_version == theirs.declared_version:
            return [f"no side says in {METADATA_TABLE} that its {SCHEMA_VERSION_KEY} is 1"]
        said = None if theirs.declared_version is None else shown(theirs.declared_version)
        found = ValueDifference(SCHEMA_VERSION_KEY, shown("1"), said)
        self._tell(METADATA_TABLE, EventKey("", "", "", ""), iter([found]))
        return []

    def _states(self, name: str, source: Iterator[StateRecord], destination: Iterator[StateRecord]) -> None:
        table = self.tables[name] = VerifyTable()
        for one, other in match_states(source, destination):
            table.source += one is not None
            table.destination += other is not None
            if one is None and other is not None and name != "sessions" and other.state == {}:
                table.created += 1
                continue
            table.equal += self._tell(name, _state_key(one, other), _state_differences(one, other, self.strict))
            self._progress(name)

    def _events(self) -> None:
        table = self.tables["events"] = VerifyTable()
        for one, other in match_events(self.readers[0].events(), self.readers[1].events()):
            if one is not None and other is not None and _quickly_equal(one, other):
                table.source += 1
                table.destination += 1
                table.equal += 1
            else:
                table.source += one is not None
                table.destination += other is not None
                table.equal += self._tell("events", _event_key(one, other), _event_differences(one, other, self.strict))
            self._progress("events")

    def _tell(self, table: str, key: EventKey, found: Iterator[ValueDifference]) -> bool:
        """Counts the differences of a row; True when there is none."""
        equal = True
        for one in found:
            equal = False
            self.count += 1
            if len(self.found) < LISTED:
                self.found.append(Difference(table, key, one.field, one.source, one.destination))
        return equal

    def _progress(self, table: str) -> None:
        self.done += 1
        if self.options.progress is not None and self.done % _TELL_EVERY == 0:
            total = max(sum(detection.counts.values()) for detection in self.detections)
            self.options.progress(min(self.done, total), total, table)

    def _notes(self, zones: tuple[TimeZoneReport, TimeZoneReport]) -> list[str]:
        notes = [note for store in self.stores for note in store.info().notes]
        notes += [note for zone in zones for note in zone.notes]
        notes += [one for detection in self.detections for one in detection.contradictions]
        made = [f"{table.created} {name}" for name, table in self.tables.items() if table.created]
        if made:
            notes.append(f"empty state rows that the source lacks are no difference: {', '.join(made)}")
        return notes


def _readable_v1(detection: Detection) -> Detection:
    """The tables of v1 are read whatever version they say, which is a difference of its own."""
    events = detection.tables.get("events")
    if detection.layout is not Layout.UNKNOWN_VERSION or "sessions" not in detection.tables or events is None:
        return detection
    return replace(detection, layout=Layout.V1) if "event_data" in events.column_names else detection


def _event_key(one: EventRecord | None, other: EventRecord | None) -> EventKey:
    record = one if one is not None else other
    assert record is not None
    return record.key


def _state_key(one: StateRecord | None, other: StateRecord | None) -> EventKey:
    record = one if one is not None else other
    assert record is not None
    return state_key(record)


def _quickly_equal(one: EventRecord, other: EventRecord) -> bool:
    """Equal without a doubt; False sends the pair to the long comparison."""
    return (
        not one.problems
        and not other.problems
        and one.time == other.time
        and (one.invocation_id or "") == (other.invocation_id or "")
        and (other.source is None or other.column_time == other.time)
        and not is_giant(one.raw)
        and not is_giant(other.raw)
        and same(one.data, other.data)
    )


def _event_differences(one: EventRecord | None, other: EventRecord | None, strict: bool) -> Iterator[ValueDifference]:
    """Every difference of two events after the conversions that the destination's layout forces."""
    if one is None or other is None:
        yield _missing(one, other)
        return
    if _spelt(one.invocation_id) != _spelt(other.invocation_id):
        yield ValueDifference("invocation_id", shown(one.invocation_id), shown(other.invocation_id))
    if not same_time(one.time, other.time):
        yield ValueDifference("timestamp", shown(one.time), shown(other.time))
    yield from _column_differences(one, other)
    unreadable = _unreadable(one, other)
    yield from unreadable.values()
    for found in differences(_forced(_beside_keys(one), strict), _forced(_beside_keys(other), strict)):
        if found.field.partition(".")[0].partition("[")[0] not in unreadable:
            yield found


def _column_differences(one: EventRecord, other: EventRecord) -> Iterator[ValueDifference]:
    """What the columns and the JSON of a destination's event say of the same thing, where they do not agree.

    ADK orders events by the column. A source that contradicts itself in the same way is no difference.
    """
    if other.source is None:
        return
    if not same_time(other.column_time, other.time) and not (
        one.source is not None and same_time(other.column_time, one.column_time)
    ):
        yield ValueDifference("timestamp (the column)", shown(one.time), shown(other.column_time))
    ours, theirs = one.data or {}, other.data or {}
    for name, told in (("id", other.key.event_id), ("invocation_id", other.invocation_id or "")):
        if name in theirs and theirs[name] not in (told, ours.get(name)):
            yield ValueDifference(f"event_data.{name}", shown(ours.get(name)), shown(theirs[name]))


def _beside_keys(record: EventRecord) -> dict[str, Any]:
    """The event without what its columns say better."""
    return {name: value for name, value in (record.data or {}).items() if name not in _KEYS}


def _spelt(invocation: str | None) -> str:
    """An invocation id with escapes for bytes that are not UTF-8, which no destination holds."""
    text = invocation or ""
    return text if text.isascii() else escaped(text)


def _forced(value: Any, strict: bool) -> Any:
    """A value as the destination's layout can hold it."""
    return without_surrogates(value, "", []) if strict else value


def _state_differences(one: StateRecord | None, other: StateRecord | None, strict: bool) -> Iterator[ValueDifference]:
    if one is None or other is None:
        yield _missing(one, other)
        return
    unreadable = _unreadable(one, other)
    yield from unreadable.values()
    if "state" not in unreadable:
        yield from differences(_forced(one.state, strict), _forced(other.state, strict), "state")
    if not one.columns or not other.columns:
        return  # state kept key by key has no time of its own
    for column in ("create_time", "update_time"):
        ours, theirs = getattr(one, column), getattr(other, column)
        if not same_time(ours, theirs):
            yield ValueDifference(column, shown(ours), shown(theirs))


def _unreadable(one: EventRecord | StateRecord, other: EventRecord | StateRecord) -> dict[str, ValueDifference]:
    """Column -> difference, for what could not be read on a side: whether it is equal nobody can say."""
    found: dict[str, ValueDifference] = {}
    for number, record in enumerate((one, other)):
        for problem in record.problems:
            if problem.fatal:
                said = f"(cannot be read: {problem.reason})"
                before = found.get(problem.column, ValueDifference(problem.column, "(readable)", "(readable)"))
                found[problem.column] = before._replace(destination=said) if number else before._replace(source=said)
    return found


def _missing(one: EventRecord | StateRecord | None, other: EventRecord | StateRecord | None) -> ValueDifference:
    """The whole row is missing on one side."""
    return ValueDifference("", None if one is None else "(the row)", None if other is None else "(the row)")


def _rfc3339(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
