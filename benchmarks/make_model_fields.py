"""Writes `src/exhume/events/model_fields.json` from the models of the installed google-adk.

usage: python benchmarks/make_model_fields.py [--check]

Every pydantic model that an event can hold is listed with its fields, so that exhume knows ADK's shapes without
importing ADK. `--check` compares instead of writing and exits 1 when the file is not what this release gives.

Kinds of fields: `str`, `int`, `float`, `bool`, `bytes`, `any` (application data, never looked into), `object`
(application data that must be an object), `scheme` (a security scheme, see below), `enum:NAME`, `model:NAME`, `[KIND]`
for lists and sets, `{KIND}` for objects whose keys are the application's. A field's name comes with its alias where
that is not its camelCase form. `defaults` are the values other than null that ADK fills in for a missing field;
without a field of `required` ADK refuses the object, and so it does with a null in one of `not_null`.
"""

from __future__ import annotations

import argparse
import enum
import inspect
import json
import sys
import types
import typing
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent.parent / "src" / "exhume" / "events" / "model_fields.json"

#: Declared as Any because of an import cycle in ADK; `EventActions._parse_auth_configs` makes them AuthConfig.
OVERRIDES = {
    ("EventActions", "requested_auth_configs"): "{model:AuthConfig}",
    # a union of models that are told apart by their content; ADK stores the Python names (`type_`, `in_`)
    ("AuthConfig", "auth_scheme"): "scheme",
    # bool, int, str or a list of these: pydantic keeps each as it is
    ("EventActions", "route"): "route",
}


def camel(name: str) -> str:
    """The camelCase form as pydantic's `to_camel` makes it."""
    from pydantic.alias_generators import to_camel

    return to_camel(name)


def takes_null(annotation: Any) -> bool:
    """Is null a value of that type?"""
    return annotation in (Any, object) or type(None) in typing.get_args(annotation)


class Shapes:
    """Collects models and enums, starting from one model."""

    def __init__(self) -> None:
        self.models: dict[str, Any] = {}
        self.enums: dict[str, list[str]] = {}

    def add(self, model: Any) -> None:
        name = model.__name__
        if name in self.models:
            return
        entry: dict[str, Any] = {"extra": model.model_config.get("extra", "ignore"), "fields": {}}
        self.models[name] = entry
        aliases, defaults, not_null = {}, {}, []
        required = [field for field, info in model.model_fields.items() if info.is_required()]
        for field, info in model.model_fields.items():
            entry["fields"][field] = OVERRIDES.get((name, field)) or self.kind(info.annotation)
            if info.alias is not None and info.alias != camel(field):
                aliases[field] = info.alias
            if info.alias is None and camel(field) != field:
                aliases[field] = field
            if not takes_null(info.annotation):
                not_null.append(field)
            default = info.get_default(call_default_factory=True) if not info.is_required() else None
            if default is not None and not callable(getattr(info, "default_factory", None)):
                defaults[field] = default.value if isinstance(default, enum.Enum) else default
            elif isinstance(default, dict):
                defaults[field] = {}
        if aliases:
            entry["aliases"] = aliases
        if defaults:
            entry["defaults"] = defaults
        if required:
            entry["required"] = required
        if not_null:
            entry["not_null"] = not_null

    def kind(self, annotation: Any) -> str:
        """The kind of one annotation; None in a union says nothing, as null is the same as absent."""
        origin, args = typing.get_origin(annotation), typing.get_args(annotation)
        if origin in (typing.Union, types.UnionType):
            members = [one for one in args if one is not type(None)]
            if len(members) != 1:
                raise SystemExit(f"a union that OVERRIDES does not name: {annotation}")
            return self.kind(members[0])
        if origin is typing.Literal:
            return self.literal(args)
        if origin in (list, set):
            return f"[{self.kind(args[0])}]"
        if origin is dict:
            value = self.kind(args[1])
            return "object" if value == "any" else f"{{{value}}}"
        return self.plain_kind(annotation)

    def plain_kind(self, annotation: Any) -> str:
        import pydantic
        from google.genai._common import CaseInSensitiveEnum

        if annotation is Any or annotation is object:
            return "any"
        if inspect.isclass(annotation) and issubclass(annotation, pydantic.BaseModel):
            self.add(annotation)
            return f"model:{annotation.__name__}"
        if inspect.isclass(annotation) and issubclass(annotation, enum.Enum):
            self.enums[annotation.__name__] = [str(member.value) for member in annotation]
            # genai's own enums take every name; all others only theirs
            kind = "enum" if issubclass(annotation, CaseInSensitiveEnum) else "choice"
            return f"{kind}:{annotation.__name__}"
        if annotation in (str, int, float, bool, bytes):
            return str(annotation.__name__)
        raise SystemExit(f"an annotation without a kind: {annotation}")

    def literal(self, values: tuple[Any, ...]) -> str:
        name = "Literal_" + "_".join(map(str, values))
        self.enums[name] = [str(value) for value in values]
        return f"choice:{name}"


def build() -> str:
    warnings.filterwarnings("ignore")
    import fastapi.openapi.models as openapi
    from google.adk.auth import auth_schemes
    from google.adk.auth.auth_tool import AuthConfig
    from google.adk.events.event import Event

    shapes = Shapes()
    shapes.add(Event)
    shapes.add(AuthConfig)
    for scheme in (
        *(openapi.APIKey, openapi.HTTPBase, openapi.HTTPBearer, openapi.OAuth2, openapi.OpenIdConnect),
        *(auth_schemes.OpenIdConnectWithConfig, auth_schemes.CustomAuthScheme),
    ):
        shapes.add(scheme)
    document = {"google-adk": version("google-adk"), "models": shapes.models, "enums": shapes.enums}
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    text = build()
    if parser.parse_args().check:
        same = TARGET.read_text() == text
        print("the same" if same else f"{TARGET.name} is not what this google-adk gives")
        return 0 if same else 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
