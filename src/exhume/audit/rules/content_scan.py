"""One look at the text of every event, for the two rules that judge what stands in values (EXH405, EXH406)."""

from __future__ import annotations

from typing import NamedTuple

from exhume.audit.log import Entry, SessionLog
from exhume.events.model import EventRecord

#: Beginnings and ends that names of secrets have in a text in lower case; a text without any holds none of them.
_TRACES = ("secret", "token", "api", "password", "authorization", "private")
_PRECISE = ('token"', 'token\\"', "secret", "password", "authorization", "private")
_KEYS = ("apikey", "api_key", "api-key")
#: The same in the bytes of a pickle, where no quotation marks stand after a name.
_BYTE_TRACES = (b"secret", b"token", b"apikey", b"api_key", b"api-key", b"password", b"authorization", b"private")
#: Fields of an event that hold no data of the application but for texts.
_PLAIN = frozenset(
    {
        "actions",
        "author",
        "avg_logprobs",
        "branch",
        "content",
        "error_code",
        "finish_reason",
        "id",
        "invocation_id",
        "long_running_tool_ids",
        "model_version",
        "node_info",
        "timestamp",
        "turn_complete",
        "usage_metadata",
    }
)
_SHARED = "texts to look at"


class Suspects(NamedTuple):
    """Entries whose text may hold what a rule looks for; all others do not."""

    escapes: list[Entry]
    secrets: list[Entry]


def suspects(log: SessionLog) -> Suspects:
    """Goes over the texts of a session once, whichever rule asks first."""
    found: Suspects | None = log.shared.get(_SHARED)
    if found is None:
        found = log.shared[_SHARED] = _look(log)
    return found


def _look(log: SessionLog) -> Suspects:
    found = Suspects([], [])
    acting = {entry.index for entry in log.acting}
    for entry in log.entries:
        record = entry.record
        text = record.text
        if text is None:
            found.escapes.append(entry)
            if _row_may_hold_secret(record):
                found.secrets.append(entry)
            continue
        lower = text.lower()
        odd = "\\u" in lower and ("\\u0000" in lower or "\\ud" in lower)
        if odd or record.losses or not (text.isascii() or _encodes(text)):
            found.escapes.append(entry)
        # In an event of mere text, names of secrets can only stand in JSON within that text.
        if (
            entry.calls
            or entry.responses
            or entry.index in acting
            or entry.partial
            or not entry.data.keys() <= _PLAIN
            or '\\"' in lower
        ) and _may_hold_secret(lower):
            found.secrets.append(entry)
    return found


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def may_hold_secret(text: str) -> bool:
    """A quick look at a JSON text: could the name of a secret be in it?"""
    return _may_hold_secret(text.lower())


def _may_hold_secret(lower: str) -> bool:
    for trace in _TRACES:
        if trace in lower:
            break
    else:
        return False
    return any(trace in lower for trace in _PRECISE) or ("api" in lower and any(key in lower for key in _KEYS))


def _row_may_hold_secret(record: EventRecord) -> bool:
    """The same for the cells of a v0 row, pickles included."""
    for cell in record.raw:
        if isinstance(cell, str):
            if len(cell) > 12 and may_hold_secret(cell):
                return True
        elif isinstance(cell, bytes):
            lower = cell.lower()
            if any(trace in lower for trace in _BYTE_TRACES):
                return True
    return False
