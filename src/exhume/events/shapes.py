"""ADK's shape of an event: canonical names, nulls left out, bytes in one alphabet, and what does not belong told.

The shapes are data (`model_fields.json`, made from google-adk by `benchmarks/make_model_fields.py`). Application data
(`state_delta`, `args`, `response`, `payload`, ...) is never looked into: a null there is a value.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import orjson

from exhume.events.model import Loss
from exhume.packaged import packaged

STR, LIST, MODEL, OBJECT, ANY, BYTES, ENUM, BOOL, INT, FLOAT, DICT, SCHEME, ROUTE, CHOICE = range(14)
_SCALARS = {
    "str": STR,
    "object": OBJECT,
    "any": ANY,
    "bytes": BYTES,
    "bool": BOOL,
    "int": INT,
    "float": FLOAT,
    "scheme": SCHEME,
    "route": ROUTE,
}
#: Kinds whose values of that type pass as they are. Not numbers: JSON has no NaN and no infinity.
_EXACT: dict[str, type] = {"str": str, "object": dict, "bool": bool, "int": int}
#: What pydantic's lax mode takes for a boolean, in lower case.
_TRUE = frozenset({"1", "t", "true", "y", "yes", "on"})
_FALSE = frozenset({"0", "f", "false", "n", "no", "off"})
_INTEGER = re.compile(r"\s*[+-]?\d{1,300}(?:\.0+)?\s*", re.ASCII)
_REAL = re.compile(r"\s*[+-]?(?:\d{1,300}\.?\d{0,300}|\.\d{1,300})(?:[eE][+-]?\d{1,3})?\s*", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_URLSAFE = re.compile(r"[A-Za-z0-9_-]*={0,2}", re.ASCII)

#: Where a value is: the place around it and its own key or index. Made for every object, spelt out only for faults.
Place = tuple[Any, "str | int"] | str


class Field(NamedTuple):
    """A field of a model: its Python name, its kind, and what the kind is about (a `Model`, a `Field`, enum values).

    `exact`: the type whose values pass as they are, where there is one.
    """

    name: str
    kind: int
    about: Any = None
    exact: type | None = None


@dataclass(slots=True, eq=False)
class Model:
    """A model of ADK: its fields by every spelling that pydantic takes (Python name and alias)."""

    name: str
    extra: str
    fields: dict[str, Field] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    not_null: frozenset[str] = frozenset()


class Fault(NamedTuple):
    """A part that ADK 2.13 would refuse: where it is and why. Neither holds the value."""

    place: str
    reason: str


@dataclass(slots=True)
class Findings:
    """What a walk found.

    `lenient`: parts that ADK would refuse are kept as they are, and nothing is told. `go`: Go's own spelling of
    names (`StateDelta`), which older adk-go wrote, is read too. `verbatim`: the value itself is meant for ADK, not what
    the walk makes of it, so a null or a base64 that ADK would refuse is a fault.
    """

    lenient: bool = False
    go: bool = False
    verbatim: bool = False
    faults: list[Fault] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    def lose(self, kind: str, place: Place) -> None:
        """Notes a conversion. A hostile value may need millions: all are counted, the first thousand with places."""
        place_known = len(self.losses) < _PLACES_TOLD
        self.losses.append(Loss(kind, spell(place)) if place_known else _loss_elsewhere(kind))

    def refuse(self, place: Place, reason: str) -> None:
        """Notes a part that ADK 2.13 would refuse; the caller leaves it out."""
        if len(self.faults) < _PLACES_TOLD:
            self.faults.append(Fault(spell(place), reason))
        self.lose("refused-part-dropped", place)


_PLACES_TOLD = 1000


@cache
def _loss_elsewhere(kind: str) -> Loss:
    return Loss(kind, "(further places)")


def spell(place: Place) -> str:
    """A place as text, such as `content.parts[0].text`; long keys are cut."""
    steps: list[str | int] = []
    while not isinstance(place, str):
        place, step = place
        steps.append(step)
    text = place
    for step in reversed(steps):
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            short = step if len(step) <= 80 else step[:79] + "…"
            text += f".{short}" if text else short
    return text if len(text) <= 500 else text[:499] + "…"


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(packaged("exhume.events", "model_fields.json"))
    return document


_MODELS: dict[str, Model] = {}


def model(name: str) -> Model:
    """The model of that name; a programming error when ADK has none."""
    found = _MODELS.get(name)
    if found is None:
        entry = _document()["models"][name]
        # registered before its fields are read: models may hold themselves
        found = _MODELS[name] = Model(
            name,
            entry["extra"],
            {},
            entry.get("defaults", {}),
            tuple(entry.get("required", ())),
            frozenset(entry.get("not_null", ())),
        )
        aliases = entry.get("aliases", {})
        for field_name, kind in entry["fields"].items():
            one = _field(field_name, kind)
            found.fields[aliases.get(field_name) or _camel(field_name)] = one
            found.fields[field_name] = one
    return found


def known_model(name: str) -> Model | None:
    """The model of that name, None where no event holds such a one."""
    return model(name) if name in _document()["models"] else None


def _field(name: str, kind: str) -> Field:
    if kind in _SCALARS:
        return Field(name, _SCALARS[kind], None, _EXACT.get(kind))
    if kind.startswith("model:"):
        return Field(name, MODEL, model(kind[6:]))
    if kind.startswith(("enum:", "choice:")):
        which, _, of = kind.partition(":")
        return Field(name, ENUM if which == "enum" else CHOICE, frozenset(_document()["enums"][of]))
    inner = _field("", kind[1:-1])
    return Field(name, LIST if kind[0] == "[" else DICT, inner)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


_REFUSED = object()


def shape(value: dict[str, Any], of: Model, place: Place, found: Findings) -> dict[str, Any]:
    """`value` in the form in which ADK 2.13 stores that model: a new object, nested application data shared.

    What ADK would refuse is left out and told in `found.faults` (kept in a lenient walk). Keys that ADK ignores pass.
    Depth is bounded by that of the models: only `any` nests, and is not entered.
    """
    fields = of.fields
    out: dict[str, Any] = {}
    for key, item in value.items():
        spec = fields.get(key)
        if spec is None and (found.go or found.lenient) and key[:1].isupper():
            spec = fields.get(key[0].lower() + key[1:])
        if spec is None or spec.name in out:
            if of.extra == "forbid" and not found.lenient:
                found.refuse((place, key), "ADK 2.13 knows no such field here and would refuse the session")
            elif key not in out and (item is not None or of.extra == "ignore"):
                out[key] = item
            continue
        if item is None:
            if found.verbatim and spec.name in of.not_null:
                found.refuse((place, key), "it is null, and ADK 2.13 would refuse the session")
            continue
        name, kind, _, exact = spec
        made = item
        if exact is not None:
            if type(item) is not exact:
                made = _other(item, spec, (place, key), found)
        elif kind == FLOAT and type(item) is float and not math.isfinite(item) and not found.lenient:
            found.lose("nan-to-null", (place, key))  # and null is the same as absent
            continue
        elif kind != ANY:
            made = _entered(item, spec, (place, key), found)
        if made is not _REFUSED:
            out[name] = made
    if of.defaults or of.required:
        _complete(out, of, place, found)
    return out


def _complete(out: dict[str, Any], of: Model, place: Place, found: Findings) -> None:
    """Fills in what ADK fills in, and tells what it cannot do without. A lenient walk adds nothing."""
    if found.lenient:
        return
    for name, default in of.defaults.items():
        if name not in out:
            out[name] = dict(default) if type(default) is dict else default
    for name in of.required:
        if name not in out:
            found.refuse((place, name), "it is missing, and ADK 2.13 refuses the session without it")


def _whole(value: dict[str, Any], of: Model, place: Place, found: Findings) -> Any:
    """A nested model in its shape; `_REFUSED` where it lacks what ADK cannot do without, which has been told."""
    out = shape(value, of, place, found)
    if found.lenient:
        return out
    if of.required and any(name not in out for name in of.required):
        return _REFUSED
    check = _CHECKS.get(of.name)
    fault = check(out) if check is not None else None
    if fault is not None:
        name, reason = fault
        found.refuse((place, name), f"{reason}, and ADK 2.13 refuses the session")
        return _REFUSED
    return out


def _check_service_account(out: dict[str, Any]) -> tuple[str, str] | None:
    """`ServiceAccount._validate_config` of google-adk 2.13.0."""
    if not out["use_default_credential"] and not out.get("service_account_credential"):
        return "service_account_credential", "it is missing"
    return ("audience", "it is missing") if out["use_id_token"] and not out.get("audience") else None


def _check_cache_metadata(out: dict[str, Any]) -> tuple[str, str] | None:
    """`CacheMetadata._enforce_active_state_invariant` of google-adk 2.13.0, and its two least values."""
    missing = [name for name in ("cache_name", "expire_time", "invocations_used") if name not in out]
    if 0 < len(missing) < 3:
        return missing[0], "it is missing beside its siblings"
    below = [name for name in ("invocations_used", "contents_count") if out.get(name, 0) < 0]
    return (below[0], "it is less than 0") if below else None


def _check_auth_config(out: dict[str, Any]) -> tuple[str, str] | None:
    """google-adk 2.13.0 makes a key of the whole (`AuthConfig.get_credential_key`), which must be UTF-8."""
    return ("auth_scheme", "it or its siblings hold a lone surrogate") if _holds_surrogate(out) else None


def _holds_surrogate(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_SURROGATE.search(key) or _holds_surrogate(item) for key, item in value.items())
    if isinstance(value, list):
        return any(map(_holds_surrogate, value))
    return isinstance(value, str) and _SURROGATE.search(value) is not None


#: Models whose fields must fit one another: gives the field at fault and why.
_CHECKS: dict[str, Callable[[dict[str, Any]], tuple[str, str] | None]] = {
    "ServiceAccount": _check_service_account,
    "CacheMetadata": _check_cache_metadata,
    "AuthConfig": _check_auth_config,
}


def _is_scheme(item: dict[str, Any]) -> bool:
    """Does one model of ADK's union of security schemes take it? `CustomAuthScheme` takes all that say their type."""
    if type(item.get("type_", item.get("type"))) is str:
        return True
    for name in _SCHEMES:
        trial = Findings()
        shape(item, model(name), "", trial)
        if not trial.faults:
            return True
    return False


