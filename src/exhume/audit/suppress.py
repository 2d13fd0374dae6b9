"""Findings that someone has looked at: entries of the configuration, with a reason each, and the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from exhume.audit.baseline import Baseline
from exhume.audit.engine import count
from exhume.audit.findings import AuditReport, Finding
from exhume.redact import printable


@dataclass(frozen=True, slots=True)
class Suppression:
    """One entry: every field that is given must fit the finding.

    Attributes:
        reason: why these findings do not count; shown with each of them.
        rule: id of a rule.
        fingerprint: of one finding, or its first 8 digits or more.
        until: last day (UTC) on which the entry holds.
        place: where the entry stands, for messages.
    """

    reason: str
    rule: str | None = None
    app: str | None = None
    user: str | None = None
    session: str | None = None
    fingerprint: str | None = None
    until: date | None = None
    place: str = ""

    def fits(self, finding: Finding) -> bool:
        return (
            (self.rule is None or self.rule == finding.rule)
            and (self.session is None or self.session == finding.session_id)
            and (self.user is None or self.user == finding.user_id)
            and (self.app is None or self.app == finding.app_name)
            and (self.fingerprint is None or _same_print(self.fingerprint, finding.fingerprint))
        )

    def expired(self, today: date) -> bool:
        return self.until is not None and today > self.until


def _same_print(given: str, fingerprint: str) -> bool:
    return given == fingerprint or (len(given) >= 8 and fingerprint.startswith(given.lower()))


def cover(
    report: AuditReport,
    suppressions: Sequence[Suppression] = (),
    *,
    baseline: Baseline | None = None,
    today: date | None = None,
    whole: bool = True,
) -> None:
    """Marks the findings of a report that a suppression or the baseline covers, and counts anew.

    Expired and unused entries, and entries of the baseline that no finding matches any more, are told in the notes.

    Args:
        report: is changed in place. Findings that are already marked stay so.
        today: the day on which entries may expire; by default the current one in UTC.
        whole: False where only some rules or sessions were audited: then what covers nothing is no news.
    """
    day = datetime.now(UTC).date() if today is None else today
    held = [entry for entry in suppressions if not entry.expired(day)]
    used, known = _mark(report, held, baseline)
    report.notes.extend(
        f"{entry.place} expired on {entry.until}: what it covered counts again."
        for entry in suppressions
        if entry.expired(day)
    )
    if whole:
        report.notes.extend(
            f"{entry.place} covers no finding." for place, entry in enumerate(held) if place not in used
        )
        if baseline is not None and known < len(baseline.fingerprints):
            gone = len(baseline.fingerprints) - known
            report.notes.append(
                f"The baseline {printable(baseline.name)} holds {gone} finding{'' if gone == 1 else 's'} that "
                f"{'is' if gone == 1 else 'are'} not found any more; write it anew to drop them."
            )
    _count_anew(report)


def _mark(report: AuditReport, held: Sequence[Suppression], baseline: Baseline | None) -> tuple[set[int], int]:
    """Marks what is covered; gives the places of the entries that cover something, and how much of the baseline does.

    A reason of the configuration stands before the baseline, and the first entry that fits before later ones.
    """
    used: set[int] = set()
    known: set[str] = set()
    for place, finding in enumerate(report.findings):
        fitting = [number for number, entry in enumerate(held) if entry.fits(finding)]
        used.update(fitting)
        reason = finding.suppressed
        if reason is None and fitting:
            reason = held[fitting[0]].reason
        if baseline is not None and finding.fingerprint in baseline.fingerprints:
            known.add(finding.fingerprint)
            if reason is None:
                reason = f"in the baseline {printable(baseline.name)}"
        if reason is not finding.suppressed:
            report.findings[place] = replace(finding, suppressed=reason)
    return used, len(known)


def _count_anew(report: AuditReport) -> None:
    summary = report.summary
    summary.errors = summary.warnings = summary.infos = summary.rewound = summary.suppressed = 0
    for finding in report.findings:
        count(summary, finding)
