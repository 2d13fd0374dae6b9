"""What the real ADK would refuse in the JSON of an event is refused, or taken out, whatever layout it comes from."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exhume.migrate.interface import MigrateOptions
from exhume.migrate.run import migrate
from tests.conftest import FIXTURES, unpack

SOURCES = [("db-2.13.0-utc", "sqlite-service"), ("sqlitesvc-2.13.0-utc", "v1"), ("js", "v1")]
#: What is put into an event, and where the fault is.
FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"actions": {"nobody_knows": 1}}, "actions.nobody_knows"),
    ({"content": {"role": "user", "parts": [{"text": "x"}, {"surprise": 1}]}}, "content.parts[1].surprise"),
    ({"custom_metadata": [1]}, "custom_metadata"),
    ({"author": 5}, "author"),
    ({"usage_metadata": "many"}, "usage_metadata"),
    ({"actions": None}, "actions"),
    ({"actions": {"state_delta": None}}, "actions.state_delta"),
    ({"state": "x"}, "state"),
    ({"content": {"parts": [{"thought_signature": "QR"}]}}, "content.parts[0].thought_signature"),
    ({"finish_reason": "\ud800"}, "finish_reason"),
]


def open_service(target: str, where: Path) -> Any:
    if target == "v1":
        from google.adk.sessions.database_session_service import DatabaseSessionService

        return DatabaseSessionService(f"sqlite+aiosqlite:///{where}")
    from google.adk.sessions.sqlite_session_service import SqliteSessionService

    return SqliteSessionService(str(where))


async def load_all(target: str, where: Path) -> int:
    """Reads every session by ADK; gives the number of events."""
    connection = sqlite3.connect(where)
    keys = connection.execute("SELECT app_name, user_id, id FROM sessions").fetchall()
    connection.close()
    service, events = open_service(target, where), 0
    for app, user, session in keys:
        events += len((await service.get_session(app_name=app, user_id=user, session_id=session)).events)
    await service.close()
    return events


def spoil(path: Path, fault: dict[str, Any]) -> str:
    """Puts the fault into one event; gives its id."""
    connection = sqlite3.connect(path)
    where = "WHERE EXISTS (SELECT 1 FROM sessions s WHERE s.id = session_id)"
    key, text = connection.execute(f"SELECT id, event_data FROM events {where} LIMIT 1 OFFSET 3").fetchone()
    data = {**json.loads(text), **fault}
    connection.execute("UPDATE events SET event_data = ? WHERE id = ?", (json.dumps(data), key))
    connection.commit()
    connection.close()
    return str(key)


@pytest.mark.parametrize(("name", "target"), SOURCES)
@pytest.mark.parametrize("spoilt", FAULTS)
def test_what_adk_refuses_is_refused_or_taken_out(
    adk_db: Callable[[str], Path], tmp_path: Path, name: str, target: str, spoilt: tuple[dict[str, Any], str]
) -> None:
    other_sdk = FIXTURES / "other-sdks" / f"{name}.db.gz"
    source = unpack(other_sdk, tmp_path / "source.db") if other_sdk.exists() else adk_db(name)
    fault, place = spoilt
    healthy, out = tmp_path / "healthy.db", tmp_path / "out.db"
    migrate(source, healthy, MigrateOptions(to=target))
    key = spoil(source, fault)
    report = migrate(source, out, MigrateOptions(to=target))
    assert (report.status, report.refused_count, out.exists()) == ("refused", 1, False)
    (problem,) = report.refused[0].problems
    assert (report.refused[0].key.event_id, problem.rule, problem.column) == (key, "EXH307", "event_data")
    assert problem.reason.startswith(f"{place}: ")
    dry = migrate(source, out, MigrateOptions(to=target, dry_run=True))
    assert (dry.status, dry.refused_count) == ("refused", 1)

    report = migrate(source, out, MigrateOptions(to=target, quarantine=tmp_path / "aside.db"))
    assert (report.status, report.refused_count, report.tables["events"].quarantined) == ("incomplete", 1, 1)
    assert ("refused-part-dropped", 1) in [(loss.kind, loss.count) for loss in report.losses]
    events = []
    for path in (healthy, out):
        connection = sqlite3.connect(path)
        events.append(connection.execute("SELECT * FROM events WHERE id <> ? ORDER BY rowid", (key,)).fetchall())
        connection.close()
    assert events[0] == events[1]  # the others have kept their bytes
    assert asyncio.run(load_all(target, out)) > 0


def test_an_invocation_id_that_is_no_utf8_stays_readable(adk_db: Callable[[str], Path], tmp_path: Path) -> None:
    source, out = adk_db("db-2.13.0-utc"), tmp_path / "out.db"
    connection = sqlite3.connect(source)
    connection.execute("UPDATE events SET invocation_id = CAST(x'69ff' AS TEXT) WHERE rowid = 7")
    connection.commit()
    connection.close()
    report = migrate(source, out, MigrateOptions(to="sqlite-service"))
    assert report.status == "complete"
    assert asyncio.run(load_all("sqlite-service", out)) > 0
    connection = sqlite3.connect(out)
    found = connection.execute(
        "SELECT event_data ->> '$.invocation_id' FROM events WHERE invocation_id = 'i\\xff'"
    ).fetchall()
    assert found == [("i\\xff",)]
