"""1xx: what became of a gated call (EXH104, EXH106, EXH107)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from exhume.audit.findings import Finding, Severity
from exhume.audit.log import Decision, GatedCall, Response, SessionLog
from exhume.audit.pairing import storage_contradicted
from exhume.audit.rule import Rule, register
from exhume.audit.rules.call_findings import named, of_gated, times


@register
class DoubleExecution(Rule):
    """EXH104 double-execution

    ## What it detects
    One original call with two or more results after the first answer to its confirmation request. A result with an
    error body is a result; the placeholder, a rejection, `Tool ... not found` and the sealing of an aborted call are
    none.

    ## Why it matters
    The tool ran more than once for one decision of the model: money may have moved twice.

    ## Example
    call, placeholder, approval, result `{"receipt": "rc-1"}`, approval, result `{"receipt": "rc-2"}`.

    ## How ADK behaves
    Two responses to a gated call are normal: the placeholder and the result. Up to 2.11.0 a second answer to the
    request runs the tool again; two workers that resume the same session do so in every release.

    ## Harmless causes
    A tool that is idempotent by its arguments. A gated long-running tool with an interim and a final result: `info`.

    ## What to do
    Compare the results in the evidence with the system behind the tool, and undo the surplus one.
    """

    id = "EXH104"
    name = "double-execution"
    severity = Severity.ERROR
    todo = "Check in the system behind the tool whether the action took place twice, and undo the surplus one."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if log.approvals is None:
            return
        for gated in log.approvals.gated:
            ran = len(gated.executions)
            if ran < 2:
                continue
            long_running = any(call.long_running for call in gated.calls)
            approved = f"approved {times(len(gated.approvals))}" if gated.approvals else "never approved"
            message = f"{named(gated.call)} was {approved} and has {ran:,} results."
            if long_running:
                message += " It is long-running: the earlier results may be interim ones."
            yield of_gated(self, log, message, gated, severity=Severity.INFO if long_running else None)


@register
class ExecutedWithoutApproval(Rule):
    """EXH106 executed-without-approval

    ## What it detects
    A gated call with a result that no approval precedes, or that follows a rejection with no approval in between. A
    response that itself says that the call was refused is no such result, and an answer that cannot be read is no
    approval.

    ## Why it matters
    The gate did not hold: an action took place that nobody allowed, or that somebody forbade.

    ## Example
    A reviewer answers `{"confirmed": false}`, and the next response to the call is `{"status": "refunded"}`.

    ## How ADK behaves
    The framework does not read `confirmed`: it calls the tool again with it, and the tool decides. FunctionTool
    answers `This tool call is rejected.`; a custom tool may run all the same.

    ## Harmless causes
    A tool that reports in its own words that it did nothing.

    ## What to do
    Read the tool's code for the case `confirmed` is false, and check in the system behind it what happened.
    """

    id = "EXH106"
    name = "executed-without-approval"
    severity = Severity.ERROR
    todo = "Check what the tool did, and why it ran without an approval."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if log.approvals is None or not log.order_known:
            return
        for gated in log.approvals.gated:
            if not gated.early and not gated.executions:
                continue
            decided = _Decided(gated)
            offending = [(response, "before any decision") for response in gated.early]
            for response in gated.executions:
                latest = decided.before(response)
                if latest is None:
                    offending.append((response, "after an answer that cannot be read"))
                elif not latest.approved:
                    offending.append((response, "after a rejection"))
            if offending and _is_stored_as_appended(log):
                offending = [one for one in offending if not decided.stored_after_approval(one[0])]
            if not offending:
                continue
            number = "a result" if len(offending) == 1 else f"{len(offending):,} results"
            message = f"{named(gated.call)} has {number} {offending[0][1]}."
            yield of_gated(self, log, message, gated, absence=True)


class _Decided:
    """The readable decisions on a gated call, by causal and by storage order."""

    def __init__(self, gated: GatedCall) -> None:
        self.causal = [decision for decision in gated.decisions if decision.approved is not None]
        self.stored = sorted(self.causal, key=_position)

    def before(self, response: Response) -> Decision | None:
        place = bisect_left(self.causal, response.entry.index, key=lambda decision: decision.index)
        return self.causal[place - 1] if place else None

    def stored_after_approval(self, response: Response) -> bool:
        """By storage order the newest decision before the response approves it: time and storage contradict each
        other, and it cannot be decided which of them is right."""
        place = bisect_left(self.stored, response.entry.record.position, key=_position)
        return bool(place) and bool(self.stored[place - 1].approved)


def _is_stored_as_appended(log: SessionLog) -> bool:
    """Can the place of a row tell which of two events came first, where their times say otherwise? Not if it errs on
    calls and their responses, or on events of one side: people and agents each have a clock that runs forward."""
    if storage_contradicted(log):
        return False
    last = {True: -1, False: -1}
    for entry in log.entries:
        position, by_user = entry.record.position, entry.author == "user"
        if position < last[by_user]:
            return False
        last[by_user] = position
    return True


def _position(decision: Decision) -> int:
    return decision.response.entry.record.position


@register
class ApprovedNotExecuted(Rule):
    """EXH107 approved-not-executed

    ## What it detects
    A gated call that was approved, after which the log goes on, and that never got a result; or whose answering agent
    did not know the tool.

    ## Why it matters
    The reviewer and the customer believe that the action took place.

    ## Example
    The approval is followed by a text of the agent and the next question of the user; the refund was never made.

    ## How ADK behaves
    Only the last user event is looked at for answers: a text that is sent right after the approval cancels the
    resume. After a transfer the wrong agent may be asked to run the tool, and says `Tool 'x' not found`.

    ## Harmless causes
    The action was made by hand in the meantime.

    ## What to do
    Check in the system behind the tool; repeat the action if it is still wanted.
    """

    id = "EXH107"
    name = "approved-not-executed"
    severity = Severity.WARNING
    todo = "Check whether the approved action took place at all."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if log.approvals is None or not log.order_known:
            return
        for gated in log.approvals.gated:
            if gated.executions or gated.early or gated.refusals:
                continue
            decisions = [decision for decision in gated.decisions if decision.approved is not None]
            if not decisions or not decisions[-1].approved:
                continue
            approval = next(decision for decision in decisions if decision.approved)
            after = approval.index
            if any(response.entry.index > after for response in (*gated.placeholders, *gated.misdirected)):
                continue  # the tool asked again, or the user supplied the result
            if not any(not entry.partial for entry in log.entries[after + 1 :]):
                continue
            if any(response.against_clock for call in gated.calls for response in call.responses):
                continue
            if gated.unknown_tool:
                how = "the agent that was to run it did not know the tool"
            elif gated.sealed:
                how = "its invocation was aborted before a result came"
            else:
                how = "no result ever came, although the log goes on"
            yield of_gated(self, log, f"{named(gated.call)} was approved, and {how}.", gated, absence=True)
