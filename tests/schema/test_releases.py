"""From columns and indexes to ADK releases."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from exhume.schema.ddl import create_index, create_statements
from exhume.schema.detection import Layout, ReleaseRange
from exhume.schema.layouts import TIME_INDEX, V0_FORMS, LayoutSpec, v0_form
from exhume.schema.releases import release_range, v0_form_of
from exhume.stores.interface import Table
from exhume.stores.sqlite import SqliteStore


def events_of(path: Path, spec: LayoutSpec, *statements: str) -> Table:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in (*create_statements(spec), *statements):
            connection.execute(statement)
    with SqliteStore(path) as store:
        return store.tables()["events"]


@pytest.mark.parametrize(
    ("release", "first", "last"),
    [
        ("0.1.0", "0.1.0", "0.1.0"),
        ("0.2.0", "0.2.0", "0.2.0"),
        ("0.3.0", "0.3.0", "0.3.0"),
        ("0.5.0", "0.4.0", "1.13.0"),
        ("1.15.1", "1.14.0", "1.16.0"),
        ("1.17.0", "1.17.0", "1.18.0"),
        ("1.20.0", "1.19.0", "1.27.5"),
        ("2.13.0", "1.19.0", None),
    ],
)
def test_every_form_of_v0_is_known_again(tmp_path: Path, release: str, first: str, last: str | None) -> None:
    events = events_of(tmp_path / "x.db", v0_form(release))
    assert release_range(Layout.V0, events)[0] == ReleaseRange(first, last)


def test_columns_that_were_added_by_hand_do_not_hide_the_age(tmp_path: Path) -> None:
    added = ["custom_metadata", "usage_metadata", "citation_metadata", "input_transcription", "output_transcription"]
    events = events_of(
        tmp_path / "x.db",
        v0_form("1.0.0"),
        *(f"ALTER TABLE events ADD COLUMN {name} TEXT" for name in added),
        create_index(TIME_INDEX),
    )
    found, evidence = release_range(Layout.V0, events)
    assert found == ReleaseRange("0.4.0", "2.9.2")
    assert any("added later to a table of ADK 0.4.0 to 1.13.0: custom_metadata" in sentence for sentence in evidence)
    assert v0_form_of(events) is V0_FORMS[-1]


def test_an_index_on_an_old_table_is_told_but_adds_no_writer(tmp_path: Path) -> None:
    """ADK 2.13.0 adds its index to a file of 1.0.0 and then cannot write an event into it."""
    events = events_of(tmp_path / "x.db", v0_form("1.18.0"), *create_statements(V0_FORMS[-1])[-1:])
    found, evidence = release_range(Layout.V0, events)
    assert found == ReleaseRange("1.17.0", "1.18.0")
    assert any("2.10.0 or newer opened it" in sentence for sentence in evidence)


def test_tables_with_own_columns_and_types_still_get_a_range(tmp_path: Path) -> None:
    events = events_of(tmp_path / "x.db", v0_form("1.0.0"), "ALTER TABLE events ADD COLUMN mine TEXT")
    assert release_range(Layout.V0, events)[0] == ReleaseRange("0.4.0", "1.13.0")


def test_other_layouts_have_no_adk_releases(tmp_path: Path) -> None:
    assert release_range(Layout.GO, events_of(tmp_path / "x.db", v0_form("1.0.0"))) == (ReleaseRange(), [])
