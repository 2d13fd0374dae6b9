"""Exported event logs as a store: session JSON, lists of sessions or events, JSON Lines, Vertex AI listings.

The file is taken apart once, into a private temporary database that orders what it holds; values stay text until a
reader parses them. Known forms, all in camelCase and in snake_case:

* one session: what `adk run --save_session` writes and `GET /apps/{a}/users/{u}/sessions/{s}` gives (google-adk 1.x and
  2.x: the Session model), a list of them, or an object with a list of them under `sessions`;
* a list of events, such as ADK Java gives, or JSON Lines of events, bare or as `exhume export` writes them;
* pages of `GET .../reasoningEngines/{r}/sessions/{s}/events` of Vertex AI (`sessionEvents`).
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from exhume.errors import NothingToLookAt, UsageError
from exhume.redact import printable
from exhume.stores.export_forms import (
    EVENT_MARKS,
    Key,
    after,
    event_of,
    first_of,
    is_vertex,
    key_of,
    scalar,
    seconds_of,
    text_of,
)
from exhume.stores.interface import Cell, Column, Ordered, Row, Store, StoreInfo, Table
from exhume.stores.json_items import NotItemsError, Span, array_items, load, object_members, root

#: One JSON document is read at once, so it must fit into memory several times; JSON Lines may be of any size.
MOST_DOCUMENT = 64 << 20
MOST_LINE = 32 << 20
_BATCH = 500
_CHUNK = 1 << 20


def _table(name: str, key: int, *columns: tuple[str, str]) -> Table:
    return Table(name, tuple(Column(*column) for column in columns), tuple(column for column, _ in columns[:key]))


_TABLES = {
    table.name: table
    for table in (
        _table("app_states", 1, ("app_name", "TEXT"), ("state", "TEXT"), ("update_time", "REAL")),
        _table("user_states", 2, ("app_name", "TEXT"), ("user_id", "TEXT"), ("state", "TEXT"), ("update_time", "REAL")),
        _table(
            "sessions",
            3,
            ("app_name", "TEXT"),
            ("user_id", "TEXT"),
            ("id", "TEXT"),
            ("state", "TEXT"),
            ("create_time", "REAL"),
            ("update_time", "REAL"),
            ("merged", "INTEGER"),  # does `state` hold the states of app and user, too?
        ),
        _table(
            "events",
            4,
            ("app_name", "TEXT"),
            ("user_id", "TEXT"),
            ("session_id", "TEXT"),
            ("id", "TEXT"),
            ("invocation_id", "TEXT"),
            ("timestamp", "REAL"),
            ("event_data", "TEXT"),
        ),
    )
}


_NESTING = ("sessions", "events", "sessionEvents", "session_events")
_OF_SESSIONS = frozenset({"lastUpdateTime", "last_update_time", "sessionState", "session_state"})
_NOT_BARE = _OF_SESSIONS.union(_NESTING)
#: Lines of `exhume export` that are no events.
_OWN_LINES = ("session", "app_state", "user_state")
#: Below this an object is parsed to see what it is; above, only its members are looked up.
_SMALL = 1 << 16


class ExportStore:
    """One exported file. Opening reads all of it; closing removes the temporary database."""

    def __init__(self, path: Path, *, name: str) -> None:
        self._path = path
        self._name = printable(name)
        self._notes: list[str] = []
        # an empty name makes SQLite keep the database in a file of its own that nobody else sees, gone on close
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("PRAGMA cache_size = -8192")
        self._database.execute("PRAGMA temp_store = FILE")
        for table in _TABLES.values():
            columns = ", ".join(f'"{column.name}"' for column in table.columns)
            self._database.execute(f'CREATE TABLE "{table.name}" ({columns})')
        self._counter = 0
        self._recognised = False
        self._open_ended = False
        try:
            self._sha256 = self._hash()
            self._read()
        except BaseException:
            self.close()
            raise

    # ---------------------------------------------------------------- the store interface

    def info(self) -> StoreInfo:
        return StoreInfo(self._name, "export", "json", self._sha256, notes=tuple(self._notes))

    def tables(self) -> Mapping[str, Table]:
        return _TABLES

    def count(self, table: str) -> int:
        return int(self._database.execute(f'SELECT count(*) FROM "{_TABLES[table].name}"').fetchone()[0])

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
        del as_text, as_utf8  # all keys are text already
        names = _TABLES[table].column_names
        picked = ", ".join(f'"{names[names.index(column)]}"' for column in columns)
        order = ", ".join([*(f'"{names[names.index(column)]}"' for column in order_by), "rowid"])
        filters = " AND ".join(f'"{names[names.index(column)]}" = ?' for column in where or ())
        query = f'SELECT rowid, {picked} FROM "{table}"{f" WHERE {filters}" if filters else ""} ORDER BY {order}'
        cursor = self._database.execute(query, [_stored(value) for value in (where or {}).values()])
        while batch := cursor.fetchmany(_BATCH):
            for position, *row in batch:
                yield Ordered(position, tuple(map(_shown, row)))

    def check_unchanged(self) -> str | None:
        return self._hash()

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._database.close()

    # ---------------------------------------------------------------- reading the file

    def _hash(self) -> str:
        digest = hashlib.sha256()
        try:
            with self._path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
        except OSError as error:
            raise NothingToLookAt(f"{self._name} cannot be read: {error.strerror}.", todo="Check the path.") from error
        return digest.hexdigest()

    def _read(self) -> None:
        self._database.execute("BEGIN")
        try:
            with self._path.open(encoding="utf-8-sig", errors="surrogateescape", newline="\n") as file:
                first = _first_line(file)
                if len(first) < MOST_LINE and isinstance(load(first), dict) and file.read(1):
                    file.seek(0)
                    self._read_lines(file)
                else:
                    file.seek(0)
                    self._read_document(file)
        except NotItemsError as error:
            raise NothingToLookAt(
                f"{self._name} is not JSON: {error}.", todo="Export the session again, or cut the file to whole lines."
            ) from error
        except OSError as error:
            raise NothingToLookAt(f"{self._name} cannot be read: {error.strerror}.", todo="Check the path.") from error
        self._database.execute("COMMIT")
        if not self.count("sessions"):
            self._fill_in_sessions()
        if not self._recognised:
            raise NothingToLookAt(
                f"{self._name} is JSON, but holds neither sessions nor events.",
                todo="Known are session JSON, lists or lines of events, and Vertex AI listings.",
            )
        self._notes.append("A file of exported sessions or events.")
        if self._open_ended:
            self._notes.append("The listing goes on: it names a next page, which this file does not hold.")

    def _read_lines(self, file: Any) -> None:
        session = Key(session=self._path.name.split(".", 1)[0])
        number = 0
        while line := file.readline(MOST_LINE):
            number += 1
            if len(line) == MOST_LINE:
                raise NothingToLookAt(
                    f"Line {number} of {self._name} is longer than {MOST_LINE >> 20} MiB.", todo="Divide it."
                )
            text = line.strip()
            if text:
                self._value(text, Span(0, len(text)), session)

    def _read_document(self, file: Any) -> None:
        text = file.read(MOST_DOCUMENT)
        if len(text) == MOST_DOCUMENT:
            raise NothingToLookAt(
                f"{self._name} is one JSON document of more than {MOST_DOCUMENT >> 20} MiB.",
                todo="Export it as JSON Lines, one event a line, which may be of any size.",
            )
        span = root(text)
        session = Key(session=self._path.name.split(".", 1)[0])
        if text[span.start] == "[":
            for item in array_items(text, span):
                self._value(text, item, session)
        else:
            self._value(text, span, session)

    def _value(self, text: str, span: Span, outer: Key) -> None:
        """A session, a listing, or one event."""
        if text[span.start : span.start + 1] != "{":
            self._event(text[span.start : span.end], outer)  # the reader says that it is no event
            return
        if span.end - span.start < _SMALL:
            value = load(text[span.start : span.end])
            if isinstance(value, dict) and _NOT_BARE.isdisjoint(value) and value.get("type") not in _OWN_LINES:
                self._event(text[span.start : span.end], outer, value)
                return
        try:
            members = dict(object_members(text, span))
        except NotItemsError:
            self._event(text[span.start : span.end], outer)
            return
        nested = next((members[name] for name in _NESTING if name in members), None)
        if nested is None and members.keys() & _OF_SESSIONS:
            nested = Span(span.start, span.start)  # a session without events
        kind = scalar(text, members, "type")
        if kind in ("app_state", "user_state"):
            self._state_row(text, members, kind)
            return
        if kind == "session":
            nested = Span(span.start, span.start)
        if nested is None:
            self._event(text[span.start : span.end], outer)
            return
        self._open_ended |= bool(scalar(text, members, "nextPageToken", "next_page_token"))
        key = key_of(text, members, outer)
        if not members.keys() & {"sessions", "sessionEvents", "session_events"}:
            self._session(text, members, key)
        if text[nested.start : nested.start + 1] == "[":
            for item in array_items(text, nested):
                self._value(text, item, key)

    def _session(self, text: str, members: Mapping[str, Span], key: Key) -> None:
        state = next((members[name] for name in ("state", "sessionState", "session_state") if name in members), None)
        self._counter += 1
        self._recognised = True
        self._insert(
            "sessions",
            (
                *key,
                None if state is None else text[state.start : state.end],
                seconds_of(scalar(text, members, "createTime", "create_time")),
                seconds_of(scalar(text, members, "lastUpdateTime", "last_update_time", "updateTime", "update_time")),
                int(scalar(text, members, "type") != "session"),
            ),
        )

    def _state_row(self, text: str, members: Mapping[str, Span], kind: str) -> None:
        """A line of `exhume export` that holds the state of an app or a user."""
        state = members.get("state")
        self._counter += 1
        key = [
            text_of(scalar(text, members, name)) for name in ("app_name", "user_id")[: 1 if kind == "app_state" else 2]
        ]
        cell = "{}" if state is None else text[state.start : state.end]
        self._insert(f"{kind}s", (*key, cell, seconds_of(scalar(text, members, "update_time"))))

    def _event(self, text: str, outer: Key, value: Any = None) -> None:
        self._counter += 1
        value = load(text) if value is None else value
        if not isinstance(value, dict):
            # kept, so that the reader says what is wrong with it
            self._insert("events", (*outer, f"item-{self._counter}", None, None, text))
            return
        event = event_of(value)
        self._recognised |= event is not value or not EVENT_MARKS.isdisjoint(value)
        key = Key(
            text_of(first_of(value, "appName", "app_name")) or outer.app,
            text_of(first_of(value, "userId", "user_id")) or outer.user,
            text_of(first_of(value, "sessionId", "session_id")) or outer.session,
        )
        ident = text_of(event.get("id")) or text_of(first_of(value, "event_id", "eventId"))
        if is_vertex(value):
            parts = str(value["name"]).split("/")
            ident = ident or parts[-1]
            key = Key(key.app or after(parts, "reasoningEngines"), key.user, after(parts, "sessions") or key.session)
        time = seconds_of(first_of(event, "timestamp"))
        if time is None:
            time = seconds_of(first_of(value, "timestamp"))
        invocation = first_of(event, "invocationId", "invocation_id")
        invocation = first_of(value, "invocationId", "invocation_id") if invocation is None else invocation
        self._insert(
            "events",
            (*key, ident or f"item-{self._counter}", None if invocation is None else text_of(invocation), time, text),
        )

    def _insert(self, table: str, row: Row) -> None:
        marks = ", ".join("?" * len(row))
        try:
            self._database.execute(f'INSERT INTO "{table}" VALUES ({marks})', [_stored(cell) for cell in row])
        except sqlite3.Error as error:
            raise NothingToLookAt(
                f"There is no room to take {self._name} apart: {error}.",
                todo="Free space in the temporary folder (TMPDIR).",
            ) from error

    def _fill_in_sessions(self) -> None:
        """A list of bare events has no session rows: one without state and times is made for each session."""
        self._database.execute(
            "INSERT INTO sessions SELECT DISTINCT app_name, user_id, session_id, NULL, NULL, NULL, 0 FROM events"
        )


def _first_line(file: Any) -> str:
    while line := file.readline(MOST_LINE):
        if line.strip():
            return str(line.strip())
    return ""


def _stored(cell: Cell) -> Cell:
    """Text goes in as bytes: SQLite refuses lone surrogates, and bytes sort as the interface wants text to sort."""
    if not isinstance(cell, str):
        return cell
    try:
        return cell.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return cell.encode("utf-8", "surrogatepass")


def _shown(cell: Cell) -> Cell:
    return cell.decode("utf-8", "surrogateescape") if isinstance(cell, bytes) else cell


def open_export(path: Path, *, name: str) -> Store:
    """The store of an exported file.

    Raises:
        NothingToLookAt: it is not JSON, or holds neither sessions nor events.
        UsageError: it is a folder.
    """
    if path.is_dir():
        raise UsageError(f"{printable(name)} is a folder.", todo="Name a file.")
    return ExportStore(path, name=name)
