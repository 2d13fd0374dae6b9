"""The audit as people see it: verdict, findings grouped by session, the pages of the rules that fired."""

from __future__ import annotations

import inspect
import re
from collections import Counter

from exhume.audit.findings import AuditReport, Finding, Severity
from exhume.audit.rule import Rule, catalogue
from exhume.redact import mask_url
from exhume.report.view import Mood, RulePage, View, counts, number

_DETECTS = re.compile(r"^## What it detects\s*\n(.+?)(?:\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)


def audit_view(report: AuditReport) -> View:
    """What to show of an audit. Sessions come worst first, as the report has them."""
    counting = [finding for finding in report.findings if counts(finding)]
    by_severity = Counter(finding.severity for finding in counting)
    mood = Mood.BAD if by_severity[Severity.ERROR] else Mood.LOOK if by_severity[Severity.WARNING] else Mood.GOOD
    summary = report.summary
    facts = [
        ("layout", report.layout),
        ("looked at", f"{number(summary.sessions, 'session')}, {number(summary.events, 'event')}"),
    ]
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
        verdict=_verdict(by_severity, summary.sessions),
        todo=_todo(counting),
        facts=tuple(facts),
        findings=tuple(report.findings),
        notes=tuple(report.notes),
        rules=rule_pages({finding.rule for finding in report.findings}),
        started_at=report.started_at,
        finished_at=report.finished_at,
    )


def _verdict(by_severity: Counter[Severity], sessions: int) -> str:
    parts = [
        number(by_severity[severity], word)
        for severity, word in ((Severity.ERROR, "error"), (Severity.WARNING, "warning"))
        if by_severity[severity]
    ]
    if parts:
        return f"{' and '.join(parts)} in {number(sessions, 'session')}."
    told = by_severity[Severity.INFO]
    return f"No error and no warning, {number(told, 'note')} for information." if told else "No error and no warning."


def _todo(counting: list[Finding]) -> tuple[str, ...]:
    """What to do about the gravest rules, once each; the details stand with the findings."""
    worst = max((finding.severity for finding in counting), default=Severity.INFO)
    if worst is Severity.INFO:
        return ()
    advice = {finding.rule: finding.todo for finding in counting if finding.severity is worst and finding.todo}
    return tuple(f"{rule}: {text}" for rule, text in sorted(advice.items()))[:5]


def rule_pages(wanted: set[str] | None = None) -> tuple[RulePage, ...]:
    """Pages of the rules with these ids, of all rules for None, in order of id."""
    return tuple(rule_page(rule) for rule in catalogue() if wanted is None or rule.id in wanted)


def rule_page(rule: type[Rule]) -> RulePage:
    """The page of one rule: its docstring, which is a title and sections in Markdown."""
    title, _, text = (inspect.getdoc(rule) or rule.name).partition("\n")
    text = text.strip() or title
    detects = _DETECTS.search(text)
    summary = detects.group(1) if detects else text.split("\n\n", 1)[0]
    return RulePage(rule.id, rule.name, rule.severity.label, " ".join(summary.split()), text)
