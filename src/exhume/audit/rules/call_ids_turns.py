"""2xx: calls across compactions and resumes (EXH212, EXH213)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from exhume.audit.canonical import arguments
from exhume.audit.findings import Evidence, Finding, Severity
from exhume.audit.log import (
    REQUEST_PREFIX,
    WANTED_CONFIRMATIONS,
    WANTED_CREDENTIALS,
    Approvals,
    Call,
    Entry,
    SessionLog,
)
from exhume.audit.rule import Rule, register
from exhume.audit.rules.call_findings import Part, identity, named, of_parts, shown, times

#: Seconds by which the end of a compacted range and an event's time may differ and still be equal.
_CLOCK = 0.0005
#: Calls looked at for compactions in one session; healthy logs need about one step a call.
_MOST_STEPS = 1_000_000
_FIRST_APPROVALS, _BREAKS = "first approvals", "breaks of invocations"


@register
class CallCutByCompaction(Rule):
    """EXH212 call-cut-by-compaction

    ## What it detects
    A compaction that covers a call which was still open at the end of the summarised range. A placeholder does not
    close a call; an interim response closes a long-running one.

    ## Why it matters
    The model no longer sees the call when its result comes: the result stands alone, and an open approval is
    forgotten.

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
            told = of_parts(self, log, message, parts, subject=(entry.event_id, *map(identity, cut[:10])))
            row = Evidence("events", entry.record.key, "compaction", entry.time)
            yield _with_evidence(told, row)


def _with_evidence(told: Finding, row: Evidence) -> Finding:
    """`told` with one more row of evidence, an event that is neither call nor response."""
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
    return call.id in entry.asked(WANTED_CONFIRMATIONS) or call.id in entry.asked(WANTED_CREDENTIALS)


@register
class RepeatedCall(Rule):
    """EXH213 repeated-call

    ## What it detects
    An invocation that calls the same tool with the same arguments again after that call was approved or answered.
    Equal calls in one event are not meant, nor requests to a person and transfers.

    ## Why it matters
    A resume loop: the agent does not see that the call was already answered, asks again, and runs again.

    ## Example
    Asked, approved and run; the same invocation calls `dispatch_stock` with the same arguments again.

    ## How ADK behaves
    2.x resumes an invocation under its id; when the history it builds lacks the answered call, the model makes it
    again.

    ## Harmless causes
    Polling, a live conversation that comes back to a question, and a retry after an error. Where the invocation
    neither failed nor waited for a person in between, or every earlier answer was an error, the finding is `info`.

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
            again, only_errors = self._again(log, calls)
            if not again:
                continue
            resumed = self._is_resumed(log, calls)
            first = calls[0]
            message = (
                f"{shown(first.name)} was called again with the same arguments {times(len(again))} in the same"
                f" invocation, after {named(first)} had been approved or answered."
            )
            if only_errors:
                message += " Every earlier answer was an error: this looks like a retry."
            elif not resumed:
                message += " It neither failed nor waited for a person in between: this may be polling."
            parts = [Part("call", call) for call in calls]
            parts += [Part("response", response) for call in calls for response in call.responses]
            subject = (first.entry.invocation_id, identity(first))
            yield of_parts(
                self,
                log,
                message,
                parts,
                subject=subject,
                severity=None if resumed and not only_errors else Severity.INFO,
            )

    def _again(self, log: SessionLog, calls: list[Call]) -> tuple[list[Call], bool]:
        """Of equal calls those that follow an answer to an earlier one; and whether all such answers were errors."""
        again: list[Call] = []
        only_errors = True
        seen: set[str | None] = set()
        first_answer: int | None = None
        errors_so_far = True
        for call in calls:
            if call.own_id and call.id in seen:
                continue  # the same call stored again: EXH204
            seen.add(call.id)
            if first_answer is not None and first_answer < call.entry.index:
                again.append(call)
                only_errors = only_errors and errors_so_far
            answered = self._answered(log, call)
            if answered is not None:
                index, is_error = answered
                first_answer = index if first_answer is None else min(first_answer, index)
                errors_so_far = errors_so_far and is_error
        return again, only_errors

    @staticmethod
    def _is_resumed(log: SessionLog, calls: list[Call]) -> bool:
        """Between the first and the last call, did a person answer a call of the invocation, or did it fail?"""
        breaks: dict[str, list[int]] | None = log.shared.get(_BREAKS)
        if breaks is None:
            breaks = log.shared[_BREAKS] = {}
            for entry in log.entries:
                if entry.data.get("error_code") or (entry.author == "user" and entry.responses):
                    breaks.setdefault(entry.invocation_id, []).append(entry.index)
        own = breaks.get(calls[0].entry.invocation_id, [])
        place = bisect_right(own, calls[0].entry.index)
        return place < len(own) and own[place] < calls[-1].entry.index

    @staticmethod
    def _answered(log: SessionLog, call: Call) -> tuple[int, bool] | None:
        """Index at which the call was approved or answered, and whether the answer was an error."""
        found: tuple[int, bool] | None = None
        for response in call.responses:
            if not _is_placeholder(call, response.entry):
                found = response.entry.index, _is_error(response.body)
                break
        if log.approvals is not None and call.id is not None:
            if _FIRST_APPROVALS not in log.shared:
                log.shared[_FIRST_APPROVALS] = _first_approvals(log.approvals)
            approved = log.shared[_FIRST_APPROVALS].get(id(call))
            if approved is not None and (found is None or approved < found[0]):
                found = approved, False
        return found


def _first_approvals(approvals: Approvals) -> dict[int, int]:
    """Per gated call, by its `id()`: index of its first approval."""
    found: dict[int, int] = {}
    for gated in approvals.gated:
        for approval in gated.approvals[:1]:
            found.update((id(call), approval.index) for call in gated.calls)
    return found


def _is_error(body: Any) -> bool:
    """A body with `error`, or with the `error_type` of ReflectAndRetryToolPlugin (google.adk.plugins, 1.16.0 on)."""
    return isinstance(body, dict) and ("error" in body or "error_type" in body)
