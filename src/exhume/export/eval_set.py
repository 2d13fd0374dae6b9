"""`export --format evalset`: each session as one case of google-adk's EvalSet, so that an incident can be run again.

As google.adk.evaluation.evaluation_generator.convert_events_to_eval_invocations (2.13.0) makes cases of stored events:
one invocation a turn, what the user said, the final response, and the agent's events between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from exhume.events.interface import Reader
from exhume.events.model import EventRecord
from exhume.events.shapes import Findings
from exhume.export.camel import content_by_alias
from exhume.export.redaction import Redactor
from exhume.export.sessions import ExportedSession, exported_sessions
from exhume.export.writing import Writing, strict_text

_SHOWN = ("text", "function_call", "function_response", "inline_data")


def pieces(reader: Reader, redactor: Redactor, writing: Writing, *, name: str) -> Iterator[str]:
    """One EvalSet; a case a line. Its time is that of the newest event, so that equal sources give equal files."""
    latest = 0.0
    yield f'{{"eval_set_id":{strict_text(name)},"name":{strict_text(name)},\n"eval_cases":['
    first = True
    for session in exported_sessions(reader):
        case = eval_case(session, redactor, writing, name=name)
        if not case["conversation"]:
            continue
        latest = max(latest, case["creation_timestamp"])
        yield ("\n" if first else ",\n") + strict_text(case)
        first = False
    yield f'\n],\n"creation_timestamp":{strict_text(latest)}}}\n'


def eval_case(session: ExportedSession, redactor: Redactor, writing: Writing, *, name: str) -> dict[str, Any]:
    """One session as an EvalCase (google-adk 2.13.0, `evaluation/eval_case.py`)."""
    writing.sessions += 1
    invocations: dict[str, list[EventRecord]] = {}
    changed: set[str] = set()
    for record in session.events:
        data = record.data or {}
        if record.refused:
            writing.note("could not be read in full", record)
        if data.get("partial"):
            continue
        writing.events += 1
        invocations.setdefault(record.invocation_id or str(data.get("invocation_id") or ""), []).append(record)
        actions = data.get("actions")
        delta = actions.get("state_delta") if isinstance(actions, dict) else None
        changed.update(delta if isinstance(delta, dict) else ())
    conversation = [_invocation(ident, records, redactor, writing) for ident, records in invocations.items()]
    state = redactor.state(session.merged_state)
    times = [record.time for record in session.events if record.time is not None]
    key = session.key
    return {
        "eval_id": f"{name}/{key.app_name}/{key.user_id}/{key.session_id}",
        "conversation": conversation,
        "session_input": {
            "app_name": key.app_name,
            "user_id": key.user_id,
            # what no event changed was there at the beginning
            "state": {one: value for one, value in state.items() if one not in changed},
        },
        "final_session_state": state,
        "creation_timestamp": max(times, default=0.0),
    }


def _invocation(ident: str, records: list[EventRecord], redactor: Redactor, writing: Writing) -> dict[str, Any]:
    user: dict[str, Any] | None = None
    began = 0.0
    final: EventRecord | None = None
    final_content: dict[str, Any] | None = None
    final_has_text = False
    between: list[tuple[EventRecord, dict[str, Any]]] = []
    for record in records:
        data = redactor.event(record.data or {})
        found = Findings()
        content = content_by_alias(data.get("content"), found)
        writing.faults(found.faults, record)
        if content is None:
            continue
        if str(data.get("author") or "agent").lower() == "user":
            user, began = content, record.time or 0.0
            continue
        parts = _parts(data)
        if any(part.get(name) for part in parts for name in _SHOWN):
            between.append((record, content))
        has_text = any(part.get("text") for part in parts)
        if _is_final(data, parts) and (final is None or has_text or not final_has_text):
            final, final_content, final_has_text = record, content, has_text
    result: dict[str, Any] = {
        "invocation_id": ident,
        "user_content": user or {"parts": []},
        "intermediate_data": {
            "invocation_events": [
                {"author": (record.data or {}).get("author") or "agent", "content": content}
                for record, content in between
                if record is not final
            ]
        },
        "creation_timestamp": began,
    }
    if final is not None:
        result["final_response"] = final_content
    return result


def _parts(data: dict[str, Any]) -> list[dict[str, Any]]:
    content = data.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _is_final(data: dict[str, Any], parts: list[dict[str, Any]]) -> bool:
    """Event.is_final_response of google-adk 2.13.0 (`events/event.py`)."""
    actions = data.get("actions")
    if not parts:
        return False
    if (isinstance(actions, dict) and actions.get("skip_summarization")) or data.get("long_running_tool_ids"):
        return True
    if any(part.get("function_call") or part.get("function_response") for part in parts):
        return False
    return not parts[-1].get("code_execution_result")
