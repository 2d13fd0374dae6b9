"""`exhume schema`: the JSON Schemas of the machine contract."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Name of a document, such as migrate; none lists them.")
    ] = None,
) -> None:
    """Print the JSON Schema of a document, or list the documents."""
    from exhume.errors import UsageError
    from exhume.report.schema import load_schema, schema_names

    names = schema_names()
    if name is None:
        print("\n".join(names))
        return
    if name not in names:
        raise UsageError(f"There is no schema named {name}.", todo=f"Choose one of: {', '.join(names)}.")
    print(json.dumps(load_schema(name), indent=2))
