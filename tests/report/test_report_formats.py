"""Each format against golden files, asserted whole; hostile data can neither break nor forge any of them.

`EXHUME_GOLDEN=write pytest tests/report` writes the golden files anew, to be reviewed as a diff.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import jsonschema
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume._version import __version__
from exhume.audit.findings import AuditReport, AuditSummary, Confidence, Evidence, Finding, Severity
from exhume.errors import UsageError
from exhume.events.model import EventKey
from exhume.report.audit_report import finding_json
from exhume.report.formats import Format, Look, Report, render
from exhume.report.results import of_audit, of_detection, of_ledger, of_migration, of_scan, of_timeline, of_verify
from exhume.report.rule_pages import rule_pages
from exhume.report.schema import load_schema
from tests.report import samples

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
SARIF = json.loads((Path(__file__).parent / "sarif-trimmed.json").read_text())

REPORTS: dict[str, Callable[[], Report]] = {
    "audit": lambda: of_audit(samples.audit()),
    "audit-clean": lambda: of_audit(samples.clean_audit()),
    "audit-hostile": lambda: of_audit(samples.hostile_audit()),
    "detect": lambda: of_detection(samples.detection(), span=samples.SPAN, time_zone=samples.ZONE),
    "migrate-refused": lambda: of_migration(samples.migration("refused")),
    "migrate-dry": lambda: of_migration(samples.dry_run()),
    "migrate-complete": lambda: of_migration(samples.migration("complete")),
    "migrate-incomplete": lambda: of_migration(samples.migration("incomplete")),
    "scan": lambda: of_scan(samples.scan(), span=samples.SPAN),
    "scan-hostile": lambda: of_scan(samples.scan(hostile=True), span=samples.SPAN),
    "show": lambda: of_timeline(samples.timeline(), span=samples.SPAN),
    "show-hostile": lambda: of_timeline(samples.timeline(samples.HOSTILE), span=samples.SPAN),
    "approvals": lambda: of_ledger(samples.ledger(), span=samples.SPAN),
    "approvals-hostile": lambda: of_ledger(samples.ledger(samples.HOSTILE), span=samples.SPAN),
    "verify": lambda: of_verify(samples.verification()),
    "verify-equal": lambda: of_verify(samples.verification(equal=True)),
}

#: CSV is for the ledger of approvals alone.
FORMATS = [fmt for fmt in Format if fmt is not Format.CSV]
PAIRS = [(name, fmt) for name, make in REPORTS.items() for fmt in make().formats()]
HOSTILE_PAIRS = [pair for pair in PAIRS if pair[0].endswith("hostile")]


def text_of(report: Report, fmt: Format, look: Look | None = None) -> str:
    return "".join(render(report, fmt, look=look))


def without_rule_pages(text: str) -> str:
    """SARIF without the rules' documentation, which has tests of its own and changes for its own reasons."""
    return re.sub(r'(?m)^"tool": .*$', '"tool": {},', text)


@pytest.mark.parametrize(("name", "fmt"), PAIRS)
def test_golden(name: str, fmt: Format) -> None:
    text = text_of(REPORTS[name](), fmt)
    if fmt is Format.SARIF:
        text = without_rule_pages(text)
    text = text.replace(f'"{__version__}"', '"VERSION"')
    golden = GOLDEN / f"{name}.{fmt}.txt"
    if os.environ.get("EXHUME_GOLDEN") == "write":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", list(REPORTS))
def test_documents_meet_their_schema(name: str) -> None:
    document = json.loads(text_of(REPORTS[name](), Format.JSON))
    schema = load_schema(document["format"].split(".")[1].split("/")[0])
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(document)


@pytest.mark.parametrize("name", list(REPORTS))
def test_json_lines_hold_what_the_document_holds(name: str) -> None:
    report = REPORTS[name]()
    document = json.loads(text_of(report, Format.JSON))
    first, *rest = map(json.loads, text_of(report, Format.JSONL).splitlines())
    assert first.pop("type") == "report"
    assert [item.pop("type") for item in rest] == [report.items] * len(rest)
    assert (first | {report.items: rest} if report.items else first) == document


def test_sarif_explains_every_rule_that_fired() -> None:
    (run,) = json.loads(text_of(of_audit(samples.audit()), Format.SARIF))["runs"]
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert rules.keys() == {finding.rule for finding in samples.findings()}
    for page in rule_pages(set(rules)):
        rule = rules[page.id]
        assert rule["name"] == page.name
        assert rule["help"]["text"].startswith("## What it detects")
        assert "## What to do" in rule["help"]["markdown"]
        assert rule["shortDescription"]["text"] == page.summary
        assert page.summary.endswith(".")
        assert "\n" not in page.summary


