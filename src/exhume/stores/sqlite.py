"""SQLite files as a store: strictly read only, one snapshot, rows in key order, nothing written beside the source."""

from __future__ import annotations

import functools
import itertools
import operator
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from exhume.errors import NothingToLookAt
from exhume.redact import printable
from exhume.stores.interface import Cell, Column, Ordered, StoreInfo, Table
from exhume.stores.sqlite_errors import FAILURES, LONGEST_VALUE, damaged, explained, primary_code
from exhume.stores.sqlite_file import PrivateFolder, SourceFile

#: Seconds to wait for another process that is writing.
_BUSY_SECONDS = 2.0
#: Memory in KiB for pages, and for the sorter before it spills into unlinked temporary files of the system's folder.
_CACHE_KIB = 4_000
#: Virtual machine steps between two looks at the budget, and the budget itself: a scan takes at most some sixteen
#: steps for each byte of the file, unless pages are linked so that few of them unfold to endlessly many rows.
_STEPS_PER_LOOK = 200_000
_STEPS_AT_LEAST = 4_000_000
_STEPS_PER_BYTE = 16
#: Row numbers that are looked at together when rows are counted.
_ROWS_AT_ONCE = 10_000
#: Notes of a store that are told; a hostile schema can give cause for any number.
_NOTES = 20

_SELECT_ONLY = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_TRANSACTION}
)
_TEXT = functools.partial(str, encoding="utf-8", errors="surrogateescape")
_COLLATION = "exhume_utf8"
#: SQL function: the bytes of a key that is no text, as readers spell it.
_KEY_BYTES = "exhume_key_bytes"


