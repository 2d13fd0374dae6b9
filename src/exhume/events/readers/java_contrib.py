"""Reader of adk-java's contributed MySQL session service: events as camelCase JSON, state as one row per key."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from exhume.events.json_text import NotJson, Parsed, dump, parse
from exhume.events.model import Capability, EventKey, EventRecord, Loss, Problem, StateRecord
from exhume.events.readers.base import cell_text, read_state, unreadable
from exhume.events.readers.js import JsReader
from exhume.events.times import epoch_seconds
from exhume.schema.detection import Layout
from exhume.stores.interface import Ordered

_SESSION = ("app_name", "user_id", "session_id")


class JavaContribReader(JsReader):
    """`contrib/mysql-session-service`: `event_sequence` is the storage order, times in JSON are milliseconds."""

    layout = Layout.JAVA_CONTRIB
    capabilities = frozenset(
        {
            Capability.ACTIONS,
            Capability.LONG_RUNNING,
            Capability.STATE,
            Capability.SESSION_TIMES,
            Capability.STATE_ROWS,
            Capability.CONFIRMATIONS,
        }
    )

    def events(self) -> Iterator[EventRecord]:
        table = self.table("events")
        if table is None:
            return
        names = table.column_names
        spot = {name: index for index, name in enumerate(names)}
        order = (*_SESSION, *(name for name in ("created_at", "event_sequence") if name in spot))
        for position, row in self.rows(table, order, "session_id"):

            def cell(name: str, row: Any = row) -> Any:
                return row[spot[name]] if name in spot else None

            key = EventKey(*(cell_text(cell(name)) for name in (*_SESSION, "event_id")))
            sequence = cell("event_sequence")
            record = self.record(key, position, (None, cell("created_at"), cell("event_data")), names, row)
            record.position = sequence if isinstance(sequence, int) else position
            if record.data is not None:
                stored = record.data.get("invocation_id")
                record.invocation_id = stored if isinstance(stored, str) else None
            yield record

    def sessions(self) -> Iterator[StateRecord]:
        table = self.table("sessions")
        if table is None:
            return
        names = table.column_names
        spot = {name: index for index, name in enumerate(names)}
        for position, row in self.rows(table, _SESSION, "session_id"):
            cells = {name: row[index] for name, index in spot.items()}
            state, text, losses, problems = read_state(cells.get("state"))
            app, user, session = (cell_text(cells[name]) for name in _SESSION)
            yield StateRecord(
                app,
                user,
                session,
                state,
                text,
                epoch_seconds(cells.get("created_at"), milliseconds=True),
                epoch_seconds(cells.get("updated_at"), milliseconds=True),
                position,
                problems,
                names,
                row,
                losses,
            )

    def app_states(self) -> Iterator[StateRecord]:
        yield from self._keyed("app_states", ("app_name",))

    def user_states(self) -> Iterator[StateRecord]:
        yield from self._keyed("user_states", ("app_name", "user_id"))

    def _keyed(self, logical: str, key: tuple[str, ...]) -> Iterator[StateRecord]:
        """Rows of one key and value each, put together: one record per app or user."""
        table = self.table(logical)
        if table is None or not {"state_key", "state_value", *key} <= set(table.column_names):
            return
        names = table.column_names
        spots = [names.index(name) for name in key]
        value_at, key_at = names.index("state_value"), names.index("state_key")

        def owner(ordered: Ordered) -> tuple[str, ...]:
            return tuple(cell_text(ordered.row[spot]) for spot in spots)

        for texts, rows in groupby(self.rows(table, (*key, "state_key"), None), key=owner):
            state: dict[str, Any] = {}
            losses: list[Loss] = []
            problems: list[Problem] = []
            position = -1
            for position, row in rows:  # noqa: B007 - the last position is the record's
                name, cell = cell_text(row[key_at]), row[value_at]
                if name in state:
                    reason = "Another row has the same key once keys are text"
                    problems.append(unreadable("state_key", reason, row[key_at]))
                    continue
                try:
                    state[name], found = Parsed(None) if cell is None else parse(cell_text(cell), name)
                    losses += found
                except NotJson as error:
                    reason = f"The value of a key cannot be read: {error.what}"
                    problems.append(unreadable("state_value", reason, cell))
            yield StateRecord(
                texts[0],
                texts[1] if len(texts) > 1 else None,
                None,
                state,
                dump(state),
                None,
                None,
                position,
                tuple(problems),
                losses=tuple(losses),
            )
