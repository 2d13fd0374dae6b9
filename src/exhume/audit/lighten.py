"""Takes giant texts out of an event before it is judged: their length and hash say all that a rule could ask."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from exhume.events.json_text import GIANT, is_giant
from exhume.events.model import EventRecord

#: Characters of a text that is left whole, and of the beginning that stands for a longer one.
_WHOLE = 1 << 20
_BEGINNING = 1_000


def lightened(record: EventRecord) -> EventRecord:
    """The event with short stand-ins for texts beyond 1 Mi characters, where its row holds a giant cell; else itself.

    Equal texts have equal stand-ins. The stored cells in `raw` and `source` stay.
    """
    source = record.source  # counted in characters, as cells are
    giant = is_giant(record.raw) if source is None else len(source.decode("utf-8", "surrogateescape")) > GIANT
    if record.data is None or not giant:
        return record
    return replace(record, data=_lighter(record.data))


def _lighter(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _WHOLE:
        digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{value[:_BEGINNING]} ... ({len(value):,} characters, sha256 {digest})"
    if isinstance(value, dict):
        return {key: _lighter(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_lighter(item) for item in value]
    return value
