"""`--format github`: workflow commands that GitHub turns into annotations."""

from __future__ import annotations

from collections.abc import Iterator

from exhume.audit.findings import Finding, Severity
from exhume.redact import printable
from exhume.report.view import View, counts, place_of

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_LONGEST = 2000


def render(view: View) -> Iterator[str]:
    """One annotation a finding that counts, worst first, then one line with the verdict.

    GitHub shows ten annotations of each kind a step, so the order matters. Suppressed and rewound findings are left to
    the other formats.
    """
    for finding in sorted((one for one in view.findings if counts(one)), key=lambda one: -one.severity):
        yield _annotation(finding)
    yield f"::notice title={_property(f'exhume {view.command}')}::{_data(f'{view.source}: {view.verdict}')}\n"


def _annotation(finding: Finding) -> str:
    title = f"{finding.rule} {finding.name}" if finding.rule != finding.name else finding.rule
    message = f"{place_of(finding)}: {finding.message}"
    if finding.todo:
        message += f" What to do: {finding.todo}"
    return f"::{_COMMANDS[finding.severity]} title={_property(title)}::{_data(message)}\n"


def _data(text: str) -> str:
    # `printable` leaves no line end; `%` is escaped so that no sequence in the data decodes to one either
    return printable(text, limit=_LONGEST).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
