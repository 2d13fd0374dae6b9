"""Decoded pickles as JSON data, exactly as ADK 2.13 dumps the same objects, with a record of every conversion.

What ADK stores for an event is `model_dump(mode="json", exclude_none=True)` of pydantic 2; the forms here are
pydantic-core's, and the tests compare them with it. Two kinds of places differ: *model fields*, where objects, enums
and bytes are at home (no loss, null is the same as absent), and *application data* such as `state_delta`, where every
type that JSON lacks is a conversion to be told, and a null is a value.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from exhume.events.model import Loss
from exhume.events.shapes import (
    ANY,
    BYTES,
    DICT,
    LIST,
    MODEL,
    OBJECT,
    SCHEME,
    Fault,
    Field,
    Findings,
    Model,
    Place,
    known_model,
    model,
    shape,
)
from exhume.pickles.nodes import Converted, EnumValue, ModelValue, SetValue


class Encoded(NamedTuple):
    """JSON data of an `actions` value, what was converted, and what ADK 2.13 would refuse (left out of `data`)."""

    data: dict[str, Any]
    losses: tuple[Loss, ...]
    faults: tuple[Fault, ...]


def empty_actions() -> dict[str, Any]:
    """What ADK 2.13 stores for actions that nobody set."""
    return {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}


def is_actions(value: Any) -> bool:
    """Is a decoded value event actions: the model itself, or a plain object of its fields?"""
    if isinstance(value, ModelValue):
        return value.name == "EventActions" and value.module == "google.adk.events.event_actions"
    return isinstance(value, dict)


def encode_actions(value: Any) -> Encoded:
    """JSON data of a value for which `is_actions` holds."""
    found = Findings()
    actions = model("EventActions")
    if isinstance(value, ModelValue):
        value = _fields_of(value, "actions", found)
    plain: dict[str, Any] = {}
    fields = actions.fields
    for name, item in _by_text(value, "actions", found).items():
        if item is None and name in fields:
            continue
        if item is None or (type(item) is dict and not item):
            plain[name] = item
        else:
            plain[name] = _native(item, fields.get(name), ("actions", name), found)
    data = shape(plain, actions, "actions", found)
    return Encoded(data, tuple(found.losses), tuple(found.faults))


# ---------------------------------------------------------------------------------------------- model fields
def _native(item: Any, spec: Field | None, place: Place, found: Findings) -> Any:
    """A value at a model field, with objects and enums as the JSON that `shape` takes."""
    kind = type(item)
    if spec is None or spec.kind in (ANY, OBJECT):
        return encode(item, place, found)
    if kind is EnumValue:
        return _native(item.value, spec, place, found)
    if kind is Converted:
        return encode(item, place, found)
    if spec.kind in (MODEL, SCHEME):
        return _object(item, spec.about if spec.kind == MODEL else None, place, found)
    if spec.kind == LIST and kind in (list, tuple, SetValue):
        members = item.items if kind is SetValue else item
        return [_native(one, spec.about, (place, index), found) for index, one in enumerate(members)]
    if spec.kind == DICT and kind is dict:
        return {
            name: _native(one, spec.about, (place, name), found) for name, one in _by_text(item, place, found).items()
        }
    if spec.kind == BYTES and kind in (bytes, bytearray):
        return base64.urlsafe_b64encode(item).decode()
    return item if kind in (str, int, float, bool) else encode(item, place, found)


def _object(item: Any, declared: Model | None, place: Place, found: Findings) -> Any:
    """An object at a field of a model or a security scheme: fields by their Python names."""
    if type(item) is ModelValue:
        fields = _fields_of(item, place, found)
        declared = declared or known_model(item.name)
        if item.name == "ExtendedOAuth2" and "issuer_url" in fields:
            # ADK dumps the scheme by the declared union, whose OAuth2 has no such field: no release stores it as JSON
            fields = {key: one for key, one in fields.items() if key != "issuer_url"}
            found.lose("issuer-url-dropped", (place, "issuer_url"))
            declared = model("OAuth2")
    elif type(item) is dict:
        fields = item
    else:
        return encode(item, place, found)
    known = declared.fields if declared is not None else {}
    made: dict[str, Any] = {}
    for name, one in _by_text(fields, place, found).items():
        spec = known.get(name)
        if spec is None and type(one) is ModelValue:
            made[name] = _object(one, None, (place, name), found)
        else:
            made[name] = _native(one, spec, (place, name), found)
    return made


def _fields_of(item: ModelValue, place: Place, found: Findings) -> dict[Any, Any]:
    """Fields of an object with those that pydantic keeps in `__pydantic_extra__`; a name in both is refused."""
    if not item.extra:
        return item.fields
    twice = [name for name in item.extra if name in item.fields]
    for name in twice:
        found.refuse((place, str(name)), "it is a field and an extra field of one object")
    return {**item.extra, **item.fields} if twice else {**item.fields, **item.extra}


def _by_text(fields: dict[Any, Any], place: Place, found: Findings) -> dict[str, Any]:
    """An object with its keys as text; keys that become the same text are refused, and the first one stays."""
    for key in fields:
        if key.__class__ is not str:
            break
    else:  # nearly always, and so without the price of a generator
        return fields
    made: dict[str, Any] = {}
    for original, item in fields.items():
        name = original
        if type(name) is not str:
            name = _key_text(original, place, found)
            found.lose("key-to-text", (place, name))
        if name in made:
            found.refuse((place, name), "two keys of this object become the same text")
        else:
            made[name] = item
    return made


# ---------------------------------------------------------------------------------------------- application data
def encode(value: Any, place: Place, found: Findings) -> Any:
    """A value of application data as JSON data, every conversion noted. Its depth is bounded by the pickle reader."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is dict:
        return _encode_dict(value, place, found)
    if kind is list:
        return [encode(one, (place, index), found) for index, one in enumerate(value)]
    if kind is float:
        if math.isfinite(value):
            return value
        found.lose("nan-to-null", place)
        return None
    handler = _CONVERSIONS.get(kind)
    if handler is None:
        raise AssertionError(f"a decoded pickle holds a {kind.__name__}")
    return handler(value, place, found)


