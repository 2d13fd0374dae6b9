"""Documents of real results meet their schemas, and two runs on the same source give the same document."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from exhume import api
from exhume.audit.ledger import ledger
from exhume.audit.timeline import timeline
from exhume.events.interface import ReadOptions
from exhume.migrate.interface import MigrateOptions
from exhume.report.formats import Format, Report, render
from exhume.report.results import (
    of_audit,
    of_detection,
    of_ledger,
    of_migration,
    of_scan,
    of_timeline,
    of_verify,
)
from exhume.report.schema import load_schema, schema_names
from tests.report.samples import SPAN

Database = Callable[[str], Path]


def checked(report: Report) -> dict[str, Any]:
    text = "".join(render(report, Format.JSON))
    assert text.isascii()
    assert "\x1b" not in text
    document: dict[str, Any] = json.loads(text)
    schema = load_schema(document["format"].removeprefix("exhume.").removesuffix("/1"))
    jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(document)
    for fmt in report.formats():
        assert "\x1b" not in "".join(render(report, fmt))
    return document


@pytest.mark.parametrize("name", ["db-1.0.0-ny", "db-1.21.0-utc", "db-2.13.0-utc", "sqlitesvc-2.13.0-utc"])
def test_detect_and_scan(adk_db: Database, name: str) -> None:
    source = adk_db(name)
    assert checked(of_detection(api.detect(source), span=SPAN))["tables"]["events"] > 0
    scanned = checked(of_scan(api.scan(source, second_opinion=False), span=SPAN))
    assert scanned["values"]["total"] >= scanned["values"]["distinct"]


def test_migrate_and_verify(adk_db: Database, tmp_path: Path) -> None:
    source = adk_db("db-1.21.0-utc")
    refused = checked(of_migration(api.migrate(source, tmp_path / "no.db")))
    assert refused["status"] == "refused"
    assert refused["refused_count"] == len(refused["refused"]) > 0
    kept = MigrateOptions(quarantine=tmp_path / "kept.db")
    incomplete = checked(of_migration(api.migrate(source, tmp_path / "new.db", kept)))
    assert incomplete["status"] == "incomplete"
    verified = checked(of_verify(api.verify(source, tmp_path / "new.db")))
    assert verified["difference_count"] >= len(verified["differences"])


@pytest.mark.parametrize("name", ["v1a", "v0pickles", "v0newyork", "go"])
def test_audit_is_the_same_twice(incident_db: Database, name: str) -> None:
    source = incident_db(name)
    first, second = (checked(of_audit(api.audit(source))) for _ in range(2))
    for document in (first, second):
        document["started_at"] = document["finished_at"] = ""
    assert first == second
    assert len({one["fingerprint"] for one in first["findings"]}) == len(first["findings"]) > 0


def test_show_and_approvals(incident_db: Database) -> None:
    source = incident_db("v1a")
    with api.opened(source) as (reader, detection):
        document = checked(of_ledger(ledger(reader, detection), span=SPAN))
    row = document["approvals"][0]
    key = {"app": row["app_name"], "user": row["user_id"], "session": row["session_id"]}
    with api.opened(source, ReadOptions(**key)) as (reader, detection):
        shown = checked(of_timeline(timeline(reader, detection, session=key["session"]), span=SPAN))
    assert row["request_event_id"] in {event["event_id"] for event in shown["events"]}


def test_every_schema_is_one_and_is_used() -> None:
    assert schema_names() == ["approvals", "audit", "detect", "migrate", "scan", "show", "verify"]
    for name in schema_names():
        schema = load_schema(name)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["properties"]["format"] == {"const": f"exhume.{name}/1"}
