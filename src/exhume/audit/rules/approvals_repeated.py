"""1xx across sessions: the same action approved again (EXH103)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from exhume.audit.canonical import arguments, canonical
from exhume.audit.findings import Evidence, Finding, Severity
from exhume.audit.log import GatedCall, SessionLog
from exhume.audit.rule import Context, Rule, register
from exhume.audit.rules.call_findings import (
    MOST_EVIDENCE,
    Part,
    as_evidence,
    decision_part,
    duration,
    identity,
    shown,
    times,
)
from exhume.events.model import SessionKey


class _Approved(NamedTuple):
    """One approved call, as little of it as a finding needs."""

    time: float
    session: SessionKey
    call: str
    tool: str
    ran: bool
    rewound: bool
    evidence: tuple[Evidence, ...]


@register
class RepeatedActionApproved(Rule):
    """EXH103 repeated-action-approved

    ## What it detects
    Different calls of one app and user with the same tool and the same arguments, each approved, with no more than
    the window (`--window`, seven days by default) between the first approvals of neighbours in time; in one session
    or across sessions. Key order in the arguments does not count, and numbers count by value.

    ## Why it matters
    A worker that restarts asks again for the same action under new ids. The reviewer sees what looks like the same
    request and approves it again: two refunds. No id repeats, so only the content tells.

    ## Example
    `issue_refund {"order_id": "O-12", "amount": 300}` is approved on Friday under one id and on Monday under another.

    ## How ADK behaves
    Each model turn makes a new call with a new id; nothing compares it with calls that were approved before, in any
    release.

    ## Harmless causes
    An action that is meant to repeat: a weekly order, a heater that is switched on each evening. Then use a
    suppression or a smaller window. When at most one of the calls ran the finding is a warning.

    ## What to do
    Ask whether the customer was to get it once; compare the results in the evidence with the system behind the tool.
    """

    id = "EXH103"
    name = "repeated-action-approved"
    severity = Severity.ERROR
    todo = "Find out whether the action was meant once, and undo the surplus one."

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.user: tuple[str, str] | None = None
        self.approved: dict[bytes, list[_Approved]] = {}

    def session(self, log: SessionLog) -> Iterable[Finding]:
        found: Iterable[Finding] = ()
        user = (log.key.app_name, log.key.user_id)
        if user != self.user:  # sessions come in key order: the groups of the user before are complete
            if self.approved:
                found = list(self.finish())
            self.user = user
        if log.approvals is not None:
            for gated in log.approvals.gated:
                self._keep(log, gated)
        return found

    def _keep(self, log: SessionLog, gated: GatedCall) -> None:
        approvals = gated.approvals
        if not approvals:
            return
        call = gated.call
        parts = [Part("call", call), decision_part(approvals[0])]
        runs = gated.executions or gated.early
        if runs:
            parts.append(Part("execution", runs[0]))
        parts.sort(key=lambda part: part.item.entry.index)
        action = canonical([call.name]) + arguments(call)
        self.approved.setdefault(action, []).append(
            _Approved(
                approvals[0].response.entry.time or 0.0,
                log.key,
                identity(call),
                call.name,
                bool(runs),
                all(log.is_rewound(part.item.entry.index) for part in parts),
                tuple(map(as_evidence, parts)),
            )
        )

    def finish(self) -> Iterable[Finding]:
        groups, self.approved = self.approved, {}
        for group in groups.values():
            if len(group) > 1:
                for run in _neighbours(group, self.context.window):
                    yield self._finding(run)

    def _finding(self, group: list[_Approved]) -> Finding:
        last = group[-1]
        ran = sum(one.ran for one in group)
        sessions = len({one.session for one in group})
        where = "in one session" if sessions == 1 else f"in {sessions:,} sessions of one user"
        evidence = tuple(part for one in group for part in one.evidence)[:MOST_EVIDENCE]
        calls = [one.evidence[0].call_id for one in group]
        message = (
            f"{shown(last.tool)} with the same arguments was approved {times(len(group))} under different calls"
            f" {where}, within {duration(group[0].time, last.time)}; {ran:,} of them ran."
        )
        found = self.finding(
            message,
            place=last.session,
            subject=sorted(one.call for one in group)[:MOST_EVIDENCE],
            severity=Severity.ERROR if ran > 1 else Severity.WARNING,
            event_ids=tuple(dict.fromkeys(part.key.event_id for part in evidence)),
            call_ids=tuple(dict.fromkeys(one for one in calls if one is not None))[:MOST_EVIDENCE],
            evidence=evidence,
        )
        return replace(found, rewound=all(one.rewound for one in group))


def _neighbours(group: list[_Approved], window: float) -> Iterator[list[_Approved]]:
    """Runs of at least two different calls in which neighbours in time are no more than the window apart."""
    run: list[_Approved] = []
    seen: set[str] = set()
    for one in sorted(group, key=lambda one: (one.time, one.session, one.call)):
        if one.call in seen:
            continue  # a copy of the session holds the same call
        seen.add(one.call)
        if run and one.time - run[-1].time > window:
            if len(run) > 1:
                yield run
            run = []
        run.append(one)
    if len(run) > 1:
        yield run
