from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from exhume import api
from exhume.errors import NothingToLookAt, UsageError
from exhume.events.interface import ReadOptions
from exhume.events.json_text import MAX_DEPTH
from exhume.events.model import EventKey
from exhume.migrate.interface import MigrateOptions, VerifyOptions, VerifyReport
from exhume.migrate.run import migrate
from exhume.migrate.verify import LISTED, verify
from tests.conftest import FIXTURES, unpack

SERVICE = "sqlitesvc-2.13.0-utc"
V1 = "db-2.13.0-utc"


def change(path: Path, *statements: str) -> Path:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def fields(report: VerifyReport) -> set[tuple[str, str]]:
    return {(one.table, one.field) for one in report.differences}


@pytest.fixture
def pair(adk_db: Callable[[str], Path], tmp_path: Path) -> tuple[Path, Path]:
    """A file of SqliteSessionService and what `migrate` made of it."""
    source, destination = adk_db(SERVICE), tmp_path / "v1.db"
    migrate(source, destination)
    return source, destination


def test_a_migration_is_equal_to_its_source(pair: tuple[Path, Path]) -> None:
    report = verify(*pair)
    assert report.equal
    assert (report.difference_count, report.differences) == (0, [])
    assert (report.source_layout, report.destination_layout) == ("sqlite-service", "v1")
    events = report.tables["events"]
    assert (events.source, events.destination, events.equal) == (525, 525, 525)
    assert report.tables["app_states"].created == 16
    assert any("empty state rows" in note for note in report.notes)
    assert list(pair[1].parent.glob("v1.db?*")) == []


SEVENTH = "WHERE rowid = 7"


@pytest.mark.parametrize(
    ("statement", "table", "field"),
    [
        (
            f"UPDATE events SET event_data = json_set(event_data, '$.actions.state_delta.x', 1) {SEVENTH}",
            "events",
            "actions.state_delta.x",
        ),
        (f"UPDATE events SET event_data = json_remove(event_data, '$.content') {SEVENTH}", "events", "content"),
        (f"UPDATE events SET event_data = json_set(event_data, '$.timestamp', 5.5) {SEVENTH}", "events", "timestamp"),
        (f"UPDATE events SET invocation_id = 'other' {SEVENTH}", "events", "invocation_id"),
        (f"UPDATE events SET timestamp = '2020-01-01 00:00:00.000000' {SEVENTH}", "events", "timestamp (the column)"),
        (f"UPDATE events SET event_data = json_set(event_data, '$.id', 'x') {SEVENTH}", "events", "event_data.id"),
        (
            f"UPDATE events SET event_data = json_set(event_data, '$.invocation_id', 'x') {SEVENTH}",
            "events",
            "event_data.invocation_id",
        ),
        (f"UPDATE events SET event_data = '{{oops' {SEVENTH}", "events", "event_data"),
        (f"DELETE FROM events {SEVENTH}", "events", ""),
        (f"UPDATE events SET id = 'other' {SEVENTH}", "events", ""),
        (f"UPDATE sessions SET state = '{{\"x\": 1}}' {SEVENTH}", "sessions", "state.x"),
        (f"UPDATE sessions SET update_time = '2026-01-01 00:00:00' {SEVENTH}", "sessions", "update_time"),
        (f"DELETE FROM sessions {SEVENTH}", "sessions", ""),
        ("UPDATE app_states SET state = '{\"x\": 1}' WHERE state = '{}'", "app_states", ""),
    ],
)
def test_any_change_is_found(pair: tuple[Path, Path], statement: str, table: str, field: str) -> None:
    report = verify(pair[0], change(pair[1], statement))
    assert not report.equal
    assert (table, field) in fields(report)
    assert report.difference_count == len(report.differences) or report.difference_count > LISTED
    backwards = verify(pair[1], pair[0])
    assert not backwards.equal


def test_the_first_hundred_are_listed_and_all_are_counted(pair: tuple[Path, Path]) -> None:
    report = verify(pair[0], change(pair[1], "DELETE FROM events"))
    assert len(report.differences) == LISTED
    assert report.difference_count == 525
    assert {(one.source, one.destination) for one in report.differences} == {("(the row)", None)}


def test_both_values_are_shown(pair: tuple[Path, Path]) -> None:
    report = verify(
        pair[0],
        change(
            pair[1],
            "UPDATE sessions SET state = json_set(state, '$.float', 0.3) WHERE id = 'c-state' AND user_id = 'u1'",
        ),
    )
    (one,) = report.differences
    assert (one.key.session_id, one.field, one.source, one.destination) == (
        "c-state", "state.float", "0.30000000000000004", "0.3",
    )  # fmt: skip


