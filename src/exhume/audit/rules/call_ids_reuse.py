"""2xx: ids and names that do not tell calls apart as they should (EXH204 to EXH207)."""

from __future__ import annotations

from collections.abc import Iterable

from exhume.audit.canonical import canonical
from exhume.audit.confirmations import waits_for_person
from exhume.audit.findings import Confidence, Finding, Severity
from exhume.audit.log import CONFIRMATION, REQUEST_PREFIX, Call, SessionLog
from exhume.audit.rule import Rule, register
from exhume.audit.rules.call_findings import Part, identity, named, of_parts, shown, times
from exhume.events.model import Capability


@register
class ReusedCallId(Rule):
    """EXH204 reused-call-id

    ## What it detects
    Several calls of a session share an id. Ids that a model made (`call_1`) may repeat, which is only context; an id
    that ADK made (`adk-...`) is unique, and its repetition is an error.

    ## Why it matters
    A repeated `adk-` id means that a call was stored, and perhaps run, a second time. With repeated model ids,
    results are told apart by order only.

    ## Example
    A worker restarts and stores the same confirmation request again, under the same `adk-` id.

    ## How ADK behaves
    It makes `adk-` ids from a random UUID when the event is finalised. Model ids are kept as they come. 2.9.2 and
    newer pair repeated ids with the newest call before the response; older ones may take the wrong call.

    ## Harmless causes
    Models that number their calls anew in each turn.

    ## What to do
    For an `adk-` id, look for a second execution (EXH104) and at what stored the event again.
    """

    id = "EXH204"
    name = "reused-call-id"
    severity = Severity.INFO
    todo = "For an adk- id: find out what stored the call again, and whether it ran again."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if len(log.calls) < 2:
            return
        first: dict[str, Call] = {}
        repeated: dict[tuple[str, str], list[Call]] = {}
        for call in log.calls:
            if call.id is None:
                continue
            if call.id not in first:
                first[call.id] = call
                continue
            # the same model id in another branch is another call
            branch = "" if call.own_id else call.entry.branch
            group = repeated.setdefault((call.id, branch), [])
            if not group and (call.own_id or first[call.id].entry.branch == branch):
                group.append(first[call.id])
            group.append(call)
        for (ident, branch), calls in repeated.items():
            if len(calls) < 2:
                continue
            own = calls[0].own_id
            names = sorted({shown(call.name) for call in calls})
            made = "ADK made it, so it was unique" if own else "a model made it, which may happen"
            message = f"The call id {shown(ident)} is used {times(len(calls))}, by {', '.join(names[:4])}: {made}."
            parts = [Part("call", call) for call in calls]
            yield of_parts(self, log, message, parts, subject=(ident, branch), severity=Severity.ERROR if own else None)


@register
class DuplicateResponse(Rule):
    """EXH205 duplicate-response

    ## What it detects
    One call with several responses that is neither long-running nor waits for a person. Equal bodies are only `info`.

    ## Why it matters
    The tool ran more than once, or two writers answered for it; the model saw only the last result.

    ## Example
    The agent stores `{"state": "shipped"}` for a call, and a client answers the same call with `{"state": "open"}`.

    ## How ADK behaves
    When a request to the model is built, a later response with the same id replaces the earlier one.

    ## Harmless causes
    A retry that stored the same result twice. A tool that reports progress without being marked as long-running.

    ## What to do
    Compare the bodies, and find out which of them the system behind the tool knows of.
    """

    id = "EXH205"
    name = "duplicate-response"
    severity = Severity.WARNING
    todo = "Compare the responses, and find out whether the tool ran more than once."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        waits: frozenset[str] | None = None
        for call in log.calls:
            if len(call.responses) < 2 or call.long_running or call.id is None:
                continue
            exact = [response for response in call.responses if response.confidence is Confidence.EXACT]
            if len(exact) < 2 or call.name.startswith(REQUEST_PREFIX):
                continue
            if waits is None:
                waits = waits_for_person(log)
            if call.id in waits:
                continue
            bodies = {canonical(response.body) for response in exact}
            message = f"{named(call)} has {len(exact):,} responses"
            severity = None
            if len(bodies) == 1:
                severity = Severity.INFO
                message += ", all with the same body."
            elif Capability.LONG_RUNNING not in self.context.capabilities:
                severity = Severity.INFO
                message += ". This layout does not say which calls are long-running."
            else:
                message += f" with {len(bodies):,} different bodies."
            parts = [Part("call", call), *(Part("response", response) for response in exact)]
            yield of_parts(self, log, message, parts, subject=(identity(call),), severity=severity)


@register
class MissingCallId(Rule):
    """EXH206 missing-call-id

    ## What it detects
    Calls or responses without an id, counted per session.

    ## Why it matters
    They can be paired by name and order only; what other rules say about them is marked `inferred`.

    ## Example
    Logs of early releases, and live sessions of models that give no ids.

    ## How ADK behaves
    It gives calls without an id one of its own (`adk-...`) when the event is finalised, and leaves old events alone.

    ## Harmless causes
    Old logs, and events that an application made itself.

    ## What to do
    Nothing, but read `inferred` pairs with care.
    """

    id = "EXH206"
    name = "missing-call-id"
    severity = Severity.INFO
    todo = "Read pairs that are marked inferred with care."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        calls = [call for call in log.calls if call.id is None]
        responses = [response for response in log.responses if response.id is None]
        if not calls and not responses:
            return
        parts = [Part("call", call) for call in calls] + [Part("response", response) for response in responses]
        message = (
            f"Without an id: {len(calls):,} of {len(log.calls):,} calls,"
            f" {len(responses):,} of {len(log.responses):,} responses."
        )
        yield of_parts(self, log, message, parts, subject=("ids",), confidence=Confidence.INFERRED)


@register
class NameMismatch(Rule):
    """EXH207 name-mismatch

    ## What it detects
    A response that has the id of a call and another name than it.

    ## Why it matters
    The result of one tool was given for another: ids were mixed up by a client, or a result was planted.

    ## Example
    Two parallel responses with their names swapped.

    ## How ADK behaves
    It pairs by id alone and does not compare names; some models refuse the request.

    ## Harmless causes
    A tool that was renamed while the call was open; a client that adds or drops a prefix.

    ## What to do
    Check with the bodies which tool each response is of.
    """

    id = "EXH207"
    name = "name-mismatch"
    severity = Severity.ERROR
    todo = "Find out which tool this response is of, and who wrote it."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        misdirected: set[int] | None = None
        for response in log.responses:
            call = response.call
            if call is None or call.name == response.name or not response.name or not call.name:
                continue
            if response.confidence is Confidence.INFERRED:
                continue
            if response.by_user and response.name == CONFIRMATION:
                if misdirected is None:
                    misdirected = _misdirected(log)
                if id(response) in misdirected:
                    continue  # EXH113
            parts = [Part("call", call), Part("response", response)]
            message = f"The response to {named(call)} has the name {shown(response.name)}."
            yield of_parts(self, log, message, parts, subject=(identity(call), response.entry.event_id))


def _misdirected(log: SessionLog) -> set[int]:
    """The user's responses to gated calls themselves, each by its `id()`."""
    gated_calls = log.approvals.gated if log.approvals is not None else ()
    return {id(response) for gated in gated_calls for response in gated.misdirected}
