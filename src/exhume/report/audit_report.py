"""What `audit` found, as a document and for a person: verdict, findings grouped by session."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from exhume.audit.findings import AuditReport, AuditSummary, Evidence, Finding, Severity
from exhume.redact import mask_url
from exhume.report.documents import Document, Span, header
from exhume.report.rule_pages import rule_pages
from exhume.report.view import Mood, View, counts, number
from exhume.report.wire import Items, quoted, quoted_list, quoted_or_null, rfc3339


def audit_document(report: AuditReport) -> Document:
    """`exhume.audit/1`."""
    summary = report.summary
    return {
        **header("audit", report.source, Span(report.started_at, report.finished_at)),
        "layout": report.layout,
        "sha256": report.source_sha256,
        "summary": {
            "sessions": summary.sessions,
            "events": summary.events,
            "findings": {"error": summary.errors, "warning": summary.warnings, "info": summary.infos},
            "rewound": summary.rewound,
            "suppressed": summary.suppressed,
            "unreadable": summary.unreadable,
        },
        "findings": Items(finding_json, report.findings),
        "notes": list(report.notes),
    }


# The two below write JSON themselves: a report may hold tens of thousands of findings, and making a document of each
# only to encode it would take three times as long.


def finding_json(finding: Finding) -> str:
    """One finding, with its evidence in the order in which to read it."""
    return (
        f'{{"rule": {quoted(finding.rule)}'
        f', "name": {quoted(finding.name)}'
        f', "severity": {quoted(finding.severity.label)}'
        f', "confidence": {quoted(finding.confidence)}'
        f", {_place_json(finding.app_name, finding.user_id, finding.session_id)}"
        f', "event_ids": {quoted_list(finding.event_ids)}'
        f', "call_ids": {quoted_list(finding.call_ids)}'
        f', "message": {quoted(finding.message)}'
        f', "todo": {quoted(finding.todo)}'
        f', "fingerprint": {quoted(finding.fingerprint)}'
        f', "rewound": {"true" if finding.rewound else "false"}'
        f', "suppressed": {quoted_or_null(finding.suppressed)}'
        f', "evidence": [{", ".join(map(_evidence_json, finding.evidence))}]}}'
    )


def _evidence_json(evidence: Evidence) -> str:
    """One row or part of a row that a finding rests on."""
    app_name, user_id, session_id, event_id = evidence.key
    return (
        f'{{"table": {quoted(evidence.table)}'
        f", {_place_json(app_name, user_id, session_id)}"
        f', "event_id": {quoted(event_id)}'
        f', "role": {quoted(evidence.role)}'
        f', "time": {quoted_or_null(rfc3339(evidence.time))}'
        f', "call_id": {quoted_or_null(evidence.call_id)}'
        f', "note": {quoted(evidence.note)}}}'
    )


@lru_cache(maxsize=16)  # findings are told session by session, and so is their evidence
def _place_json(app_name: str | None, user_id: str | None, session_id: str | None) -> str:
    app_name, user_id, session_id = map(quoted_or_null, (app_name, user_id, session_id))
    return f'"app_name": {app_name}, "user_id": {user_id}, "session_id": {session_id}'


def audit_view(report: AuditReport) -> View:
    """What to show of an audit. Sessions come worst first, as the report has them."""
    counting = [finding for finding in report.findings if counts(finding)]
    by_severity = Counter(finding.severity for finding in counting)
    summary = report.summary
    mood = Mood.BAD if by_severity[Severity.ERROR] else Mood.LOOK if by_severity[Severity.WARNING] else Mood.GOOD
    if not counting and not summary.sessions:
        mood = Mood.LOOK
    facts = [
        ("layout", report.layout),
        ("looked at", f"{number(summary.sessions, 'session')}, {number(summary.events, 'event')}"),
    ]
    if report.source_sha256 is not None:
        facts.append(("sha256", report.source_sha256))
    if summary.unreadable:
        facts.append(("unreadable", number(summary.unreadable, "event")))
    if summary.suppressed:
        facts.append(("suppressed", number(summary.suppressed, "finding")))
    if summary.rewound:
        facts.append(("rewound", f"{number(summary.rewound, 'finding')}, taken back by the application later"))
    return View(
        command="audit",
        source=mask_url(report.source),
        mood=mood,
        verdict=_verdict(by_severity, summary),
        todo=_todo(counting),
        facts=tuple(facts),
        findings=tuple(report.findings),
        notes=tuple(report.notes),
        rules=rule_pages({finding.rule for finding in report.findings}),
        started_at=report.started_at,
        finished_at=report.finished_at,
    )


def _verdict(by_severity: Counter[Severity], summary: AuditSummary) -> str:
    parts = [
        number(by_severity[severity], word)
        for severity, word in ((Severity.ERROR, "error"), (Severity.WARNING, "warning"))
        if by_severity[severity]
    ]
    if parts:
        return f"{' and '.join(parts)} in {number(summary.sessions, 'session')}."
    told = by_severity[Severity.INFO]
    if not told and not summary.sessions:
        return "There was no session to look at."
    verdict = f"No error and no warning, {number(told, 'note')} for information" if told else "No error and no warning"
    return f"{verdict}; {number(summary.suppressed, 'finding')} suppressed." if summary.suppressed else f"{verdict}."


def _todo(counting: list[Finding]) -> tuple[str, ...]:
    """What to do about the gravest rules, once each; the details stand with the findings."""
    worst = max((finding.severity for finding in counting), default=Severity.INFO)
    if worst is Severity.INFO:
        return ()
    advice = {finding.rule: finding.todo for finding in counting if finding.severity is worst and finding.todo}
    return tuple(f"{rule}: {text}" for rule, text in sorted(advice.items()))[:5]
