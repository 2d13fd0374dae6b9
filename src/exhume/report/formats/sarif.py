"""`--format sarif`: SARIF 2.1.0 for code scanning, with the evidence of each finding as a code flow."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from exhume._version import __version__
from exhume.audit.findings import Evidence, Finding, Severity
from exhume.redact import printable
from exhume.report.view import RulePage, View
from exhume.report.wire import compact, rfc3339

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_LONGEST = 4000


def render(view: View) -> Iterator[str]:
    """One SARIF log with one run; a result a line, so that a long log is written as it goes."""
    pages = {page.id: page for page in view.rules}
    for finding in view.findings:
        if finding.rule not in pages:
            pages[finding.rule] = RulePage(finding.rule, finding.name, finding.severity, finding.name, finding.name)
    rules = [pages[ident] for ident in sorted(pages)]
    index = {page.id: place for place, page in enumerate(rules)}
    artifact = _artifact(view.source)
    driver = {
        "name": "exhume",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(page) for page in rules],
    }
    yield f'{{\n"$schema": {compact(_SCHEMA)},\n"version": "2.1.0",\n"runs": [{{\n'
    yield f'"tool": {compact({"driver": driver})},\n'
    yield f'"automationDetails": {compact({"id": f"exhume/{view.command}/"})},\n'
    yield f'"invocations": {compact([_invocation(view)])},\n'
    yield f'"artifacts": {compact([{"location": artifact}])},\n'
    yield '"columnKind": "unicodeCodePoints",\n'
    yield '"results": ['
    for place, finding in enumerate(view.findings):
        yield ("," if place else "") + "\n" + compact(_result(finding, index[finding.rule], artifact))
    yield "\n]\n}]\n}\n"


def _invocation(view: View) -> dict[str, Any]:
    found: dict[str, Any] = {"executionSuccessful": True}
    if view.started_at:
        found["startTimeUtc"] = view.started_at
    if view.finished_at:
        found["endTimeUtc"] = view.finished_at
    if view.notes:
        found["toolExecutionNotifications"] = [{"level": "note", "message": _message(note)} for note in view.notes]
    return found


def _rule(page: RulePage) -> dict[str, Any]:
    return {
        "id": page.id,
        "name": page.name,
        "shortDescription": {"text": page.summary or page.name},
        "fullDescription": {"text": page.summary or page.name},
        "help": {"text": page.text or page.name, "markdown": page.text or page.name},
        "defaultConfiguration": {"level": _LEVELS[page.severity]},
    }


def _result(finding: Finding, rule_index: int, artifact: dict[str, str]) -> dict[str, Any]:
    message = finding.message + (f" What to do: {finding.todo}" if finding.todo else "")
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        # what the application took back stays visible, but not as an alert
        "level": "note" if finding.rewound else _LEVELS[finding.severity],
        "message": _message(message),
        "locations": [_location(artifact, _place(finding))],
        "properties": {
            # ids as they can be shown: strict parsers refuse lone surrogates. `--format json` has them exactly
            "app_name": _shown(finding.app_name),
            "user_id": _shown(finding.user_id),
            "session_id": _shown(finding.session_id),
            "event_ids": [_shown(one) for one in finding.event_ids],
            "call_ids": [_shown(one) for one in finding.call_ids],
            "confidence": str(finding.confidence),
            "severity": finding.severity.label,
            "rewound": finding.rewound,
        },
    }
    if finding.fingerprint:
        result["partialFingerprints"] = {"exhume/v1": finding.fingerprint}
    if finding.evidence:
        flow = [_step(one, artifact) for one in finding.evidence]
        result["codeFlows"] = [{"threadFlows": [{"locations": flow}]}]
    if finding.suppressed is not None:
        suppression = {"kind": "external", "status": "accepted", "justification": printable(finding.suppressed)}
        result["suppressions"] = [suppression]
    return result


def _place(finding: Finding) -> list[dict[str, str]]:
    """Logical locations: the session, or the events that the finding names."""
    parts = [part for part in (finding.app_name, finding.user_id, finding.session_id) if part is not None]
    if not parts:
        return [{"name": "database", "fullyQualifiedName": "/", "kind": "resource"}]
    if finding.session_id is None or not finding.event_ids:
        return [_logical(parts, "resource")]
    return [_logical([*parts, event], "element") for event in dict.fromkeys(finding.event_ids)]


def _logical(parts: list[str], kind: str) -> dict[str, str]:
    # each part is quoted, so that a slash inside an id cannot make it another place
    return {
        "name": printable(parts[-1], limit=_LONGEST),
        "fullyQualifiedName": "/".join(map(_quoted, parts)),
        "kind": kind,
    }


def _step(one: Evidence, artifact: dict[str, str]) -> dict[str, Any]:
    key = one.key
    what = " ".join(part for part in (one.role, one.call_id or "", one.note) if part)
    where = [part for part in (key.app_name, key.user_id, key.session_id, key.event_id) if part]
    logical = [_logical(where, "element")] if where else []
    step: dict[str, Any] = {
        "location": {**_location(artifact, logical), "message": _message(what)},
        "kinds": [printable(one.role)],
    }
    time = rfc3339(one.time)
    if time is not None:
        step["executionTimeUtc"] = time
    return step


def _location(artifact: dict[str, str], logical: list[dict[str, str]]) -> dict[str, Any]:
    # code scanning drops a result without a physical location; a database has no lines, so it is the first one
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": 1}}}
    if logical:
        location["logicalLocations"] = logical
    return location


def _artifact(source: str) -> dict[str, str]:
    """The source by its last name: paths of one machine mean nothing to whoever reads the log elsewhere."""
    name = source.rstrip("/").rsplit("/", 1)[-1] or source
    return {"uri": _quoted(name) or "source"}


def _shown(ident: str | None) -> str | None:
    return None if ident is None else printable(ident, limit=_LONGEST)


@lru_cache(maxsize=64)  # the parts of a session's name come with each of its findings, and with all their evidence
def _quoted(text: str) -> str:
    return quote(printable(text, limit=_LONGEST), safe="")


def _message(text: str) -> dict[str, str]:
    # `{0}` and `[text](target)` mean something in SARIF messages: placeholders and links
    shown = printable(text, limit=_LONGEST)
    return {"text": shown.replace("{", "{{").replace("}", "}}").replace("[", "\\[").replace("]", "\\]") or "-"}
