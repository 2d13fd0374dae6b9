"""Tool confirmations of one session: requests, the decisions on them, and what happened to the gated calls.

How ADK writes them (google.adk.flows.llm_flows.functions and request_confirmation, 1.14.0 to 2.13.0): a gated call T is
answered by a placeholder response whose event's `requested_tool_confirmations` holds T's id; a call C named
`adk_request_confirmation` presents it; the user answers C; a second response to T holds the result. The order of the
placeholder and C varies by release.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import Any

from exhume.audit.canonical import arguments, canonical
from exhume.audit.decisions import (
    REJECTED_BY_ADK,
    is_sealed,
    read_decision,
    says_refused,
    says_unknown_tool,
    says_wanted,
)
from exhume.audit.findings import Confidence
from exhume.audit.log import (
    CONFIRMATION,
    CREDENTIAL,
    WANTED_CONFIRMATIONS,
    WANTED_CREDENTIALS,
    Approvals,
    Call,
    Decision,
    Entry,
    GatedCall,
    Request,
    Response,
    SessionLog,
)


def original_call(call: Call) -> dict[str, Any]:
    """What a confirmation request says that it asks about: `{id, name, args}`; `{}` when it says nothing readable."""
    if not isinstance(call.args, dict):
        return {}
    found = call.args.get("originalFunctionCall", call.args.get("original_function_call"))
    return found if isinstance(found, dict) else {}


def target_id(call: Call) -> str:
    """Id of the call that a request for a confirmation or a credential is about; empty where it names none."""
    if call.name == CONFIRMATION:
        ident = original_call(call).get("id")
    elif call.name == CREDENTIAL and isinstance(call.args, dict):
        ident = call.args.get("functionCallId", call.args.get("function_call_id"))
    else:
        return ""
    return ident if isinstance(ident, str) else ""


def _may_lack_confirmations(entry: Entry) -> bool:
    """Can `requested_tool_confirmations` of this event be lost or wrongly keyed? Not where other actions are there; the
    mark `skip_summarization` comes with every placeholder and does not count."""
    if entry.blind or entry.asked(WANTED_CONFIRMATIONS):
        return True
    return not any(value for name, value in entry.actions.items() if name != "skip_summarization")


def waits_for_person(log: SessionLog) -> frozenset[str]:
    """Ids of calls that may get a second response because a person was asked: for a confirmation or a credential."""
    found: set[str] = set()
    for entry in log.asking:
        found.update(entry.asked(WANTED_CONFIRMATIONS), entry.asked(WANTED_CREDENTIALS))
    found.update(target_id(call) for call in log.calls if call.name in (CONFIRMATION, CREDENTIAL))
    return frozenset(found - {""})


class _Calls:
    """Looks up the call that a request or a placeholder means."""

    def __init__(self, log: SessionLog) -> None:
        self.by_id: dict[str, list[Call]] = {}
        self.by_branch: dict[tuple[str, str], list[Call]] = {}
        self.without_id: list[Call] = []
        self.alike_by_content: dict[tuple[str, bytes], list[Call]] | None = None
        for call in log.calls:
            if call.name == CONFIRMATION:
                continue
            if call.id is None:
                self.without_id.append(call)
            else:
                self.by_id.setdefault(call.id, []).append(call)
                if not call.own_id:
                    self.by_branch.setdefault((call.entry.branch, call.id), []).append(call)

    def meant(self, ident: str, at: Entry) -> list[Call]:
        """All stored calls under an `adk-` id; of calls under a model's id the newest up to `at`, same branch first."""
        calls = self.by_id.get(ident, [])
        if not calls or calls[0].own_id:
            return calls
        return newest(self.by_branch.get((at.branch, ident), []), at) or newest(calls, at) or calls[:1]

    def alike(self, name: Any, args: Any, at: Entry) -> list[Call]:
        """The newest call without id of that name and those arguments up to `at`."""
        if not self.without_id or not isinstance(name, str):
            return []
        if self.alike_by_content is None:
            self.alike_by_content = {}
            for call in self.without_id:
                self.alike_by_content.setdefault((call.name, arguments(call)), []).append(call)
        return newest(self.alike_by_content.get((name, canonical(args or {})), []), at)


def newest(calls: list[Call], at: Entry) -> list[Call]:
    """The last of `calls`, which are in causal order, that does not stand after `at`; empty where all do."""
    place = bisect_right(calls, at.index, key=lambda call: call.entry.index)
    return calls[place - 1 : place] if place else []


