"""JSON text in and out, exactly: big integers kept, repeated keys told, hostile depth refused.

Nearly every text takes the short way through orjson, and a check shows that nothing was lost on it: when the value,
written again, differs from the text in white space alone, then there was no repeated key, no integer beyond 64 bits,
no NaN and no lone surrogate. Everything else goes through the standard library, which is slower and exact.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

import orjson

from exhume.errors import ExhumeError, ExitCode
from exhume.events.model import Loss
from exhume.stores.interface import Row

#: Deepest nesting that is read in a column of its own. pydantic, and so every ADK release that stores JSON, cannot
#: write more than 255 levels, and an event has about ten above the application's own data.
MAX_DEPTH = 200
#: Deepest nesting of a whole event, which has such columns in it: what orjson writes.
EVENT_DEPTH = 254
#: Most values that are read in one text, far beyond any real event. Some millions of them end orjson, under a limit of
#: memory, with the whole process instead of an error.
MAX_VALUES = 500_000
#: Characters from which a text is left to the standard library: orjson reserves many times a text's length, and when
#: memory is limited and runs out, it ends the process where the standard library raises an error.
GIANT = 4 << 20

_WHITE = b" \t\r\n"
#: As a number, it is found in bytes four times faster than as bytes.
BACKSLASH = ord("\\")
#: From here on orjson may have made a float of an integer.
_LARGE = float(1 << 63)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
#: Bytes that are not UTF-8, as a store gives them (see `exhume.stores.interface.Cell`).
_BAD_BYTE = re.compile("[\udc80-\udcff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class NotJson(ExhumeError):
    """A text that is not JSON, or nests deeper or counts higher than can be read; `offset` in characters if known."""

    exit_code = ExitCode.REFUSED

    def __init__(self, reason: str, offset: int | None = None) -> None:
        self.reason = reason
        self.offset = offset
        super().__init__(f"{reason}." if offset is None else f"{reason} (offset {offset}).")


class Parsed(NamedTuple):
    """A value of plain JSON types, and the conversions that reading it took. Lone surrogates stay in the text."""

    value: Any
    losses: tuple[Loss, ...] = ()


def parse(text: str | bytes, place: str = "", *, deepest: int = MAX_DEPTH) -> Parsed:
    """Reads JSON text.

    NaN and infinities become None (loss `nan-to-null`, with their place). Of a repeated key the last value counts, as
    ADK's own readers have it (loss `duplicate-key`). Bytes that are not UTF-8 become visible escapes such as `\\xff`
    (loss `bad-utf8-to-escape`).

    Args:
        text: JSON text, as a store gives it, or its bytes.
        place: name of what is read, the beginning of every place in the losses.
        deepest: levels of nesting.

    Raises:
        NotJson: for everything that is not one JSON value of bounded depth and size.
    """
    if len(text) > MAX_VALUES:  # a shorter text cannot hold as many
        text = _decoded(text)
        _check_size(text)
        if len(text) > GIANT:
            return _parse_exactly(text, place, deepest)
    try:
        source = text if isinstance(text, bytes) else text.encode()
        value = orjson.loads(source)
        # the search for one byte is many times faster than that for two, and nearly always enough
        escapes = BACKSLASH in source and b"\\u" in source
        if escapes:
            exact = _has_no_loss(source, value)
        else:
            written = orjson.dumps(value)  # which refuses what is deeper than EVENT_DEPTH
            exact = source == written or source.translate(None, _WHITE) == written.translate(None, b" ")
    except (ValueError, TypeError):  # orjson's own errors are these
        exact = False
    if not exact:
        return _parse_exactly(_decoded(text), place, deepest)
    if (escapes or deepest < EVENT_DEPTH) and source.count(b"[") + source.count(b"{") > deepest:
        _check_depth(_decoded(text), deepest)
    return tuple.__new__(Parsed, (value, ()))  # which is what Parsed(value) comes to


def _decoded(text: str | bytes) -> str:
    return text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text


def _has_no_loss(source: bytes, value: Any) -> bool:
    """Was nothing lost of a text with escapes, which orjson would not write again? So it is with as many keys in the
    value as `":` in the text, no white space that could hide one, and no float so large that it may have been an
    integer."""
    if b'" :' in source or b"\t" in source or b"\n" in source or b"\r" in source:
        return False
    keys = 0
    stack = [value]
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind is dict:
            keys += len(item)
            stack += item.values()
        elif kind is list:
            stack += item
        elif kind is float and not -_LARGE < item < _LARGE:
            return False
    return keys == source.count(b'":')


def _parse_exactly(text: str, place: str, deepest: int) -> Parsed:
    losses: list[Loss] = []
    if _BAD_BYTE.search(text):
        text = _BAD_BYTE.sub(lambda match: f"\\\\x{ord(match.group()) - 0xDC00:02x}", text)
        losses.append(Loss("bad-utf8-to-escape", place))
    _check_depth(text, deepest)
    odd_numbers = False

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            seen: set[str] = set()
            for key, _ in items:
                if key in seen:
                    losses.append(Loss("duplicate-key", f"{place}: {key}" if place else key))
                seen.add(key)
        return found

    def constant(word: str) -> float:
        nonlocal odd_numbers
        odd_numbers = True
        return math.nan if word == "NaN" else math.inf

    def real(digits: str) -> float:
        nonlocal odd_numbers
        number = float(digits)
        odd_numbers = odd_numbers or math.isinf(number)
        return number

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_float=real)
    except json.JSONDecodeError as error:
        raise NotJson("it is not JSON text", error.pos) from None
    except ValueError:  # the one other error: an integer with more digits than Python reads
        raise NotJson("it holds an integer of more than 4300 digits") from None
    if odd_numbers:
        value = without_nan(value, place, losses)
    return Parsed(value, tuple(losses))


def _check_size(text: str) -> None:
    """Refuses more than MAX_VALUES members of lists and objects; commas inside of strings do not count."""
    if text.count(",") >= MAX_VALUES and _STRING.sub("", text).count(",") >= MAX_VALUES:
        raise NotJson(f"it holds more than {MAX_VALUES:,} values")


def _check_depth(text: str, deepest: int) -> None:
    """Refuses nesting beyond `deepest`; linear in the length of the text, and without recursion."""
    if text.count("[") + text.count("{") <= deepest:
        return
    depth = 0
    for match in _BRACKETS.finditer(text):
        char = match.group()
        if char in "[{":
            depth += 1
            if depth > deepest:
                raise NotJson(f"it is nested deeper than {deepest} levels", match.start())
        elif char in "]}":
            depth -= 1


def without_nan(value: Any, place: str, losses: list[Loss]) -> Any:
    """`value` with None for NaN and infinities, each one noted. Its depth must be bounded."""
    if isinstance(value, float) and not math.isfinite(value):
        losses.append(Loss("nan-to-null", place))
        return None
    if isinstance(value, dict):
        return {key: without_nan(item, f"{place}.{key}" if place else key, losses) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item, f"{place}[{index}]", losses) for index, item in enumerate(value)]
    return value


def is_giant(cells: Row) -> bool:
    """Does a row hold a cell so large that what is made of it is no matter for orjson?"""
    return any((cell.__class__ is str or cell.__class__ is bytes) and len(cell) > GIANT for cell in cells)


def dump(value: Any, *, giant: bool = False) -> str:
    """Compact JSON text of plain JSON data, the same on every run: keys in their order, big integers in full.

    Characters stay as they are; only where there are lone surrogates is the text escaped to ASCII.
    The caller has made NaN and infinities None.

    Args:
        giant: the value comes of a row of which `is_giant` is true.

    Raises:
        NotJson: for an integer of more digits than Python writes, or nesting beyond what can be written.
    """
    if not giant:
        try:
            return orjson.dumps(value).decode()
        except TypeError:  # an integer beyond 64 bits, or a lone surrogate
            pass
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        if _SURROGATE.search(text):
            text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        raise NotJson("it holds an integer of more than 4300 digits, or nests too deeply to be written") from None
    return text
