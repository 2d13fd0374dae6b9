"""From the file of SqliteSessionService to v1: epoch times become naive UTC, and what its state lacks is told.

Up to ADK 2.6.3 that service merged state by SQLite's `json_patch`: a key set to null vanished, and a dict that replaced
another was merged with it. 2.9.2 cut floats to 15 digits and made big integers floats
(`sessions/sqlite_session_service.py` of these releases). The events hold what was meant; the state is carried over as
it is stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from exhume.events.interface import Reader, ReadOptions
from exhume.events.model import EventRecord, SessionKey, StateRecord
from exhume.events.readers import open_reader
from exhume.migrate.interface import Hop, Step, StepOutput
from exhume.migrate.rows import ReaderHop, naive_utc
from exhume.schema.detection import Detection, Layout
from exhume.stores.interface import Store

_OTHER_SCOPES = ("app:", "user:", "temp:")
_GONE = object()
_WORDS = {
    "gone": "keys that an event had set to null are gone",
    "merged": "dicts that replaced another still hold keys of the old one",
    "cut": "numbers have lost digits",
}


class _ServiceHop(ReaderHop):
    """Copies the rows, and replays each session's own deltas beside them."""

    def __init__(self, reader: Reader) -> None:
        super().__init__(reader, clock=naive_utc, keep_time_text=False, self_contained=False)
        self._counts: dict[str, int] = {}
        self._examples: dict[str, str] = {}

    def events(self) -> Iterator[StepOutput]:
        sessions = self.reader.sessions()
        stored: StateRecord | None = None
        current: SessionKey | None = None
        meant: dict[str, Any] = {}
        for output in super().events():
            key = output.key.session
            if key != current:
                self._compare(current, stored, meant)
                current, meant = key, {}
                stored = _advance(sessions, stored, key)
            record = output.record
            if isinstance(record, EventRecord):
                meant.update(_own_delta(record))
            yield output
        self._compare(current, stored, meant)

    def notes(self) -> Sequence[str]:
        return [
            f"in the stored state of {number} session{'s' if number > 1 else ''} {_WORDS[kind]}"
            f" (SqliteSessionService of an older ADK did that; first {self._examples[kind]});"
            " the state was carried over as it is stored"
            for kind, number in self._counts.items()
        ]

    def _compare(self, key: SessionKey | None, stored: StateRecord | None, meant: dict[str, Any]) -> None:
        if key is None or stored is None or stored.state is None or _session_of(stored) != key:
            return
        seen = set()
        for name, value in meant.items():
            kind = _what_happened(value, stored.state.get(name, _GONE))
            if kind is not None and kind not in seen:
                seen.add(kind)
                self._counts[kind] = self._counts.get(kind, 0) + 1
                self._examples.setdefault(kind, f"{'/'.join(key)}: {name}")


def _own_delta(record: EventRecord) -> dict[str, Any]:
    """What an event sets in its session's own state."""
    actions = (record.data or {}).get("actions")
    delta = actions.get("state_delta") if isinstance(actions, dict) else None
    if not isinstance(delta, dict):
        return {}
    return {name: value for name, value in delta.items() if not name.startswith(_OTHER_SCOPES)}


def _what_happened(meant: Any, stored: Any) -> str | None:
    """Which of the service's known faults explains that the stored value is not the one that was meant."""
    if meant is None:
        return "gone" if stored is _GONE else None
    if isinstance(meant, dict) and isinstance(stored, dict):
        return "merged" if _is_merged(meant, stored) else None
    numbers = isinstance(meant, (int, float)) and isinstance(stored, (int, float))
    if numbers and not isinstance(meant, bool) and not isinstance(stored, bool) and meant != stored:
        try:
            return "cut" if math.isclose(meant, stored, rel_tol=1e-14) else None
        except OverflowError:
            return None
    return None


def _is_merged(meant: dict[str, Any], stored: dict[str, Any]) -> bool:
    """Does a stored dict hold more than was meant, at any depth? Nulls aside: events leave out those of models."""
    for name, value in stored.items():
        if name not in meant:
            if value is not None:
                return True
        elif isinstance(value, dict) and isinstance(meant[name], dict) and _is_merged(meant[name], value):
            return True
    return False


def _advance(sessions: Iterator[StateRecord], stored: StateRecord | None, key: SessionKey) -> StateRecord | None:
    """The session of that key, or the first one after it; both streams are in key order."""
    while stored is None or _order(_session_of(stored)) < _order(key):
        following = next(sessions, None)
        if following is None:
            return stored
        stored = following
    return stored


def _session_of(record: StateRecord) -> SessionKey:
    return SessionKey(record.app_name, record.user_id or "", record.session_id or "")


def _order(key: SessionKey) -> tuple[bytes, ...]:
    return tuple(part.encode("utf-8", "surrogateescape") for part in key)


def _open(store: Store, detection: Detection, options: ReadOptions) -> Hop:
    return _ServiceHop(open_reader(store, detection, options))


STEP = Step(
    source=Layout.SQLITE_SERVICE,
    target=Layout.V1,
    changes="Keeps every event, turns epoch times into naive UTC, adds missing state rows and the schema version.",
    open=_open,
)
