"""When two JSON values are the same, and where they differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

#: Times are stored to the microsecond; their epoch as a float is exact to a quarter of one.
TIME_TOLERANCE = 1e-6
_SHOWN = 200
_ABSENT = object()


class ValueDifference(NamedTuple):
    """A place where two values differ; None is a side that has nothing there."""

    field: str
    source: str | None
    destination: str | None


def same(source: Any, destination: Any) -> bool:
    """Are two JSON values equal: keys in any order, numbers by value, booleans no numbers?"""
    try:
        return orjson.dumps(source, option=orjson.OPT_SORT_KEYS) == orjson.dumps(
            destination, option=orjson.OPT_SORT_KEYS
        )
    except TypeError:  # big integers and lone surrogates, which orjson does not write
        return False


def differences(source: Any, destination: Any, field: str = "") -> Iterator[ValueDifference]:
    """Every place where two JSON values differ, smallest parts first named. Their depth is bounded by the readers."""
    if isinstance(source, dict) and isinstance(destination, dict):
        for key in dict.fromkeys([*source, *destination]):
            place = f"{field}.{key}" if field else key
            yield from differences(source.get(key, _ABSENT), destination.get(key, _ABSENT), place)
    elif isinstance(source, list) and isinstance(destination, list):
        for index in range(max(len(source), len(destination))):
            one = source[index] if index < len(source) else _ABSENT
            other = destination[index] if index < len(destination) else _ABSENT
            yield from differences(one, other, f"{field}[{index}]")
    elif not _equal_scalars(source, destination):
        yield ValueDifference(field, _or_none(source), _or_none(destination))


def same_time(source: float | None, destination: float | None) -> bool:
    """Are two epoch times the same microsecond, or both unknown?"""
    if source is None or destination is None:
        return source is destination
    return abs(source - destination) <= TIME_TOLERANCE


def shown(value: Any) -> str:
    """A value as JSON text, cut when it is long."""
    if isinstance(value, str) and len(value) > _SHOWN:
        value = value[: _SHOWN + 1]  # a giant text need not be spelt out to be cut
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True)
        if not text.isascii():
            text = text.encode("utf-8", "backslashreplace").decode()
    except ValueError:
        text = "(an integer of more digits than can be written)"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _or_none(value: Any) -> str | None:
    return None if value is _ABSENT else shown(value)


def _equal_scalars(source: Any, destination: Any) -> bool:
    if isinstance(source, bool) or isinstance(destination, bool):
        return source is destination
    return bool(source == destination)
