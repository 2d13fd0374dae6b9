"""4xx: what stands in values: JSON that not every database takes, and secrets (EXH405, EXH406)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from exhume.audit.findings import Finding, Severity
from exhume.audit.log import Entry, SessionLog
from exhume.audit.rule import Context, Rule, register
from exhume.audit.rules.make import of_session, of_state_row, plural
from exhume.errors import ExhumeError
from exhume.events.json_text import parse
from exhume.events.model import EventRecord, Loss, StateRecord

_NUMBER, _NUL, _SURROGATE, _REPEATED = "NaN or Infinity", "U+0000", "a lone surrogate", "a repeated key"
_OF_LOSS = {"nan-to-null": _NUMBER, "duplicate-key": _REPEATED}
#: A lone surrogate among the escapes of a JSON text; pairs and escaped backslashes are passed over.
_ESCAPES = re.compile(
    r"\\u(?P<pair>[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|(?P<nul>\\u0000)|\\."
)
_RAW_SURROGATE = re.compile("[\ud800-\udbff\udc00-\udc7f\udd00-\udfff]")


def not_portable(text: str) -> list[str]:
    """What in a JSON text PostgreSQL's JSONB refuses, NaN and repeated keys aside."""
    if "\\u" not in text and text.isascii():
        return []
    found: dict[str, None] = {}
    if "\\u0000" in text or "\\ud" in text or "\\uD" in text:
        for match in _ESCAPES.finditer(text):
            if match.lastgroup == "lone":
                found[_SURROGATE] = None
            elif match.lastgroup == "nul":
                found[_NUL] = None
    if not text.isascii() and _RAW_SURROGATE.search(text):
        found[_SURROGATE] = None
    return list(found)


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
            text = record.text
            if text is not None:
                if not record.losses and "\\u" not in text and text.isascii():
                    continue
                here = dict.fromkeys((*_told(record.losses), *not_portable(text)))
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
        subject = [*sorted(kinds), *sorted(entry.event_id for entry in entries)[:50]]
        return (of_session(self, log, message, entries=entries, notes=notes, subject=subject),)

    def state_row(self, row: StateRecord) -> Iterable[Finding]:
        kinds = _of_state(row)
        if not kinds:
            return ()
        whose = "the state of the app" if row.user_id is None else "the state of the user"
        message = f"JSON that not every database takes in {whose}: {', '.join(kinds)}."
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
        if not text.isascii() and _RAW_SURROGATE.search(text):
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
    if not text or text == "{}" or row.problems:
        return []
    try:
        losses = parse(text, "state").losses
    except ExhumeError:
        return []  # told by EXH307
    return list(dict.fromkeys((*_told(losses), *not_portable(text))))


#: Names whose values are secrets, in lower case without `_` and `-`.
_SECRET_NAMES = frozenset(
    {
        "clientsecret",
        "accesstoken",
        "refreshtoken",
        "idtoken",
        "apikey",
        "xapikey",
        "password",
        "authorization",
        "proxyauthorization",
        "privatekey",
        "secretkey",
        "secretaccesskey",
        "clientassertion",
        "bearertoken",
        "sessiontoken",
        "authtoken",
    }
)
#: Beginnings and ends that such names have in a text in lower case; a text without any holds none of them.
_TRACES = ("secret", 'token"', 'token\\"', "apikey", "api_key", "api-key", "password", "authorization", "private")
#: Values under secret names that are no secrets: names of types, masks and references to where the secret is kept.
_NO_SECRET = re.compile(
    r"(?:apiKey|oauth2|http|bearer|basic|string|none|null|true|false|unset|redacted|masked|hidden|removed)?\Z"
    r"|[*•xX.…-]+\Z|[<\[{(].*(?:redacted|masked|hidden|removed|secret).*[>\]})]\Z|\$\{[^}]*\}\Z|\$[A-Z_][A-Z0-9_]*\Z",
    re.IGNORECASE | re.DOTALL,
)
#: What is walked of one value; a hostile one may hold millions.
_MOST_STEPS = 50_000
_PREFIXES = ("user:", "app:", "temp:")
_DEEPEST_TEXT = 3


