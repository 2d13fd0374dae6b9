"""The event model: what every reader yields, whatever the layout it read.

`EventRecord.data` is the event in the form of ADK's v1 `event_data`: snake_case keys, plain JSON values, unknown
fields kept. The migration writes it, the audit reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from exhume.stores.interface import Row


class SessionKey(NamedTuple):
    """Primary key of a session. A session id alone is not unique: it repeats across users and apps."""

    app_name: str
    user_id: str
    session_id: str


class EventKey(NamedTuple):
    """Primary key of an event."""

    app_name: str
    user_id: str
    session_id: str
    event_id: str

    @property
    def session(self) -> SessionKey:
        return SessionKey(self.app_name, self.user_id, self.session_id)


class Loss(NamedTuple):
    """One conversion that JSON or the target layout forced: its kind (`bytes-to-base64`, `set-to-list`, ...) and its
    place inside the event, such as `actions.state_delta.cart[3]`. Never holds the value itself."""

    kind: str
    place: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a value could not be read or carried over as it is. A value with a reason, never a log line.

    Attributes:
        rule: the rule of the catalogue that it falls under, such as `EXH501`, `EXH502`, `EXH307`.
        column: the column that holds the value.
        reason: one sentence without the value itself.
        globals: dotted names of unsafe globals, for EXH501.
        offset: byte offset inside the value where reading ended, where that means something.
        sha256: hash of the raw bytes of the value.
        fatal: False for what is only told (EXH503 and EXH504: the value was read).
    """

    rule: str
    column: str
    reason: str
    sha256: str
    globals: tuple[str, ...] = ()
    offset: int | None = None
    fatal: bool = True


@dataclass(slots=True)
class EventRecord:
    """One stored event.

    Attributes:
        key: primary key. Cells that are not text are spelt as text here; `raw` has them as they are.
        position: storage order in the store.
        invocation_id: of the column; None where it is NULL.
        column_time: the time column as epoch seconds, a naive time read as UTC; None when it cannot be read.
        time: the true epoch in seconds after the zone correction; None when it cannot be read.
        data: the event as v1 `event_data`. When there are fatal problems: the event without the parts that
            could not be read, which is what a quarantining migration writes. None when nothing could be made of it.
        losses: conversions made on the way.
        problems: what could not be read, or must be told.
        columns: names for `raw`.
        raw: the cells of the row as stored; may be empty where `source` is not None (see `ReadOptions.raw_events`).
        plain: is the event known to have only the fields that most events have, and names of ADK's own in its content
            and actions (`exhume.events.shapes.is_plain`)? False also where nobody looked.
        source: for layouts that hold an event as one JSON text, its bytes as stored (for cheap pre-checks), else None.
    """

    key: EventKey
    position: int
    invocation_id: str | None
    column_time: float | None
    time: float | None
    data: dict[str, Any] | None
    losses: tuple[Loss, ...] = ()
    problems: tuple[Problem, ...] = ()
    columns: tuple[str, ...] = ()
    raw: Row = ()
    source: bytes | None = None
    plain: bool = False

    @property
    def refused(self) -> bool:
        """Does a fatal problem keep this event from being carried over as it is?"""
        return any(problem.fatal for problem in self.problems)


@dataclass(slots=True)
class StateRecord:
    """One row that holds state: of a session, a user (`session_id` is None) or an app (`user_id` is None too).

    `state` is the parsed JSON object; None when the text is not one, and then `problems` says why. `losses` are the
    conversions that reading it took.
    `create_time` and `update_time` are epoch seconds, a naive time read as UTC; None when absent or unreadable.
    """

    app_name: str
    user_id: str | None
    session_id: str | None
    state: dict[str, Any] | None
    state_text: str | None
    create_time: float | None
    update_time: float | None
    position: int
    problems: tuple[Problem, ...] = ()
    columns: tuple[str, ...] = ()
    raw: Row = ()
    losses: tuple[Loss, ...] = ()


class Capability:
    """Names of what a layout can hold; a rule that needs more than the source has stays silent and says so once."""

    ACTIONS = "actions"
    LONG_RUNNING = "long_running_tool_ids"
    STATE = "state"
    SESSION_TIMES = "session_times"
    EVENT_COLUMNS = "event_columns"  # columns beside event_data that could disagree with it
    STATE_ROWS = "state_rows"
    CONFIRMATIONS = "requested_tool_confirmations"


@dataclass(frozen=True, slots=True)
class TimeZoneReport:
    """How the time column was read.

    Attributes:
        zone: IANA name or fixed offset such as `-05:00`; `mixed` where rows changed meaning; `UTC` by default.
        proof: `stated`, `proved`, `not proved` or `not needed` (the layout holds exact times).
        sessions_agreeing, sessions_disagreeing: sessions whose own times support or contradict the zone.
        notes: sentences for the report, e.g. ambiguous hours counted, zones assumed between proofs.
        ambiguous: events in an hour that repeats in autumn which order could not resolve.
    """

    zone: str
    proof: str
    sessions_agreeing: int = 0
    sessions_disagreeing: int = 0
    ambiguous: int = 0
    notes: tuple[str, ...] = ()
    offsets: Mapping[str, int] = field(default_factory=dict)  # offset spelt "-05:00" -> sessions that prove it
