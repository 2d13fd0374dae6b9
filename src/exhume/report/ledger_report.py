"""The ledger of approvals as a document, as a table and as CSV."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from typing import Any

from exhume.audit.external_list import ListedRow, spreadsheet_safe
from exhume.audit.ledger import Ledger, LedgerRow
from exhume.audit.reconciliation import Contradiction, Mismatch, Reconciliation
from exhume.events.model import SessionKey
from exhume.redact import mask_url, printable
from exhume.report.documents import Document, Span, header
from exhume.report.view import Block, Line, Mood, View, number
from exhume.report.wire import plain, rfc3339, short_json

_LONGEST_VALUE = 160
_MOST_ROWS = 200

#: The columns of the CSV, in their order: the fields of `row_part`.
_COLUMNS = (
    "app_name",
    "user_id",
    "session_id",
    "tool",
    "args",
    "call_id",
    "request_id",
    "request_event_id",
    "requested_at",
    "decision",
    "decided_by",
    "decision_event_id",
    "decided_at",
    "latency",
    "payload",
    "nth",
    "executions",
    "early_executions",
    "execution_event_ids",
    "fingerprint",
    "rewound",
    "note",
)


def ledger_document(found: Ledger, reconciliation: Reconciliation | None, *, span: Span) -> Document:
    """`exhume.approvals/1`."""
    decided = Counter(row.decision for row in found.rows)
    return {
        **header("approvals", found.source, span),
        "layout": found.layout,
        "summary": {
            "sessions": found.sessions,
            "requests": len({(*row.key, row.request_id or row.request_event) for row in found.rows}),
            "decisions": dict(sorted(decided.items())),
            "executions": sum(row.executions + row.early for row in found.rows),
        },
        "reconciliation": None if reconciliation is None else _reconciliation_part(reconciliation),
        "approvals": [row_part(row) for row in found.rows],
    }


def row_part(row: LedgerRow) -> Document:
    """One row of the ledger, its times in UTC."""
    return {
        "app_name": row.key.app_name,
        "user_id": row.key.user_id,
        "session_id": row.key.session_id,
        "tool": row.tool,
        "args": plain(row.args),
        "call_id": row.call_id,
        "request_id": row.request_id,
        "request_event_id": row.request_event,
        "requested_at": rfc3339(row.requested_at),
        "decision": row.decision,
        "decided_by": row.decided_by,
        "decision_event_id": row.decision_event,
        "decided_at": rfc3339(row.decided_at),
        "latency": plain(None if row.latency is None else round(row.latency, 6)),
        "payload": plain(row.payload),
        "nth": row.nth,
        "executions": row.executions,
        "early_executions": row.early,
        "execution_event_ids": list(row.execution_events),
        "fingerprint": row.fingerprint,
        "rewound": row.rewound,
        "note": row.note,
    }


def _reconciliation_part(found: Reconciliation) -> Document:
    return {
        "ledger": found.ledger,
        "kind": found.kind,
        "matched": found.matched,
        "differences": found.differences,
        "log_only_count": found.log_only_count,
        "log_only": [row_part(row) for row in found.log_only],
        "ledger_only_count": found.ledger_only_count,
        "ledger_only": [_entry_part(entry) for entry in found.ledger_only],
        "contradicted_count": found.contradicted_count,
        "contradicted": [_contradiction_part(one) for one in found.contradicted],
        "more_executions": [_mismatch_part(one) for one in found.more_executions],
    }


def _entry_part(entry: ListedRow) -> Document:
    return {"line": entry.line, "identity": entry.identity, "value": entry.value, "count": entry.count}


def _contradiction_part(one: Contradiction) -> Document:
    return {
        **_entry_part(one.listed),
        "decision": one.listed.decision,
        "tool": one.tool,
        "call_id": one.call_id,
        "logged_decision": one.logged,
    }


def _mismatch_part(one: Mismatch) -> Document:
    return {
        "identity": one.identity,
        "value": one.value,
        "tool": one.tool,
        "approvals": one.approvals,
        "executions": one.executions,
    }


def ledger_view(found: Ledger, reconciliation: Reconciliation | None, *, span: Span) -> View:
    """The ledger for a person."""
    left = len(found.rows) - _MOST_ROWS
    notes = (f"{left:,} more entries: --format csv or json gives all of them.",) if left > 0 else ()
    blocks: list[Block] = []
    decided = Counter(row.decision for row in found.rows)
    said = ", ".join(f"{count:,} {decision}" for decision, count in sorted(decided.items()))
    verdict = (
        f"{number(len(found.rows), 'entry', 'entries')}: {said}." if found.rows else "No tool confirmation in this log."
    )
    again = {(row.key, row.request_id, row.request_event) for row in found.rows if row.nth > 1 and not row.rewound}
    if again:
        verdict += f" {number(len(again), 'request')} answered more than once."
    mood = Mood.LOOK if again else Mood.GOOD
    if reconciliation is not None:
        blocks += _reconciliation_blocks(reconciliation)
        mood = Mood.BAD if reconciliation.differences else Mood.GOOD
        verdict = (
            f"The log and {reconciliation.ledger} differ in {number(reconciliation.differences, 'place')}."
            if reconciliation.differences
            else f"The log and {reconciliation.ledger} agree ({number(reconciliation.matched, 'row')} matched)."
        )
    return View(
        command="approvals",
        source=mask_url(found.source),
        mood=mood,
        verdict=verdict,
        facts=(("layout", found.layout), ("looked at", number(found.sessions, "session"))),
        blocks=tuple(blocks),
        lines=tuple(_lines(found.rows[:_MOST_ROWS])),
        notes=notes,
        started_at=span.started_at,
        finished_at=span.finished_at,
    )


_MARKS = {"approved": "++", "rejected": "--", "unreadable": "!!", "closed": "..", "pending": "??"}


def _lines(rows: list[LedgerRow]) -> Iterator[Line]:
    """Each session once, each request below it, each answer below that."""
    session: SessionKey | None = None
    request: tuple[str | None, str] | None = None
    for row in rows:
        if row.key != session:
            session, request = row.key, None
            yield Line(0, "", "")
            yield Line(0, "==", " / ".join(row.key))
        if (row.request_id, row.request_event) != request:
            request = row.request_id, row.request_event
            action = f"{row.tool} {short_json(row.args, _LONGEST_VALUE)} ({row.call_id or 'no id'})"
            yield Line(2, rfc3339(row.requested_at) or "no time", f"{action}  fingerprint {row.fingerprint[:12]}")
        yield Line(6, _MARKS[row.decision], _decision_text(row))


def _decision_text(row: LedgerRow) -> str:
    text = row.decision
    if row.decided_by is not None:
        text += f" by {row.decided_by}"
    if row.decided_at is not None:
        text += f" at {rfc3339(row.decided_at)}"
    if row.latency is not None:
        text += f", after {row.latency:,.1f} s"
    if row.nth > 1:
        text += f", answer number {row.nth}"
    if row.payload is not None:
        text += f", payload {short_json(row.payload, _LONGEST_VALUE)}"
    text += f"; ran {number(row.executions, 'time')}" if row.executions or row.decision == "approved" else ""
    text += f"; ran {number(row.early, 'time')} before any answer" if row.early else ""
    return text + (" (rewound)" if row.rewound else "") + (f" <{row.note}>" if row.note else "")


def _reconciliation_blocks(found: Reconciliation) -> Iterator[Block]:
    if found.log_only:
        rows = tuple(
            (row.tool, row.call_id or "", row.request_id or "", f"{row.key.user_id} / {row.key.session_id}")
            for row in found.log_only[:_MOST_ROWS]
        )
        title = f"In the log, not in the ledger: {found.log_only_count:,}"
        yield Block(title, ("tool", "call", "request", "user / session"), rows)
    if found.ledger_only:
        listed = tuple((f"{one.line}", one.identity, one.value) for one in found.ledger_only[:_MOST_ROWS])
        title = f"In the ledger, not in the log: {found.ledger_only_count:,}"
        yield Block(title, ("line", "known by", "value"), listed, right=frozenset({0}))
    if found.contradicted:
        told = tuple(
            (f"{one.listed.line}", one.tool, one.call_id or one.listed.value, one.listed.decision, one.logged)
            for one in found.contradicted[:_MOST_ROWS]
        )
        title = f"Decided otherwise in the log: {found.contradicted_count:,}"
        yield Block(title, ("line", "tool", "call", "ledger", "log"), told, right=frozenset({0}))
    if found.more_executions:
        more = tuple(
            (one.tool, one.value, f"{one.approvals}", f"{one.executions}") for one in found.more_executions[:_MOST_ROWS]
        )
        title = f"More executions than approvals: {len(found.more_executions):,}"
        yield Block(title, ("tool", "call", "approvals", "executions"), more, right=frozenset({2, 3}))


def ledger_csv(found: Ledger) -> Iterator[str]:
    """The ledger as CSV: every cell quoted, objects as JSON, nothing that a spreadsheet takes for a formula."""
    buffer = StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in found.rows:
        part = row_part(row)
        writer.writerow([_cell(part[name]) for name in _COLUMNS])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)  # a number that exhume computed, not a text that may pose as one
    if isinstance(value, str):
        return spreadsheet_safe(printable(value))
    return "" if value is None else spreadsheet_safe(json.dumps(value, ensure_ascii=True, sort_keys=True))
