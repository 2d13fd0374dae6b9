"""The zone of every event, decided from the evidence or as stated; hours that occur twice are resolved by order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from exhume.errors import UsageError
from exhume.events.model import TimeZoneReport
from exhume.events.times import MICROSECONDS, offset_text, parse_time
from exhume.events.zone_proof import (
    Evidence,
    Key,
    Proof,
    Regimes,
    SessionTimes,
    Span,
    cut_positions,
    gather,
    prove,
    spans,
)
from exhume.events.zones import UTC_ZONE, Zone, agreement, differ_at, fit, fixed_zone, load_zone
from exhume.stores.interface import Cell, Store, Table

_HOUR = 3600 * MICROSECONDS
_DAY = 24 * _HOUR
#: Share of the proofs that one zone must explain to be the zone of all; the rest is chance (a session that was made
#: a quarter of an hour before its first event).
_ENOUGH = 0.97
#: Bounds of memory for what is kept per session and per event.
_EXCEPTIONS = 100_000
_SECOND_OCCURRENCES = 500_000


@dataclass(slots=True)
class SessionZones:
    """Zones of one session that the rest of the store does not explain: `before` up to position `cut`, then `after`."""

    cut: int
    before: Zone
    after: Zone


@dataclass(slots=True)
class ZoneModel:
    """Gives each naive time its instant.

    Attributes:
        local: the zone of local times. `regimes`: which positions hold UTC instead; None where all is local.
        exceptions: sessions with zones of their own.
        second: positions of events in the second occurrence of an hour.
    """

    local: Zone
    report: TimeZoneReport
    regimes: Regimes | None = None
    exceptions: dict[Key, SessionZones] = field(default_factory=dict)
    second: set[int] = field(default_factory=set)

    def zone_at(self, key: Key, position: int) -> Zone:
        """The zone of the event at a position of a session."""
        if self.exceptions:
            own = self.exceptions.get(key)
            if own is not None:
                return own.before if position < own.cut else own.after
        if self.regimes is not None and self.regimes.is_utc(position):
            return UTC_ZONE
        return self.local

    def instant(self, key: Key, position: int, us: int) -> int:
        """Microseconds since 1970 UTC of a naive time."""
        zone = self.local if self.regimes is None and not self.exceptions else self.zone_at(key, position)
        if zone is UTC_ZONE:
            return us
        first, second = zone.offsets(us)
        return us - (second if position in self.second and first > second else first) * MICROSECONDS


def build(store: Store, sessions: Table | None, events: Table, timezone: str) -> ZoneModel:
    """Decides the zone of a store's naive times.

    Args:
        timezone: `auto`, or the zone as stated.

    Raises:
        UsageError: there is no such zone, or the store's own session times contradict it.
    """
    stated = None if timezone == "auto" else load_zone(timezone)
    evidence = gather(store, sessions, events)
    if store.info().dialect != "sqlite":
        # a server's session times are in the zone of the server, which neither it nor a dump tells
        evidence = Evidence(hours=evidence.hours, naive=evidence.naive)
    model = _decide(evidence) if stated is None else _state(stated, evidence)
    notes = list(model.report.notes)
    counts: Counter[str] = Counter()
    if _needs_second_pass(model, evidence):
        counts = _second_pass(model, store, sessions, events)
        if counts["missing"]:
            notes.append(
                f"{counts['missing']} events have a time that {model.local.name} skips in spring; "
                "they are read with the offset before the change."
            )
        if counts["ambiguous"]:
            notes.append(
                f"{counts['ambiguous']} events lie in an hour that occurs twice in autumn, and their order does not "
                "tell which; the first is taken."
            )
        if counts["exceptions"]:
            notes.append(f"{counts['exceptions']} sessions have an offset of their own, which their times prove.")
    disagreeing = model.report.sessions_disagreeing - counts["explained"]
    model.report = TimeZoneReport(
        zone=model.report.zone,
        proof=model.report.proof,
        sessions_agreeing=model.report.sessions_agreeing + counts["explained"],
        sessions_disagreeing=max(disagreeing, 0),
        ambiguous=counts["ambiguous"],
        notes=tuple(notes),
        offsets={offset_text(offset): count for offset, count in sorted(evidence.sessions.items())},
    )
    return model


# ---------------------------------------------------------------------------------------------- deciding
def _decide(evidence: Evidence) -> ZoneModel:
    points = evidence.points
    if not points:
        return _decide_from_loose(evidence)
    total = sum(points.values())
    candidates, agreeing = fit(points)
    unexplained = not all(offset in candidates[0].offsets(us) for offset, us in evidence.exact_points)
    if agreeing >= total * _ENOUGH and not unexplained:
        return _one_zone(candidates, evidence)
    local_points = {point: count for point, count in points.items() if point[0] != 0}
    local, explained = fit(local_points)
    if explained < total * (1 - _ENOUGH):
        return _one_zone(candidates, evidence)
    zeros = total - sum(local_points.values())
    notes = [
        f"Rows changed their meaning: {zeros} proofs say UTC, {explained} say {local[0].name}. "
        "Each event is read as its place in the file and its session prove.",
        *_assumed(local, evidence),
    ]
    report = TimeZoneReport("mixed", "proved", *evidence.agreeing(local[0], UTC_ZONE), notes=tuple(notes))
    return ZoneModel(local[0], report, evidence.runs.decide() if zeros else None)


def _one_zone(candidates: list[Zone], evidence: Evidence) -> ZoneModel:
    zone = candidates[0]
    if set(evidence.sessions) == {0} and zone is not UTC_ZONE:
        zone, candidates = UTC_ZONE, [UTC_ZONE, *candidates]
    # UTC is no exception: a winter's worth of proofs fits London's clock, too, which is another one in summer
    notes = _assumed(candidates, evidence)
    return ZoneModel(zone, TimeZoneReport(zone.name, "proved", *evidence.agreeing(zone), notes=tuple(notes)))


def _assumed(candidates: list[Zone], evidence: Evidence) -> list[str]:
    """What to say where several zones fit all proofs and would read some events differently."""
    hours = differ_at(candidates, evidence.hours) if len(candidates) > 1 else 0
    if not hours:
        return []
    others = ", ".join(zone.name for zone in candidates[1:4])
    return [
        f"The session times fit {candidates[0].name} and also {others}, which differ in {hours} of the hours that "
        f"hold events; {candidates[0].name} is assumed. If that is wrong, pass --source-timezone with the right one."
    ]


def _decide_from_loose(evidence: Evidence) -> ZoneModel:
    """First events that came minutes after their sessions: enough if nearly all agree on one zone."""
    total = sum(evidence.loose.values())
    if total:
        candidates, agreeing = fit(evidence.loose)
        before_creation = all(offset < 0 for offset, _ in evidence.loose)
        if agreeing >= total * 0.8 and (before_creation or candidates[0] is UTC_ZONE or total >= 3):
            return _one_zone(candidates, evidence)
    notes = (
        ()
        if not evidence.naive
        else (
            "Nothing in the store proves the zone of its event times; UTC is taken. "
            "If the writer's clock was elsewhere, pass --source-timezone.",
        )
    )
    return ZoneModel(UTC_ZONE, TimeZoneReport("UTC", "not proved", notes=notes))


def _state(zone: Zone, evidence: Evidence) -> ZoneModel:
    total = sum(evidence.points.values())
    agreeing = agreement(zone, evidence.points)
    against = total - agreeing
    exact_against = sum(evidence.exact_points.values()) - agreement(zone, evidence.exact_points)
    if against > agreeing or exact_against:
        found = _decide(evidence)
        wanted = "auto" if found.report.zone == "mixed" else found.report.zone
        raise UsageError(
            f"The session times contradict the time zone {zone.name}: {against} of {total} proofs say otherwise.",
            todo=f"Pass --source-timezone {wanted}.",
        )
    return ZoneModel(zone, TimeZoneReport(zone.name, "stated", *evidence.agreeing(zone)))


# ---------------------------------------------------------------------------------------------- second pass
def _needs_second_pass(model: ZoneModel, evidence: Evidence) -> bool:
    if model.report.zone == "mixed":
        return True
    if model.local is UTC_ZONE or model.local.fixed:
        return False
    for hour in evidence.hours:
        first, second = model.local.offsets(hour * _HOUR)
        if first != second:
            return True
        first, second = model.local.offsets(hour * _HOUR + _HOUR // 2)
        if first != second:
            return True
    return False


def _second_pass(model: ZoneModel, store: Store, sessions: Table | None, events: Table) -> Counter[str]:
    """Finds sessions with zones of their own, then resolves hours that occur twice, session by session."""
    counts: Counter[str] = Counter()
    proofs = store.info().dialect == "sqlite"
    if model.report.zone == "mixed" and proofs:
        times = SessionTimes(store, sessions)
        for key, span in spans(store, events):
            proof = prove(span, *times.find(key))
            _except(model, key, span, proof, counts)
    if model.local.fixed:
        return counts
    times = SessionTimes(store, sessions)
    columns = ("app_name", "user_id", "session_id", "timestamp")
    current: Key | None = None
    walk = _Autumn(model, (None, None))
    for position, (app, user, session, cell) in store.rows(events.name, columns, order_by=columns[:3]):
        if current is None or (session, user, app) != (current[2], current[1], current[0]):
            walk.end(counts)
            current = (app, user, session)
            walk = _Autumn(model, times.find(current) if proofs else (None, None))
        walk.see(current, position, cell, counts)
    walk.end(counts)
    return counts


def _except(model: ZoneModel, key: Key, span: Span, proof: Proof, counts: Counter[str]) -> None:
    """Gives a session its own zones where its proofs do not fit those of its place in the file."""

    def fits(offset: int | None, us: int, position: int) -> bool:
        return offset is None or offset in model.zone_at(key, position).offsets(us)

    regimes = model.regimes
    crossed = regimes is not None and regimes.change_between(span.first_position, span.last_position)
    if fits(proof.first, span.first_us, span.first_position) and fits(proof.last, span.last_us, span.last_position):
        if crossed and len(model.exceptions) < _EXCEPTIONS and (proof.first, proof.last) != (None, None):
            _set_exception(model, key, span, proof)  # other writers changed meanwhile; its own proofs are nearer
        return
    if not (proof.exact or (proof.first is not None and proof.first == proof.last) or proof.last is None):
        return
    if len(model.exceptions) >= _EXCEPTIONS:
        return
    _set_exception(model, key, span, proof)
    counts["exceptions"] += 1


def _set_exception(model: ZoneModel, key: Key, span: Span, proof: Proof) -> None:
    def zone(offset: int, us: int) -> Zone:
        if offset == 0:
            return UTC_ZONE
        return model.local if offset in model.local.offsets(us) else fixed_zone(offset)

    first = proof.first if proof.first is not None else proof.last
    last = proof.last if proof.last is not None else proof.first
    assert first is not None
    assert last is not None
    cut = span.last_position + 1
    before, after = zone(first, span.first_us), zone(last, span.last_us)
    if before is not after:
        cut = cut_positions(span, Proof(first, last, proof.exact))[1]
    model.exceptions[key] = SessionZones(cut, before, after)


class _Autumn:
    """Resolves the hours that occur twice within one session, whose storage order is the order of time.

    Local time that runs backwards within one night marks the change: what stands before it is of the first occurrence,
    what stands after it of the second. The session's own times prove its first and its last event.
    """

    def __init__(self, model: ZoneModel, times: tuple[int | None, int | None]) -> None:
        self._model = model
        self._create, self._update = times
        self._night: list[tuple[int, int, int, int]] = []  # position, naive time, both offsets
        self._position: int | None = None
        self._first_position: int | None = None

    def see(self, key: Key, position: int, cell: Cell, counts: Counter[str]) -> None:
        """The next event of the session in storage order."""
        moment = parse_time(cell)
        if moment is None or moment.exact:
            return
        if self._first_position is None:
            self._first_position = position
        self._position = position
        zone = self._model.zone_at(key, position)
        first, second = zone.offsets(moment.us)
        if first < second:
            counts["missing"] += 1
        if first > second:
            if self._night and abs(self._night[-1][1] - moment.us) > _DAY // 2:
                self._resolve(counts)
            self._night.append((position, moment.us, first, second))

    def end(self, counts: Counter[str]) -> None:
        """After the last event of the session."""
        self._resolve(counts)

    def _resolve(self, counts: Counter[str]) -> None:
        night, self._night = self._night, []
        if not night:
            return
        change: int | None = None  # index of the first event that is known to be of the second occurrence
        known_first = -1  # index of the last event that is known to be of the first
        for index, (position, us, first, second) in enumerate(night):
            if index and us < night[index - 1][1] and change is None:
                change, known_first = index, index - 1
            proven = self._proven(position, us, first, second)
            if proven == second and change is None:
                change = index
            elif proven == first:
                known_first = max(known_first, index)
        second_from = len(night) if change is None else change
        for index, (position, _, _, _) in enumerate(night):
            if index >= second_from:
                if len(self._model.second) < _SECOND_OCCURRENCES:
                    self._model.second.add(position)
            elif index > known_first:
                counts["ambiguous"] += 1

    def _proven(self, position: int, us: int, first: int, second: int) -> int | None:
        """The offset that the session's own times prove for its first or last event."""
        for at, reference in ((self._first_position, self._create), (self._position, self._update)):
            if at == position and reference is not None:
                for offset in (first, second):
                    if -2 * MICROSECONDS <= us - offset * MICROSECONDS - reference <= 5 * MICROSECONDS:
                        return offset
        return None
