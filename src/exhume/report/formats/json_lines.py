"""`--format jsonl`: the document without its list (findings, refused rows), then each member of the list on a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from exhume.report.wire import compact


def render(document: Mapping[str, Any], items: str) -> Iterator[str]:
    """One JSON object a line. Every line has `type`: `report` for the first, `items` (the list's name) for the rest."""
    yield compact({"type": "report", **{key: value for key, value in document.items() if key != items}}) + "\n"
    for item in document.get(items, ()):
        yield compact({"type": items, **item}) + "\n"
