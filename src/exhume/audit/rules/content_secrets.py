"""4xx: credentials in events and state; their places, never their values (EXH406)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import orjson

from exhume.audit.findings import Finding, Severity
from exhume.audit.log import Entry, SessionLog
from exhume.audit.rule import Context, Rule, register
from exhume.audit.rules.row_findings import MOST_IN_SUBJECT, of_session, of_state_row, plural, whose_state
from exhume.errors import ExhumeError
from exhume.events.json_text import BACKSLASH, GIANT, parse
from exhume.events.model import StateRecord
from exhume.events.shapes import COMMON_CONTENT, COMMON_FIELDS

#: Last words of names whose values are secrets. `exhume.audit.secrets` hides by a wider net, since hiding too much
#: costs little; here each name is a finding.
_SECRET_ENDS = (
    ("client", "secret"),
    ("access", "token"),
    ("refresh", "token"),
    ("id", "token"),
    ("auth", "token"),
    ("bearer", "token"),
    ("session", "token"),
    ("api", "key"),
    ("private", "key"),
    ("secret", "key"),
    ("secret", "access", "key"),
    ("client", "assertion"),
    ("password",),
)
_SECRET_WORDS = frozenset("".join(words) for words in _SECRET_ENDS)
_SECRET_NAMES = frozenset({("authorization",), ("proxyauthorization",), ("proxy", "authorization")})
#: One of these, in lower case, is in each of those names: their last words.
_WORDS_OF_SECRETS = frozenset(words[-1].encode() for words in (*_SECRET_ENDS, ("authorization",)))
_LAST_LETTERS = frozenset(
    letter for words in (*_SECRET_ENDS, *_SECRET_NAMES) for letter in (words[-1][-1], words[-1][-1].upper())
)
#: What separators leave of a name in lower case, since headers are spelt in any case.
_PIECES = re.compile("[a-z0-9]+")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
#: Values under secret names that are no secrets: names of types, masks and references to where the secret is kept.
_NO_SECRET = re.compile(
    r"(?:apiKey|oauth2|http|bearer|basic|string|none|null|true|false|unset|redacted|masked|hidden|removed)?\Z"
    r"|[*•xX.…-]+\Z|[<\[{(].*(?:redacted|masked|hidden|removed|secret).*[>\]})]\Z|\$\{[^}]*\}\Z|\$[A-Z_][A-Z0-9_]*\Z",
    re.IGNORECASE | re.DOTALL,
)
#: What is walked of one value; a hostile one may hold millions.
_MOST_STEPS = 50_000
#: Places that are told of one value.
_MOST_PLACES = 50
#: How many texts inside texts are looked into.
_DEEPEST_TEXT = 3
#: Names that are kept; those as long as an id are ids, which do not come again.
_MOST_NAMES, _LONGEST_NAME = 10_000, 36
#: How a text begins that may be JSON.
_OPENING = frozenset({"{", "[", " ", "\n", "\t", "\r"})


def secret_places(value: Any) -> list[str]:
    """Places in a JSON value, such as `actions.state_delta.access_token`, that hold a secret; never the secret.

    A text that is itself a JSON object is looked into, too: answers are often wrapped so.
    """
    found: list[str] = []
    stack: list[tuple[Any, str, str, int]] = [(value, "", "", 0)]
    steps = 0
    while stack and steps < _MOST_STEPS and len(found) < _MOST_PLACES:
        one, place, parent, wraps = stack.pop()
        steps += 1
        if isinstance(one, dict):
            for key, item in one.items():
                name = str(key)
                here = f"{place}.{key}" if place else str(key)
                if _is_secret(name, parent, item):
                    found.append(here)
                elif isinstance(item, (dict, list, str)):
                    stack.append((item, here, name, wraps))
        elif isinstance(one, list):
            stack.extend((item, f"{place}[{index}]", parent, wraps) for index, item in enumerate(one[:_MOST_STEPS]))
        elif isinstance(one, str) and wraps < _DEEPEST_TEXT and one.lstrip()[:1] in ("{", "["):
            try:
                stack.append((parse(one).value, place, parent, wraps + 1))
            except ExhumeError:
                continue  # prose that begins with a bracket
    return sorted(found)


def names_secret(name: str) -> bool:
    """Does a field of this name hold a secret? `stripeApiKey` and `db-password` do, `password_hint` does not."""
    last = name[-1:]
    if last not in _LAST_LETTERS and last.isascii() and last.isalnum():
        return False  # nearly every name ends here, ids among the keys of an object too
    words = [word.lower() for word in _WORDS.findall(name[-200:])]
    if not words:
        return False
    return (
        words[-1] in _SECRET_WORDS
        or tuple(_PIECES.findall(name[-200:].lower())) in _SECRET_NAMES
        or any(tuple(words[-len(end) :]) == end for end in _SECRET_ENDS)
    )


def _is_secret(name: str, parent: str, value: Any) -> bool:
    if not names_secret(name) and not (name == "token" and parent == "credentials"):
        return False
    return isinstance(value, str) and not _NO_SECRET.match(value.strip())


class QuickLook:
    """A quick look at a session: is there a name that can be a secret's, or a text that can be JSON?

    What the application gave is written as one JSON text and searched for the words in such names. Where one is found,
    each event is walked; names repeat from event to event, so those that are known to be harmless are kept.
    """

    __slots__ = ("_harmless",)

    def __init__(self) -> None:
        self._harmless: set[str] = set()

    def may_hold_secret(self, log: SessionLog) -> list[Entry]:
        """The entries to look at closely, in causal order."""
        entries = log.entries
        if not _mentions_secret(log):
            entries = [entry for entry in entries if _quotes(entry.record.source)]
        return [entry for entry in entries if self._walk(entry)]

    def _walk(self, entry: Entry) -> bool:
        """Is there such a name or text in this entry?"""
        stack: list[Any] = [entry.actions]
        _gather(entry, stack, texts=True)
        harmless = self._harmless
        while stack:
            one = stack.pop()
            items: Iterable[Any]
            if one.__class__ is dict:
                if not harmless.issuperset(one) and self._learn(one.keys() - harmless):
                    return True
                items = one.values()
            elif one.__class__ is list:
                items = one
            else:
                if one.__class__ is str and one.lstrip()[:1] in ("{", "["):
                    return True
                continue
            for item in items:
                kind = item.__class__
                if kind is str:
                    if item[:1] in _OPENING:
                        stack.append(item)
                elif (kind is dict or kind is list) and item:
                    stack.append(item)
        return False

    def _learn(self, names: set[str]) -> bool:
        """Is any of these a secret's? If not, they are kept, in bounded number."""
        for name in names:
            if name == "token" or names_secret(name):
                return True
            if len(name) < _LONGEST_NAME and len(self._harmless) < _MOST_NAMES:
                self._harmless.add(name)
        return False


