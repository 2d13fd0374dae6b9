"""The real session services of google-adk read and list every session of what `migrate` makes, and continue it."""

from __future__ import annotations

import asyncio
import math
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exhume.events.interface import ReadOptions
from exhume.migrate.interface import MigrateOptions
from exhume.migrate.run import migrate
from exhume.migrate.verify import verify
from tests.conftest import FIXTURES, unpack

ALL = ReadOptions(allow_globals=("shop_models.*", "collections.*", "builtins.*", "make_corpus.*"))
SOURCES = [
    "db-1.0.0-ny",
    "db-2.13.0-utc-over-1.21.0",
    "sqlitesvc-1.21.0-utc",
    "go",
    "js",
]


def open_service(target: str, where: str) -> Any:
    if target == "v1":
        from google.adk.sessions.database_session_service import DatabaseSessionService

        return DatabaseSessionService(where)
    from google.adk.sessions.sqlite_session_service import SqliteSessionService

    return SqliteSessionService(where)


async def continue_all(service: Any, keys: list[tuple[str, str, str]]) -> dict[tuple[str, str, str], list[str]]:
    """Reads and lists every session, and appends to every third; gives the ids of all events as first read."""
    from google.adk.events.event import Event
    from google.adk.events.event_actions import EventActions

    found: dict[tuple[str, str, str], list[str]] = {}
    for number, (app, user, ident) in enumerate(keys):
        where = {"app_name": app, "user_id": user, "session_id": ident}
        session = await service.get_session(**where)
        found[app, user, ident] = [event.id for event in session.events]
        if number % 3:
            continue
        delta = {"seen": 1, "user:seen": 1, "app:seen": 1}
        await service.append_event(session, Event(author="user", actions=EventActions(state_delta=delta)))
        again = await service.get_session(**where)
        assert len(again.events) == len(found[app, user, ident]) + 1
        assert again.state["seen"] == again.state["user:seen"] == again.state["app:seen"] == 1
    for app in {app for app, _, _ in keys}:
        listed = await service.list_sessions(app_name=app)
        assert {(one.user_id, one.id) for one in listed.sessions} == {(u, s) for a, u, s in keys if a == app}
    await service.close()
    return found


@pytest.mark.parametrize("target", ["v1", "sqlite-service"])
@pytest.mark.parametrize("name", SOURCES)
def test_every_session_goes_on(adk_db: Callable[[str], Path], tmp_path: Path, name: str, target: str) -> None:
    result = tmp_path / "result.db"
    other_sdk = FIXTURES / "other-sdks" / f"{name}.db.gz"
    source = unpack(other_sdk, tmp_path / "source.db") if other_sdk.exists() else adk_db(name)
    report = migrate(source, result, MigrateOptions(to=target, read=ALL))
    if report.status == "nothing to do":
        assert name.startswith("sqlitesvc")
        assert target == "sqlite-service"
        return
    assert (report.status, report.refused_count, report.verified) == ("complete", 0, True)
    copy = tmp_path / "copy.db"
    shutil.copy(result, copy)
    connection = sqlite3.connect(copy)
    keys = connection.execute("SELECT app_name, user_id, id FROM sessions").fetchall()
    stored = connection.execute("SELECT app_name, user_id, session_id, id FROM events").fetchall()
    connection.close()
    where = f"sqlite+aiosqlite:///{copy}" if target == "v1" else str(copy)
    found = asyncio.run(continue_all(open_service(target, where), keys))
    for key in keys:
        assert sorted(found[key]) == sorted(row[3] for row in stored if tuple(row[:3]) == tuple(key))


def test_a_service_file_is_taken_by_url_too(adk_db: Callable[[str], Path], tmp_path: Path) -> None:
    migrate(adk_db("db-2.13.0-utc"), f"sqlite:///{tmp_path}/by url.db", MigrateOptions(to="sqlite-service"))
    (made,) = tmp_path.glob("by*.db")
    connection = sqlite3.connect(made)
    connection.execute("DELETE FROM sessions WHERE rowid > 20")
    keys = connection.execute("SELECT app_name, user_id, id FROM sessions").fetchall()
    connection.commit()
    connection.close()
    assert len(asyncio.run(continue_all(open_service("sqlite-service", f"sqlite:///{made}"), keys))) == 20


def test_a_state_that_no_release_could_load_any_more_is_loaded_again(
    adk_db: Callable[[str], Path], tmp_path: Path
) -> None:
    # what SqliteSessionService 2.9.2 makes of an integer of 400 digits; the same word in a text stays
    source = adk_db("sqlitesvc-2.13.0-utc")
    connection = sqlite3.connect(source)
    state = '{"huge":Inf,"text":"\\"Inf\\" -Inf","list":[-Inf,1]}'
    connection.execute("INSERT INTO app_states VALUES ('ruined', ?, 1796082965.5)", (state,))
    connection.execute("INSERT INTO sessions VALUES ('ruined', 'u', 's', '{}', 1796082965.5, 1796082965.5)")
    connection.commit()
    connection.close()
    report = migrate(source, tmp_path / "result.db", MigrateOptions())
    assert (report.status, report.verified) == ("complete", True)
    assert [(loss.kind, loss.count) for loss in report.losses if "inf" in loss.kind] == [("inf-to-infinity", 1)]
    assert any("Infinity" in note for note in report.notes)
    assert verify(source, tmp_path / "result.db").equal

    async def load() -> dict[str, Any]:
        service = open_service("v1", f"sqlite+aiosqlite:///{tmp_path / 'result.db'}")
        session = await service.get_session(app_name="ruined", user_id="u", session_id="s")
        await service.close()
        loaded: dict[str, Any] = session.state
        return loaded

    assert asyncio.run(load()) == {
        "app:huge": math.inf, "app:text": '"Inf" -Inf', "app:list": [-math.inf, 1],
    }  # fmt: skip
