"""How answers are read: as the real ToolConfirmation of ADK reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from exhume.audit.decisions import lax_boolean, read_decision, says_refused, says_unknown_tool

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([1.0, 0.0, 0.5, "yes", "NO", "On", "oFF", "1", "0", "t", "f", "y", "n", " yes ", "1.0", "", "ja"]),
    st.floats(allow_nan=True),
    st.text(max_size=4),
    st.just([]),
    st.just({}),
    st.just(10**400),
)
BODIES = st.dictionaries(st.sampled_from(["confirmed", "hint", "payload", "response", "comment"]), SCALARS, max_size=3)
WRAPPED = st.one_of(BODIES, SCALARS).map(lambda value: {"response": json.dumps(value)})


def real_reading(body: dict[str, Any]) -> tuple[bool, Any] | None:
    from google.adk.tools.tool_confirmation import ToolConfirmation

    try:
        found = ToolConfirmation.from_response_dict(body)
    except (ValueError, TypeError):
        return None
    return found.confirmed, found.payload


@given(st.one_of(BODIES, WRAPPED))
@example({})
@example({"response": "{}"})
@example({"response": "true"})
@example({"response": "null"})
@example({"response": {"confirmed": True}})
@example({"response": "{"})
@example({"response": "", "confirmed": True})
@example({"confirmed": "yes"})
@settings(max_examples=400, deadline=None)
def test_a_decision_is_read_as_adk_reads_it(body: dict[str, Any]) -> None:
    reading = read_decision(body)
    real = real_reading(body)
    if real is None:
        assert reading.approved is None
        assert reading.reason
    else:
        assert reading.approved is real[0]
        assert repr(reading.payload) == repr(real[1])  # repr: NaN is not equal to itself
        assert reading.reason == ""


@pytest.mark.parametrize("body", [None, "yes", [True], 5, {"response": "[" * 100_000}, {"response": "1" * 5000}])
def test_what_no_client_of_adk_sends_is_unreadable(body: Any) -> None:
    assert read_decision(body).approved is None


def test_a_lax_approval_keeps_its_value_and_a_lax_denial_does_not() -> None:
    assert read_decision({"confirmed": "ON"}).lax == "ON"
    assert read_decision({"confirmed": 1}).lax == 1
    assert read_decision({"confirmed": True}).lax is None
    assert read_decision({"confirmed": "no"}).lax is None
    assert lax_boolean(float("nan")) is None


@pytest.mark.parametrize(
    "body",
    [
        {"error": "This tool call is rejected."},
        {"error": {"code": 7, "message": "denied by the reviewer"}},
        {"status": "CANCELLED"},
        {"result": "The user declined."},
        {"status": "not approved"},
        {"status": "error", "error_message": "The user rejected the request."},
        {"outcome": "no refund", "reason": "denied by the user"},
        {"result": {"status": "rejected"}},
        {"wrapped": {"error": "This tool call is rejected."}},
        {"errorDetails": "declined"},
        "refused",
    ],
)
def test_a_refusal_says_so(body: Any) -> None:
    assert says_refused(body)


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        {"receipt": "rejected"},
        {"status": "refunded"},
        {"status": 5},
        {"error": None},
        ["rejected"],
        {"status": "ok", "paid": 100, "message": "first card declined, second card charged"},
        {"result": {"status": "Success.", "reason": "the earlier request was cancelled"}},
        {"order": {"status": "rejected"}},
    ],
)
def test_a_result_is_no_refusal(body: Any) -> None:
    assert not says_refused(body)


def test_an_unknown_tool_is_known_by_adks_sentence() -> None:
    assert says_unknown_tool({"error": "Tool 'refund' not found.\nAvailable tools: lookup"})
    assert not says_unknown_tool({"error": "Order 7 not found"})
    assert not says_unknown_tool({"result": "Tool 'refund' not found"})
    assert not says_unknown_tool("Tool 'refund' not found")
