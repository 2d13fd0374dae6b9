"""What a person is shown of a result, before any format: a verdict, what to do, facts, tables, findings.

Texts in here are raw and may be hostile. Each format makes them harmless in its own way.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from exhume.audit.findings import Finding, Severity
from exhume.events.model import TimeZoneReport


class Mood(enum.Enum):
    """How the verdict is to be taken; tables colour it, JUnit and annotations derive their level from findings."""

    GOOD = "good"
    LOOK = "look"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Block:
    """One small table. `right` are the indexes of columns of numbers; `note` stands below it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()
    note: str = ""


class Line(NamedTuple):
    """One line of a timeline. `mark` stands before the text; where the text wraps, it stays beside its mark, so that
    nothing in it can pose as a line of its own."""

    indent: int
    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class RulePage:
    """What a format that knows rules says of one: SARIF's rule list, for example.

    `text` is the whole documentation in plain text, `severity` the usual one.
    """

    id: str
    name: str
    severity: Severity
    summary: str
    text: str


@dataclass(frozen=True, slots=True)
class View:
    """One result as people and CI systems see it.

    Attributes:
        command: the verb, such as `audit`.
        source: redacted name of what was looked at.
        verdict: the one sentence to read when only one is read.
        todo: what to do now, in order.
        facts: pairs of name and value.
        lines: a timeline, or whatever else reads best line by line.
        findings: grouped by session, worst first; refused rows, contradictions and differences are findings too.
        rules: pages of at least the rules that occur in `findings`.
    """

    command: str
    source: str
    mood: Mood
    verdict: str
    todo: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    blocks: tuple[Block, ...] = ()
    lines: tuple[Line, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    rules: tuple[RulePage, ...] = ()
    started_at: str = ""
    finished_at: str = ""


def place_of(finding: Finding) -> str:
    """`app / user / session`, as far as a finding has them."""
    parts = [part for part in (finding.app_name, finding.user_id, finding.session_id) if part is not None]
    return " / ".join(parts) if parts else "the whole database"


def counts(finding: Finding) -> bool:
    """Does a finding count for the exit code: neither suppressed nor rewound?"""
    return finding.suppressed is None and not finding.rewound


def number(count: int, one: str, many: str = "") -> str:
    """`1 session`, `2 sessions`; `many` for plurals that do not end in s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def zone_text(report: TimeZoneReport) -> str:
    """The zone and what speaks for it, in one line."""
    text = f"{report.zone} ({report.proof})"
    if report.sessions_agreeing or report.sessions_disagreeing:
        text += f": {number(report.sessions_agreeing, 'session')} agree"
        text += f", {report.sessions_disagreeing:,} disagree" if report.sessions_disagreeing else ""
    return text + (f"; {number(report.ambiguous, 'time')} in a repeated hour" if report.ambiguous else "")


def list_blocks(*lists: tuple[str, Sequence[str]]) -> list[Block]:
    """A block of one column for each list that is not empty."""
    return [Block(title, ("",), tuple((text,) for text in texts)) for title, texts in lists if texts]


def contradiction(text: str) -> Finding:
    """A contradiction as a finding on the whole database, which no rule of the catalogue makes."""
    return Finding(
        rule="contradiction",
        name="contradiction",
        severity=Severity.WARNING,
        message=text,
        app_name=None,
        user_id=None,
        session_id=None,
        fingerprint="contradiction",
    )
