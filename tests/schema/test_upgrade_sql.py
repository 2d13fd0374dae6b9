"""The statements of `detect --sql` let the real google-adk read copies of databases that older releases wrote."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from exhume.errors import UsageError
from exhume.schema.ddl import create_statements
from exhume.schema.detect import detect
from exhume.schema.layouts import v0_form
from exhume.schema.upgrade_sql import upgrade_sql
from exhume.stores import open_store

NEWEST = "2.13.0"
INDEX = (
    "CREATE INDEX idx_events_app_user_session_ts_id ON events (app_name, user_id, session_id, timestamp DESC, id DESC)"
)


def statements_for(path: Path, release: str, dialect: str | None = None) -> list[str]:
    with closing(open_store(path)) as store:
        return upgrade_sql(store, detect(store), release, dialect)


def apply(path: Path, statements: list[str]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def sessions_read(path: Path) -> Counter[str]:
    """Number of sessions that the installed google-adk reads, and of those that it refuses, by kind of error."""
    from google.adk.sessions import DatabaseSessionService

    with closing(sqlite3.connect(path)) as connection:
        keys = connection.execute("SELECT app_name, user_id, id FROM sessions").fetchall()

    async def read() -> Counter[str]:
        service = DatabaseSessionService(f"sqlite+aiosqlite:///{path}")
        found: Counter[str] = Counter()
        for app, user, session in keys:
            try:
                found[type(await service.get_session(app_name=app, user_id=user, session_id=session)).__name__] += 1
            except Exception as error:  # noqa: BLE001 - the kind of error is what is counted
                found[type(error).__name__] += 1
        await service.close()
        return found

    return asyncio.run(read())


@pytest.mark.parametrize(
    ("database", "added", "readable", "refused"),
    # refused are the sessions with values that ADK's own restricted unpickler turns down, whatever the columns
    [("db-1.0.0-ny", 5, 205, 21), ("db-1.14.1-utc", 4, 217, 22), ("db-1.18.0-ny", 2, 235, 12)],
)
def test_old_files_become_readable(
    adk_db: Callable[[str], Path], database: str, added: int, readable: int, refused: int
) -> None:
    path = adk_db(database)
    statements = statements_for(path, NEWEST)
    assert [statement.startswith("ALTER TABLE events ADD COLUMN ") for statement in statements] == [True] * added + [
        False
    ]
    assert statements[-1] == INDEX
    assert set(sessions_read(path)) == {"OperationalError"}, "the test would prove nothing"
    path = adk_db(database)
    apply(path, statements)
    assert sessions_read(path) == {"Session": readable, "UnpicklingError": refused}
    assert statements_for(path, NEWEST) == []


def test_the_first_release_needs_twelve_columns(adk_db: Callable[[str], Path], tmp_path: Path) -> None:
    """Its tables are made from its declaration, and filled with rows of 1.0.0 in the columns that it had."""
    path, rows = tmp_path / "first.db", adk_db("db-1.0.0-ny")
    apply(path, create_statements(v0_form("0.1.0")))
    names = ", ".join(v0_form("0.1.0").table("events").column_names)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ATTACH ? AS old", (str(rows),))
        for table in ("sessions", "app_states", "user_states"):
            connection.execute(f"INSERT INTO {table} SELECT * FROM old.{table}")
        connection.execute(f"INSERT INTO events ({names}) SELECT {names} FROM old.events WHERE content IS NOT NULL")
    statements = statements_for(path, NEWEST)
    assert len([statement for statement in statements if "ADD COLUMN" in statement]) == 12
    apply(path, statements)
    found = sessions_read(path)
    assert found["Session"] > 200
    assert set(found) == {"Session", "UnpicklingError"}


@pytest.mark.parametrize(
    ("release", "columns", "index"),
    [
        ("1.13.0", 0, None),
        ("1.14.0", 1, None),
        ("1.18.0", 3, None),
        ("1.21.0", 5, None),
        ("1.27.5", 5, None),
        ("1.28.0", 5, "idx_events_app_user_session_ts ON"),
        ("2.9.2", 5, "idx_events_app_user_session_ts ON"),
        ("2.10.0", 5, "idx_events_app_user_session_ts_id ON"),
    ],
)
def test_each_release_gets_what_it_declares(
    adk_db: Callable[[str], Path], release: str, columns: int, index: str | None
) -> None:
    statements = statements_for(adk_db("db-1.0.0-ny"), release)
    assert sum("ADD COLUMN" in statement for statement in statements) == columns
    assert [statement for statement in statements if "CREATE INDEX" in statement] == [
        statement for statement in statements if index is not None and index in statement
    ]
    assert len(statements) == columns + (index is not None)


@pytest.mark.parametrize(("dialect", "json"), [("sqlite", "TEXT"), ("postgresql", "JSONB"), ("mysql", "LONGTEXT")])
def test_types_are_those_of_the_dialect(adk_db: Callable[[str], Path], dialect: str, json: str) -> None:
    assert statements_for(adk_db("db-1.18.0-ny"), "1.19.0", dialect) == [
        f"ALTER TABLE events ADD COLUMN input_transcription {json}",
        f"ALTER TABLE events ADD COLUMN output_transcription {json}",
    ]


def test_prefixed_tables_are_altered_under_their_own_name(adk_db: Callable[[str], Path]) -> None:
    path = adk_db("db-1.18.0-ny")
    apply(
        path,
        [f'ALTER TABLE {name} RENAME TO "my {name}"' for name in ("events", "sessions", "app_states", "user_states")],
    )
    with closing(open_store(path)) as store:
        statements = upgrade_sql(store, detect(store, table_prefix="my "), "1.19.0")
    assert statements[0] == 'ALTER TABLE "my events" ADD COLUMN input_transcription TEXT'
    apply(path, statements)


@pytest.mark.parametrize("database", ["db-2.13.0-utc", "sqlitesvc-2.13.0-utc"])
def test_only_v0_gains_columns(adk_db: Callable[[str], Path], database: str) -> None:
    with pytest.raises(UsageError, match="only a v0 database"):
        statements_for(adk_db(database), NEWEST)


def test_a_release_that_is_none_is_a_usage_error(adk_db: Callable[[str], Path]) -> None:
    with pytest.raises(UsageError, match="no ADK release"):
        statements_for(adk_db("db-1.0.0-ny"), "newest\x1b[2J")
