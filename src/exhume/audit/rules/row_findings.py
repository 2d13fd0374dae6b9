"""Builds findings that rest on events, rows of state or the whole database; `call_findings` has those on calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from exhume.audit.findings import Confidence, Evidence, Finding, Severity
from exhume.audit.log import Entry, SessionLog
from exhume.audit.rule import Rule
from exhume.events.model import EventKey, SessionKey, StateRecord

#: Rows that one finding names; the message gives the whole number. A hostile file may have millions.
MOST_EVIDENCE = 20
#: Findings of one rule in one session that are told one by one; the rest is told in one.
MOST_FINDINGS = 20
_MOST_HELD = 50_000

#: Names or ids of one kind that the subject of a finding, and so its fingerprint, is made of.
MOST_IN_SUBJECT = 50


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
    absence: bool = False,
) -> Finding:
    """A finding on one session. Without `subject` the ids of the events are what the fingerprint is made of.

    Args:
        entries: the events it rests on, in the order in which to read them.
        notes: one for each of the first entries.
        absence: see `judged_absence`.
    """
    shown = entries[:MOST_EVIDENCE]
    evidence = [
        Evidence("events", entry.record.key, role, entry.time, None, notes[place] if place < len(notes) else "")
        for place, entry in enumerate(shown)
    ]
    event_ids = tuple([entry.record.key.event_id for entry in shown])
    if absence:
        message, severity = judged_absence(log, message, severity)
    return rule.finding(
        message,
        place=log.key,
        subject=tuple(subject) or tuple(sorted(event_ids)),
        severity=severity,
        confidence=confidence,
        event_ids=event_ids,
        call_ids=tuple(call_ids),
        evidence=tuple(evidence) or (session_evidence(log.key),),
    )


class Held:
    """Findings on sessions that wait for the end of the run, because all sessions together decide whether they hold.

    Each has a number with which it is judged then. More of them than can be held are told at once.
    """

    def __init__(self) -> None:
        self._held: list[tuple[float, Finding]] = []

    def hold(self, number: float, finding: Finding, log: SessionLog, entries: Sequence[Entry]) -> Iterable[Finding]:
        """Keeps a finding that rests on these entries of the log, which is of no use later."""
        if len(self._held) >= _MOST_HELD:
            return (finding,)
        finding.rewound = all(log.is_rewound(entry.index) for entry in entries)
        self._held.append((number, finding))
        return ()

    def unless(self, explained: Callable[[float], bool]) -> list[Finding]:
        """The findings whose number is not explained."""
        return [finding for number, finding in self._held if not explained(number)]


def judged_absence(log: SessionLog, message: str, severity: Severity | None) -> tuple[str, Severity | None]:
    """Message and severity of a finding which says that something is missing.

    Where a row of the session could not be read it may hold just that: then the message says so, and it is `info`.
    """
    note = unread_note(log)
    return message + note, Severity.INFO if note else severity


def unread_note(log: SessionLog) -> str:
    """A sentence saying that rows of the session could not be read; empty where all were."""
    if not log.unread:
        return ""
    number = len(log.unread)
    rows = "An event" if number == 1 else f"{number:,} events"
    return f" {rows} of this session could not be read and may hold what is missing here."


def session_evidence(key: SessionKey, *, role: str = "session", note: str = "") -> Evidence:
    """Evidence that is the row of a session."""
    return Evidence("sessions", EventKey(*key, ""), role, note=note)


def of_state_row(
    rule: Rule, row: StateRecord, message: str, *, subject: Iterable[str] = (), severity: Severity | None = None
) -> Finding:
    """A finding on a row of app_states or user_states: it belongs to no session."""
    table = "app_states" if row.user_id is None else "user_states"
    return rule.finding(
        message,
        place=(row.app_name, row.user_id, None),
        subject=(table, *subject),
        severity=severity,
        evidence=(Evidence(table, EventKey(row.app_name, row.user_id or "", "", ""), "state", row.update_time),),
    )


def whose_state(row: StateRecord) -> str:
    """What a row of app_states or user_states holds, for a message."""
    return "the state of the app" if row.user_id is None else "the state of the user"


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
    return rule.finding(
        message,
        place=(None, None, None),
        subject=subject,
        severity=severity,
        confidence=confidence,
        evidence=evidence,
    )


def plural(count: int, noun: str) -> str:
    """`1 event`, `3 events`."""
    return f"{count} {noun if count == 1 else noun + 's'}"


def spelt(items: Iterable[str], *, most: int = 5) -> str:
    """Some names in a row, as data: each quoted and short, the rest counted."""
    names = list(items)
    shown = ", ".join(repr(name if len(name) <= 60 else name[:59] + "…") for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
