"""Digests of arguments: equal exactly where the JSON values are."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from exhume.audit.canonical import canonical

VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 1.0, -0.0, 1e300]), st.text(max_size=2)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)),
    max_leaves=8,
)


def plain(value: Any) -> str:
    """The value as text, where booleans are told from numbers and 1 is 1.0."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"number {int(value) if float(value).is_integer() else value!r}"
    if isinstance(value, list):
        return f"[{','.join(map(plain, value))}]"
    return f"{{{','.join(f'{json.dumps(key)}:{plain(value[key])}' for key in sorted(value))}}}"


@given(VALUES, VALUES)
@settings(max_examples=300, deadline=None)
def test_equal_digests_mean_equal_values(left: Any, right: Any) -> None:
    assert (canonical(left) == canonical(right)) == (plain(left) == plain(right))


@given(VALUES)
@settings(max_examples=100, deadline=None)
def test_the_order_of_keys_does_not_count(value: Any) -> None:
    assert canonical(turned(value)) == canonical(value)


def turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(item) for item in value] if isinstance(value, list) else value


def test_what_is_told_apart_and_what_is_not() -> None:
    assert canonical(300) == canonical(300.0) == canonical(3e2)
    assert canonical(True) != canonical(1)
    assert canonical("1") != canonical(1)
    assert canonical(["ab"]) != canonical(["a", "b"])
    assert canonical({"a": None}) != canonical({})
    assert canonical({"a": 1}) != canonical(["a", 1])
    assert canonical(10**5000) != canonical(10**5000 + 1)
    assert canonical(float("nan")) == canonical(float("nan"))
    assert canonical(0.0) == canonical(-0.0)


def test_values_nested_deeper_than_any_recursion() -> None:
    deep: Any = 1
    other: Any = 2
    for _ in range(100_000):
        deep, other = [deep], {"a": other}
    assert canonical(deep) != canonical(other)


def test_lone_surrogates_have_a_digest() -> None:
    assert canonical("\ud800") != canonical("\udc80")
