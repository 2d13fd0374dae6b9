"""The timeline of one session as a document and as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from exhume.audit.timeline import Invocation, Item, Timeline, Turn
from exhume.redact import mask_url, printable
from exhume.report.documents import Document, Span, header, time_zone_part
from exhume.report.view import Block, Line, Mood, View, number, zone_text
from exhume.report.wire import plain, rfc3339, short_json

_LONGEST_VALUE = 160
_LONGEST_TEXT = 400
_MOST_ROWS = 200


def timeline_document(found: Timeline, *, span: Span) -> Document:
    """`exhume.show/1`."""
    return {
        **header("show", found.source, span),
        "layout": found.layout,
        "app_name": found.key.app_name,
        "user_id": found.key.user_id,
        "session_id": found.key.session_id,
        "session_row": found.row,
        "create_time": rfc3339(found.created),
        "update_time": rfc3339(found.updated),
        "time_zone": time_zone_part(found.time_zone),
        "order_known": found.order_known,
        "credentials": "shown" if found.revealed else "hidden",
        "orphans": found.orphans,
        "state": plain(found.state),
        "events": [
            {"invocation_id": part.id, "resumed": part.resumed, **_turn_part(turn)}
            for part in found.invocations
            for turn in part.turns
        ],
    }


def _turn_part(turn: Turn) -> Document:
    return {
        "event_id": turn.event_id,
        "time": rfc3339(turn.time),
        "author": turn.author,
        "branch": turn.branch,
        "partial": turn.partial,
        "rewound": turn.rewound,
        "items": [_item_part(item) for item in turn.items],
    }


def _item_part(item: Item) -> Document:
    return {
        "kind": item.kind,
        "name": item.name,
        "call_id": item.call_id,
        "value": plain(item.value),
        "note": item.note,
        "partner_event_id": item.partner,
    }


def timeline_view(found: Timeline, *, span: Span) -> View:
    """A timeline for a person: times in UTC, one line a happening."""
    key = found.key
    exact = found.time_zone.proof == "not needed"
    facts = [
        ("session", f"{key.app_name} / {key.user_id} / {key.session_id}"),
        ("layout", found.layout),
        ("times", "UTC" if exact else f"UTC; the store's own were read as {zone_text(found.time_zone)}"),
        ("created", rfc3339(found.created) or ("not known" if found.row else "the session's row does not exist")),
        ("updated", rfc3339(found.updated) or "not known"),
        ("credentials", "shown" if found.revealed else "hidden"),
    ]
    orphans = [number(count, what) for what, count in sorted(found.orphans.items())]
    notes = [] if found.order_known else ["Events of equal time are shown in an order that cannot be proved."]
    verdict = f"{number(found.events, 'event')} in {number(len({one.id for one in found.invocations}), 'invocation')}."
    if not found.row:
        orphans.append("orphaned events: no session row")
    return View(
        command="show",
        source=mask_url(found.source),
        mood=Mood.LOOK if orphans else Mood.GOOD,
        verdict=f"{verdict} {'; '.join(orphans).capitalize()}." if orphans else f"{verdict} Nothing is orphaned.",
        facts=tuple(facts),
        blocks=tuple(_state_blocks(found.state)),
        lines=tuple(_lines(found.invocations)),
        notes=tuple(notes),
        started_at=span.started_at,
        finished_at=span.finished_at,
    )


def _state_blocks(state: dict[str, Any]) -> Iterator[Block]:
    if state:
        rows = tuple((name, short_json(value, _LONGEST_VALUE)) for name, value in list(state.items())[:_MOST_ROWS])
        left = len(state) - len(rows)
        yield Block("Stored state", ("key", "value"), rows, note=f"and {left:,} more" if left else "")


#: What each kind of item is introduced by: a mark, and words.
_MARKS = {
    "call": ("->", "calls"),
    "request": ("??", "asks to confirm"),
    "response": ("<-", "response of"),
    "placeholder": ("<-", "waits for a confirmation:"),
    "execution": ("<-", "RAN"),
    "refusal": ("<-", "refused:"),
    "approval": ("++", "APPROVED"),
    "rejection": ("--", "REJECTED"),
    "unreadable decision": ("!!", "unreadable decision on"),
    "answer": ("<-", "answered by a person:"),
    "state": (" =", "state"),
    "artifact": (" =", "artifact"),
    "transfer": (">>", "transfer to"),
    "escalation": (">>", "escalates"),
    "error": ("!!", "error"),
    "compaction": (" *", "compaction"),
    "rewind": ("<<", "rewind before"),
    "unreadable": ("!!", "unreadable"),
    "thought": (" ~", "(thought)"),
    "data": (" *", "data"),
    "text": (" |", ""),
}


def _lines(invocations: list[Invocation]) -> Iterator[Line]:
    for part in invocations:
        yield Line(0, "", "")
        yield Line(
            0, "invocation", f"{printable(part.id or '(none)', limit=200)}{' (resumed)' if part.resumed else ''}"
        )
        for turn in part.turns:
            author = printable(turn.author or "(no author)", limit=60)
            branch = f" [{printable(turn.branch, limit=80)}]" if turn.branch else ""
            marks = (" (partial)" if turn.partial else "") + (" (rewound)" if turn.rewound else "")
            event = printable(turn.event_id, limit=200)
            yield Line(2, rfc3339(turn.time) or "no time", f"{author}{branch}  event {event}{marks}")
            for item in turn.items:
                yield Line(6, _MARKS[item.kind][0], _item_text(item))


def _item_text(item: Item) -> str:
    parts = [_MARKS[item.kind][1]]
    if item.name:
        parts.append(printable(item.name, limit=120))
    if item.call_id:
        parts.append(f"({printable(item.call_id, limit=120)})")
    parts.extend(_values(item))
    if item.note:
        parts.append(f"<{printable(item.note, limit=_LONGEST_TEXT)}>")
    return " ".join(filter(None, parts))


def _values(item: Item) -> Iterator[str]:
    if item.kind == "request" and isinstance(item.value, dict):
        confirmation = item.value.get("toolConfirmation", item.value.get("tool_confirmation"))
        original = item.value.get("originalFunctionCall", item.value.get("original_function_call"))
        for value in (original.get("args") if isinstance(original, dict) else None, confirmation):
            if value is not None:
                yield short_json(value, _LONGEST_VALUE)
    elif item.kind == "state":
        yield f"= {short_json(item.value, _LONGEST_VALUE)}"
    elif isinstance(item.value, str):
        yield printable(item.value, limit=_LONGEST_TEXT)
    elif item.value is not None:
        yield short_json(item.value, _LONGEST_VALUE)
