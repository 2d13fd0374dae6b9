"""Files in every state in which an operator or an investigator finds them: a clear answer, and nothing changed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exhume.errors import ExitCode, NothingToLookAt
from exhume.stores.sqlite import SqliteStore


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A database with 2,000 committed rows, in a folder of its own."""
    folder = tmp_path / "source"
    folder.mkdir()
    path = folder / "app.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE events (id INTEGER, body TEXT)")
    connection.executemany("INSERT INTO events VALUES (?, ?)", [(n, "x" * 200) for n in range(2000)])
    connection.commit()
    connection.close()
    return path


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files; a test can see what is left there."""
    folder = tmp_path / "private"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def state_of(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Everything about the files of a folder that reading must not change."""
    return {
        path.name: (path.stat().st_mtime_ns, path.stat().st_mode, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.iterdir()
    } | {".": (folder.stat().st_mtime_ns, folder.stat().st_mode, "")}


@contextlib.contextmanager
def untouched(folder: Path) -> Iterator[None]:
    """The folder and all in it are the same afterwards, byte for byte, times included."""
    before = state_of(folder)
    yield
    assert state_of(folder) == before


def rejected(path: Path, words: str) -> None:
    """Opening it ends in exit code 3, says these words, and says what to do."""
    with pytest.raises(NothingToLookAt, match=words) as caught:
        SqliteStore(path)
    assert caught.value.exit_code is ExitCode.NOTHING_TO_LOOK_AT
    assert caught.value.todo


def test_reading_leaves_file_and_folder_as_they_were(source: Path) -> None:
    with untouched(source.parent), SqliteStore(source) as store:
        assert store.count("events") == 2000
        assert sum(1 for _ in store.rows("events", ["id"], order_by=["id"])) == 2000
        assert store.info().sha256 == hashlib.sha256(source.read_bytes()).hexdigest() == store.check_unchanged()


def test_a_read_only_file_in_a_read_only_folder_is_read(source: Path) -> None:
    source.chmod(0o444)
    source.parent.chmod(0o555)
    try:
        with untouched(source.parent), SqliteStore(source) as store:
            assert store.count("events") == 2000
    finally:
        source.parent.chmod(0o755)


def test_a_missing_file_is_an_error_and_is_not_created(tmp_path: Path) -> None:
    rejected(tmp_path / "none.db", "does not exist")
    rejected(tmp_path / "none" / "none.db", "does not exist")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_file_is_said_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    rejected(tmp_path, "folder")
    rejected(tmp_path / "pipe", "no regular file")
    rejected(tmp_path / "loop", "cannot be reached|does not exist")
    rejected(tmp_path / "dangling", "does not exist")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", r"empty \(0 bytes\)"),
        (b"hello, world\n", "no SQLite database"),
        (b"\x00" * 5000, "no SQLite database"),
        (random.Random(1).randbytes(8192), "encrypted or damaged"),
        (b"\x1f\x8b\x08\x00" + b"\x00" * 50, "gzip"),
        (b"PK\x03\x04" + b"\x00" * 50, "archive"),
        (b"SQLite format 3\x00", "cut off"),
        (b"SQLite format 3\x00" + b"\x00" * 200, "header is damaged"),
        (b"SQLite format 3\x00\x10\x00\x01\x01" + random.Random(2).randbytes(5000), "damaged"),
    ],
)
def test_what_is_no_database_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "file.db"
    path.write_bytes(content)
    with untouched(tmp_path):
        rejected(path, words)