_SCHEMES = ("HTTPBearer", "HTTPBase", "APIKey", "OAuth2", "OpenIdConnect", "OpenIdConnectWithConfig")


def _entered(item: Any, spec: Field, place: Place, found: Findings) -> Any:
    """A value of a kind that has to be looked at."""
    kind, about = spec.kind, spec.about
    if kind == MODEL:
        return _whole(item, about, place, found) if type(item) is dict else _other(item, spec, place, found)
    if kind == LIST:
        return _list(item, about, place, found) if type(item) is list else _other(item, spec, place, found)
    if kind == DICT:
        if type(item) is not dict:
            return _other(item, spec, place, found)
        members = {key: _member(one, about, (place, key), found) for key, one in item.items()}
        return {key: one for key, one in members.items() if one is not _REFUSED}
    if kind == BYTES:
        return _base64(item, place, found)
    if kind == ENUM and type(item) is str and (item.isascii() or not _SURROGATE.search(item)):
        # genai's enums take any case (`CaseInSensitiveEnum`), and keep a name that they do not know
        return item.upper() if item not in about and item.upper() in about else item
    if kind == FLOAT:
        return item if type(item) is float and math.isfinite(item) else _other(item, spec, place, found)
    if kind == ROUTE and (_is_route(item) or (type(item) is list and all(map(_is_route, item)))):
        return item
    if kind == CHOICE and type(item) is str and item in about:
        return item
    if kind == SCHEME and type(item) is dict:
        plain = without_nulls(item)
        if found.lenient or _is_scheme(plain):
            return plain
    return _other(item, spec, place, found)


