from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.migrate.compare import ValueDifference, differences, same, same_time, shown

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert list(differences(value, value)) == []


@given(JSON, JSON)
def test_same_means_no_difference(one: Any, other: Any) -> None:
    if same(one, other):
        assert list(differences(one, other)) == []


@given(JSON)
def test_a_change_anywhere_is_found(value: Any) -> None:
    assert list(differences({"a": [value, 1]}, {"a": [value, 2]})) == [ValueDifference("a[1]", "1", "2")]
    assert list(differences({"a": value}, {})) == [ValueDifference("a", shown(value), None)]
    assert not same({"a": [value, 1]}, {"a": [value, 2]})


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (0, False, False),
        (None, False, False),
        (2**100, float(2**100), True),
        (10**30 + 1, 10**30, False),
        ("1", 1, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([1, 2], [2, 1], False),
        ([], {}, False),
        ("\ud800", "\ud800", True),
    ],
)
def test_numbers_by_value_and_nothing_else(one: Any, other: Any, *, equal: bool) -> None:
    assert (list(differences(one, other)) == []) is equal
    if same(one, other):
        assert equal


def test_places_are_named() -> None:
    one = {"actions": {"state_delta": {"cart": [1, 2, {"x": None}]}}, "author": "user"}
    other = {"actions": {"state_delta": {"cart": [1, 3, {}]}}, "author": "user", "branch": "a"}
    assert list(differences(one, other)) == [
        ValueDifference("actions.state_delta.cart[1]", "2", "3"),
        ValueDifference("actions.state_delta.cart[2].x", "null", None),
        ValueDifference("branch", None, '"a"'),
    ]


def test_long_and_odd_values_are_shown_briefly() -> None:
    assert len(shown("x" * 10_000)) == 200
    assert shown("\ud800") == '"\\ud800"'
    assert shown(10**5000) == "(an integer of more digits than can be written)"


def test_times_are_equal_to_the_microsecond() -> None:
    assert same_time(1796072868.564126, 1796072868.5641262)
    assert not same_time(1796072868.564126, 1796072868.564129)
    assert same_time(None, None)
    assert not same_time(None, 0.0)
