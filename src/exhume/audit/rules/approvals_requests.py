"""1xx: requests that are not what they should be, and where they are kept (EXH109, EXH112, EXH113, EXH114)."""

from __future__ import annotations

from collections.abc import Iterable

from exhume.audit.canonical import arguments, canonical
from exhume.audit.confirmations import OpenRequests, newest, original_call
from exhume.audit.findings import Finding, Severity
from exhume.audit.log import Call, Entry, GatedCall, Request, SessionLog
from exhume.audit.rule import Context, Rule, register
from exhume.audit.rules.call_findings import (
    MOST_EVIDENCE,
    Part,
    confidence_of,
    identity,
    named,
    of_parts,
    request_parts,
    shown,
)
from exhume.audit.rules.row_findings import of_database, unread_note
from exhume.events.model import Capability
from exhume.schema.detection import Layout


@register
class ApprovedArgumentsDiffer(Rule):
    """EXH109 approved-arguments-differ

    ## What it detects
    A confirmation request whose `originalFunctionCall` is not the call in the log: another name or other arguments,
    an id that no call has, or a request by another author than the call's. Null, missing and empty arguments are
    equal, and numbers count by value.

    ## Why it matters
    The person saw something else than what was to run. A planted request makes a reviewer approve what an attacker
    wants.

    ## Example
    The request shows `{"amount": 5}`, the call has `{"amount": 5000}`.

    ## How ADK behaves
    Before 1.39 the arguments of the request are run as they stand there. Newer releases compare name and arguments
    with the call in the session and skip requests of another agent.

    ## Harmless causes
    A log that was cut at its beginning, so that the call is missing.

    ## What to do
    Treat what the reviewer approved and what ran as two different things, and find out who wrote the request.
    """

    id = "EXH109"
    name = "approved-arguments-differ"
    severity = Severity.ERROR
    todo = "Compare what the reviewer saw with what ran, and find out who wrote the request."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if log.approvals is None:
            return
        for request in log.approvals.requests:
            for call in request.calls:
                faults, severity = self._faults(log, request, call)
                if not faults:
                    continue
                parts = request_parts(request)
                if request.gated is not None:
                    parts += [Part("call", original) for original in request.gated.calls]
                parts += [Part("approval" if one.approved else "answer", one.response) for one in request.decisions]
                yield of_parts(
                    self,
                    log,
                    f"Request {shown(call.id)}: {'; '.join(faults)}.",
                    parts,
                    subject=(identity(call),),
                    severity=severity,
                    confidence=request.confidence,
                )
                break

    @staticmethod
    def _faults(log: SessionLog, request: Request, call: Call) -> tuple[list[str], Severity | None]:
        original = original_call(call)
        if not original:
            return ["it does not say which call it is about"], Severity.INFO
        gated = request.gated
        if gated is None:
            unknown = not isinstance(original.get("id"), str)
            note = unread_note(log)
            text = f"the call {shown(original.get('id'))} that it is about is not in the log{note.rstrip('.')}"
            return [text], Severity.INFO if unknown or note else None
        meant = (newest(gated.calls, call.entry) or gated.calls)[0]
        faults = []
        if original.get("id") is not None and original["id"] != meant.id:
            faults.append(f"it names the call {shown(original['id'])} instead of {shown(meant.id)}")
        if original.get("name") != meant.name:
            faults.append(f"it names the tool {shown(original.get('name'))}, the call is of {shown(meant.name)}")
        if canonical(original.get("args") or {}) != arguments(meant):
            faults.append(f"its arguments are not those of {named(meant)}")
        if call.entry.author != meant.entry.author:
            faults.append(
                f"its author is {shown(call.entry.author)}, that of {named(meant)} is {shown(meant.entry.author)}"
            )
        return faults, None


