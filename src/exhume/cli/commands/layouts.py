"""`exhume layouts`: the known layouts and the steps between them."""

from __future__ import annotations

from typing import Annotated

import typer


def command(json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the known layouts and which can be moved to which."""
    from json import dumps

    from exhume.cli.output import tell
    from exhume.migrate.chain import layouts_graph

    graph = layouts_graph()
    if json:
        listed = [
            {
                "layout": node.name,
                "summary": node.summary,
                "steps": [{"to": to, "changes": text} for to, text in node.steps],
            }
            for node in graph
        ]
        print(dumps(listed, indent=2))
        return
    width = max(len(node.name) for node in graph)
    for node in graph:
        tell(f"{node.name:{width}s}  ", node.summary)
        for target, changes in node.steps:
            tell(f"{'':{width}s}    -> {target}: ", changes)
