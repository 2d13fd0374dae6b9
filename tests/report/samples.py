"""Results made by hand, ordinary and hostile ones, that the tests of all formats share."""

from __future__ import annotations

from exhume.audit.findings import AuditReport, AuditSummary, Confidence, Evidence, Finding, Severity
from exhume.events.model import EventKey, Problem, TimeZoneReport
from exhume.migrate.interface import (
    Difference,
    LossCount,
    MigrationReport,
    RefusedRow,
    TableCount,
    VerifyReport,
    VerifyTable,
)
from exhume.report.documents import Span
from exhume.schema.detection import Detection, Layout, ReleaseRange
from exhume.stores.interface import Sidecar, StoreInfo

SPAN = Span("2026-03-02T10:00:00Z", "2026-03-02T10:00:01Z")

#: What an attacker would put into an id, an author or a text: an escape sequence, rich markup, bidirectional controls,
#: line breaks, a forged workflow command, the end of CDATA, HTML, a table cell, a character that XML forbids, a lone
#: surrogate, a SARIF placeholder and link, a mention and a link.
HOSTILE = (
    "\x1b[31mred\x07 [bold]m[/bold] \u202egnp.exe\u2028 line\n::error title=forged::owned\r\n%0A::set-output name=a::b "
    "]]> <script>alert(1)</script> &amp; | x | ``` # head \x00\x0b\ufffe \ud800 {0} [l](http://x) @admin"
)


def key(event: str, session: str = "s-1") -> EventKey:
    return EventKey("refund_desk", "u-7", session, event)


def findings() -> list[Finding]:
    double = Finding(
        rule="EXH101",
        name="duplicate-approval",
        severity=Severity.ERROR,
        message="Request adk-c1 was approved twice.",
        app_name="refund_desk",
        user_id="u-7",
        session_id="s-1",
        event_ids=("e-4", "e-6"),
        call_ids=("adk-t1", "adk-c1"),
        evidence=(
            Evidence("events", key("e-2"), "request", 1772444881.504208, "adk-c1"),
            Evidence("events", key("e-4"), "approval", 1772445034.605495, "adk-c1", "payload 1"),
            Evidence("events", key("e-6"), "approval", None, "adk-c1", "payload 2"),
        ),
        todo="Find out whether the tool ran twice.",
        subject=("adk-c1",),
        fingerprint="a" * 64,
    )
    guess = Finding(
        rule="EXH202",
        name="orphaned-call",
        severity=Severity.WARNING,
        message="Call stock_level never got a response.",
        app_name="refund_desk",
        user_id="u-7",
        session_id="s-1",
        confidence=Confidence.INFERRED,
        event_ids=("e-9",),
        fingerprint="b" * 64,
    )
    taken_back = Finding(
        rule="EXH104",
        name="double-execution",
        severity=Severity.ERROR,
        message="Call adk-t2 ran twice.",
        app_name="refund_desk",
        user_id="u-8",
        session_id="s-2",
        event_ids=("e-11",),
        fingerprint="c" * 64,
        rewound=True,
    )
    accepted = Finding(
        rule="EXH406",
        name="credential-material",
        severity=Severity.WARNING,
        message="A token stands in user state.",
        app_name="refund_desk",
        user_id="u-8",
        session_id=None,
        fingerprint="d" * 64,
        suppressed="test account, rotated",
    )
    whole = Finding(
        rule="EXH114",
        name="unsupported-backing",
        severity=Severity.INFO,
        message="Tool confirmation is used in a store whose documentation calls that unsupported.",
        app_name=None,
        user_id=None,
        session_id=None,
        fingerprint="e" * 64,
    )
    return [double, guess, taken_back, accepted, whole]


def audit() -> AuditReport:
    return AuditReport(
        source="incident.db",
        layout="v1",
        findings=findings(),
        summary=AuditSummary(sessions=3, events=42, errors=1, warnings=1, infos=1, rewound=1, suppressed=1),
        notes=["EXH309 stayed silent: this source has no session times."],
        started_at=SPAN.started_at,
        finished_at=SPAN.finished_at,
    )


def clean_audit() -> AuditReport:
    return AuditReport(
        source="healthy.db",
        layout="v1",
        findings=[],
        summary=AuditSummary(sessions=1, events=2),
        started_at=SPAN.started_at,
        finished_at=SPAN.finished_at,
    )


