"""`export --format jsonl`: one JSON object a line. Everything that the source holds, so that it can be read back.

Lines: `{"type": "app_state" | "user_state", "app_name", "user_id"?, "state", "update_time"}`,
`{"type": "session", "app_name", "user_id", "session_id", "state", "create_time", "update_time"}`, and
`{"type": "event", "app_name", "user_id", "session_id", "event_id", "event"}` with the event in v1 form (snake_case).
An event that could not be read in full, or of which something must be told, also has `problems`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from exhume.events.interface import Reader
from exhume.events.model import EventRecord, SessionKey, StateRecord
from exhume.export.redaction import Redactor
from exhume.export.sessions import exported_sessions
from exhume.export.writing import Writing, text_of


def pieces(reader: Reader, redactor: Redactor, writing: Writing, *, scoped: bool = False) -> Iterator[str]:
    """States first, then each session before its events.

    `scoped`: states only of the apps and users that have a session here; nobody else's belong to what was asked for.
    """
    users = {(row.app_name, row.user_id) for row in reader.sessions()} if scoped else set()
    apps = {app for app, _ in users}
    for kind, rows in (("app_state", reader.app_states()), ("user_state", reader.user_states())):
        for row in rows:
            if scoped and (
                row.app_name not in apps if kind == "app_state" else (row.app_name, row.user_id) not in users
            ):
                continue
            yield text_of(_state_line(kind, row, redactor)) + "\n"
    for session in exported_sessions(reader):
        writing.sessions += 1
        if session.row is not None:
            yield text_of(_session_line(session.key, session.row, redactor)) + "\n"
        # as they were stored: a reader sorts them by time, and may still see where the clock went back
        for record in sorted(session.events, key=lambda record: record.position):
            writing.events += 1
            yield text_of(_event_line(record, redactor, writing)) + "\n"


def _state_line(kind: str, row: StateRecord, redactor: Redactor) -> dict[str, Any]:
    line: dict[str, Any] = {"type": kind, "app_name": row.app_name}
    if row.user_id is not None:
        line["user_id"] = row.user_id
    return {**line, "state": redactor.state(row.state or {}), "update_time": row.update_time}


def _session_line(key: SessionKey, row: StateRecord, redactor: Redactor) -> dict[str, Any]:
    return {
        "type": "session",
        **key._asdict(),
        "state": redactor.state(row.state or {}),
        "create_time": row.create_time,
        "update_time": row.update_time,
    }


def _event_line(record: EventRecord, redactor: Redactor, writing: Writing) -> dict[str, Any]:
    line: dict[str, Any] = {
        "type": "event",
        **record.key._asdict(),
        "event": None if record.data is None else redactor.event(record.data),
    }
    if record.refused:
        writing.note("could not be read in full", record)
    if record.problems:
        line["problems"] = [
            {"rule": one.rule, "column": one.column, "reason": one.reason, "sha256": one.sha256, "fatal": one.fatal}
            for one in record.problems
        ]
    return line
