"""1xx: what was asked of a person and what was answered (EXH101, EXH102, EXH105, EXH108, EXH110, EXH111)."""

from __future__ import annotations

from collections.abc import Iterable

from exhume.audit.canonical import canonical
from exhume.audit.confirmations import asked_again
from exhume.audit.findings import Confidence, Finding, Severity
from exhume.audit.log import GatedCall, Request, SessionLog
from exhume.audit.rule import Rule, register
from exhume.audit.rules.call_findings import (
    Part,
    confidence_of,
    decision_part,
    duration,
    exchange,
    identity,
    named,
    of_gated,
    of_parts,
    request_parts,
    shown,
    story,
    times,
)
from exhume.audit.rules.row_findings import plural

#: What is added where `asked_again` explains several decisions.
_IN_STEPS = " The tool itself asked again after each approval, before it ran: this may be meant so."


def how_often(gated: GatedCall) -> str:
    """How often a gated call ran, for a message."""
    return times(len(gated.executions)) if gated.executions else "not at all"


def asked_about(request: Request) -> str:
    """The call that a request is about, for a message."""
    if request.gated is not None:
        return named(request.gated.call)
    return f"{shown(request.original.get('name') or 'an unnamed call')} (not in the log)"


@register
class DuplicateApproval(Rule):
    """EXH101 duplicate-approval

    ## What it detects
    One confirmation request that got two or more affirmative answers from the user. The message says whether their
    payloads differ and how often the tool ran.

    ## Why it matters
    Up to ADK 2.11 each answer that arrives in a later user event runs the tool again, with the new payload: two
    refunds for one request.

    ## Example
    A reviewer approves `issue_refund` on Friday. On Monday the same request is still on the screen and is approved
    again.

    ## How ADK behaves
    1.14.0 to 2.11.0 only ask whether a response to the call stands after the newest answer, and run it again. 2.12.0
    and newer count a request as consumed by its first answer and store the second one without effect. An id that
    starts with `adk-` is one request however often its event is stored.

    ## Harmless causes
    A client that sends the answer again because the network failed, in a release that ignores the second one.

    ## What to do
    Compare the executions with the books of the system behind the tool, and undo the surplus one. Make the client
    send an answer once, and the tool idempotent by the id of its call.
    """

    id = "EXH101"
    name = "duplicate-approval"
    severity = Severity.ERROR
    todo = "Check how often the action really took place, and undo the surplus one."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if log.approvals is None:
            return
        for request in log.approvals.requests:
            approvals = [decision for decision in request.decisions if decision.approved]
            if len(approvals) < 2:
                continue
            gated = request.gated
            payloads = {canonical(decision.payload) for decision in approvals}
            ran = "" if gated is None else f" The call ran {how_often(gated)}."
            span = duration(approvals[0].response.entry.time, approvals[-1].response.entry.time)
            message = (
                f"Request {shown(request.id)} for {asked_about(request)} was approved {times(len(approvals))}"
                f" within {span}; the payloads {'differ' if len(payloads) > 1 else 'are equal'}.{ran}"
            )
            parts = exchange(request)
            if gated is not None:
                parts += [Part("call", gated.call)]
                parts += [Part("execution", response) for response in gated.executions]
            yield of_parts(
                self, log, message, parts, subject=(identity(request.calls[0]),), confidence=request.confidence
            )


@register
class RepeatedRequestApproved(Rule):
    """EXH102 repeated-request-approved

    ## What it detects
    One original call that was presented under several confirmation requests and approved under more than one.

    ## Why it matters
    The reviewer believes to decide about two actions, or about one; the tool may run once for each approval.

    ## Example
    A worker restarts after the run and asks again, with a new request for the same call. Both requests are approved.

    ## How ADK behaves
    Each request has its own id and links to the original call only by `originalFunctionCall.id` in its arguments.
    Releases before 2.12.0 run the call again for the second request.

    ## Harmless causes
    A tool that asks in steps: after the first approval it asks again before it acts. Then the finding is `info`.

    ## What to do
    Count the executions in the evidence and compare them with the system behind the tool.
    """

    id = "EXH102"
    name = "repeated-request-approved"
    severity = Severity.ERROR
    todo = "Check how often the action really took place; one call must be asked about once."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if log.approvals is None:
            return
        for gated in log.approvals.gated:
            approved = [request for request in gated.requests if any(one.approved for one in request.decisions)]
            if len(approved) < 2:
                continue
            in_steps = asked_again(gated)
            message = (
                f"{named(gated.call)} was asked about in {len(gated.requests):,} requests and approved in"
                f" {len(approved):,} of them; it ran {how_often(gated)}."
            )
            if in_steps:
                message += _IN_STEPS
            yield of_parts(
                self,
                log,
                message,
                story(gated),
                subject=(identity(gated.call),),
                severity=Severity.INFO if in_steps else None,
                confidence=confidence_of(approved),
            )


