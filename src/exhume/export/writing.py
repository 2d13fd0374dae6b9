"""JSON text of an export, and the count of what could not be written as it is."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from exhume.events.model import EventRecord
from exhume.events.shapes import Fault

_LONE = re.compile("[\ud800-\udfff]")
_NOT_PLAIN = re.compile("[^\x00-\x7e]+")
_NOTED = 5


@dataclass(slots=True)
class Writing:
    """Counts of one export."""

    sessions: int = 0
    events: int = 0
    orphaned: int = 0
    odd: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict)

    def note(self, what: str, record: EventRecord) -> None:
        """Something that this event could not keep; the first few events are named."""
        self.odd[what] += 1
        named = self.places.setdefault(what, [])
        if len(named) < _NOTED:
            named.append("/".join(record.key))

    def faults(self, faults: list[Fault], record: EventRecord) -> None:
        """Parts of an event that ADK's models would refuse, which are left out."""
        if faults:
            self.note("had parts that ADK refuses, and are exported without them", record)

    def notes(self) -> list[str]:
        """One sentence for each kind of trouble."""
        notes = []
        if self.orphaned:
            notes.append(
                f"{self.orphaned:,} of the sessions have no row of their own in the source: their events are orphans."
            )
        for what, count in self.odd.items():
            named = self.places[what]
            end = " and more." if count > len(named) else "."
            notes.append(f"{count:,} event{'s' if count != 1 else ''} {what}: {', '.join(named)}{end}")
        return notes


def text_of(value: Any) -> str:
    """JSON in one line, ASCII only; lone surrogates stay as escapes."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def strict_text(value: Any) -> str:
    """JSON that every parser takes: a lone surrogate becomes a visible escape, as pydantic refuses it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if _LONE.search(text):
        text = _LONE.sub(lambda match: f"\\\\u{ord(match.group()):04x}", text)
    # what is not plain ASCII stands inside JSON strings only, where an escape means the same
    return _NOT_PLAIN.sub(lambda match: json.dumps(match.group())[1:-1], text)