def secret_places(value: Any) -> list[str]:
    """Places in a JSON value, such as `actions.state_delta.access_token`, that hold a secret; never the secret.

    A text that is itself a JSON object is looked into, too: answers are often wrapped so.
    """
    found: list[str] = []
    stack: list[tuple[Any, str, str, int]] = [(value, "", "", 0)]
    steps = 0
    while stack and steps < _MOST_STEPS and len(found) < 50:
        one, place, parent, wraps = stack.pop()
        steps += 1
        if isinstance(one, dict):
            for key, item in one.items():
                name = str(key).lower().replace("_", "").replace("-", "")
                here = f"{place}.{key}" if place else str(key)
                if _is_secret(name, parent, item):
                    found.append(here)
                elif isinstance(item, (dict, list, str)):
                    stack.append((item, here, name, wraps))
        elif isinstance(one, list):
            stack.extend((item, f"{place}[{index}]", parent, wraps) for index, item in enumerate(one[:_MOST_STEPS]))
        elif isinstance(one, str) and wraps < _DEEPEST_TEXT and one.lstrip()[:1] in ("{", "[") and may_hold_secret(one):
            try:
                stack.append((parse(one).value, place, parent, wraps + 1))
            except ExhumeError:
                continue  # prose that begins with a bracket
    return sorted(found)


def _is_secret(name: str, parent: str, value: Any) -> bool:
    if name.startswith(_PREFIXES):
        name = name.partition(":")[2]
    if name not in _SECRET_NAMES and not (name == "token" and parent == "credentials"):
        return False
    return isinstance(value, str) and not _NO_SECRET.match(value.strip())


def may_hold_secret(text: str) -> bool:
    """A quick look at a text: could a secret name be in it?"""
    lower = text.lower()
    return any(trace in lower for trace in _TRACES)


@register
class CredentialMaterial(Rule):
    """EXH406 credential-material

    ## What it detects
    Values under the names of secrets in events or state: client secrets, access, refresh and id tokens, API keys,
    passwords, authorization headers, private keys, the token of HTTP credentials. The place is told, never the value.

    ## Why it matters
    Whoever can read the database, a backup or an export can use them. They outlive the session.

    ## Example
    `actions.requested_auth_configs.<id>.raw_auth_credential.oauth2.client_secret` in the request for a credential.

    ## How ADK behaves
    Up to 1.21.0 and later the request for a credential holds the whole auth config, client secret included; 2.13.0
    leaves the secret out of the request, but stores what the user answers.

    ## Harmless causes
    Test values; a tool whose parameter merely has such a name.

    ## What to do
    Revoke what is real, keep credentials in a credential service, and export with `--redact`.
    """

    id = "EXH406"
    name = "credential-material"
    severity = Severity.WARNING
    todo = "Revoke what is real, keep credentials in a credential service, and share only redacted exports."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        entries: list[Entry] = []
        notes: list[str] = []
        for entry in log.entries:
            text = entry.record.text
            if text is None:
                if not _traces_in_row(entry.record):
                    continue
            else:
                lower = text.lower()
                for trace in _TRACES:
                    if trace in lower:
                        break
                else:
                    continue
            places = secret_places(entry.data)
            if places:
                entries.append(entry)
                notes.append(_places(places))
        row = log.session
        of_state = _secrets_of_state(row) if row is not None else []
        if not entries and not of_state:
            return ()
        places_told = [f"{plural(len(entries), 'event')} ({notes[0]})"] if entries else []
        places_told += [f"the state of the session ({_places(of_state)})"] if of_state else []
        message = f"Credentials are stored in {' and '.join(places_told)}."
        subject = [*sorted(entry.event_id for entry in entries)[:50], *of_state[:50]]
        return (of_session(self, log, message, entries=entries, notes=notes, subject=subject),)

    def state_row(self, row: StateRecord) -> Iterable[Finding]:
        places = _secrets_of_state(row)
        if not places:
            return ()
        whose = "the state of the app" if row.user_id is None else "the state of the user"
        message = f"Credentials are stored in {whose} ({_places(places)})."
        return (of_state_row(self, row, message, subject=places[:50]),)


def _places(places: list[str]) -> str:
    short = [place if len(place) <= 120 else f"{place[:60]}…{place[-59:]}" for place in places[:3]]
    return ", ".join(short) + (f" and {len(places) - 3} more" if len(places) > 3 else "")


def _secrets_of_state(row: StateRecord) -> list[str]:
    if not row.state or not row.state_text or not may_hold_secret(row.state_text):
        return []
    return secret_places(row.state)


#: The same in the bytes of a pickle, where no quotation marks stand after a name.
_BYTE_TRACES = (b"secret", b"token", b"apikey", b"api_key", b"api-key", b"password", b"authorization", b"private")


def _traces_in_row(record: EventRecord) -> bool:
    """The same quick look at the cells of a v0 row, pickles included."""
    for cell in record.raw:
        if isinstance(cell, str):
            if len(cell) > 12 and may_hold_secret(cell):
                return True
        elif isinstance(cell, bytes):
            lower = cell.lower()
            if any(trace in lower for trace in _BYTE_TRACES):
                return True
    return False
