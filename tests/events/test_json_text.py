"""JSON text is read exactly, whatever is in it, and written so that the standard library reads it back."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.events.json_text import EVENT_DEPTH, MAX_DEPTH, MAX_VALUES, NotJson, dump, parse
from exhume.events.model import Loss

TEXT = st.text(st.characters(exclude_categories=[]), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def same(first: Any, second: Any) -> bool:
    """Equality that tells 1 from 1.0 and True, and 0.0 from -0.0."""
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second) and (
        not isinstance(first, float) or math.copysign(1, first) == math.copysign(1, second)
    )


@given(VALUES, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_reads_what_the_standard_library_writes(value: Any, ascii_only: bool, indent: Any) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    bad_bytes = any(0xDC80 <= ord(char) <= 0xDCFF for char in text)
    parsed = parse(text, "here")
    if bad_bytes:
        assert Loss("bad-utf8-to-escape", "here") in parsed.losses
    else:
        assert same(parsed.value, value)
        assert parsed.losses == ()


@given(VALUES)
def test_writes_what_the_standard_library_reads(value: Any) -> None:
    text = dump(value)
    assert same(json.loads(text), value)
    text.encode()  # a lone surrogate would stop a database driver here
    assert dump(value) == text


@pytest.mark.parametrize(
    ("text", "value", "losses"),
    [
        ('{"a": 1, "b": 2, "a": 3}', {"a": 3, "b": 2}, [("duplicate-key", "x: a")]),
        ('{"k": {"a":1,"a":1}, "é": "\\u00e9"}', {"k": {"a": 1}, "é": "é"}, [("duplicate-key", "x: a")]),
        ('{"a" :1,"a" :2,"b":"\\u00e9\\":"}', {"a": 2, "b": 'é":'}, [("duplicate-key", "x: a")]),
        ("[NaN, -Infinity, 1e999]", [None] * 3, [("nan-to-null", f"x[{i}]") for i in range(3)]),
        ('{"a": {"b": [1, NaN]}}', {"a": {"b": [1, None]}}, [("nan-to-null", "x.a.b[1]")]),
        ("123456789012345678901234567890", 123456789012345678901234567890, []),
        ('["\\u00e9", 18446744073709551616]', ["é", 18446744073709551616], []),
        ("18446744073709551615", 18446744073709551615, []),
        ("-0.0", -0.0, []),
        ("1e16", 1e16, []),
        (" null\n", None, []),
        ('"\\ud800"', "\ud800", []),
        ('"a\udcff\udc80"', "a\\xff\\x80", [("bad-utf8-to-escape", "x")]),
    ],
)
def test_oddities(text: str, value: Any, losses: list[tuple[str, str]]) -> None:
    parsed = parse(text, "x")
    assert same(parsed.value, value)
    assert [tuple(loss) for loss in parsed.losses] == losses


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "Inf",
        "{'a': 1}",
        '{"a": 1} x',
        "\ufeff1",
        "[" * 100_000,
        '{"a":' * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '"' + "\\" * 99_999,
        "9" * 5_000,
        '{"a": [' + "-" + "9" * 5_000 + "]}",
    ],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        parse(text)


def test_brackets_in_text_are_no_depth() -> None:
    assert parse('["' + "[" * 5_000 + '"]').value == ["[" * 5_000]


@pytest.mark.parametrize("inside", ["", '"x"', '"\\u00e4"', "1e999", '{"a": 1, "a": 2}'])
@pytest.mark.parametrize("deepest", [MAX_DEPTH, EVENT_DEPTH])
def test_depth_is_bounded_exactly(deepest: int, inside: str) -> None:
    deep = deepest - inside.count("{")
    parse("[" * deep + inside + "]" * deep, deepest=deepest)
    with pytest.raises(NotJson, match="deeper"):
        parse("[" * (deep + 1) + inside + "]" * (deep + 1), deepest=deepest)


@given(VALUES | TEXT, st.booleans())
def test_bytes_are_read_as_the_text_that_they_are(value: Any, broken: bool) -> None:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text += '{"a": NaN, "a": 1}' if broken else ""
    source = text.encode("utf-8", "surrogatepass")
    text = source.decode("utf-8", "surrogateescape")
    try:
        expected = parse(text, "x")
    except NotJson as error:
        with pytest.raises(NotJson, match=re.escape(str(error))):
            parse(source, "x")
        return
    found = parse(source, "x")
    assert same(found.value, expected.value)
    assert found.losses == expected.losses


@given(st.text(max_size=40))
def test_any_text_gives_a_value_or_the_one_error(text: str) -> None:
    try:
        parse(text)
    except NotJson:
        with pytest.raises(ValueError):  # noqa: PT011 - json's own error has no better base
            json.loads(text)


def test_an_integer_too_long_to_write() -> None:
    with pytest.raises(NotJson):
        dump([10**5_000])


def test_more_values_than_memory_allows_are_refused_and_commas_in_texts_are_not_counted() -> None:
    with pytest.raises(NotJson, match="500,000 values"):
        parse("[" + "null," * MAX_VALUES + "null]")
    prose = json.dumps({"text": "one, two, " * MAX_VALUES})
    assert parse(prose).value == {"text": "one, two, " * MAX_VALUES}
    most = "[" + "0," * (MAX_VALUES - 1) + "0]"
    assert len(parse(most).value) == MAX_VALUES
