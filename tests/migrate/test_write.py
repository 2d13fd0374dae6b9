from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from exhume.errors import Incomplete, Interrupted, Refused
from exhume.migrate.signals import Signals
from exhume.migrate.targets import target
from exhume.migrate.write import Rejected, SqliteWriter

SESSION = ("app", "user", "s1", "{}", "2026-01-01 00:00:00", "2026-01-02 00:00:00.000001")


def row(ident: str, text: str = "{}", session: str = "s1") -> tuple[str, ...]:
    return (ident, "app", "user", session, "i1", "2026-01-01 00:00:00.000000", text)


@pytest.fixture
def writer(tmp_path: Path) -> SqliteWriter:
    return SqliteWriter(tmp_path / "out.db", target("v1"), Signals())


def contents(path: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    found = connection.execute(query).fetchall()
    connection.close()
    return found


def test_rows_are_read_back_and_the_mark_comes_last(writer: SqliteWriter) -> None:
    assert writer.insert("sessions", [SESSION]) == []
    assert writer.insert("events", [row("e1"), row("e2", '{"ü": "\\u0000"}')]) == []
    assert contents(writer.path, "SELECT count(*) FROM sqlite_master") == [(0,)], "nothing is visible before the end"
    writer.finish()
    writer.close()
    assert contents(writer.path, "SELECT id FROM events ORDER BY rowid") == [("e1",), ("e2",)]
    assert contents(writer.path, "SELECT * FROM adk_internal_metadata") == [("schema_version", "1")]
    assert writer.written == {"sessions": 1, "events": 2, "app_states": 0, "user_states": 0}


def test_rows_that_do_not_fit_are_named_and_the_rest_is_in(writer: SqliteWriter) -> None:
    rows = [row("e1"), row("e1"), row("e2"), row("\udcff"), row("e3"), row("e2")]
    assert writer.insert("events", rows) == [
        Rejected(1, "another row has the same key once keys are text"),
        Rejected(3, "the row holds text that is not valid UTF-8"),
        Rejected(5, "another row has the same key once keys are text"),
    ]
    assert writer.insert("sessions", [(*SESSION[:3], None, *SESSION[4:])]) == [
        Rejected(0, "a column that must have a value has none")
    ]
    writer.finish()
    writer.close()
    assert contents(writer.path, "SELECT id FROM events ORDER BY rowid") == [("e1",), ("e2",), ("e3",)]


def test_missing_state_rows_are_made(writer: SqliteWriter) -> None:
    writer.insert("app_states", [("has", '{"a": 1}', "2026-01-01 00:00:00")])
    writer.insert("sessions", [SESSION, (*SESSION[:2], "s2", *SESSION[3:]), ("has", *SESSION[1:])])
    assert writer.fill_state_rows() == {"app_states": 1, "user_states": 2}
    writer.finish()
    writer.close()
    assert contents(writer.path, "SELECT * FROM app_states ORDER BY rowid") == [
        ("has", '{"a": 1}', "2026-01-01 00:00:00"),
        ("app", "{}", "2026-01-02 00:00:00.000001"),
    ]
    assert contents(writer.path, "SELECT app_name, user_id FROM user_states") == [("app", "user"), ("has", "user")]


def test_orphans_are_counted(writer: SqliteWriter) -> None:
    writer.insert("sessions", [SESSION])
    writer.insert("events", [row("e1"), row("e2", session="gone"), row("e3", session="S1")])
    assert writer.orphans() == 2
    writer.close()


def test_a_row_that_does_not_read_back_stops_everything(writer: SqliteWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.insert("events", [row("e1")])

    def spoil(table: str) -> tuple[int, bytes]:
        connection = sqlite3.connect(writer.path)
        connection.execute("UPDATE events SET event_data = '{ }'")
        connection.commit()
        connection.close()
        return honest(table)

    honest: Callable[[str], tuple[int, bytes]] = writer._read_back
    monkeypatch.setattr(writer, "_read_back", spoil)
    with pytest.raises(Incomplete, match="table events does not read back"):
        writer.finish()
    writer.close()


def test_a_full_disk_is_told(writer: SqliteWriter) -> None:
    writer._connection.execute("PRAGMA max_page_count = 20")
    with pytest.raises(Incomplete, match="disk is full"):
        writer.insert("events", [row(f"e{number}", "x" * 10_000) for number in range(100)])
    writer.close()


def test_a_signal_ends_the_reading_back(writer: SqliteWriter) -> None:
    signals = writer._signals
    writer.insert("events", [row(f"e{number}", "x" * 100) for number in range(50_000)])
    signals.received = "SIGTERM"
    with pytest.raises(Interrupted):
        writer.finish()
    writer.close()


def test_only_declared_layouts_are_written() -> None:
    with pytest.raises(Refused, match="does not write the layout go"):
        target("go")
