"""3xx: what an earlier, lossy migration leaves behind (EXH308)."""

from __future__ import annotations

from collections.abc import Iterator

from exhume.audit.confirmations import target_id
from exhume.audit.findings import Confidence, Evidence, Finding, Severity
from exhume.audit.log import (
    CONFIRMATION,
    CREDENTIAL,
    NO_CALL_PREFIXES,
    WANTED_CONFIRMATIONS,
    WANTED_CREDENTIALS,
    Call,
    SessionLog,
)
from exhume.audit.rule import Context, Rule, register
from exhume.audit.rules.row_findings import (
    MOST_EVIDENCE,
    of_database,
    of_session,
    plural,
    session_evidence,
    spelt,
)
from exhume.audit.rules.state import delta_names
from exhume.events.model import Capability, SessionKey
from exhume.schema.detection import Layout

#: Sessions with events and state, and no action in the whole file, from which on the file as a whole is told.
_ENOUGH_SESSIONS = 3
#: Bounds on what is kept of one app: keys that events write, sessions without actions, and keys of each.
_MOST_KEYS, _MOST_SESSIONS, _MOST_KEYS_TOLD = 10_000, 10_000, 50


@register
class LostActions(Rule):
    """EXH308 lost-actions

    ## What it detects
    Events whose actions are gone. In a session: a request for a confirmation or a credential without the entry in
    `requested_tool_confirmations` or `requested_auth_configs` that goes with it. In a database: at least three
    sessions with events have state, and no event of the whole file has any action. As info, in an app whose sessions
    were made by 1.22.1 or older and are now in v1: sessions without any action have values for keys that events of
    other sessions write.

    ## Why it matters
    Pending approvals disappear, state cannot be derived from the log any more, and rewinds and compactions have no
    effect. The file looks complete: the same number of events, and every session loads.

    ## Example
    `adk_request_confirmation` asks about a refund, and the placeholder response of the refund has empty actions.

    ## How ADK behaves
    `adk migrate session` writes empty actions for every pickle that it refuses, with a line in its log and exit code
    0. From PostgreSQL, 1.22.1 to 2.7.0 write empty actions for every event, without a word.

    ## Harmless causes
    For the database and the app: an application that gives its sessions their state at creation and writes none, or
    not yet, afterwards. For a session whose request is not followed by its event at all (`info`): a client that
    stopped reading the events of a turn at the request.

    ## What to do
    Migrate the original file again with exhume; keep it until `exhume verify` says that both are equal.
    """

    id = "EXH308"
    name = "lost-actions"
    severity = Severity.ERROR
    needs = frozenset({Capability.ACTIONS})
    todo = "Migrate the original database again and compare both with `exhume verify`."

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._confirmations = Capability.CONFIRMATIONS in context.capabilities
        self._migrated = context.detection.layout in (Layout.V1, Layout.V1_UNMARKED)
        self._any_action = False
        self._with_state = 0
        self._sample: list[Evidence] = []
        self._app: str | None = None
        self._written: set[str] = set()
        self._unexplained: list[tuple[SessionKey, list[str]]] = []

    def session(self, log: SessionLog) -> Iterator[Finding]:
        if log.key.app_name != self._app:
            yield from self._close_app()
            self._app = log.key.app_name
        self._count(log)
        asking = [call for call in log.calls if call.name in (CONFIRMATION, CREDENTIAL)]
        if asking:
            yield from self._unkept(log, asking)

    def _count(self, log: SessionLog) -> None:
        if log.acting:
            self._any_action = True
            if self._migrated and len(self._written) < _MOST_KEYS:
                self._written |= delta_names(log)
            return
        row = log.session
        if row is None or not row.state or not log.entries:
            return
        if any(entry.blind for entry in log.troubled):
            self._any_action = True  # not to be decided
            return
        self._with_state += 1
        if len(self._sample) < _ENOUGH_SESSIONS:
            self._sample.append(session_evidence(log.key, note="has state, and its events have no action"))
        old = row.create_time is not None and float(row.create_time).is_integer()
        if self._migrated and old and len(self._unexplained) < _MOST_SESSIONS:
            self._unexplained.append((log.key, list(row.state)[:_MOST_KEYS_TOLD]))

    def _close_app(self) -> Iterator[Finding]:
        """Tells sessions of the last app that have, without any action, what events write in others."""
        unexplained, self._unexplained = self._unexplained, []
        written, self._written = self._written, set()
        found = [(key, [name for name in names if name in written]) for key, names in unexplained]
        found = [(key, names) for key, names in found if names]
        if not found:
            return
        names = dict.fromkeys(name for _, own in found for name in own)
        message = (
            f"{plural(len(found), 'session')} of this app {'has' if len(found) == 1 else 'have'} values for "
            f"{spelt(names)}, which events write in other sessions, and no action: given at creation, or lost in a "
            "migration."
        )
        evidence = tuple(session_evidence(key) for key, _ in found[:MOST_EVIDENCE])
        yield self.finding(
            message,
            place=(self._app, None, None),
            subject=("values without actions",),
            severity=Severity.INFO,
            confidence=Confidence.INFERRED,
            evidence=evidence,
        )

    def _unkept(self, log: SessionLog, asking: list[Call]) -> Iterator[Finding]:
        if any(entry.blind for entry in log.troubled):
            return  # the entry may be in the part that could not be read
        kept = {field: _keys(log, field) for field in (WANTED_CONFIRMATIONS, WANTED_CREDENTIALS)}
        answered = {response.id for response in log.responses}
        by_agent, by_user = _first_responses(log)
        told: set[str] = set()
        for call in asking:
            field = WANTED_CONFIRMATIONS if call.name == CONFIRMATION else WANTED_CREDENTIALS
            if field == WANTED_CONFIRMATIONS and not self._confirmations:
                continue
            target = target_id(call)
            if target in kept[field] if target else kept[field]:
                continue
            if target.startswith(NO_CALL_PREFIXES) or (call.id or target) in told:
                continue
            if call.entry.index == len(log.entries) - 1 and target not in answered:
                continue  # the log ends between the request and the event that belongs to it
            told.add(call.id or target)
            what = "confirmation" if call.name == CONFIRMATION else "credential"
            message = f"A {what} was requested, but no event has the entry in `{field}` that ADK stores with it."
            severity = None
            if by_agent.get(target, len(log.entries)) > by_user.get(call.id, len(log.entries) - 1):
                severity = Severity.INFO
                message += (
                    " The event that would hold it is not there either: the client stopped reading at the request, or"
                    " a migration dropped the event."
                )
            yield of_session(
                self,
                log,
                message,
                severity=severity,
                entries=[call.entry],
                role="request",
                call_ids=[ident for ident in (call.id, target) if ident],
                subject=(field, call.id or target),
            )

    def finish(self) -> Iterator[Finding]:
        yield from self._close_app()
        if self._any_action or self._with_state < _ENOUGH_SESSIONS or not self.context.whole:
            return
        message = (
            f"{plural(self._with_state, 'session')} with events have state, and no event of the whole database has any "
            "action: an earlier migration has probably emptied them."
        )
        yield of_database(
            self, message, subject=("no actions",), confidence=Confidence.INFERRED, evidence=tuple(self._sample)
        )


def _first_responses(log: SessionLog) -> tuple[dict[str | None, int], dict[str | None, int]]:
    """Per id: the place of the first response by an agent, and of the first by a user."""
    by_agent: dict[str | None, int] = {}
    by_user: dict[str | None, int] = {}
    for response in log.responses:
        (by_user if response.by_user else by_agent).setdefault(response.id, response.entry.index)
    return by_agent, by_user


def _keys(log: SessionLog, field: str) -> set[str]:
    found: set[str] = set()
    for entry in log.asking:
        found.update(entry.asked(field))
    return found