@register
class RequestNotPresented(Rule):
    """EXH112 request-not-presented

    ## What it detects
    An event whose `requested_tool_confirmations` names a call of the session, and no confirmation request for that
    call follows (or stood open just before).

    ## Why it matters
    The tool waits for a decision that nobody was asked for.

    ## Example
    Two parallel calls want a confirmation, and only one of them is presented to the user.

    ## How ADK behaves
    The request is made from the placeholder's actions; some releases store it just before the placeholder. When the
    tool asks again after an answer, a second request has to follow.

    ## Harmless causes
    The log was read between the two events.

    ## What to do
    Let the agent call the tool again; the waiting call can no longer be approved.
    """

    id = "EXH112"
    name = "request-not-presented"
    severity = Severity.WARNING
    needs = frozenset({Capability.CONFIRMATIONS})
    todo = "Let the agent call the tool again: nobody can approve this call."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if log.approvals is None or not log.order_known:
            return
        for gated in log.approvals.gated:
            unpresented = _unpresented(gated)
            if not unpresented:
                continue
            asked = [part for request in gated.requests for part in request_parts(request)]
            asked = sorted(asked, key=lambda part: part.item.entry.index)[:MOST_EVIDENCE]
            placeholders: dict[int, list[Part]] = {}
            for response in gated.placeholders:
                placeholders.setdefault(response.entry.index, []).append(Part("placeholder", response))
            for entry in unpresented:
                parts = [Part("call", gated.call), *placeholders.get(entry.index, ()), *asked]
                message = f"A confirmation is wanted for {named(gated.call)}, and no request for it follows."
                subject = (identity(gated.call), entry.event_id)
                yield of_parts(self, log, message, parts, subject=subject, absence=True)


def _unpresented(gated: GatedCall) -> list[Entry]:
    """The events that want a confirmation for a call while no request for it is open or follows."""
    if not gated.wanted:
        return []
    requests = OpenRequests(gated.requests)
    return [entry for entry in gated.wanted if requests.last < entry.index and not requests.at(entry.index)]


@register
class MisdirectedApproval(Rule):
    """EXH113 misdirected-approval

    ## What it detects
    A user event that answers the gated call itself while its confirmation request stays open.

    ## Why it matters
    The person decided, but the answer went to the wrong id: the agent takes it for the tool's result, the tool never
    ran, and the request can still be approved.

    ## Example
    The user's `{"result": "Approved by user"}` carries the id of `send_payment` instead of the request's id.

    ## How ADK behaves
    A response to the gated call closes it like any result of a tool. Only a response to `adk_request_confirmation` is
    a decision.

    ## Harmless causes
    None in a client that works; the request was perhaps answered rightly later.

    ## What to do
    Correct the client: it has to answer the id of the `adk_request_confirmation` call.
    """

    id = "EXH113"
    name = "misdirected-approval"
    severity = Severity.WARNING
    todo = "Make the client answer the id of the confirmation request, and decide on this one."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if log.approvals is None or not log.order_known:
            return
        for gated in log.approvals.gated:
            if not gated.misdirected:
                continue
            requests = OpenRequests(gated.requests)
            confidence = confidence_of(gated.requests)
            for response in gated.misdirected:
                left_open = requests.at(response.entry.index)
                if left_open is None:
                    continue
                call = named(gated.call)
                message = f"A user event answers {call} itself; its request {shown(left_open.id)} stayed open."
                parts = [Part("call", gated.call), Part("misdirected answer", response), *request_parts(left_open)]
                subject = (identity(gated.call), response.entry.event_id)
                yield of_parts(self, log, message, parts, subject=subject, confidence=confidence)


@register
class UnsupportedBacking(Rule):
    """EXH114 unsupported-backing

    ## What it detects
    Tool confirmations in a store for which the documentation of ADK says that the feature is not supported. One
    finding a database.

    ## Why it matters
    The combination works in practice, but nobody promises that it will after the next upgrade.

    ## Example
    A session database of DatabaseSessionService with `adk_request_confirmation` calls.

    ## How ADK behaves
    The documentation of tool confirmation names DatabaseSessionService and VertexAiSessionService as not supported.

    ## Harmless causes
    Most deployments run so.

    ## What to do
    Test approvals across restarts and upgrades before relying on them.
    """

    id = "EXH114"
    name = "unsupported-backing"
    severity = Severity.INFO
    todo = "Test approvals across restarts and upgrades of this deployment."

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.sessions = 0

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if log.approvals is not None and (log.approvals.requests or log.approvals.gated):
            self.sessions += 1
        return ()

    def finish(self) -> Iterable[Finding]:
        layouts = {Layout.V0, Layout.V1, Layout.V1_UNMARKED, Layout.MIXED, Layout.UNKNOWN_VERSION}
        if self.sessions and self.context.detection.layout in layouts:
            number = "One session uses" if self.sessions == 1 else f"{self.sessions:,} sessions use"
            message = (
                f"{number} tool confirmation with DatabaseSessionService, which ADK's documentation calls unsupported."
            )
            yield of_database(self, message, subject=("DatabaseSessionService",))
