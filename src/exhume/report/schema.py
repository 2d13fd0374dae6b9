"""The JSON Schemas (draft 2020-12) of every document that exhume writes; they are files of the package."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from exhume.errors import UsageError


def schema_names() -> list[str]:
    """Names that `load_schema` and `exhume schema` take, sorted."""
    folder = files("exhume.report") / "schemas"
    return sorted(entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json"))


def load_schema(name: str) -> dict[str, Any]:
    """The schema of the document that the command `name` writes with `--format json`.

    Raises:
        UsageError: there is no such document.
    """
    if name not in schema_names():
        raise UsageError(f"There is no schema named {name}.", todo=f"Choose one of: {', '.join(schema_names())}.")
    loaded: dict[str, Any] = json.loads((files("exhume.report") / "schemas" / f"{name}.json").read_text("utf-8"))
    return loaded
