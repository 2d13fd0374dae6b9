"""Builds findings that rest on calls and responses: evidence in causal order, ids made printable."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from exhume.audit.findings import Confidence, Evidence, Finding, Severity
from exhume.audit.log import Call, Decision, GatedCall, Request, Response, SessionLog
from exhume.audit.rule import Rule
from exhume.audit.rules.row_findings import judged_absence
from exhume.redact import printable

#: Parts that one finding names: enough for the story of any honest call. A hostile file may have millions.
MOST_EVIDENCE = 30
#: Longest part of a fingerprint's subject; ids are shorter, a hostile one may be megabytes long.
LONGEST_SUBJECT = 300


class Part(NamedTuple):
    """A call or response that a finding rests on, and what it is to it (`call`, `request`, `approval`, ...)."""

    role: str
    item: Call | Response
    note: str = ""


def shown(text: object) -> str:
    """A name or id from the log, short and printable."""
    return printable(text, limit=80)


def named(call: Call) -> str:
    """A call as a reader wants to see it: `issue_refund (adk-1)`."""
    return f"{shown(call.name or 'a call without a name')} ({shown(call.id) if call.id else 'no id'})"


def identity(call: Call) -> str:
    """What tells a call apart in a fingerprint: an id that ADK made, else the id with the event that holds it."""
    return call.id if call.id is not None and call.own_id else f"{call.id or call.name}@{call.entry.event_id}"


def of_parts(
    rule: Rule,
    log: SessionLog,
    message: str,
    parts: Iterable[Part],
    *,
    subject: Iterable[str],
    severity: Severity | None = None,
    confidence: Confidence = Confidence.EXACT,
    absence: bool = False,
) -> Finding:
    """A finding on one session.

    Args:
        parts: calls and responses it rests on, in any order; they are told in causal order.
        subject: what the fingerprint is made of beside rule and session.
        severity: None takes the rule's.
        absence: see `judged_absence`.
    """
    if absence:
        message, severity = judged_absence(log, message, severity)
    evidence: list[Evidence] = []
    event_ids: dict[str, None] = {}  # in causal order, each once
    call_ids: dict[str, None] = {}
    for part in sorted(parts, key=lambda part: part.item.entry.index):
        item = part.item
        if item.id is not None:
            call_ids[item.id] = None
        if len(evidence) < MOST_EVIDENCE:
            evidence.append(as_evidence(part))
            event_ids[item.entry.event_id] = None
    return rule.finding(
        message,
        place=log.key,
        subject=[one[:LONGEST_SUBJECT] for one in subject],
        severity=severity,
        confidence=confidence,
        event_ids=tuple(event_ids),
        call_ids=tuple(call_ids)[:MOST_EVIDENCE],
        evidence=tuple(evidence),
    )


def of_gated(
    rule: Rule,
    log: SessionLog,
    message: str,
    gated: GatedCall,
    *,
    severity: Severity | None = None,
    absence: bool = False,
) -> Finding:
    """A finding on one gated call, with its whole story as evidence."""
    return of_parts(
        rule,
        log,
        message,
        story(gated),
        subject=(identity(gated.call),),
        severity=severity,
        confidence=confidence_of(gated.requests),
        absence=absence,
    )


def as_evidence(part: Part) -> Evidence:
    """One row of evidence."""
    entry = part.item.entry
    return Evidence("events", entry.record.key, part.role, entry.time, part.item.id, part.note)


def request_parts(request: Request) -> list[Part]:
    """The request as it was stored, each time."""
    return [Part("request", call) for call in request.calls]


def exchange(request: Request) -> list[Part]:
    """A request and all answers to it."""
    return request_parts(request) + [decision_part(decision) for decision in request.decisions]


def decision_part(decision: Decision) -> Part:
    """An answer, with what it says."""
    if decision.approved is None:
        return Part("unreadable answer", decision.response, decision.reason)
    note = "" if decision.payload is None else "with a payload"
    return Part("approval" if decision.approved else "rejection", decision.response, note)


def story(gated: GatedCall) -> list[Part]:
    """All about a gated call: the call, its placeholder, requests, decisions, results."""
    parts = [Part("call", call) for call in gated.calls]
    parts += [Part("placeholder", response) for response in gated.placeholders]
    for request in gated.requests:
        parts += exchange(request)
    for role, responses in (
        ("execution", gated.executions),
        ("execution", gated.early),
        ("refusal", gated.refusals),
        ("unknown tool", gated.unknown_tool),
        ("aborted", gated.sealed),
        ("misdirected answer", gated.misdirected),
    ):
        parts += [Part(role, response) for response in responses]
    return parts


def confidence_of(requests: Iterable[Request]) -> Confidence:
    """`inferred` where any of the requests was tied to its call by name and content."""
    inferred = any(request.confidence is Confidence.INFERRED for request in requests)
    return Confidence.INFERRED if inferred else Confidence.EXACT


def times(number: int) -> str:
    """`once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def duration(start: float | None, end: float | None) -> str:
    """The time between two epochs for a sentence: `4 s`, `12 min`, `3 h`, `2 days`, or `an unknown time`."""
    seconds = math.nan if start is None or end is None else end - start
    if math.isnan(seconds):
        return "an unknown time"
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:,.1f} s"