def _is_route(item: Any) -> bool:
    return type(item) in (bool, int, str)


def _list(items: list[Any], about: Field, place: Place, found: Findings) -> list[Any]:
    if about.kind == MODEL:
        inner = about.about
        shaped = [
            _whole(one, inner, (place, i), found) if type(one) is dict else _member(one, about, (place, i), found)
            for i, one in enumerate(items)
        ]
    else:
        shaped = [_member(one, about, (place, index), found) for index, one in enumerate(items)]
    return [one for one in shaped if one is not _REFUSED]


def _member(item: Any, spec: Field, place: Place, found: Findings) -> Any:
    """A member of a list or of an object with free keys; null is none of any kind."""
    if spec.kind == ANY:
        return item
    if spec.exact is not None or item is None:
        return item if type(item) is spec.exact else _other(item, spec, place, found)
    return _entered(item, spec, place, found)


def _other(item: Any, spec: Field, place: Place, found: Findings) -> Any:
    """A value of another type than the field's: what pydantic's lax mode makes of it, else a fault."""
    if found.lenient:
        return item
    made = _lax(item, spec.kind)
    if made is _REFUSED:
        found.refuse(place, f"it is not {_NAMES[spec.kind]}, and ADK 2.13 would refuse the session")
    return made


_NAMES = {
    **{STR: "a text", LIST: "a list", MODEL: "an object", OBJECT: "an object", BYTES: "base64", ENUM: "a text"},
    **{BOOL: "a boolean", INT: "a whole number", FLOAT: "a number", DICT: "an object", SCHEME: "a security scheme"},
    **{ROUTE: "a boolean, a whole number, a text or a list of these", CHOICE: "one of the words that it can be"},
}


