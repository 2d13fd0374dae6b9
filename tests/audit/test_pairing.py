"""Order, pairs and rewinds of one session."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from exhume.audit.findings import Confidence
from exhume.audit.log import Call, Response, SessionLog
from exhume.audit.pairing import build_log
from exhume.events.model import EventKey, EventRecord, Problem
from tests.audit.building import KEY, build, log_of


def pairs(log: SessionLog) -> dict[str, str | None]:
    """Event of each response -> event of its call."""
    return {one.entry.event_id: one.call.entry.event_id if one.call else None for one in log.responses}


def order(log: SessionLog) -> list[str]:
    return [entry.event_id for entry in log.entries]


def test_a_response_pairs_with_the_newest_call_before_it() -> None:
    log = log_of(
        {"call": {"id": "call_1"}},
        {"response": {"id": "call_1"}},
        {"call": {"id": "call_1"}},
        {"response": {"id": "call_1"}},
        {"response": {"id": "call_1"}},
    )
    assert pairs(log) == {"e2": "e1", "e4": "e3", "e5": "e3"}
    assert [len(call.responses) for call in log.calls] == [1, 2]


def test_the_same_branch_comes_first_then_any() -> None:
    log = log_of(
        {"call": {"id": "x"}, "branch": "root.left"},
        {"call": {"id": "x"}, "branch": "root.right"},
        {"response": {"id": "x"}, "branch": "root.left"},
        {"response": {"id": "x"}},
        {"response": {"id": "x"}, "branch": "root.third"},
    )
    assert pairs(log) == {"e3": "e1", "e4": "e2", "e5": "e2"}


def test_without_ids_the_oldest_open_call_of_the_name_is_inferred() -> None:
    log = log_of(
        {"call": [{"name": "a"}, {"name": "b"}]},
        {"call": {"name": "a"}},
        {"response": {"name": "a"}},
        {"response": {"name": "a"}},
        {"response": {"name": "c"}},
    )
    assert pairs(log) == {"e3": "e1", "e4": "e2", "e5": None}
    assert {response.confidence for response in log.responses} == {Confidence.INFERRED}


def test_an_unknown_id_pairs_with_a_call_without_one_and_the_reverse() -> None:
    log = log_of({"call": {"name": "a"}}, {"response": {"id": "x", "name": "a"}})
    assert pairs(log) == {"e2": "e1"}
    assert log.responses[0].confidence is Confidence.INFERRED
    log = log_of({"call": {"id": "x"}}, {"call": {"id": "y"}}, {"response": {"id": "x"}}, {"response": {}})
    assert pairs(log) == {"e3": "e1", "e4": "e2"}
    assert [response.confidence for response in log.responses] == [Confidence.EXACT, Confidence.INFERRED]


def test_an_unknown_id_does_not_take_a_call_that_has_one() -> None:
    log = log_of({"call": {"id": "x"}}, {"response": {"id": "y"}})
    assert pairs(log) == {"e2": None}


def test_partial_events_hold_no_calls_or_responses() -> None:
    log = log_of({"call": {"id": "x"}, "partial": True}, {"response": {"id": "x"}, "partial": True}, {"text": "hi"})
    assert log.calls == []
    assert log.responses == []
    assert [entry.event_id for entry in log.partials] == ["e1", "e2"]


def test_the_clock_decides_before_the_storage() -> None:
    log = log_of({"at": 3, "text": "c"}, {"at": 1, "text": "a"}, {"at": 2, "text": "b"})
    assert order(log) == ["e2", "e3", "e1"]
    assert [entry.index for entry in log.entries] == [0, 1, 2]
    assert log.order_known


def test_among_equal_times_a_call_comes_before_its_response() -> None:
    log = log_of(
        {"at": 1, "text": "first"},
        {"at": 1, "response": {"id": "y"}},
        {"at": 1, "response": {"id": "x"}, "call": {"id": "y"}},
        {"at": 1, "call": {"id": "x"}},
        {"at": 1, "text": "last"},
    )
    assert order(log) == ["e1", "e4", "e3", "e2", "e5"]
    assert pairs(log) == {"e3": "e4", "e2": "e3"}
    assert [call.ordinal for call in log.calls] == [0, 1]


def test_among_equal_times_a_repeated_id_keeps_its_storage_order() -> None:
    log = log_of(
        {"at": 1, "call": {"id": "x"}},
        {"at": 1, "response": {"id": "x"}},
        {"at": 1, "call": {"id": "x"}},
        {"at": 1, "response": {"id": "x"}},
    )
    assert order(log) == ["e1", "e2", "e3", "e4"]


def test_events_that_answer_each_other_keep_their_storage_order() -> None:
    log = log_of(
        {"at": 1, "call": {"id": "x"}, "response": {"id": "y"}},
        {"at": 1, "call": {"id": "y"}, "response": {"id": "x"}},
    )
    assert order(log) == ["e1", "e2"]


def test_equal_times_are_no_order_where_the_storage_has_none() -> None:
    events = [{"at": 1, "text": "a"}, {"at": 1, "text": "b"}]
    assert log_of(*events).order_known
    assert not log_of(*events, storage_ordered=False).order_known
    assert log_of({"at": 1, "text": "a"}, {"at": 2, "text": "b"}, storage_ordered=False).order_known


def test_an_event_without_time_stays_with_its_neighbour_in_storage() -> None:
    source, _ = build({"sessions": [{"events": [{"at": 5, "text": "b"}, {"text": "c"}, {"at": 1, "text": "a"}]}]})
    source.records[1].time = None
    assert order(build_log(KEY, None, source.records)) == ["e3", "e1", "e2"]


def test_an_event_without_time_after_a_clock_that_went_back() -> None:
    source, _ = build({"sessions": [{"events": [{"at": 5, "text": "b"}, {"at": 1, "text": "a"}, {"text": "c"}]}]})
    source.records[2].time = None
    assert order(build_log(KEY, None, source.records)) == ["e2", "e3", "e1"]


def test_a_response_before_its_call_by_the_clock_only() -> None:
    log = log_of({"at": 5, "call": {"id": "x"}}, {"at": 3, "response": {"id": "x"}})
    assert pairs(log) == {"e2": "e1"}
    assert log.responses[0].against_clock


def test_a_response_before_its_call_by_both_orders() -> None:
    log = log_of({"response": {"id": "x"}}, {"call": {"id": "x"}})
    response, call = log.responses[0], log.calls[0]
    assert response.call is None
    assert response.late_call is call
    assert call.early == [response]


def test_what_could_not_be_read_is_known() -> None:
    source, _ = build({"sessions": [{"events": [{"event_data": "{"}, {"text": "hi"}]}]})
    log = build_log(KEY, None, source.records)
    assert [entry.event_id for entry in log.unread] == ["e1"]
    assert log.entries[0].blind


def test_actions_that_could_not_be_read_leave_the_content_known() -> None:
    problem = {"rule": "EXH501", "column": "actions", "reason": "unsafe"}
    source, _ = build({"layout": "v0", "sessions": [{"events": [{"call": {"id": "x"}, "problems": [problem]}]}]})
    log = build_log(KEY, None, source.records)
    assert log.unread == []
    assert log.entries[0].blind


def test_nothing_in_hostile_parts_raises() -> None:
    parts: list[Any] = [
        None,
        7,
        {"function_call": None},
        {"function_call": {"id": {"a": 1}, "name": ["x"], "args": 5}},
        {"function_call": {"id": 5, "name": "n"}},
        {"function_call": {"id": 10**5000, "name": "n"}},
        {"function_response": {"id": "5", "name": None, "response": []}},
        {"function_response": {"id": True}},
    ]
    data: list[dict[str, Any]] = [
        {"content": {"parts": parts}, "author": 5, "actions": [], "long_running_tool_ids": [[], 5, None]},
        {"content": {"parts": {}}, "actions": {"requested_tool_confirmations": 5, "rewind_before_invocation_id": []}},
        {"content": "text", "actions": {"compaction": 7}, "branch": 7, "isolation_scope": {}, "partial": "yes"},
    ]
    records = [
        EventRecord(EventKey(*KEY, f"e{place}"), place, None, 1.0, float("nan") if place else None, one)
        for place, one in enumerate(data)
    ]
    records.append(EventRecord(EventKey(*KEY, "e9"), 9, None, None, None, None, (), (Problem("EXH307", "x", "y", ""),)))
    log = build_log(KEY, None, records)
    assert [call.id for call in log.calls] == [None, "5", None]
    assert [call.long_running for call in log.calls] == [False, True, False]
    assert log.responses[0].call is log.calls[1]


EVENTS = st.lists(
    st.fixed_dictionaries(
        {"at": st.integers(0, 6), "inv": st.sampled_from(["i1", "i2", "i3"])},
        optional={
            "call": st.fixed_dictionaries({"id": st.sampled_from(["x", "y", "adk-1", ""])}),
            "response": st.fixed_dictionaries({"id": st.sampled_from(["x", "y", "adk-1", "z", ""])}),
            "branch": st.sampled_from(["a", "b"]),
            "partial": st.just(True),
            "actions": st.fixed_dictionaries({"rewind_before_invocation_id": st.sampled_from(["i1", "i2", "i9"])}),
        },
    ),
    max_size=12,
)


@given(EVENTS, st.integers(0, 1000))
@settings(max_examples=150, deadline=None)
def test_the_order_in_which_rows_arrive_does_not_matter(events: list[dict[str, Any]], seed: int) -> None:
    source, _ = build({"sessions": [{"events": events}]})
    log = build_log(KEY, None, source.records)
    shuffled = list(source.records)
    random.Random(seed).shuffle(shuffled)
    again = build_log(KEY, None, shuffled)
    assert order(log) == order(again)
    assert pairs(log) == pairs(again)
    assert log.rewound == again.rewound


@given(EVENTS)
@settings(max_examples=150, deadline=None)
def test_what_holds_of_every_pair(events: list[dict[str, Any]]) -> None:
    log = log_of(*events)
    assert [entry.index for entry in log.entries] == list(range(len(log.entries)))
    assert [entry.time for entry in log.entries] == sorted(entry.time or 0.0 for entry in log.entries)
    for response in log.responses:
        _check_pair(log.calls, response)
    for call in log.calls:
        assert all(response.call is call for response in call.responses)


def _check_pair(calls: list[Call], response: Response) -> None:
    same_id = [call for call in calls if call.id == response.id and call.id is not None]
    before = [call for call in same_id if call.entry.index <= response.entry.index]
    if before:
        branch = [call for call in before if call.entry.branch == response.entry.branch]
        assert response.call is (branch or before)[-1]
        assert not response.against_clock
    elif same_id:
        position = response.entry.record.position
        assert (response.call is None) == all(call.entry.record.position > position for call in same_id)
    elif response.call is not None:
        assert response.confidence is Confidence.INFERRED
        assert response.call.name == response.name


@given(EVENTS)
@settings(max_examples=100, deadline=None)
def test_rewinds_take_back_what_adk_takes_back(events: list[dict[str, Any]]) -> None:
    from google.adk.events._rewind_events import _apply_rewinds
    from google.adk.events.event import Event
    from google.adk.events.event_actions import EventActions

    log = log_of(*events)
    real = [
        Event(
            id=entry.event_id,
            author="user",
            invocation_id=entry.invocation_id,
            actions=EventActions(rewind_before_invocation_id=entry.actions.get("rewind_before_invocation_id")),
        )
        for entry in log.entries
    ]
    live = {event.id for event in _apply_rewinds(real)}
    taken = log.rewound or [False] * len(log.entries)
    for entry in log.entries:
        if entry.actions.get("rewind_before_invocation_id"):
            continue  # ADK hides a rewind event itself, whether it took anything back or not
        assert taken[entry.index] == (entry.event_id not in live)