def _mentions_secret(log: SessionLog) -> bool:
    """Can a word of the names of secrets be in what a session's events hold of the application, prose aside?"""
    sources = [entry.record.source for entry in log.entries]
    if None in sources or sum(map(len, filter(None, sources))) > GIANT:
        return True  # to be walked: orjson ends the process when memory is limited and runs out
    given: list[Any] = [entry.actions for entry in log.acting]
    given += log.plain_parts
    for entry in log.uncommon:
        _gather(entry, given, texts=False)
    try:
        written = orjson.dumps(given).lower()
    except TypeError:  # an integer beyond 64 bits, a lone surrogate, or too deep
        return True
    return any(word in written for word in _WORDS_OF_SECRETS)


def _quotes(source: bytes | None) -> bool:
    """Can a text in the event be JSON that names anything? Then its quotes are escaped. True where nothing is known."""
    return source is None or (BACKSLASH in source and (b'\\"' in source or b"\\u0022" in source))


def _gather(entry: Entry, into: list[Any], *, texts: bool) -> None:
    """Adds what of an entry, beside its actions, can be data of the application; of parts that are text alone the text,
    or nothing."""
    data = entry.data
    if not COMMON_FIELDS.issuperset(data):
        into.append({name: data[name] for name in data.keys() - COMMON_FIELDS})
    content = data.get("content")
    parts = content.get("parts") if content.__class__ is dict and COMMON_CONTENT.issuperset(content) else None
    if parts.__class__ is not list:
        into.append(content)
        return
    for part in parts:
        if part.__class__ is not dict or len(part) != 1 or part.get("text").__class__ is not str:
            into.append(part)
        elif texts:
            into.append(part["text"])


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

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._look = QuickLook()

    def session(self, log: SessionLog) -> Iterable[Finding]:
        entries: list[Entry] = []
        notes: list[str] = []
        for entry in self._look.may_hold_secret(log):
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
        event_ids = sorted(entry.event_id for entry in entries)
        subject = [*event_ids[:MOST_IN_SUBJECT], *of_state[:MOST_IN_SUBJECT]]
        return (of_session(self, log, message, entries=entries, notes=notes, subject=subject),)

    def state_row(self, row: StateRecord) -> Iterable[Finding]:
        places = _secrets_of_state(row)
        if not places:
            return ()
        message = f"Credentials are stored in {whose_state(row)} ({_places(places)})."
        return (of_state_row(self, row, message, subject=places[:MOST_IN_SUBJECT]),)


def _places(places: list[str]) -> str:
    short = [place if len(place) <= 120 else f"{place[:60]}…{place[-59:]}" for place in places[:3]]
    return ", ".join(short) + (f" and {len(places) - 3} more" if len(places) > 3 else "")


def _secrets_of_state(row: StateRecord) -> list[str]:
    return secret_places(row.state) if row.state else []
