"""2xx: ids that events name outside of calls and responses (EXH208 to EXH211)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from exhume.audit.findings import Confidence, Finding, Severity
from exhume.audit.log import NO_CALL_PREFIXES, WANTED_CONFIRMATIONS, WANTED_CREDENTIALS, Entry, SessionLog
from exhume.audit.pairing import call_id
from exhume.audit.rule import Rule, register
from exhume.audit.rules.call_findings import LONGEST_SUBJECT, Part, of_parts, shown
from exhume.audit.rules.row_findings import MOST_EVIDENCE, of_session

#: A path of workflow nodes with the number of each run (google.adk.workflow, 2.0.0 on).
_NODE_PATH = re.compile(r"[^/@]+@[^/@]+(?:/[^/@]+@[^/@]+)*\Z")
#: Longest scope that is looked at as a path.
_LONGEST_SCOPE = 10_000
#: Ids of one event that a fingerprint is made of.
_IN_SUBJECT = 5


@register
class MixedInvocations(Rule):
    """EXH208 mixed-invocations

    ## What it detects
    One user event that answers calls of several invocations.

    ## Why it matters
    ADK resumes one invocation by such a message; answers to the other one are lost or refused.

    ## Example
    A front end collects two open approvals of different turns and sends both answers in one message.

    ## How ADK behaves
    The runner of 2.x refuses a user message whose responses belong to calls of several invocations. 1.x stores it and
    looks for the calls by id.

    ## Harmless causes
    A 1.x application that answers several open requests at once on purpose.

    ## What to do
    Make the client send one message for each invocation.
    """

    id = "EXH208"
    name = "mixed-invocations"
    severity = Severity.ERROR
    todo = "Make the client send the answers of each invocation in a message of their own."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        last: Entry | None = None
        for response in log.responses:
            entry = response.entry
            if entry is last or not response.by_user or len(entry.responses) < 2:
                continue
            last = entry
            answered = [one for one in entry.responses if one.call is not None and one.confidence is Confidence.EXACT]
            invocations = {one.call.entry.invocation_id for one in answered if one.call is not None} - {""}
            if len(invocations) < 2:
                continue
            parts = [Part("response", one) for one in answered]
            parts += [Part("call", one.call) for one in answered if one.call is not None]
            message = f"One user event answers calls of {len(invocations):,} invocations."
            yield of_parts(self, log, message, parts, subject=(entry.event_id,))


@register
class DanglingLongRunningId(Rule):
    """EXH209 dangling-long-running-id

    ## What it detects
    `long_running_tool_ids` of an event names an id that no call in this event has.

    ## Why it matters
    A client waits for something that nobody does, or a call is taken for an ordinary one and never waited for.

    ## Example
    The column names the id that the streamed, partial event had; the final event's call has another one.

    ## How ADK behaves
    The field lists calls of the same event only (google.adk.events.event, all releases).

    ## Harmless causes
    Events that an application made itself.

    ## What to do
    Look for the call in the neighbouring events.
    """

    id = "EXH209"
    name = "dangling-long-running-id"
    severity = Severity.WARNING
    todo = "Look for the call in the neighbouring events."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        for entry in log.listing:
            if entry.partial or entry.blind:
                continue
            listed = entry.data.get("long_running_tool_ids")
            if not isinstance(listed, list):
                continue
            own = {call.id for call in entry.calls}
            dangling = sorted({ident for ident in map(call_id, listed) if ident is not None and ident not in own})
            if dangling:
                message = f"long_running_tool_ids names {_some(dangling)}, which no call of the event has."
                yield of_session(
                    self,
                    log,
                    message,
                    entries=[entry],
                    call_ids=dangling[:MOST_EVIDENCE],
                    subject=(entry.event_id, *dangling[:_IN_SUBJECT]),
                )


def _some(idents: list[str]) -> str:
    rest = f" and {len(idents) - 3:,} more" if len(idents) > 3 else ""
    return ", ".join(map(shown, idents[:3])) + rest


@register
class OrphanedActionKey(Rule):
    """EXH210 orphaned-action-key

    ## What it detects
    `requested_auth_configs` or `requested_tool_confirmations` is keyed by an id that no call of the session has.

    ## Why it matters
    Somebody is asked for a credential or an approval, and nothing can be resumed with it.

    ## Example
    A confirmation is keyed by the id of a call in another session.

    ## How ADK behaves
    The keys are the ids of the calls whose tools asked (google.adk.tools.tool_context). Requests for a whole toolset
    have keys that begin with `_adk_toolset_auth_`; these are left aside. Compaction counts such keys as open for
    ever.

    ## Harmless causes
    A log that was cut at its beginning; events that an application made itself.

    ## What to do
    Search the other sessions for the id.
    """

    id = "EXH210"
    name = "orphaned-action-key"
    severity = Severity.ERROR
    todo = "Search the other sessions for this call id."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        known: set[str | None] | None = None
        for entry in log.asking:
            for field in (WANTED_CONFIRMATIONS, WANTED_CREDENTIALS):
                keyed = entry.asked(field)
                if not keyed:
                    continue
                if known is None:
                    known = {call.id for call in log.calls}
                orphans = sorted(
                    key for key in map(str, keyed) if key not in known and not key.startswith(NO_CALL_PREFIXES)
                )
                if orphans:
                    message = f"{field} is keyed by {_some(orphans)}, which no call of the session has."
                    yield of_session(
                        self,
                        log,
                        message,
                        entries=[entry],
                        call_ids=orphans[:MOST_EVIDENCE],
                        subject=(entry.event_id, field, *orphans[:_IN_SUBJECT]),
                        absence=True,
                    )


@register
class OrphanedScope(Rule):
    """EXH211 orphaned-scope

    ## What it detects
    An `isolation_scope` that is neither the id of a call in the session nor a path of `name@run` segments.

    ## Why it matters
    Agents see only events of their own scope: these events are invisible to every agent, or belong to a task of
    another session.

    ## Example
    Events carry the scope `refunds@`, a node without the number of its run.

    ## How ADK behaves
    2.x scopes a delegated task by the id of the call that started it, and a workflow's task node by its path, such as
    `flow@1/refund_step@1`.

    ## Harmless causes
    Events that an application made itself.

    ## What to do
    Look for the call that started the task, here and in other sessions.
    """

    id = "EXH211"
    name = "orphaned-scope"
    severity = Severity.WARNING
    todo = "Look for the call that started this task, here and in other sessions."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if not log.scoped:
            return
        known = {call.id for call in log.calls}
        orphaned: dict[str, list[Entry]] = {}
        for entry in log.scoped:
            scope = entry.data.get("isolation_scope")
            if isinstance(scope, str) and (scope in known or _is_path(scope)):
                continue
            orphaned.setdefault(scope if isinstance(scope, str) else repr(type(scope)), []).append(entry)
        for scope, entries in orphaned.items():
            number = "An event has" if len(entries) == 1 else f"{len(entries):,} events have"
            message = f"{number} the scope {shown(scope)}, which is neither a call of the session nor a path of runs."
            yield of_session(self, log, message, entries=entries, subject=(scope[:LONGEST_SUBJECT],), absence=True)


def _is_path(scope: str) -> bool:
    return len(scope) <= _LONGEST_SCOPE and _NODE_PATH.match(scope) is not None