def _encode_dict(value: dict[Any, Any], place: Place, found: Findings) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, one in _by_text(value, place, found).items():
        inner = (place, key)
        kind = type(one)
        # the scalars that most states hold, without the price of a call
        made[key] = one if kind is str or kind is int or one is None else encode(one, inner, found)
    return made


def _key_text(key: Any, place: Place, found: Findings) -> str:
    """A key of a dict as pydantic-core spells it (`infer_json_key`)."""
    kind = type(key)
    if kind is str:
        return str(key)
    if kind is bool:
        return "true" if key else "false"
    if kind is float:
        return repr(key) if math.isfinite(key) else "None"
    if kind is tuple:
        return ",".join(_key_text(one, place, found) for one in key)
    if kind is EnumValue:
        return _key_text(key.value, place, found)
    if key is None or kind is int:
        return str(key)
    if kind in _TEXTS:
        return _TEXTS[kind](key)
    if kind is Converted:
        return _key_text(key.value, place, found)
    # what pydantic refuses as a key: its JSON text is the one clear spelling left
    return json.dumps(encode(key, place, Findings()), sort_keys=True)


def _as_text(loss: str) -> Callable[[Any, Place, Findings], str]:
    def convert(value: Any, place: Place, found: Findings) -> str:
        found.lose(loss, place)
        return _TEXTS[type(value)](value)

    return convert


def _encode_sequence(value: tuple[Any, ...], place: Place, found: Findings) -> list[Any]:
    found.lose("tuple-to-list", place)
    return [encode(one, (place, index), found) for index, one in enumerate(value)]


def _encode_set(value: SetValue, place: Place, found: Findings) -> list[Any]:
    """Members sorted by their JSON text within their type: a set has no order, and every run must give the same."""
    found.lose("frozenset-to-list" if value.frozen else "set-to-list", place)
    members = [encode(one, (place, index), found) for index, one in enumerate(value.items)]
    if all(type(one) in (int, float) for one in members):
        return sorted(members)
    return sorted(members, key=lambda one: (type(one).__name__, json.dumps(one, sort_keys=True)))


def _encode_enum(value: EnumValue, place: Place, found: Findings) -> Any:
    found.lose("enum-to-value", place)
    return encode(value.value, place, found)


