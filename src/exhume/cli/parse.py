"""Texts of options that are more than a word: durations and moments."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from exhume.errors import UsageError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([smhdw])\Z")


def duration(text: str) -> float:
    """Seconds of a duration such as `7d`, `12h`, `1.5h` or `90s`.

    Raises:
        UsageError: it is not one.
    """
    match = _DURATION.match(text.strip().lower())
    if match is None:
        raise UsageError(f"{text!r} is not a duration.", todo="Write a number and a unit: 90s, 30m, 12h, 7d, 2w.")
    return float(match.group(1)) * _UNITS[match.group(2)]


def moment(text: str | None) -> float | None:
    """Epoch seconds of a time in ISO 8601, one without a zone in UTC; None for None.

    Raises:
        UsageError: it is not one.
    """
    if text is None:
        return None
    try:
        parsed = datetime.fromisoformat(text.strip())
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is not a time.", todo="Write it like 2026-03-01 or 2026-03-01T09:30:00Z.") from None
