"""From results to JSON documents: the machine contract, version 1 of each format.

Fields may be added to a document, never changed or taken out. The JSON Schemas in `schemas/` say the same in data;
`exhume.report.schema` loads them. Every document opens with `format`, `exhume_version`, `source` (without passwords),
`started_at` and `finished_at` (UTC, RFC 3339).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from exhume._version import __version__
from exhume.audit.findings import AuditReport, Evidence, Finding
from exhume.events.model import EventKey, Problem, TimeZoneReport
from exhume.migrate.interface import Difference, LossCount, MigrationReport, RefusedRow, TableCount, VerifyReport
from exhume.redact import mask_url
from exhume.report.wire import Items, plain, rfc3339
from exhume.schema.detection import Detection

Document = dict[str, Any]


class Span(NamedTuple):
    """When a run started and finished, as `exhume.report.wire.now` spells it."""

    started_at: str
    finished_at: str


def header(name: str, source: str, span: Span) -> Document:
    """The fields that every document opens with; `name` is the command, such as `detect`."""
    return {
        "format": f"exhume.{name}/1",
        "exhume_version": __version__,
        "source": mask_url(source),
        "started_at": span.started_at,
        "finished_at": span.finished_at,
    }


def time_zone_part(report: TimeZoneReport | None) -> Document | None:
    """`time_zone` of `detect` and `migrate`; null where times were not looked at."""
    if report is None:
        return None
    return {
        "zone": report.zone,
        "proof": report.proof,
        "sessions_agreeing": report.sessions_agreeing,
        "sessions_disagreeing": report.sessions_disagreeing,
        "ambiguous": report.ambiguous,
        "notes": list(report.notes),
        "offsets": dict(report.offsets),
    }


def detection_document(detection: Detection, *, span: Span, time_zone: TimeZoneReport | None = None) -> Document:
    """`exhume.detect/1`."""
    info = detection.info
    return {
        **header("detect", info.name, span),
        "layout": str(detection.layout),
        "schema_version": detection.schema_version,
        "declared_version": detection.declared_version,
        "latest": detection.latest,
        "adk_releases": {"from": detection.releases.first, "to": detection.releases.last},
        "contradictions": list(detection.contradictions),
        "evidence": list(detection.evidence),
        "tables": dict(detection.counts),
        "drift": list(detection.drift),
        "drift_checked": detection.drift_checked,
        "time_zone": time_zone_part(time_zone),
        "sha256": info.sha256,
        "sidecars": [
            {"kind": one.kind, "path": one.path, "size": one.size, "meaning": one.meaning} for one in info.sidecars
        ],
        "kind": info.kind,
        "dialect": info.dialect,
        "notes": list(info.notes),
    }


def refused_part(rows: Iterable[RefusedRow]) -> list[Document]:
    """`refused` of `migrate`: one object a row; its first fatal problem gives `reason`, `rule` and `sha256`."""
    return [
        {**_key(row.key), **problems_part(row.problems), "second_opinion": None, "table": row.table, "hop": row.hop}
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


def _table_part(count: TableCount) -> Document:
    return {
        "read": count.read,
        "written": count.written,
        "created": count.created,
        "quarantined": count.quarantined,
    }


def _loss_part(loss: LossCount) -> Document:
    return {"kind": loss.kind, "count": loss.count, "example": loss.example, "hop": loss.hop}


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
        **_key(one.key),
        "field": one.field,
        "source": one.source,
        "destination": one.destination,
        "table": one.table,
    }


def audit_document(report: AuditReport) -> Document:
    """`exhume.audit/1`."""
    summary = report.summary
    return {
        **header("audit", report.source, Span(report.started_at, report.finished_at)),
        "layout": report.layout,
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
        **_key(evidence.key),
        "role": evidence.role,
        "time": rfc3339(evidence.time),
        "call_id": evidence.call_id,
        "note": evidence.note,
    }


def _key(key: EventKey) -> Mapping[str, str]:
    return {
        "app_name": key.app_name,
        "user_id": key.user_id,
        "session_id": key.session_id,
        "event_id": key.event_id,
    }
