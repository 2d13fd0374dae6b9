"""What all readers of SQL layouts share: state rows, keys, filters, and how a cell that cannot be read is told."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from exhume.errors import NothingToLookAt
from exhume.events.interface import ReadOptions
from exhume.events.json_text import NotJson, parse
from exhume.events.model import Loss, Problem, StateRecord, TimeZoneReport
from exhume.events.times import epoch_seconds
from exhume.schema.detection import Detection, Layout
from exhume.stores.interface import Cell, Ordered, Row, Store, Table

NOT_NEEDED = TimeZoneReport(zone="UTC", proof="not needed")
#: Columns of keys: what is no text there is read as text, so rows come in the order of that.
_KEYS = frozenset({"app_name", "user_id", "id", "session_id", "event_id", "state_key"})
#: Texts, which are passed over, and the word that SQLite's JSON functions write for a number beyond their range.
_INF = re.compile(r'"(?:[^"\\]|\\.)*+"|\bInf\b', re.DOTALL)


def cell_text(cell: Cell) -> str:
    """A cell of a key as text: numbers spelt out, bytes as UTF-8 with surrogate escapes, NULL as the empty text."""
    if isinstance(cell, str):
        return cell
    if cell is None:
        return ""
    return cell.decode("utf-8", "surrogateescape") if isinstance(cell, bytes) else str(cell)


def cell_bytes(cell: Cell) -> bytes:
    """The bytes of a cell: a BLOB as it is, text in UTF-8 as stored, numbers spelt out, NULL as nothing."""
    return cell if isinstance(cell, bytes) else cell_text(cell).encode("utf-8", "surrogateescape")


def sha256_of(cell: Cell) -> str:
    """sha256 of the bytes of a cell, in hexadecimal."""
    return hashlib.sha256(cell_bytes(cell)).hexdigest()


def unreadable(column: str, reason: str, cell: Cell, *, rule: str = "EXH307", fatal: bool = True) -> Problem:
    """A problem with one cell."""
    return Problem(rule=rule, column=column, reason=reason, sha256=sha256_of(cell), fatal=fatal)


class TableReader:
    """Base of the readers: finds the tables of the layout, reads state rows, applies the filters.

    Columns that a table lacks are read as NULL, columns of the application's own are kept in `raw`.
    """

    layout: Layout
    capabilities: frozenset[str] = frozenset()
    #: Are whole numbers in time columns milliseconds?
    milliseconds = False

    def __init__(self, store: Store, detection: Detection, options: ReadOptions) -> None:
        self.store = store
        self.detection = detection
        self.options = options

    def time_zone(self) -> TimeZoneReport:
        return NOT_NEEDED

    def table(self, logical: str) -> Table | None:
        """The real table behind a logical name, None where the store has none."""
        return self.detection.tables.get(logical)

    def filters(self, table: Table, session_column: str | None) -> dict[str, str]:
        """The filters of the options as equalities on columns of this table."""
        wanted = {"app_name": self.options.app, "user_id": self.options.user}
        if session_column is not None:
            wanted[session_column] = self.options.session
        names = table.column_names
        return {name: value for name, value in wanted.items() if value is not None and name in names}

    def rows(
        self,
        table: Table,
        order_by: Sequence[str],
        session_column: str | None,
        *,
        columns: Sequence[str] | None = None,
        as_utf8: Sequence[str] = (),
    ) -> Iterator[Ordered]:
        """All rows of a table that pass the filters; without `columns`, with all columns in the table's own order."""
        names = table.column_names
        missing = [name for name in order_by if name not in names]
        if missing:
            what = f"The table {table.name} has no column {missing[0]}."
            raise NothingToLookAt(what, todo="Run `exhume detect` to see what the store is.")
        where = self.filters(table, session_column)
        keys = [name for name in order_by if name in _KEYS]
        given = names if columns is None else columns
        return self.store.rows(table.name, given, order_by=order_by, where=where or None, as_text=keys, as_utf8=as_utf8)

    def sessions(self) -> Iterator[StateRecord]:
        yield from self._states("sessions", ("app_name", "user_id", "id"))

    def app_states(self) -> Iterator[StateRecord]:
        yield from self._states("app_states", ("app_name",))

    def user_states(self) -> Iterator[StateRecord]:
        yield from self._states("user_states", ("app_name", "user_id"))

    def _states(self, logical: str, key: tuple[str, ...]) -> Iterator[StateRecord]:
        table = self.table(logical)
        if table is None:
            return
        names = table.column_names
        spot = {name: index for index, name in enumerate(names)}
        state_at, create_at, update_at = spot.get("state"), spot.get("create_time"), spot.get("update_time")
        for position, row in self.rows(table, key, "id" if "id" in key else None):
            parts = [cell_text(row[spot[name]]) for name in key]
            cell = None if state_at is None else row[state_at]
            state, text, losses, problems = read_state(cell)
            yield StateRecord(
                app_name=parts[0],
                user_id=parts[1] if len(parts) > 1 else None,
                session_id=parts[2] if len(parts) > 2 else None,
                state=state,
                state_text=text,
                create_time=self._time(row, create_at),
                update_time=self._time(row, update_at),
                position=position,
                problems=problems,
                columns=names,
                raw=row,
                losses=losses,
            )

    def _time(self, row: Row, index: int | None) -> float | None:
        return None if index is None else epoch_seconds(row[index], milliseconds=self.milliseconds)


class StateCell(NamedTuple):
    """A state cell: the parsed object, its text, the conversions that reading it took, and why it is none (EXH307)."""

    state: dict[str, object] | None
    text: str | None
    losses: tuple[Loss, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_state(cell: Cell) -> StateCell:
    """Reads a state cell.

    The text is as stored, but for the bare word Inf, with which SqliteSessionService 2.9.2 made all sessions of an app
    unreadable to ADK: it becomes Infinity, which ADK reads, and is told as a problem that refuses nothing.
    """
    if cell is None:
        return StateCell(None, None, problems=(unreadable("state", "The state is NULL", cell),))
    text = cell_text(cell)
    losses: tuple[Loss, ...] = ()
    problems: tuple[Problem, ...] = ()
    try:
        state, losses = parse(text, "state")
    except NotJson as error:
        mended = _with_infinity(text)
        if mended is None:
            reason = f"The state cannot be read: {error.what}"
            return StateCell(None, text, problems=(unreadable("state", reason, cell),))
        state, text = mended
        reason = "The state holds the bare word Inf, which ADK cannot read; it is taken for Infinity"
        problems = (unreadable("state", reason, cell, fatal=False),)
    if not isinstance(state, dict):
        reason = f"The state is {kind_of(state)}, not an object"
        return StateCell(None, text, problems=(unreadable("state", reason, cell),))
    return StateCell(state, text, losses, problems)


def _with_infinity(text: str) -> tuple[dict[str, object], str] | None:
    """The object and the text with Infinity for the bare word Inf; None where that does not make it an object."""
    if "Inf" not in text:
        return None
    mended = _INF.sub(lambda match: "Infinity" if match.group() == "Inf" else match.group(), text)
    try:
        state = parse(mended, "state").value
    except NotJson:
        return None
    return (state, mended) if isinstance(state, dict) else None


def kind_of(value: object) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list) else "an object"