class _Builder:
    """Builds `Approvals` of one session."""

    def __init__(self, log: SessionLog) -> None:
        self.log = log
        self.calls = _Calls(log)
        self.result = Approvals()
        self.request_of: dict[int, Request] = {}
        self.gated_of: dict[int, GatedCall] = {}

    def build(self) -> Approvals:
        self.find_requests()
        self.find_placeholders()
        self.find_answers()
        for gated in self.result.gated:
            self.sort_responses(gated)
        return self.result

    def find_requests(self) -> None:
        by_id: dict[str, Request] = {}
        for call in self.log.calls:
            if call.name != CONFIRMATION:
                continue
            request = by_id.get(call.id) if call.id is not None and call.own_id else None
            if request is None:
                request = Request([call], original_call(call))
                self.result.requests.append(request)
                if call.id is not None:
                    by_id[call.id] = request
                self.link(request)
            else:
                request.calls.append(call)
            self.request_of[id(call)] = request

    def link(self, request: Request) -> None:
        """Finds the call that the request asks about."""
        ident, at = request.original.get("id"), request.calls[0].entry
        if isinstance(ident, str) and ident:
            calls = self.calls.meant(ident, at)
        else:
            calls = self.calls.alike(request.original.get("name"), request.original.get("args"), at)
            request.confidence = Confidence.INFERRED
        if calls:
            request.gated = self.gated(calls)
            request.gated.requests.append(request)

    def gated(self, calls: list[Call]) -> GatedCall:
        found = self.gated_of.get(id(calls[0]))
        if found is None:
            found = GatedCall(list(calls))
            self.result.gated.append(found)
            for call in calls:
                self.gated_of[id(call)] = found
        return found

    def find_placeholders(self) -> None:
        for entry in self.log.asking:
            if entry.partial:
                continue
            wanted = entry.asked(WANTED_CONFIRMATIONS)
            if not wanted:
                continue
            answered = {response.id: response for response in entry.responses if not response.by_user}
            for ident in wanted:
                response = answered.get(ident)
                if response is not None and response.call is not None:
                    own = self.calls.meant(ident, entry) if response.call.own_id else []
                    gated = self.gated(own or [response.call])
                    gated.placeholders.append(response)
                    gated.wanted.append(entry)
                else:
                    calls = self.calls.meant(ident, entry)
                    if calls:
                        self.gated(calls).wanted.append(entry)

    def find_answers(self) -> None:
        for response in self.log.responses:
            request = self.request_of.get(id(response.call)) if response.call is not None else None
            if request is None:
                if response.by_user and response.name == CONFIRMATION and self.is_stray(response):
                    self.result.strays.append(response)
            elif not response.by_user:
                if is_sealed(response):
                    request.sealed = request.sealed or response
            elif response.name in (CONFIRMATION, ""):
                approved, payload, lax, reason = read_decision(response.body)
                request.decisions.append(Decision(response, request, approved, payload, lax, reason))

    def is_stray(self, response: Response) -> bool:
        if response.call is not None or response.late_call is not None:
            return False
        return response.id is not None or not self.result.requests

    def sort_responses(self, gated: GatedCall) -> None:
        """Says of each response to a gated call what it is."""
        placeholders = set(map(id, gated.placeholders))
        decisions = gated.decisions
        responses = [response for call in gated.calls for response in call.responses]
        responses.sort(key=lambda response: response.entry.index)
        place = 0
        latest: Decision | None = None
        for response in responses:
            index = response.entry.index
            while place < len(decisions) and decisions[place].index < index:
                latest = decisions[place] if decisions[place].approved is not None or latest is None else latest
                place += 1
            if response.by_user:
                gated.misdirected.append(response)
            elif id(response) in placeholders:
                continue
            elif is_sealed(response):
                gated.sealed.append(response)
            elif says_unknown_tool(response.body):
                gated.unknown_tool.append(response)
            elif self.is_lost_placeholder(gated, response, place):
                gated.placeholders.append(response)
            elif self.is_refusal(response, latest):
                gated.refusals.append(response)
            elif place == 0:
                gated.early.append(response)
            else:
                gated.executions.append(response)

    def is_lost_placeholder(self, gated: GatedCall, response: Response, decided: int) -> bool:
        """A placeholder whose event lost its actions: known by ADK's fixed text, else presumed of the first response
        before any decision on a call that has no placeholder at all."""
        if not _may_lack_confirmations(response.entry):
            return False
        if says_wanted(response.body):
            return True
        return not gated.placeholders and not gated.early and decided == 0

    def is_refusal(self, response: Response, latest: Decision | None) -> bool:
        body = response.body
        if isinstance(body, dict) and body.get("error") == REJECTED_BY_ADK:
            return True
        if latest is not None and latest.approved:
            return False
        return says_refused(body) and not says_wanted(body)


def read_approvals(log: SessionLog) -> Approvals:
    """Requests, decisions and gated calls of a session whose calls and responses are paired."""
    return _Builder(log).build()


def asked_again(gated: GatedCall) -> bool:
    """Did the tool itself ask again after each approval but the last, before it ran: a confirmation in steps?"""
    decisions = [decision for decision in gated.decisions if decision.approved is not None]
    executions = [response.entry.index for response in gated.executions]
    placeholders = sorted(response.entry.index for response in gated.placeholders)
    for earlier, later in pairwise(decisions):
        if earlier.request is later.request or not earlier.approved:
            return False
        if _any_between(executions, earlier.index, later.index):
            return False
        if not _any_between(placeholders, earlier.index, later.index):
            return False
    return len(decisions) > 1


def _any_between(indexes: list[int], after: int, before: int) -> bool:
    place = bisect_right(indexes, after)
    return place < len(indexes) and indexes[place] < before


class OpenRequests:
    """Answers which of a gated call's requests stood open at a place in the log."""

    def __init__(self, requests: list[Request]) -> None:
        self.starts: list[int] = []
        self.longest: list[tuple[float, Request]] = []
        self.last = -1
        for request in sorted(requests, key=lambda request: request.index):
            closed = request.closed
            ends = (float("inf") if closed is None else closed, request)
            self.starts.append(request.index)
            self.longest.append(max(ends, self.longest[-1], key=lambda end: end[0]) if self.longest else ends)
            self.last = max(self.last, request.calls[-1].entry.index)

    def at(self, index: int) -> Request | None:
        """A request that was presented up to `index` and neither answered nor sealed before it."""
        place = bisect_right(self.starts, index)
        if not place:
            return None
        end, request = self.longest[place - 1]
        return request if end >= index else None
