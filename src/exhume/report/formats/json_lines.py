"""`--format jsonl`: the document without its list (findings, refused rows), then each member of the list on a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from exhume.report.wire import Items, compact, quoted


def render(document: Mapping[str, Any], items: str) -> Iterator[str]:
    """One JSON object a line. Every line has `type`: `report` for the first, `items` (the list's name) for the rest."""
    yield compact({"type": "report", **{key: value for key, value in document.items() if key != items}}) + "\n"
    listed = document.get(items, ())
    if isinstance(listed, Items):
        for text in listed:  # the brace of the member gives way to the type
            yield f'{{"type": {quoted(items)}, {text[1:]}\n'
        return
    for item in listed:
        yield compact({"type": items, **item}) + "\n"
