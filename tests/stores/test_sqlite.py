"""Reading SQLite files: rows, their order, odd cells and odd tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exhume.errors import NothingToLookAt
from exhume.events.readers.base import cell_text
from exhume.stores import open_store
from exhume.stores.interface import Cell, Column, Table
from exhume.stores.sqlite import SqliteStore, quoted

KEY = ("app_name", "user_id", "session_id", "timestamp")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., SqliteStore]]:
    """`make("CREATE TABLE ...", ...)` is a store on a new file that the statements made."""
    opened: list[SqliteStore] = []

    def build(*statements: str, rows: tuple[str, list[tuple[Cell, ...]]] | None = None) -> SqliteStore:
        path = tmp_path / f"made{len(opened)}.db"
        connection = sqlite3.connect(path)
        for statement in statements:
            connection.execute(statement)
        if rows is not None:
            connection.executemany(*rows)
        connection.commit()
        connection.close()
        opened.append(SqliteStore(path))
        return opened[-1]

    yield build
    for store in opened:
        store.close()


def test_a_real_database_comes_out_whole_and_in_key_order(adk_db: Callable[[str], Path]) -> None:
    path = adk_db("db-1.21.0-utc")
    connection = sqlite3.connect(path)
    wanted = connection.execute(
        "SELECT * FROM events ORDER BY app_name, user_id, session_id, timestamp, rowid"
    ).fetchall()
    connection.close()
    with SqliteStore(path) as store:
        events = store.tables()["events"]
        found = list(store.rows("events", events.column_names, order_by=KEY))
        assert store.count("events") == len(wanted)
    assert [ordered.row for ordered in found] == wanted
    assert len({ordered.position for ordered in found}) == len(wanted)


def test_tables_are_described_as_they_are(adk_db: Callable[[str], Path]) -> None:
    with closing(open_store(adk_db("db-2.13.0-utc"))) as store:
        tables = store.tables()
    assert tables["adk_internal_metadata"] == Table(
        "adk_internal_metadata",
        (Column("key", "VARCHAR(128)", nullable=False), Column("value", "VARCHAR(256)", nullable=False)),
        ("key",),
    )
    assert tables["events"].primary_key == ("id", "app_name", "user_id", "session_id")
    assert tables["events"].indexes == ("idx_events_app_user_session_ts_id",)
    assert tables["events"].columns[-1] == Column("event_data", "TEXT", nullable=True)


def test_without_an_order_rows_come_in_storage_order(make: Callable[..., SqliteStore]) -> None:
    store = make(
        "CREATE TABLE t (a)", rows=("INSERT INTO t (rowid, a) VALUES (?, ?)", [(30, "x"), (10, "y"), (20, "z")])
    )
    assert [(o.position, o.row) for o in store.rows("t", ["a"])] == [(10, ("y",)), (20, ("z",)), (30, ("x",))]


def test_columns_come_in_the_order_asked_for_and_filters_compare_exactly(make: Callable[..., SqliteStore]) -> None:
    store = make(
        "CREATE TABLE t (a TEXT COLLATE NOCASE, b)",
        rows=("INSERT INTO t VALUES (?, ?)", [("App", 1), ("app", 2), ("app", 3), ("app ", 4)]),
    )
    assert [o.row for o in store.rows("t", ["b", "a"], order_by=["b"], where={"a": "app"})] == [(2, "app"), (3, "app")]
    assert [o.row for o in store.rows("t", ["b"], where={"a": "' OR 1=1 --"})] == []
    assert [o.row for o in store.rows("t", ["b"], where={"a": "\ud800"})] == []


def test_an_own_collation_of_a_column_does_not_change_the_order(make: Callable[..., SqliteStore]) -> None:
    store = make(
        "CREATE TABLE t (a TEXT COLLATE NOCASE)", rows=("INSERT INTO t VALUES (?)", [("b",), ("A",), ("a",), ("B",)])
    )
    assert [o.row[0] for o in store.rows("t", ["a"], order_by=["a"])] == ["A", "B", "a", "b"]


def test_bad_utf8_and_nul_come_back_byte_for_byte(make: Callable[..., SqliteStore]) -> None:
    raw = [b"\xff\xfe", b"ok\x00ko", b"\xed\xa0\x80", "gr\u00fc\u00df".encode(), b""]
    store = make("CREATE TABLE t (a TEXT)", rows=("INSERT INTO t VALUES (CAST(? AS TEXT))", [(one,) for one in raw]))
    cells = [o.row[0] for o in store.rows("t", ["a"])]
    assert all(isinstance(cell, str) for cell in cells)
    assert [str(cell).encode("utf-8", "surrogateescape") for cell in cells] == raw
    assert [[o.row[0] for o in store.rows("t", ["a"], where={"a": str(cell)})] for cell in cells] == [
        [c] for c in cells
    ]


def test_bad_utf8_in_the_middle_repeats_and_skips_no_row(make: Callable[..., SqliteStore]) -> None:
    texts = [b"caf\xe9" if number == 700 else b"row %d" % number for number in range(1000)]
    store = make(
        "CREATE TABLE t (a TEXT, b)",
        rows=("INSERT INTO t VALUES (CAST(? AS TEXT), ?)", [(text, -place) for place, text in enumerate(texts)]),
    )
    forwards = store.rows("t", ["a"])
    backwards = store.rows("t", ["a"], order_by=["b"])
    pairs = list(zip(forwards, backwards, strict=True))  # both read at once, and both meet it
    assert [one.row[0] for one, _ in pairs] == [text.decode("utf-8", "surrogateescape") for text in texts]
    assert [other.position for _, other in pairs] == list(range(1000, 0, -1))


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_utf16_databases_are_read_in_the_order_of_utf8(make: Callable[..., SqliteStore], encoding: str) -> None:
    words = ["\ue000", "\U0001f600", "a", "\u0100", "B"]
    store = make(
        f"PRAGMA encoding = '{encoding}'",
        "CREATE TABLE t (a)",
        rows=("INSERT INTO t VALUES (?)", [(w,) for w in words]),
    )
    assert [o.row[0] for o in store.rows("t", ["a"], order_by=["a"])] == sorted(words)


def test_without_rowid_tables_are_read_in_the_order_of_their_key(make: Callable[..., SqliteStore]) -> None:
    store = make(
        "CREATE TABLE t (id TEXT PRIMARY KEY, a) WITHOUT ROWID",
        rows=("INSERT INTO t VALUES (?, ?)", [("c", 1), ("a", 2), ("b", 1)]),
    )
    assert [o.row for o in store.rows("t", ["id", "a"], order_by=["a"])] == [("b", 1), ("c", 1), ("a", 2)]
    assert [o.position for o in store.rows("t", ["id"])] == [1, 2, 3]


def test_columns_may_take_the_names_of_row_numbers(make: Callable[..., SqliteStore]) -> None:
    store = make("CREATE TABLE t (rowid TEXT, oid TEXT)", "INSERT INTO t VALUES ('x', 'y')")
    assert [(o.position, o.row) for o in store.rows("t", ["oid", "rowid"])] == [(1, ("y", "x"))]
    store = make("CREATE TABLE t (rowid, oid, _rowid_)", "INSERT INTO t VALUES (1, 2, 3)")
    assert [o.row for o in store.rows("t", ["_rowid_"], order_by=["oid"])] == [(3,)]


def test_names_are_quoted_whatever_they_hold(make: Callable[..., SqliteStore]) -> None:
    name, column = 'we"ird; DROP TABLE x --', 'sel"ect\n\u202e'
    store = make(f"CREATE TABLE {quoted(name)} ({quoted(column)})", f"INSERT INTO {quoted(name)} VALUES (7)")
    assert [o.row for o in store.rows(name, [column], order_by=[column])] == [(7,)]
    assert store.count(name) == 1


def test_views_virtual_tables_and_computed_columns_are_named_and_not_read(make: Callable[..., SqliteStore]) -> None:
    store = make(
        "CREATE TABLE real (a, b AS (zeroblob(900000000 + a)), c AS (a * 2) STORED)",
        "INSERT INTO real (a) VALUES (1)",
        "CREATE VIEW events AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x FROM r) SELECT x FROM r",
        "CREATE VIRTUAL TABLE sessions USING fts5(x)",
        "CREATE TRIGGER t AFTER INSERT ON real BEGIN DELETE FROM real; END",
    )
    assert store.tables()["real"].column_names == ("a", "c")
    assert not {"events", "sessions"} & set(store.tables())
    notes = " ".join(store.info().notes)
    assert all(word in notes for word in ("view events", "virtual table sessions", "real.b", "1 trigger"))
    with pytest.raises(NothingToLookAt, match="no table events"):
        store.rows("events", ["x"])


def test_only_reading_is_possible(make: Callable[..., SqliteStore]) -> None:
    store = make("CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
    connection = store._connection
    assert connection is not None
    for statement in ("DELETE FROM t", "ATTACH '/x' AS x", "SELECT load_extension('x')", "PRAGMA query_only = OFF"):
        with pytest.raises(sqlite3.DatabaseError):
            connection.execute(statement)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        store.connect().execute("DELETE FROM t")


cells = st.one_of(
    st.none(), st.integers(-3, 3), st.floats(-2, 2), st.text("aAb\u00e4\U0001f600", max_size=2), st.binary(max_size=2)
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(cells, cells), max_size=25))
def test_equal_keys_come_together_whatever_their_types(
    make: Callable[..., SqliteStore], rows: list[tuple[Cell, Cell]]
) -> None:
    store = make("CREATE TABLE t (a, b)", rows=("INSERT INTO t VALUES (?, ?)", list(rows)))
    found = list(store.rows("t", ["a", "b"], order_by=["a"]))
    keys = [o.row[0] for o in found]
    changes = sum(one != other for one, other in pairwise(keys))
    assert changes == max(len(set(keys)) - 1, 0)
    assert sorted(o.position for o in found) == list(range(1, len(rows) + 1))
    assert all(first.position < second.position for first, second in pairwise(found) if first.row[0] == second.row[0])
    texts = [key for key in keys if isinstance(key, str)]
    assert texts == sorted(texts)


def test_two_readers_at_once_do_not_disturb_each_other(make: Callable[..., SqliteStore]) -> None:
    store = make("CREATE TABLE t (a)", rows=("INSERT INTO t VALUES (?)", [(n,) for n in range(100)]))
    pairs = list(zip(store.rows("t", ["a"]), store.rows("t", ["a"], order_by=["a"]), strict=True))
    assert all(one.row == other.row for one, other in pairs)


def test_closing_is_final_and_may_happen_twice(make: Callable[..., SqliteStore]) -> None:
    store = make("CREATE TABLE t (a)")
    store.close()
    store.close()
    with pytest.raises(NothingToLookAt, match="closed"):
        store.count("t")


def test_rows_that_nobody_read_to_the_end_may_outlive_the_store(make: Callable[..., SqliteStore]) -> None:
    store = make("CREATE TABLE t (a)", rows=("INSERT INTO t VALUES (?)", [(n,) for n in range(100)]))
    rows = iter(store.rows("t", ["a"]))
    next(rows)
    store.close()
    # as at the end of `exhume export FILE | head`: no error, and no traceback of one that is ignored
    getattr(rows, "close")()  # noqa: B009 - an iterator to readers of the interface, a generator here


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16be"])
@pytest.mark.parametrize("without", ["", "WITHOUT ROWID"])
def test_keys_can_be_ordered_and_found_by_their_text(tmp_path: Path, encoding: str, without: str) -> None:
    connection = sqlite3.connect(tmp_path / "odd.db")
    connection.execute(f"PRAGMA encoding = '{encoding}'")
    connection.execute(f"CREATE TABLE t (n INTEGER PRIMARY KEY, a) {without}")
    cells = ["b", b"a", 10, 9, 1e20, 0.1 + 0.2, None, b"\xff", "\U0001f600", "\uffff", b"b", ""]
    connection.executemany(
        "INSERT INTO t (a) VALUES (?)" if not without else "INSERT INTO t VALUES (?, ?)",
        [(cell,) if not without else (number, cell) for number, cell in enumerate(cells)],
    )
    connection.commit()
    connection.close()
    with SqliteStore(tmp_path / "odd.db") as store:
        found = [row[0] for _, row in store.rows("t", ["a"], order_by=["a"], as_text=["a"])]
        texts = [cell_text(cell).encode("utf-8", "surrogateescape") for cell in found]
        assert texts == sorted(texts)
        assert len(found) == len(cells)
        wanted = {"b": ["b", b"b"], "1e+20": [1e20], "": [None, ""], "\udcff": [b"\xff"]}
        for text, same in wanted.items():
            rows = store.rows("t", ["a"], order_by=["a"], where={"a": text}, as_text=["a"])
            assert [row[0] for _, row in rows] == same


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
def test_texts_may_come_as_their_bytes_and_nothing_else_changes(
    make: Callable[..., SqliteStore], encoding: str
) -> None:
    cells: list[Cell] = ["", "plain", "Zürich 東京", "5", b"", b"blob\xff", b"5", 5, 1.0, 1e300, -(2**63), None]
    store = make(
        f"PRAGMA encoding = '{encoding}'",
        "CREATE TABLE t (id TEXT, body JSON COLLATE NOCASE, other TEXT)",
        rows=("INSERT INTO t VALUES (?, ?, ?)", [(f"{n:02}", cell, "x") for n, cell in enumerate(cells)]),
    )  # SQLite itself makes a number of the text "5" in such a column
    plain = [row for _, row in store.rows("t", ("body", "other"), order_by=("id",))]
    found = [row for _, row in store.rows("t", ("body", "other"), order_by=("id",), as_utf8=("body",))]
    for (before, _), (after, other) in zip(plain, found, strict=True):
        assert other == "x"
        if isinstance(before, str):
            assert after in (before, before.encode())
        else:
            assert (type(after), after) == (type(before), before)
    assert [type(row[0]) for row in found].count(str) == (0 if encoding == "UTF-8" else 3)