@pytest.mark.parametrize("name", [name for name, fmt in PAIRS if fmt is Format.SARIF])
def test_sarif_is_valid(name: str) -> None:
    log = json.loads(text_of(REPORTS[name](), Format.SARIF))
    orjson.loads(text_of(REPORTS[name](), Format.SARIF))  # a strict parser takes it, too
    jsonschema.Draft7Validator(SARIF, format_checker=jsonschema.FormatChecker()).validate(log)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]


def test_sarif_says_what_a_finding_rests_on() -> None:
    (run,) = json.loads(text_of(of_audit(samples.audit()), Format.SARIF))["runs"]
    double = run["results"][0]
    (flow,) = double["codeFlows"][0]["threadFlows"]
    assert [step["kinds"] for step in flow["locations"]] == [["request"], ["approval"], ["approval"]]
    assert flow["locations"][0]["executionTimeUtc"] == "2026-03-02T09:48:01.504208Z"
    assert double["partialFingerprints"] == {"exhume/v1": "a" * 64}
    by_rule = {result["ruleId"]: result for result in run["results"]}
    assert by_rule["EXH406"]["suppressions"][0]["justification"] == "test account, rotated"
    assert by_rule["EXH104"]["level"] == "note"  # rewound


@pytest.mark.parametrize(("name", "fmt"), [(name, fmt) for name, fmt in PAIRS if "-" not in name])
def test_passwords_of_the_source_are_masked(name: str, fmt: Format) -> None:
    assert "secret@" not in text_of(REPORTS[name](), fmt)


@pytest.mark.parametrize(("name", "fmt"), HOSTILE_PAIRS)
def test_hidden_characters_never_leave_raw(name: str, fmt: Format) -> None:
    assert_harmless(text_of(REPORTS[name](), fmt))


@pytest.mark.parametrize(("name", "fmt"), [pair for pair in PAIRS if pair[0] in ("show", "approvals")])
def test_credentials_are_hidden(name: str, fmt: Format) -> None:
    assert "very-secret" not in text_of(REPORTS[name](), fmt)


def test_credentials_are_shown_when_asked_for() -> None:
    text = text_of(of_timeline(samples.timeline(reveal=True), span=samples.SPAN), Format.JSON)
    assert "k-very-secret" in text
    assert "t-very-secret" in text


@pytest.mark.parametrize("color", [False, True])
def test_a_table_interprets_nothing(color: bool) -> None:
    text = text_of(of_audit(samples.hostile_audit()), Format.TABLE, Look(width=400, color=color))
    assert "[bold]m[/bold]" in text
    assert "\x1b[31mred" not in text  # the colour of the table itself is allowed, the one of the data is not
    assert ("\x1b[" in text) is color


def test_a_text_cannot_pose_as_a_line_of_the_table() -> None:
    forged = " " * 200 + "ERROR   EXH104 double-execution"
    report = samples.clean_audit()
    report.findings.append(
        Finding("EXH201", forged, Severity.INFO, forged, forged, forged, forged, todo=forged, suppressed=forged)
    )
    report.notes.append(forged)
    text = text_of(of_audit(report), Format.TABLE, Look(width=60))
    assert text.count("ERROR") >= 5
    assert not [line for line in text.splitlines() if line.startswith("ERROR")]


def test_a_text_cannot_pose_as_a_line_of_the_timeline() -> None:
    forged = " " * 130 + "++ APPROVED issue_refund (adk-c)"
    text = text_of(of_timeline(samples.timeline(forged), span=samples.SPAN), Format.TABLE, Look(width=80))
    assert text.count("++ APPROVED") > 2
    assert sum(line.startswith("      ++ APPROVED") for line in text.splitlines()) == 2


def test_github_annotations_cannot_be_forged() -> None:
    text = text_of(of_audit(samples.hostile_audit()), Format.GITHUB)
    lines = text.splitlines()
    assert [line.split(" ", 1)[0] for line in lines] == ["::error", "::notice"]
    assert all(re.match(r"::(error|warning|notice) title=[^:,]*::", line) for line in lines)
    assert "%0A" not in text.replace("%250A", "")