def test_there_and_back_gives_the_same_events(adk_db: Callable[[str], Path], tmp_path: Path) -> None:
    source = adk_db(SERVICE)
    migrate(source, tmp_path / "v1.db")
    report = migrate(tmp_path / "v1.db", tmp_path / "back.db", MigrateOptions(to="sqlite-service"))
    found = verify(source, tmp_path / "back.db")
    assert found.tables["events"].equal == 525
    # the service stores a lone surrogate, and cannot read its own file once it has merged something into that state:
    # its escape is forced, and no difference
    assert (found.differences, found.equal) == ([], True)
    # nor can it merge into state with the bare words NaN and Infinity, which it stores as well
    assert [(loss.kind, loss.count) for loss in report.losses] == [("nan-to-null", 2), ("surrogate-to-escape", 1)]


def test_from_v1_and_back_loses_only_what_is_told(adk_db: Callable[[str], Path], tmp_path: Path) -> None:
    source = adk_db(V1)
    report = migrate(source, tmp_path / "service.db", MigrateOptions(to="sqlite-service"))
    migrate(tmp_path / "service.db", tmp_path / "back.db")
    found = verify(source, tmp_path / "back.db")
    assert [(loss.kind, loss.count, loss.hop) for loss in report.losses] == [
        ("nan-to-null", 8, "v1 -> sqlite-service"),
        ("surrogate-to-escape", 7, "v1 -> sqlite-service"),
    ]
    assert Counter(one.table for one in found.differences) == {
        "events": 3,
        "sessions": 2,
        "app_states": 1,
        "user_states": 1,
    }
    assert all(one.field.endswith("lone_surrogate") for one in found.differences)


def test_what_the_target_forces_is_no_difference(adk_db: Callable[[str], Path], tmp_path: Path) -> None:
    source, made = adk_db(V1), tmp_path / "service.db"
    change(source, "UPDATE events SET invocation_id = CAST(x'69ff' AS TEXT) WHERE rowid = 7")
    migrate(source, made, MigrateOptions(to="sqlite-service"))
    report = verify(source, made)
    assert (report.differences, report.equal) == ([], True)
    for table, column, field in (("events", "event_data", "actions.state_delta."), ("sessions", "state", "state.")):
        other = tmp_path / f"{table}.db"
        other.write_bytes(made.read_bytes())
        change(other, f"UPDATE {table} SET {column} = replace({column}, '\\\\ud', '\\\\uc')")
        found = verify(source, other)
        assert {(one.table, one.field.startswith(field)) for one in found.differences} == {(table, True)}
        assert all("lone_surrogate" in one.field for one in found.differences)


def test_bytes_that_are_no_utf8_are_no_difference_in_v1(adk_db: Callable[[str], Path], tmp_path: Path) -> None:
    source = change(adk_db(SERVICE), "UPDATE events SET invocation_id = CAST(x'69ff' AS TEXT) WHERE rowid = 7")
    migrate(source, tmp_path / "v1.db")
    assert verify(source, tmp_path / "v1.db").equal


def test_what_was_migrated_from_the_deepest_column_is_read_back(tmp_path: Path) -> None:
    deep = '{"parts":[{"function_response":{"name":"t","response":' + '{"a":' * (MAX_DEPTH - 4) + "1"
    content = deep + "}" * (MAX_DEPTH - 4) + '}}],"role":"user"}'
    source = Path(shutil.copy(FIXTURES / "refund-desk-1.21.0.db", tmp_path / "v0.db"))
    change(source, f"UPDATE events SET content = '{content}' WHERE rowid = 1")
    for destination in ("v1.db", "sqlite-service.db"):
        migrate(source, tmp_path / destination, MigrateOptions(to=destination.removesuffix(".db")))
        assert verify(source, tmp_path / destination).equal
        source = tmp_path / destination
    change(
        source, f"UPDATE events SET event_data = replace(event_data, '{{\"a\":1}}', '{{\"a\":{'[' * 60 + ']' * 60}}}')"
    )
    assert migrate(source, tmp_path / "deeper.db").status == "refused"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM adk_internal_metadata", None),
        ("DROP TABLE adk_internal_metadata", None),
        ("UPDATE adk_internal_metadata SET value = '2'", '"2"'),
        ("UPDATE adk_internal_metadata SET value = '0'", '"0"'),
    ],
)
def test_the_mark_of_v1_is_compared(pair: tuple[Path, Path], statement: str, said: str | None) -> None:
    report = verify(pair[0], change(pair[1], statement))
    (one,) = report.differences
    assert (one.table, one.field, one.source, one.destination) == (
        "adk_internal_metadata", "schema_version", '"1"', said,
    )  # fmt: skip
    assert (report.equal, report.difference_count, report.tables["events"].equal) == (False, 1, 525)


