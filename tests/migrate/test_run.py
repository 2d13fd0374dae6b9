from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from exhume.errors import Incomplete, Refused, UsageError
from exhume.events.interface import ReadOptions
from exhume.migrate import hops, run, transfer, write
from exhume.migrate.interface import MigrateOptions, MigrationReport
from exhume.migrate.run import migrate
from exhume.migrate.workspace import Workspace

SERVICE = "sqlitesvc-2.13.0-utc"
TO_SERVICE = MigrateOptions(to="sqlite-service")
#: What the files of the fixtures need besides the reviewed set.
ALLOWED = ReadOptions(allow_globals=("shop_models.*", "collections.*", "builtins.*"))
FIRST = "SELECT app_name, user_id, session_id, id FROM events ORDER BY app_name, user_id, session_id, timestamp LIMIT 1"


def change(path: Path, *statements: str) -> Path:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def query(path: Path, statement: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def everything(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    names = query(path, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return {name: query(path, f'SELECT rowid, * FROM "{name}" ORDER BY rowid') for (name,) in names}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def broken(adk_db: Callable[[str], Path]) -> Path:
    """A database with one event whose JSON cannot be read."""
    path = adk_db(SERVICE)
    return change(
        path, f"UPDATE events SET event_data = '{{oops' WHERE (app_name, user_id, session_id, id) = ({FIRST})"
    )


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder / "out.db"


class TestWhole:
    def test_a_run_leaves_the_destination_alone_in_its_folder(self, adk_db: Callable[[str], Path], out: Path) -> None:
        source = adk_db(SERVICE)
        before = sha256(source)
        report = migrate(source, out)
        assert (report.status, report.verified, report.path) == ("complete", True, ("sqlite-service", "v1"))
        assert list(out.parent.iterdir()) == [out]
        assert list(source.parent.iterdir()) == [source]
        assert (report.source_sha256_before, report.source_sha256_after, sha256(source)) == (before,) * 3
        count = report.tables["events"]
        assert (count.read, count.written, count.created, count.quarantined) == (525, 525, 0, 0)
        assert report.tables["app_states"].created == 16
        assert report.finished_at >= report.started_at

    def test_every_run_writes_the_same_rows(self, adk_db: Callable[[str], Path], tmp_path: Path) -> None:
        source = adk_db(SERVICE)
        for name in ("one.db", "two.db"):
            migrate(source, tmp_path / name)
        assert everything(tmp_path / "one.db") == everything(tmp_path / "two.db")
        assert sha256(tmp_path / "one.db") == sha256(tmp_path / "two.db")

    def test_the_file_is_as_private_as_its_source(self, adk_db: Callable[[str], Path], tmp_path: Path) -> None:
        source = adk_db(SERVICE)
        for mode, wanted in ((0o600, 0o600), (0o400, 0o600), (0o644, 0o644), (0o666, 0o644)):
            source.chmod(mode)
            made = tmp_path / f"{mode:o}.db"
            migrate(source, made)
            assert stat.S_IMODE(made.stat().st_mode) == wanted

    def test_what_is_there_already_needs_nothing(self, adk_db: Callable[[str], Path], out: Path) -> None:
        report = migrate(adk_db("db-2.13.0-utc"), out)
        assert (report.status, report.path, report.verified) == ("nothing to do", ("v1",), False)
        assert list(out.parent.iterdir()) == []

    def test_tables_without_rows_are_moved_too(self, adk_db: Callable[[str], Path], out: Path) -> None:
        tables = ("sessions", "events", "app_states", "user_states")
        source = change(adk_db("db-1.21.0-utc"), *(f"DELETE FROM {name}" for name in tables))
        report = migrate(source, out, MigrateOptions(to="sqlite-service"))
        assert (report.status, report.path) == ("complete", ("v0", "v1", "sqlite-service"))
        assert query(out, "SELECT count(*) FROM events") == [(0,)]

    def test_progress_ends_at_the_total(self, adk_db: Callable[[str], Path], out: Path) -> None:
        told: list[tuple[int, int, str]] = []
        migrate(
            adk_db(SERVICE), out, MigrateOptions(progress=lambda done, total, table: told.append((done, total, table)))
        )
        assert told[-1] == (806, 806, "events")
        assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)


class TestRefusals:
    @pytest.mark.parametrize(
        "spelling", ["same", "dots", "symbolic link", "hard link", "url", "async url", "folder link"]
    )
    def test_source_and_destination_are_the_same_file(
        self, adk_db: Callable[[str], Path], tmp_path: Path, spelling: str
    ) -> None:
        source = adk_db(SERVICE)
        other: str | Path = source
        if spelling == "dots":
            other = f"{source.parent}/../{source.parent.name}/./{source.name}"
        elif spelling == "symbolic link":
            other = tmp_path / "link.db"
            other.symlink_to(source)
        elif spelling == "hard link":
            other = tmp_path / "hard.db"
            os.link(source, other)
        elif spelling == "url":
            other = f"sqlite:///{source}"
        elif spelling == "async url":
            other = f"sqlite+aiosqlite:///{source}"
        elif spelling == "folder link":
            (tmp_path / "elsewhere").symlink_to(source.parent)
            other = tmp_path / "elsewhere" / source.name
        before = sha256(source)
        with pytest.raises(Refused, match="is the source"):
            migrate(source, other)
        assert sha256(source) == before

    @pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
    def test_a_file_that_belongs_to_the_source(self, adk_db: Callable[[str], Path], suffix: str) -> None:
        source = adk_db(SERVICE)
        with pytest.raises(Refused, match="belongs to the source"):
            migrate(source, f"{source}{suffix}")
        assert list(source.parent.iterdir()) == [source]

    @pytest.mark.parametrize("kind", ["a database", "empty", "dangling link", "journal"])
    def test_a_destination_that_exists(self, adk_db: Callable[[str], Path], out: Path, kind: str) -> None:
        if kind == "a database":
            shutil.copy(adk_db(SERVICE), out)
        elif kind == "empty":
            out.touch()
        elif kind == "dangling link":
            out.symlink_to(out.parent / "missing")
        else:
            out.with_name("out.db-journal").write_bytes(b"left by something else")
        before = sorted(out.parent.iterdir())
        with pytest.raises(Refused, match="exists"):
            migrate(adk_db(SERVICE), out)
        assert sorted(out.parent.iterdir()) == before

    def test_a_destination_that_cannot_be_meant(self, adk_db: Callable[[str], Path], tmp_path: Path) -> None:
        source = adk_db(SERVICE)
        for where in (tmp_path, tmp_path / "missing" / "out.db", "postgresql://localhost/x", ""):
            with pytest.raises(UsageError):
                migrate(source, where)
        with pytest.raises(UsageError, match="quarantine file is the destination"):
            migrate(source, tmp_path / "x.db", MigrateOptions(quarantine=tmp_path / "x.db"))
        with pytest.raises(UsageError, match="does not exist"):
            migrate(source, tmp_path / "x.db", MigrateOptions(workdir=tmp_path / "missing"))

    def test_a_name_that_is_taken_meanwhile_is_not_overwritten(
        self, adk_db: Callable[[str], Path], out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def taken(path: Path | None) -> int:
            out.write_text("precious")
            return 0o600

        monkeypatch.setattr(run, "mode_like", taken)
        with pytest.raises(Refused, match="made by something else"):
            migrate(adk_db(SERVICE), out)
        assert out.read_text() == "precious"
        assert list(out.parent.iterdir()) == [out]

    def test_too_little_space(self, adk_db: Callable[[str], Path], out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(100, 99, 1))
        with pytest.raises(Refused, match="1 B free"):
            migrate(adk_db(SERVICE), out)
        assert list(out.parent.iterdir()) == []

    def test_a_source_that_changes_meanwhile(
        self, adk_db: Callable[[str], Path], out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source = adk_db(SERVICE)
        honest = transfer.transfer

        def and_change(*args: Any, **options: Any) -> dict[str, int]:
            read = honest(*args, **options)
            with source.open("ab") as file:
                file.write(b"\0")
            return read

        monkeypatch.setattr(hops, "transfer", and_change)
        with pytest.raises(Incomplete, match="changed while it was read"):
            migrate(source, out)
        assert list(out.parent.iterdir()) == []


class TestAllOrNothing:
    def test_a_refused_row_stops_the_run(self, broken: Path, out: Path) -> None:
        report = migrate(broken, out)
        assert (report.status, report.refused_count, report.verified) == ("refused", 1, False)
        assert [tuple(row.key) for row in report.refused] == query(broken, FIRST)
        assert report.refused[0].problems[0].rule == "EXH307"
        assert report.refused[0].hop == "sqlite-service -> v1"
        assert report.tables["events"].read == 525
        assert report.tables["events"].written == 0
        assert list(out.parent.iterdir()) == []

    def test_all_refused_rows_are_counted_and_the_first_are_listed(
        self, adk_db: Callable[[str], Path], out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transfer, "LISTED", 10)
        source = change(adk_db(SERVICE), "UPDATE events SET event_data = '[]'")
        report = migrate(source, out)
        assert (report.status, report.refused_count, len(report.refused)) == ("refused", 525, 10)

    def test_equal_keys_once_keys_are_text(self, adk_db: Callable[[str], Path], out: Path) -> None:
        source = adk_db(SERVICE)
        copy = (
            "SELECT CAST(id AS BLOB), app_name, user_id, session_id, invocation_id, timestamp, event_data FROM events"
        )
        change(source, f"INSERT INTO events {copy} LIMIT 1")
        report = migrate(source, out)
        assert (report.status, report.refused_count) == ("refused", 1)
        assert "same key" in report.refused[0].problems[-1].reason
        assert not out.exists()


class TestQuarantine:
    def run(self, source: Path, out: Path, **options: Any) -> tuple[MigrationReport, Path]:
        box = out.with_name("box.db")
        return migrate(source, out, MigrateOptions(quarantine=box, **options)), box

    def test_the_rest_is_migrated_and_the_row_is_kept_raw(self, broken: Path, out: Path) -> None:
        report, box = self.run(broken, out)
        assert (report.status, report.refused_count, report.verified) == ("incomplete", 1, True)
        assert report.quarantine == str(box)
        assert sorted(out.parent.iterdir()) == [box, out]
        key = query(broken, FIRST)[0]
        assert query(box, "SELECT app_name, user_id, session_id, event_id FROM rows") == [key]
        assert dict(query(box, "SELECT column_name, value FROM cells"))["event_data"] == "{oops"
        raw = query(broken, f"SELECT * FROM events WHERE (app_name, user_id, session_id, id) = ({FIRST})")[0]
        assert sorted(map(str, raw)) == sorted(str(value) for (value,) in query(box, "SELECT value FROM cells"))
        about = dict(query(box, "SELECT * FROM about"))
        assert about["source_sha256"] == sha256(broken)
        assert about["path"] == "sqlite-service -> v1"
        assert query(box, "SELECT rule, fatal FROM problems") == [("EXH307", 1)]
        assert query(out, "SELECT count(*) FROM events") == [(525,)], "the event keeps its other columns"
        assert report.tables["events"].quarantined == 1

    def test_without_a_refused_row_there_is_no_file(self, adk_db: Callable[[str], Path], out: Path) -> None:
        report, box = self.run(adk_db(SERVICE), out)
        assert (report.status, report.quarantine) == ("complete", None)
        assert not box.exists()

    def test_over_two_hops_a_row_is_kept_once_with_its_first_bytes(
        self, tmp_path: Path, broken: Path, out: Path
    ) -> None:
        # back to where it came from, by way of v1
        unmarked = tmp_path / "unmarked.db"
        migrate(change(broken, "UPDATE events SET event_data = '{}' WHERE event_data = '{oops'"), unmarked)
        change(
            unmarked,
            "DELETE FROM adk_internal_metadata",
            "UPDATE events SET event_data = '{oops' WHERE event_data LIKE '{\"id%'",
        )
        change(unmarked, "UPDATE events SET event_data = x'ff00' WHERE rowid = 5")
        report, box = self.run(unmarked, out, to="sqlite-service")
        assert report.path == ("v1-unmarked", "v1", "sqlite-service")
        assert {row.hop for row in report.refused} == {"v1-unmarked -> v1"}
        assert query(box, "SELECT count(*), count(DISTINCT event_id) FROM rows") == [(report.refused_count,) * 2]
        assert (b"\xff\x00",) in query(box, "SELECT value FROM cells WHERE column_name = 'event_data'")

    def test_text_that_is_not_utf8_keeps_its_bytes(self, adk_db: Callable[[str], Path], out: Path) -> None:
        source = change(adk_db(SERVICE), "UPDATE events SET id = CAST(x'61ff62' AS TEXT) WHERE rowid = 1")
        report, box = self.run(source, out)
        assert report.status == "incomplete"
        assert query(box, "SELECT typeof(value), hex(value) FROM cells WHERE column_name = 'id'") == [
            ("text", "61FF62")
        ]
        assert query(out, "SELECT count(*) FROM events") == [(524,)], "no ADK could read the table with it"

    def test_an_event_without_id_or_time_is_in_quarantine_alone(self, adk_db: Callable[[str], Path], out: Path) -> None:
        source = change(
            adk_db(SERVICE),
            "UPDATE events SET id = '' WHERE rowid = 1",
            "UPDATE events SET timestamp = 'noon', event_data = '{}' WHERE rowid = 2",
        )
        report, box = self.run(source, out)
        assert report.refused_count == 2
        assert query(out, "SELECT count(*) FROM events") == [(523,)]
        assert {c for (c,) in query(box, "SELECT column_name FROM problems")} == {"id", "timestamp"}

    def test_a_session_whose_state_cannot_be_read_stays_usable(self, adk_db: Callable[[str], Path], out: Path) -> None:
        source = change(
            adk_db(SERVICE),
            "UPDATE sessions SET state = '[1]', update_time = 'noon' WHERE id = 'c-state' AND user_id = 'u1'",
        )
        report, box = self.run(source, out)
        assert report.tables["sessions"].quarantined == 1
        assert {c for (c,) in query(box, "SELECT column_name FROM problems")} == {"state", "update_time"}
        assert query(
            out, "SELECT state, create_time = update_time FROM sessions WHERE id = 'c-state' AND user_id = 'u1'"
        ) == [("{}", 1)]


class TestNotes:
    def test_a_key_that_is_not_text_is_told(self, adk_db: Callable[[str], Path], out: Path) -> None:
        source = change(adk_db(SERVICE), "UPDATE events SET id = CAST(id AS BLOB) WHERE rowid = 3")
        report = migrate(source, out)
        assert [(loss.kind, loss.count) for loss in report.losses] == [("key-to-text", 1)]
        assert query(out, "SELECT count(*) FROM events WHERE typeof(id) = 'text'") == [(525,)]

    def test_orphans_are_kept_and_told(self, adk_db: Callable[[str], Path], out: Path) -> None:
        source = change(adk_db(SERVICE), "DELETE FROM sessions WHERE id = 'c-state'")
        report = migrate(source, out)
        assert report.status == "complete"
        assert [note for note in report.notes if "orphaned" in note]
        assert query(out, "SELECT count(*) FROM events") == [(525,)]

    def test_what_an_old_service_did_to_state_is_told(self, adk_db: Callable[[str], Path], out: Path) -> None:
        report = migrate(adk_db("sqlitesvc-1.21.0-utc"), out)
        told = [note for note in report.notes if "older ADK" in note]
        assert len(told) == 2
        assert "c-state: color" in "".join(told)
        assert "c-state: nested" in "".join(told)

    def test_nothing_of_the_kind_where_the_service_was_exact(self, adk_db: Callable[[str], Path], out: Path) -> None:
        assert not [note for note in migrate(adk_db(SERVICE), out).notes if "older ADK" in note]


class TestDryRun:
    def test_it_says_all_and_writes_nothing(self, broken: Path, out: Path) -> None:
        report = migrate(broken, out, MigrateOptions(dry_run=True))
        assert (report.status, report.refused_count, report.dry_run) == ("refused", 1, True)
        assert list(out.parent.iterdir()) == []
        said = "\n".join(report.plan)
        for wanted in (
            "path: sqlite-service -> v1",
            "step 1: sqlite-service -> v1",
            "events: 525 read",
            "refused: 1 row",
            "space:",
        ):
            assert wanted in said

    def test_temporary_files_are_named(self, adk_db: Callable[[str], Path], out: Path, tmp_path: Path) -> None:
        source = change(adk_db("db-2.13.0-utc"), "DELETE FROM adk_internal_metadata")
        report = migrate(source, out, MigrateOptions(dry_run=True, to="sqlite-service", workdir=tmp_path))
        assert report.status == "complete"
        assert f"1 SQLite file between hops in a private folder in {tmp_path}" in "\n".join(report.plan)

    def test_with_a_quarantine_it_says_where_rows_would_go(self, broken: Path, out: Path) -> None:
        box = out.with_name("box.db")
        report = migrate(broken, out, MigrateOptions(dry_run=True, quarantine=box))
        assert (report.status, report.quarantine) == ("incomplete", None)
        assert f"1 row, which would be kept raw in {box}" in "\n".join(report.plan)
        assert list(out.parent.iterdir()) == []


class TestChains:
    def test_a_result_that_drifts_is_not_published(
        self, adk_db: Callable[[str], Path], out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        honest = hops.check_drift

        def spoil(path: Path, layout: str) -> None:
            honest(path, layout)
            change(path, "ALTER TABLE events ADD COLUMN extra TEXT")
            honest(path, layout)

        monkeypatch.setattr(run, "check_drift", spoil)
        with pytest.raises(Incomplete, match="extra"):
            migrate(change(adk_db("db-2.13.0-utc"), "DELETE FROM adk_internal_metadata"), out, TO_SERVICE)
        assert list(out.parent.iterdir()) == []

    def test_files_between_hops_lie_where_asked_and_vanish(
        self, adk_db: Callable[[str], Path], out: Path, tmp_path: Path
    ) -> None:
        source, workdir = adk_db("db-1.21.0-utc"), tmp_path / "work"
        workdir.mkdir()
        seen: set[tuple[str, int, int]] = set()

        def look(_done: int, _total: int, _table: str) -> None:
            for folder in workdir.iterdir():
                mode = stat.S_IMODE(folder.stat().st_mode)
                seen.update((path.name, mode, stat.S_IMODE(path.stat().st_mode)) for path in folder.glob("*.db"))
            assert list(source.parent.iterdir()) == [source]

        options = MigrateOptions(to="sqlite-service", workdir=workdir, read=ALLOWED, progress=look)
        assert migrate(source, out, options).status == "complete"
        assert seen == {("hop-1.db", 0o700, 0o600)}
        assert list(workdir.iterdir()) == []

    def test_the_system_place_is_not_used_where_the_source_lies(
        self, adk_db: Callable[[str], Path], out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source = adk_db("db-1.21.0-utc")
        monkeypatch.setattr(tempfile, "gettempdir", lambda: str(source.parent))
        seen: list[Path] = []
        options = MigrateOptions(
            to="sqlite-service", read=ALLOWED, progress=lambda *_: seen.extend(source.parent.iterdir())
        )
        assert migrate(source, out, options).status == "complete"
        assert set(seen) == {source}

    def test_losses_add_up_and_name_their_hop(self, adk_db: Callable[[str], Path], out: Path) -> None:
        options = MigrateOptions(to="sqlite-service", read=ALLOWED)
        report = migrate(adk_db("db-1.21.0-utc"), out, options)
        by_hop = {loss.hop for loss in report.losses}
        assert by_hop == {"v0 -> v1", "v1 -> sqlite-service"}
        assert all(loss.count > 0 and loss.example for loss in report.losses)

    def test_a_value_refused_in_the_first_hop_is_kept_once(self, adk_db: Callable[[str], Path], out: Path) -> None:
        source, box = adk_db("db-1.21.0-utc"), out.with_name("box.db")
        report = migrate(source, out, MigrateOptions(to="sqlite-service", quarantine=box))
        assert (report.status, report.refused_count) == ("incomplete", 12)
        assert {row.hop for row in report.refused} == {"v0 -> v1"}
        kept = query(box, "SELECT value FROM cells WHERE column_name = 'actions'")
        assert {cell for (cell,) in kept} <= {cell for (cell,) in query(source, "SELECT actions FROM events")}
        assert len(kept) == 12
        count = report.tables["events"]
        assert (count.read, count.written, count.quarantined) == (429, 429, 12)


class TestInterrupted:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_leaves_nothing(self, adk_db: Callable[[str], Path], out: Path, number: signal.Signals) -> None:
        child = slow_run(adk_db(SERVICE), out)
        child.send_signal(number)
        assert child.wait(10) == 130
        assert list(out.parent.iterdir()) == []

    def test_what_a_kill_leaves_is_removed_by_the_next_run(self, adk_db: Callable[[str], Path], out: Path) -> None:
        source = adk_db(SERVICE)
        child = slow_run(source, out)
        child.kill()
        child.wait(10)
        (left,) = out.parent.iterdir()
        report = migrate(source, out)
        assert list(out.parent.iterdir()) == [out]
        assert [note for note in report.notes if str(left) in note]

    def test_a_run_that_lives_is_left_alone(self, adk_db: Callable[[str], Path], out: Path) -> None:
        with Workspace(out.parent) as other:
            migrate(adk_db(SERVICE), out)
            assert other.path.is_dir()

    def test_a_full_disk_leaves_nothing(
        self, adk_db: Callable[[str], Path], out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Full(write.SqliteWriter):
            def insert(self, table: str, rows: Any) -> Any:
                self._connection.execute("PRAGMA max_page_count = 20")
                return super().insert(table, rows)

        monkeypatch.setattr(hops, "SqliteWriter", Full)
        source = adk_db(SERVICE)
        before = sha256(source)
        with pytest.raises(Incomplete, match="disk is full"):
            migrate(source, out)
        assert list(out.parent.iterdir()) == []
        assert sha256(source) == before


def slow_run(source: Path, out: Path) -> subprocess.Popen[bytes]:
    """A migration in another process that has begun to write and will not end by itself."""
    program = (
        "import sys, time\n"
        "from exhume.errors import ExhumeError\n"
        "from exhume.migrate.interface import MigrateOptions\n"
        "from exhume.migrate.run import migrate\n"
        "options = MigrateOptions(progress=lambda done, total, table: time.sleep(30 if done > 400 else 0))\n"
        "try:\n"
        "    migrate(sys.argv[1], sys.argv[2], options)\n"
        "except ExhumeError as error:\n"
        "    sys.exit(int(error.exit_code))\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program, str(source), str(out)])
    deadline = time.monotonic() + 10
    while not list(out.parent.glob(".exhume-work-*/hop-1.db")) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    return child


def test_resume_starts_where_nothing_was_begun_and_knows_a_finished_file(
    adk_db: Callable[[str], Path], tmp_path: Path
) -> None:
    source, destination = adk_db("db-1.18.0-ny"), tmp_path / "out.db"
    options = MigrateOptions(read=ALLOWED, resume=True)
    first = migrate(source, destination, options)
    assert (first.status, first.verified) == ("complete", True)
    assert any("nothing had been begun" in note for note in first.notes)
    made = destination.read_bytes()
    second = migrate(source, destination, options)
    assert (second.status, second.verified) == ("complete", True)
    assert second.tables["events"] == first.tables["events"]
    assert any("compared with the source" in note for note in second.notes)
    assert destination.read_bytes() == made


def test_resume_refuses_a_destination_that_holds_something_else(adk_db: Callable[[str], Path], tmp_path: Path) -> None:
    destination = tmp_path / "out.db"
    options = MigrateOptions(read=ALLOWED, resume=True)
    migrate(adk_db("db-1.18.0-ny"), destination, options)
    made = destination.read_bytes()
    with pytest.raises(Refused, match="does not hold what the source holds"):
        migrate(adk_db("db-1.21.0-utc"), destination, options)
    assert destination.read_bytes() == made


@pytest.mark.parametrize("pair", [("o.db", "o.db-wal"), ("q.db-journal", "q.db")])
def test_a_quarantine_that_sqlite_would_take_for_a_part_of_the_destination_is_refused(
    adk_db: Callable[[str], Path], tmp_path: Path, pair: tuple[str, str]
) -> None:
    with pytest.raises(UsageError, match="parts of one database"):
        migrate(adk_db("db-1.21.0-utc"), tmp_path / pair[0], MigrateOptions(quarantine=tmp_path / pair[1]))


@pytest.mark.parametrize("what", ["destination", "quarantine", "workdir"])
def test_a_name_that_no_file_can_have_is_an_error_of_use(
    adk_db: Callable[[str], Path], tmp_path: Path, what: str
) -> None:
    names: dict[str, Path] = {"destination": tmp_path / "o.db", what: tmp_path / ("x" * 300)}
    final = names.pop("destination")
    with pytest.raises(UsageError):
        migrate(adk_db("db-1.21.0-utc"), final, MigrateOptions(**names, to="sqlite-service"))  # type: ignore[arg-type]


def test_a_quarantine_on_a_server_is_refused_without_its_password(
    adk_db: Callable[[str], Path], tmp_path: Path
) -> None:
    options = MigrateOptions(quarantine="postgresql://u:secret@h/d")
    with pytest.raises(UsageError, match="is a server") as caught:
        migrate(adk_db("db-1.21.0-utc"), tmp_path / "o.db", options)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["db-1.21.0-utc", SERVICE])
def test_text_that_is_not_utf8_in_keys_is_refused_and_elsewhere_escaped(
    adk_db: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    source, out = adk_db(name), tmp_path / "o.db"
    connection = sqlite3.connect(source)
    connection.execute("UPDATE sessions SET user_id = CAST(x'ff41' AS TEXT) WHERE rowid = 1")
    connection.execute("UPDATE events SET invocation_id = CAST(x'ff42' AS TEXT) WHERE rowid = 1")
    connection.commit()
    connection.close()
    options = MigrateOptions(read=ALLOWED, quarantine=tmp_path / "q.db", dry_run=True)
    told = migrate(source, out, options)
    report = migrate(source, out, MigrateOptions(read=ALLOWED, quarantine=tmp_path / "q.db"))
    assert [one.problems for one in told.refused] == [one.problems for one in report.refused]
    assert [(one.table, one.problems[0].reason) for one in report.refused] == [
        ("sessions", "the user_id is not valid UTF-8")
    ]
    made = sqlite3.connect(out)
    assert made.execute("SELECT count(*) FROM events WHERE invocation_id = '\\xffB'").fetchone() == (1,)
    made.close()
    assert "bad-utf8-to-escape" in {loss.kind for loss in report.losses}


@pytest.mark.parametrize("dry_run", [False, True])
def test_tables_that_are_not_migrated_are_named(adk_db: Callable[[str], Path], tmp_path: Path, dry_run: bool) -> None:
    source = change(adk_db("db-1.21.0-utc"), "CREATE TABLE invoices (a)", "CREATE TABLE 'two\x1b words' (a)")
    change(source, "INSERT INTO invoices VALUES (1)")
    report = migrate(source, tmp_path / "out.db", MigrateOptions(dry_run=dry_run, read=ALLOWED))
    (note,) = [note for note in report.notes if "not migrated" in note]
    assert "invoices (1 row), two" in note
    assert "(0 rows)" in note
    assert "\x1b" not in note


@pytest.mark.parametrize("name", ["", " ", "\n"])
def test_an_empty_destination_is_called_the_destination(adk_db: Callable[[str], Path], name: str) -> None:
    source = adk_db("db-1.21.0-utc")
    with pytest.raises(UsageError, match="the destination is empty"):
        migrate(source, name)
    with pytest.raises(UsageError, match="the quarantine file is empty"):
        migrate(source, "out.db", MigrateOptions(quarantine=cast(Path, name)))
    with pytest.raises(UsageError, match="the source is empty"):
        migrate(name, "out.db")