class SqliteStore:
    """One SQLite file, opened for reading.

    Only rows of ordinary tables are offered: a view, a virtual table or a column computed at reading time is code of
    whoever made the file, and is named in `info().notes` instead. Reading never goes through an index: one that is
    damaged or forged could hide rows.

    Args:
        path: the database file.
        name: what reports call it; redacted.

    Raises:
        NothingToLookAt: missing, no SQLite database, damaged, encrypted, or locked.
    """

    def __init__(self, path: Path, *, name: str | None = None) -> None:
        self._name = name or str(path)
        self._folder: PrivateFolder | None = None
        self._connection: sqlite3.Connection | None = None
        self._file = SourceFile(path, name=self._name)
        try:
            self._log_state = self._file.log_state()
            self._sidecars = self._file.sidecars()
            self._sha256 = self._file.sha256()
            self._notes: list[str] = []
            self._steps_left = 0
            self._exhausted = False
            self._counts: dict[str, int] = {}
            self._other_keys: dict[tuple[str, ...], bool] = {}
            self._collation = "BINARY" if self._file.header.encoding == "utf-8" else _COLLATION
            self._uri = self._choose_uri()
            self._connection = self._open_snapshot()
            self._tables, self._row_names = self._read_schema()
            self._connection.set_authorizer(_authorize)
        except BaseException:
            self.close()
            raise

    def info(self) -> StoreInfo:
        more = len(self._notes) - _NOTES
        return StoreInfo(
            name=self._name,
            kind="sqlite",
            dialect="sqlite",
            sha256=self._sha256,
            sidecars=self._sidecars,
            notes=(*self._notes[:_NOTES], f"And {more} more such notes.") if more > 0 else tuple(self._notes),
        )

    def tables(self) -> Mapping[str, Table]:
        return self._tables

    def count(self, table: str) -> int:
        """Number of rows, counted on the table itself and not on an index of it.

        Raises:
            NothingToLookAt: the file is damaged there.
        """
        known = self._counts.get(self._table(table).name)
        if known is None:
            known = self._counts[table] = self._count_in_order(self._tables[table])
        return known

    def rows(
        self,
        table: str,
        columns: Sequence[str],
        *,
        order_by: Sequence[str] = (),
        where: Mapping[str, str] | None = None,
        as_text: Sequence[str] = (),
        as_utf8: Sequence[str] = (),
    ) -> Iterator[Ordered]:
        """As `Store.rows`; one row at a time is in memory, and the sorter holds keys alone.

        Raises:
            NothingToLookAt: the file is damaged there.
        """
        real = self._table(table)
        name, row_name = quoted(real.name), self._row_names[real.name]
        # in a file in UTF-16 the cast would give that
        raw = frozenset(as_utf8) if self._collation == "BINARY" else frozenset()
        wanted = ", ".join(
            _bytes_of(f"t.{quoted(column)}") if column in raw else f"t.{quoted(column)}" for column in columns
        )
        spelt = frozenset(as_text) if self._has_other_keys(real, as_text) else frozenset()
        keys = [
            self._text_form(column) if column in spelt else f"s.{quoted(column)} COLLATE {self._collation}"
            for column in order_by
        ]
        bound = {
            self._text_form(column) if column in spelt else f"s.{quoted(column)} COLLATE BINARY": (
                ("?", _utf8(text)) if column in spelt else _bound(text)
            )
            for column, text in (where or {}).items()
        }
        conditions = " AND ".join(f"{column} = {placeholder}" for column, (placeholder, _) in bound.items())
        filtered = f" WHERE {conditions}" if conditions else ""
        values = tuple(value for _, value in bound.values())
        if row_name is None:  # WITHOUT ROWID: storage order is the order of the primary key, and has no number
            keys += [f"s.{quoted(column)}" for column in real.primary_key]
            listed = ", ".join(f"s.{quoted(column)}" for column in columns)
            ordered = f" ORDER BY {', '.join(keys)}" if keys else ""
            statement = f"SELECT {listed} FROM {name} AS s NOT INDEXED{filtered}{ordered}"
            return (Ordered(number, row) for number, row in enumerate(self._run(statement, values), start=1))
        if not keys and not filtered:
            return self._placed(f"SELECT t.{row_name}, {wanted} FROM {name} AS t NOT INDEXED ORDER BY t.{row_name}", ())
        # Wide rows never enter the sorter: it orders row numbers, and rows are looked up one by one. LIMIT -1 keeps
        # SQLite from moving or dropping the inner ORDER BY, LEFT JOIN keeps the order of the loops.
        ordered = ", ".join([*keys, f"s.{row_name}"])
        statement = (
            f"SELECT t.{row_name}, {wanted} FROM (SELECT s.{row_name} AS r FROM {name} AS s NOT INDEXED{filtered}"
            f" ORDER BY {ordered} LIMIT -1) AS k LEFT JOIN {name} AS t ON t.{row_name} = k.r"
        )
        self.count(real.name)  # row numbers must be known to be unique before rows are looked up by them
        return self._placed(statement, values)

    def check_unchanged(self) -> str | None:
        log = self._file.log_state()
        if log is not None and log != self._log_state:
            return None  # commits of another process lie in the log, and the file itself may be as it was
        return self._file.sha256()

    def connect(self) -> sqlite3.Connection:
        """A second read-only connection to the same bytes, for a library that wants its own; the caller closes it."""
        return self._connect(self._uri)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._file.close()
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _choose_uri(self) -> str:
        """What to read from: the file in place, or a private copy where SQLite would write beside the file."""
        sizes = {sidecar.kind: sidecar.size for sidecar in self._sidecars}
        if sizes.get("wal"):
            self._notes.append("The write-ahead log beside the file holds commits; both were read from a private copy.")
            return self._private_copy("wal")
        header = self._file.header
        if odd := self._file.odd_sidecars():
            self._notes.append(f"{', '.join(odd)} beside the file is no regular file and was not used.")
            return _uri(self._file.path, "mode=ro&immutable=1")
        if not sizes.get("journal") and header.pages and self._file.size < header.pages * header.page_size:
            raise NothingToLookAt(
                f"{self._name} is cut off: {self._file.size} of {header.pages * header.page_size} bytes are there.",
                todo="Get the whole file, or try `sqlite3 FILE .recover`.",
            )
        # In WAL mode without a log nobody has the file open. SQLite would create a log to read it, unless immutable.
        return _uri(self._file.path, "mode=ro&immutable=1" if header.wal else "mode=ro")

    def _private_copy(self, kind: str) -> str:
        self._folder = PrivateFolder()
        copy = self._file.copy(self._folder.path, (kind,))
        return _uri(copy, "mode=rw" if kind == "journal" else "mode=ro")

    def _open_snapshot(self) -> sqlite3.Connection:
        try:
            return self._begin(self._uri)
        except FAILURES as error:
            hot = any(sidecar.kind == "journal" and sidecar.size for sidecar in self._sidecars)
            if not hot or primary_code(error) not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                raise explained(self._name, error, exhausted=self._exhausted) from error
        if self._file.has_super_journal():
            raise NothingToLookAt(
                f"{self._name} has a hot journal of a transaction over several databases.",
                todo="Open it once with the program that wrote it, or delete the journal from a copy of both files.",
            )
        self._notes.append("A transaction was cut off; it was rolled back in a private copy, and that was read.")
        self._uri = self._private_copy("journal")
        try:
            return self._begin(self._uri)
        except FAILURES as error:
            raise explained(self._name, error, exhausted=self._exhausted) from error

    def _begin(self, uri: str) -> sqlite3.Connection:
        connection = self._connect(uri)
        try:
            connection.text_factory = str  # until a text is not UTF-8, see `_run`
            connection.set_progress_handler(self._look_at_budget, _STEPS_PER_LOOK)
            self._steps_left += self._budget()
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()  # takes the snapshot
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, uri: str) -> sqlite3.Connection:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_SECONDS)
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            connection.text_factory = _TEXT
            connection.create_function(_KEY_BYTES, 1, _utf8_of, deterministic=True)
            if self._collation == _COLLATION:
                connection.create_collation(_COLLATION, _compare)
            for pragma in (
                "query_only = ON",
                "trusted_schema = OFF",
                "cell_size_check = ON",
                "mmap_size = 0",
                "temp_store = FILE",
                f"cache_size = -{_CACHE_KIB}",
            ):
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _read_schema(self) -> tuple[dict[str, Table], dict[str, str | None]]:
        """All ordinary tables, and for each the name under which its row numbers can be asked for, if it has any."""
        tables: dict[str, Table] = {}
        row_names: dict[str, str | None] = {}
        entries = list(self._run("SELECT type, name, tbl_name, rootpage FROM sqlite_master"))
        indexes: dict[str, list[str]] = {}
        for kind, name, owner, _ in entries:
            if kind == "index" and not str(name).startswith("sqlite_"):
                indexes.setdefault(str(owner), []).append(str(name))
        for kind, name, _, page in entries:
            if not isinstance(name, str) or name.startswith("sqlite_") or kind not in ("table", "view"):
                continue
            if kind == "view" or not isinstance(page, int) or page <= 0:
                what = "view" if kind == "view" else "virtual table"
                self._notes.append(f"The {what} {printable(name, limit=80)} is not read: it is code, not data.")
            elif not _speakable(name):
                self._notes.append(f"The table {printable(name, limit=80)} is not read: its name is not text.")
            else:
                columns, key = self._read_columns(name)
                tables[name] = Table(name, columns, key, tuple(sorted(indexes.get(name, ()))))
                row_names[name] = self._row_name(tables[name])
        if triggers := sum(entry[0] == "trigger" for entry in entries):
            self._notes.append(f"The file holds {triggers} triggers; reading does not run them.")
        return tables, row_names

    def _read_columns(self, table: str) -> tuple[tuple[Column, ...], tuple[str, ...]]:
        columns, key = [], []
        statement = 'SELECT name, type, "notnull", pk, hidden FROM pragma_table_xinfo(?)'
        for name, declared, not_null, key_place, hidden in self._run(statement, (table,)):
            if hidden in (0, 3) and _speakable(str(name)):  # 3: computed once, when the row was written
                columns.append(Column(str(name), str(declared), nullable=not not_null))
                if isinstance(key_place, int) and key_place:
                    key.append((key_place, str(name)))
            else:
                shown = f"{printable(table, limit=80)}.{printable(name, limit=80)}"
                self._notes.append(
                    f"The column {shown} is not read: it is computed when read, or its name is not text."
                )
        return tuple(columns), tuple(name for _, name in sorted(key))

    def _row_name(self, table: Table) -> str | None:
        taken = {column.lower() for column in table.column_names}
        for alias in ("rowid", "_rowid_", "oid"):
            if alias not in taken:
                assert self._connection is not None
                try:
                    self._connection.execute(f"SELECT {alias} FROM {quoted(table.name)} LIMIT 0").close()
                except FAILURES as error:
                    if primary_code(error) == sqlite3.SQLITE_ERROR and not isinstance(error, MemoryError):
                        return None  # no such column: the table is WITHOUT ROWID
                    raise explained(self._name, error, exhausted=self._exhausted) from error
                return alias
        return None

    def _placed(self, statement: str, values: tuple[str | bytes, ...]) -> Iterator[Ordered]:
        # tuple.__new__ is what Ordered(...) comes to; this runs once for every row of every table
        make, kind = tuple.__new__, Ordered
        for row in self._run(statement, values):
            position = row[0]
            if position.__class__ is not int:  # the scan saw it, the look-up does not find it
                raise damaged(self._name, "row numbers are out of order")
            yield make(kind, (position, row[1:]))

    def _count_in_order(self, table: Table) -> int:
        """Counts the rows and checks that row numbers ascend, as they do in every table that SQLite wrote.

        In a damaged or forged one a row could hide behind another of the same number. `count(*)` would also be one
        single step of SQLite's machine, which no budget can stop.
        """
        row_name = self._row_names[table.name]
        if row_name is None:
            return sum(1 for _ in self._run(f"SELECT 1 FROM {quoted(table.name)} NOT INDEXED"))
        number = 0
        last: list[Any] = [-(2**63) - 1]
        rows: Iterator[tuple[Any, ...]] = self._run(f"SELECT {row_name} FROM {quoted(table.name)} NOT INDEXED")
        while positions := [position for (position,) in itertools.islice(rows, _ROWS_AT_ONCE)]:
            if set(map(type, positions)) != {int} or not all(map(operator.lt, [*last, *positions], positions)):
                raise damaged(self._name, "row numbers are out of order")
            number += len(positions)
            last = positions[-1:]
        return number

    def _has_other_keys(self, table: Table, columns: Sequence[str]) -> bool:
        """Is a cell in these columns no text? SQLite orders numbers before all texts and BLOBs behind them."""
        if not columns:
            return False
        asked = (table.name, *columns)
        known = self._other_keys.get(asked)
        if known is None:
            cells = [f"{quoted(column)} COLLATE BINARY" for column in columns]
            other = " OR ".join(f"{cell} < '' OR {cell} >= x'' OR {cell} IS NULL" for cell in cells)
            found = self._run(f"SELECT 1 FROM {quoted(table.name)} NOT INDEXED WHERE {other} LIMIT 1")
            known = self._other_keys[asked] = next(found, None) is not None
        return known

    def _text_form(self, column: str) -> str:
        """Expression for the UTF-8 bytes of a key as text; no function is called for texts that are UTF-8 already."""
        cell = f"s.{quoted(column)} COLLATE BINARY"
        text = f"CAST({cell} AS BLOB)" if self._collation == "BINARY" else f"{_KEY_BYTES}({cell})"
        return (
            f"CASE WHEN {cell} IS NULL THEN x'' WHEN {cell} >= x'' THEN {cell}"
            f" WHEN {cell} < '' THEN {_KEY_BYTES}({cell}) ELSE {text} END"
        )

    def _table(self, name: str) -> Table:
        try:
            return self._tables[name]
        except KeyError:
            raise NothingToLookAt(f"{self._name} has no table {printable(name, limit=80)}.") from None

    def _run(self, statement: str, values: tuple[str | bytes, ...] = ()) -> Iterator[tuple[Cell, ...]]:
        """Rows of one statement; every error of SQLite comes out as an error for a person.

        Texts are taken for UTF-8 at first, which sqlite3 reads much faster than through a function of ours. At the
        first one that is not, the statement runs again with the function, past the rows that were given already: in
        one snapshot it gives the same rows in the same order.
        """
        if self._connection is None:
            raise NothingToLookAt(f"{self._name} is closed already.")
        given = 0
        try:
            self._steps_left += self._budget()
            cursor = self._connection.execute(statement, values)
            try:
                for row in cursor:
                    given += 1
                    yield row
                return
            except sqlite3.OperationalError as error:
                # errors of SQLite itself carry its code
                if self._connection.text_factory is _TEXT or hasattr(error, "sqlite_errorcode"):
                    raise
            finally:
                self._finish(cursor)
            self._connection.text_factory = _TEXT
            self._steps_left += self._budget()
            cursor = self._connection.execute(statement, values)
            try:
                yield from itertools.islice(cursor, given, None)
            finally:
                self._finish(cursor)
        except FAILURES as error:
            raise explained(self._name, error, exhausted=self._exhausted) from error

    def _finish(self, cursor: sqlite3.Cursor) -> None:
        # rows that nobody read to the end may outlive the store, which ended the statement when it was closed
        if self._connection is not None:
            cursor.close()

    def _budget(self) -> int:
        return _STEPS_AT_LEAST + _STEPS_PER_BYTE * self._file.size

    def _look_at_budget(self) -> int:
        self._steps_left -= _STEPS_PER_LOOK
        self._exhausted = self._steps_left < 0
        return self._exhausted


