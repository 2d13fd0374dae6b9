"""ADK's models by alias: the spelling that `adk run --save_session`, the web API and eval sets use."""

from __future__ import annotations

from typing import Any

from exhume.events.shapes import DICT, LIST, MODEL, SCHEME, Field, Findings, Model, model, shape

#: Fields of FastAPI's security schemes whose Python names end in an underscore (fastapi.openapi.models); v1 stores the
#: Python names, and only the aliases are read back as the scheme that was meant.
_SCHEME_ALIASES = {"type_": "type", "in_": "in", "ref_": "$ref"}


def session_event(data: dict[str, Any], found: Findings) -> dict[str, Any]:
    """An event in v1 form (snake_case) as google-adk's Session model takes it (2.13.0).

    What ADK would refuse with the whole session is left out and told in `found.faults`.
    """
    return _by_alias(shape(data, model("Event"), "", found), model("Event"))


def content_by_alias(content: Any, found: Findings) -> dict[str, Any] | None:
    """The `content` of an event as google.genai's Content model takes it; None where there is none."""
    if not isinstance(content, dict):
        return None
    return _by_alias(shape(content, model("Content"), "content", found), model("Content"))


def _by_alias(value: dict[str, Any], of: Model) -> dict[str, Any]:
    aliases = _aliases(of)
    out: dict[str, Any] = {}
    for name, item in value.items():
        alias, spec = aliases.get(name, (name, None))
        out[alias] = item if spec is None else _entered(item, spec)
    return out


_ALIASES: dict[str, dict[str, tuple[str, Field]]] = {}


def _aliases(of: Model) -> dict[str, tuple[str, Field]]:
    """Field name -> alias and field. A model lists each field by its alias first, then by its name."""
    found = _ALIASES.get(of.name)
    if found is None:
        found = _ALIASES[of.name] = {}
        for spelling, spec in of.fields.items():
            found.setdefault(spec.name, (spelling, spec))
    return found


def _entered(item: Any, spec: Field) -> Any:
    kind, about = spec.kind, spec.about
    if kind == MODEL and isinstance(item, dict):
        return _by_alias(item, about)
    if kind == LIST and isinstance(item, list):
        return [_entered(one, about) for one in item]
    if kind == DICT and isinstance(item, dict):
        return {key: _entered(one, about) for key, one in item.items()}
    if kind == SCHEME and isinstance(item, dict):
        return {_SCHEME_ALIASES.get(key, key): one for key, one in item.items()}
    return item
