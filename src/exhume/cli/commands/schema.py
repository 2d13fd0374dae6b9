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
    from exhume.report.schema import load_schema, schema_names

    if name is None:
        print("\n".join(schema_names()))
        return
    print(json.dumps(load_schema(name), indent=2))
