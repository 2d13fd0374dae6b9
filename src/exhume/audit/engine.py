"""Runs the rules over a source, one session at a time, and makes the report.

Memory holds the largest session, what rules keep across sessions (keys and hashes, not events) and the findings.
"""

from __future__ import annotations

import gc
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import Any

from exhume.audit.findings import AuditReport, AuditSummary, Finding, Severity
from exhume.audit.lighten import lightened
from exhume.audit.log import SessionLog
from exhume.audit.pairing import build_log
from exhume.audit.rule import WINDOW, Context, Rule, catalogue
from exhume.errors import UsageError
from exhume.events.interface import Reader
from exhume.events.json_text import GIANT
from exhume.events.model import EventRecord, SessionKey, StateRecord
from exhume.redact import printable
from exhume.schema.detection import Detection

#: Findings of one rule in one session that are told one by one; a hostile log could make one for every event.
MOST_PER_SESSION = 100
#: Findings in one report. Errors are told beyond it, up to ten times as many.
MOST_IN_ALL = 50_000


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """What a run of the audit can be told.

    Attributes:
        select, ignore: ids of rules, or beginnings of ids such as `EXH1`; an empty `select` takes all.
        window: seconds within which equal actions count as repeated (EXH103).
        app, user, session: audit only these.
        since, until: epoch seconds; findings whose evidence lies wholly outside are left out.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    window: float = WINDOW
    app: str | None = None
    user: str | None = None
    session: str | None = None
    since: float | None = None
    until: float | None = None


@dataclass(slots=True)
class _Gathered:
    """Findings of a run, kept within bounds."""

    options: AuditOptions
    findings: list[Finding] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)

    def add(self, finding: Finding, told: int, log: SessionLog | None = None) -> int:
        """Takes a finding, of whose rule and session `told` were taken before; gives how many were now."""
        if not self._in_time(finding):
            return told
        room = MOST_IN_ALL * (10 if finding.severity is Severity.ERROR else 1)
        if told >= MOST_PER_SESSION or len(self.findings) >= room:
            self.dropped[finding.rule] += 1
            return told
        if log is not None and log.rewound and _all_rewound(finding, log):
            finding = replace(finding, rewound=True)
        self.findings.append(finding)
        return told + 1

    def _in_time(self, finding: Finding) -> bool:
        since, until = self.options.since, self.options.until
        if since is None and until is None:
            return True
        times = [evidence.time for evidence in finding.evidence if evidence.time is not None]
        if not times:
            return True
        return (since is None or max(times) >= since) and (until is None or min(times) <= until)


def audit(reader: Reader, detection: Detection, options: AuditOptions | None = None) -> AuditReport:
    """Audits one source.

    Args:
        reader: the source in the event model.
        detection: what `detect` found out about the source.
        options: filters, rules, window; None takes the defaults.

    Returns:
        findings worst session first, worst first within a session; suppressions are applied afterwards, not here.

    Raises:
        UsageError: `select` or `ignore` names no rule.
    """
    options = options or AuditOptions()
    started = datetime.now(UTC)
    whole = options.user is None and options.session is None
    context = Context(detection, reader.capabilities, reader.time_zone(), options.window, whole=whole)
    rules = _chosen(context, options)
    gathered = _Gathered(options)
    summary = AuditSummary()

    for row in (*_limited(reader.app_states(), options), *_limited(reader.user_states(), options)):
        summary.unreadable += bool(row.problems)
        for rule in rules:
            told = 0
            for finding in rule.state_row(row):
                told = gathered.add(finding, told)

    storage_ordered = is_storage_ordered(detection)
    with rare_collections():
        for key, session, records in sessions_with_events(reader):
            if not _wanted(key, options):
                continue
            summary.sessions += session is not None
            summary.events += len(records)
            log = build_log(key, session, records, storage_ordered=storage_ordered)
            for rule in rules:
                told = 0
                for finding in rule.session(log):
                    told = gathered.add(finding, told, log)
            summary.unreadable += sum(entry.record.refused for entry in log.troubled)
            log.release()
    for rule in rules:
        for finding in rule.finish():
            gathered.add(finding, 0)

    notes = context.notes
    if not summary.sessions and not summary.events and (options.app, options.user, options.session) != (None,) * 3:
        notes.append("No session has the app, user or id that was asked for: nothing was judged.")
    notes.extend(f"{rule}: {count:,} more findings are not listed." for rule, count in sorted(gathered.dropped.items()))
    findings = finished(gathered.findings)
    for finding in findings:
        count(summary, finding)
    return AuditReport(
        source=detection.info.name,
        layout=detection.layout.value,
        findings=findings,
        summary=summary,
        notes=list(dict.fromkeys(notes)),
        started_at=_stamp(started),
        finished_at=_stamp(datetime.now(UTC)),
        source_sha256=detection.info.sha256,
    )


@contextmanager
def rare_collections() -> Iterator[None]:
    """A session's log is taken apart when its rules have run, so there is hardly any garbage. Looking for it after
    every 700 objects, as Python does by default, would cost a tenth of the run."""
    before = gc.get_threshold()
    if before[0]:
        gc.set_threshold(max(before[0], 50_000), max(before[1], 20), max(before[2], 20))
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def count(summary: AuditSummary, finding: Finding) -> None:
    """Adds one finding to the counts; a suppressed or rewound one counts only as such."""
    if finding.suppressed is not None:
        summary.suppressed += 1
    elif finding.rewound:
        summary.rewound += 1
    elif finding.severity is Severity.ERROR:
        summary.errors += 1
    elif finding.severity is Severity.WARNING:
        summary.warnings += 1
    else:
        summary.infos += 1


def _chosen(context: Context, options: AuditOptions) -> list[Rule]:
    """The rules of the run; one that needs what the source cannot hold is left out with a note."""
    known = list(catalogue())
    for chosen in (*options.select, *options.ignore):
        if not any(rule.id.startswith(chosen.upper()) for rule in known):
            raise UsageError(
                f"There is no rule {printable(chosen, limit=40)}.",
                todo="`exhume rules` lists them; `EXH1` means a family.",
            )
    rules = []
    for rule in known:
        if options.select and not rule.id.startswith(tuple(one.upper() for one in options.select)):
            continue
        if options.ignore and rule.id.startswith(tuple(one.upper() for one in options.ignore)):
            continue
        lacks = rule.needs - context.capabilities
        if lacks:
            context.notes.append(
                f"{rule.id} {rule.name}: not judged, this source does not hold {', '.join(sorted(lacks))}."
            )
            continue
        rules.append(rule(context))
    return rules


def _wanted(key: SessionKey, options: AuditOptions) -> bool:
    return (
        (options.app is None or key.app_name == options.app)
        and (options.user is None or key.user_id == options.user)
        and (options.session is None or key.session_id == options.session)
    )


def _limited(rows: Iterable[StateRecord], options: AuditOptions) -> Iterator[StateRecord]:
    for row in rows:
        if options.app is not None and row.app_name != options.app:
            continue
        if options.user is not None and row.user_id is not None and row.user_id != options.user:
            continue
        yield row


def is_storage_ordered(detection: Detection) -> bool:
    """Does the place of a row in its table tell what was stored first? Not in InnoDB, which orders by key."""
    return detection.info.dialect not in ("mysql", "mariadb")


def sessions_with_events(reader: Reader) -> Iterator[tuple[SessionKey, StateRecord | None, list[EventRecord]]]:
    """Merges the sessions of a reader with their events, in key order; one session's events are in memory at a time.

    Events without a session come with None in its place, sessions without events with an empty list.
    """
    sessions = iter(reader.sessions())
    session = next(sessions, None)
    for key, records in _by_session(reader.events()):
        while session is not None:
            own = _session_key(session)
            if own == key or _order(own) > _order(key):
                break
            yield own, session, []
            session = next(sessions, None)
        if session is not None and _session_key(session) == key:
            yield key, session, records
            session = next(sessions, None)
        else:
            yield key, None, records
    while session is not None:
        yield _session_key(session), session, []
        session = next(sessions, None)


def _by_session(events: Iterable[EventRecord]) -> Iterator[tuple[SessionKey, list[EventRecord]]]:
    records: list[EventRecord] = []
    current: tuple[str, ...] = ()
    for record in events:
        session = record.key[:3]
        if session != current:
            if records:
                yield records[0].key.session, records
            records = []
            current = session
        source = record.source
        # which spares nearly every event the call
        records.append(record if source is not None and len(source) <= GIANT else lightened(record))
    if records:
        yield records[0].key.session, records


def _session_key(session: StateRecord) -> SessionKey:
    return SessionKey(session.app_name, session.user_id or "", session.session_id or "")


def _order(key: SessionKey) -> tuple[bytes, ...]:
    """The place of a session in a store's order: the UTF-8 bytes of its key as text."""
    try:
        return tuple(part.encode("utf-8", "surrogateescape") for part in key)
    except UnicodeEncodeError:  # a lone surrogate of an export; no store sorts such text
        return tuple(part.encode("utf-8", "surrogatepass") for part in key)


