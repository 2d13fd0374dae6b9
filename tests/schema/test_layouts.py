"""The declared tables are those of real files and of the installed google-adk, in every spelling that exhume has."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import MetaData
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from exhume.schema.ddl import create_statements, sqlite_type
from exhume.schema.layouts import (
    DECLARED,
    SQLITE_SERVICE,
    TIME_INDEX,
    V0_FORMS,
    V1,
    LayoutSpec,
    release_number,
    v0_form,
)
from exhume.schema.metadata import metadata_of

DIALECTS: dict[str, Any] = {"sqlite": sqlite.dialect, "postgresql": postgresql.dialect, "mysql": mysql.dialect}


def real_ddl(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]


@pytest.mark.parametrize(
    ("database", "spec"),
    [
        ("db-1.0.0-ny", v0_form("1.0.0")),
        ("db-1.14.1-utc", v0_form("1.14.1")),
        ("db-1.18.0-ny", v0_form("1.18.0")),
        ("db-1.21.0-utc", v0_form("1.21.0")),
        ("db-2.13.0-utc", V1),
        ("sqlitesvc-1.21.0-utc", SQLITE_SERVICE),
        ("sqlitesvc-2.13.0-utc", SQLITE_SERVICE),
    ],
)
def test_statements_are_letter_by_letter_those_of_real_files(
    adk_db: Callable[[str], Path], database: str, spec: LayoutSpec
) -> None:
    assert create_statements(spec) == real_ddl(adk_db(database))


@pytest.mark.parametrize(("version", "spec"), [("v0", V0_FORMS[-1]), ("v1", V1)])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_metadata_is_what_the_installed_adk_declares(version: str, spec: LayoutSpec, dialect: str) -> None:
    import importlib

    theirs = importlib.import_module(f"google.adk.sessions.schemas.{version}").Base.metadata
    assert rendered(metadata_of(spec), dialect) == rendered(theirs, dialect)


def rendered(metadata: MetaData, dialect: str) -> dict[str, str]:
    """Statements by name, as that dialect spells them."""
    spoken = DIALECTS[dialect]()
    found = {}
    for table in metadata.tables.values():
        found[table.name] = str(CreateTable(table).compile(dialect=spoken)).strip()
        for index in table.indexes:
            found[str(index.name)] = str(CreateIndex(index).compile(dialect=spoken)).strip()
    return found


@pytest.mark.parametrize("spec", [*V0_FORMS, V1], ids=lambda spec: f"{spec.layout}-{spec.releases[0]}")
def test_metadata_and_statements_agree(spec: LayoutSpec) -> None:
    ours = create_statements(spec)
    theirs = rendered(metadata_of(spec), "sqlite")
    assert sorted(ours) == sorted(theirs.values())


def test_metadata_and_statements_agree_on_the_layout_that_adk_writes_by_hand(tmp_path: Path) -> None:
    """Their text differs; SQLite's own description of the tables must not, but for NOT NULL of a single key."""
    described = []
    for number, statements in enumerate(
        (create_statements(SQLITE_SERVICE), rendered(metadata_of(SQLITE_SERVICE), "sqlite").values())
    ):
        with closing(sqlite3.connect(tmp_path / f"{number}.db")) as connection:
            for statement in statements:
                connection.execute(statement)
            described.append(
                {
                    table.name: (
                        [
                            (row[1], row[2], row[3] or row[5])
                            for row in connection.execute(f"PRAGMA table_info({table.name})")
                        ],
                        [row[2:] for row in connection.execute(f"PRAGMA foreign_key_list({table.name})")],
                    )
                    for table in SQLITE_SERVICE.tables
                }
            )
    assert described[0].keys() == described[1].keys()
    for name, (columns, keys) in described[0].items():
        assert [column[:2] for column in columns] == [column[:2] for column in described[1][name][0]]
        assert keys == described[1][name][1]
        assert all(column[2] for column in columns)


@pytest.mark.parametrize("layout", DECLARED)
def test_prefixes_go_before_every_table_and_index(layout: Any) -> None:
    spec = DECLARED[layout].prefixed("Agent-x ")
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in create_statements(spec):
            connection.execute(statement)
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")]
        referred = {row[2] for row in connection.execute('PRAGMA foreign_key_list("Agent-x events")')}
    assert all(name.startswith("Agent-x ") for name in names)
    assert referred == {"Agent-x sessions"}


@pytest.mark.parametrize(
    ("release", "columns"),
    [
        ("0.1.0", 10),
        ("0.2.0", 17),
        ("0.5.0", 17),
        ("1.0.0", 17),
        ("1.13.0", 17),
        ("1.14.0", 18),
        ("1.16.0", 18),
        ("1.17.0", 20),
        ("1.18.0", 20),
        ("1.19.0", 22),
        ("1.21.0", 22),
        ("1.22.0", 22),
        ("2.13.0", 22),
        ("3.0", 22),
    ],
)
def test_each_release_has_its_form_of_v0(release: str, columns: int) -> None:
    assert len(v0_form(release).table("events").columns) == columns


@pytest.mark.parametrize("text", ["2", "v1.2.3", " 1.14.1 ", "2.0.0"])
def test_release_numbers_compare_as_numbers(text: str) -> None:
    assert release_number("0.10.0") < release_number(text) < release_number("2.0.1")


@pytest.mark.parametrize("text", ["", "latest", "1.2.3.4", "1.-2", "1..2", "٣.0", "9999999.0"])
def test_what_is_no_release_number_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="release number"):
        release_number(text)


def test_types_and_names_that_are_not_there() -> None:
    assert sqlite_type(V1.table("events").columns[0]) == "VARCHAR(128)"
    assert TIME_INDEX.columns[-1] == ("timestamp", True)
    with pytest.raises(KeyError):
        V0_FORMS[0].table("metadata")
