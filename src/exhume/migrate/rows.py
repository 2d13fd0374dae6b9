"""Rows of the JSON layouts, made of the event model: what all steps that go through a reader share."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

from exhume.events.actions import refusals
from exhume.events.interface import Reader, ReadOptions
from exhume.events.json_text import NotJson, dump, is_giant, parse
from exhume.events.model import EventKey, EventRecord, Loss, Problem, StateRecord, TimeZoneReport
from exhume.events.readers import open_reader
from exhume.events.readers.base import sha256_of
from exhume.events.shapes import Findings, model, shape
from exhume.migrate.interface import Hop, StepOutput
from exhume.schema.detection import Detection
from exhume.stores.interface import Cell, Row, Store

#: How SQLAlchemy spells a naive time in SQLite, and the only spelling that every ADK release reads.
_ADK_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?\Z", re.ASCII)
#: Stands for a time of a state row that has none, or none that can be read (the original is then in quarantine).
_EPOCH = 0.0
#: Parts of `event_data` for which ADK takes, or this module puts in, what the columns say.
_FROM_COLUMNS = ("id", "invocation_id", "timestamp")
#: Keys that ADK 2.13 does not pass over though it has no such fields (`Event._accept_convenience_kwargs`).
_SHORTHANDS = frozenset({"message", "state", "route", "node_path"})
_EVENT_KEY = ("id", "event_id", "app_name", "user_id", "session_id")
_STATE_KEY = ("app_name", "user_id", "id", "session_id")

#: Spells an epoch time for the target; raises ValueError, OverflowError or OSError where it has no spelling.
Clock = Callable[[float], Cell]


def naive_utc(seconds: float) -> str:
    """Naive UTC with six digits, as google-adk 2.13.0 stores it in SQLite (`sessions/schemas/shared.py`).

    Raises:
        ValueError, OverflowError, OSError: outside of the years 1 to 9999.
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(" ", "microseconds")[:26]


