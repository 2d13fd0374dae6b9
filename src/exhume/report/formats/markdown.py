"""`--format markdown`: for the summary of a CI job. No HTML, link or heading from the data takes effect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from exhume.audit.findings import Evidence, Finding
from exhume.redact import printable
from exhume.report.view import Block, Line, Mood, View, number, place_of
from exhume.report.wire import rfc3339

_LONGEST = 1000
#: A job summary holds one MiB; whole sessions are left out beyond this, the rest of the report is small.
_MOST_BYTES = 800_000
_MOODS = {Mood.GOOD: "✅", Mood.LOOK: "⚠️", Mood.BAD: "❌"}

#: What means something in running text or at the start of a block, and the marks by which GitHub links bare URLs and
#: names. CommonMark lets every ASCII punctuation mark be escaped.
_SPECIAL = re.compile(r"([\\`*_\[\]#.!|~<>&$:@]|^[-+=])")


def render(view: View) -> Iterator[str]:
    """Verdict, what to do, facts, tables, then the findings of each session."""
    yield f"## {_MOODS[view.mood]} exhume {_text(view.command)}\n\n"
    yield f"**{_text(view.verdict)}**\n\n"
    for todo in view.todo:
        yield f"- {_text(todo)}\n"
    yield "\n" if view.todo else ""
    yield from _table(Block("", ("", ""), (("source", view.source), *view.facts)))
    for block in view.blocks:
        yield f"### {_text(block.title)}\n\n"
        yield from _table(block)
    if view.lines:
        yield from _preformatted(view.lines)
    room, shown = _MOST_BYTES, 0
    for _, group in groupby(view.findings, key=lambda one: (one.app_name, one.user_id, one.session_id)):
        findings = list(group)
        text = "".join(_session(findings))
        room -= len(text.encode())
        if room < 0:
            break
        shown += len(findings)
        yield text
    if len(view.findings) > shown:
        yield f"{_text(number(len(view.findings) - shown, 'more finding'))}: the other formats give all of them\\.\n\n"
    for note in view.notes:
        yield f"- {_text(note)}\n"


def _session(findings: list[Finding]) -> Iterator[str]:
    yield f"### {_text(place_of(findings[0]))}\n\n"
    for one in findings:
        title = " ".join(dict.fromkeys((one.rule, one.name)))
        aside = " (rewound)" if one.rewound else ""
        aside += f" (suppressed: {one.suppressed})" if one.suppressed is not None else ""
        yield f"- **{one.severity.label}** {_text(title + aside)}: {_text(one.message)}\n"
        for step in one.evidence:
            yield f"  - {_text(_step(step))}\n"
        if one.todo:
            yield f"  - What to do: {_text(one.todo)}\n"
    yield "\n"


def _step(step: Evidence) -> str:
    call = f" {step.call_id}" if step.call_id else ""
    note = f", {step.note}" if step.note else ""
    return f"{rfc3339(step.time) or 'no time'} {step.role}{call}, event {step.key.event_id}{note}"


def _table(block: Block) -> Iterator[str]:
    if block.columns == ("",):
        for (text,) in block.rows:
            yield f"- {_text(text)}\n"
        yield "\n"
        return
    yield "| " + " | ".join(_text(column) for column in block.columns) + " |\n"
    yield "| " + " | ".join("---:" if index in block.right else "---" for index in range(len(block.columns))) + " |\n"
    for row in block.rows:
        yield "| " + " | ".join(_text(cell) for cell in row) + " |\n"
    yield "\n"
    if block.note:
        yield f"{_text(block.note)}\n\n"


def _preformatted(lines: tuple[Line, ...]) -> Iterator[str]:
    # indented code cannot be ended from inside, whatever the lines hold
    for line in lines:
        yield f"    {' ' * line.indent}{line.mark} {printable(line.text, limit=_LONGEST)}".rstrip() + "\n"
    yield "\n"


def _text(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", printable(text, limit=_LONGEST))
