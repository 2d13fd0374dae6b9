"""Pairs the rows of two stores by key while both stream, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from exhume.events.model import EventKey, EventRecord, SessionKey, StateRecord

Record = TypeVar("Record", EventRecord, StateRecord)


class Pair(NamedTuple, Generic[Record]):
    """The records of one key; None is the side that lacks it."""

    source: Record | None
    destination: Record | None


def match_states(source: Iterator[StateRecord], destination: Iterator[StateRecord]) -> Iterator[Pair[StateRecord]]:
    """Pairs state rows, of which both streams are in key order."""
    ours, theirs = next(source, None), next(destination, None)
    while ours is not None or theirs is not None:
        order = _compare(ours, theirs)
        yield Pair(ours if order <= 0 else None, theirs if order >= 0 else None)
        if order <= 0:
            ours = next(source, None)
        if order >= 0:
            theirs = next(destination, None)


def match_events(source: Iterator[EventRecord], destination: Iterator[EventRecord]) -> Iterator[Pair[EventRecord]]:
    """Pairs events by id, session by session.

    Both streams are in order of sessions; inside a session they need not have one order (a zone shift, two meanings of
    one column). So events wait for their partner: as many as lie between two partners, and no longer than the session.
    """
    ours, theirs = _Side(source), _Side(destination)
    while ours.record is not None or theirs.record is not None:
        session = _first_session(ours.record, theirs.record)
        while ours.is_in(session) or theirs.is_in(session):
            if ours.is_in(session):
                for found, partner in ours.advance(theirs, session):
                    yield Pair(found, partner)
            if theirs.is_in(session):
                for found, partner in theirs.advance(ours, session):
                    yield Pair(partner, found)
        yield from (Pair(record, None) for record in ours.forget())
        yield from (Pair(None, record) for record in theirs.forget())


class _Side:
    """One stream of events and those of the current session that wait for a partner."""

    def __init__(self, stream: Iterator[EventRecord]) -> None:
        self._stream = stream
        self._waiting: dict[str, list[EventRecord]] = {}
        self.record = next(stream, None)

    def is_in(self, session: SessionKey) -> bool:
        return self.record is not None and self.record.key.session == session

    def advance(self, other: _Side, session: SessionKey) -> Iterator[tuple[EventRecord, EventRecord | None]]:
        """Takes the next record: with its partner, without one for good, or nothing when it has to wait."""
        record = self.record
        assert record is not None
        self.record = next(self._stream, None)
        partners = other._waiting.get(record.key.event_id)
        if partners:
            partner = partners.pop(0)
            if not partners:
                del other._waiting[record.key.event_id]
            yield record, partner
        elif other.is_in(session):
            self._waiting.setdefault(record.key.event_id, []).append(record)
        else:
            yield record, None

    def forget(self) -> Iterator[EventRecord]:
        """Those that no partner came for, in the order in which they were read."""
        waiting, self._waiting = self._waiting, {}
        for records in waiting.values():
            yield from records


def _first_session(ours: EventRecord | None, theirs: EventRecord | None) -> SessionKey:
    if ours is None or theirs is None:
        one = ours or theirs
        assert one is not None
        return one.key.session
    mine, yours = ours.key.session, theirs.key.session
    return mine if _bytes(mine) <= _bytes(yours) else yours


def _compare(ours: StateRecord | None, theirs: StateRecord | None) -> int:
    """-1 when the source's record comes first, 1 when the destination's does, 0 when they have one key."""
    if ours is None:
        return 1
    if theirs is None:
        return -1
    mine, yours = _bytes(state_key(ours)), _bytes(state_key(theirs))
    return (mine > yours) - (mine < yours)


def state_key(record: StateRecord) -> EventKey:
    """The key of a state row; parts that its table lacks are empty."""
    return EventKey(record.app_name, record.user_id or "", record.session_id or "", "")


def _bytes(key: tuple[str, ...]) -> tuple[bytes, ...]:
    """Stores order text by its bytes, Python orders it by code points."""
    return tuple(part.encode("utf-8", "surrogateescape") for part in key)
