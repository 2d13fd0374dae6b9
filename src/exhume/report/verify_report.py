"""What `verify` found, as a document and for a person."""

from __future__ import annotations

from exhume.audit.findings import Finding, Severity
from exhume.migrate.interface import Difference, VerifyReport
from exhume.redact import mask_url
from exhume.report.documents import Document, Span, header, time_zone_part
from exhume.report.view import Block, Mood, View, number, zone_text


def verify_document(report: VerifyReport) -> Document:
    """`exhume.verify/1`."""
    return {
        **header("verify", report.source, Span(report.started_at, report.finished_at)),
        "destination": mask_url(report.destination),
        "equal": report.equal,
        "layouts": {"source": report.source_layout, "destination": report.destination_layout},
        "tables": {
            name: {"source": one.source, "destination": one.destination, "equal": one.equal, "created": one.created}
            for name, one in report.tables.items()
        },
        "differences": [difference_part(one) for one in report.differences],
        "difference_count": report.difference_count,
        "time_zones": {
            "source": time_zone_part(report.source_time_zone),
            "destination": time_zone_part(report.destination_time_zone),
        },
        "notes": list(report.notes),
    }


def difference_part(one: Difference) -> Document:
    """One value that is not the same on both sides; `source` and `destination` are JSON texts, or null when absent."""
    return {
        **one.key._asdict(),
        "field": one.field,
        "source": one.source,
        "destination": one.destination,
        "table": one.table,
    }


def verify_view(report: VerifyReport) -> View:
    """What to show of a comparison."""
    facts = (
        ("destination", mask_url(report.destination)),
        ("layouts", f"{report.source_layout} and {report.destination_layout}"),
        ("time zone", f"{zone_text(report.source_time_zone)}; destination {zone_text(report.destination_time_zone)}"),
    )
    rows = tuple(
        (name, f"{one.source:,}", f"{one.destination:,}", f"{one.equal:,}", f"{one.created:,}")
        for name, one in report.tables.items()
    )
    columns = ("table", "source", "destination", "equal", "only fill a gap")
    notes = [*report.notes]
    if report.difference_count > len(report.differences):
        notes.append(
            f"{report.difference_count - len(report.differences):,} more differences are counted but not listed."
        )
    verdict = "Equal: the same sessions, event by event."
    if not report.equal:
        verdict = f"Not equal: {number(report.difference_count, 'difference')}."
    return View(
        command="verify",
        source=mask_url(report.source),
        mood=Mood.GOOD if report.equal else Mood.BAD,
        verdict=verdict,
        todo=() if report.equal else ("Do not use the destination in place of the source.",),
        facts=facts,
        blocks=(Block("Rows", columns, rows, right=frozenset({1, 2, 3, 4})),),
        findings=tuple(_difference(one) for one in report.differences),
        notes=tuple(notes),
        started_at=report.started_at,
        finished_at=report.finished_at,
    )


def _difference(one: Difference) -> Finding:
    what = one.field or "the whole row"
    source, destination = one.source or "absent", one.destination or "absent"
    return Finding(
        rule="difference",
        name="difference",
        severity=Severity.ERROR,
        message=f"{one.table}: {what} is {source} in the source, {destination} in the destination",
        app_name=one.key.app_name or None,
        user_id=one.key.user_id or None,
        session_id=one.key.session_id or None,
        event_ids=(one.key.event_id,) if one.key.event_id else (),
    )
