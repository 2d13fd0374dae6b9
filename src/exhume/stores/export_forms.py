"""The forms of exported events: which session something belongs to, where the event is, and when it happened."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from exhume.stores.json_items import Span, load

#: A JSON file is taken for an event log when at least one object in it has one of these.
EVENT_MARKS = frozenset({"author", "invocationId", "invocation_id", "longRunningToolIds", "long_running_tool_ids"})


class Key(NamedTuple):
    """Which session something belongs to, as far as the file says it."""

    app: str = ""
    user: str = ""
    session: str = ""


def first_of(value: Mapping[str, Any], *names: str) -> Any:
    """The first of several spellings of a key that has a value other than null."""
    for name in names:
        found = value.get(name)
        if found is not None:
            return found
    return None


def event_of(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The event inside its wrapping: `event` of a line of `exhume export`, `rawEvent` of Vertex AI, or itself.

    Vertex AI's `rawEvent` is the whole event as ADK made it; google-adk 2.13 prefers it, too
    (`sessions/vertex_ai_session_service.py`).
    """
    inner = first_of(value, "event", "event_data", "rawEvent", "raw_event")
    if isinstance(inner, str):
        inner = load(inner)
    return inner if isinstance(inner, dict) else value


def is_vertex(value: Mapping[str, Any]) -> bool:
    """Is this an entry of a Vertex AI listing?"""
    name = value.get("name")
    return isinstance(name, str) and "/events/" in name and "/sessions/" in name


def seconds_of(value: Any) -> float | None:
    """A time of an export in epoch seconds: a number of seconds or, beyond the year 5138, milliseconds; RFC 3339."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not -1e17 < value < 1e17:
            return None
        # ADK Java writes milliseconds (Event.timestamp)
        return float(value) / 1000.0 if abs(value) > 1e11 else float(value)
    if isinstance(value, str) and len(value) < 64:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None


def scalar(text: str, members: Mapping[str, Span], *names: str) -> Any:
    """The first of several spellings of a member that is text, a number or a truth value; None where there is none."""
    for name in names:
        span = members.get(name)
        if span is not None and text[span.start] not in "[{":
            value = load(text[span.start : span.end])
            if value is not None:
                return value
    return None


def key_of(text: str, members: Mapping[str, Span], outer: Key) -> Key:
    """The key that a session (or a listing) says, else what stands around it says."""
    name = text_of(scalar(text, members, "name"))
    session = text_of(scalar(text, members, "sessionId", "session_id", "id"))
    if "/sessions/" in name:
        session = session or after(name.split("/"), "sessions")
    return Key(
        text_of(scalar(text, members, "appName", "app_name")) or outer.app,
        text_of(scalar(text, members, "userId", "user_id")) or outer.user,
        session or outer.session,
    )


def after(parts: list[str], word: str) -> str:
    """The part of a resource path that follows `word`; empty where there is none."""
    return parts[parts.index(word) + 1] if word in parts[:-1] else ""


def text_of(value: Any) -> str:
    """An id as text; empty for what cannot be one."""
    if isinstance(value, str):
        return value
    return "" if value is None or isinstance(value, (dict, list, bool)) else str(value)
