"""How values are spelt in JSON documents: UTC times, ASCII-only text, the same bytes on every run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from exhume.redact import printable

_EPOCH = datetime(1970, 1, 1)  # UTC; without a zone, so that it is spelt without an offset
_MAX_DEPTH = 200
_MAX_DIGITS = 4300

#: Stands in documents for a value nested deeper than any reader of JSON can be trusted to follow.
TOO_DEEP = "(nested too deeply to show)"


def rfc3339(epoch: float | None) -> str | None:
    """Epoch seconds as `2026-03-02T09:48:01.504208Z`; None for None and for what no calendar holds."""
    if epoch is None or not math.isfinite(epoch):
        return None
    try:
        moment = _EPOCH + timedelta(microseconds=round(epoch * 1e6))
    except OverflowError:
        return None
    return f"{moment.isoformat()}Z"


def now() -> str:
    """The present moment, for `started_at` and `finished_at`."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def plain(value: Any, *, depth: int = _MAX_DEPTH) -> Any:
    """A copy of any value that JSON can hold: NaN and infinities become null, other types their text.

    Integers too long to be read back by common parsers become text, as do keys that are not text.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        # the number of decimal digits is bounded before Python would refuse to spell them
        return int(value) if value.bit_length() < _MAX_DIGITS * 3 else f"(integer of {value.bit_length()} bits)"
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if depth <= 0:
        return TOO_DEEP
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth=depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, depth=depth - 1) for item in value]
    return str(value)


#: Made once: `json.dumps` would make one for every value.
_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(", ", ": "))


def compact(value: Any) -> str:
    """One value as one line of JSON. ASCII only, so that no control character or lone surrogate leaves raw."""
    return _ENCODER.encode(value)


def short_json(value: Any, limit: int) -> str:
    """Any value as JSON on one harmless line of at most `limit` characters, for people."""
    return printable(compact(plain(value)), limit=limit)


class Items:
    """A list of a document whose objects are made when they are written: a hundred thousand findings need not be in
    memory twice."""

    __slots__ = ("_make", "_of")

    def __init__(self, make: Callable[[Any], Mapping[str, Any]], of: Sequence[Any]) -> None:
        self._make = make
        self._of = of

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return map(self._make, self._of)


def document_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """A JSON document as lines without line ends: one key a line, and one item a line for lists of objects.

    A report of a hundred thousand findings is written as it goes, and two reports can be compared by `diff`.
    """
    last = len(document) - 1
    yield "{"
    for index, (key, value) in enumerate(document.items()):
        comma = "," if index < last else ""
        if isinstance(value, Items) and not value:
            yield f"  {compact(key)}: []{comma}"
        elif isinstance(value, Items) or (isinstance(value, (list, tuple)) and value and isinstance(value[0], Mapping)):
            yield f"  {compact(key)}: ["
            for place, item in enumerate(value, start=1):
                yield f"    {compact(item)}{',' if place < len(value) else ''}"
            yield f"  ]{comma}"
        else:
            yield f"  {compact(key)}: {compact(value)}{comma}"
    yield "}"