def hostile_audit() -> AuditReport:
    finding = Finding(
        rule="EXH201",
        name="orphaned-response",
        severity=Severity.ERROR,
        message=HOSTILE,
        app_name=HOSTILE,
        user_id=HOSTILE,
        session_id=HOSTILE,
        event_ids=(HOSTILE,),
        call_ids=(HOSTILE,),
        evidence=(Evidence(HOSTILE, EventKey(HOSTILE, HOSTILE, HOSTILE, HOSTILE), HOSTILE, 1e300, HOSTILE, HOSTILE),),
        todo=HOSTILE,
        fingerprint="f" * 64,
    )
    accepted = Finding(
        rule="EXH202",
        name="orphaned-call",
        severity=Severity.WARNING,
        message=HOSTILE,
        app_name=None,
        user_id=None,
        session_id=None,
        fingerprint="0" * 64,
        suppressed=HOSTILE,
    )
    return AuditReport(
        source=HOSTILE,
        layout="v1",
        findings=[finding, accepted],
        summary=AuditSummary(sessions=1, events=1, errors=1, suppressed=1),
        notes=[HOSTILE],
        started_at=SPAN.started_at,
        finished_at=SPAN.finished_at,
    )


ZONE = TimeZoneReport(
    zone="America/New_York", proof="proved", sessions_agreeing=3, notes=("2 times assumed.",), offsets={"-05:00": 3}
)


def detection() -> Detection:
    return Detection(
        info=StoreInfo(
            name="postgresql://me:secret@host/db",
            kind="sqlite",
            dialect="sqlite",
            sha256="1" * 64,
            sidecars=(Sidecar("wal", "old.db-wal", 4152, "its content was read"),),
            notes=("A note.",),
        ),
        layout=Layout.V0,
        schema_version="0",
        declared_version="1",
        releases=ReleaseRange("1.19.0", "1.21.0"),
        contradictions=("The metadata row says 1, but the tables are v0.",),
        evidence=("events.actions holds pickles.",),
        counts={"events": 1429, "sessions": 146},
        drift=("events lacks the column citation_metadata.",),
        drift_checked=True,
    )


def refused_row() -> RefusedRow:
    problem = Problem(
        rule="EXH501",
        column="actions",
        reason="the pickle names shop.Priority (offset 12), which is not allowed.",
        sha256="2" * 64,
        globals=("shop.Priority",),
        offset=12,
    )
    told = Problem(rule="EXH504", column="actions", reason="3 bytes after STOP", sha256="2" * 64, fatal=False)
    return RefusedRow("events", key("e-3"), (told, problem), "v0 -> v1", {"actions": b"\x80\x05."})


def migration(status: str = "refused") -> MigrationReport:
    refused = [refused_row()] if status in ("refused", "incomplete") else []
    return MigrationReport(
        status=status,
        source="old.db",
        destination="new.db",
        path=(Layout.V0, Layout.V1),
        tables={"sessions": TableCount(2, 2), "events": TableCount(10, 10, 0, len(refused))},
        refused=refused,
        refused_count=len(refused),
        losses=[LossCount("set-to-list", 2, "refund_desk/u-7/s-1/e-5: actions.state_delta.tags", "v0 -> v1")],
        time_zone=ZONE,
        source_sha256_before="3" * 64,
        source_sha256_after="3" * 64,
        verified=status in ("complete", "incomplete"),
        quarantine="kept.db" if status == "incomplete" else None,
        allowed_globals=("shop.Level",),
        notes=["1 missing row of app_states was made."],
        started_at=SPAN.started_at,
        finished_at=SPAN.finished_at,
        seconds={"read": 0.5},
        versions={"exhume": "0.1.0"},
    )


def verification(*, equal: bool = False) -> VerifyReport:
    differences = [] if equal else [Difference("events", key("e-3"), "actions.state_delta.cart", '["pen"]', None)]
    return VerifyReport(
        equal=equal,
        source="old.db",
        destination="new.db",
        source_layout="v0",
        destination_layout="v1",
        tables={"events": VerifyTable(10, 10, 10 - len(differences))},
        differences=differences,
        difference_count=len(differences),
        source_time_zone=ZONE,
        destination_time_zone=TimeZoneReport("UTC", "not needed"),
        started_at=SPAN.started_at,
        finished_at=SPAN.finished_at,
    )
