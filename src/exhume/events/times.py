"""Time cells as exact microseconds: naive text, text with a zone, numbers of seconds or of smaller units."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import NamedTuple

from exhume.stores.interface import Cell

MICROSECONDS = 1_000_000
_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII)
#: Fewer digits in a text would rather be a date without separators.
_NUMBER = re.compile(r"[+-]?\d{9,20}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
#: Seconds of the year 10000: larger numbers are milliseconds, microseconds or nanoseconds.
_LARGEST_SECONDS = 253_402_300_800


class TimeCell(NamedTuple):
    """A time cell. `us`: microseconds since 1970, of UTC where `exact`, else of the writer's unknown zone."""

    us: int
    exact: bool


def parse_time(cell: Cell, *, milliseconds: bool = False) -> TimeCell | None:
    """Reads one time cell; None when it is no time.

    Text is what SQLAlchemy writes (`2026-11-30 20:50:07.123456`, naive), ISO 8601 with `T`, `Z` or an offset, or a
    number. Digits beyond the microsecond are cut.

    Args:
        cell: as stored.
        milliseconds: are whole numbers milliseconds, as MikroORM stores them? Otherwise numbers are seconds, unless
            they are too large for that.
    """
    if type(cell) is str:
        if len(cell) == 26 and cell[10] == " ":
            try:
                return TimeCell(_naive_us(datetime.fromisoformat(cell)), False)
            except (ValueError, TypeError):  # not in SQLAlchemy's own spelling: no time, or one with a zone
                pass
        return _parse_text(cell.strip(), milliseconds)
    if isinstance(cell, (int, float)):
        return _parse_number(cell, milliseconds)
    if isinstance(cell, bytes):
        return _parse_text(cell.decode("latin-1").strip(), milliseconds)
    return None


def _naive_us(moment: datetime) -> int:
    delta = moment - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * MICROSECONDS + delta.microseconds


def _parse_text(text: str, milliseconds: bool) -> TimeCell | None:
    if _TEXT.fullmatch(text):
        try:
            moment = datetime.fromisoformat(text.replace(",", "."))
            if moment.tzinfo is None:
                return TimeCell(_naive_us(moment), False)
            delta = moment - _EPOCH_UTC
        except (ValueError, OverflowError):
            return None
        return TimeCell((delta.days * 86_400 + delta.seconds) * MICROSECONDS + delta.microseconds, True)
    if _NUMBER.fullmatch(text):
        return _parse_number(float(text) if set(text) & set(".eE") else int(text), milliseconds)
    return None


def _parse_number(number: float, milliseconds: bool) -> TimeCell | None:
    if isinstance(number, float) and not math.isfinite(number):
        return None
    size = abs(number)
    if milliseconds and isinstance(number, int):
        us = number * 1000
    elif size < _LARGEST_SECONDS:
        us = round(number * MICROSECONDS)
    elif size < _LARGEST_SECONDS * 1000:
        us = round(number * 1000)
    elif size < _LARGEST_SECONDS * MICROSECONDS:
        us = round(number)
    else:
        us = round(number) // 1000
    return TimeCell(us, True) if abs(us) < _LARGEST_SECONDS * MICROSECONDS else None


def epoch_seconds(cell: Cell, *, milliseconds: bool = False) -> float | None:
    """A time cell as epoch seconds, a naive time read as UTC; None when it is no time."""
    parsed = parse_time(cell, milliseconds=milliseconds)
    return None if parsed is None else parsed.us / MICROSECONDS


def offset_text(seconds: int) -> str:
    """An offset from UTC in seconds, spelt `+05:30`; `+05:53:28` where it is no whole minute."""
    sign = "-" if seconds < 0 else "+"
    hours, rest = divmod(abs(seconds), 3600)
    minutes, left = divmod(rest, 60)
    return f"{sign}{hours:02d}:{minutes:02d}" + (f":{left:02d}" if left else "")
