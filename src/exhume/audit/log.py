"""One session as the rules see it: events in causal order, calls and responses taken out, pairs made.

Built once a session by `exhume.audit.pairing`; rules only read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from exhume.audit.findings import Confidence
from exhume.events.model import EventRecord, SessionKey, StateRecord


@dataclass(slots=True, eq=False)
class Call:
    """A `function_call` part of an event that is not partial. `ordinal` counts calls in causal order."""

    id: str | None
    name: str
    args: Any
    entry: Entry
    ordinal: int
    long_running: bool = False
    responses: list[Response] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Response:
    """A `function_response` part of an event that is not partial, with the call it was paired with."""

    id: str | None
    name: str
    body: Any
    entry: Entry
    by_user: bool
    call: Call | None = None
    confidence: Confidence = Confidence.EXACT


@dataclass(slots=True, eq=False)
class Entry:
    """One event. `index` is its place in causal order; `data` is `record.data`, or `{}` when nothing could be read."""

    record: EventRecord
    data: dict[str, Any]
    index: int
    time: float | None
    author: str
    invocation_id: str
    partial: bool = False
    calls: list[Call] = field(default_factory=list)
    responses: list[Response] = field(default_factory=list)

    @property
    def event_id(self) -> str:
        return self.record.key.event_id

    @property
    def actions(self) -> dict[str, Any]:
        found = self.data.get("actions")
        return found if isinstance(found, dict) else {}


@dataclass(slots=True, eq=False)
class SessionLog:
    """A session's row (None for orphaned events) and its events.

    Attributes:
        entries: in causal order: by corrected time; among equal times calls before responses, then storage order.
        calls, responses: of all entries that are not partial, in that order.
        order_known: False where the order of events cannot be decided; rules that need it stay silent.
        rewound: per entry index, was it taken back by a later rewind?
    """

    key: SessionKey
    session: StateRecord | None
    entries: list[Entry]
    calls: list[Call] = field(default_factory=list)
    responses: list[Response] = field(default_factory=list)
    order_known: bool = True
    rewound: list[bool] = field(default_factory=list)
