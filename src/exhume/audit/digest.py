"""Short hashes of JSON values, so that rules can compare values across events and sessions without keeping them.

They never leave a run, so they can be as fast as orjson; `canonical` makes those that reports show and lists may hold.
"""

from __future__ import annotations

import json
import math
from hashlib import blake2b
from typing import Any

import orjson

#: Deeper parts of a value do not count; what readers yield is not that deep.
_DEEPEST = 260


def quick_digest(value: Any) -> bytes:
    """Hash of a value as it is written: key order is ignored, `1` and `1.0` differ."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer beyond 64 bits, a lone surrogate, or too deep
        text = _dump(_plain(value, 0))
    return blake2b(text, digest_size=16).digest()


def digest(value: Any) -> bytes:
    """Hash of a value by what JSON can hold: key order is ignored, `1` equals `1.0`, NaN and infinities are null."""
    return blake2b(_dump(_plain(value, 0)), digest_size=16).digest()


def same(one: Any, other: Any) -> bool:
    """Are two values equal in the sense of `digest`?"""
    if one.__class__ is other.__class__ and one.__class__ in (str, int, bool):
        return bool(one == other)
    return digest(one) == digest(other)


def _dump(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        pass
    try:
        # the escapes tell lone surrogates apart; text without them is written as orjson writes it, so both ways agree
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
            "utf-8", "surrogatepass"
        )
    except ValueError:  # an integer of more digits than Python writes
        return json.dumps(_short(value), sort_keys=True).encode()


def _plain(value: Any, depth: int) -> Any:
    if value is None or value.__class__ in (str, bool, int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() else value
    if depth >= _DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    return str(value)


def _short(value: Any) -> Any:
    """`value` with hexadecimal text for huge integers."""
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_short(item) for item in value]
    return hex(value) if value.__class__ is int and value.bit_length() > 1024 else value
