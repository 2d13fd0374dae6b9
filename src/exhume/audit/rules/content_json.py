"""4xx: JSON that not every database takes (EXH405)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from exhume.audit.findings import Finding, Severity
from exhume.audit.log import Entry, SessionLog
from exhume.audit.rule import Context, Rule, register
from exhume.audit.rules.row_findings import MOST_IN_SUBJECT, of_session, of_state_row, plural, whose_state
from exhume.events.json_text import BACKSLASH
from exhume.events.model import EventRecord, Loss, StateRecord

_NUMBER, _NUL, _SURROGATE, _REPEATED = "NaN or Infinity", "U+0000", "a lone surrogate", "a repeated key"
_OF_LOSS = {"nan-to-null": _NUMBER, "duplicate-key": _REPEATED}
#: A lone surrogate among the escapes of a JSON text; pairs and escaped backslashes are passed over.
_ESCAPES = re.compile(
    r"\\u(?P<pair>[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|(?P<nul>\\u0000)|\\."
)
#: The beginning of an escape that can be U+0000 or a surrogate: one search by a literal prefix.
_ODD_ESCAPE = re.compile(r"\\u(?:0000|[dD])")
_ODD_ESCAPE_IN_BYTES = re.compile(_ODD_ESCAPE.pattern.encode())
_RAW_SURROGATE = re.compile("[\ud800-\udbff\udc00-\udc7f\udd00-\udfff]")
#: Columns of v0 that hold JSON texts; `actions` is a pickle there.
_JSON_COLUMNS = frozenset(
    {
        "content",
        "grounding_metadata",
        "custom_metadata",
        "usage_metadata",
        "citation_metadata",
        "input_transcription",
        "output_transcription",
    }
)


def not_portable(text: str) -> list[str]:
    """What in a JSON text PostgreSQL's JSONB refuses, NaN and repeated keys aside."""
    found: dict[str, None] = {}
    if _ODD_ESCAPE.search(text):
        for match in _ESCAPES.finditer(text):
            if match.lastgroup == "lone":
                found[_SURROGATE] = None
            elif match.lastgroup == "nul":
                found[_NUL] = None
    if not (text.isascii() or _encodes(text)):
        found[_SURROGATE] = None
    return list(found)


def _encodes(text: str) -> bool:
    """Is a text free of surrogates? U+DC80 to U+DCFF stand for bytes that are not UTF-8, which is another matter."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return not _RAW_SURROGATE.search(text)
    return True


@register
class NotPortableJson(Rule):
    """EXH405 not-portable-json

    ## What it detects
    NaN, Infinity, U+0000, lone surrogates or repeated keys in stored JSON or in what a pickle holds.

    ## Why it matters
    PostgreSQL refuses all of these in JSONB but the repeated keys, of which it silently keeps the last. A move of the
    database ends at the first such row, and strict JSON parsers cannot read an export.

    ## Example
    `"rate": NaN` in the state of a session that SQLite holds.

    ## How ADK behaves
    It writes JSON with Python's default, which allows NaN and escapes the rest, and stores it on SQLite and MySQL. On
    PostgreSQL the append fails. Release 2.13.0 reads NaN back.

    ## Harmless causes
    None for a database that stays on SQLite; it is told before a move.

    ## What to do
    Decide what the values should be. A migration by exhume writes null for NaN and Infinity and counts them.
    """

    id = "EXH405"
    name = "not-portable-json"
    severity = Severity.WARNING
    todo = "Decide what these values should be before the database moves; exhume migrate writes null for NaN."

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._columns: tuple[str, ...] | None = None
        self._cells: list[int] = []

    def session(self, log: SessionLog) -> Iterable[Finding]:
        entries: list[Entry] = []
        kinds: dict[str, None] = {}
        notes: list[str] = []
        for entry in log.entries:
            record = entry.record
            source = record.source
            if source is not None:
                # one backslash is found many times faster than the beginning of an escape
                escaped = BACKSLASH in source and _ODD_ESCAPE_IN_BYTES.search(source)
                if not (record.losses or escaped):
                    continue
                # a surrogate that is no escape makes bytes that are not UTF-8, and is told as such
                here = dict.fromkeys((*_told(record.losses), *not_portable(source.decode("utf-8", "surrogateescape"))))
            else:
                here = dict.fromkeys((*_told(record.losses), *self._of_cells(record), *_of_actions(entry)))
            if here:
                entries.append(entry)
                notes.append(", ".join(here))
                kinds.update(here)
        row = log.session
        of_state = _of_state(row) if row is not None else []
        kinds.update(dict.fromkeys(of_state))
        if not kinds:
            return ()
        places = [plural(len(entries), "event")] if entries else []
        places += ["the state of the session"] if of_state else []
        message = f"JSON that not every database takes in {' and '.join(places)}: {', '.join(kinds)}."
        subject = [*sorted(kinds), *sorted(entry.event_id for entry in entries)[:MOST_IN_SUBJECT]]
        return (of_session(self, log, message, entries=entries, notes=notes, subject=subject),)

    def state_row(self, row: StateRecord) -> Iterable[Finding]:
        kinds = _of_state(row)
        if not kinds:
            return ()
        message = f"JSON that not every database takes in {whose_state(row)}: {', '.join(kinds)}."
        return (of_state_row(self, row, message, subject=sorted(kinds)),)

    def _of_cells(self, record: EventRecord) -> list[str]:
        """The JSON texts among the columns of a v0 row."""
        if record.columns is not self._columns:
            self._columns = record.columns
            self._cells = [place for place, name in enumerate(record.columns) if name in _JSON_COLUMNS]
        found: list[str] = []
        for place in self._cells:
            text = record.raw[place] if place < len(record.raw) else None
            if isinstance(text, bytes):
                text = text.decode("utf-8", "replace")
            if isinstance(text, str):
                found += not_portable(text)
        return found


def _told(losses: Iterable[Loss]) -> Iterator[str]:
    for loss in losses:
        kind = _OF_LOSS.get(loss.kind)
        if kind is not None:
            yield kind


def _of_actions(entry: Entry) -> list[str]:
    """Text that a pickle held, which never was JSON."""
    actions = entry.data.get("actions")
    if not actions or not isinstance(actions, dict) or not any(actions.values()):
        return []
    found: dict[str, None] = {}
    for text in _texts(actions):
        if "\x00" in text:
            found[_NUL] = None
        if not (text.isascii() or _encodes(text)):
            found[_SURROGATE] = None
    return list(found)


def _texts(value: Any) -> Iterator[str]:
    """All texts in a JSON value, keys included, without recursion."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            stack.extend(one)
            stack.extend(one.values())
        elif isinstance(one, list):
            stack.extend(one)


def _of_state(row: StateRecord) -> list[str]:
    text = row.state_text
    if not text or row.problems:  # EXH307 tells of what could not be read
        return []
    return list(dict.fromkeys((*_told(row.losses), *not_portable(text))))
