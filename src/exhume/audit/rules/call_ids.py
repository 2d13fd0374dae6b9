"""2xx: calls and responses that lack each other (EXH201 to EXH203)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from exhume.audit.confirmations import waits_for_person
from exhume.audit.findings import Confidence, Finding, Severity
from exhume.audit.log import CONFIRMATION, REQUEST_PREFIX, Call, Entry, SessionLog
from exhume.audit.pairing import call_id, storage_contradicted
from exhume.audit.rule import Rule, register
from exhume.audit.rules.call_findings import Part, identity, named, of_parts, shown
from exhume.audit.rules.row_findings import unread_note
from exhume.events.model import Capability

_FIRST_COMPACTION = "first compaction"


@register
class OrphanedResponse(Rule):
    """EXH201 orphaned-response

    ## What it detects
    A function response whose id belongs to no call of the session. The message says whether it is the last event, and
    whether a call that stands only in a partial event, or a compaction, explains it.

    ## Why it matters
    The log does not show what this is the result of. Several ADK releases cannot go on with a session that ends so.

    ## Example
    `adk run` was restarted between the call and its result; the result was stored, the call was not.

    ## How ADK behaves
    Up to 2.6.3 an unmatched response as the last event raises `no function call event found`; in the middle of the
    log it is dropped. From 2.9.2 on unmatched responses are dropped everywhere when a request to the model is built.
    Stored events are never changed.

    ## Harmless causes
    A log that was cut at its beginning. The call was stored in a streaming (partial) event, under another id.

    ## What to do
    If it is the last event and the release is old, append the missing call or remove the response before resuming.
    """

    id = "EXH201"
    name = "orphaned-response"
    severity = Severity.ERROR
    todo = "Find the call in the application's own logs; older releases cannot resume a session that ends so."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        partial: frozenset[str] | None = None
        for response in log.responses:
            if response.call is not None or response.late_call is not None or response.id is None:
                continue
            if response.by_user and response.name == CONFIRMATION:
                continue  # EXH110
            if partial is None:
                partial = _calls_in_partial_events(log)
            tool = shown(response.name or "an unnamed tool")
            message = f"A response of {tool} has the id {shown(response.id)}, which no call has."
            if response.id in partial:
                message += " A partial event holds a call with this id: the final event was stored without it."
            elif _compacted_before(log, response.entry):
                message += " A compaction stands before it: the call may have been removed after it was summarised."
            if response.entry is log.entries[-1]:
                message += " It is in the last event: releases up to 2.6.3 cannot resume this session."
            subject = (response.id, response.entry.event_id)
            yield of_parts(self, log, message, [Part("response", response)], subject=subject, absence=True)


def _calls_in_partial_events(log: SessionLog) -> frozenset[str]:
    found: set[str] = set()
    for entry in log.partials:
        for part in entry.parts:
            call = part.get("function_call")
            if isinstance(call, dict):
                ident = call_id(call.get("id"))
                if ident is not None:
                    found.add(ident)
    return frozenset(found)


def _compacted_before(log: SessionLog, entry: Entry) -> bool:
    if _FIRST_COMPACTION not in log.shared:
        compactions = (acting.index for acting in log.acting if acting.actions.get("compaction"))
        log.shared[_FIRST_COMPACTION] = next(compactions, len(log.entries))
    return bool(log.shared[_FIRST_COMPACTION] < entry.index)


@register
class OrphanedCall(Rule):
    """EXH202 orphaned-call

    ## What it detects
    A function call that never got a response although a later turn exists: an event of another invocation, or a text
    of the same one. Long-running calls, open requests to a person and tasks in progress are left aside.

    ## Why it matters
    The worker died in the tool. Whether the tool did its work is not known; the model was told nothing.

    ## Example
    The call `send_payment`, then the user's next question: no result, no error.

    ## How ADK behaves
    Releases before 2.13 send such calls to the model, some of which refuse the request. 2.13.0 drops calls with an
    id, without a response, that are not long-running; and it seals the open calls of an invocation that the client
    aborts.

    ## Harmless causes
    A call beside a gated one in the same event: some releases lose its result over the pause. The message says so.

    ## What to do
    Check in the system behind the tool whether it acted, before anyone repeats the call.
    """

    id = "EXH202"
    name = "orphaned-call"
    severity = Severity.WARNING
    todo = "Check whether the tool acted before the call is repeated."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if not log.order_known:
            return
        later: _LaterTurns | None = None
        for call in log.calls:
            if call.responses or call.early or call.long_running or call.name.startswith(REQUEST_PREFIX):
                continue
            if later is None:
                later = _LaterTurns(log)
            if not later.after(call) or (call.id is not None and call.id in later.excused):
                continue
            message = f"{named(call)} never got a response, although the log goes on with a later turn."
            gated = later.asked_beside(call.entry)
            if gated is not None:
                message += f" {named(gated)} in the same event waited for a person: some releases lose the result then."
            severity = None
            note = unread_note(log)
            if note:
                severity = Severity.INFO
                message += note
            elif call.id is None:
                severity = Severity.INFO
                message += " It has no id: its response may stand under another name."
            elif Capability.LONG_RUNNING not in self.context.capabilities:
                severity = Severity.INFO
                message += " This layout does not say which calls are long-running."
            yield of_parts(
                self,
                log,
                message,
                [Part("call", call)],
                subject=(identity(call),),
                severity=severity,
                confidence=Confidence.INFERRED if call.id is None else Confidence.EXACT,
            )


class _LaterTurns:
    """Where the later turns of a session are; and which calls may stay open."""

    def __init__(self, log: SessionLog) -> None:
        self.asked = waits_for_person(log)
        self._asked_beside: dict[int, Call | None] = {}
        scopes = (entry.data.get("isolation_scope") for entry in log.scoped)
        self.excused = self.asked | {scope for scope in scopes if isinstance(scope, str)} | _waited_in(log)
        self.last_text = -1
        self.last = (-1, "")
        self.last_other = -1
        for entry in reversed(log.entries):
            if entry.partial or entry.actions.get("compaction"):
                continue
            if entry.invocation_id:
                if self.last[0] < 0:
                    self.last = (entry.index, entry.invocation_id)
                elif self.last_other < 0 and entry.invocation_id != self.last[1]:
                    self.last_other = entry.index
            if self.last_text < 0 and any(isinstance(part.get("text"), str) and part["text"] for part in entry.parts):
                self.last_text = entry.index
            if self.last_text >= 0 and self.last_other >= 0:
                break

    def asked_beside(self, entry: Entry) -> Call | None:
        """The first call of an event that waited for a person; looked for once, as an event can hold many calls."""
        if entry.index not in self._asked_beside:
            asked = (call for call in entry.calls if call.id is not None and call.id in self.asked)
            self._asked_beside[entry.index] = next(asked, None)
        return self._asked_beside[entry.index]

    def after(self, call: Call) -> bool:
        """Is there a text, or an event of another invocation, after the call's event?"""
        index, invocation = call.entry.index, call.entry.invocation_id
        if self.last_text > index:
            return True
        last_of_another = self.last[0] if invocation != self.last[1] else self.last_other
        return bool(invocation) and last_of_another > index


