"""How values are spelt in JSON documents: UTC times, ASCII-only text, the same bytes on every run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any

from exhume.redact import printable

_EPOCH = datetime(1970, 1, 1)  # UTC; without a zone, so that it is spelt without an offset
#: To format these would take a third of the time.
_TWO_DIGITS = [f"{number:02}" for number in range(60)]
_MAX_DEPTH = 200
_MAX_DIGITS = 4300

#: Stands in documents for a value nested deeper than any reader of JSON can be trusted to follow.
TOO_DEEP = "(nested too deeply to show)"


def rfc3339(epoch: float | None) -> str | None:
    """Epoch seconds as `2026-03-02T09:48:01.504208Z`; None for None and for what no calendar holds."""
    if epoch is None or not math.isfinite(epoch):
        return None
    try:
        seconds, micros = divmod(round(epoch * 1e6), 1_000_000)
        minutes, second = divmod(seconds, 60)
        hours, minute = divmod(minutes, 60)
        hour = _up_to_the_hour(hours)
    except OverflowError:
        return None
    fraction = f".{micros:06}" if micros else ""
    return f"{hour}:{_TWO_DIGITS[minute]}:{_TWO_DIGITS[second]}{fraction}Z"


@lru_cache(maxsize=64)  # the times of a session lie close together; `isoformat` for each would take twice as long
def _up_to_the_hour(hours: int) -> str:
    return (_EPOCH + timedelta(hours=hours)).isoformat(timespec="hours")


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


#: A text as JSON, in quotes; the same as `compact`, without what that does for other values.
quoted = encode_basestring_ascii


def quoted_or_null(text: str | None) -> str:
    """A text as JSON, null for None."""
    return "null" if text is None else quoted(text)


def quoted_list(texts: Iterable[str]) -> str:
    """Texts as a JSON list, spelt as `compact` does."""
    return f"[{', '.join(map(quoted, texts))}]"


class Items:
    """A list of a document whose objects are spelt when they are written: a hundred thousand findings need not be in
    memory twice. `spell` gives an object as `compact` would."""

    __slots__ = ("_of", "_spell")

    def __init__(self, spell: Callable[[Any], str], of: Sequence[Any]) -> None:
        self._spell = spell
        self._of = of

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[str]:
        return map(self._spell, self._of)


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
            texts = value if isinstance(value, Items) else map(compact, value)
            final = len(value)
            for place, text in enumerate(texts, start=1):
                yield f"    {text}{',' if place < final else ''}"
            yield f"  ]{comma}"
        else:
            yield f"  {compact(key)}: {compact(value)}{comma}"
    yield "}"
