"""4xx: does the log explain the stored state? (EXH401)"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from exhume.audit.digest import digest, same
from exhume.audit.findings import Evidence, Finding, Severity
from exhume.audit.log import APP, TEMPORARY, USER, Entry, SessionLog
from exhume.audit.rule import Context, Rule, register
from exhume.audit.rules.row_findings import MOST_EVIDENCE, MOST_IN_SUBJECT, of_session, spelt
from exhume.audit.rules.state import delta_names, deltas
from exhume.events.model import Capability, EventKey, SessionKey, StateRecord

#: Keys of one app or user, and of all rows together, that are followed; a hostile file may hold millions.
_MOST_KEYS = 100_000
_MOST_ROW_KEYS = 1_000_000


class _Write(NamedTuple):
    """The last known write of a key shared by sessions: when, what (hashed), by which event. Two sessions that wrote
    different values at the same moment leave it undecided (`digest` None)."""

    time: float
    digest: bytes | None
    event: EventKey


@dataclass(slots=True)
class _Scope:
    """What the sessions of one app, or of one user in an app, wrote under its prefix.

    `created` is the latest creation of a session: state given at creation has no event. `unread` is the latest
    event whose actions could not be read; infinite where it has no time.
    """

    writes: dict[str, _Write] = field(default_factory=dict)
    created: float = float("-inf")
    unread: float = float("-inf")
    full: bool = False

    def write(self, key: str, time: float, value: Any, event: EventKey) -> None:
        known = self.writes.get(key)
        if known is None and len(self.writes) >= _MOST_KEYS:
            self.full = True
            return
        if known is not None and known.time > time:
            return
        found: bytes | None = digest(value)
        if (
            known is not None
            and known.time == time
            and known.digest != found
            and known.event.session != event.session  # within a session the later event counts
        ):
            found = None
        self.writes[key] = _Write(time, found, event)


@register
class StateDrift(Rule):
    """EXH401 state-drift

    ## What it detects
    Replaying the state deltas of the log gives another value for a key than the stored state has. The last writer
    wins, for keys with the prefix `app:` or `user:` across all sessions of the app or user.

    ## Why it matters
    Agents decide by the state, auditors by the log. Where they differ, the state was changed without a trace, an
    update was lost, or the service that stored it changed the value.

    ## Example
    The last delta says `"limit": 500`, the state of the session says `"limit": 5000`.

    ## How ADK behaves
    DatabaseSessionService stores what the delta says, a null as a null. SqliteSessionService merged differently up to
    2.6.3 (a key set to null disappears, dicts are merged), cut floats to 15 digits in 2.9.2, and cuts a text at
    U+0000 in 2.9.2 and 2.13.0.

    ## Harmless causes
    An application that writes state outside of events; the ways of SqliteSessionService above; a deleted session that
    wrote the shared key last.

    ## What to do
    Compare both values with the business record. A continued session goes on with the stored state.
    """

    id = "EXH401"
    name = "state-drift"
    severity = Severity.WARNING
    needs = frozenset({Capability.STATE, Capability.ACTIONS})
    todo = "Compare the last delta and the stored value with the business record; sessions go on with the stored one."

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._rows: dict[tuple[str, str | None], dict[str, bytes]] = {}
        self._row_keys = 0
        self._shared = Capability.STATE_ROWS in context.capabilities and context.whole
        self._app_name: str | None = None
        self._user_id: str | None = None
        self._app = _Scope()
        self._user = _Scope()

    def state_row(self, row: StateRecord) -> Iterable[Finding]:
        state = row.state
        if state is None or row.problems:
            return ()
        self._row_keys += len(state)
        if self._row_keys <= _MOST_ROW_KEYS:
            self._rows[row.app_name, row.user_id] = {key: digest(value) for key, value in state.items()}
        return ()

    def session(self, log: SessionLog) -> Iterable[Finding]:
        key = log.key
        found: list[Finding] = []
        if self._shared:
            if key.app_name != self._app_name:
                found += self._close_user()
                found += self._close_app()
                self._app_name, self._user_id = key.app_name, key.user_id
            elif key.user_id != self._user_id:
                found += self._close_user()
                self._user_id = key.user_id
            self._follow(log)
        if log.session is not None and log.session.state is not None and not log.session.problems:
            found += self._own(log, log.session, log.session.state)
        return found

    def finish(self) -> Iterable[Finding]:
        return [*self._close_user(), *self._close_app()]

    def _follow(self, log: SessionLog) -> None:
        """Notes what this session wrote to the keys that it shares with others."""
        if log.session is not None:
            created = log.session.create_time
            created = float("inf") if created is None else created
            self._app.created = max(self._app.created, created)
            self._user.created = max(self._user.created, created)
        for entry in _blind(log):
            time = float("inf") if entry.time is None else entry.time
            self._app.unread = max(self._app.unread, time)
            self._user.unread = max(self._user.unread, time)
        names = {name for name in delta_names(log) if name.startswith((APP, USER))}
        if not names:
            return
        # within a session the later event counts, so only its last write of a key has to be followed
        last: dict[str, tuple[float, Any, Entry]] = {}
        for entry, delta in deltas(log):
            if names.isdisjoint(delta):
                continue
            time = _time(entry)
            for name in delta:
                if name in names and (name not in last or time >= last[name][0]):
                    last[name] = (time, delta[name], entry)
        for name, (time, value, entry) in last.items():
            scope, prefix = (self._app, APP) if name.startswith(APP) else (self._user, USER)
            scope.write(name[len(prefix) :], time, value, entry.record.key)

    def _close_user(self) -> Iterator[Finding]:
        scope, self._user = self._user, _Scope()
        if self._app_name is not None:
            yield from self._compare(scope, self._rows.pop((self._app_name, self._user_id), None), "user")

    def _close_app(self) -> Iterator[Finding]:
        scope, self._app = self._app, _Scope()
        if self._app_name is not None:
            yield from self._compare(scope, self._rows.pop((self._app_name, None), None), "app")

    def _compare(self, scope: _Scope, row: dict[str, bytes] | None, whose: str) -> Iterator[Finding]:
        if row is None:  # no row (EXH404), not readable (EXH307), or beyond the bound
            return
        drifted: dict[SessionKey, list[tuple[str, _Write]]] = {}
        for key, write in scope.writes.items():
            if write.digest is None or write.time <= max(scope.created, scope.unread):
                continue
            if row.get(key) != write.digest:
                drifted.setdefault(write.event.session, []).append((key, write))
        for session, keys in drifted.items():
            names = [f"{whose}:{key}" for key, _ in keys]
            events = tuple(dict.fromkeys(write.event.event_id for _, write in keys))[:MOST_EVIDENCE]
            yield self.finding(
                f"The stored state of the {whose} differs from the last delta in the log for {spelt(names)}.",
                place=session,
                subject=(whose, *sorted(names)[:MOST_IN_SUBJECT]),
                event_ids=events,
                evidence=tuple(
                    Evidence("events", write.event, "state", write.time, note=f"last delta of {whose}:{key}"[:200])
                    for key, write in keys[:MOST_EVIDENCE]
                ),
            )

    def _own(self, log: SessionLog, session: StateRecord, state: dict[str, Any]) -> Iterable[Finding]:
        """Replays the keys of the session itself."""
        written = deltas(log)
        if not written:
            return ()
        # events older than the session belong to an earlier one of the same id (EXH301)
        begun = float("-inf") if session.create_time is None else session.create_time - 1.0
        first = written[0][0].time
        if first is None or first < begun:  # in order of time: where the first is not older, none is
            written = [(entry, delta) for entry, delta in written if entry.time is None or entry.time >= begun]
        last: dict[str, Any] = {}
        for _, delta in written:
            last.update(delta)
        differing = [
            name
            for name, value in last.items()
            if not name.startswith((APP, USER, TEMPORARY)) and not (name in state and same(value, state[name]))
        ]
        if not differing:
            return ()
        blind = _blind(log)
        unread = blind[-1].index if blind else -1
        sought = set(differing)
        writers: dict[str, Entry] = {}
        for entry, delta in reversed(written):
            if sought.isdisjoint(delta):
                continue
            for name in delta:  # of the few names in it, not of the many that may be sought
                if name in sought:
                    writers[name] = entry
                    sought.discard(name)
            if not sought:
                break
        drifted = {name: writers[name] for name in differing if writers[name].index > unread}
        if not drifted:
            return ()
        missing = [name for name in drifted if name not in state]
        message = f"The stored state differs from the last delta in the log for {spelt(drifted)}."
        if missing:
            message += f" Not in the state at all: {spelt(missing)}."
        entries = list(dict.fromkeys(drifted.values()))
        return (
            of_session(self, log, message, entries=entries, role="state", subject=sorted(drifted)[:MOST_IN_SUBJECT]),
        )


def _blind(log: SessionLog) -> list[Entry]:
    return [entry for entry in log.troubled if entry.blind]


def _time(entry: Entry) -> float:
    return float("-inf") if entry.time is None else entry.time
