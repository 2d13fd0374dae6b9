"""Reads the bodies of responses: a user's decision as ADK reads it, and what a tool's result says of itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from exhume.audit.log import Response

#: What pydantic 2 takes as a boolean besides booleans, in any case (google.adk.tools.tool_confirmation has lax fields).
_TRUE = frozenset({"1", "on", "t", "true", "y", "yes"})
_FALSE = frozenset({"0", "off", "f", "false", "n", "no"})
_KNOWN_KEYS = frozenset({"hint", "confirmed", "payload"})

REJECTED_BY_ADK = "This tool call is rejected."
_ABORTED = "Invocation was aborted by client."
_REFUSED = re.compile(r"reject|\bden(?:y|ied|ies)|declined|refused|cancell?ed|not approved", re.IGNORECASE)
_NOT_FOUND = re.compile(r"\A\W*(?:tool|function)\b.{0,200}?\bnot found", re.IGNORECASE | re.DOTALL)
_PLACEHOLDER = re.compile(r"requires? confirmation", re.IGNORECASE)
#: Keys under which tools say how a call ended, and those under which they explain it.
_STATUS = frozenset({"status", "state", "outcome", "result", "decision"})
_EXPLAINS = frozenset({"message", "msg", "reason", "detail", "details", "output", "note"})
_SUCCEEDED = re.compile(
    r"\s*(?:ok|okay|success(?:ful(?:ly)?)?|succeeded|completed?|done|executed|processed)[\s.!]*", re.IGNORECASE
)
#: Longest text that is searched for such words, and the most keys of an object that are looked at.
_SEARCHED, _MOST_KEYS = 4_000, 100


class Reading(NamedTuple):
    """A decision as ADK 2.13 reads it: `approved` is None when it cannot be read, and then `reason` says why."""

    approved: bool | None
    payload: Any = None
    lax: Any = None
    reason: str = ""


def read_decision(body: Any) -> Reading:
    """Reads the body of a response to `adk_request_confirmation` as ToolConfirmation.from_response_dict (2.13.0) does.

    The body is the object itself, or has exactly one key `response` with a JSON text of it. Unknown keys make it
    invalid; `{}` is a denial.
    """
    if body is None:
        return Reading(None, reason="it has no body")
    if not isinstance(body, dict):
        return Reading(None, reason="it is no object")
    if len(body) == 1 and "response" in body:
        text = body["response"]
        if not isinstance(text, str):
            return Reading(None, reason="the value of `response` is no JSON text")
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            return Reading(None, reason="the text of `response` is no JSON")
        if not isinstance(body, dict):
            return Reading(None, reason="the text of `response` holds no object")
    unknown = sorted(str(key) for key in body if key not in _KNOWN_KEYS)
    if unknown:
        return Reading(None, reason=f"it has unknown keys: {', '.join(unknown[:5])}")
    if not isinstance(body.get("hint", ""), str):
        return Reading(None, reason="its hint is no text")
    payload = body.get("payload")
    stored = body.get("confirmed", False)
    approved = lax_boolean(stored)
    if approved is None:
        return Reading(None, payload, reason="the value of `confirmed` is no boolean")
    return Reading(approved, payload, lax=stored if approved and not isinstance(stored, bool) else None)


def lax_boolean(value: Any) -> bool | None:
    """What pydantic 2 makes of a value for a boolean field in lax mode; None where it refuses."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return bool(value) if value in (0, 1) else None
    if isinstance(value, str):
        folded = value.lower()
        return True if folded in _TRUE else False if folded in _FALSE else None
    return None


def is_sealed(response: Response) -> bool:
    """Is this the response with which ADK 2.13 closes an open call of an aborted invocation?"""
    if response.by_user:
        return False
    body = response.body
    if isinstance(body, dict) and body.get("error") == _ABORTED:
        return True
    return response.entry.data.get("error_code") == "INVOCATION_ABORTED"


def _texts(body: Any, *, nested: bool = False) -> Iterator[tuple[str, str]]:
    """The error and status texts of a tool's response with the names of their keys, also one object further in."""
    if isinstance(body, str):
        yield "result", body[:_SEARCHED]
    if not isinstance(body, dict) or len(body) > _MOST_KEYS:
        return
    for key, value in body.items():
        folded = key.lower() if isinstance(key, str) else ""
        if "error" not in folded and folded not in _STATUS and folded not in _EXPLAINS:
            continue
        if isinstance(value, str):
            yield folded, value[:_SEARCHED]
        elif isinstance(value, dict) and not nested:
            # whatever an error object calls its parts
            inner = {f"error {name}": one for name, one in value.items()} if "error" in folded else value
            yield from _texts(inner, nested=True)


def says_refused(body: Any) -> bool:
    """Does a response itself say that the call was refused?

    A tool that says that it succeeded may have refused something on its way: then its explanations do not count.
    """
    if isinstance(body, dict) and _holds(body, REJECTED_BY_ADK):
        return True
    texts = list(_texts(body))
    if any(key in _STATUS and _SUCCEEDED.fullmatch(text) for key, text in texts):
        texts = [(key, text) for key, text in texts if key in _STATUS]
    return any(_REFUSED.search(text) for _, text in texts)


def _holds(body: dict[str, Any], text: str) -> bool:
    """Is one of the first values of an object, or of the objects right inside it, that very text?"""
    for value in islice(body.values(), _MOST_KEYS):
        if value == text:
            return True
        if isinstance(value, dict) and any(one == text for one in islice(value.values(), _MOST_KEYS)):
            return True
    return False


def says_unknown_tool(body: Any) -> bool:
    """Does a response say that the agent does not know the tool (`Tool 'x' not found`)?"""
    error = body.get("error") if isinstance(body, dict) else None
    return isinstance(error, str) and _NOT_FOUND.match(error[:_SEARCHED]) is not None


def says_wanted(body: Any) -> bool:
    """Is this the text that ADK itself writes into a placeholder?"""
    error = body.get("error") if isinstance(body, dict) else None
    return isinstance(error, str) and _PLACEHOLDER.search(error[:_SEARCHED]) is not None
