"""Decoded pickles become the JSON that pydantic, and so ADK 2.13, makes of the same objects."""

from __future__ import annotations

import json
import math
import pickle
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exhume.events.actions import PickledActions
from exhume.events.encode import encode, encode_actions, is_actions
from exhume.events.json_text import dump
from exhume.events.shapes import Findings
from exhume.pickles.nodes import EnumValue, ModelValue, SetValue

ZONES = st.none() | st.just(UTC) | st.integers(-14 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m)))
#: Short in every notation: Rust and Python break ties of the last digit differently.
EIGHTHS = st.integers(-(10**6), 10**6).map(lambda number: number / 8)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8)
    | st.datetimes(timezones=ZONES)
    | st.dates()
    | st.times(timezones=ZONES)
    | st.timedeltas()
    | st.decimals()
    | st.uuids()
    | st.builds(complex, EIGHTHS, EIGHTHS)
)
KEYS = st.text(max_size=5) | st.integers() | st.booleans() | st.none() | st.tuples(st.integers(), st.text(max_size=2))
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.frozensets(st.integers(), max_size=1)
        | st.builds(bytearray, st.binary(max_size=4))
    ),
    max_leaves=8,
)


def as_adk_stores(state: dict[str, Any]) -> Any:
    """What google-adk 2.13 stores for a state delta that it reads from a v0 row."""
    from google.adk.events.event import Event
    from google.adk.events.event_actions import EventActions

    actions = EventActions.model_validate(EventActions(state_delta=state).model_dump())
    return Event(actions=actions).model_dump(mode="json", exclude_none=True)["actions"]["state_delta"]


def as_exhume_stores(state: dict[str, Any]) -> Any:
    from google.adk.events.event_actions import EventActions

    read = PickledActions().read(pickle.dumps(EventActions(state_delta=state), protocol=5))
    return json.loads(dump(read.data["state_delta"])), read


def has_twins(value: Any) -> bool:
    """Are there keys that become the same text?"""
    if isinstance(value, dict):
        keys = [as_adk_stores({"k": {key: 0}})["k"] for key in value]
        return len({next(iter(key)) for key in keys}) < len(keys) or any(map(has_twins, value.values()))
    return isinstance(value, (list, tuple)) and any(map(has_twins, value))


@settings(deadline=None, max_examples=300)
@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=3))
def test_every_value_is_what_adk_stores(state: dict[str, Any]) -> None:
    if has_twins(state):
        return
    stored, read = as_exhume_stores(state)
    assert read.problems == ()
    assert stored == json.loads(json.dumps(as_adk_stores(state)))


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        (b"\xff\xfe", ["bytes-to-base64"]),
        (bytearray(b"a"), ["bytes-to-base64"]),
        ((1, 2), ["tuple-to-list"]),
        ({1}, ["set-to-list"]),
        (frozenset({1}), ["frozenset-to-list"]),
        (math.nan, ["nan-to-null"]),
        (-math.inf, ["nan-to-null"]),
        (Decimal("1.50"), ["decimal-to-text"]),
        (UUID(int=1), ["uuid-to-text"]),
        (PurePosixPath("/a"), ["path-to-text"]),
        (datetime(2026, 1, 1), ["datetime-to-text"]),
        (date(2026, 1, 1), ["date-to-text"]),
        (time(1), ["time-to-text"]),
        (timedelta(1), ["timedelta-to-text"]),
        (UTC, ["timezone-to-text"]),
        (1j, ["complex-to-text"]),
        ({1: {(2, 3): 4}}, ["key-to-text", "key-to-text"]),
        ({"plain": [1, "a", None, True, 2.5, 10**30]}, []),
    ],
)
def test_each_conversion_is_recorded(value: Any, kinds: list[str]) -> None:
    stored, read = as_exhume_stores({"v": value})
    assert [loss.kind for loss in read.losses] == kinds
    assert all(loss.place.startswith("actions.state_delta.v") for loss in read.losses)
    assert stored == as_adk_stores({"v": value})


def test_places_name_the_part_and_never_the_value() -> None:
    _, read = as_exhume_stores({"cart": [1, {"secret": b"hunter2"}]})
    assert [loss.place for loss in read.losses] == ["actions.state_delta.cart[1].secret"]


def test_keys_that_become_the_same_text_are_refused() -> None:
    _, read = as_exhume_stores({"v": {1: "a", "1": "b"}})
    (problem,) = read.problems
    assert problem.fatal
    assert "same text" in problem.reason
    assert read.data["state_delta"] == {"v": {"1": "a"}}


def test_sets_come_in_one_order() -> None:
    orders = [SetValue(["b", "a", "c"]), SetValue(["c", "b", "a"]), SetValue([3, 10, 2]), SetValue(["a", 1, None])]
    found = [encode(one, "x", Findings()) for one in orders]
    assert found == [["a", "b", "c"], ["a", "b", "c"], [2, 3, 10], [None, 1, "a"]]