def test_copies_without_a_mark_are_equal_and_it_is_told(adk_db: Callable[[str], Path], tmp_path: Path) -> None:
    source = change(adk_db(V1), "DELETE FROM adk_internal_metadata")
    report = verify(source, source)
    assert report.equal
    assert any("adk_internal_metadata" in note and "no side" in note for note in report.notes)


def test_an_empty_destination_is_called_the_destination(adk_db: Callable[[str], Path]) -> None:
    for name in ("", " ", "\t"):
        with pytest.raises(UsageError, match="the destination is empty"):
            verify(adk_db(V1), name)


def test_a_store_of_something_else_is_nothing_to_look_at(pair: tuple[Path, Path], tmp_path: Path) -> None:
    foreign = change(tmp_path / "foreign.db", "CREATE TABLE x (y)")
    with pytest.raises(NothingToLookAt):
        verify(pair[0], foreign)


def adk_migrate(source: Path, destination: Path, zone: str = "UTC") -> None:
    """google-adk's own migrator."""
    command = [
        str(Path(sys.executable).parent / "adk"), "migrate", "session",
        "--source_db_url", f"sqlite:///{source}", "--dest_db_url", f"sqlite:///{destination}",
    ]  # fmt: skip
    environment = {**os.environ, "TZ": zone, "OTEL_SDK_DISABLED": "true"}
    subprocess.run(command, check=True, capture_output=True, env=environment)


@pytest.fixture(scope="module")
def lossy_pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A v0 file with values that google-adk's loader refuses, and what its migrator made of it."""
    folder = tmp_path_factory.mktemp("lossy")
    source = unpack(FIXTURES / "adk" / "db-1.21.0-utc.db.gz", folder / "source.db")
    adk_migrate(source, folder / "lossy.db")
    return source, folder / "lossy.db"


class TestWhatAdkLost:
    """Outcomes of `adk migrate session` 2.13.0, made here and now."""

    def test_emptied_actions_are_found(self, lossy_pair: tuple[Path, Path], tmp_path: Path) -> None:
        source, lossy = lossy_pair
        allowed = ReadOptions(allow_globals=("shop_models.*", "collections.*", "builtins.*"))
        report = verify(source, lossy, VerifyOptions(read=allowed))
        emptied = {one.key for one in report.differences if one.field.startswith("actions.")}
        # twelve events of this file hold values that its loader refuses
        assert len(emptied) >= 12
        whole = tmp_path / "whole.db"
        migrate(source, whole, MigrateOptions(read=allowed))
        assert verify(source, whole, VerifyOptions(read=allowed)).equal
        between = verify(whole, lossy)
        assert {one.key for one in between.differences if one.field.startswith("actions.")} == emptied

    def test_a_shifted_zone_is_found(self, adk_db: Callable[[str], Path], tmp_path: Path) -> None:
        source, shifted = adk_db("db-1.21.0-ny"), tmp_path / "shifted.db"
        adk_migrate(source, shifted, "UTC")
        report = verify(source, shifted)
        off = [one for one in report.differences if one.field == "timestamp"]
        assert len(off) > 90
        one = next(one for one in off if one.source is not None and one.destination is not None)
        assert round(float(one.destination or 0) - float(one.source or 0)) in (-18000, -14400)
        whole = tmp_path / "whole.db"
        migrate(source, whole, MigrateOptions(read=ReadOptions(allow_globals=("shop_models.*", "collections.*"))))
        found = {path: api.audit(path).findings for path in (whole, shifted)}
        times = {path: [one for one in each if one.rule in ("EXH301", "EXH310")] for path, each in found.items()}
        assert {one.session_id for one in times[whole] if one.rule == "EXH301"} == {
            one.session_id for one in times[shifted] if one.rule == "EXH301"
        }
        [told] = [one for one in times[shifted] if one.rule == "EXH310"]
        assert "-05:00 from the times of their sessions" in told.message

    def test_what_cannot_be_read_is_a_difference(self, lossy_pair: tuple[Path, Path]) -> None:
        source, lossy = lossy_pair
        report = verify(source, lossy)
        unreadable = [one for one in report.differences if one.source and one.source.startswith("(cannot be read")]
        assert unreadable
        assert {one.field for one in unreadable} == {"actions"}
        assert all(isinstance(one.key, EventKey) and one.key.event_id for one in unreadable)


def test_a_trigger_in_the_destination_is_told(pair: tuple[Path, Path]) -> None:
    change(pair[1], "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END")
    assert any("triggers" in note for note in verify(*pair).notes)
