"""Finds the members of a JSON object and the items of a JSON array as slices of the text, without building values.

A slice keeps what parsing would lose: integers beyond 64 bits, repeated keys, lone surrogates. Works without recursion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_SCALAR = re.compile(r"[^\s,\[\]{}\":]+")
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
#: As deep as the readers of events go, with room for what an export wraps around them.
_MAX_DEPTH = 300


class NotItemsError(ValueError):
    """The text is not JSON at this place; `offset` in characters."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(f"{reason} (offset {offset})")
        self.offset = offset


class Span(NamedTuple):
    """A slice of a text, both ends in characters."""

    start: int
    end: int


def root(text: str) -> Span:
    """The one value of a text, without what surrounds it."""
    start = _after_space(text, 0)
    end = _end_of_value(text, start)
    if _after_space(text, end) != len(text):
        raise NotItemsError("something follows the JSON value", end)
    return Span(start, end)


def array_items(text: str, span: Span) -> Iterator[Span]:
    """The items of the array at `span`."""
    for _, item in _parts(text, span, keyed=False):
        yield item


def object_members(text: str, span: Span) -> Iterator[tuple[str, Span]]:
    """The members of the object at `span`; a repeated key comes again."""
    yield from _parts(text, span, keyed=True)


def _parts(text: str, span: Span, *, keyed: bool) -> Iterator[tuple[str, Span]]:
    closing = "}" if keyed else "]"
    position = _after_space(text, span.start + 1)
    if text[position : position + 1] == closing:
        return
    while True:
        key = ""
        if keyed:
            match = _STRING.match(text, position)
            if match is None:
                raise NotItemsError("a key is missing", position)
            key = load(match.group()) or ""
            position = _after_space(text, match.end())
            if text[position : position + 1] != ":":
                raise NotItemsError("a colon is missing", position)
            position = _after_space(text, position + 1)
        end = _end_of_value(text, position)
        yield key, Span(position, end)
        position = _after_space(text, end)
        char = text[position : position + 1]
        if char == closing:
            return
        if char != ",":
            raise NotItemsError("a comma is missing", position)
        position = _after_space(text, position + 1)


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    assert match is not None  # it matches the empty text, too
    return match.end()


def _end_of_value(text: str, start: int) -> int:
    char = text[start : start + 1]
    if char and char in "[{":
        depth = 0
        for bracket in _BRACKET.finditer(text, start):
            found = bracket.group()
            if found in ("[", "{"):
                depth += 1
                if depth > _MAX_DEPTH:
                    raise NotItemsError(f"it is nested deeper than {_MAX_DEPTH} levels", bracket.start())
            elif found in ("]", "}"):
                depth -= 1
                if depth == 0:
                    return bracket.end()
        raise NotItemsError("a bracket is not closed", start)
    match = _STRING.match(text, start) if char == '"' else _SCALAR.match(text, start)
    if match is None:
        raise NotItemsError("a value is missing", start)
    return match.end()


def load(text: str) -> Any:
    """The value of a JSON text for looking at its keys; None for what is not JSON, or nests too deeply.

    Not for what is kept: integers beyond 64 bits may come back rounded.
    """
    try:
        return orjson.loads(text)
    except ValueError:
        pass
    except TypeError:  # bytes that are not UTF-8
        return None
    try:
        if sum(map(text.count, "[{")) > _MAX_DEPTH:
            root(text)  # bounds the depth
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
