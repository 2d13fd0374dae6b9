"""Writes one layout into a new SQLite file, and reads it back to prove what is there."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from exhume.errors import Incomplete
from exhume.migrate.signals import Signals
from exhume.migrate.targets import Target
from exhume.stores.interface import Row

#: Pages of SQLite in memory, for the scattered inserts into the primary key's index: 4 MiB.
_CACHE_KIB = 4096
_FETCH = 200


class Rejected(NamedTuple):
    """A row that SQLite would not take: its place in the batch, and why."""

    place: int
    reason: str


class SqliteWriter:
    """A new file of one layout. Rows are in one transaction until `finish`; the marks of the layout come last.

    Every method may raise `Incomplete` (the disk is full, the file cannot be written) or `Interrupted`.
    """

    def __init__(self, path: Path, target: Target, signals: Signals) -> None:
        self.path = path
        self._target = target
        self._signals = signals
        self._written = dict.fromkeys(target.tables, 0)
        self._digests = {name: hashlib.sha256() for name in target.tables}
        self._insert = {name: insert_statement(name, len(columns)) for name, columns in target.tables.items()}
        # no journal on disk: until it is renamed the file is worth nothing to anybody, and a failure removes it
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = MEMORY")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        signals.watch(self._connection)
        with clear_errors(path, signals):
            self._connection.execute("BEGIN")
            for statement in target.create:
                self._connection.execute(statement)

    @property
    def written(self) -> dict[str, int]:
        """Rows in each table so far."""
        return self._written

    def insert(self, table: str, rows: Sequence[Row]) -> list[Rejected]:
        """Adds rows; gives those that the table cannot hold (a key that is there already, text that is not UTF-8)."""
        with clear_errors(self.path, self._signals):
            rejected = insert_rows(self._connection, self._insert[table], rows)
        if not rejected:
            self._account(table, rows)
        else:
            out = {one.place for one in rejected}
            self._account(table, [row for place, row in enumerate(rows) if place not in out])
        return rejected

    def fill_state_rows(self) -> dict[str, int]:
        """Adds the state rows without which newer ADK refuses to append (google-adk 2.13.0,
        `DatabaseSessionService.append_event`): table -> rows added. Their time is that of the newest session."""
        added: dict[str, int] = {}
        with clear_errors(self.path, self._signals):
            for fill in self._target.fills:
                missing = self._connection.execute(fill.missing)
                while rows := missing.fetchmany(_FETCH):
                    self._connection.executemany(self._insert[fill.table], rows)
                    self._account(fill.table, rows)
                    added[fill.table] = added.get(fill.table, 0) + len(rows)
        return added

    def orphans(self) -> int:
        """Number of events without their session."""
        if self._target.orphans is None:
            return 0
        with clear_errors(self.path, self._signals):
            return int(self._connection.execute(self._target.orphans).fetchone()[0])

    def finish(self) -> None:
        """Commits, reads every row back, then adds the layout's marks.

        Raises:
            Incomplete: what is in the file is not what was written.
        """
        with clear_errors(self.path, self._signals):
            self._connection.execute("COMMIT")
            for table in self._target.tables:
                count, digest = self._read_back(table)
                if (count, digest) != (self._written[table], self._digests[table].digest()):
                    raise Incomplete(
                        f"table {table} does not read back as it was written"
                        f" ({count} rows, {self._written[table]} written).",
                        todo="Check the disk and its memory, then run again.",
                    )
            for table, row in self._target.marks:
                self._connection.execute(insert_statement(table, len(row)), row)

    def close(self) -> None:
        """Closes the file; without `finish` it is worth nothing. May be called again."""
        self._connection.close()

    def _account(self, table: str, rows: Sequence[Row]) -> None:
        self._digests[table].update(_canonical(rows))
        self._written[table] += len(rows)

    def _read_back(self, table: str) -> tuple[int, bytes]:
        """Number of rows and their digest, read by a connection of its own that has nothing in memory yet."""
        digest, count = hashlib.sha256(), 0
        connection = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            self._signals.watch(connection)
            columns = ", ".join(_quoted(column) for column in self._target.tables[table])
            rows = connection.execute(f"SELECT {columns} FROM {_quoted(table)} ORDER BY rowid")
            for batch in _batches(rows):
                digest.update(_canonical(batch))
                count += len(batch)
        finally:
            connection.close()
        return count, digest.digest()


class clear_errors:  # noqa: N801 - a context manager, which reads as a verb
    """Turns errors of SQLite into ones that say what happened; a signal that ended a statement comes first."""

    def __init__(self, path: Path, signals: Signals) -> None:
        self._path, self._signals = path, signals

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if not isinstance(error, sqlite3.Error):
            return
        self._signals.check()
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_FULL:
            raise Incomplete(
                "the disk is full; nothing was left at the destination.",
                todo="Free some space, or choose another place, and run again.",
            ) from error
        raise Incomplete(
            f"the destination cannot be written: {error}; nothing was left there.", todo="Check the disk and run again."
        ) from error


def _batches(rows: sqlite3.Cursor) -> Iterator[list[Any]]:
    while batch := rows.fetchmany(_FETCH):
        yield batch


def _canonical(rows: Sequence[Row]) -> bytes:
    """One spelling of rows: text as it is, other values marked, cells and rows apart."""
    parts = []
    for row in rows:
        try:
            parts.append("\x1f".join(row))  # type: ignore[arg-type]  # nearly all rows are text alone
        except TypeError:
            parts.append("\x1f".join([cell if isinstance(cell, str) else f"\x1e{cell!r}" for cell in row]))
    parts.append("")
    return "\x1d".join(parts).encode("utf-8", "surrogatepass")


def insert_rows(connection: sqlite3.Connection, statement: str, rows: Sequence[Row]) -> list[Rejected]:
    """Inserts rows; gives those that SQLite would not take, while the others are in."""
    rejected: list[Rejected] = []
    start = 0
    while start < len(rows):
        before = connection.total_changes
        try:
            connection.executemany(statement, rows[start:] if start else rows)
            break
        except (sqlite3.IntegrityError, sqlite3.DataError, UnicodeEncodeError, OverflowError) as error:
            # the rows before the one that failed are in
            start += connection.total_changes - before
            rejected.append(Rejected(start, _why(error)))
            start += 1
    return rejected


def insert_statement(table: str, columns: int) -> str:
    """Adds one row to a table of so many columns."""
    return f"INSERT INTO {_quoted(table)} VALUES ({', '.join('?' * columns)})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _why(error: Exception) -> str:
    if isinstance(error, sqlite3.IntegrityError):
        code = getattr(error, "sqlite_errorcode", 0)
        if code in (sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE):
            return "another row has the same key once keys are text"
        return "a column that must have a value has none"
    if isinstance(error, UnicodeEncodeError):
        return "the row holds text that is not valid UTF-8"
    return "a value is larger than the table can hold"
