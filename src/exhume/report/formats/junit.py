"""`--format junit`: one test case a finding, for CI systems that show JUnit XML."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from exhume.audit.findings import Finding, Severity
from exhume.redact import printable
from exhume.report.view import View, counts, place_of
from exhume.report.wire import rfc3339

_LONGEST = 4000


def render(view: View) -> Iterator[str]:
    """A suite for each session with findings. Errors and warnings that count are failures, suppressed ones are skipped.

    A run without findings is one passed case, since CI systems take an empty file for a broken one.
    """
    failures = sum(_fails(one) for one in view.findings)
    skipped = sum(not counts(one) for one in view.findings)
    total = max(len(view.findings), 1)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    name = _attribute(f"exhume {view.command}")
    yield f'<testsuites name={name} tests="{total}" failures="{failures}" skipped="{skipped}">\n'
    if not view.findings:
        yield f'  <testsuite name={_attribute(view.source)} tests="1" failures="0" skipped="0">\n'
        yield f"    <testcase classname={_attribute(view.command)} name={_attribute(view.verdict)}/>\n  </testsuite>\n"
    for _, group in groupby(view.findings, key=lambda one: (one.app_name, one.user_id, one.session_id)):
        yield from _suite(list(group))
    yield "</testsuites>\n"


def _suite(findings: list[Finding]) -> Iterator[str]:
    failures = sum(_fails(one) for one in findings)
    skipped = sum(not counts(one) for one in findings)
    name = _attribute(place_of(findings[0]))
    yield f'  <testsuite name={name} tests="{len(findings)}" failures="{failures}" skipped="{skipped}">\n'
    for one in findings:
        # equal names in one suite are one test to some systems
        label = f"{one.rule} {one.name} {one.fingerprint[:12]}".strip()
        yield f"    <testcase classname={name} name={_attribute(label)}>\n"
        if not counts(one):
            yield f"      <skipped message={_attribute(_aside(one))}/>\n"
        elif _fails(one):
            yield f"      <failure type={_attribute(one.severity.label)} message={_attribute(one.message)}>"
            yield f"{_body(one)}</failure>\n"
        else:
            yield f"      <system-out>{_escape(one.message)}</system-out>\n"
        yield "    </testcase>\n"
    yield "  </testsuite>\n"


def _fails(finding: Finding) -> bool:
    return counts(finding) and finding.severity > Severity.INFO


def _aside(finding: Finding) -> str:
    reason = "rewound" if finding.suppressed is None else f"suppressed: {finding.suppressed}"
    return f"{reason}: {finding.message}"


def _body(finding: Finding) -> str:
    lines = [finding.message]
    for one in finding.evidence:
        call = f" call {one.call_id}" if one.call_id else ""
        lines.append(f"{rfc3339(one.time) or 'no time'} {one.role}{call} event {one.key.event_id} {one.note}".rstrip())
    if finding.todo:
        lines.append(f"What to do: {finding.todo}")
    return "\n".join(_escape(line) for line in lines)


def _escape(text: str) -> str:
    # every character that XML 1.0 forbids is a control, a surrogate or unassigned: `printable` spells those out
    shown = printable(text, limit=_LONGEST)
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _attribute(text: str) -> str:
    return '"' + _escape(text).replace('"', "&quot;") + '"'
