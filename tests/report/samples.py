"""Results made by hand, ordinary and hostile ones, that the tests of all formats share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exhume.audit.findings import AuditReport, AuditSummary, Confidence, Evidence, Finding, Severity
from exhume.audit.ledger import Ledger, session_rows
from exhume.audit.log import SessionLog
from exhume.audit.pairing import build_log
from exhume.audit.timeline import Timeline, make_timeline
from exhume.events.model import EventKey, EventRecord, Problem, StateRecord, TimeZoneReport
from exhume.migrate.interface import (
    Difference,
    LossCount,
    MigrationReport,
    RefusedRow,
    TableCount,
    VerifyReport,
    VerifyTable,
)
from exhume.pickles.evidence import SecondOpinion
from exhume.pickles.scan import GlobalCount, ScannedValue, ScanReport
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
        source="postgresql://me:secret@host/incidents",
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


def dry_run() -> MigrationReport:
    report = migration("refused")
    report.dry_run = True
    report.plan = ["path: v0 -> v1", "rows: events: 10 read"]
    return report


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


def scan(*, hostile: bool = False) -> ScanReport:
    text = HOSTILE if hostile else "posix"
    opinion = SecondOpinion(
        "LIKELY_OVERTLY_MALICIOUS", "from os import system\nsystem('id')", ("os.system",), note="0.1.4"
    )
    value = ScannedValue(
        app_name=text if hostile else "refund_desk",
        user_id="u-7",
        session_id="s-1",
        event_id="e-3",
        rule="EXH501",
        reason=f"the pickle names {text}.system (offset 2), which is not allowed.",
        offset=2,
        sha256="4" * 64,
        size=40,
        globals=(f"{text}.system",),
        excerpt=(f"    2: c    GLOBAL     '{text} system'",),
        options=(f"--allow-global {text}.system",),
        second_opinion=opinion,
    )
    told = replace(value, rule="EXH504", reason="3 bytes after STOP", globals=(), options=(), second_opinion=None)
    return ScanReport(
        source="old.db",
        layout=Layout.V0,
        sha256="5" * 64,
        globals=(
            GlobalCount("google.adk.events.event_actions", "EventActions", 10, allowed=True),
            GlobalCount(text, "system", 1, allowed=False),
        ),
        refused=(value,),
        told=(told,),
        values_total=11,
        values_distinct=5,
        values_refused=1,
        values_told=1,
        options=(f"--allow-global {text}.system",),
        notes=(text,) if hostile else (),
    )


def _event(number: int, author: str, invocation: str, part: dict[str, Any], **more: Any) -> EventRecord:
    ident = f"e-{number}"
    data: dict[str, Any] = {
        "id": ident,
        "author": author,
        "invocation_id": invocation,
        "timestamp": 1772444880.0 + number,
        "content": {"parts": [part], "role": "user" if author == "user" else "model"},
        **more,
    }
    return EventRecord(key(ident), number, invocation, data["timestamp"], data["timestamp"], data)


def approval_log(text: str = "please refund O-1", amount: Any = 54.0) -> SessionLog:
    """One refund: asked for, confirmed twice, run twice; an open request and an orphaned response beside it."""
    args = {"order": text, "amount": amount}
    call = {"id": "adk-t", "name": "issue_refund", "args": args}
    asked = {"originalFunctionCall": call, "toolConfirmation": {"hint": text, "confirmed": False}}
    confirmation = {"id": "adk-c", "name": "adk_request_confirmation", "args": asked}
    other = {"id": "adk-d", "name": "adk_request_confirmation", "args": {"originalFunctionCall": {"name": text}}}
    yes = {
        "id": "adk-c",
        "name": "adk_request_confirmation",
        "response": {"confirmed": True, "payload": {"note": text}},
    }
    ran = {"id": "adk-t", "name": "issue_refund", "response": {"refunded": text, "api_key": "k-very-secret"}}
    waits = {"id": "adk-t", "name": "issue_refund", "response": {"error": "This tool call requires confirmation."}}
    wanted = {"requested_tool_confirmations": {"adk-t": {"hint": text, "confirmed": False}}}
    records = [
        _event(1, "user", "i-1", {"text": text}),
        _event(2, "clerk", "i-1", {"function_call": call}, branch="desk.clerk"),
        _event(3, "clerk", "i-1", {"function_call": confirmation}, long_running_tool_ids=["adk-c"]),
        _event(4, "clerk", "i-1", {"function_response": waits}, actions=wanted),
        _event(5, "user", "i-2", {"function_response": yes}),
        _event(6, "clerk", "i-2", {"function_response": ran}, actions={"state_delta": {"last": text, "temp:x": 1}}),
        _event(7, "user", "i-1", {"function_response": yes}),
        _event(8, "clerk", "i-1", {"function_response": ran}),
        _event(9, "clerk", "i-1", {"function_call": other}),
        _event(10, "clerk", "i-1", {"function_response": {"id": "adk-none", "name": text, "response": {}}}),
        _event(11, "clerk", "i-1", {"text": text}, error_code="MAX_TOKENS", error_message=text),
    ]
    state = {"last": text, "token": "t-very-secret"}
    row = StateRecord("refund_desk", "u-7", "s-1", state, None, 1772444880.0, 1772444891.0, 1)
    return build_log(key("").session, row, records)


def timeline(text: str = "please refund O-1", *, reveal: bool = False) -> Timeline:
    return make_timeline(approval_log(text), detection(), ZONE, reveal=reveal)


def ledger(text: str = "please refund O-1") -> Ledger:
    return Ledger("postgresql://me:secret@host/incidents", "v1", list(session_rows(approval_log(text))), 1)
