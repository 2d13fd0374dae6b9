"""Arguments of a call as one digest, so that equal actions are found whatever the order of their keys."""

from __future__ import annotations

import hashlib
from typing import Any

from exhume.audit.log import Call


def canonical(value: Any) -> bytes:
    """16 bytes that are equal for equal JSON values: key order is ignored, numbers count by value (300 = 300.0),
    text is exact, booleans are no numbers. Works without recursion, for values nested however deep."""
    digest = hashlib.blake2b(digest_size=16)
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind is str:
            _text(digest, b"s", item)
        elif kind is _Key:
            _text(digest, b"k", item.text)
        elif item is None or kind is bool:
            digest.update(b"%r;" % item)
        elif kind is int or kind is float:
            digest.update(_number(item))
        elif isinstance(item, dict):
            digest.update(b"{%d;" % len(item))
            for key in sorted(item, key=str, reverse=True):
                stack.append(item[key])
                stack.append(_Key(str(key)))
        elif isinstance(item, list | tuple):
            digest.update(b"[%d;" % len(item))
            stack.extend(reversed(item))
        else:
            _text(digest, b"o", repr(item))
    return digest.digest()


class _Key:
    """A key of an object, so that it is not taken for a text value."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def _text(digest: Any, kind: bytes, text: str) -> None:
    encoded = text.encode("utf-8", "surrogatepass")
    digest.update(b"%b%d:" % (kind, len(encoded)))
    digest.update(encoded)


def _number(value: float) -> bytes:
    if isinstance(value, float):
        if not value.is_integer():
            return b"n%b;" % repr(value).encode()
        value = int(value)
    return b"n%x;" % value


def arguments(call: Call) -> bytes:
    """Digest of a call's arguments, made once. Null, missing and `{}` are equal only as the whole."""
    if call.arguments is None:
        call.arguments = canonical(call.args or {})
    return call.arguments
