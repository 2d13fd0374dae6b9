"""The ledger of approvals: each request, who decided what and when, and how often the tool ran after it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from exhume.audit.canonical import canonical
from exhume.audit.engine import is_storage_ordered, sessions_with_events
from exhume.audit.log import Decision, GatedCall, Request, SessionLog
from exhume.audit.pairing import build_log
from exhume.audit.secrets import hide
from exhume.events.interface import Reader
from exhume.events.model import SessionKey
from exhume.schema.detection import Detection


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One decision on a request, or a request without any.

    Attributes:
        tool, args: what was asked about, as the request says it; credentials in `args` are hidden.
        call_id, request_id: ids of the original call and of the request.
        requested_at, decided_at: epoch seconds; `latency` is the seconds between them.
        decision: `approved`, `rejected`, `unreadable`, `closed` (by ADK, without an answer) or `pending`.
        decided_by: user of the session in which the answer was given; ADK logs no finer identity.
        payload: what the answer carried for the tool, credentials hidden.
        nth: 1 for the first answer to this request, 2 for the second, ...
        executions: runs of the original call after this decision and before the next one on the same call.
        early: runs of the original call before any answer; they stand in the first row of the call.
        fingerprint: the same for the same tool with the same arguments (32 hexadecimal digits).
        note: why a decision cannot be read, or what is odd about it.
    """

    key: SessionKey
    tool: str
    args: Any
    call_id: str | None
    request_id: str | None
    request_event: str
    requested_at: float | None
    decision: str
    decided_by: str | None
    decision_event: str | None
    decided_at: float | None
    latency: float | None
    payload: Any
    nth: int
    executions: int
    execution_events: tuple[str, ...]
    fingerprint: str
    rewound: bool
    early: int = 0
    note: str = ""


@dataclass(slots=True)
class Ledger:
    """All rows of one source, by session and in order of the requests."""

    source: str
    layout: str
    rows: list[LedgerRow]
    sessions: int


def action_fingerprint(tool: str, args: Any) -> str:
    """Equal for the same tool with equal arguments: key order aside, numbers by value (see `canonical`)."""
    return canonical([tool, args or {}]).hex()


def ledger(reader: Reader, detection: Detection, *, reveal: bool = False) -> Ledger:
    """Reads the whole source; sessions come one at a time, only the rows are kept."""
    found = Ledger(detection.info.name, str(detection.layout), [], 0)
    ordered = is_storage_ordered(detection)
    for key, session, records in sessions_with_events(reader):
        found.sessions += session is not None
        log = build_log(key, session, records, storage_ordered=ordered)
        if log.approvals is not None:
            found.rows.extend(session_rows(log, reveal=reveal))
    return found


def session_rows(log: SessionLog, *, reveal: bool = False) -> Iterator[LedgerRow]:
    """The rows of one session that is already paired."""
    if log.approvals is None:
        return
    show: Callable[[Any], Any] = (lambda value: value) if reveal else hide
    runs = {id(gated): _Runs(gated) for gated in log.approvals.gated}
    for request in log.approvals.requests:
        row = _request_row(log, request, show)
        of_call = runs.get(id(request.gated)) if request.gated is not None else None
        if of_call is not None and request is of_call.first:
            row = replace(row, early=len(of_call.early))
        for nth, decision in enumerate(request.decisions, start=1):
            decided = _decided(log, row, decision, runs=of_call.after(decision) if of_call else (), show=show)
            yield replace(decided, nth=nth, early=row.early if nth == 1 else 0)
        if not request.decisions:
            yield row


class _Runs:
    """Runs of one gated call, each given to the last decision before it."""

    def __init__(self, gated: GatedCall) -> None:
        self.first = gated.requests[0] if gated.requests else None
        self.early = gated.early
        self._decided = [decision.index for decision in gated.decisions]
        self._runs: dict[int, list[str]] = {}
        for run in gated.executions:
            place = bisect_right(self._decided, run.entry.index) - 1
            self._runs.setdefault(place, []).append(run.entry.event_id)

    def after(self, decision: Decision) -> tuple[str, ...]:
        return tuple(self._runs.get(bisect_right(self._decided, decision.index) - 1, ()))


def _request_row(log: SessionLog, request: Request, show: Callable[[Any], Any]) -> LedgerRow:
    entry = request.calls[0].entry
    original = request.original
    gated = request.gated.call if request.gated else None
    name, ident = original.get("name"), original.get("id")
    tool = name if isinstance(name, str) else gated.name if gated else ""
    args = original.get("args", gated.args if gated else None)
    return LedgerRow(
        key=log.key,
        tool=tool,
        args=show(args),
        call_id=ident if isinstance(ident, str) else gated.id if gated else None,
        request_id=request.id,
        request_event=entry.event_id,
        requested_at=entry.time,
        decision="closed" if request.sealed is not None else "pending",
        decided_by=None,
        decision_event=None,
        decided_at=None,
        latency=None,
        payload=None,
        nth=0,
        executions=0,
        execution_events=(),
        fingerprint=action_fingerprint(tool, args),
        rewound=log.is_rewound(entry.index),
        note="" if gated else "the original call is not in the log",
    )


def _decided(
    log: SessionLog, row: LedgerRow, decision: Decision, *, runs: tuple[str, ...], show: Callable[[Any], Any]
) -> LedgerRow:
    entry = decision.response.entry
    latency = None if entry.time is None or row.requested_at is None else entry.time - row.requested_at
    notes = [row.note, decision.reason, "" if decision.lax is None else "approved by a value that is not a boolean"]
    return replace(
        row,
        decision={True: "approved", False: "rejected", None: "unreadable"}[decision.approved],
        decided_by=log.key.user_id,
        decision_event=entry.event_id,
        decided_at=entry.time,
        latency=latency,
        payload=show(decision.payload),
        executions=len(runs),
        execution_events=runs,
        rewound=log.is_rewound(entry.index),
        note="; ".join(filter(None, notes)),
    )