def test_a_file_that_is_cut_off_is_refused_with_both_sizes(source: Path) -> None:
    whole = source.read_bytes()
    source.write_bytes(whole[: len(whole) // 2])
    rejected(source, f"cut off: {len(whole) // 2} of {len(whole)} bytes")


def test_damage_inside_ends_in_one_clear_error(source: Path) -> None:
    whole = bytearray(source.read_bytes())
    for page in range(4096, len(whole), 4096):
        whole[page : page + 200] = b"\xee" * 200
    source.write_bytes(whole)
    with SqliteStore(source) as store, pytest.raises(NothingToLookAt, match="damaged"):
        list(store.rows("events", ["id", "body"], order_by=["id"]))


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_never_shows_a_raw_error(source: Path, seed: int) -> None:
    chance = random.Random(seed)
    whole = bytearray(source.read_bytes())
    for _ in range(chance.choice((3, 30, 300))):
        whole[chance.randrange(100 if seed % 2 else 0, min(len(whole), 20000))] = chance.randrange(256)
    source.write_bytes(whole)
    with contextlib.suppress(NothingToLookAt), untouched(source.parent), SqliteStore(source) as store:
        for name, table in store.tables().items():
            store.count(name)
            for _ in store.rows(name, table.column_names, order_by=table.column_names[:1]):
                pass


def test_a_locked_file_is_said_to_be_locked(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exhume.stores.sqlite._BUSY_SECONDS", 0.05)
    program = textwrap.dedent("""
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        print("locked", flush=True)
        sys.stdin.read()
    """)
    with subprocess.Popen(
        [sys.executable, "-c", program, source], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"locked\n"
        rejected(source, "locked by another process")
        writer.communicate()
    with SqliteStore(source) as store:
        assert store.count("events") == 2000


def test_a_writer_that_waits_cannot_commit_into_what_is_read(source: Path) -> None:
    """One snapshot: as long as the store is open, its rows stay; hashing it in between must not give up the lock."""
    program = textwrap.dedent("""
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0.05)
        try:
            connection.execute("DELETE FROM events")
        except sqlite3.OperationalError as error:
            print(error)
    """)
    with SqliteStore(source) as store:
        store.check_unchanged()
        found = subprocess.run([sys.executable, "-c", program, source], capture_output=True, text=True, check=True)
        assert found.stdout == "database is locked\n"
        assert store.count("events") == 2000
        assert store.check_unchanged() == store.info().sha256


def test_a_source_that_changes_under_the_reader_has_another_hash(source: Path) -> None:
    with SqliteStore(source) as store:
        with source.open("r+b") as file:
            file.seek(40)
            file.write(b"\x01\x02\x03\x04")
        assert store.check_unchanged() != store.info().sha256


# -- write-ahead logs


@pytest.fixture
def logged(source: Path) -> Iterator[sqlite3.Connection]:
    """A writer that has the source open in WAL mode, with 50 commits in the log alone."""
    connection = sqlite3.connect(source, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    for n in range(50):
        connection.execute("INSERT INTO events VALUES (?, 'in the log')", (10_000 + n,))
    yield connection
    connection.close()


@pytest.mark.usefixtures("logged")
def test_commits_in_a_log_are_read_from_a_private_copy(source: Path, private: Path) -> None:
    with untouched(source.parent), SqliteStore(source) as store:
        assert store.count("events") == 2050
        kinds = {sidecar.kind: sidecar.size for sidecar in store.info().sidecars}
        assert kinds["wal"] > 0
        assert any("write-ahead log" in note for note in store.info().notes)
        assert store.check_unchanged() == store.info().sha256 == hashlib.sha256(source.read_bytes()).hexdigest()
        (copies,) = private.iterdir()
        assert copies.stat().st_mode & 0o777 == 0o700
    assert list(private.iterdir()) == []


@pytest.mark.usefixtures("logged")
def test_a_copied_log_without_its_index_is_read_too(source: Path, tmp_path: Path, private: Path) -> None:
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{source}{suffix}", evidence / f"app.db{suffix}")
    (evidence / "link.db").symlink_to("app.db")
    with untouched(evidence), SqliteStore(evidence / "link.db") as store:
        assert store.count("events") == 2050


@pytest.mark.usefixtures("logged")
def test_a_database_without_its_log_is_what_the_file_holds(source: Path, tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    shutil.copy(source, evidence / "app.db")
    with untouched(evidence), SqliteStore(evidence / "app.db") as store:
        assert store.count("events") == 2000


def test_a_log_that_is_not_one_is_ignored_as_sqlite_does(source: Path) -> None:
    source.with_name("app.db-wal").write_bytes(b"not a log" * 1000)
    with untouched(source.parent), SqliteStore(source) as store:
        assert store.count("events") == 2000


@pytest.mark.usefixtures("logged")
def test_no_space_for_the_copy_is_said(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    rejected(source, "must be copied")


@pytest.mark.usefixtures("private")
def test_the_private_copy_goes_away_with_a_store_that_fails(source: Path, private: Path) -> None:
    source.with_name("app.db-wal").write_bytes(b"x")
    whole = bytearray(source.read_bytes())
    whole[100:200] = b"\xee" * 100
    source.write_bytes(whole)
    rejected(source, "damaged")
    assert list(private.iterdir()) == []


# -- rollback journals


@pytest.fixture
def cut_off(source: Path, tmp_path: Path) -> Path:
    """A copy of the source in the middle of a transaction that deletes everything: half-written, with its journal."""
    connection = sqlite3.connect(source, isolation_level=None)
    connection.execute("PRAGMA cache_size = 2")
    connection.execute("BEGIN")
    connection.execute("UPDATE events SET body = 'never committed'")
    connection.execute("DELETE FROM events WHERE id > 100")
    folder = tmp_path / "crashed"
    folder.mkdir()
    for suffix in ("", "-journal"):
        shutil.copy(f"{source}{suffix}", folder / f"app.db{suffix}")
    connection.rollback()
    connection.close()
    return folder / "app.db"


def test_a_transaction_that_was_cut_off_is_rolled_back_in_a_private_copy(cut_off: Path, private: Path) -> None:
    assert b"never committed" in cut_off.read_bytes(), "the fixture must hold half a transaction"
    with untouched(cut_off.parent), SqliteStore(cut_off) as store:
        assert store.count("events") == 2000
        assert {o.row[0] for o in store.rows("events", ["body"])} == {"x" * 200}
        assert any("cut off" in note for note in store.info().notes)
        assert [sidecar.kind for sidecar in store.info().sidecars] == ["journal"]
    assert list(private.iterdir()) == []


def test_a_journal_cannot_make_sqlite_delete_a_file(cut_off: Path, tmp_path: Path) -> None:
    """SQLite deletes the super-journal that a journal names once it is rolled back: here a file of the user."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious\x00")
    name = os.fsencode(victim)
    tail = name + len(name).to_bytes(4, "big") + (sum(name) & 0xFFFFFFFF).to_bytes(4, "big")
    with Path(f"{cut_off}-journal").open("ab") as journal:
        journal.write((0x40000000 // 4096 + 1).to_bytes(4, "big") + tail + bytes.fromhex("d9d505f920a163d7"))
    with untouched(cut_off.parent):
        rejected(cut_off, "transaction over several databases")
    assert victim.read_bytes() == b"precious\x00"


def test_a_journal_of_a_living_writer_does_not_stop_the_reader(source: Path) -> None:
    program = textwrap.dedent("""
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM events WHERE id = 1")
        print("writing", flush=True)
        sys.stdin.read()
    """)
    with subprocess.Popen(
        [sys.executable, "-c", program, source], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writing\n"
        with SqliteStore(source) as store:
            assert store.count("events") == 2000
            assert [sidecar.kind for sidecar in store.info().sidecars] == ["journal"]
        writer.communicate()


# -- files made to harm


def test_pages_that_unfold_to_endless_rows_are_stopped(tmp_path: Path) -> None:
    """Interior pages that all point to the same child, six levels deep: 48 kB that claim 10**14 rows."""
    path = tmp_path / "bomb.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a)")
    connection.executemany("INSERT INTO t VALUES (?)", [("x" * 50,) for _ in range(3000)])
    root = connection.execute("SELECT rootpage FROM sqlite_master").fetchone()[0]
    connection.commit()
    connection.close()
    whole = bytearray(path.read_bytes())
    pages = len(whole) // 4096
    chain = [root, *(page for page in range(3, 3 + 6))]
    assert pages > chain[-1] + 1
    leaf = pages
    for place, page in enumerate(chain):
        child = chain[place + 1] if place + 1 < len(chain) else leaf
        start = (page - 1) * 4096
        cells = 250
        body = bytearray(4096)
        body[0:12] = (
            bytes([5, 0, 0])
            + cells.to_bytes(2, "big")
            + (4096 - 5 * cells).to_bytes(2, "big")
            + b"\x00"
            + child.to_bytes(4, "big")
        )
        for cell in range(cells):
            at = 4096 - 5 * (cell + 1)
            body[at : at + 5] = child.to_bytes(4, "big") + b"\x01"
            body[12 + 2 * cell : 14 + 2 * cell] = at.to_bytes(2, "big")
        whole[start : start + 4096] = body
    path.write_bytes(whole)
    with SqliteStore(path) as store:
        with pytest.raises(NothingToLookAt, match="damaged"):
            store.count("t")
        with pytest.raises(NothingToLookAt, match="damaged"):
            list(store.rows("t", ["a"], order_by=["a"]))


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
@pytest.mark.parametrize("number", [1, 3, 5, 100])
def test_rows_cannot_hide_behind_row_numbers(
    tmp_path: Path, number: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fourth row gets the number of another, or one out of order: a look-up by number would miss it silently."""
    monkeypatch.setattr("exhume.stores.sqlite._ROWS_AT_ONCE", at_once)
    path = tmp_path / "forged.db"
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [(f"row {n}",) for n in range(1, 9)])
    whole = bytearray(path.read_bytes())
    pointer = 4096 + 8 + 2 * 3  # the second page: eight bytes of header, then two for each cell
    cell = 4096 + int.from_bytes(whole[pointer : pointer + 2], "big")
    assert whole[cell + 1] == 4
    whole[cell + 1] = number
    path.write_bytes(whole)
    with SqliteStore(path) as store:
        with pytest.raises(NothingToLookAt, match="out of order"):
            store.count("t")
        with pytest.raises(NothingToLookAt, match="out of order"):
            list(store.rows("t", ["a"], order_by=["a"]))


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="there is no file here that cannot be read")
def test_a_file_that_cannot_be_read_is_told() -> None:
    with pytest.raises(NothingToLookAt, match="cannot be read"):
        SqliteStore(Path("/proc/self/mem"))


def test_a_value_beyond_all_reason_is_refused(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.closing(sqlite3.connect(source)) as connection, connection:
        connection.execute("INSERT INTO events VALUES (1, zeroblob(200000))")
    monkeypatch.setattr("exhume.stores.sqlite.LONGEST_VALUE", 100_000)
    with SqliteStore(source) as store, pytest.raises(NothingToLookAt, match="more than"):
        list(store.rows("events", ["body"]))


def test_a_schema_cannot_flood_the_notes(tmp_path: Path) -> None:
    path = tmp_path / "views.db"
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for n in range(300):
            connection.execute(f"CREATE VIEW v{n} AS SELECT 1")
    with SqliteStore(path) as store:
        assert len(store.info().notes) == 21
        assert "280 more" in store.info().notes[-1]


def test_a_journal_kept_after_its_transaction_is_nothing_to_worry_about(source: Path) -> None:
    with contextlib.closing(sqlite3.connect(source)) as connection:
        connection.execute("PRAGMA journal_mode = PERSIST")
        with connection:
            connection.execute("DELETE FROM events WHERE id = 0")
    with untouched(source.parent), SqliteStore(source) as store:
        assert store.count("events") == 1999
        (journal,) = store.info().sidecars
        assert "transaction that ended" in journal.meaning


def test_names_from_the_schema_cannot_forge_lines_of_a_message(tmp_path: Path) -> None:
    path = tmp_path / "names.db"
    connection = sqlite3.connect(path)
    connection.execute('CREATE VIEW "x\n\x1b[2Jevil" AS SELECT 1')
    connection.close()
    with SqliteStore(path) as store:
        (note,) = store.info().notes
        assert "\n" not in note
        assert "\x1b" not in note
        with pytest.raises(NothingToLookAt) as caught:
            store.count("a\nb")
        assert "\n" not in caught.value.what


def test_a_schema_that_cannot_be_parsed_is_damage(tmp_path: Path, adk_db: Callable[[str], Path]) -> None:
    path = adk_db("db-1.21.0-utc")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = 'CREATE TABLE events (((' WHERE name = 'events'")
    connection.commit()
    connection.close()
    rejected(path, "damaged: malformed database schema")


@pytest.mark.parametrize("kind", ["wal", "journal"])
@pytest.mark.parametrize("what", ["link", "folder"])
def test_what_poses_as_a_log_is_not_followed(source: Path, tmp_path: Path, kind: str, what: str) -> None:
    """SQLite would make an index file for a log that is there in any form."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious" * 1000)
    posing = source.with_name(f"app.db-{kind}")
    if what == "link":
        posing.symlink_to(victim)
    else:
        posing.mkdir()
    with untouched(source.parent) if what == "link" else contextlib.nullcontext(), SqliteStore(source) as store:
        assert store.count("events") == 2000
        assert any("no regular file" in note for note in store.info().notes)
    assert sorted(path.name for path in source.parent.iterdir()) == ["app.db", posing.name]
    assert victim.read_bytes() == b"precious" * 1000


def test_an_interrupt_is_not_taken_for_damage(source: Path) -> None:
    """SQLite's callbacks swallow exceptions: one that a signal raises there must still stop the run."""
    program = textwrap.dedent("""
        import signal, sys
        from pathlib import Path
        from exhume.stores.sqlite import SqliteStore

        store = SqliteStore(Path(sys.argv[1]))
        store._connection.set_progress_handler(lambda: signal.raise_signal(signal.SIGINT), 100)
        try:
            store.count("events")
        except KeyboardInterrupt:
            print("interrupted")
    """)
    ran = subprocess.run([sys.executable, "-c", program, source], capture_output=True, text=True, check=True)
    assert ran.stdout == "interrupted\n"


@pytest.mark.parametrize("before", [False, True])
def test_a_commit_into_the_log_is_a_change_of_the_source(source: Path, before: bool) -> None:
    writer = sqlite3.connect(source)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    if before:
        writer.execute("INSERT INTO events VALUES (-1, 'x')")
        writer.commit()
    with SqliteStore(source) as store:
        assert store.check_unchanged() == store.info().sha256
        writer.execute("INSERT INTO events VALUES (-2, 'x')")
        writer.commit()
        assert store.check_unchanged() is None
    writer.close()