class ReaderHop:
    """One step at work: every record of a reader becomes a row.

    Args:
        reader: of the source.
        clock: spells times for the target.
        keep_time_text: carry a session's time over unchanged where the target can hold its spelling.
        self_contained: the target reads id, invocation and time from `event_data` alone, by a strict JSON parser
            (SqliteSessionService).
    """

    def __init__(self, reader: Reader, *, clock: Clock, keep_time_text: bool, self_contained: bool) -> None:
        self.reader = reader
        self._clock = clock
        self._keep_time_text = keep_time_text
        self._self_contained = self_contained

    def rows(self) -> Iterator[StepOutput]:
        for record in self.reader.app_states():
            yield self._state("app_states", record)
        for record in self.reader.user_states():
            yield self._state("user_states", record)
        for record in self.reader.sessions():
            yield self._state("sessions", record)
        yield from self.events()

    def time_zone(self) -> TimeZoneReport:
        return self.reader.time_zone()

    def notes(self) -> Sequence[str]:
        return ()

    def events(self) -> Iterator[StepOutput]:
        """The rows of `events`."""
        clock, self_contained = self._clock, self._self_contained
        columns: tuple[str, ...] = ()
        key_cells: Callable[[Row], tuple[Cell, ...]] = tuple
        for record in self.reader.events():
            key, problems, losses = record.key, record.problems, record.losses
            if record.columns is not columns:
                columns, key_cells = record.columns, _picker(record.columns, _EVENT_KEY)
            for cell in key_cells(record.raw):
                if type(cell) is not str:
                    losses = (*losses, Loss("key-to-text", "key"))
                    break
            row: Row | None = None
            time, data = record.time, record.data
            if not key.event_id:
                problems = _with(problems, record, "id", "the event has no id")
            elif time is None:
                problems = _with(problems, record, "timestamp", "the event's time cannot be read")
            elif data is None:
                problems = _with(problems, record, "event_data", "nothing can be made of the event")
            elif bad := _bad_key(key):
                problems = _with(problems, record, bad, f"the {bad} is not valid UTF-8")
            else:
                if record.source is not None:
                    data, losses, problems = _loadable(record, data, losses, problems)
                if self_contained:
                    data, losses = _made_self_contained(record, data, losses)
                invocation = record.invocation_id or ""
                if not _is_utf8(invocation):
                    invocation, losses = escaped(invocation), (*losses, Loss("bad-utf8-to-escape", "invocation_id"))
                try:
                    text = dump(data, giant=is_giant(record.raw))
                    row = (key[3], key[0], key[1], key[2], invocation, clock(time), text)
                except NotJson as error:
                    problems = _with(problems, record, "event_data", error.what)
                except (ValueError, OverflowError, OSError):
                    problems = _with(
                        problems, record, "timestamp", "the event's time is outside of the years 1 to 9999"
                    )
            yield StepOutput("events", row, key, record, losses, problems)

    def _state(self, table: str, record: StateRecord) -> StepOutput:
        key = EventKey(record.app_name, record.user_id or "", record.session_id or "", "")
        problems: list[Problem] = list(record.problems)
        losses: list[Loss] = []
        if not all(isinstance(cell, str) for cell in _picker(record.columns, _STATE_KEY)(record.raw)):
            losses.append(Loss("key-to-text", "key"))
        text = record.state_text if record.state is not None else None
        if text is None:
            text = "{}"
            if not any(problem.fatal for problem in problems):
                problems.append(_problem(record, "state", "the state cannot be read"))
        elif self._self_contained:
            text = _strict_state(text, losses)
        elif record.problems:  # of a state that was read, in spite of the bare word Inf in it
            losses.append(Loss("inf-to-infinity", "state"))
        elif not _is_utf8(text):
            text = dump(record.state, giant=is_giant(record.raw))
            losses.append(Loss("bad-utf8-to-escape", "state"))
        times: list[Cell] = []
        wanted = ("create_time", "update_time") if table == "sessions" else ("update_time",)
        for column in wanted:
            known = record.create_time if column == "create_time" else record.update_time
            if known is None and not record.columns:  # state kept key by key has no time of its own
                losses.append(Loss("no-time-to-epoch", column))
                times.append(self._clock(_EPOCH))
            elif known is None:
                problems.append(_problem(record, column, f"the {column} cannot be read"))
                other = record.update_time if column == "create_time" else record.create_time
                known = other if other is not None else _EPOCH
                times.append(self._clock(known))
            else:
                times.append(self._time(record, column, known, problems))
        names = [part for part in (record.app_name, record.user_id, record.session_id) if part is not None]
        row: Row | None = (*names, text, *times)
        if bad := _bad_key(key):
            column = "id" if bad == "session_id" and bad not in record.columns else bad
            problems.append(_problem(record, column, f"the {bad} is not valid UTF-8"))
            row = None
        return StepOutput(table, row, key, record, tuple(losses), tuple(problems))

    def _time(self, record: StateRecord, column: str, seconds: float, problems: list[Problem]) -> Cell:
        if self._keep_time_text and column in record.columns:
            cell = record.raw[record.columns.index(column)]
            if isinstance(cell, str) and _ADK_TIME.match(cell):
                return cell
        try:
            return self._clock(seconds)
        except (ValueError, OverflowError, OSError):
            problems.append(_problem(record, column, f"the {column} is outside of the years 1 to 9999"))
            return self._clock(_EPOCH)


def _loadable(
    record: EventRecord, data: dict[str, Any], losses: tuple[Loss, ...], problems: tuple[Problem, ...]
) -> tuple[dict[str, Any], tuple[Loss, ...], tuple[Problem, ...]]:
    """The event without what ADK 2.13 would refuse, which is told; as it is when there is nothing of that kind."""
    found = Findings(verbatim=True)
    told = {name: value for name, value in data.items() if name not in _FROM_COLUMNS}
    shaped = shape(told, model("Event"), "", found)
    for name in _SHORTHANDS & told.keys():
        if told[name] is not None:
            found.refuse(("", name), "ADK 2.13 takes it for a shorthand of another field")
            del shaped[name]
    if not found.faults:
        return data, losses, problems
    kept = {name: data[name] for name in _FROM_COLUMNS if name in data}
    cell = record.raw[record.columns.index("event_data")] if "event_data" in record.columns else record.source
    faults = refusals(found.faults, "event_data", sha256_of(cell))
    return {**shaped, **kept}, (*losses, *found.losses), (*problems, *faults)


