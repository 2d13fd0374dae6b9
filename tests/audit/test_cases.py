"""Every rule on the cases of tests/cases: it says what it must, and is silent where it must."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from exhume.audit.rule import catalogue
from tests.audit.building import run

CASES = Path(__file__).resolve().parent.parent / "cases"


@cache
def load(rule: str) -> list[dict[str, Any]]:
    """The cases of one rule."""
    document = yaml.safe_load((CASES / f"{rule.lower()}.yml").read_text(encoding="utf-8"))
    assert document["rule"] == rule
    cases: list[dict[str, Any]] = document["cases"]
    return cases


def all_cases() -> list[Any]:
    rules = sorted(path.stem.upper() for path in CASES.glob("exh*.yml"))
    return [pytest.param(rule, case, id=f"{rule}: {case['name']}") for rule in rules for case in load(rule)]


@pytest.mark.parametrize(("rule", "case"), all_cases())
def test_case(rule: str, case: dict[str, Any]) -> None:
    findings = run(case, rule).findings
    own = {known.id: known.severity.label for known in catalogue()}[rule]
    wanted = sorted(
        (one.get("session") or "", one.get("severity", own), tuple(sorted(one.get("events", ()))))
        for one in case["expect"]
    )
    compared = {one.get("session") or "" for one in case["expect"] if "events" in one}
    found = sorted(
        (
            finding.session_id or "",
            finding.severity.label,
            tuple(sorted(finding.event_ids)) if (finding.session_id or "") in compared else (),
        )
        for finding in findings
    )
    assert found == wanted, [finding.message for finding in findings]
    for one in case["expect"]:
        of_session = [finding for finding in findings if finding.session_id == one.get("session")]
        if "says" in one:
            assert any(one["says"] in finding.message for finding in of_session), [f.message for f in of_session]
        if "rewound" in one:
            assert [finding.rewound for finding in of_session] == [one["rewound"]]
    assert all(finding.todo and finding.subject for finding in findings)
    assert len({finding.fingerprint for finding in findings}) == len(findings)


@pytest.mark.parametrize("rule", sorted(str(known.id) for known in catalogue()))
def test_a_rule_has_cases_that_fire_and_cases_that_do_not(rule: str) -> None:
    cases = load(rule)
    assert any(case["expect"] for case in cases)
    assert any(not case["expect"] for case in cases)
    assert len({case["name"] for case in cases}) == len(cases)