def quoted(identifier: str) -> str:
    """An identifier for SQLite, whatever characters it holds."""
    return '"' + identifier.replace('"', '""') + '"'


def _bytes_of(cell: str) -> str:
    """Expression for the bytes of a text; what is no text stays. SQLite orders numbers before texts and texts before
    BLOBs, and a cast changes no BLOB; `typeof` would be a function, of which the connection allows none."""
    return f"CASE WHEN {cell} COLLATE BINARY >= '' THEN CAST({cell} AS BLOB) ELSE {cell} END"


def _uri(path: Path, query: str) -> str:
    return f"file:{quote(str(path).encode('utf-8', 'surrogateescape'))}?{query}"


def _bound(text: str) -> tuple[str, str | bytes]:
    """Placeholder and value for a text to compare with; one with surrogate escapes is compared by its bytes."""
    if _speakable(text):
        return "?", text
    return "CAST(? AS TEXT)", _utf8(text)


def _utf8(text: str) -> bytes:
    """The bytes of a text as a store gives it, or of one that no store gives."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _utf8_of(cell: Cell) -> bytes:
    """A key as readers spell it (`events.readers.base.cell_text`): numbers as Python writes them."""
    return cell if isinstance(cell, bytes) else b"" if cell is None else _utf8(str(cell))


def _speakable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _compare(first: str, second: str) -> int:
    """Order of UTF-8 bytes, which is that of code points; for databases in UTF-16, whose own binary order differs."""
    return (first > second) - (first < second)


def _authorize(action: int, _first: str | None, second: str | None, _database: str | None, _source: str | None) -> int:
    """Once the schema is read, only reading, ordering and counting rows is needed, so nothing else is possible."""
    allowed = action in _SELECT_ONLY and (action != sqlite3.SQLITE_FUNCTION or second in ("count", _KEY_BYTES))
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY
