"""Hashes of values: equal exactly for what JSON holds equally."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.audit.digest import digest, quick_digest, same

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.text(st.characters(categories=["Cs", "L"]))
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


def shuffled(value: Any) -> Any:
    """The same value with keys in another order, whole floats as integers, NaN as null."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return [shuffled(item) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() else value
    return value


@given(VALUES)
def test_equal_values_have_equal_digests(value: Any) -> None:
    assert digest(value) == digest(shuffled(value))
    assert same(value, shuffled(value))
    assert quick_digest(value) == quick_digest(json.loads(json.dumps(value)))


@given(VALUES, VALUES)
def test_different_values_have_different_digests(one: Any, other: Any) -> None:
    equal = json.dumps(shuffled(one), sort_keys=True) == json.dumps(shuffled(other), sort_keys=True)
    assert (digest(one) == digest(other)) is equal
    assert same(one, other) is equal


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        ("1", 1),
        (None, "null"),
        ([], {}),
        ("\ud800", "\ud801"),
        (10**400, 10**400 + 1),
        ("a", ["a"]),
    ],
)
def test_values_that_only_look_alike(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)
    assert quick_digest(one) != quick_digest(other)
    assert not same(one, other)


def test_big_numbers_and_depth_end_in_a_digest() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    assert len(digest(deep)) == len(quick_digest(deep)) == len(digest(10**20_000)) == 16
    assert digest(1e300) == digest(int(1e300))
