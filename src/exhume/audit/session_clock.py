"""Are the event times of a whole log off by a time zone against the times of its own sessions?

A v0 file of New York that `adk migrate session` read on a host in UTC has every event five hours before its session.
One such session may be a reused id or events that were dated back; a good part of all sessions with the same whole
offset is a clock.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from exhume.audit.log import SessionLog
from exhume.events.model import EventKey
from exhume.events.times import MICROSECONDS
from exhume.events.zone_proof import Span, prove

#: Sessions that must prove an offset, and their share of all sessions that prove one (zero counts, too).
_LEAST = 3
_SHARE = 0.2
#: In a file that was used on after its migration the shifted sessions are few, but so are others with events from
#: before their creation.
_MANY = 20
_SHARE_OF_OLDER = 0.8
#: Summer and winter of one zone.
_DAYLIGHT_SAVING = 3600
_TOLERANCE = 1.0


class Shift(NamedTuple):
    """Event times less session times, in seconds; the sessions that prove it, and the first event of one of them."""

    offset: int
    sessions: int
    first: EventKey


class SessionClock:
    """Counts what each session proves; asked for its verdict after the last one. Times are seconds."""

    def __init__(self) -> None:
        self._seen: SessionLog | None = None
        self._proofs: Counter[int] = Counter()
        self._proving = self._older = 0
        self._first: dict[int, EventKey] = {}
        self._verdict: list[Shift] | None = None

    def see(self, log: SessionLog) -> None:
        """Takes in one session; several rules may show the same one, one after the other."""
        if log is self._seen:
            return
        self._seen = log
        offsets = proven_offsets(log)
        self._proving += bool(offsets)
        for offset in offsets:
            self._proofs[offset] += 1
            self._first.setdefault(offset, log.entries[0].record.key)
        created = log.session.create_time if log.session is not None else None
        first = log.entries[0].time if log.entries else None
        self._older += created is not None and first is not None and first < created - _TOLERANCE

    def shifts(self) -> list[Shift]:
        """The offsets that cannot be chance, least first."""
        if self._verdict is None:
            enough = max(_LEAST, self._proving * _SHARE)
            certain = [
                offset
                for offset, count in self._proofs.items()
                if offset and (count >= enough or self._is_common(offset, count))
            ]
            self._verdict = [
                Shift(offset, count, self._first[offset])
                for offset, count in sorted(self._proofs.items())
                if offset and any(abs(offset - one) <= _DAYLIGHT_SAVING for one in certain)
            ]
        return self._verdict

    def _is_common(self, offset: int, count: int) -> bool:
        return offset < 0 and count >= max(_MANY, self._older * _SHARE_OF_OLDER)

    def explains_age(self, seconds: float) -> bool:
        """Are events that are so much older than their session no older by the right clock?"""
        return any(seconds <= -shift.offset + _TOLERANCE for shift in self.shifts())

    def explains_difference(self, seconds: float) -> bool:
        """Is that difference, event time less session time, one of the shifts?"""
        return any(abs(seconds - shift.offset) <= _TOLERANCE for shift in self.shifts())


def proven_offsets(log: SessionLog) -> set[int]:
    """The whole offsets, in seconds, that a session's first event proves against its creation, and its last event
    against its update; zero is one. They differ where another release went on with a shifted session."""
    row = log.session
    if row is None or (row.create_time is None and row.update_time is None):
        return set()
    first = next((entry.time for entry in log.entries if entry.time is not None), None)
    last = next((entry.time for entry in reversed(log.entries) if entry.time is not None), None)
    first_us, last_us = _microseconds(first), _microseconds(last)
    if first_us is None or last_us is None:
        return set()
    span = Span(0, first_us, 0, last_us, (0, 0), (0, 0))
    proof = prove(span, _microseconds(row.create_time), _microseconds(row.update_time))
    return {offset for offset in (proof.first, proof.last) if offset is not None}


def _microseconds(seconds: float | None) -> int | None:
    if seconds is None or not abs(seconds) < 1e12:  # a hostile time, which no calendar has
        return None
    return round(seconds * MICROSECONDS)
