"""From each kind of result to a `Report` that any format can render."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exhume.report.formats import Report

if TYPE_CHECKING:
    from exhume.audit.findings import AuditReport
    from exhume.audit.ledger import Ledger
    from exhume.audit.reconciliation import Reconciliation
    from exhume.audit.timeline import Timeline
    from exhume.events.model import TimeZoneReport
    from exhume.migrate.interface import MigrationReport, VerifyReport
    from exhume.pickles.scan_report import ScanReport
    from exhume.report.documents import Span
    from exhume.schema.detection import Detection

# each module is imported when its report is made: no command pays for the others


def of_detection(detection: Detection, *, span: Span, time_zone: TimeZoneReport | None = None) -> Report:
    """The report of `detect`; `time_zone` where the times of the events were looked at."""
    from exhume.report import detection_report

    return Report(
        document=lambda: detection_report.detection_document(detection, span=span, time_zone=time_zone),
        view=lambda: detection_report.detection_view(detection, span=span, time_zone=time_zone),
    )


def of_scan(report: ScanReport, *, span: Span) -> Report:
    """The report of `scan`."""
    from exhume.report import scan_report

    return Report(
        document=lambda: scan_report.scan_document(report, span=span),
        view=lambda: scan_report.scan_view(report, span=span),
        items="refused",
    )


def of_migration(report: MigrationReport) -> Report:
    """The report of `migrate`."""
    from exhume.report import migration_report

    return Report(
        document=lambda: migration_report.migration_document(report),
        view=lambda: migration_report.migration_view(report),
        items="refused",
    )


def of_verify(report: VerifyReport) -> Report:
    """The report of `verify`."""
    from exhume.report import verify_report

    return Report(
        document=lambda: verify_report.verify_document(report),
        view=lambda: verify_report.verify_view(report),
        items="differences",
    )


def of_audit(report: AuditReport) -> Report:
    """The report of `audit`."""
    from exhume.report import audit_report

    return Report(
        document=lambda: audit_report.audit_document(report),
        view=lambda: audit_report.audit_view(report),
        items="findings",
    )


def of_timeline(found: Timeline, *, span: Span) -> Report:
    """The report of `show`."""
    from exhume.report import timeline_report

    return Report(
        document=lambda: timeline_report.timeline_document(found, span=span),
        view=lambda: timeline_report.timeline_view(found, span=span),
        items="events",
        judges=False,
    )


def of_ledger(found: Ledger, *, span: Span, reconciliation: Reconciliation | None = None) -> Report:
    """The report of `approvals`; as CSV it comes from `ledger_csv`."""
    from exhume.report import ledger_report

    return Report(
        document=lambda: ledger_report.ledger_document(found, reconciliation, span=span),
        view=lambda: ledger_report.ledger_view(found, reconciliation, span=span),
        items="approvals",
        judges=False,
        csv=lambda: ledger_report.ledger_csv(found),
    )
