"""Suppressions and the baseline: what they cover, what they tell, and that files are whole or not there."""

from __future__ import annotations

import json
import os
import stat
from datetime import date
from pathlib import Path

import pytest

from exhume.audit import baseline
from exhume.audit.findings import AuditReport, AuditSummary, Finding, Severity
from exhume.audit.suppress import Suppression, cover
from exhume.errors import Incomplete, NothingToLookAt, UsageError

TODAY = date(2027, 1, 31)


def finding(number: int, *, rule: str = "EXH101", session: str | None = "s1", rewound: bool = False) -> Finding:
    return Finding(
        rule=rule,
        name="a-rule",
        severity=Severity.ERROR,
        message="m",
        app_name="desk",
        user_id="u1",
        session_id=session,
        fingerprint=f"{number:032x}",
        rewound=rewound,
    )


def report(*findings: Finding) -> AuditReport:
    return AuditReport("case", "v1", list(findings), AuditSummary(sessions=1, errors=99))


def covered(one: AuditReport) -> list[str | None]:
    return [found.suppressed for found in one.findings]


@pytest.mark.parametrize(
    "entry",
    [
        Suppression("why", rule="EXH101"),
        Suppression("why", session="s1"),
        Suppression("why", fingerprint=f"{1:032x}"),
        Suppression("why", rule="EXH101", app="desk", user="u1", session="s1", until=TODAY),
    ],
)
def test_an_entry_covers_what_fits_it(entry: Suppression) -> None:
    one = report(finding(1), finding(2, rule="EXH102", session="s2"))
    cover(one, [entry], today=TODAY)
    assert covered(one) == ["why", None]
    assert (one.summary.errors, one.summary.suppressed, one.notes) == (1, 1, [])


@pytest.mark.parametrize(
    "entry",
    [
        Suppression("why", rule="EXH1"),
        Suppression("why", rule="EXH101", session="s2"),
        Suppression("why", rule="EXH101", user="u2"),
        Suppression("why", rule="EXH101", app="other"),
        Suppression("why", fingerprint="0000"),
        Suppression("why", rule="EXH101", fingerprint=f"{2:032x}"),
    ],
)
def test_every_field_has_to_fit(entry: Suppression) -> None:
    one = report(finding(1))
    cover(one, [entry], today=TODAY)
    assert covered(one) == [None]
    assert one.notes == [f"{entry.place} covers no finding."]


def test_the_first_digits_of_a_fingerprint_are_enough() -> None:
    one = report(finding(0xABCDEF0123456789ABCDEF0123456789))
    cover(one, [Suppression("why", fingerprint="ABCDEF01")], today=TODAY)
    assert covered(one) == ["why"]


def test_an_entry_that_expired_yesterday_covers_nothing_and_says_so() -> None:
    one = report(finding(1))
    cover(
        one, [Suppression("why", rule="EXH101", until=date(2027, 1, 30), place="exhume.toml: suppress[1]")], today=TODAY
    )
    assert covered(one) == [None]
    assert one.notes == ["exhume.toml: suppress[1] expired on 2027-01-30: what it covered counts again."]


def test_what_covers_nothing_is_no_news_when_only_a_part_was_audited() -> None:
    one = report()
    known = baseline.Baseline("base.json", frozenset({"x"}))
    cover(one, [Suppression("why", rule="EXH101")], baseline=known, today=TODAY, whole=False)
    assert one.notes == []


def test_a_rewound_finding_counts_as_such_unless_covered() -> None:
    one = report(finding(1, rewound=True), finding(2, rewound=True, rule="EXH102"))
    cover(one, [Suppression("why", rule="EXH102")], today=TODAY)
    assert (one.summary.rewound, one.summary.suppressed, one.summary.errors) == (1, 1, 0)


def test_a_baseline_covers_its_own_findings_and_no_new_ones(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    assert baseline.write(path, [finding(1), finding(2)]) == 2
    one = report(finding(2), finding(3))
    cover(one, baseline=baseline.read(path), today=TODAY)
    assert covered(one) == [f"in the baseline {path}", None]
    assert one.notes == [f"The baseline {path} holds 1 finding that is not found any more; write it anew to drop them."]


def test_a_reason_stands_before_the_baseline() -> None:
    one = report(finding(1))
    known = baseline.Baseline("base.json", frozenset({finding(1).fingerprint}))
    cover(one, [Suppression("why", rule="EXH101")], baseline=known, today=TODAY)
    assert covered(one) == ["why"]


def test_a_baseline_does_not_depend_on_the_order_of_findings(tmp_path: Path) -> None:
    findings = [finding(number, rule=rule, session=session) for number, (rule, session) in enumerate(
        [("EXH205", "s2"), ("EXH101", None), ("EXH101", "s1"), ("EXH101", "ü\ud800\n")]
    )]  # fmt: skip
    baseline.write(tmp_path / "one", findings)
    baseline.write(tmp_path / "two", [*reversed(findings), findings[0]])
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    document = json.loads((tmp_path / "one").read_bytes())
    assert document["format"] == "exhume.baseline/1"
    assert [entry["rule"] for entry in document["findings"]] == ["EXH101", "EXH101", "EXH101", "EXH205"]
    assert baseline.read(tmp_path / "one").fingerprints == {found.fingerprint for found in findings}


def test_an_empty_baseline_is_one(tmp_path: Path) -> None:
    assert baseline.write(tmp_path / "none.json", []) == 0
    assert baseline.read(tmp_path / "none.json").fingerprints == frozenset()


def test_a_baseline_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "baseline.json"
    baseline.write(path, [finding(1)])
    path.chmod(0o640)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(Incomplete, match="No space left"):
        baseline.write(path, [finding(2)])
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["baseline.json"]
    monkeypatch.undo()
    baseline.write(path, [finding(2)])
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no baseline"),
        ("[1]", "no baseline"),
        ("{" * 50, "no baseline"),
        ("[" * 100_000, "no baseline"),
        ('{"format": "exhume.baseline/2", "findings": []}', "exhume.baseline/2, not exhume.baseline/1"),
        ('{"findings": []}', "None, not exhume.baseline/1"),
        ('{"format": "exhume.baseline/1", "findings": [{}]}', "without a fingerprint"),
        ('{"format": "exhume.baseline/1", "findings": ["x"]}', "without a fingerprint"),
    ],
)
def test_what_is_no_baseline_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=says):
        baseline.read(path)


def test_a_baseline_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NothingToLookAt, match="There is no baseline"):
        baseline.read(tmp_path / "none.json")
    with pytest.raises(NothingToLookAt, match="cannot be read"):
        baseline.read(tmp_path)


def test_a_baseline_does_not_replace_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert baseline.write(pipe, []) == 0
        assert json.loads(os.read(reader, 1000))["findings"] == []
    finally:
        os.close(reader)
    assert pipe.is_fifo()
