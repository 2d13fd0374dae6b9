"""3xx: what the clocks and columns of a session say against each other (EXH304, EXH306, EXH309, EXH310)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from exhume.audit.findings import Evidence, Finding, Severity
from exhume.audit.log import Entry, Response, SessionLog
from exhume.audit.rule import Context, Rule, register
from exhume.audit.rules.row_findings import Held, of_database, of_session, plural, spelt
from exhume.events.model import Capability, EventKey
from exhume.schema.detection import Layout

#: Zone offsets are whole quarter hours between -12:00 and +14:00; an hour more does no harm.
_QUARTER_HOUR = 900.0
LARGEST_OFFSET = 15 * 3600.0
#: Columns hold microseconds, or whole seconds on old MySQL; ADK stores both times from one clock reading.
_TOLERANCE = 1.0
#: Seconds that are no time of any clock.
_FAR = 1e15


def zone_offset(seconds: float) -> int | None:
    """The whole number of quarter hours, in seconds, that a difference of clocks is; None when it is none."""
    if not abs(seconds) <= LARGEST_OFFSET + _TOLERANCE:  # so that NaN is none either
        return None
    offset = round(seconds / _QUARTER_HOUR) * _QUARTER_HOUR
    return int(offset) if abs(seconds - offset) <= _TOLERANCE else None


def spelt_offset(seconds: int) -> str:
    """An offset as `-05:00`."""
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02}:{minutes:02}"


@register
class ClockGoesBack(Rule):
    """EXH304 clock-goes-back

    ## What it detects
    A response that is older than its call by the clock, while the order of storage has the call first.

    ## Why it matters
    ADK reads a session in order of time. It then sees a response before its call, drops it or refuses to go on, and a
    tool that ran may run again.

    ## Example
    The call of `issue_refund` is stored at 20:52:18, its response after it, but with 20:50:18.

    ## How ADK behaves
    Events carry the time at which they were made, on the host that made them. Up to 2.6.3 an unmatched response as
    the last event stops the session; later releases leave the pair out of the request to the model.

    ## Harmless causes
    Workers on hosts whose clocks differ, a clock that was set back, events with made-up times.

    ## What to do
    Synchronise the clocks; a session that cannot be continued needs its event times put in order.
    """

    id = "EXH304"
    name = "clock-goes-back"
    severity = Severity.WARNING
    todo = "Synchronise the clocks of the hosts that write this database."

    def session(self, log: SessionLog) -> Iterator[Finding]:
        for response in log.responses:
            if response.against_clock and log.order_known:
                yield self._finding(log, response)

    def _finding(self, log: SessionLog, response: Response) -> Finding:
        call = response.call
        entries: list[Entry] = [response.entry] if call is None else [call.entry, response.entry]
        early = 0.0
        if call is not None and call.entry.time is not None and response.entry.time is not None:
            early = call.entry.time - response.entry.time
        return of_session(
            self,
            log,
            f"The response of {spelt([response.name])} is {early:.3f} s older than its call, but was stored after it.",
            entries=entries,
            call_ids=[response.id] if response.id else (),
            confidence=response.confidence,
            subject=(response.id or response.name, *(entry.event_id for entry in entries)),
        )


@register
class ColumnsDisagree(Rule):
    """EXH306 columns-disagree

    ## What it detects
    The id, the invocation id or the time in the columns of an event differs from what its `event_data` says. A whole
    number of quarter hours between the times is a zone and no contradiction (EXH310).

    ## Why it matters
    Two readers of the same row see two different events: the database sorts and joins by the columns, exports and
    migrations go by `event_data`. Somebody or something changed one of the two.

    ## Example
    The column says 05:07:21, `event_data.timestamp` says 05:06:40.

    ## How ADK behaves
    It writes both from the same object (google.adk.sessions.schemas.v1). Reading, it takes id and invocation id from
    the columns and, from 2.8.0 on, the time from `event_data`.

    ## Harmless causes
    An import that made new ids for the rows only; a repair of timestamps by hand.

    ## What to do
    Find out which side was changed. Until then trust neither for the order of approvals in this session.
    """

    id = "EXH306"
    name = "columns-disagree"
    severity = Severity.ERROR
    needs = frozenset({Capability.EVENT_COLUMNS})
    todo = "Find out which of the two was changed, and by whom."

    def session(self, log: SessionLog) -> Iterator[Finding]:
        for entry in log.entries:
            record = entry.record
            data = entry.data
            if not data or record.source is None:
                continue
            stamp = data.get("timestamp")
            column = record.column_time
            ident = record.key.event_id
            if (
                data.get("id", ident) == ident
                and data.get("invocation_id", record.invocation_id) == record.invocation_id
                and (stamp == column or column is None or stamp is None)
            ):
                continue
            finding = self._compare(log, entry)
            if finding is not None:
                yield finding

    def _compare(self, log: SessionLog, entry: Entry) -> Finding | None:
        record = entry.record
        differences: list[str] = []
        ident = entry.data.get("id")
        if ident and ident != record.key.event_id:
            differences.append("the event id")
        invocation = entry.data.get("invocation_id")
        if invocation is not None and (invocation or "") != (record.invocation_id or ""):
            differences.append("the invocation id")
        stamp = entry.data.get("timestamp")
        if isinstance(stamp, (int, float)) and not isinstance(stamp, bool) and record.column_time is not None:
            if not -_FAR < stamp < _FAR:  # an integer of JSON may be larger than any float
                differences.append("the time (event_data.timestamp is no time)")
            elif zone_offset(seconds := record.column_time - stamp) is None:
                differences.append(f"the time (by {seconds:+.3f} s)")
        if not differences:
            return None
        message = f"Columns and event_data of an event differ in {' and '.join(differences)}."
        return of_session(self, log, message, entries=[entry])


@register
class StaleSessionRow(Rule):
    """EXH309 stale-session-row

    ## What it detects
    `sessions.update_time` has a fraction of a second and is more than a second older than the last event.

    ## Why it matters
    ADK writes the time of the last event there. If it is older, the last events got in by another way: appended by a
    script, restored from elsewhere, or the session row was put back.

    ## Example
    `update_time` 11:02:10.250000, last event 11:12:10.250000.

    ## How ADK behaves
    1.21.0 and newer write the last event's time in microseconds (google.adk.sessions.database_session_service). Older
    releases wrote whole seconds, 1.5.0 to 1.19.0 only when state changed: a whole second says nothing.

    ## Harmless causes
    Events with made-up times in the future; a database continued by an old release.

    ## What to do
    Compare the last events with the application's own records before acting on them.
    """

    id = "EXH309"
    name = "stale-session-row"
    severity = Severity.WARNING
    needs = frozenset({Capability.SESSION_TIMES})
    todo = "Compare the events after update_time with the application's own records."

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        # adk-js sets the time after it has written the row (core/src/sessions/database_session_service.ts), so an old
        # one says nothing there.
        self._loose = context.detection.layout is Layout.JS
        # On a server update_time may be in the zone of a process (1.21.0 to 2.0.0), and so may unproved events;
        # then a whole offset proves nothing. On SQLite it is UTC in every release.
        self._zones_open = (
            context.detection.info.dialect not in ("sqlite", "") or context.time_zone.proof == "not proved"
        )
        self._held = Held()  # by the seconds between row and last event: a clock in another zone may explain them

    def session(self, log: SessionLog) -> Iterable[Finding]:
        row = log.session
        self.context.clock.see(log)
        if row is None or row.update_time is None or not log.entries or self._loose:
            return ()
        updated = row.update_time
        last = log.entries[-1]
        if last.time is not None and last.time - updated <= _TOLERANCE:  # in order of time
            return ()
        if float(updated).is_integer():
            return ()
        newer = [entry for entry in log.entries if entry.time is not None and entry.time - updated > _TOLERANCE]
        if not newer:
            return ()
        behind = (newer[-1].time or 0.0) - updated
        offset = zone_offset(behind)
        if self._zones_open and offset is not None:
            return ()
        message = (
            f"The session row was last updated {behind:.3f} s before the last event ({plural(len(newer), 'event')})."
        )
        finding = of_session(self, log, message, entries=newer)
        return self._held.hold(behind, finding, log, newer) if offset else (finding,)

    def finish(self) -> Iterable[Finding]:
        return self._held.unless(self.context.clock.explains_difference)


@register
class ShiftedClock(Rule):
    """EXH310 shifted-clock

    ## What it detects
    The time column of events differs from the true time by a whole number of quarter hours: it holds local time. Or
    the events of a good part of all sessions differ so from the times of the sessions themselves: local time was once
    taken for UTC. One finding for each offset in the database.

    ## Why it matters
    Whoever sorts, filters or joins by that column is hours off. Of v0 files the migration of ADK itself shifts the
    whole history when it runs in another zone.

    ## Example
    Written in New York: every event seems to be five hours older than its session.

    ## How ADK behaves
    Up to 2.6.3 the column is the writer's local time, from 2.7.0 on UTC. v1 also keeps the exact time in
    `event_data`; v0 does not, and 2.13.0 reads it as UTC while its migrator takes it as local.

    ## Harmless causes
    This is how those releases write; it is told so that nobody reads the column as UTC.

    ## What to do
    Migrate v0 with exhume, which reads the zone off the data, or state it with `--source-timezone`. A file that an
    earlier migration has shifted is best made anew from the original.
    """

    id = "EXH310"
    name = "shifted-clock"
    severity = Severity.WARNING
    todo = "Do not read the time column as UTC; a migration by exhume corrects it."

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._sessions: dict[int, int] = {}
        self._first: dict[int, EventKey] = {}
        self._exact = context.detection.layout not in (Layout.V0, Layout.MIXED)

    def session(self, log: SessionLog) -> Iterable[Finding]:
        self.context.clock.see(log)
        seen: set[int] | None = None
        for entry in log.entries:
            record = entry.record
            column = record.column_time
            true = record.time
            if column == true or column is None or true is None:
                continue
            seconds = column - true
            if -_TOLERANCE < seconds < _TOLERANCE:
                continue
            offset = zone_offset(seconds)
            if not offset or (seen is not None and offset in seen):
                continue
            seen = {offset} if seen is None else seen | {offset}
            self._sessions[offset] = self._sessions.get(offset, 0) + 1
            self._first.setdefault(offset, record.key)
        return ()

    def finish(self) -> Iterable[Finding]:
        severity = Severity.INFO if self._exact else Severity.WARNING
        for offset, sessions in sorted(self._sessions.items()):
            where = "event_data" if self._exact else "the sessions' own times (UTC)"
            yield of_database(
                self,
                f"The time column of events differs by {spelt_offset(offset)} from {where} in "
                f"{plural(sessions, 'session')}: it holds local time.",
                severity=severity,
                subject=(spelt_offset(offset),),
                evidence=(Evidence("events", self._first[offset], "event", note="the first such event"),),
            )
        for shift in self.context.clock.shifts():
            if shift.offset in self._sessions:
                continue
            yield of_database(
                self,
                f"Event times differ by {spelt_offset(shift.offset)} from the times of their sessions in "
                f"{plural(shift.sessions, 'session')}: local time was taken for UTC, as a migration elsewhere does.",
                severity=severity,
                subject=(spelt_offset(shift.offset),),
                evidence=(Evidence("events", shift.first, "event", note="the first such event"),),
            )
