"""What `scan` found, as a document and for a person."""

from __future__ import annotations

from exhume.audit.findings import Evidence, Finding, Severity
from exhume.events.model import EventKey
from exhume.pickles.evidence import SecondOpinion
from exhume.pickles.scan_report import ScannedValue, ScanReport
from exhume.redact import mask_url, printable
from exhume.report.advice import allow_todo
from exhume.report.documents import Document, Span, header
from exhume.report.view import Block, Mood, View, list_blocks, number

_NAMES = {
    "EXH501": "unsafe-global",
    "EXH502": "malformed-pickle",
    "EXH503": "unexpected-payload",
    "EXH504": "trailing-data",
}
_MOST_GLOBALS = 100
_LONGEST_PROGRAM = 400


def scan_document(report: ScanReport, *, span: Span) -> Document:
    """`exhume.scan/1`."""
    return {
        **header("scan", report.source, span),
        "layout": str(report.layout),
        "sha256": report.sha256,
        "globals": [
            {"module": one.module, "name": one.name, "count": one.count, "allowed": one.allowed}
            for one in report.globals
        ],
        "refused": [_value_part(one) for one in report.refused],
        "told": [_value_part(one) for one in report.told],
        "values": {
            "total": report.values_total,
            "distinct": report.values_distinct,
            "refused": report.values_refused,
            "told": report.values_told,
        },
        "options": list(report.options),
        "extracted": list(report.extracted),
        "allowed_globals": list(report.allowed_globals),
        "notes": list(report.notes),
    }


def _value_part(one: ScannedValue) -> Document:
    return {
        "app_name": one.app_name,
        "user_id": one.user_id,
        "session_id": one.session_id,
        "event_id": one.event_id,
        "reason": one.reason,
        "rule": one.rule,
        "globals": list(one.globals),
        "sha256": one.sha256,
        "second_opinion": None if one.second_opinion is None else _opinion_part(one.second_opinion),
        "offset": one.offset,
        "size": one.size,
        "excerpt": list(one.excerpt),
        "options": list(one.options),
    }


def _opinion_part(opinion: SecondOpinion) -> Document:
    return {
        "severity": opinion.severity,
        "decompiled": opinion.decompiled,
        "imports": list(opinion.imports),
        "only_fickling": list(opinion.only_fickling),
        "only_exhume": list(opinion.only_exhume),
        "note": opinion.note,
    }


def scan_view(report: ScanReport, *, span: Span) -> View:
    """What to show of a scan."""
    facts = [
        ("layout", str(report.layout)),
        ("values", f"{number(report.values_total, 'value')}, {report.values_distinct:,} of them distinct"),
    ]
    if report.sha256:
        facts.append(("sha256", report.sha256))
    if report.allowed_globals:
        facts.append(("allowed by you", ", ".join(report.allowed_globals)))
    if report.extracted:
        facts.append(("extracted", number(len(report.extracted), "file")))
    # what is not allowed comes first: the rest is there to be complete
    ordered = sorted(report.globals, key=lambda one: (one.allowed, -one.count, one.module, one.name))
    rows = tuple(
        (f"{one.module}.{one.name}", f"{one.count:,}", "yes" if one.allowed else "NO")
        for one in ordered[:_MOST_GLOBALS]
    )
    left = len(ordered) - len(rows)
    blocks = [
        Block(
            "Globals that the pickles name",
            ("global", "rows", "allowed"),
            rows,
            right=frozenset({1}),
            note=f"and {left:,} more: --format json gives all of them" if left else "",
        )
    ]
    verdict = "Every pickle names allowed globals only." if report.values_total else "Nothing here is pickled."
    if report.values_refused:
        verdict = f"{number(report.values_refused, 'row')} with a refused pickle. Nothing was executed."
    return View(
        command="scan",
        source=mask_url(report.source),
        mood=Mood.BAD if report.values_refused else Mood.LOOK if report.values_told else Mood.GOOD,
        verdict=verdict,
        todo=_todo(report),
        facts=tuple(facts),
        blocks=(*(blocks if rows else ()), *list_blocks(*_opinions(report))),
        findings=(
            *(_finding(one, Severity.ERROR) for one in report.refused),
            *(_finding(one, Severity.WARNING) for one in report.told),
        ),
        notes=report.notes,
        started_at=span.started_at,
        finished_at=span.finished_at,
    )


def _todo(report: ScanReport) -> tuple[str, ...]:
    if not report.values_refused:
        return ()
    names = dict.fromkeys(name for one in report.refused if one.options for name in one.globals)
    return (
        *allow_todo(names),
        "Treat what nobody of yours wrote as an attack: keep the file, do not open it with ADK.",
    )


def _opinions(report: ScanReport) -> list[tuple[str, list[str]]]:
    """What fickling says, once for each distinct value."""
    seen: dict[str, str] = {}
    for one in report.refused:
        opinion = one.second_opinion
        if opinion is not None and one.sha256 not in seen:
            lines = opinion.decompiled.strip().replace("\n", "; ")
            program = f" {printable(lines, limit=_LONGEST_PROGRAM)}" if lines else ""
            seen[one.sha256] = f"{one.sha256[:12]} {opinion.as_text()}{program}"
    listed = list(seen.values())[:20]
    if len(seen) > len(listed):
        listed.append(f"and {len(seen) - len(listed):,} more: --format json gives all of them")
    return [("Second opinion of fickling", listed)]


def _finding(one: ScannedValue, severity: Severity) -> Finding:
    key = EventKey(one.app_name, one.user_id, one.session_id, one.event_id)
    return Finding(
        rule=one.rule,
        name=_NAMES.get(one.rule, "pickle"),
        severity=severity,
        message=one.reason,
        app_name=one.app_name,
        user_id=one.user_id,
        session_id=one.session_id,
        event_ids=(one.event_id,),
        evidence=(
            Evidence("events", key, "pickle", note=f"sha256 {one.sha256}, {one.size:,} bytes, offset {one.offset}"),
        ),
        todo=" ".join(one.options),
    )
