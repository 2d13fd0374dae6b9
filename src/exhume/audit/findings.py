"""What the audit says: findings with their evidence, and the severities and confidences they can have."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from exhume.events.model import EventKey


class Severity(enum.IntEnum):
    """Ordered, so that a threshold can be compared; `label` is the word of the machine contract."""

    INFO = 1
    WARNING = 2
    ERROR = 3

    @property
    def label(self) -> str:
        return self.name.lower()


class Confidence(enum.StrEnum):
    """`exact` by id, `inferred` by name and order."""

    EXACT = "exact"
    INFERRED = "inferred"


# Neither of the two is frozen: a report may hold tens of thousands, and frozen ones take three times as long to
# make. Nothing changes them all the same, but for the fingerprint, which `engine.finished` adds.


@dataclass(slots=True)
class Evidence:
    """One row or part of a row that a finding rests on, in the order in which to read it.

    `time` is the corrected epoch in seconds; `role` says what it is to the finding: `call`, `request`, `approval`,
    `rejection`, `execution`, `response`, `state`, `event`, ...
    """

    table: str
    key: EventKey
    role: str
    time: float | None = None
    call_id: str | None = None
    note: str = ""


@dataclass(slots=True)
class Finding:
    """One finding. `session_id`, `user_id`, `app_name` are None where it belongs to the whole database, user or app.

    `subject` is what the fingerprint is made of beside rule and session: ids and content that do not depend on the
    order of rows, the path of the source or the time of the run.
    """

    rule: str
    name: str
    severity: Severity
    message: str
    app_name: str | None
    user_id: str | None
    session_id: str | None
    confidence: Confidence = Confidence.EXACT
    event_ids: tuple[str, ...] = ()
    call_ids: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    todo: str = ""
    subject: tuple[str, ...] = ()
    fingerprint: str = ""
    rewound: bool = False
    suppressed: str | None = None  # the reason, where a suppression or the baseline covers it


@dataclass(slots=True)
class AuditSummary:
    """Counts for the end of a report."""

    sessions: int = 0
    events: int = 0
    errors: int = 0
    warnings: int = 0
    infos: int = 0
    rewound: int = 0
    suppressed: int = 0
    unreadable: int = 0


@dataclass(slots=True)
class AuditReport:
    """The result of `audit`: findings worst first within each session, sessions worst first."""

    source: str
    layout: str
    findings: list[Finding]
    summary: AuditSummary
    notes: list[str] = field(default_factory=list)  # rules that stayed silent and why, expired suppressions, ...
    started_at: str = ""
    finished_at: str = ""
    source_sha256: str | None = None  # of the file that was judged, where there is one
