"""What every kind of export starts from: sessions in key order, each with its events and the states around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from exhume.audit.engine import sessions_with_events
from exhume.events.interface import Reader
from exhume.events.model import EventRecord, SessionKey, StateRecord


@dataclass(frozen=True, slots=True)
class ExportedSession:
    """One session.

    Attributes:
        row: None for events whose session does not exist.
        events: by corrected time, then storage order.
        app_state, user_state: of the session's app and user, keys without prefix; empty where there are none.
    """

    key: SessionKey
    row: StateRecord | None
    events: list[EventRecord]
    app_state: dict[str, Any]
    user_state: dict[str, Any]

    @property
    def state(self) -> dict[str, Any]:
        """The session's own state."""
        return self.row.state if self.row is not None and self.row.state is not None else {}

    @property
    def merged_state(self) -> dict[str, Any]:
        """State as `get_session` gives it: keys of app and user under their prefixes (google-adk 1.0.0 to 2.13.0)."""
        return {
            **self.state,
            **{f"app:{name}": value for name, value in self.app_state.items()},
            **{f"user:{name}": value for name, value in self.user_state.items()},
        }


def exported_sessions(reader: Reader) -> Iterator[ExportedSession]:
    """All sessions of a reader; one session's events are in memory at a time, and the states of one app and user."""
    apps = _States(reader.app_states())
    users = _States(reader.user_states())
    for key, row, records in sessions_with_events(reader):
        records.sort(key=lambda record: (record.time is None, record.time or 0.0, record.position))
        app = apps.at((key.app_name,))
        user = users.at((key.app_name, key.user_id))
        yield ExportedSession(key, row, records, app, user)


class _States:
    """State rows beside sessions in the same order: each row is read once and kept while sessions need it."""

    def __init__(self, rows: Iterator[StateRecord]) -> None:
        self._rows = rows
        self._row = next(rows, None)
        self._passed: tuple[tuple[bytes, ...], dict[str, Any]] | None = None

    def at(self, key: tuple[str, ...]) -> dict[str, Any]:
        wanted = tuple(part.encode("utf-8", "surrogatepass") for part in key)
        while self._row is not None and (place := _place(self._row)) <= wanted:
            self._passed = (place, self._row.state or {})
            self._row = next(self._rows, None)
        return self._passed[1] if self._passed is not None and self._passed[0] == wanted else {}


def _place(row: StateRecord) -> tuple[bytes, ...]:
    parts = (row.app_name,) if row.user_id is None else (row.app_name, row.user_id)
    return tuple(part.encode("utf-8", "surrogatepass") for part in parts)
