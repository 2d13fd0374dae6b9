"""The interface of readers: one module per layout in `exhume.events.readers`, one line of registration there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from exhume.events.model import EventRecord, StateRecord, TimeZoneReport
from exhume.schema.detection import Layout


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read.

    Attributes:
        timezone: `auto`, or an IANA name or fixed offset for naive times.
        allow_globals: dotted names, or `module.*`, decoded inertly besides the reviewed set.
        app, user, session: read only these.
        raw_events: keep the row of an event that is one JSON text in `EventRecord.raw`. Without, it is read faster.
    """

    timezone: str = "auto"
    allow_globals: tuple[str, ...] = ()
    app: str | None = None
    user: str | None = None
    session: str | None = None
    raw_events: bool = True


class Reader(Protocol):
    """Streams one store in the event model. Every method may be called again and starts anew.

    Orders: `sessions` by (app_name, user_id, session_id); `events` by (app_name, user_id, session_id, time column,
    storage order), orphans included; text in binary order of its UTF-8 bytes.
    """

    layout: Layout
    capabilities: frozenset[str]

    def sessions(self) -> Iterator[StateRecord]: ...

    def app_states(self) -> Iterator[StateRecord]: ...

    def user_states(self) -> Iterator[StateRecord]: ...

    def events(self) -> Iterator[EventRecord]: ...

    def time_zone(self) -> TimeZoneReport:
        """How times were read; complete before the first event is yielded."""
        ...