def _made_self_contained(
    record: EventRecord, data: dict[str, Any], before: tuple[Loss, ...]
) -> tuple[dict[str, Any], tuple[Loss, ...]]:
    """`event_data` that stands alone: id, invocation and time inside, no lone surrogate (pydantic fails at one)."""
    key = record.key
    invocation = record.invocation_id or ""
    if not _is_utf8(invocation):
        invocation = escaped(invocation)
    if (
        data.get("id") != key.event_id
        or data.get("invocation_id") != invocation
        or data.get("timestamp") != record.time
    ):
        data = {**data, "id": key.event_id, "invocation_id": invocation, "timestamp": record.time}
    losses = list(before)
    if record.source is None or b"\\u" in record.source:
        data = {name: without_surrogates(value, name, losses) for name, value in data.items()}
    return data, tuple(losses)


def _strict_state(text: str, losses: list[Loss]) -> str:
    """State as SQLite's JSON functions take it, with which SqliteSessionService merges: no NaN, no lone surrogate."""
    value, found = parse(text, "state")
    escaped: list[Loss] = []
    value = without_surrogates(value, "state", escaped)
    if not found and not escaped:
        return text
    losses.extend([*found, *escaped])
    return dump(value)


def _picker(columns: tuple[str, ...], wanted: tuple[str, ...]) -> Callable[[Row], tuple[Cell, ...]]:
    """Takes the cells of those columns that there are."""
    spots = [columns.index(name) for name in wanted if name in columns]
    if len(spots) > 1:
        return itemgetter(*spots)
    return lambda row: tuple(row[spot] for spot in spots)


def without_surrogates(value: Any, place: str, losses: list[Loss]) -> Any:
    """`value` with visible escapes for lone surrogates, each text noted. Its depth is bounded by the reader."""
    if isinstance(value, str):
        if _is_utf8(value):
            return value
        losses.append(Loss("surrogate-to-escape", place))
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {
            without_surrogates(key, f"{place} (key)", losses): without_surrogates(item, f"{place}.{key}", losses)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [without_surrogates(item, f"{place}[{index}]", losses) for index, item in enumerate(value)]
    return value


def _bad_key(key: EventKey) -> str | None:
    """Which part of a key is no text that SQLite can hold."""
    if "".join(key).isascii():
        return None
    return next((name for name, part in zip(key._fields, key, strict=True) if not _is_utf8(part)), None)


def escaped(text: str) -> str:
    """Text with a visible escape such as `\\xff` for each byte that is not UTF-8, and for each other surrogate."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()


def _is_utf8(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _with(problems: tuple[Problem, ...], record: EventRecord, column: str, reason: str) -> tuple[Problem, ...]:
    """The problems, with one more unless a fatal one of that column is there already."""
    if any(one.fatal and one.column == column for one in problems):
        return problems
    return (*problems, _problem(record, column, reason))


def _problem(record: EventRecord | StateRecord, column: str, reason: str) -> Problem:
    cell = record.raw[record.columns.index(column)] if column in record.columns else None
    if isinstance(cell, str):
        cell = cell.encode("utf-8", "surrogateescape")
    elif not isinstance(cell, bytes):
        cell = b"" if cell is None else str(cell).encode()
    return Problem(rule="EXH307", column=column, reason=reason, sha256=hashlib.sha256(cell).hexdigest())


def to_v1(store: Store, detection: Detection, options: ReadOptions) -> Hop:
    """Begins a hop to v1: naive UTC times, session times unchanged where v1 spells them so."""
    return ReaderHop(open_reader(store, detection, options), clock=naive_utc, keep_time_text=True, self_contained=False)


def to_sqlite_service(store: Store, detection: Detection, options: ReadOptions) -> Hop:
    """Begins a hop to the layout of SqliteSessionService: epoch times, events that stand alone."""
    return ReaderHop(open_reader(store, detection, options), clock=float, keep_time_text=False, self_contained=True)
