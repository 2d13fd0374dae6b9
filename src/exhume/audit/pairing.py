"""Makes a `SessionLog` out of one session's events: causal order, calls and responses, pairs, rewinds, approvals.

How ADK matches ids: google.adk.flows.llm_flows.contents (1.0.0 to 2.13.0) pairs by id within a branch; ids that models
make may repeat, so a response belongs to the newest call before it (as google-adk 2.9.2 and newer do themselves).
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from exhume.audit.confirmations import read_approvals
from exhume.audit.findings import Confidence
from exhume.audit.log import (
    CONFIRMATION,
    NO_ACTIONS,
    WANTED_CONFIRMATIONS,
    WANTED_CREDENTIALS,
    Call,
    Entry,
    Response,
    SessionLog,
)
from exhume.events.model import EventRecord, SessionKey, StateRecord


def build_log(
    key: SessionKey,
    session: StateRecord | None,
    records: Sequence[EventRecord],
    *,
    storage_ordered: bool = True,
) -> SessionLog:
    """One session as the rules see it.

    Args:
        session: the session's row; None for orphaned events.
        records: all events of the session, in any order.
        storage_ordered: does `position` tell which of two events was stored first? Where it does not (a table kept in
            the order of a random key), events with equal times leave the order unknown.
    """
    log = SessionLog(key, session, [])
    ordered, ties = _by_time(records)
    traces = _take_out(log, ordered)
    if ties:
        if _settle_ties(log):
            _collect(log)
        log.order_known = storage_ordered
    for ordinal, call in enumerate(log.calls):
        call.ordinal = ordinal
    if log.responses:
        _pair(log)
    if traces.rewinds:
        log.rewound = _rewound(log.entries)
    if traces.confirmations or _asks(log):
        log.approvals = read_approvals(log)
    return log


def _asks(log: SessionLog) -> bool:
    if any(call.name == CONFIRMATION for call in log.calls):
        return True
    return any(response.name == CONFIRMATION for response in log.responses)


class _Traces:
    """What the pass over the events saw and later passes need."""

    __slots__ = ("confirmations", "rewinds")

    def __init__(self) -> None:
        self.confirmations = False
        self.rewinds = False


def _by_time(records: Sequence[EventRecord]) -> tuple[Sequence[EventRecord], bool]:
    """Records by corrected time, then storage order; and whether any two have the same time.

    An event whose time cannot be read stands behind its neighbour in storage order.
    """
    times: list[Any] = [record.time for record in records]
    if any(time is None or time != time for time in times):  # noqa: PLR0124 - NaN
        return _by_time_carried(records), True
    if all(map(operator.lt, times, times[1:])):  # nearly always
        return records, False
    arranged = sorted(records, key=lambda record: (record.time, record.position))
    return arranged, len(set(times)) < len(arranged)


def _by_time_carried(records: Iterable[EventRecord]) -> list[EventRecord]:
    keyed: list[tuple[float, int, int, EventRecord]] = []
    time = float("-inf")
    for record in sorted(records, key=lambda record: record.position):
        if record.time is not None and record.time == record.time:
            time = record.time
        keyed.append((time, record.position, len(keyed), record))
    keyed.sort(key=lambda item: item[:3])
    return [record for *_, record in keyed]


def _take_out(log: SessionLog, records: Sequence[EventRecord]) -> _Traces:
    """The one pass over all events: entries, calls, responses, and the lists that spare rules a pass of their own."""
    traces = _Traces()
    entries = log.entries
    for index, record in enumerate(records):
        data = record.data
        if data is None:
            entry = Entry(record, {}, index, record.time, "", record.invocation_id or "", NO_ACTIONS)
            entries.append(entry)
            log.unread.append(entry)
            if record.problems:
                log.troubled.append(entry)
            continue
        author = data.get("author")
        invocation = record.invocation_id or data.get("invocation_id")
        actions = data.get("actions")
        if actions.__class__ is not dict:
            actions = NO_ACTIONS
        entry = Entry(
            record,
            data,
            index,
            record.time,
            author if author.__class__ is str else "",
            invocation if invocation.__class__ is str else "",
            actions,
        )
        entries.append(entry)
        if record.problems:
            log.troubled.append(entry)
            if _lost_content(record, data):
                log.unread.append(entry)
        if actions and any(actions.values()):
            log.acting.append(entry)
            if actions.get(WANTED_CONFIRMATIONS):
                traces.confirmations = True
                log.asking.append(entry)
            elif actions.get(WANTED_CREDENTIALS):
                log.asking.append(entry)
            if actions.get("rewind_before_invocation_id"):
                traces.rewinds = True
        if data.get("long_running_tool_ids"):
            log.listing.append(entry)
        if not record.plain:
            log.uncommon.append(entry)
            if data.get("isolation_scope"):
                log.scoped.append(entry)
            if data.get("partial"):
                entry.partial = True
                log.partials.append(entry)
                continue
        content = data.get("content")
        if not content or content.__class__ is not dict:
            continue
        parts = content.get("parts")
        if not parts or parts.__class__ is not list:
            continue
        calls: list[Call] = []
        responses: list[Response] = []
        for part in parts:
            # nearly all parts are text alone
            if part.__class__ is not dict or (len(part) == 1 and part.get("text").__class__ is str):
                continue
            if record.plain:
                log.plain_parts.append(part)
            found = part.get("function_call")
            if found.__class__ is dict:
                calls.append(Call(call_id(found.get("id")), _name(found.get("name")), found.get("args"), entry, 0))
            found = part.get("function_response")
            if found.__class__ is dict:
                ident, name = call_id(found.get("id")), _name(found.get("name"))
                responses.append(Response(ident, name, found.get("response"), entry, author == "user"))
        if calls:
            entry.calls = calls
            _mark_long_running(calls, data.get("long_running_tool_ids"))
            log.calls += calls
        if responses:
            entry.responses = responses
            log.responses += responses
    return traces


def _lost_content(record: EventRecord, data: dict[str, Any]) -> bool:
    """Could what the event held, a call or a response, not be read?"""
    return not data.get("content") and any(
        problem.fatal and problem.column in ("event_data", "content") for problem in record.problems
    )


def _mark_long_running(calls: list[Call], listed: Any) -> None:
    if listed and type(listed) is list:
        idents = {call_id(one) for one in listed}
        for call in calls:
            call.long_running = call.id is not None and call.id in idents


def call_id(value: Any) -> str | None:
    """An id as text; None where there is none, or nothing that could be one."""
    if type(value) is str:
        return value or None
    return str(value) if type(value) is int and abs(value) < 1 << 128 else None


def _name(value: Any) -> str:
    return value if type(value) is str else ""


def _settle_ties(log: SessionLog) -> bool:
    """Puts calls before their responses among events of one time; says whether anything moved."""
    moved = False
    entries = log.entries
    known: set[str] = set()
    start = 0
    while start < len(entries):
        end = start + 1
        while end < len(entries) and entries[end].time == entries[start].time:
            end += 1
        if end - start > 1:
            group = entries[start:end]
            settled = _calls_first(group, known)
            if settled != group:
                entries[start:end] = settled
                moved = True
        for entry in entries[start:end]:
            known.update(call.id for call in entry.calls if call.id)
        start = end
    if moved:
        for index, entry in enumerate(entries):
            entry.index = index
    return moved


def _calls_first(group: list[Entry], known: set[str]) -> list[Entry]:
    """`group` in storage order, but an entry that answers a call of the group comes after the first such call."""
    called = {call.id for entry in group for call in entry.calls if call.id}
    if not called:
        return group
    seen: set[str] = set()
    waiting: dict[str, list[tuple[Entry, set[str]]]] = {}
    settled: list[Entry] = []
    for entry in group:
        own = {call.id for call in entry.calls}
        missing = {
            response.id
            for response in entry.responses
            if response.id in called and response.id not in seen and response.id not in known and response.id not in own
        }
        if missing:
            for ident in missing:
                waiting.setdefault(str(ident), []).append((entry, missing))
            continue
        ready = deque([entry])
        while ready:
            current = ready.popleft()
            settled.append(current)
            for call in current.calls:
                if call.id is None or call.id in seen:
                    continue
                seen.add(call.id)
                for later, lacks in waiting.pop(call.id, ()):
                    lacks.discard(call.id)
                    if not lacks:
                        ready.append(later)
    if len(settled) < len(group):  # events that answer each other's calls: no order is right, storage order will do
        placed = set(map(id, settled))
        settled.extend(entry for entry in group if id(entry) not in placed)
    return settled


def _collect(log: SessionLog) -> None:
    """Makes the lists of the log anew, in the settled order."""
    log.calls = [call for entry in log.entries for call in entry.calls]
    log.responses = [response for entry in log.entries for response in entry.responses]
    for entries in (log.acting, log.asking, log.scoped, log.listing, log.partials, log.unread, log.troubled):
        entries.sort(key=lambda entry: entry.index)


def _pair(log: SessionLog) -> None:
    """Gives each response the call that it answers."""
    by_id: dict[str, list[Call]] = {}
    for call in log.calls:
        if call.id is not None:
            by_id.setdefault(call.id, []).append(call)
    newest: dict[str, Call] = {}
    newest_of_branch: dict[tuple[str, str], Call] = {}
    newest_of_name: dict[tuple[str, str], Call] = {}
    anonymous = _OpenCalls()
    named = _OpenCalls()
    by_storage: dict[str, tuple[list[int], list[Call]]] = {}
    calls = iter(log.calls)
    upcoming = next(calls, None)
    for response in log.responses:
        index = response.entry.index
        while upcoming is not None and upcoming.entry.index <= index:
            if upcoming.id is None:
                anonymous.add(upcoming)
            else:
                newest[upcoming.id] = upcoming
                newest_of_branch[upcoming.entry.branch, upcoming.id] = upcoming
                if len(by_id[upcoming.id]) > 1:
                    newest_of_name[upcoming.name, upcoming.id] = upcoming
                named.add(upcoming)
            upcoming = next(calls, None)
        ident = response.id
        found: Call | None
        if ident is None:
            found = anonymous.take(response.name) or named.take(response.name) or anonymous.newest.get(response.name)
            response.confidence = Confidence.INFERRED
        elif ident in newest:
            found = newest_of_branch.get((response.entry.branch, ident)) or newest[ident]
            if found.name != response.name and len(by_id[ident]) > 1:
                found = _waiting(newest_of_name.get((response.name, ident))) or found
        elif ident in by_id:
            if storage_contradicted(log):
                found = None
                _before_its_call(response, by_id[ident][0])
            else:
                if ident not in by_storage:
                    stored = sorted(by_id[ident], key=_position)
                    by_storage[ident] = [_position(call) for call in stored], stored
                found = _by_storage(*by_storage[ident], response)
        else:
            found = anonymous.take(response.name)
            response.confidence = Confidence.INFERRED if found else Confidence.EXACT
        if found is not None:
            response.call = found
            found.responses.append(response)


class _OpenCalls:
    """Calls without a response, by name, oldest first; and the newest call of each name."""

    __slots__ = ("newest", "queues")

    def __init__(self) -> None:
        self.queues: dict[str, deque[Call]] = {}
        self.newest: dict[str, Call] = {}

    def add(self, call: Call) -> None:
        self.newest[call.name] = call
        queue = self.queues.get(call.name)
        if queue is None:
            self.queues[call.name] = deque((call,))
        else:
            queue.append(call)

    def take(self, name: str) -> Call | None:
        queue = self.queues.get(name)
        while queue and queue[0].responses:
            queue.popleft()
        return queue.popleft() if queue else None


def _waiting(call: Call | None) -> Call | None:
    """The call, if it may still get a response: ids that models make are used again while a long job is running."""
    return call if call is not None and (call.long_running or not call.responses) else None


def _position(call: Call) -> int:
    return call.entry.record.position


def _by_storage(positions: list[int], stored: list[Call], response: Response) -> Call | None:
    """By time every call stands after the response: the newest that was stored before it, if any."""
    place = bisect_left(positions, response.entry.record.position)
    if place:
        response.against_clock = True
        return stored[place - 1]
    _before_its_call(response, stored[0])
    return None


def _before_its_call(response: Response, call: Call) -> None:
    response.late_call = call
    call.early.append(response)


def storage_contradicted(log: SessionLog) -> bool:
    """Has storage a response before the one call of its id, although by time the call came first? Then the rows are
    not stored in the order in which they were appended (an import, a sorted copy), and their places prove nothing."""
    known: bool | None = log.shared.get("storage contradicted")
    if known is None:
        only: dict[str | None, Call | None] = {}
        for call in log.calls:
            only[call.id] = None if call.id in only else call
        known = any(_stored_too_early(response, only.get(response.id)) for response in log.responses)
        log.shared["storage contradicted"] = known
    return known


def _stored_too_early(response: Response, call: Call | None) -> bool:
    if call is None or call.id is None or _position(call) <= response.entry.record.position:
        return False
    called, answered = call.entry.time, response.entry.time
    return called is not None and answered is not None and called < answered


def _rewound(entries: list[Entry]) -> list[bool]:
    """Per entry: was it taken back? As google.adk.events._rewind_events (2.13.0) walks: from the end, and what lies
    inside a rewind that counts has no effect of its own. A rewind to an unknown invocation takes back nothing."""
    first: dict[str, int] = {}
    for entry in entries:
        if entry.invocation_id:
            first.setdefault(entry.invocation_id, entry.index)
    taken = [False] * len(entries)
    index = len(entries) - 1
    while index >= 0:
        target = entries[index].actions.get("rewind_before_invocation_id")
        start = first.get(target) if type(target) is str else None
        if start is not None and start < index:
            taken[start : index + 1] = [True] * (index + 1 - start)
            index = start
        index -= 1
    return taken
