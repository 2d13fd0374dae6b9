"""`exhume layouts`: the known layouts and the steps between them."""

from __future__ import annotations


def command() -> None:
    """List the known layouts and which can be moved to which."""
    from exhume.migrate.chain import layouts_graph

    for name, summary, steps in layouts_graph():
        print(f"{name:16s} {summary}")
        for target, changes in steps:
            print(f"{'':16s}   -> {target}: {changes}")
