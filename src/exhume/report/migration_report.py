"""What `migrate` did or refused, as a document and for a person."""

from __future__ import annotations

from collections.abc import Iterable

from exhume.audit.findings import Evidence, Finding, Severity
from exhume.events.model import Problem
from exhume.migrate.interface import LossCount, MigrationReport, RefusedRow, TableCount
from exhume.redact import mask_url
from exhume.report.advice import allow_todo
from exhume.report.documents import Document, Span, header, time_zone_part
from exhume.report.view import Block, Mood, View, contradiction, list_blocks, number, zone_text
from exhume.report.wire import plain


def migration_document(report: MigrationReport) -> Document:
    """`exhume.migrate/1`."""
    return {
        **header("migrate", report.source, Span(report.started_at, report.finished_at)),
        "destination": mask_url(report.destination),
        "status": report.status,
        "path": [str(layout) for layout in report.path],
        "tables": {name: _table_part(count) for name, count in report.tables.items()},
        "refused": refused_part(report.refused),
        "refused_count": report.refused_count,
        "losses": [_loss_part(loss) for loss in report.losses],
        "time_zone": time_zone_part(report.time_zone),
        "source_sha256": {"before": report.source_sha256_before, "after": report.source_sha256_after},
        "verified": report.verified,
        "quarantine": report.quarantine,
        "allowed_globals": list(report.allowed_globals),
        "notes": list(report.notes),
        "contradictions": list(report.contradictions),
        "dry_run": report.dry_run,
        "plan": list(report.plan),
        "seconds": plain(report.seconds),
        "versions": plain(report.versions),
    }


def refused_part(rows: Iterable[RefusedRow]) -> list[Document]:
    """`refused` of `migrate`: one object a row; its first fatal problem gives `reason`, `rule` and `sha256`."""
    return [
        {**row.key._asdict(), **problems_part(row.problems), "second_opinion": None, "table": row.table, "hop": row.hop}
        for row in rows
    ]


def problems_part(problems: tuple[Problem, ...]) -> Document:
    """What is wrong with one row: the leading problem on top, all of them below."""
    ordered = sorted(problems, key=lambda problem: not problem.fatal)
    lead = ordered[0] if ordered else None
    return {
        "reason": lead.reason if lead else "",
        "rule": lead.rule if lead else None,
        "globals": list(dict.fromkeys(name for problem in problems for name in problem.globals)),
        "sha256": lead.sha256 if lead else None,
        "problems": [
            {
                "rule": one.rule,
                "column": one.column,
                "reason": one.reason,
                "offset": one.offset,
                "sha256": one.sha256,
                "fatal": one.fatal,
            }
            for one in ordered
        ],
    }


def _table_part(count: TableCount) -> Document:
    return {
        "read": count.read,
        "written": count.written,
        "created": count.created,
        "quarantined": count.quarantined,
    }


def _loss_part(loss: LossCount) -> Document:
    return {"kind": loss.kind, "count": loss.count, "example": loss.example, "hop": loss.hop}


def migration_view(report: MigrationReport) -> View:
    """What to show of a migration, of a refused one too."""
    zone = report.time_zone
    facts = [("destination", mask_url(report.destination)), ("path", " -> ".join(report.path) or "none")]
    facts.append(("time zone", zone_text(zone)))
    if not report.dry_run:
        facts.append(("verified", "yes, every row read back" if report.verified else "no"))
    if report.source_sha256_before:
        same = report.source_sha256_before == report.source_sha256_after
        said = "unchanged" if same else "CHANGED WHILE IT WAS READ"
        facts.append(("sha256", f"{report.source_sha256_before} ({said})"))
    if report.quarantine:
        facts.append(("quarantine", report.quarantine))
    if report.allowed_globals:
        facts.append(("allowed by you", ", ".join(report.allowed_globals)))
    if report.seconds:
        facts.append(("seconds", ", ".join(f"{stage} {spent:.2f}" for stage, spent in report.seconds.items())))
    rows = tuple(
        (name, f"{one.read:,}", f"{one.written:,}", f"{one.created:,}", f"{one.quarantined:,}")
        for name, one in report.tables.items()
    )
    blocks = list_blocks(("Plan", report.plan))
    blocks.append(Block("Rows", ("table", "read", "written", "created", "quarantined"), rows, frozenset({1, 2, 3, 4})))
    if report.losses:
        losses = tuple((one.kind, f"{one.count:,}", one.example) for one in report.losses)
        blocks.append(
            Block("Conversions that JSON forces", ("kind", "count", "first place"), losses, right=frozenset({1}))
        )
    shown = len(report.refused)
    notes = [*report.notes, *zone.notes]
    if report.refused_count > shown:
        notes.append(f"{report.refused_count - shown:,} more refused rows are counted but not listed.")
    return View(
        command="migrate",
        source=mask_url(report.source),
        mood={"complete": Mood.GOOD, "nothing to do": Mood.GOOD, "incomplete": Mood.LOOK}.get(report.status, Mood.BAD),
        verdict=_migration_verdict(report),
        todo=_migration_todo(report),
        facts=tuple(facts),
        blocks=tuple(blocks),
        findings=(
            *(contradiction(text) for text in report.contradictions),
            *(_refused(row) for row in report.refused),
        ),
        notes=tuple(notes),
        started_at=report.started_at,
        finished_at=report.finished_at,
    )


def _migration_verdict(report: MigrationReport) -> str:
    events = report.tables.get("events")
    match report.status:
        case "complete" if report.dry_run:
            return "Nothing stands in the way of this migration. Nothing was written."
        case "complete":
            return f"Complete: {number(events.written if events else 0, 'event')} written and verified, none lost."
        case "nothing to do":
            return f"Nothing to do: the layout is {' -> '.join(report.path)} already. Nothing was written."
        case "incomplete":
            return f"Incomplete: {number(report.refused_count, 'row')} in quarantine, the rest written and verified."
    rows = f"{number(report.refused_count, 'row')} cannot be carried over unchanged. Nothing was written."
    return rows if report.dry_run else f"Refused: {rows}"


def _migration_todo(report: MigrationReport) -> tuple[str, ...]:
    if report.status == "incomplete":
        return (f"Look at the rows in {report.quarantine}: they are not in the destination as they were.",)
    if report.status == "nothing to do":
        return ("Use the source as it is: there is no destination.",)
    if report.status != "refused":
        return ()
    names = sorted({name for row in report.refused for problem in row.problems for name in problem.globals})
    return (*allow_todo(names), "To move the rest and keep these rows apart: --quarantine FILE")


def _refused(row: RefusedRow) -> Finding:
    lead = next((problem for problem in row.problems if problem.fatal), None)
    key = row.key
    return Finding(
        rule=lead.rule if lead else "EXH307",
        name="refused-row",
        severity=Severity.ERROR,
        message="; ".join(f"{problem.column}: {problem.reason}" for problem in row.problems),
        app_name=key.app_name,
        user_id=key.user_id,
        session_id=key.session_id,
        event_ids=(key.event_id,) if key.event_id else (),
        evidence=(Evidence(row.table, key, "refused", note=f"hop {row.hop}"),),
    )
