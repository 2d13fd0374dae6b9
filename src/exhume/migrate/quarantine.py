"""The quarantine file: every refused row as it was stored, with the reasons, in a SQLite database of its own.

Tables: `about` (what ran on what), `rows` (one refused row: table, key, hop), `problems` (its reasons, with the hash of
the value), `cells` (its values by column, bytes and types exact). Only `about` differs from run to run.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from exhume import __version__
from exhume.migrate.interface import RefusedRow
from exhume.stores.interface import Cell

_TABLES = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE rows (
    row INTEGER PRIMARY KEY,
    table_name TEXT NOT NULL,
    app_name TEXT, user_id TEXT, session_id TEXT, event_id TEXT,
    hop TEXT NOT NULL,
    sha256 TEXT NOT NULL
);
CREATE INDEX rows_by_key ON rows (table_name, app_name, user_id, session_id, event_id);
CREATE TABLE problems (
    row INTEGER NOT NULL REFERENCES rows (row),
    hop TEXT NOT NULL,
    rule TEXT NOT NULL,
    column_name TEXT NOT NULL,
    reason TEXT NOT NULL,
    fatal INTEGER NOT NULL,
    globals TEXT NOT NULL,
    byte_offset INTEGER,
    sha256 TEXT NOT NULL
);
CREATE INDEX problems_by_row ON problems (row);
CREATE TABLE cells (
    row INTEGER NOT NULL REFERENCES rows (row),
    column_name TEXT NOT NULL,
    value,
    PRIMARY KEY (row, column_name)
) WITHOUT ROWID;
"""
_FIND = (
    "SELECT row FROM rows"
    " WHERE table_name IS ? AND app_name IS ? AND user_id IS ? AND session_id IS ? AND event_id IS ? AND hop <> ?"
)


class Quarantine:
    """A quarantine file that is being filled. `count` is the number of rows in it."""

    def __init__(self, path: Path, *, source: str, source_sha256: str | None, layouts: tuple[str, ...]) -> None:
        self.path = path
        self.count = 0
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.executescript("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;" + _TABLES + "BEGIN;")
        about = {
            "format": "exhume.quarantine/1",
            "exhume_version": __version__,
            "source": source,
            "source_sha256": source_sha256,
            "path": " -> ".join(layouts),
            "made_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
        self._connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())

    def add(self, refused: RefusedRow) -> bool:
        """Keeps a row; False when an earlier hop has put a row of that key there: then only the reasons are new.

        Raises:
            sqlite3.Error: the file cannot be written.
        """
        key = [_stored(part) for part in (refused.table, *refused.key)]
        hop = refused.hop
        earlier = self._connection.execute(_FIND, (*key, hop)).fetchone()
        row = earlier[0] if earlier else self._add_row(refused, key)
        self._connection.executemany(
            "INSERT INTO problems VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (row, hop, one.rule, _stored(one.column), _stored(one.reason), one.fatal,
                 json.dumps(one.globals), one.offset, one.sha256)
                for one in refused.problems
            ],
        )  # fmt: skip
        return earlier is None

    def _add_row(self, refused: RefusedRow, key: list[Cell]) -> int:
        self.count += 1
        self._connection.execute(
            "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (self.count, *key, refused.hop, row_hash(refused.raw))
        )
        for column, cell in refused.raw.items():
            value = _stored(cell)
            # text that is not UTF-8 can only be bound as bytes, and must stay text of those bytes
            expression = "CAST(? AS TEXT)" if isinstance(cell, str) and isinstance(value, bytes) else "?"
            self._connection.execute(
                f"INSERT INTO cells VALUES (?, ?, {expression})", (self.count, _stored(column), value)
            )
        return self.count

    def finish(self) -> None:
        """Writes everything out and closes the file.

        Raises:
            sqlite3.Error: the file cannot be written.
        """
        self._connection.execute("COMMIT")
        self._connection.close()

    def discard(self) -> None:
        """Closes the file; without `finish` it is worth nothing. May be called again."""
        self._connection.close()


def row_hash(raw: Mapping[str, Cell]) -> str:
    """sha256 over the names, types and bytes of a row's cells, in order of the columns."""
    digest = hashlib.sha256()
    for column, cell in raw.items():
        name, value = cell_bytes(column), cell_bytes(cell)
        kind = type(cell).__name__.encode()
        digest.update(b"%d:%s%d:%s%d:%s" % (len(name), name, len(kind), kind, len(value), value))
    return digest.hexdigest()


def cell_bytes(cell: Cell) -> bytes:
    """A cell's bytes: of text its UTF-8 as stored, of a number its decimal form."""
    if isinstance(cell, bytes):
        return cell
    return b"" if cell is None else _text_bytes(str(cell))


def _text_bytes(text: str) -> bytes:
    """The bytes as a store gave them, or a visible spelling of text that no store gave (a name inside a pickle)."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def _stored(cell: Cell) -> Cell:
    """The cell, or its bytes where it is text that SQLite cannot take."""
    if isinstance(cell, str) and not cell.isascii():
        try:
            cell.encode()
        except UnicodeEncodeError:
            return _text_bytes(cell)
    return cell
