"""Exports are what the real google-adk package takes; JSON Lines can be read back whole."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exhume import api
from exhume.audit.findings import Severity
from exhume.errors import NothingToLookAt
from exhume.events.interface import ReadOptions
from exhume.events.model import EventRecord
from exhume.export.interface import ExportFormat, ExportOptions, Redact
from exhume.export.run import export
from tests.conftest import FIXTURES, unpack

Database = Callable[[str], Path]


def exported(source: Path, fmt: ExportFormat, read: ReadOptions | None = None, **options: Any) -> tuple[str, list[str]]:
    with api.opened(source, read) as (reader, detection):
        run = export(reader, detection, ExportOptions(format=fmt, **options))
        return "".join(run.pieces), run.notes


def events_of(source: Path) -> dict[tuple[str, ...], EventRecord]:
    with api.opened(source) as (reader, _):
        return {record.key: record for record in reader.events()}


def session_keys(source: Path) -> list[tuple[str, str, str]]:
    with api.opened(source) as (reader, _):
        return [(row.app_name, row.user_id or "", row.session_id or "") for row in reader.sessions()]


def adk_sessions(source: Path) -> dict[tuple[str, str, str], Any]:
    """Every session as google-adk 2.13 reads it."""
    from google.adk.sessions import DatabaseSessionService

    async def load() -> dict[tuple[str, str, str], Any]:
        service = DatabaseSessionService(f"sqlite+aiosqlite:///{source}")
        found = {}
        for app, user, session in session_keys(source):
            loaded = await service.get_session(app_name=app, user_id=user, session_id=session)
            if loaded is not None:
                found[app, user, session] = loaded
        await service.db_engine.dispose()
        return found

    return asyncio.run(load())


@pytest.fixture(scope="module")
def read_by_adk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[tuple[str, str, str], Any]]:
    """A v1 database, and all its sessions as google-adk itself reads them."""
    folder = tmp_path_factory.mktemp("source")
    source = unpack(FIXTURES / "adk" / "db-2.13.0-utc.db.gz", folder / "source.db")
    copy = unpack(FIXTURES / "adk" / "db-2.13.0-utc.db.gz", folder / "opened-by-adk.db")
    return source, adk_sessions(copy)


def test_session_json_is_what_adk_itself_reads(read_by_adk: tuple[Path, dict[tuple[str, str, str], Any]]) -> None:
    from google.adk.sessions.session import Session

    source, theirs = read_by_adk
    text, notes = exported(source, ExportFormat.SESSION)
    assert text.isascii()
    assert notes == []
    ours = {}
    for item in json.loads(text):
        session = Session.model_validate_json(json.dumps(item))
        ours[session.app_name, session.user_id, session.id] = session
    assert ours.keys() == theirs.keys()
    for key, session in theirs.items():
        assert dump_of(ours[key]) == dump_of(session), key


def dump_of(session: Any) -> Any:
    """A session as plain data. ADK itself reads an API-key scheme stored in v1 as a bearer one; that is left aside."""
    found = session.model_dump(mode="json", exclude_none=True)
    for event in found["events"]:
        for config in event["actions"].get("requested_auth_configs", {}).values():
            config.pop("auth_scheme", None)
    return visible(found)


def visible(value: Any) -> Any:
    """`value` with lone surrogates as visible escapes, since pydantic refuses to read them in JSON."""
    if isinstance(value, dict):
        return {visible(key): visible(item) for key, item in value.items()}
    if isinstance(value, list):
        return [visible(item) for item in value]
    return re.sub("[\ud800-\udfff]", lambda one: f"\\u{ord(one[0]):04x}", value) if isinstance(value, str) else value


def test_one_session_is_one_object_that_adk_resumes(adk_db: Database) -> None:
    from google.adk.sessions.session import Session

    source = adk_db("db-2.13.0-utc")
    app, user, session = next(iter(events_of(source)))[:3]
    text, _ = exported(source, ExportFormat.SESSION, ReadOptions(app=app, user=user, session=session))
    loaded = Session.model_validate_json(text)
    assert (loaded.app_name, loaded.user_id, loaded.id) == (app, user, session)


@pytest.mark.parametrize("name", ["db-2.13.0-utc", "db-1.21.0-utc"])
def test_an_eval_set_is_one_of_adk(adk_db: Database, name: str) -> None:
    from google.adk.evaluation.eval_set import EvalSet

    source = adk_db(name)
    text, _ = exported(source, ExportFormat.EVALSET, name="incident-7")
    loaded = EvalSet.model_validate_json(text)
    assert loaded.eval_set_id == "incident-7"
    assert len(loaded.eval_cases) == len({key[:3] for key in events_of(source)})
    assert len({case.eval_id for case in loaded.eval_cases}) == len(loaded.eval_cases)


def test_an_eval_set_has_what_adk_makes_of_the_same_events(
    read_by_adk: tuple[Path, dict[tuple[str, str, str], Any]],
) -> None:
    from google.adk.evaluation.eval_set import EvalSet
    from google.adk.evaluation.evaluation_generator import EvaluationGenerator

    source, sessions = read_by_adk
    text, _ = exported(source, ExportFormat.EVALSET)
    cases = {case.eval_id: case for case in EvalSet.model_validate_json(text).eval_cases}
    for key, session in sessions.items():
        if not session.events:
            continue
        whole = [event for event in session.events if not event.partial]
        wanted = EvaluationGenerator.convert_events_to_eval_invocations(whole)
        got = cases[f"exhume/{'/'.join(key)}"].conversation or []
        assert [one.invocation_id for one in got] == [one.invocation_id for one in wanted]
        for ours, theirs in zip(got, wanted, strict=True):
            assert ours.user_content == theirs.user_content, key
            assert ours.final_response == theirs.final_response, key


@pytest.mark.parametrize("name", ["db-2.13.0-utc", "db-1.21.0-utc", "sqlitesvc-2.13.0-utc"])
def test_json_lines_are_read_back_whole(adk_db: Database, tmp_path: Path, name: str) -> None:
    source = adk_db(name)
    text, _ = exported(source, ExportFormat.JSONL)
    assert text.isascii()
    copy = tmp_path / "export.jsonl"
    copy.write_text(text)
    before, after = events_of(source), events_of(copy)
    assert before.keys() == after.keys()
    for key, record in before.items():
        assert after[key].data == record.data, key
        assert after[key].time == record.time, key
        assert after[key].refused == record.refused, key
    again, _ = exported(copy, ExportFormat.JSONL)
    assert again == text


def test_json_lines_of_one_session_hold_nobody_elses_state(adk_db: Database) -> None:
    source = adk_db("db-2.13.0-utc")
    app, user, session = session_keys(source)[0]
    text, _ = exported(source, ExportFormat.JSONL, ReadOptions(session=session, user=user, app=app), scoped=True)
    lines = [json.loads(line) for line in text.splitlines()]
    assert {"app_state", "user_state", "session", "event"} == {line["type"] for line in lines}
    assert {line["app_name"] for line in lines} == {app}
    assert {line["user_id"] for line in lines if "user_id" in line} == {user}
    with pytest.raises(NothingToLookAt, match="No session of"):
        exported(source, ExportFormat.JSONL, ReadOptions(session="none"), scoped=True)


def test_redaction_of_credentials(adk_db: Database) -> None:
    source = adk_db("db-2.13.0-utc")
    plain, _ = exported(source, ExportFormat.JSONL)
    hidden, _ = exported(source, ExportFormat.JSONL, redact=Redact.CREDENTIALS)
    for secret in ("demo-not-secret", "demo-key-not-real", "demo-token"):
        assert secret in plain
        assert secret not in hidden
    assert len(plain.splitlines()) == len(hidden.splitlines())


@pytest.mark.parametrize("redact", [Redact.CREDENTIALS, Redact.TEXTS])
def test_the_audit_finds_no_credential_after_redaction(incident_db: Database, tmp_path: Path, redact: Redact) -> None:
    source = incident_db("sqlite")
    copy = tmp_path / "redacted.jsonl"
    copy.write_text(exported(source, ExportFormat.JSONL, redact=redact)[0])
    before, after = ({one.rule for one in api.audit(which).findings} for which in (source, copy))
    assert "EXH406" in before
    assert "EXH406" not in after


def test_redaction_of_texts_keeps_the_findings(incident_db: Database, tmp_path: Path) -> None:
    source = incident_db("v1a")
    text, _ = exported(source, ExportFormat.JSONL, redact=Redact.TEXTS)
    assert "customer S2-21 writes again" not in text
    assert "SKU1026" not in text
    copy = tmp_path / "redacted.jsonl"
    copy.write_text(text)
    before, after = (api.audit(one) for one in (source, copy))
    approvals = [
        {(one.rule, one.session_id) for one in report.findings if one.rule.startswith("EXH1") and one.rule != "EXH114"}
        for report in (before, after)
    ]
    assert approvals[0]
    assert approvals[0] == approvals[1]


#: What needs columns, rows or texts that JSON Lines of events do not hold.
NOT_IN_LINES = {"EXH114", "EXH306", "EXH310", "EXH313", "EXH401", "EXH403", "EXH404", "EXH405"}


@pytest.mark.parametrize("name", ["v1a", "v1b", "v1x", "v0", "sqlite", "go", "v1camel", "v1lossy", "v0pickles"])
def test_an_export_is_audited_like_its_source(incident_db: Database, tmp_path: Path, name: str) -> None:
    source = incident_db(name)
    copy = tmp_path / "export.jsonl"
    copy.write_text(exported(source, ExportFormat.JSONL)[0])
    before, after = (
        {
            (one.rule, one.severity, one.app_name, one.user_id, one.session_id)
            for one in api.audit(which).findings
            if one.severity > Severity.INFO
        }
        for which in (source, copy)
    )
    assert after - before == set()
    assert {found[0] for found in before - after} <= NOT_IN_LINES


def test_events_without_a_session_are_exported(incident_db: Database) -> None:
    from google.adk.sessions.session import Session

    text, notes = exported(incident_db("v1a"), ExportFormat.SESSION)
    assert any("no row of their own" in note for note in notes)
    for item in json.loads(text):
        Session.model_validate_json(json.dumps(item))