def _lax(item: Any, kind: int) -> Any:
    """pydantic's lax conversions between JSON types; `_REFUSED` where it has none."""
    if kind == BOOL:
        if isinstance(item, (int, float)):
            return bool(item) if item in (0, 1) else _REFUSED
        word = item.lower() if isinstance(item, str) else ""
        return True if word in _TRUE else False if word in _FALSE else _REFUSED
    if kind == INT:
        if isinstance(item, bool):
            return int(item)
        if isinstance(item, float) and item.is_integer():
            return int(item)
        return int(item.strip().partition(".")[0]) if isinstance(item, str) and _INTEGER.fullmatch(item) else _REFUSED
    if kind == FLOAT:
        if isinstance(item, (bool, int)) and abs(item) < 1 << 1000:
            return float(item)
        number = float(item) if isinstance(item, str) and _REAL.fullmatch(item) else math.nan
        return number if math.isfinite(number) else _REFUSED
    return _REFUSED


def _base64(item: Any, place: Place, found: Findings) -> Any:
    """Base64 as ADK writes it: URL-safe alphabet, padded. ADK up to 1.0.0 wrote the standard alphabet."""
    if type(item) is str:
        if _URLSAFE.fullmatch(item) and len(item) % 4 == 0 and _ends_exactly(item):
            return item
        try:
            if found.verbatim and not _is_base64_to_pydantic(item):
                raise ValueError
            plain = item.rstrip("=").replace("-", "+").replace("_", "/")
            raw = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
            return base64.urlsafe_b64encode(raw).decode()
        except (binascii.Error, ValueError):
            pass
    if found.lenient:
        return item
    found.refuse(place, "it is not base64, and ADK 2.13 would refuse the session")
    return _REFUSED


