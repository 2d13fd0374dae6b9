"""What the sessions of a store prove about the zone of its naive event times: one streaming pass over light columns.

In SQLite files `sessions.create_time` is always UTC, and so is `update_time`; event times of v0 are the writer's local
time up to ADK 2.6.3 and UTC from 2.7.0. So the first event minus `create_time`, and the last minus `update_time`, are
the offset plus a short delay. `update_time` is trusted only where it is close to a quarter of an hour: ADK 1.5 to
1.19 move it only when state changes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from exhume.events.times import MICROSECONDS, parse_time
from exhume.events.zones import Zone
from exhume.stores.interface import Cell, Store, Table

_QUARTER = 900 * MICROSECONDS
_HOUR = 3600 * MICROSECONDS
#: How late the first event may come after `create_time`, the last after `update_time` (whole seconds in old releases).
_TIGHT = 5 * MICROSECONDS
_SLACK = 2 * MICROSECONDS
#: A person may think before the first message: weaker evidence, used only where there is no other.
_LOOSE = 300 * MICROSECONDS
#: A step back by less than this is a disorder of writers, not a change of zone.
_BACKWARDS = 60 * MICROSECONDS
#: Offsets that zones of this world have, in quarters of an hour, besides whole hours from -12 to +14.
_ODD_QUARTERS = frozenset({14, 18, 22, 23, 26, 35, 38, 42, 51, 55, -14, -10, -38})
#: Bounds of memory: buckets of storage order, distinct points, distinct hours.
_BUCKETS = 2048
_POINTS = 20_000
_HOURS = 500_000

Key = tuple[Cell, Cell, Cell]


class Span(NamedTuple):
    """One session's first and last event, and the largest jumps of the naive time in storage order.

    First and last are by storage order where the clock may have changed its zone, else by time: rows that were stored
    anew in another order say the same as before. `up` and `down` are (size in microseconds, position of the event
    after the jump).
    """

    first_position: int
    first_us: int
    last_position: int
    last_us: int
    up: tuple[int, int]
    down: tuple[int, int]


class Proof(NamedTuple):
    """Offsets in seconds that a session proves for its first and its last event; None where it proves nothing.

    `exact`: the last event and `update_time` agree to the millisecond, which cannot be chance.
    """

    first: int | None
    last: int | None
    exact: bool
    loose: int | None = None


def _quarters(us: int, late: int) -> int | None:
    """The offset in seconds in a difference, if what is left is no more than `late`; else None."""
    quarters, rest = divmod(us + _SLACK, _QUARTER)
    if rest - _SLACK > late:
        return None
    plausible = -48 <= quarters <= 56 and (quarters % 4 == 0 or quarters in _ODD_QUARTERS)
    return quarters * 900 if plausible else None


def prove(span: Span, create_us: int | None, update_us: int | None) -> Proof:
    """What one session proves."""
    first = last = loose = None
    exact = False
    if create_us is not None:
        first = _quarters(span.first_us - create_us, _TIGHT)
        loose = _quarters(span.first_us - create_us, _LOOSE)
    if update_us is not None:
        last = _quarters(span.last_us - update_us, _SLACK)
        exact = last is not None and abs(span.last_us - update_us - last * MICROSECONDS) < 1000
        moved = create_us is None or abs(update_us - create_us) > _SLACK
        if not exact and not moved and span.last_us - span.first_us > _SLACK:
            last = None  # never moved since the session was made: it says nothing about the last event
    return Proof(first, last, exact and update_us is not None and update_us % MICROSECONDS != 0, loose)


class PositionRuns:
    """Where in storage order events are in UTC and where in local time, kept as a bounded number of buckets."""

    def __init__(self) -> None:
        self._width = 1
        self._buckets: dict[int, list[list[int]]] = {}

    def add(self, position: int, zero: bool) -> None:
        """Notes that the event at a position has the offset zero, or another one."""
        bucket = self._buckets.get(position // self._width)
        if bucket is None:
            if len(self._buckets) >= _BUCKETS:
                self._widen()
            bucket = self._buckets.setdefault(position // self._width, [[], []])
        self._merge(bucket[not zero], (position, position, 1))

    @staticmethod
    def _merge(into: list[int], run: tuple[int, ...] | list[int]) -> None:
        if not run:
            return
        if into:
            into[:] = [min(into[0], run[0]), max(into[1], run[1]), into[2] + run[2]]
        else:
            into[:] = run

    def _widen(self) -> None:
        while len(self._buckets) > _BUCKETS // 2:
            self._width *= 2
            old, self._buckets = self._buckets, {}
            for bucket in old.values():
                place = (bucket[0] or bucket[1])[0] // self._width
                kept = self._buckets.setdefault(place, [[], []])
                self._merge(kept[0], bucket[0])
                self._merge(kept[1], bucket[1])

    def decide(self) -> Regimes:
        """The runs: within a bucket by the majority where both kinds are mixed, else by their order."""
        pieces: list[tuple[int, bool]] = []
        for _, (zero, other) in sorted(self._buckets.items()):
            if zero and other:
                if zero[1] < other[0] or other[1] < zero[0]:
                    pieces += sorted([(zero[0], True), (other[0], False)])
                else:
                    pieces.append((min(zero[0], other[0]), zero[2] >= other[2]))
            else:
                pieces.append(((zero or other)[0], bool(zero)))
        starts: list[int] = []
        kinds: list[bool] = []
        for start, kind in pieces:
            if not kinds or kinds[-1] != kind:
                starts.append(start)
                kinds.append(kind)
        return Regimes(starts, kinds)


class Regimes(NamedTuple):
    """Runs in storage order: from `starts[i]` on, times are UTC where `utc[i]`."""

    starts: list[int]
    utc: list[bool]

    def is_utc(self, position: int) -> bool:
        index = bisect_right(self.starts, position) - 1
        return self.utc[max(index, 0)] if self.utc else True

    def change_between(self, first: int, last: int) -> bool:
        """Does a run begin after the first position, and not after the last?"""
        return bisect_right(self.starts, first) != bisect_right(self.starts, last)


@dataclass(slots=True)
class Evidence:
    """All that a store proves, in bounded memory.

    Attributes:
        points: (offset, naive time rounded down to the hour) -> proofs; `loose` the same of weak ones.
        sessions: offset -> sessions that prove it.
        together: the one or two points of a session -> sessions; what agrees and disagrees is counted by it.
        hours: naive hours since 1970 in which there are events.
        runs: storage positions, in buckets: bucket -> [zero offset seen, other seen] as (least, greatest, count).
        cuts: positions at which a session that proves two offsets jumps from one to the other.
    """

    points: Counter[tuple[int, int]] = field(default_factory=Counter)
    exact_points: Counter[tuple[int, int]] = field(default_factory=Counter)
    loose: Counter[tuple[int, int]] = field(default_factory=Counter)
    sessions: Counter[int] = field(default_factory=Counter)
    together: Counter[tuple[tuple[int, int], ...]] = field(default_factory=Counter)
    hours: set[int] = field(default_factory=set)
    runs: PositionRuns = field(default_factory=PositionRuns)
    naive: int = 0

    def add(self, span: Span, proof: Proof) -> None:
        """Takes in one session."""
        offsets = set()
        proven: tuple[tuple[int, int], ...] = ()
        for offset, us, position in (
            (proof.first, span.first_us, span.first_position),
            (proof.last, span.last_us, span.last_position),
        ):
            if offset is None:
                continue
            offsets.add(offset)
            proven = (*proven, self._count(self.points, offset, us))
            self.runs.add(position, offset == 0)
        if proof.exact and proof.last is not None:
            self._count(self.exact_points, proof.last, span.last_us)
        if proof.first is not None and proof.last is not None and (proof.first == 0) != (proof.last == 0):
            before, after = cut_positions(span, proof)
            self.runs.add(before, proof.first == 0)
            self.runs.add(after, proof.last == 0)
        for offset in offsets:
            self.sessions[offset] += 1
        if not offsets and proof.loose is not None:
            self._count(self.loose, proof.loose, span.first_us)
        if proven and (proven in self.together or len(self.together) < _POINTS):
            self.together[proven] += 1

    def agreeing(self, *zones: Zone) -> tuple[int, int]:
        """Sessions all of whose proofs one or the other of these zones explains, and the sessions that are left."""
        total = sum(self.together.values())
        agreeing = sum(
            count
            for points, count in self.together.items()
            if all(any(offset in zone.offsets(us) for zone in zones) for offset, us in points)
        )
        return agreeing, total - agreeing

    @staticmethod
    def _count(points: Counter[tuple[int, int]], offset: int, us: int) -> tuple[int, int]:
        point = (offset, us - us % _HOUR)
        if point in points or len(points) < _POINTS:
            points[point] += 1
        return point


def cut_positions(span: Span, proof: Proof) -> tuple[int, int]:
    """Where a session with two offsets changes: the last position before, the first after its largest jump.

    From an offset to a smaller one the clock runs backwards, unless the session rested for longer than that.
    """
    assert proof.first is not None
    assert proof.last is not None
    backwards = proof.last < proof.first and span.down[0] < -_BACKWARDS
    after = (span.down if backwards else span.up)[1]
    return after - 1, after


def order_key(cell: Cell) -> tuple[int, float | bytes]:
    """Sort key of a cell in the order of a store: NULL, numbers, text by its bytes, BLOBs."""
    if isinstance(cell, str):
        return 2, cell.encode("utf-8", "surrogateescape")
    if isinstance(cell, bytes):
        return 3, cell
    return (0, 0.0) if cell is None else (1, cell)


class SessionTimes:
    """The times of sessions, looked up in key order, reading the table once and keeping one row."""

    def __init__(self, store: Store, table: Table | None) -> None:
        names = table.column_names if table is not None else ()
        wanted = ("app_name", "user_id", "id", "create_time", "update_time")
        self._rows = (
            store.rows(table.name, wanted, order_by=wanted[:3])
            if table is not None and all(name in names for name in wanted)
            else iter(())
        )
        self._key: Key | None = None
        self._times: tuple[Cell, Cell] = (None, None)

    def find(self, key: Key) -> tuple[int | None, int | None]:
        """Creation and update of a session as naive UTC microseconds; None where there is none. Keys must ascend."""
        if self._key != key:
            wanted = tuple(map(order_key, key))
            while self._key is None or tuple(map(order_key, self._key)) < wanted:
                row = next(self._rows, None)
                if row is None:
                    return None, None
                app, user, ident, create, update = row.row
                self._key, self._times = (app, user, ident), (create, update)
            if self._key != key:
                return None, None
        create_time, update_time = (parse_time(cell) for cell in self._times)
        return (
            None if create_time is None else create_time.us,
            None if update_time is None else update_time.us,
        )


def spans(store: Store, events: Table, hours: set[int] | None = None) -> Iterator[tuple[Key, Span]]:
    """Every session's span, in key order; sessions without one naive time are left out."""
    columns = ("app_name", "user_id", "session_id", "timestamp")
    current: Key | None = None
    walk: _Walk | None = None
    for position, (app, user, session, cell) in store.rows(events.name, columns, order_by=columns[:3]):
        moment = parse_time(cell)
        if moment is None or moment.exact:
            continue
        us = moment.us
        if hours is not None and len(hours) < _HOURS:
            hours.add(us // _HOUR)
        if walk is None or current is None or session != current[2] or user != current[1] or app != current[0]:
            if walk is not None and current is not None:
                yield current, walk.span()
            current = (app, user, session)
            walk = _Walk(position, us)
        else:
            walk.see(position, us)
    if walk is not None and current is not None:
        yield current, walk.span()


class _Walk:
    """The times of one session, followed in storage order."""

    __slots__ = ("_down", "_first", "_greatest", "_last", "_least", "_steps_back", "_up")

    def __init__(self, position: int, us: int) -> None:
        self._first = self._last = self._least = self._greatest = (us, position)
        self._up = self._down = (0, position)
        self._steps_back = 0

    def see(self, position: int, us: int) -> None:
        """The next event."""
        step = us - self._last[0]
        self._last = (us, position)
        if step >= 0:
            if step > self._up[0]:
                self._up = (step, position)
            if us > self._greatest[0]:
                self._greatest = self._last
            return
        if step < self._down[0]:
            self._down = (step, position)
        if step < -_BACKWARDS:
            self._steps_back += 1
        if us < self._least[0]:
            self._least = self._last

    def span(self) -> Span:
        """What the session's events come to. One long step back may be a change of zone; anything else is disorder."""
        zone_may_change = self._steps_back == 1 and self._down[0] <= _SLACK + _TIGHT - _QUARTER
        first, last = (self._first, self._last) if zone_may_change else (self._least, self._greatest)
        return Span(first[1], first[0], last[1], last[0], self._up, self._down)


def gather(store: Store, sessions: Table | None, events: Table) -> Evidence:
    """The evidence of a whole store."""
    found = Evidence()
    times = SessionTimes(store, sessions)
    for key, span in spans(store, events, found.hours):
        found.naive += 1
        found.add(span, prove(span, *times.find(key)))
    return found
