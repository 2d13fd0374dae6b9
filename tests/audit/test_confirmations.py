"""Requests, decisions and gated calls of one session."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from exhume.audit.confirmations import OpenRequests, asked_again, waits_for_person
from exhume.audit.findings import Confidence
from exhume.audit.log import Approvals
from tests.audit.building import log_of


def approvals_of(*events: dict[str, Any]) -> Approvals:
    found = log_of(*events).approvals
    assert found is not None
    return found


CALL = {"call": {"id": "adk-t", "name": "refund"}}
HOLD = {"hold": {"id": "adk-t"}}
ASK = {"ask": {"id": "adk-c", "for": "adk-t"}}
YES = {"answer": {"id": "adk-c", "confirmed": True}}
RESULT = {"response": {"id": "adk-t", "name": "refund", "body": {"receipt": "r1"}}}


def test_a_session_without_a_trace_of_confirmations_has_no_approvals() -> None:
    assert log_of({"call": {"id": "x"}}, {"response": {"id": "x"}}).approvals is None


def test_the_story_of_one_gated_call() -> None:
    found = approvals_of(CALL, ASK, HOLD, YES, RESULT)
    (gated,), (request,) = found.gated, found.requests
    assert request.gated is gated
    assert [decision.approved for decision in gated.decisions] == [True]
    assert [response.entry.event_id for response in gated.placeholders] == ["e3"]
    assert [response.entry.event_id for response in gated.executions] == ["e5"]
    assert [entry.event_id for entry in gated.wanted] == ["e3"]
    assert (gated.early, gated.refusals, gated.sealed, gated.misdirected, found.strays) == ([], [], [], [], [])


def test_one_adk_id_is_one_request_and_one_call_however_often_stored() -> None:
    found = approvals_of(CALL, HOLD, ASK, YES, RESULT, CALL, ASK, YES, RESULT)
    (gated,), (request,) = found.gated, found.requests
    assert [len(gated.calls), len(request.calls), len(request.decisions), len(gated.executions)] == [2, 2, 2, 2]


def test_adks_text_makes_a_placeholder_only_where_its_actions_may_be_lost_or_wrongly_keyed() -> None:
    text = {"error": "This tool call requires confirmation, please approve or reject."}
    lost = {"response": {"id": "adk-t", "name": "refund", "body": text}}
    wrong = lost | {"actions": {"requested_tool_confirmations": {"adk-other": {}}}}
    marked = lost | {"actions": {"skip_summarization": True}}
    for event in (lost, wrong, marked):
        (gated,) = approvals_of(CALL, ASK, event, YES, RESULT).gated
        assert [response.entry.event_id for response in gated.placeholders] == ["e3"]
        assert [response.entry.event_id for response in gated.executions] == ["e5"]
    (gated,) = approvals_of(CALL, ASK, lost | {"delta": {"paid": 5}}, YES, RESULT).gated
    assert [response.entry.event_id for response in gated.early] == ["e3"]


def test_without_ids_the_call_is_found_by_name_and_arguments() -> None:
    def call(order: int) -> dict[str, Any]:
        return {"call": {"name": "refund", "args": {"order": order}}}

    args = {"originalFunctionCall": {"name": "refund", "args": {"order": 1.0}}}
    found = approvals_of(call(1), call(2), {"call": {"id": "adk-c", "name": "adk_request_confirmation", "args": args}})
    request = found.requests[0]
    assert request.gated is not None
    assert request.gated.call.entry.event_id == "e1"
    assert request.confidence is Confidence.INFERRED


def test_only_a_users_answer_decides_and_only_the_abort_seals() -> None:
    agent = {"author": "agent", "response": {"id": "adk-c", "name": "adk_request_confirmation"}}
    found = approvals_of(CALL, HOLD, ASK, agent)
    assert (found.requests[0].decisions, found.requests[0].sealed) == ([], None)
    sealed = agent | {"error_code": "INVOCATION_ABORTED"}
    found = approvals_of(CALL, HOLD, ASK, sealed, YES)
    assert found.requests[0].sealed is not None
    assert found.requests[0].closed == 3


def test_calls_that_wait_for_a_person_are_known_from_actions_and_from_requests() -> None:
    log = log_of(
        {"text": "a", "actions": {"requested_auth_configs": {"a": {}}, "requested_tool_confirmations": {"b": {}}}},
        {"call": {"id": "q", "name": "adk_request_credential", "args": {"functionCallId": "c"}}},
        {"call": {"id": "r", "name": "adk_request_credential", "args": {"function_call_id": "d"}}},
        {"call": {"id": "s", "name": "adk_request_credential", "args": [1]}},
        {"ask": {"id": "t", "for": "e"}},
        {"call": {"id": "u", "name": "adk_request_confirmation", "args": {"originalFunctionCall": 5}}},
    )
    assert waits_for_person(log) == {"a", "b", "c", "d", "e"}


def test_a_confirmation_in_steps() -> None:
    ask, yes = {"ask": {"id": "adk-c2", "for": "adk-t"}}, {"answer": {"id": "adk-c2", "confirmed": True}}
    assert asked_again(approvals_of(CALL, HOLD, ASK, YES, HOLD, ask, yes, RESULT).gated[0])
    assert not asked_again(approvals_of(CALL, HOLD, ASK, YES, RESULT, HOLD, ask, yes, RESULT).gated[0])
    assert not asked_again(approvals_of(CALL, HOLD, ASK, ask, YES, yes, RESULT).gated[0])
    assert not asked_again(approvals_of(CALL, HOLD, ASK, YES, HOLD, YES).gated[0])
    assert not asked_again(approvals_of(CALL, HOLD, ASK, YES, RESULT).gated[0])


STEPS = st.lists(
    st.one_of(
        st.integers(0, 3).map(lambda n: {"ask": {"id": f"adk-c{n}", "for": "adk-t"}}),
        st.integers(0, 3).map(lambda n: {"answer": {"id": f"adk-c{n}", "confirmed": True}}),
        st.integers(0, 3).map(lambda n: {"answer": {"id": f"adk-c{n}", "confirmed": None}}),
        st.just({"text": "hm"}),
    ),
    max_size=10,
)


@given(STEPS)
@settings(max_examples=200, deadline=None)
def test_open_requests_are_those_presented_and_not_closed(steps: list[dict[str, Any]]) -> None:
    log = log_of(CALL, HOLD, *steps)
    assert log.approvals is not None
    requests = log.approvals.requests
    known = OpenRequests(requests)
    for index in range(len(log.entries)):
        still_open = [one for one in requests if one.index <= index and (one.closed is None or one.closed >= index)]
        found = known.at(index)
        assert (found in still_open) if still_open else (found is None)
