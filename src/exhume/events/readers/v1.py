"""Readers of the layouts that hold each event as one JSON text: v1, v1 without its mark, and SqliteSessionService."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from operator import itemgetter
from typing import Any

from exhume.events.json_text import EVENT_DEPTH, NotJson, parse
from exhume.events.model import Capability, EventKey, EventRecord, Loss, Problem
from exhume.events.readers.base import TableReader, cell_bytes, cell_text, kind_of, unreadable
from exhume.events.shapes import canonical, is_plain, looks_camel
from exhume.events.times import epoch_seconds
from exhume.schema.detection import Layout
from exhume.stores.interface import Cell, Row

_ORDER = ("app_name", "user_id", "session_id", "timestamp")
_EPOCH = datetime(1970, 1, 1)
_WANTED = ("id", "app_name", "user_id", "session_id", "invocation_id", "timestamp", "event_data")


class V1Reader(TableReader):
    """DatabaseSessionService of ADK 1.22 and newer (`sessions/schemas/v1.py`): `event_data` holds the exact time.

    Keys in camelCase, which exports and other SDKs write, are read as their snake_case names.
    """

    layout = Layout.V1
    capabilities = frozenset(
        {
            Capability.ACTIONS,
            Capability.LONG_RUNNING,
            Capability.STATE,
            Capability.SESSION_TIMES,
            Capability.EVENT_COLUMNS,
            Capability.STATE_ROWS,
            Capability.CONFIRMATIONS,
        }
    )

    def events(self) -> Iterator[EventRecord]:
        table = self.table("events")
        if table is None:
            return
        names = table.column_names
        whole = self.options.raw_events
        asked = names if whole else tuple(name for name in _WANTED if name in names)
        # a column that is missing reads as the last one of a row that is longer by one NULL
        spots = [asked.index(name) if name in asked else len(asked) for name in _WANTED]
        padded = len(asked) in spots
        pick = None if asked == _WANTED else itemgetter(*spots)
        kept: tuple[tuple[str, ...], Row] = ((), ())
        # tuple.__new__ is what EventKey(...) comes to; this runs once for every event
        make, kind = tuple.__new__, EventKey
        record = self.record
        last_app = last_user = last_session = ""
        as_utf8 = () if whole else ("event_data",)
        for position, row in self.rows(table, _ORDER, "session_id", columns=asked, as_utf8=as_utf8):
            cells = row if pick is None else pick((*row, None) if padded else row)
            ident, app, user, session, invocation, time_cell, cell = cells
            if session != last_session or user != last_user or app != last_app:
                last_app, last_user, last_session = cell_text(app), cell_text(user), cell_text(session)
            if type(ident) is not str:
                ident = cell_text(ident)
            # one copy of the names for all events of a session, which findings keep
            key = make(kind, (last_app, last_user, last_session, ident))
            if whole:
                kept = names, row
            yield record(key, position, (invocation, time_cell, cell), *kept)

    def record(
        self,
        key: EventKey,
        position: int,
        cells: tuple[Cell, Cell, Cell],
        names: tuple[str, ...] = (),
        row: Row = (),
    ) -> EventRecord:
        """One event from its cells: invocation id, time column, JSON text. Nothing in them raises."""
        invocation, time_cell, cell = cells
        column_time = self.column_time(time_cell)
        invocation_id = invocation if invocation is None or type(invocation) is str else cell_text(invocation)
        losses: tuple[Loss, ...] = ()
        problems: tuple[Problem, ...] = ()
        source: bytes | None = None
        data: dict[str, Any] | None = None
        plain = False
        time = column_time
        if cell is None:
            problems = (unreadable("event_data", "event_data is NULL; ADK reads an empty event", cell, fatal=False),)
        else:
            source = cell if type(cell) is bytes else cell_bytes(cell)
            try:
                value, losses = parse(source, deepest=EVENT_DEPTH)
                if type(value) is dict:
                    data = value
                else:
                    problems = (unreadable("event_data", f"event_data is {kind_of(value)}, not an object", cell),)
            except NotJson as error:
                problems = (unreadable("event_data", f"event_data cannot be read: {error.what}", cell),)
        if data is None:
            data = {"invocation_id": invocation_id or "", "author": "", "actions": {}, "id": key.event_id}
            if column_time is not None:
                data["timestamp"] = column_time
        else:
            plain = is_plain(data)
            if not plain and looks_camel(data, source or b""):
                data = canonical(data)
            stamp = data.get("timestamp")
            if type(stamp) is float:
                time = stamp
            elif type(stamp) is int:
                try:
                    time = float(stamp)
                except OverflowError:
                    problems = (*problems, unreadable("event_data", "its timestamp is no time", cell))
            elif stamp is not None:
                problems = (*problems, unreadable("event_data", f"its timestamp is {kind_of(stamp)}", cell))
        return EventRecord(
            key, position, invocation_id, column_time, time, data, losses, problems, names, row, source, plain
        )

    def column_time(self, cell: Cell) -> float | None:
        """The time column as epoch seconds, a naive time read as UTC."""
        if type(cell) is str and len(cell) == 26:
            try:
                return (datetime.fromisoformat(cell) - _EPOCH).total_seconds()
            except (ValueError, TypeError):  # not in ADK's own spelling: no time, or one with a zone
                pass
        return epoch_seconds(cell, milliseconds=self.milliseconds)


class V1UnmarkedReader(V1Reader):
    """The tables of v1 without the row that names their version."""

    layout = Layout.V1_UNMARKED


class SqliteServiceReader(V1Reader):
    """SqliteSessionService (`sessions/sqlite_session_service.py`, ADK 1.19 on): times are exact epoch seconds."""

    layout = Layout.SQLITE_SERVICE
