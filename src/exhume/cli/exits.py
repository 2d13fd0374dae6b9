"""Which exit code a finished run ends in: the published table, decided in one place.

Runs that end in an error carry their code on the error itself (`exhume.errors.ExhumeError.exit_code`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from exhume.errors import ExitCode

if TYPE_CHECKING:
    from exhume.audit.findings import AuditReport, Severity
    from exhume.migrate.interface import MigrationReport
    from exhume.schema.detection import Detection


def after_detect(detection: Detection, *, required: bool | None) -> ExitCode:
    """3 for what is no ADK database, 1 for contradictions or another version than required, else 0.

    Args:
        required: does the layout meet `--require`? None when the option was not given.
    """
    from exhume.schema.detection import Layout

    if required is False:
        return ExitCode.FINDINGS
    if detection.layout is Layout.FOREIGN:
        return ExitCode.NOTHING_TO_LOOK_AT
    return ExitCode.FINDINGS if detection.contradictions else ExitCode.DONE


def after_scan(*, refused: int) -> ExitCode:
    """1 when any value is refused, else 0."""
    return ExitCode.FINDINGS if refused else ExitCode.DONE


def after_migrate(report: MigrationReport) -> ExitCode:
    """0 complete or nothing to do, 4 refused, 5 incomplete."""
    match report.status:
        case "complete" | "nothing to do":
            return ExitCode.DONE
        case "refused":
            return ExitCode.REFUSED
        case "incomplete":
            return ExitCode.INCOMPLETE
        case other:
            raise AssertionError(f"undocumented status {other!r}")


def after_verify(*, equal: bool) -> ExitCode:
    """0 for equal, 5 for different."""
    return ExitCode.DONE if equal else ExitCode.INCOMPLETE


def after_audit(report: AuditReport, *, fail_on: Severity) -> ExitCode:
    """1 exactly when a finding at or above the threshold is neither suppressed nor rewound."""
    counting = any(
        finding.severity >= fail_on and not finding.rewound and finding.suppressed is None
        for finding in report.findings
    )
    return ExitCode.FINDINGS if counting else ExitCode.DONE


def after_reconcile(*, differences: int) -> ExitCode:
    """1 when the log and the external ledger disagree, else 0."""
    return ExitCode.FINDINGS if differences else ExitCode.DONE