def _encode_model(value: ModelValue, place: Place, found: Findings) -> dict[str, Any]:
    """An object inside application data: all its fields, those that are None too, as ADK's `model_dump()` has them."""
    found.lose("object-to-json", place)
    known = known_model(value.name) if value.module.startswith(("google.", "fastapi.")) else None
    made: dict[str, Any] = {}
    for name, one in _by_text(_fields_of(value, place, found), place, found).items():
        spec = known.fields.get(name) if known is not None else None
        if spec is not None and spec.kind == BYTES and isinstance(one, (bytes, bytearray)):
            made[name] = base64.urlsafe_b64encode(one).decode()
        else:
            made[name] = encode(one, (place, name), found)
    return made


def _encode_converted(value: Converted, place: Place, found: Findings) -> Any:
    found.lose(value.kind, place)
    return encode(value.value, place, found)


# ---------------------------------------------------------------------------------------------- texts
def _base64_text(value: bytes | bytearray) -> str:
    return base64.urlsafe_b64encode(value).decode()


def _clock(moment: datetime | time, text: str) -> str:
    """The zone as pydantic-core writes it: `Z` for zero, else hours and minutes (seconds are cut)."""
    offset = moment.utcoffset()
    if offset is None:
        return text
    seconds = round(offset.total_seconds())
    if seconds == 0:
        return text + "Z"
    minutes = abs(seconds) // 60
    sign = "-" if seconds < 0 and minutes else "+"
    return f"{text}{sign}{minutes // 60:02d}:{minutes % 60:02d}"


def _datetime_text(value: datetime) -> str:
    return _clock(value, value.replace(tzinfo=None).isoformat())


def _time_text(value: time) -> str:
    return _clock(value, value.replace(tzinfo=None).isoformat())


def _timedelta_text(value: timedelta) -> str:
    """ISO 8601 as pydantic-core writes it: a year is 365 days, there are no weeks and months."""
    sign, value = ("-", -value) if value.days < 0 and value != timedelta.min else ("", value)
    days = value.days
    if days < 0:  # timedelta.min has no positive form
        sign, days = "-", -days
    years, days = divmod(days, 365)
    minutes, seconds = divmod(value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{years}Y" if years else ""
    text += f"{days}D" if days else ""
    clock = f"{hours}H" if hours else ""
    clock += f"{minutes}M" if minutes else ""
    if value.microseconds:
        fraction = f"{value.microseconds:06d}".rstrip("0")
        clock += f"{seconds}.{fraction}S"
    elif seconds:
        clock += f"{seconds}S"
    return f"{sign}P{text}{'T' + clock if clock else ''}" if text or clock else "PT0S"


def _complex_text(value: complex) -> str:
    """As pydantic-core writes it: no brackets, no exponents, the real part only where it is not zero."""
    imaginary = _plain_float(value.imag) + "j"
    if value.real == 0:
        return imaginary
    return _plain_float(value.real) + ("" if imaginary.startswith("-") else "+") + imaginary


def _plain_float(number: float) -> str:
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "inf" if number > 0 else "-inf"
    text = format(Decimal(repr(number)), "f")
    return text.removesuffix(".0")


_TEXTS: dict[type, Callable[[Any], str]] = {
    bytes: _base64_text,
    bytearray: _base64_text,
    datetime: _datetime_text,
    date: date.isoformat,
    time: _time_text,
    timedelta: _timedelta_text,
    timezone: str,
    Decimal: str,
    UUID: str,
    complex: _complex_text,
}

_CONVERSIONS: dict[type, Callable[[Any, Place, Findings], Any]] = {
    tuple: _encode_sequence,
    SetValue: _encode_set,
    EnumValue: _encode_enum,
    ModelValue: _encode_model,
    Converted: _encode_converted,
    bytes: _as_text("bytes-to-base64"),
    bytearray: _as_text("bytes-to-base64"),
    datetime: _as_text("datetime-to-text"),
    date: _as_text("date-to-text"),
    time: _as_text("time-to-text"),
    timedelta: _as_text("timedelta-to-text"),
    timezone: _as_text("timezone-to-text"),
    Decimal: _as_text("decimal-to-text"),
    UUID: _as_text("uuid-to-text"),
    complex: _as_text("complex-to-text"),
}