def test_objects_and_enums_at_model_fields_are_no_loss() -> None:
    confirmation = ModelValue(
        "google.adk.tools.tool_confirmation", "ToolConfirmation", {"hint": "h", "confirmed": False, "payload": None}
    )
    value = ModelValue(
        "google.adk.events.event_actions",
        "EventActions",
        {"state_delta": {}, "requested_tool_confirmations": {"c": confirmation}, "escalate": None},
    )
    encoded = encode_actions(value)
    assert encoded.data["requested_tool_confirmations"] == {"c": {"hint": "h", "confirmed": False}}
    assert (encoded.losses, encoded.faults) == ((), ())


def test_objects_in_application_data_keep_their_nulls() -> None:
    from google.genai import types

    part = types.Part(text="x", inline_data=types.Blob(data=b"\xff", mime_type="m"))
    stored, read = as_exhume_stores({"p": part})
    assert stored == as_adk_stores({"p": part})
    assert stored["p"]["thought"] is None
    assert {loss.kind for loss in read.losses} == {"object-to-json"}


def test_an_enum_gives_its_value() -> None:
    found = Findings()
    assert encode(EnumValue("shop", "Priority", "high", "HIGH"), ("actions", "x"), found) == "high"
    assert [loss.kind for loss in found.losses] == ["enum-to-value"]


def test_only_event_actions_are_actions() -> None:
    assert is_actions({})
    assert is_actions(ModelValue("google.adk.events.event_actions", "EventActions", {}))
    assert not is_actions(ModelValue("evil", "EventActions", {}))
    assert not is_actions(7)


@pytest.mark.parametrize(
    ("cell", "rule", "fatal"),
    [
        (None, "EXH503", False),
        (pickle.dumps(None), "EXH503", False),
        (pickle.dumps(7), "EXH503", True),
        (pickle.dumps({}), "EXH503", False),
        (pickle.dumps(print), "EXH501", True),
        (b"", "EXH502", True),
        (b"\x80\x05}", "EXH502", True),
        (7, "EXH502", True),
        ("not json", "EXH502", True),
        ('{"state_delta": {"a": 1}}', "EXH503", False),
    ],
)
def test_odd_cells(cell: Any, rule: str, fatal: bool) -> None:
    read = PickledActions().read(cell)
    assert [(problem.rule, problem.fatal) for problem in read.problems] == [(rule, fatal)]
    assert read.data.keys() >= {"artifact_delta", "requested_auth_configs", "requested_tool_confirmations"}


@pytest.mark.parametrize(
    ("cell", "rule", "fatal"),
    [
        (pickle.dumps({"unknown": 1}), "EXH307", True),
        (pickle.dumps({"state_delta": [1]}), "EXH307", True),
        (pickle.dumps({}) + b"junk", "EXH504", False),
    ],
)
def test_odd_cells_in_the_form_of_a_dict(cell: Any, rule: str, fatal: bool) -> None:
    problems = [(problem.rule, problem.fatal) for problem in PickledActions().read(cell).problems]
    assert sorted(problems) == sorted([(rule, fatal), ("EXH503", False)])


def test_millions_of_conversions_stay_small() -> None:
    shared: Any = (1,)
    for _ in range(4):
        shared = [shared] * 20
    _, read = as_exhume_stores({"v": shared})
    assert len(read.losses) == 20**4
    assert len({id(loss) for loss in read.losses}) < 1_100


@pytest.mark.parametrize("key", [None, 1, 1.5, math.nan, True, (1, 2), b"x"], ids=repr)
@pytest.mark.parametrize("item", [None, {}, 7])
def test_field_names_that_are_no_text_are_refused_by_their_text(key: Any, item: Any) -> None:
    made = encode_actions({"state_delta": {}, key: item})
    assert len(made.faults) == 1
    assert made.faults[0].place.startswith("actions.")
    assert all(type(name) is str for name in made.data)


@pytest.mark.parametrize("field", ["artifact_delta", "requested_tool_confirmations", "agent_state", "state_delta"])
def test_keys_that_become_the_same_text_are_refused_in_every_field(field: str) -> None:
    item: Any = {"hint": "x"} if field == "requested_tool_confirmations" else 1
    made = encode_actions({field: {1: item, "1": item}})
    assert [fault.place for fault in made.faults] == [f"actions.{field}.1"]
    assert [loss.kind for loss in made.losses].count("key-to-text") == 1


def test_a_field_is_not_overruled_by_an_extra_field_of_the_same_name() -> None:
    value = ModelValue(
        "google.adk.events.event_actions", "EventActions", {"state_delta": {"a": 1}}, {"state_delta": {"b": 2}}
    )
    made = encode_actions(value)
    assert made.data["state_delta"] == {"a": 1}
    assert [fault.place for fault in made.faults] == ["actions.state_delta"]
