"""Differences to the declared tables: none on what ADK itself writes now, one sentence each on everything else."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from exhume.errors import UsageError
from exhume.schema.ddl import create_statements
from exhume.schema.detect import detect
from exhume.schema.detection import Layout
from exhume.schema.drift import find_drift
from exhume.schema.layouts import DECLARED
from exhume.stores import Store, open_store


def remade(table: str, columns: str) -> str:
    """The statements, as one script, that make a table anew with other columns."""
    return f"DROP TABLE {table}; CREATE TABLE {table} ({columns}, update_time DATETIME NOT NULL)"


def drift_of(path: Path, *statements: str, prefix: str = "") -> list[str]:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.executescript(statement)
    with closing(open_store(path)) as store:
        detection = detect(store, table_prefix=prefix, drift=True)
    assert detection.drift_checked
    return list(detection.drift)


@pytest.mark.parametrize("database", ["db-2.13.0-utc", "sqlitesvc-1.21.0-utc", "sqlitesvc-2.13.0-utc"])
def test_current_files_have_none(adk_db: Callable[[str], Path], database: str) -> None:
    assert drift_of(adk_db(database)) == []


@pytest.mark.parametrize("layout", DECLARED)
@pytest.mark.parametrize("prefix", ["", "p_"])
def test_what_exhume_declares_has_none(tmp_path: Path, layout: Layout, prefix: str) -> None:
    assert drift_of(tmp_path / "new.db", *create_statements(DECLARED[layout].prefixed(prefix)), prefix=prefix) == []


def test_an_old_v0_file_lacks_what_later_releases_added(adk_db: Callable[[str], Path]) -> None:
    assert drift_of(adk_db("db-1.18.0-ny")) == [
        "Column events.input_transcription is missing.",
        "Column events.output_transcription is missing.",
        "Column events.error_message is VARCHAR(1024), declared is TEXT.",
        "Index idx_events_app_user_session_ts_id of events is missing.",
    ]


def test_an_older_index_is_seen(adk_db: Callable[[str], Path]) -> None:
    assert drift_of(adk_db("db-2.0.0-utc")) == [
        "Index idx_events_app_user_session_ts of events is not declared.",
        "Index idx_events_app_user_session_ts_id of events is missing.",
    ]


@pytest.mark.parametrize(
    ("statements", "sentence"),
    [
        (["ALTER TABLE sessions ADD COLUMN colour TEXT"], "Column sessions.colour is not declared."),
        (["ALTER TABLE sessions RENAME COLUMN update_time TO updated"], "Column sessions.update_time is missing."),
        (["DROP TABLE app_states"], "Table app_states is missing."),
        (["CREATE TABLE audit_log (note)"], "Table audit_log is not one of ADK's."),
        (["CREATE INDEX mine ON sessions (state)"], "Index mine of sessions is not declared."),
        (
            [remade("app_states", "app_name VARCHAR(99) PRIMARY KEY, state TEXT")],
            "Column app_states.state may be NULL, declared is the contrary.",
        ),
        (
            [remade("app_states", "app_name VARCHAR(128) NOT NULL, state TEXT NOT NULL")],
            "The primary key of app_states is (nothing), not (app_name).",
        ),
        (
            [remade("app_states", "app_name VARCHAR(128) NOT NULL PRIMARY KEY, state TEXT NOT NULL DEFAULT '{}'")],
            "Column app_states.state has a default value, which is not declared.",
        ),
        (['CREATE TABLE "x\x1b[2J\ny" (a)'], "Table x\\x1b[2J\\x0ay is not one of ADK's."),
    ],
)
def test_every_kind_of_difference_is_told(adk_db: Callable[[str], Path], statements: list[str], sentence: str) -> None:
    assert sentence in drift_of(adk_db("db-2.13.0-utc"), *statements)


def test_odd_types_and_indexes_are_differences_and_no_trouble(adk_db: Callable[[str], Path]) -> None:
    found = drift_of(
        adk_db("db-2.13.0-utc"),
        remade("app_states", "app_name VARCHAR(128) NOT NULL PRIMARY KEY, state 'no type [red]'"),
        "CREATE INDEX odd ON sessions (length(state), lower(id) DESC) WHERE state <> ''",
    )
    assert any("app_states.state" in sentence for sentence in found)


def test_names_in_upper_case_are_the_same_tables(adk_db: Callable[[str], Path]) -> None:
    path = adk_db("db-2.13.0-utc")
    assert drift_of(path, "ALTER TABLE app_states RENAME TO x", "ALTER TABLE x RENAME TO APP_STATES") == []


def test_the_file_is_not_changed(adk_db: Callable[[str], Path]) -> None:
    path = adk_db("db-1.18.0-ny")
    before = path.read_bytes()
    drift_of(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_store_without_connections_cannot_be_compared(adk_db: Callable[[str], Path]) -> None:
    class Rows:
        def __init__(self, store: Store) -> None:
            self.info, self.tables = store.info, store.tables

    with (
        closing(open_store(adk_db("db-2.13.0-utc"))) as store,
        pytest.raises(UsageError, match="cannot be compared"),
    ):
        find_drift(Rows(store), detect(store))  # type: ignore[arg-type]