@register
class ConflictingDecisions(Rule):
    """EXH105 conflicting-decisions

    ## What it detects
    One request, or one original call under several requests, that was both approved and rejected.

    ## Why it matters
    Which decision counted depends on the ADK release and on the order in which answers arrived. The person who said
    no may believe that nothing happened.

    ## Example
    A reviewer rejects a payment, a second one approves the same request an hour later, and the payment is sent.

    ## How ADK behaves
    Before 2.12.0 the newest answer decides, each time; from 2.12.0 on the first one. A rejection is advisory: the
    tool is called with `confirmed: false` and decides itself.

    ## Harmless causes
    A reviewer who corrects a mistake before the tool ran. A tool that asks in steps, of which a later one was
    rejected: then the finding is `info`.

    ## What to do
    Ask both reviewers what they meant, and compare with the executions in the evidence.
    """

    id = "EXH105"
    name = "conflicting-decisions"
    severity = Severity.ERROR
    todo = "Find out which decision was meant, and whether the tool ran against it."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if log.approvals is None:
            return
        for gated in log.approvals.gated:
            said = [decision.approved for decision in gated.decisions if decision.approved is not None]
            if len(set(said)) < 2:
                continue
            in_steps = asked_again(gated)
            order = ", then ".join("approved" if one else "rejected" for one in said[:6])
            message = f"{named(gated.call)} was {order}; it ran {how_often(gated)}."
            if in_steps:
                message += _IN_STEPS
            yield of_gated(self, log, message, gated, severity=Severity.INFO if in_steps else None)
        for request in log.approvals.requests:
            if request.gated is None and len({one.approved for one in request.decisions} - {None}) > 1:
                message = f"Request {shown(request.id)} for {asked_about(request)} was both approved and rejected."
                yield of_parts(self, log, message, exchange(request), subject=(identity(request.calls[0]),))


@register
class PendingApproval(Rule):
    """EXH108 pending-approval

    ## What it detects
    A confirmation request without a decision, with its age at the end of the log.

    ## Why it matters
    Somebody waits: the agent for a person, or a customer for both. A request that stays open can be approved much
    later, when the action is no longer wanted.

    ## Example
    A refund waits for approval since Friday; the user went on chatting about other things.

    ## How ADK behaves
    A request has no end. ADK 2.13 closes (seals) the requests of an invocation that the client aborts; those are not
    told here.

    ## Harmless causes
    The log was read while the request was fresh.

    ## What to do
    Decide, or withdraw the action in the system behind the tool.
    """

    id = "EXH108"
    name = "pending-approval"
    severity = Severity.INFO
    todo = "Decide on the request, or make sure that nobody can still approve it."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if log.approvals is None:
            return
        end = max((entry.time for entry in log.entries if entry.time is not None), default=None)
        for request in log.approvals.requests:
            if request.sealed is not None or any(decision.approved is not None for decision in request.decisions):
                continue
            age = duration(request.calls[0].entry.time, end)
            unreadable = len(request.decisions)
            answers = f" {plural(unreadable, 'answer')} could not be read." if unreadable else ""
            what = f"Request {shown(request.id)} for {asked_about(request)}"
            message = f"{what} has no decision; it is {age} old at the end of the log.{answers}"
            subject = (identity(request.calls[0]),)
            yield of_parts(self, log, message, exchange(request), subject=subject, confidence=request.confidence)


@register
class UnknownApproval(Rule):
    """EXH110 unknown-approval

    ## What it detects
    A user's answer to a confirmation request that the session does not have.

    ## Why it matters
    The decision was made about something else: a request of another session, a request that was deleted, or an id
    that somebody made up to get an action approved.

    ## Example
    A client keeps two windows open and sends the approval of one session into the other.

    ## How ADK behaves
    The runner refuses a message whose responses belong to no call; an answer that was stored all the same has no
    effect.

    ## Harmless causes
    A log that was cut at its beginning.

    ## What to do
    Search the other sessions for the id in the evidence. If it is nowhere, find out who sent it.
    """

    id = "EXH110"
    name = "unknown-approval"
    severity = Severity.ERROR
    todo = "Search the other sessions for this request id, and find out who answered it here."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if log.approvals is None:
            return
        for response in log.approvals.strays:
            request = f"confirmation request {shown(response.id or 'without id')}"
            message = f"A user event answers {request}, which this session does not have."
            yield of_parts(
                self,
                log,
                message,
                [Part("answer", response)],
                subject=(response.id or "", response.entry.event_id),
                confidence=Confidence.EXACT if response.id else Confidence.INFERRED,
                absence=True,
            )


@register
class MalformedDecision(Rule):
    """EXH111 malformed-decision

    ## What it detects
    An answer to a confirmation request that ADK cannot read as a confirmation, or one that approves by a value that
    is no boolean, such as `"yes"`, `"on"` or `1`.

    ## Why it matters
    The person decided, and the decision had another effect than meant: an unreadable answer stops the resume with an
    error, and `"yes"` approves although the application may take it for text.

    ## Example
    `{"confirmed": true, "comment": "fine with me"}`: the unknown key makes the whole answer invalid.

    ## How ADK behaves
    google.adk.tools.tool_confirmation (2.13.0) takes the object itself, or exactly one key `response` with a JSON
    text of it; the keys are `confirmed`, `hint` and `payload`. Booleans are lax: y, yes, t, true, on, 1 and their
    opposites. `{}` is a denial.

    ## Harmless causes
    A front end that answers in its own words; what was meant is then plain to a reader, but not to ADK.

    ## What to do
    Make the client send `{"confirmed": true}` or `{"confirmed": false}`, and ask the person what was meant here.
    """

    id = "EXH111"
    name = "malformed-decision"
    severity = Severity.WARNING
    todo = 'Make the client answer {"confirmed": true} or {"confirmed": false}.'

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if log.approvals is None:
            return
        for request in log.approvals.requests:
            for decision in request.decisions:
                if decision.approved is None:
                    what = f"cannot be read as a confirmation: {shown(decision.reason)}"
                elif decision.lax is not None:
                    what = f"approves by the value {shown(repr(decision.lax))}, which is no boolean"
                else:
                    continue
                message = f"An answer to request {shown(request.id)} for {asked_about(request)} {what}."
                parts = [*request_parts(request), decision_part(decision)]
                subject = (identity(request.calls[0]), decision.response.entry.event_id)
                yield of_parts(self, log, message, parts, subject=subject, confidence=request.confidence)
