"""What `audit` found, as a document and for a person: verdict, findings grouped by session."""

from __future__ import annotations

from collections import Counter

from exhume.audit.findings import AuditReport, AuditSummary, Evidence, Finding, Severity
from exhume.redact import mask_url
from exhume.report.documents import Document, Span, header
from exhume.report.rule_pages import rule_pages
from exhume.report.view import Mood, View, counts, number
from exhume.report.wire import Items, rfc3339


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
        "findings": Items(finding_part, report.findings),
        "notes": list(report.notes),
    }


def finding_part(finding: Finding) -> Document:
    """One finding, with its evidence in the order in which to read it."""
    return {
        "rule": finding.rule,
        "name": finding.name,
        "severity": finding.severity.label,
        "confidence": str(finding.confidence),
        "app_name": finding.app_name,
        "user_id": finding.user_id,
        "session_id": finding.session_id,
        "event_ids": list(finding.event_ids),
        "call_ids": list(finding.call_ids),
        "message": finding.message,
        "todo": finding.todo,
        "fingerprint": finding.fingerprint,
        "rewound": finding.rewound,
        "suppressed": finding.suppressed,
        "evidence": [evidence_part(one) for one in finding.evidence],
    }


def evidence_part(evidence: Evidence) -> Document:
    """One row or part of a row that a finding rests on."""
    return {
        "table": evidence.table,
        **evidence.key._asdict(),
        "role": evidence.role,
        "time": rfc3339(evidence.time),
        "call_id": evidence.call_id,
        "note": evidence.note,
    }


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
