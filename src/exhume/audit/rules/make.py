"""Builds findings of the families that look at rows, state and pickles, with bounded evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from exhume.audit.findings import Confidence, Evidence, Finding, Severity
from exhume.audit.log import Entry, SessionLog
from exhume.audit.rule import Rule
from exhume.events.model import EventKey, SessionKey, StateRecord

#: Rows that one finding names; the message gives the whole number. A hostile file may have millions.
MOST_EVIDENCE = 20
#: Findings of one rule in one session that are told one by one; the rest is told in one.
MOST_FINDINGS = 20


def of_session(
    rule: Rule,
    log: SessionLog,
    message: str,
    *,
    entries: Sequence[Entry] = (),
    role: str = "event",
    severity: Severity | None = None,
    confidence: Confidence = Confidence.EXACT,
    call_ids: Iterable[str] = (),
    subject: Iterable[str] = (),
    notes: Sequence[str] = (),
) -> Finding:
    """A finding on one session. Without `subject` the ids of the events are what the fingerprint is made of.

    Args:
        entries: the events it rests on, in the order in which to read them.
        notes: one for each of the first entries.
    """
    shown = entries[:MOST_EVIDENCE]
    evidence = tuple(
        Evidence("events", entry.record.key, role, entry.time, note=notes[place] if place < len(notes) else "")
        for place, entry in enumerate(shown)
    )
    event_ids = tuple(entry.record.key.event_id for entry in shown)
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=rule.severity if severity is None else severity,
        message=message,
        app_name=log.key.app_name,
        user_id=log.key.user_id,
        session_id=log.key.session_id,
        confidence=confidence,
        event_ids=event_ids,
        call_ids=tuple(call_ids),
        evidence=evidence or (session_evidence(log.key),),
        todo=rule.todo,
        subject=tuple(subject) or tuple(sorted(event_ids)),
    )


def session_evidence(key: SessionKey, *, role: str = "session", note: str = "") -> Evidence:
    """Evidence that is the row of a session."""
    return Evidence("sessions", EventKey(*key, ""), role, note=note)


def of_state_row(
    rule: Rule, row: StateRecord, message: str, *, subject: Iterable[str] = (), severity: Severity | None = None
) -> Finding:
    """A finding on a row of app_states or user_states: it belongs to no session."""
    table = "app_states" if row.user_id is None else "user_states"
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=rule.severity if severity is None else severity,
        message=message,
        app_name=row.app_name,
        user_id=row.user_id,
        session_id=None,
        evidence=(Evidence(table, EventKey(row.app_name, row.user_id or "", "", ""), "state", row.update_time),),
        todo=rule.todo,
        subject=(table, *subject),
    )


def of_database(
    rule: Rule,
    message: str,
    *,
    subject: Iterable[str],
    severity: Severity | None = None,
    confidence: Confidence = Confidence.EXACT,
    evidence: tuple[Evidence, ...] = (),
) -> Finding:
    """A finding on the whole database."""
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=rule.severity if severity is None else severity,
        message=message,
        app_name=None,
        user_id=None,
        session_id=None,
        confidence=confidence,
        evidence=evidence,
        todo=rule.todo,
        subject=tuple(subject),
    )


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 event`, `3 events`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def spelt(items: Iterable[str], *, most: int = 5) -> str:
    """Some names in a row, as data: each quoted and short, the rest counted."""
    names = list(items)
    shown = ", ".join(repr(name if len(name) <= 60 else name[:59] + "…") for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