def _ends_exactly(item: str) -> bool:
    """Are the bits zero that padding leaves over? pydantic refuses others."""
    if not item.endswith("="):
        return True
    return item[-3] in "AQgw" if item.endswith("==") else item[-2] in "AEIMQUYcgkosw048"


def _is_base64_to_pydantic(item: str) -> bool:
    """Padding is optional, and one alphabet is used throughout."""
    plain = item.rstrip("=")
    padding = "=" * (-len(plain) % 4)
    if len(plain) % 4 == 1 or not _ends_exactly(plain + padding):
        return False
    return item in (plain, plain + padding) and not (("+" in plain or "/" in plain) and ("-" in plain or "_" in plain))


def without_nulls(value: Any) -> Any:
    """`value` without members that are null, at every depth; its depth must be bounded."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


# ---------------------------------------------------------------------------------------------- camelCase sources

#: Fields of most events; what they hold of the application lies in `content` and `actions`. None is camelCase.
COMMON_FIELDS = frozenset(
    {
        "actions",
        "author",
        "branch",
        "content",
        "id",
        "invocation_id",
        "long_running_tool_ids",
        "model_version",
        "node_info",
        "timestamp",
        "usage_metadata",
    }
)
#: Fields of a content; all that it holds is in the parts.
COMMON_CONTENT = frozenset({"parts", "role"})
_CAMEL_NAMES = (b'"functionCall"', b'"functionResponse"', b'"stateDelta"', b'"requestedToolConfirmations"')


def looks_camel(data: dict[str, Any], source: bytes) -> bool:
    """Is an event, or the content or the actions in it, spelt in camelCase? A quick test, wrong only towards yes."""
    if _spelt_by_adk(data):
        return False
    return "invocationId" in data or any(name in source for name in _CAMEL_NAMES)


def _spelt_by_adk(data: dict[str, Any]) -> bool:
    """Are all names of the event, its actions, its content and the parts in it ADK's own? Nearly always they are, and
    looking at those few costs less than a search of the whole text."""
    event, actions_names, content_names, part_names = _snake_names()
    if not event.issuperset(data):
        return False
    content = data.get("content")
    if content.__class__ is dict:
        if not content_names.issuperset(content):
            return False
        parts = content.get("parts")
        if parts.__class__ is list:
            for part in parts:
                if part.__class__ is dict and not part_names.issuperset(part):
                    return False
    actions = data.get("actions")
    return actions.__class__ is not dict or actions_names.issuperset(actions)


def is_plain(data: dict[str, Any]) -> bool:
    """Has an event only COMMON_FIELDS, actions that are an object of ADK's own names, and a content, if any, of
    COMMON_CONTENT whose parts are objects of ADK's own names?"""
    _, actions_names, _, part_names = _snake_names()
    if not COMMON_FIELDS.issuperset(data):
        return False
    content = data.get("content")
    if content.__class__ is dict:
        if not COMMON_CONTENT.issuperset(content):
            return False
        parts = content.get("parts")
        if parts.__class__ is list:
            for part in parts:
                if part.__class__ is not dict or not part_names.issuperset(part):
                    return False
        elif parts is not None:
            return False
    elif content is not None:
        return False
    actions = data.get("actions")
    return actions.__class__ is dict and actions_names.issuperset(actions)


@cache
def _snake_names() -> tuple[frozenset[str], ...]:
    """Python names of the fields of an event, its actions (but `compaction`, which holds a content of its own), its
    content and a part."""
    event, actions, content, part = (
        frozenset(one.name for one in model(name).fields.values())
        for name in ("Event", "EventActions", "Content", "Part")
    )
    return event, actions - {"compaction"}, content, part


def canonical(data: dict[str, Any]) -> dict[str, Any]:
    """An event in any spelling of its keys (camelCase, Go's own) with ADK's snake_case names.

    Nothing is refused: unknown keys and odd values stay as they are. Application data keeps its keys.
    """
    return shape(data, model("Event"), "", Findings(lenient=True))
