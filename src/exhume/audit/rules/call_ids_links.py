"""2xx: ids that events name outside of calls and responses, and calls across turns (EXH208 to EXH213)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any

from exhume.audit.canonical import arguments
from exhume.audit.findings import Confidence, Evidence, Finding, Severity
from exhume.audit.log import REQUEST_PREFIX, Call, Entry, SessionLog
from exhume.audit.pairing import call_id
from exhume.audit.rule import Rule, register
from exhume.audit.rules.make import of_session
from exhume.audit.rules.telling import Part, finding, identity, named, shown, times, unread_note

#: Keys of auth requests for a whole toolset, which no call stands behind (google.adk.auth.auth_preprocessor, 2.0.0 on).
_TOOLSET_AUTH = "_adk_toolset_auth_"
#: A path of workflow nodes with the number of each run (google.adk.workflow, 2.0.0 on).
_NODE_PATH = re.compile(r"[^/@]+@[^/@]+(?:/[^/@]+@[^/@]+)*\Z")
#: Longest scope that is looked at as a path.
_LONGEST_SCOPE = 10_000
#: Seconds by which the end of a compacted range and an event's time may differ and still be equal.
_CLOCK = 0.0005
#: Calls looked at for compactions in one session; healthy logs need about one step a call.
_MOST_STEPS = 1_000_000


@register
class MixedInvocations(Rule):
    """EXH208 mixed-invocations

    ## What it detects
    One user event that answers calls of several invocations.

    ## Why it matters
    ADK resumes one invocation by such a message; answers to the other one are lost or refused.

    ## Example
    A front end collects two open approvals of different turns and sends both answers in one message.

    ## How ADK behaves
    The runner of 2.x refuses a user message whose responses belong to calls of several invocations. 1.x stores it and
    looks for the calls by id.

    ## Harmless causes
    A 1.x application that answers several open requests at once on purpose.

    ## What to do
    Make the client send one message for each invocation.
    """

    id = "EXH208"
    name = "mixed-invocations"
    severity = Severity.ERROR
    todo = "Make the client send the answers of each invocation in a message of their own."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        last: Entry | None = None
        for response in log.responses:
            entry = response.entry
            if entry is last or not response.by_user or len(entry.responses) < 2:
                continue
            last = entry
            answered = [one for one in entry.responses if one.call is not None and one.confidence is Confidence.EXACT]
            invocations = {one.call.entry.invocation_id for one in answered if one.call is not None} - {""}
            if len(invocations) < 2:
                continue
            parts = [Part("response", one) for one in answered]
            parts += [Part("call", one.call) for one in answered if one.call is not None]
            message = f"One user event answers calls of {len(invocations):,} invocations."
            yield finding(self, log, message, parts, subject=(entry.event_id,))


@register
class DanglingLongRunningId(Rule):
    """EXH209 dangling-long-running-id

    ## What it detects
    `long_running_tool_ids` of an event names an id that no call in this event has.

    ## Why it matters
    A client waits for something that nobody does, or a call is taken for an ordinary one and never waited for.

    ## Example
    The column names the id that the streamed, partial event had; the final event's call has another one.

    ## How ADK behaves
    The field lists calls of the same event only (google.adk.events.event, all releases).

    ## Harmless causes
    Events that an application made itself.

    ## What to do
    Look for the call in the neighbouring events.
    """

    id = "EXH209"
    name = "dangling-long-running-id"
    severity = Severity.WARNING
    todo = "Look for the call in the neighbouring events."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        for entry in log.listing:
            if entry.partial or entry.blind:
                continue
            listed = entry.data.get("long_running_tool_ids")
            if not isinstance(listed, list):
                continue
            own = {call.id for call in entry.calls}
            dangling = sorted({ident for ident in map(call_id, listed) if ident is not None and ident not in own})
            if dangling:
                message = f"long_running_tool_ids names {_some(dangling)}, which no call of the event has."
                yield of_session(
                    self, log, message, entries=[entry], call_ids=dangling[:20], subject=(entry.event_id, *dangling[:5])
                )


def _some(idents: list[str]) -> str:
    rest = f" and {len(idents) - 3:,} more" if len(idents) > 3 else ""
    return ", ".join(map(shown, idents[:3])) + rest


@register
class OrphanedActionKey(Rule):
    """EXH210 orphaned-action-key

    ## What it detects
    `requested_auth_configs` or `requested_tool_confirmations` is keyed by an id that no call of the session has.

    ## Why it matters
    Somebody is asked for a credential or an approval, and nothing can be resumed with it.

    ## Example
    A confirmation is keyed by the id of a call in another session.

    ## How ADK behaves
    The keys are the ids of the calls whose tools asked (google.adk.tools.tool_context). Requests for a whole toolset have
    keys that begin with `_adk_toolset_auth_`; these are left aside. Compaction counts such keys as open for ever.

    ## Harmless causes
    A log that was cut at its beginning; events that an application made itself.

    ## What to do
    Search the other sessions for the id.
    """

    id = "EXH210"
    name = "orphaned-action-key"
    severity = Severity.ERROR
    todo = "Search the other sessions for this call id."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        known: set[str | None] | None = None
        for entry in log.acting:
            actions = entry.actions
            for field in ("requested_tool_confirmations", "requested_auth_configs"):
                keyed = actions.get(field)
                if not isinstance(keyed, dict) or not keyed:
                    continue
                if known is None:
                    known = {call.id for call in log.calls}
                orphans = sorted(
                    key for key in map(str, keyed) if key not in known and not key.startswith(_TOOLSET_AUTH)
                )
                if orphans:
                    note = unread_note(log)
                    message = f"{field} is keyed by {_some(orphans)}, which no call of the session has.{note}"
                    yield of_session(
                        self,
                        log,
                        message,
                        entries=[entry],
                        call_ids=orphans[:20],
                        subject=(entry.event_id, field, *orphans[:5]),
                        severity=Severity.INFO if note else None,
                    )


@register
class OrphanedScope(Rule):
    """EXH211 orphaned-scope

    ## What it detects
    An `isolation_scope` that is neither the id of a call in the session nor a path of `name@run` segments.

    ## Why it matters
    Agents see only events of their own scope: these events are invisible to every agent, or belong to a task of another
    session.

    ## Example
    Events carry the scope `refunds@`, a node without the number of its run.

    ## How ADK behaves
    2.x scopes a delegated task by the id of the call that started it, and a workflow's task node by its path, such as
    `flow@1/refund_step@1`.

    ## Harmless causes
    Events that an application made itself.

    ## What to do
    Look for the call that started the task, here and in other sessions.
    """

    id = "EXH211"
    name = "orphaned-scope"
    severity = Severity.WARNING
    todo = "Look for the call that started this task, here and in other sessions."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if not log.scoped:
            return
        known = {call.id for call in log.calls}
        orphaned: dict[str, list[Entry]] = {}
        for entry in log.scoped:
            scope = entry.data.get("isolation_scope")
            if isinstance(scope, str) and (scope in known or _is_path(scope)):
                continue
            orphaned.setdefault(scope if isinstance(scope, str) else repr(type(scope)), []).append(entry)
        note = unread_note(log)
        for scope, entries in orphaned.items():
            number = "An event has" if len(entries) == 1 else f"{len(entries):,} events have"
            message = (
                f"{number} the scope {shown(scope)}, which is neither a call of the session nor a path of runs.{note}"
            )
            severity = Severity.INFO if note else None
            yield of_session(self, log, message, entries=entries, subject=(scope[:300],), severity=severity)


def _is_path(scope: str) -> bool:
    return len(scope) <= _LONGEST_SCOPE and _NODE_PATH.match(scope) is not None


@register
class CallCutByCompaction(Rule):
    """EXH212 call-cut-by-compaction

    ## What it detects
    A compaction that covers a call which was still open at the end of the summarised range. A placeholder does not close
    a call; an interim response closes a long-running one.

    ## Why it matters
    The model no longer sees the call when its result comes: the result stands alone, and an open approval is forgotten.

    ## Example
    A pending confirmation is summarised away, and is approved half an hour later.

    ## How ADK behaves
    Newer releases compact only up to a place where no call, confirmation or credential request is open. Older ones
    compact by size alone.

    ## Harmless causes
    A call that was abandoned anyway.

    ## What to do
    Check that the pending call is not resumed on the summary alone.
    """

    id = "EXH212"
    name = "call-cut-by-compaction"
    severity = Severity.WARNING
    todo = "Check what became of the open call, and upgrade to a release that keeps open calls out of compactions."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        compactions = [entry for entry in log.acting if isinstance(entry.actions.get("compaction"), dict)]
        if not compactions or not log.calls:
            return
        calls = sorted((call for call in log.calls if call.entry.time is not None), key=_time)
        ends = _closing_times(log)
        steps = 0
        for entry in compactions:
            compaction = entry.actions["compaction"]
            start, end = compaction.get("start_timestamp"), compaction.get("end_timestamp")
            if not _is_number(start) or not _is_number(end):
                continue
            first = bisect_left(calls, start - _CLOCK, key=_time)
            last = bisect_right(calls, end + _CLOCK, key=_time)
            steps += max(last - first, 0)
            if steps > _MOST_STEPS:
                self.context.notes.append(f"{self.id}: a session with too many compactions was judged in part.")
                return
            cut = [
                call
                for call in calls[first:last]
                if ends[call.ordinal] > end + _CLOCK and call.entry.index < entry.index
            ]
            if not cut:
                continue
            cut.sort(key=lambda call: call.ordinal)
            open_calls = f"{len(cut):,} calls" if len(cut) > 1 else named(cut[0])
            message = f"A compaction covers {open_calls}, still open at the end of its range."
            parts = [Part("call", call) for call in cut]
            parts += [Part("later response", response) for call in cut for response in call.responses[-1:]]
            told = finding(self, log, message, parts, subject=(entry.event_id, *map(identity, cut[:10])))
            row = Evidence("events", entry.record.key, "compaction", entry.time)
            yield replace_evidence(told, row)


def replace_evidence(told: Finding, row: Evidence) -> Finding:
    """`told` with one more row of evidence, an event that is neither call nor response."""
    from dataclasses import replace

    return replace(
        told, evidence=(*told.evidence, row), event_ids=tuple(dict.fromkeys((*told.event_ids, row.key.event_id)))
    )


def _time(call: Call) -> float:
    return call.entry.time if call.entry.time is not None else 0.0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12


def _closing_times(log: SessionLog) -> list[float]:
    """Per call: the time of the first response that closes it; infinity where there is none."""
    ends = []
    for call in log.calls:
        closing = (
            response.entry.time
            for response in call.responses
            if response.entry.time is not None and (call.long_running or not _is_placeholder(call, response.entry))
        )
        ends.append(min(closing, default=float("inf")))
    return ends


def _is_placeholder(call: Call, entry: Entry) -> bool:
    actions = entry.actions
    for field in ("requested_tool_confirmations", "requested_auth_configs"):
        keyed = actions.get(field)
        if isinstance(keyed, dict) and call.id in keyed:
            return True
    return False


@register
class RepeatedCall(Rule):
    """EXH213 repeated-call

    ## What it detects
    An invocation that calls the same tool with the same arguments again after that call was approved or answered. Equal
    calls in one event are not meant, nor requests to a person and transfers.

    ## Why it matters
    A resume loop: the agent does not see that the call was already answered, asks again, and runs again.

    ## Example
    Asked, approved and run; the same invocation calls `dispatch_stock` with the same arguments again.

    ## How ADK behaves
    2.x resumes an invocation under its id; when the history it builds lacks the answered call, the model makes it again.

    ## Harmless causes
    Polling, and a retry after an error; where every earlier answer was an error the finding is `info`.

    ## What to do
    Look at what the model was sent on resuming; compare the executions with the system behind the tool.
    """

    id = "EXH213"
    name = "repeated-call"
    severity = Severity.WARNING
    todo = "Check whether the action took place more than once, and why the agent called again."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if len(log.calls) < 2 or not log.order_known:
            return
        groups: dict[tuple[str, str], list[Call]] = {}
        for call in log.calls:
            invocation = call.entry.invocation_id
            if invocation:
                group = groups.get((invocation, call.name))
                if group is None:
                    groups[invocation, call.name] = [call]
                else:
                    group.append(call)
        for (_, name), group in groups.items():
            if len(group) > 1 and name != "transfer_to_agent" and not name.startswith(REQUEST_PREFIX):
                yield from self._repeated(log, group)

    def _repeated(self, log: SessionLog, group: list[Call]) -> Iterable[Finding]:
        alike: dict[bytes, list[Call]] = {}
        for call in group:
            alike.setdefault(arguments(call), []).append(call)
        for calls in alike.values():
            if len(calls) < 2:
                continue
            again: list[Call] = []
            seen: set[str | None] = set()
            only_errors = True
            settled: tuple[int, bool] | None = None  # where the first answered one was answered, and was it an error
            for call in calls:
                if call.own_id and call.id in seen:
                    continue  # the same call stored again: EXH204
                seen.add(call.id)
                if settled is not None and settled[0] < call.entry.index:
                    again.append(call)
                    only_errors = only_errors and settled[1]
                answered = self._answered(log, call)
                if answered is not None and (settled is None or answered[0] < settled[0] or not answered[1]):
                    settled = (
                        answered if settled is None else (min(settled[0], answered[0]), settled[1] and answered[1])
                    )
            if not again:
                continue
            first = calls[0]
            message = (
                f"{shown(first.name)} was called again with the same arguments {times(len(again))} in the same"
                f" invocation, after {named(first)} had been approved or answered."
            )
            if only_errors:
                message += " Every earlier answer was an error: this looks like a retry."
            parts = [Part("call", call) for call in calls]
            parts += [Part("response", response) for call in calls for response in call.responses]
            subject = (first.entry.invocation_id, identity(first))
            yield finding(self, log, message, parts, subject=subject, severity=Severity.INFO if only_errors else None)

    @staticmethod
    def _answered(log: SessionLog, call: Call) -> tuple[int, bool] | None:
        """Index at which the call was approved or answered, and whether the answer was an error."""
        found: tuple[int, bool] | None = None
        for response in call.responses:
            if not _is_placeholder(call, response.entry):
                body = response.body
                found = response.entry.index, isinstance(body, dict) and "error" in body
                break
        if log.approvals is not None and call.id is not None:
            approvals = log.shared.get("first approvals")
            if approvals is None:
                approvals = log.shared["first approvals"] = {
                    id(one): gated.approvals[0].index
                    for gated in log.approvals.gated
                    if gated.approvals
                    for one in gated.calls
                }
            approved = approvals.get(id(call))
            if approved is not None and (found is None or approved < found[0]):
                found = approved, False
        return found