def test_markdown_fits_a_job_summary() -> None:
    report = samples.clean_audit()
    long = "*" * 5000
    for nth in range(2000):
        report.findings.append(Finding("EXH201", "orphaned-response", Severity.ERROR, long, "a", "u", f"s-{nth}"))
    text = text_of(of_audit(report), Format.MARKDOWN)
    assert 400_000 < len(text.encode()) < 1 << 20
    left = 2000 - text.count("**error** EXH201")
    assert f"{left:,} more findings" in text


def test_junit_is_xml_whatever_it_holds() -> None:
    root = ET.fromstring(text_of(of_audit(samples.hostile_audit()), Format.JUNIT))
    assert {element.tag for element in root.iter()} <= {"testsuites", "testsuite", "testcase", "failure", "skipped"}
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("2", "1", "1")


def test_markdown_keeps_html_and_links_as_text() -> None:
    text = text_of(of_audit(samples.hostile_audit()), Format.MARKDOWN)
    assert not re.search(
        r"(?<!\\)[<`|@]", re.sub(r"(?m)^\|.*\|$", lambda row: row[0].strip("| ").replace(" | ", ""), text)
    )
    assert "](" not in text.replace("\\](", "")


def test_what_makes_no_findings_gives_no_reassuring_result() -> None:
    for name in ("show", "approvals"):
        for fmt in (Format.SARIF, Format.JUNIT, Format.GITHUB):
            with pytest.raises(UsageError, match="does not come as"):
                render(REPORTS[name](), fmt)
    with pytest.raises(UsageError):
        render(REPORTS["audit"](), Format.CSV)


def assert_harmless(text: str) -> None:
    found = {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")} - {"\n"}
    # the sign that warns is one character and a variation selector, which is neither of these
    assert not found, found


ANY_TEXT = st.text(alphabet=st.characters(), max_size=60)


@given(text=ANY_TEXT, number=st.floats(allow_nan=True, allow_infinity=True))
def test_any_text_in_any_place_is_rendered(text: str, number: float) -> None:
    key = EventKey(text, text, text, text)
    finding = Finding(
        "EXH201",
        "orphaned-response",
        Severity.ERROR,
        text,
        text,
        text,
        text,
        event_ids=(text,),
        evidence=(Evidence("events", key, "event", number, text, text),),
        todo=text,
    )
    report = of_audit(AuditReport(text, "v1", [finding], AuditSummary(), [text], samples.SPAN[0], samples.SPAN[1]))
    for fmt in FORMATS:
        shown = text_of(report, fmt, Look(width=80))
        assert_harmless(shown)
        if fmt is Format.JUNIT:
            ET.fromstring(shown)
        elif fmt in (Format.JSON, Format.SARIF):
            json.loads(shown)


@given(
    texts=st.lists(st.text(st.characters(codec=None), max_size=20), min_size=9, max_size=9),
    place=st.tuples(*[st.none() | st.text(st.characters(codec=None), max_size=5)] * 3),
    rewound=st.booleans(),
    suppressed=st.none() | ANY_TEXT,
)
def test_the_json_of_a_finding_says_what_the_finding_says(
    texts: list[str], place: tuple[str | None, ...], rewound: bool, suppressed: str | None
) -> None:
    app_name, user_id, session_id = place
    evidence = Evidence("events", EventKey(*texts[:4]), texts[4], 0.25, suppressed, texts[5])
    finding = Finding(
        texts[6],
        "name",
        Severity.WARNING,
        texts[7],
        app_name,
        user_id,
        session_id,
        Confidence.INFERRED,
        (texts[0], texts[1]),
        (texts[2],),
        (evidence, evidence),
        texts[8],
        fingerprint="f",
        rewound=rewound,
        suppressed=suppressed,
    )
    told = {
        "table": "events",
        **dict(zip(("app_name", "user_id", "session_id", "event_id"), texts, strict=False)),
        "role": texts[4],
        "time": "1970-01-01T00:00:00.250000Z",
        "call_id": suppressed,
        "note": texts[5],
    }
    written = finding_json(finding)
    assert written.isascii()
    # a pair of surrogates is one character once it was JSON
    assert json.loads(written) == json.loads(
        json.dumps(
            {
                "rule": texts[6],
                "name": "name",
                "severity": "warning",
                "confidence": "inferred",
                **dict(zip(("app_name", "user_id", "session_id"), place, strict=True)),
                "event_ids": texts[:2],
                "call_ids": [texts[2]],
                "message": texts[7],
                "todo": texts[8],
                "fingerprint": "f",
                "rewound": rewound,
                "suppressed": suppressed,
                "evidence": [told, told],
            }
        )
    )