def _waited_in(log: SessionLog) -> set[str]:
    """Ids of calls that run an agent or a workflow of their own (2.x), in which a request to a person is open: its
    branch names them, `flow@adk-...`."""
    return {
        segment.partition("@")[2]
        for call in log.calls
        if call.name.startswith(REQUEST_PREFIX) and not call.responses and "@" in call.entry.branch
        for segment in re.split("[./]", call.entry.branch)
    }


@register
class ResponseBeforeCall(Rule):
    """EXH203 response-before-call

    ## What it detects
    A response while every call with its id stands after it, both by time and in storage order. Storage order does not
    count where it contradicts itself: another response of the session is stored before its call, which is older.

    ## Why it matters
    The order of the log is not that of what happened: rows were stored or edited out of turn, or clocks differ.

    ## Example
    The result of `lookup_order` is stored two seconds before the event with its call.

    ## How ADK behaves
    It pairs a response with calls before it only; this one is an orphan to it, and the call stays open.

    ## Harmless causes
    An import that wrote events in another order. Where only the times contradict, EXH304 says so and this rule is
    silent.

    ## What to do
    Compare with the application's own logs which came first.
    """

    id = "EXH203"
    name = "response-before-call"
    severity = Severity.ERROR
    todo = "Find out which writer stored these two events in this order."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if not log.order_known:
            return
        for response in log.responses:
            call = response.late_call
            if call is None:
                continue
            parts = [Part("response", response), Part("call", call)]
            astray = storage_contradicted(log)
            where = "by time; the rows are not stored in the order of time" if astray else "by time and in storage"
            message = f"A response to {named(call)} stands before the call, {where}."
            yield of_parts(self, log, message, parts, subject=(identity(call), response.entry.event_id))
