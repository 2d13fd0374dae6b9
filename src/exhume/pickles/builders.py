"""One function per standard-library type that values hold: checked arguments in, the real value or a text out.

The arguments are those that the type's own `__reduce_ex__` writes in CPython 3.9 to 3.14, protocols 0 to 5. Whatever
else is given raises `ValueError` with what is wrong; nothing is passed on to a constructor unchecked.
"""

from __future__ import annotations

import builtins
import datetime as dt
import decimal
import pathlib
import types
import uuid
from collections.abc import Callable
from typing import Any

from exhume.pickles.nodes import Converted, SetValue

_LONGEST_DECIMAL = 10_000
_LATIN1 = frozenset({"latin1", "latin-1", "iso-8859-1", "iso8859-1"})

Builder = Callable[[tuple[Any, ...]], Any]


def _is_int(value: Any) -> bool:
    return value.__class__ is int


def _state(value: Any, size: int) -> bytes:
    """The packed state of a time. Protocols 0 to 2 of Python 2 give it as text."""
    if value.__class__ is str:
        value = value.encode("latin-1")
    if value.__class__ is not bytes or len(value) != size:
        raise ValueError("a time with a state that is none")
    return bytes(value)


def _zone(rest: tuple[Any, ...]) -> dt.tzinfo | None:
    if not rest or rest == (None,):
        return None
    if len(rest) != 1 or not isinstance(rest[0], dt.tzinfo):
        raise ValueError("a time with a zone that is none")
    return rest[0]


def _datetime(args: tuple[Any, ...]) -> dt.datetime:
    # year, month (its highest bit is the fold), day, hour, minute, second, microsecond
    raw = _state(args[0], 10)
    return dt.datetime(
        int.from_bytes(raw[:2], "big"),
        raw[2] & 0x7F,
        raw[3],
        raw[4],
        raw[5],
        raw[6],
        int.from_bytes(raw[7:], "big"),
        tzinfo=_zone(args[1:]),
        fold=raw[2] >> 7,
    )


def _date(args: tuple[Any, ...]) -> dt.date:
    (value,) = args
    raw = _state(value, 4)
    return dt.date(int.from_bytes(raw[:2], "big"), raw[2], raw[3])


def _time(args: tuple[Any, ...]) -> dt.time:
    raw = _state(args[0], 6)
    microsecond = int.from_bytes(raw[3:], "big")
    return dt.time(raw[0] & 0x7F, raw[1], raw[2], microsecond, tzinfo=_zone(args[1:]), fold=raw[0] >> 7)


def _timedelta(args: tuple[Any, ...]) -> dt.timedelta:
    days, seconds, microseconds = args
    if not (_is_int(days) and _is_int(seconds) and _is_int(microseconds)):
        raise ValueError("a duration of other parts than integers")
    return dt.timedelta(days, seconds, microseconds)


def _timezone(args: tuple[Any, ...]) -> dt.timezone:
    offset, *name = args
    if not isinstance(offset, dt.timedelta) or len(name) > 1 or any(part.__class__ is not str for part in name):
        raise ValueError("a time zone that is none")
    return dt.timezone(offset, *name)


def _zoneinfo(args: tuple[Any, ...]) -> dt.tzinfo:
    # `zoneinfo.ZoneInfo._unpickle(key, from_cache)`; ADK refuses it, `--allow-global` lets it in
    import zoneinfo

    key = args[0]
    if key.__class__ is not str or len(args) > 2:
        raise ValueError("a time zone that is none")
    try:
        return zoneinfo.ZoneInfo(key)
    except (OSError, zoneinfo.ZoneInfoNotFoundError) as error:
        raise ValueError("a time zone that is not known here") from error


def _decimal(args: tuple[Any, ...]) -> decimal.Decimal:
    (text,) = args
    if text.__class__ is not str or len(text) > _LONGEST_DECIMAL:
        raise ValueError("a decimal number that is none")
    try:
        return decimal.Decimal(text)
    except decimal.InvalidOperation as error:
        raise ValueError("a decimal number that is none") from error


def uuid_of(fields: dict[Any, Any]) -> uuid.UUID:
    """A UUID from its state: `int`, and `is_safe`, which says nothing about the id."""
    number = fields.get("int")
    if number.__class__ is not int or not 0 <= number < 1 << 128:
        raise ValueError("a UUID without its number")
    return uuid.UUID(int=number)


def _complex(args: tuple[Any, ...]) -> complex:
    real, imaginary = args
    if not {real.__class__, imaginary.__class__} <= {int, float}:
        raise ValueError("a complex number that is none")
    return complex(real, imaginary)


def _bytes(args: tuple[Any, ...]) -> bytes:
    if not args:
        return b""
    if len(args) == 2:
        return latin1(args)
    (value,) = args
    if value.__class__ is bytes or value.__class__ is bytearray:
        return bytes(value)
    # `bytes([...])`; above all not `bytes(2**36)`
    if value.__class__ is list and all(_is_int(item) and 0 <= item < 256 for item in value):
        return bytes(value)
    raise ValueError("bytes of something that is none")


