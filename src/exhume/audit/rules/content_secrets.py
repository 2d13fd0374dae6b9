"""4xx: credentials in events and state; their places, never their values (EXH406)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from exhume.audit.findings import Finding, Severity
from exhume.audit.log import Entry, SessionLog
from exhume.audit.rule import Rule, register
from exhume.audit.rules.content_scan import may_hold_secret, suspects
from exhume.audit.rules.make import of_session, of_state_row, plural
from exhume.errors import ExhumeError
from exhume.events.json_text import parse
from exhume.events.model import StateRecord

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
        for entry in suspects(log).secrets:
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
