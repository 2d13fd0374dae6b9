"""Small databases for the tests of this stage, written row by row."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from exhume.events.interface import Reader, ReadOptions
from exhume.events.model import EventRecord
from exhume.events.readers import open_reader
from exhume.schema.detect import detect
from exhume.stores import open_store
from exhume.stores.interface import Store

#: A pickle of {}: event actions that nobody set.
NO_ACTIONS = b"\x80\x05}\x94."

V0_TABLES = """
CREATE TABLE sessions (app_name TEXT, user_id TEXT, id TEXT, state TEXT, create_time DATETIME, update_time DATETIME,
 PRIMARY KEY (app_name, user_id, id));
CREATE TABLE app_states (app_name TEXT PRIMARY KEY, state TEXT, update_time DATETIME);
CREATE TABLE user_states (app_name TEXT, user_id TEXT, state TEXT, update_time DATETIME,
 PRIMARY KEY (app_name, user_id));
CREATE TABLE events (id VARCHAR(128), app_name VARCHAR(128), user_id VARCHAR(128), session_id VARCHAR(128),
 invocation_id VARCHAR(256), author VARCHAR(256), branch VARCHAR(256), timestamp DATETIME, content TEXT, actions BLOB,
 long_running_tool_ids_json TEXT, grounding_metadata TEXT, partial BOOLEAN, turn_complete BOOLEAN,
 error_code VARCHAR(256), error_message VARCHAR(1024), interrupted BOOLEAN, custom_metadata TEXT, usage_metadata TEXT,
 citation_metadata TEXT, input_transcription TEXT, output_transcription TEXT,
 PRIMARY KEY (id, app_name, user_id, session_id));
"""


class Written(NamedTuple):
    """One event to write: its session, its true time, and the zone of the clock that wrote it."""

    session: str
    when: datetime
    zone: str = "UTC"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def naive(when: datetime, zone: str = "UTC") -> str:
    """The text that SQLAlchemy stores for a time, as a clock in that zone shows it."""
    return when.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S.%f")


def make_v0(path: Path, events: Sequence[Written], *, whole_seconds: bool = False, update: str = "last") -> Path:
    """A v0 database whose sessions are made shortly before their first event.

    Args:
        whole_seconds: session times without a fraction, as up to 1.19.0.
        update: `last` where update_time is the last event's time, `create` where it never moves.
    """
    connection = sqlite3.connect(path)
    connection.executescript(V0_TABLES)
    for number, event in enumerate(events):
        connection.execute(
            "INSERT INTO events (id, app_name, user_id, session_id, invocation_id, author, timestamp, actions)"
            " VALUES (?, 'app', 'user', ?, 'i', 'user', ?, ?)",
            (f"e{number}", event.session, naive(event.when, event.zone), NO_ACTIONS),
        )
    for session in dict.fromkeys(event.session for event in events):
        own = [event.when for event in events if event.session == session]
        made = own[0] - timedelta(milliseconds=40)
        last = own[-1] if update == "last" else made
        stamps = [moment.replace(microsecond=0) if whole_seconds else moment for moment in (made, last)]
        form = "%Y-%m-%d %H:%M:%S" if whole_seconds else "%Y-%m-%d %H:%M:%S.%f"
        connection.execute(
            "INSERT INTO sessions VALUES ('app', 'user', ?, '{}', ?, ?)",
            (session, *(stamp.strftime(form) for stamp in stamps)),
        )
    connection.commit()
    connection.close()
    return path


def execute(path: Path, statement: str, *values: Any) -> None:
    """Runs one statement on a file."""
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


class Reading:
    """Opens readers and closes their stores."""

    def __init__(self) -> None:
        self._open: list[Store] = []

    def __call__(self, path: Path, **options: Any) -> Reader:
        store = open_store(path)
        self._open.append(store)
        return open_reader(store, detect(store), ReadOptions(**options))

    def errors(self, path: Path, events: Sequence[Written], **options: Any) -> list[float]:
        """Seconds by which each event comes back wrong, in the order in which they were written."""
        found = {record.key.event_id: record.time for record in self(path, **options).events()}
        times = [found[f"e{number}"] for number in range(len(events))]
        return [(time or 0.0) - event.when.timestamp() for time, event in zip(times, events, strict=True)]

    def close(self) -> None:
        for store in self._open:
            store.close()


def only(records: Iterable[EventRecord]) -> EventRecord:
    """The one record of a reader."""
    (record,) = records
    return record
