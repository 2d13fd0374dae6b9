"""`export --format session`: google-adk's Session model by alias, as `adk run --save_session` writes it.

One session is one object, which `adk run --resume` takes; several are a JSON array of such objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from exhume.events.interface import Reader
from exhume.events.shapes import Findings
from exhume.export.camel import session_event
from exhume.export.redaction import Redactor
from exhume.export.sessions import ExportedSession, exported_sessions
from exhume.export.writing import Writing, strict_text


def pieces(reader: Reader, redactor: Redactor, writing: Writing) -> Iterator[str]:
    """One session is held at a time; whether there are several is known when the second one comes."""
    held: str | None = None
    several = False
    for session in exported_sessions(reader):
        if held is not None:
            yield ("," if several else "[") + "\n" + held
            several = True
        held = strict_text(session_object(session, redactor, writing))
    if held is None:
        yield "[]\n"
    elif several:
        yield ",\n" + held + "\n]\n"
    else:
        yield held + "\n"


def session_object(session: ExportedSession, redactor: Redactor, writing: Writing) -> dict[str, Any]:
    """One session as the Session model takes it (google-adk 2.13.0, `sessions/session.py`)."""
    writing.sessions += 1
    events = []
    for record in session.events:
        if record.refused:
            writing.note("could not be read in full", record)
        found = Findings()
        data = {**(record.data or {}), "id": record.key.event_id}
        if record.time is not None:
            data["timestamp"] = record.time
        events.append(session_event(redactor.event(data), found))
        writing.faults(found.faults, record)
        writing.events += 1
    row = session.row
    times = [record.time for record in session.events if record.time is not None]
    updated = row.update_time if row is not None else None
    result: dict[str, Any] = {
        "id": session.key.session_id,
        "appName": session.key.app_name,
        "userId": session.key.user_id,
    }
    if row is None:
        # nothing is known of its state, which is not the same as an empty one; the model fills it in
        writing.orphaned += 1
    else:
        result["state"] = redactor.state(session.merged_state)
    result["events"] = events
    result["lastUpdateTime"] = updated if updated is not None else max(times, default=0.0)
    return result
