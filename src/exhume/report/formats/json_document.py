"""`--format json`: the document of the machine contract, ASCII only, the same bytes on every run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from exhume.report.wire import document_lines


def render(document: Mapping[str, Any]) -> Iterator[str]:
    """One JSON document over several lines."""
    for line in document_lines(document):
        yield line + "\n"