def _all_rewound(finding: Finding, log: SessionLog) -> bool:
    """Does all of the finding's evidence lie in a range that a rewind took back?"""
    rewound: set[str] | None = log.shared.get("rewound events")
    if rewound is None:
        rewound = {entry.event_id for entry in log.entries if log.rewound[entry.index]}
        rewound -= {entry.event_id for entry in log.entries if not log.rewound[entry.index]}
        log.shared["rewound events"] = rewound
    return bool(finding.evidence) and all(evidence.key.event_id in rewound for evidence in finding.evidence)


def finished(findings: Iterable[Finding]) -> list[Finding]:
    """Findings with their fingerprints, sorted: sessions with the worst first, worst first within a session.

    The findings given are marked themselves; one that has a fingerprint already is copied. A fingerprint that repeats
    gets the number of its repetition, in the order of times, so that each is unique.
    """
    by_place: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        by_place.setdefault(_place(finding), []).append(finding)
    sessions = [sorted(group, key=_order_in_session) for group in by_place.values()]
    sessions.sort(key=lambda group: (group[0].rewound, -group[0].severity, _place(group[0])))  # the worst is first now
    arranged = []
    seen: dict[str, int] = {}
    for finding in chain.from_iterable(sessions):
        mark = fingerprint(finding)
        number = seen[mark] = seen.get(mark, 0) + 1
        if number > 1:
            mark = hashlib.sha256(f"{mark}:{number}".encode()).hexdigest()[:32]
        marked = replace(finding) if finding.fingerprint else finding  # the same may be given twice
        marked.fingerprint = mark
        arranged.append(marked)
    return arranged


def fingerprint(finding: Finding) -> str:
    """32 hexadecimal digits of sha256 over rule, session and subject; each part is preceded by its length."""
    told = _measured(finding.rule) + _measured_place(finding.app_name, finding.user_id, finding.session_id)
    for part in finding.subject:
        told += _measured(part)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@lru_cache(maxsize=16)  # findings come session by session
def _measured_place(*place: str | None) -> str:
    return "".join(map(_measured, place))


def _measured(part: str | None) -> str:
    """A part of a fingerprint after its length in bytes."""
    if part is None:
        return "-"
    size = len(part) if part.isascii() else len(part.encode("utf-8", "surrogatepass"))
    return f"{size}:{part}"


def _place(finding: Finding) -> tuple[str, str, str]:
    return finding.app_name or "", finding.user_id or "", finding.session_id or ""


def _order_in_session(finding: Finding) -> tuple[Any, ...]:
    first = finding.evidence[0].time if finding.evidence else None
    told = (finding.rule, finding.subject, first or 0.0, finding.event_ids, finding.message)
    return (finding.rewound, -finding.severity, *told)
