"""The interpreter against the standard library's unpickler, over generated plain data: same bytes, same value."""

from __future__ import annotations

import io
import math
import pickle
import pickletools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exhume.pickles.decoder import Decoder
from exhume.pickles.nodes import SetValue

TEXT = st.text(st.characters(codec=None), max_size=40) | st.sampled_from(
    ["", "\x00", "\ud800", "ü" * 300, "\n", "'\\u0041"]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.sampled_from([2**61 - 1, -(2**63), 2**64, 10**400, -(10**700), 255, 256, 65535, 65536])
    | st.floats()
    | TEXT
    | st.binary(max_size=40)
)
HASHABLE = st.recursive(SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5)
PLAIN = st.recursive(
    SCALARS | st.binary(max_size=10).map(bytearray),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.tuples(inner)
        | st.tuples(inner, inner, inner, inner)
        | st.dictionaries(HASHABLE, inner, max_size=4)
        | st.dictionaries(TEXT, inner, max_size=4)
        | st.sets(HASHABLE, max_size=4)
        | st.frozensets(HASHABLE, max_size=4)
        | inner.map(lambda value: [value, value])  # shared: the second comes from the memo
    ),
    max_leaves=25,
)
PICKLERS = {"C": pickle.dumps, "Python": pickle._dumps}  # type: ignore[attr-defined]


def comparable(value: Any) -> Any:
    """A form in which equality means the same type, the same value and the same order; NaN equals itself."""
    kind = type(value)
    if kind is SetValue:
        return ("frozenset" if value.frozen else "set", sorted(map(repr, map(comparable, value.items))))
    if kind in (set, frozenset):
        return (kind.__name__, sorted(map(repr, map(comparable, value))))
    if kind in (list, tuple):
        return (kind.__name__, [comparable(item) for item in value])
    if kind is dict:
        return ("dict", [(comparable_key(key), comparable(item)) for key, item in value.items()])
    if kind is float:
        return ("float", "nan" if math.isnan(value) else value.hex())
    return (kind.__name__, value)


def comparable_key(key: Any) -> Any:
    """A frozenset as a key is decoded as a tuple of its members."""
    if isinstance(key, frozenset):
        return ("set key", sorted(repr(comparable(item)) for item in key))
    return comparable(key)


def has_set_key(value: Any) -> bool:
    """Is there a frozenset among the keys of a dict, or inside one? What that becomes has a test of its own."""
    if isinstance(value, dict):
        return any(_holds_set(key) for key in value) or any(map(has_set_key, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return any(map(has_set_key, value))
    return False


def _holds_set(key: Any) -> bool:
    return isinstance(key, frozenset) or (isinstance(key, tuple) and any(map(_holds_set, key)))


def decoded(data: bytes) -> Any:
    made = Decoder().decode(data)
    assert made.error is None, made.error
    assert made.trailing is None
    return made.value


@pytest.mark.parametrize("pickler", PICKLERS)
@pytest.mark.parametrize("protocol", range(6))
@settings(max_examples=60, deadline=None)
@given(value=PLAIN.filter(lambda value: not has_set_key(value)))
def test_the_same_as_the_standard_unpickler(pickler: str, protocol: int, value: Any) -> None:
    data = PICKLERS[pickler](value, protocol)
    expected = comparable(pickle.loads(data))
    assert comparable(decoded(data)) == expected
    assert comparable(decoded(pickletools.optimize(data))) == expected


@pytest.mark.parametrize("protocol", range(6))
def test_frames_and_large_values(protocol: int) -> None:
    value = {
        "long text": "x" * 200_000,
        "long bytes": b"\x00\xff" * 100_000,
        "many": [{"n": number, "text": f"text {number % 50}"} for number in range(3_000)],
        "keys": {number: str(number) for number in range(3_000)},
    }
    assert decoded(pickle.dumps(value, protocol)) == pickle.loads(pickle.dumps(value, protocol))


@pytest.mark.parametrize("protocol", range(6))
def test_a_frozenset_as_a_key_becomes_a_tuple(protocol: int) -> None:
    assert decoded(pickle.dumps({frozenset({5}): 1}, protocol)) == {(5,): 1}


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=60))
def test_any_bytes_give_a_value_or_a_refusal(data: bytes) -> None:
    made = Decoder().decode(data)
    assert made.error is not None or made.trailing is None or made.trailing <= len(data)


@settings(max_examples=300, deadline=None)
@given(
    program=st.lists(
        st.sampled_from([opcode.code.encode("latin-1") for opcode in pickletools.opcodes])
        | st.sampled_from([b"\x00", b"\x01", b"\x02", b"os\nsystem\n", b"1\n", b"K\x01", b"\x8c\x01a", b"q\x00"]),
        max_size=40,
    )
)
def test_what_the_standard_unpickler_reads_is_read_or_refused_alike(program: list[bytes]) -> None:
    """Random opcodes: what the interpreter accepts, the standard unpickler reads as the same plain data."""
    data = b"".join(program) + b"."
    made = Decoder().decode(data)
    if made.error is not None:
        return

    class NoGlobals(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            raise AssertionError((module, name))

    if made.globals:
        return
    assert comparable(made.value) == comparable(NoGlobals(io.BytesIO(data)).load())