def _bytearray(args: tuple[Any, ...]) -> bytearray:
    return bytearray(_bytes(args))


def latin1(args: tuple[Any, ...]) -> bytes:
    """`_codecs.encode(text, "latin1")`: how protocols 0 to 2 write bytes."""
    text, codec = args
    if text.__class__ is not str or codec not in _LATIN1:
        raise ValueError("an encoding that is not how bytes are pickled")
    return bytes(text.encode("latin-1"))


def _set(args: tuple[Any, ...], *, frozen: bool = False) -> SetValue:
    if not args:
        return SetValue([], frozen=frozen)
    (members,) = args
    if members.__class__ is SetValue:
        members = members.items
    if members.__class__ is not list and members.__class__ is not tuple:
        raise ValueError("a set of something that is no list")
    return SetValue(list(members), frozen=frozen)


def _frozenset(args: tuple[Any, ...]) -> SetValue:
    return _set(args, frozen=True)


def _plain(kind: type, default: Callable[[], Any]) -> Builder:
    def build(args: tuple[Any, ...]) -> Any:
        if not args:
            return default()
        (value,) = args
        if value.__class__ is not kind:
            raise ValueError(f"a {kind.__name__} made of something else")
        return value

    return build


def _path(flavour: type[pathlib.PurePath]) -> Builder:
    def build(args: tuple[Any, ...]) -> Converted:
        if any(part.__class__ is not str for part in args):
            raise ValueError("a path of something that is no text")
        return Converted("path-to-text", str(flavour(*args)))  # pure: no file system is asked

    return build


def _counter(args: tuple[Any, ...]) -> Converted:
    counts = args[0] if args else {}
    if counts.__class__ is not dict or len(args) > 1:
        raise ValueError("a counter of something that is no dict")
    return Converted("counter-to-object", counts)


def deque_of(args: tuple[Any, ...]) -> list[Any]:
    """Members that a deque got with its making; a greatest length falls away."""
    items = args[0] if args else []
    if items.__class__ not in (list, tuple) or len(args) > 2:
        raise ValueError("a deque of something that is no list")
    return list(items)


def _range(args: tuple[Any, ...]) -> Converted:
    if not 1 <= len(args) <= 3 or not all(_is_int(part) for part in args):
        raise ValueError("a range of something that is no integer")
    return Converted("range-to-text", repr(range(*args)))


def exception_text(name: str, args: tuple[Any, ...]) -> Converted:
    """The message of one of Python's own exceptions, which is what ADK 2.13 stores of it; the loss names its class."""
    if len(args) > 1:
        text = f"({', '.join(_shown(part) for part in args)})"
    elif args and (name == "KeyError" or args[0].__class__ is not str):
        text = _shown(args[0])
    else:
        text = args[0] if args else ""
    return Converted(f"exception-to-text ({name})", text)


def _shown(value: Any) -> str:
    if value is None or value.__class__ in (bool, int, float, str, bytes):
        return repr(value)
    return f"<{value.__class__.__name__}>"


def is_exception(module: str, name: str) -> bool:
    """Is this one of Python's own exceptions? Looked up by exact name among the classes of `builtins`."""
    known = getattr(builtins, name, None) if module == "builtins" and name.isidentifier() else None
    return isinstance(known, type) and issubclass(known, BaseException)


def builtin_text(name: str) -> str | None:
    """What `str` gives of one of Python's own functions or classes, which is what ADK 2.13 stores; None for others."""
    known = getattr(builtins, name, None) if name.isidentifier() else None
    return repr(known) if isinstance(known, type | types.BuiltinFunctionType) else None


#: (module, name) -> what rebuilds it. Those that the reviewed set lacks count only under `--allow-global`.
BUILDERS: dict[tuple[str, str], Builder] = {
    ("datetime", "datetime"): _datetime,
    ("datetime", "date"): _date,
    ("datetime", "time"): _time,
    ("datetime", "timedelta"): _timedelta,
    ("datetime", "timezone"): _timezone,
    ("zoneinfo", "ZoneInfo._unpickle"): _zoneinfo,
    ("decimal", "Decimal"): _decimal,
    ("builtins", "complex"): _complex,
    ("builtins", "bytes"): _bytes,
    ("builtins", "bytearray"): _bytearray,
    ("builtins", "set"): _set,
    ("builtins", "frozenset"): _frozenset,
    ("builtins", "bool"): _plain(bool, bool),
    ("builtins", "int"): _plain(int, int),
    ("builtins", "float"): _plain(float, float),
    ("builtins", "str"): _plain(str, str),
    ("builtins", "list"): _plain(list, list),
    ("builtins", "tuple"): _plain(tuple, tuple),
    ("builtins", "dict"): _plain(dict, dict),
    ("builtins", "range"): _range,
    ("_codecs", "encode"): latin1,
    ("collections", "Counter"): _counter,
    **{
        (module, name): _path(pathlib.PureWindowsPath if "Windows" in name else pathlib.PurePosixPath)
        for module in ("pathlib", "pathlib._local")
        for name in ("PurePosixPath", "PosixPath", "PureWindowsPath", "WindowsPath")
    },
}
