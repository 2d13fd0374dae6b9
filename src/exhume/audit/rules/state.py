"""4xx: where state is, and where it should not be (EXH402, EXH403, EXH404)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from exhume.audit.findings import Finding, Severity
from exhume.audit.log import APP, TEMPORARY, USER, Entry, SessionLog
from exhume.audit.rule import Context, Rule, register
from exhume.audit.rules.row_findings import MOST_IN_SUBJECT, of_session, of_state_row, spelt, whose_state
from exhume.events.model import Capability, StateRecord
from exhume.schema.detection import Layout

_SCOPES = (APP, USER)
_DELTAS = "state deltas"
_DELTA_NAMES = "names in state deltas"
#: Layouts whose services write rows of app and user only when there is something to keep in them: SqliteSessionService,
#: and adk-go (session/database/service.go).
_ROWS_WHEN_NEEDED = (Layout.SQLITE_SERVICE, Layout.GO)


def deltas(log: SessionLog) -> list[tuple[Entry, dict[str, Any]]]:
    """The state deltas of a session in causal order, partial events aside; worked out once a session."""
    found: list[tuple[Entry, dict[str, Any]]] | None = log.shared.get(_DELTAS)
    if found is None:
        found = []
        for entry in log.acting:
            delta = entry.actions.get("state_delta")
            if delta and isinstance(delta, dict) and not entry.partial:
                found.append((entry, delta))
        log.shared[_DELTAS] = found
    return found


def delta_names(log: SessionLog) -> set[str]:
    """The keys of all state deltas of a session; gathered once a session."""
    found: set[str] | None = log.shared.get(_DELTA_NAMES)
    if found is None:
        found = log.shared[_DELTA_NAMES] = set().union(*(delta for _, delta in deltas(log)))
    return found


@register
class TemporaryStateStored(Rule):
    """EXH402 temporary-state-stored

    ## What it detects
    Keys that begin with `temp:` in a stored state or in the stored delta of an event.

    ## Why it matters
    Such keys are meant for one invocation and often hold what should not last: tokens, whole documents, objects.
    Stored, they come back in later turns and in every export.

    ## Example
    `"temp:access": ...` in the delta of a tool's response.

    ## How ADK behaves
    1.18.0 and newer drop them before an event is stored. 0.1.0 to 1.16.0 stored them in the actions of v0 events,
    though not in the state of the session (google.adk.sessions.base_session_service).

    ## Harmless causes
    A file of 1.16.0 or older: then this is how ADK worked.

    ## What to do
    Check what the values are; a migration keeps them unless they are removed first.
    """

    id = "EXH402"
    name = "temporary-state-stored"
    severity = Severity.WARNING
    needs = frozenset({Capability.STATE})
    todo = "Check what these values are, and remove those that should not last."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        keys: dict[str, None] = {}
        entries: list[Entry] = []
        written = deltas(log) if any(key.startswith(TEMPORARY) for key in delta_names(log)) else ()
        for entry, delta in written:
            here = [key for key in delta if key.startswith(TEMPORARY)]
            if here:
                entries.append(entry)
                keys.update(dict.fromkeys(here))
        state = log.session.state if log.session is not None else None
        stored = [key for key in state if key.startswith(TEMPORARY)] if state else []
        if not entries and not stored:
            return ()
        places = [word for word, there in (("stored deltas", entries), ("the state of the session", stored)) if there]
        message = f"Temporary keys in {' and '.join(places)}: {spelt(dict.fromkeys((*stored, *keys)))}."
        subject = sorted({*keys, *stored})[:MOST_IN_SUBJECT]
        return (of_session(self, log, message, entries=entries, subject=subject),)

    def state_row(self, row: StateRecord) -> Iterable[Finding]:
        keys = sorted(key for key in row.state or () if key.startswith(TEMPORARY))
        if not keys:
            return ()
        message = f"Temporary keys in {whose_state(row)}: {spelt(keys)}."
        return (of_state_row(self, row, message, subject=keys[:MOST_IN_SUBJECT]),)


@register
class ScopeLeak(Rule):
    """EXH403 scope-leak

    ## What it detects
    Keys with the prefix `app:` or `user:` inside the state of a session, or inside the rows of app_states or
    user_states.

    ## Why it matters
    ADK takes the prefix off and keeps the value in the row of the app or user. A key that still has it was written by
    something else: sessions see a value of their own where they should share one, or never see it at all.

    ## Example
    `sessions.state` is `{"user:tier": "gold"}`, while the user's row says `{"tier": "silver"}`.

    ## How ADK behaves
    `extract_state_delta` splits by prefix before storing (google.adk.sessions._session_util and, before it,
    database_session_service). On reading, the prefixed key of the session is overwritten by the shared value.

    ## Harmless causes
    A script that wrote state directly; a row that was restored from an export, where keys do have prefixes.

    ## What to do
    Move the value to the row it belongs to, without the prefix.
    """

    id = "EXH403"
    name = "scope-leak"
    severity = Severity.WARNING
    needs = frozenset({Capability.STATE, Capability.STATE_ROWS})
    todo = "Move the value to the row it belongs to, without the prefix."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        state = log.session.state if log.session is not None else None
        keys = [key for key in state if key.startswith(_SCOPES)] if state else []
        if not keys:
            return ()
        message = f"The state of the session itself holds keys of the app or user: {spelt(keys)}."
        return (of_session(self, log, message, subject=sorted(keys)[:MOST_IN_SUBJECT]),)

    def state_row(self, row: StateRecord) -> Iterable[Finding]:
        keys = sorted(key for key in row.state or () if key.startswith(_SCOPES))
        if not keys:
            return ()
        message = f"Keys with a prefix in {whose_state(row)}: {spelt(keys)}."
        return (of_state_row(self, row, message, subject=keys[:MOST_IN_SUBJECT]),)


@register
class MissingStateRow(Rule):
    """EXH404 missing-state-row

    ## What it detects
    A session without its row in app_states or user_states.

    ## Why it matters
    Newer ADK refuses to append to such a session: the conversation cannot go on.

    ## Example
    The session of user `u7` exists, but user_states has no row for `u7` in this app.

    ## How ADK behaves
    DatabaseSessionService writes both rows when a session is created and takes them for granted when an event is
    appended (google.adk.sessions.database_session_service). SqliteSessionService and adk-go write them only when
    needed; adk-js writes them always and makes missing ones anew.

    ## Harmless causes
    Tables that were restored or copied in part.

    ## What to do
    A migration by exhume creates the missing rows and says so; or insert rows with the state `{}`.
    """

    id = "EXH404"
    name = "missing-state-row"
    severity = Severity.WARNING
    needs = frozenset({Capability.STATE_ROWS})
    todo = "Insert the missing row with the state {}, or migrate with exhume, which does."

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._apps: set[str] = set()
        self._users: set[tuple[str, str]] = set()
        self._expected = context.detection.layout not in _ROWS_WHEN_NEEDED

    def state_row(self, row: StateRecord) -> Iterable[Finding]:
        if row.user_id is None:
            self._apps.add(row.app_name)
        else:
            self._users.add((row.app_name, row.user_id))
        return ()

    def session(self, log: SessionLog) -> Iterator[Finding]:
        if log.session is None or not self._expected:
            return
        key = log.key
        missing = []
        if key.app_name not in self._apps:
            missing.append("app_states")
        if (key.app_name, key.user_id) not in self._users:
            missing.append("user_states")
        if missing:
            message = f"The session has no row in {' and '.join(missing)}; ADK cannot append to it."
            yield of_session(self, log, message, subject=missing)
