"""The labelled incidents and the real databases: every finding that must come comes, and no other alarm."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from exhume.audit.engine import audit
from exhume.audit.findings import AuditReport, Finding, Severity
from exhume.events.readers import open_reader
from exhume.schema.detect import detect
from exhume.stores import open_store
from tests.audit.labels import labels
from tests.conftest import FIXTURES

#: A finding of these may stand at any session of the app and user that the label names.
ACROSS_SESSIONS = {"EXH103"}


def entries(file: str, folder: str) -> list[Any]:
    return [
        pytest.param(entry, id=entry["file"].removesuffix(".db"))
        for entry in labels(file)
        if (FIXTURES / folder / f"{entry['file']}.gz").exists()
    ]


def audited(path: Path) -> AuditReport:
    with closing(open_store(path)) as store:
        detection = detect(store)
        return audit(open_reader(store, detection), detection)


Session = tuple[str | None, str | None, str | None]


class Label:
    """What one database must and may say."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self.must: dict[Session, set[str]] = defaultdict(set)
        self.may: dict[Session, set[str]] = defaultdict(set)
        for session in entry["sessions"]:
            key = (session["app_name"], session["user_id"], session["session_id"])
            self.must[key] |= set(session.get("must", ()))
            self.may[key] |= set(session.get("may", ())) | self.must[key]
        self.database_must = set(entry["database_must"])
        self.everywhere = self.database_must | set(entry["database_may"])

    def allows(self, finding: Finding) -> bool:
        key = (finding.app_name, finding.user_id, finding.session_id)
        if finding.rule in self.everywhere or finding.rule in self.may.get(key, ()):
            return True
        if finding.rule not in ACROSS_SESSIONS:
            return False
        return any(finding.rule in rules for other, rules in self.may.items() if other[:2] == key[:2])


def check(report: AuditReport, entry: dict[str, Any]) -> None:
    label = Label(entry)
    found: dict[str, set[Session]] = defaultdict(set)
    for finding in report.findings:
        found[finding.rule].add((finding.app_name, finding.user_id, finding.session_id))
    alarms = [
        (finding.rule, finding.session_id, finding.message)
        for finding in report.findings
        if finding.severity > Severity.INFO and not finding.rewound and not label.allows(finding)
    ]
    missed = [
        (rule, key)
        for key, rules in label.must.items()
        for rule in rules
        if key not in found[rule]
        and not (rule in ACROSS_SESSIONS and any(other[:2] == key[:2] for other in found[rule]))
    ]
    assert alarms == []
    assert missed == []
    assert {rule for rule in label.database_must if not found[rule]} == set()
    assert len({finding.fingerprint for finding in report.findings}) == len(report.findings)


@pytest.mark.parametrize("entry", entries("labels.json", "incidents"))
def test_incidents(entry: dict[str, Any], incident_db: Callable[[str], Path]) -> None:
    check(audited(incident_db(entry["file"].removesuffix(".db"))), entry)


@pytest.mark.parametrize("entry", entries("corpus-labels.json", "adk"))
def test_real_databases(entry: dict[str, Any], adk_db: Callable[[str], Path]) -> None:
    check(audited(adk_db(entry["file"].removesuffix(".db"))), entry)
