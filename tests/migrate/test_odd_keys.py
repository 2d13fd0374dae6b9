"""Keys that are no text: SQLite orders them apart from text, and two of them may be one key once they are text."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from exhume.events.interface import ReadOptions
from exhume.migrate.interface import MigrateOptions, VerifyOptions
from exhume.migrate.run import migrate
from exhume.migrate.verify import verify

TIME = "2026-01-0{} 10:00:00.000000"
TABLES = (
    "CREATE TABLE adk_internal_metadata (key TEXT PRIMARY KEY, value TEXT)",
    "CREATE TABLE sessions (app_name, user_id, id, state, create_time, update_time)",
    "CREATE TABLE events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)",
    "CREATE TABLE app_states (app_name, state, update_time)",
    "CREATE TABLE user_states (app_name, user_id, state, update_time)",
)
#: Their texts are in another order than SQLite gives the values.
KEYS: tuple[Any, ...] = ("a", b"b", "c", 7, 1e20, 0.1 + 0.2, b"0", b"caf\xc3\xa9", "cafz", "10", 9, None)


def store(path: Path, keys: tuple[Any, ...], *, marked: bool = True, encoding: str = "UTF-8") -> Path:
    """A database of v1 without declared types, whose apps, users, sessions and events have those keys."""
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA encoding = '{encoding}'")
    for statement in TABLES:
        connection.execute(statement)
    if marked:
        connection.execute("INSERT INTO adk_internal_metadata VALUES ('schema_version', '1')")
    for key in keys:
        first, last = TIME.format(1), TIME.format(2)
        connection.execute("INSERT INTO sessions VALUES (?, ?, ?, '{}', ?, ?)", (key, key, key, first, last))
        connection.execute("INSERT INTO app_states VALUES (?, '{}', ?)", (key, last))
        connection.execute("INSERT INTO user_states VALUES (?, ?, '{}', ?)", (key, key, last))
        for number, time in enumerate((first, last)):
            ident = key if number and key is not None else f"e{number}"
            data = f'{{"author": "user", "actions": {{"state_delta": {{"n": {number}}}}}}}'
            connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, 'i', ?, ?)", (ident, key, key, key, time, data))
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
@pytest.mark.parametrize("target", ["v1", "sqlite-service"])
def test_the_same_rows_are_found_on_both_sides(tmp_path: Path, target: str, encoding: str) -> None:
    source = store(tmp_path / "source.db", KEYS, marked=target != "v1", encoding=encoding)
    report = migrate(source, tmp_path / "out.db", MigrateOptions(to=target))
    assert report.status == "complete"
    found = verify(source, tmp_path / "out.db")
    assert (found.differences, found.equal) == ([], True)
    assert {name: table.equal for name, table in found.tables.items()} == {
        "sessions": 12, "events": 24, "app_states": 12, "user_states": 12,
    }  # fmt: skip
    connection = sqlite3.connect(tmp_path / "out.db")
    connection.execute("DELETE FROM events WHERE id = 'e1' AND session_id = 'b'")
    connection.execute("DELETE FROM events WHERE id = 'b'")
    connection.commit()
    connection.close()
    found = verify(source, tmp_path / "out.db")
    assert [(one.key.event_id, one.source, one.destination) for one in found.differences] == [("b", "(the row)", None)]


@pytest.mark.parametrize("key", ["b", "7", "1e+20", ""])
def test_a_filter_finds_keys_by_their_text(tmp_path: Path, key: str) -> None:
    source = store(tmp_path / "source.db", KEYS)
    found = verify(source, source, VerifyOptions(read=ReadOptions(session=key)))
    assert (found.tables["sessions"].equal, found.tables["events"].equal) == (1, 2)


@pytest.mark.parametrize(
    "keys", [("a", b"a"), ("7", "8", 7), ("x", b"y", "z", "y", "zz"), (None, ""), (1e20, "1e+20", "2"), ("a", "a")]
)
@pytest.mark.parametrize("aside", [False, True])
def test_a_dry_run_finds_keys_that_become_equal(tmp_path: Path, keys: tuple[Any, ...], aside: bool) -> None:
    source = store(tmp_path / "source.db", keys)
    quarantine = tmp_path / "aside.db" if aside else None
    said, done = (
        migrate(
            source,
            tmp_path / "out.db",
            MigrateOptions(to="sqlite-service", quarantine=quarantine, dry_run=dry),
        )
        for dry in (True, False)
    )
    assert said.status == done.status == ("incomplete" if aside else "refused")
    assert said.refused_count == done.refused_count
    assert [(one.table, one.key, [p.reason for p in one.problems]) for one in said.refused] == [
        (one.table, one.key, [p.reason for p in one.problems]) for one in done.refused
    ]
    if aside:
        assert {one.table for one in done.refused} == {"sessions", "events", "app_states", "user_states"}


def test_of_a_long_session_the_second_of_two_equal_events_is_found(tmp_path: Path) -> None:
    source = store(tmp_path / "source.db", ("a", "b"))
    connection = sqlite3.connect(source)
    data = '{"author": "user"}'
    rows = [(f"n{number}", "a", "a", "a", "i", TIME.format(3), data) for number in range(250)]
    connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", [*rows, (b"n0", *rows[0][1:])])
    connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", ("n0", "b", "b", "b", *rows[0][4:]))
    connection.commit()
    connection.close()
    report = migrate(source, tmp_path / "out.db", MigrateOptions(to="sqlite-service", dry_run=True))
    assert [(one.table, one.key) for one in report.refused] == [("events", ("a", "a", "a", "n0"))]
