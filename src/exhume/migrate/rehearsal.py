"""What a dry run writes to: it takes rows as the tables of the target would, and keeps no more than their keys."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from exhume.migrate.signals import Signals
from exhume.migrate.targets import Target
from exhume.migrate.write import Rejected, clear_errors, insert_rows, insert_statement
from exhume.stores.interface import Cell, Row

#: Memory in KiB for keys before they go into a file of SQLite's own, which has no name.
_CACHE_KIB = 4096
_SESSION = ("app_name", "user_id", "session_id")


class Rehearsal:
    """Finds the rows that a `SqliteWriter` would reject. Call `close` at the end.

    Rows of one session come together, so of events only the keys of one session are kept at a time.
    """

    def __init__(self, target: Target, signals: Signals) -> None:
        self._signals = signals
        self._place = Path(tempfile.gettempdir())
        self._connection = sqlite3.connect("", isolation_level=None)
        signals.watch(self._connection)
        self._columns = dict(target.tables)
        self._keys: dict[str, frozenset[int]] = {}
        self._sessions: dict[str, object] = {}
        with clear_errors(self._place, signals):
            for pragma in ("journal_mode = MEMORY", "synchronous = OFF", f"cache_size = -{_CACHE_KIB}"):
                self._connection.execute(f"PRAGMA {pragma}")
            self._connection.execute("BEGIN")
            for statement in target.create:
                self._connection.execute(statement)
            for table, columns in self._columns.items():
                found = self._connection.execute("SELECT name FROM pragma_table_info(?) WHERE pk > 0", (table,))
                self._keys[table] = frozenset(columns.index(name) for (name,) in found)

    def insert(self, table: str, rows: Sequence[Row]) -> list[Rejected]:
        """Gives those rows that the table could not hold, as `SqliteWriter.insert` would."""
        columns, keys = self._columns[table], self._keys[table]
        statement = insert_statement(table, len(columns))
        bare = [tuple(cell if spot in keys else _bare(cell) for spot, cell in enumerate(row)) for row in rows]
        with clear_errors(self._place, self._signals):
            if not set(_SESSION) <= {columns[spot] for spot in keys}:
                return insert_rows(self._connection, statement, bare)
            rejected: list[Rejected] = []
            start = 0
            for session, group in groupby(bare, itemgetter(*(columns.index(name) for name in _SESSION))):
                if session != self._sessions.get(table):
                    self._sessions[table] = session
                    self._connection.execute(f'DELETE FROM "{table}"')
                together = list(group)
                found = insert_rows(self._connection, statement, together)
                rejected += [one._replace(place=one.place + start) for one in found]
                start += len(together)
            return rejected

    def close(self) -> None:
        """Forgets everything."""
        self._connection.close()


def _bare(cell: Cell) -> Cell:
    return None if cell is None else ""
