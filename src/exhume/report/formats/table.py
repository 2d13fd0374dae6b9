"""`--format table`: for a person at a terminal. Nothing from a database is interpreted: no markup, no escapes."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from itertools import groupby
from typing import TYPE_CHECKING

from exhume.audit.findings import Evidence, Finding, Severity
from exhume.redact import printable
from exhume.report.formats import Look
from exhume.report.view import Block, Mood, View, counts, number, place_of
from exhume.report.wire import rfc3339

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

#: More than a person reads; the machine formats give all.
_MOST_FINDINGS = 500
_MOST_EVIDENCE = 20
_LONGEST = 2000

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "dim"}
_MOODS = {Mood.GOOD: "bold green", Mood.LOOK: "bold yellow", Mood.BAD: "bold red"}


def render(view: View, look: Look) -> Iterator[str]:
    """A view as text, `look.width` columns wide. The verdict comes first."""
    page = _Page(look)
    page.say(view.verdict, style=_MOODS[view.mood])
    for text in view.todo:
        page.hang("->", text, indent=2)
    page.say("")
    page.facts((("source", view.source), *view.facts))
    for block in view.blocks:
        page.block(block)
    for line in view.lines:
        page.hang(line.mark, line.text, indent=line.indent, style="" if line.indent else "bold")
    yield page.take()
    shown = view.findings[:_MOST_FINDINGS]
    for _, group in groupby(shown, key=lambda one: (one.app_name, one.user_id, one.session_id)):
        page.session(list(group))
        yield page.take()
    if len(view.findings) > len(shown):
        page.say("")
        page.say(f"{number(len(view.findings) - len(shown), 'more finding')}: --format json gives all of them.")
    if view.notes:
        page.say("")
        for note in view.notes:
            page.hang("note:", note, style="dim")
    yield page.take()


class _Page:
    """A rich console that writes into memory, and the few things that are put on it."""

    def __init__(self, look: Look) -> None:
        from rich.console import Console

        self._out = StringIO()
        self._console: Console = Console(
            file=self._out,
            width=max(look.width, 40),
            force_terminal=look.color,
            no_color=not look.color,
            color_system="standard" if look.color else None,
            markup=False,
            emoji=False,
            highlight=False,
            legacy_windows=False,
        )

    def take(self) -> str:
        """What was put on the page since it was last taken, without blanks at line ends."""
        text = self._out.getvalue()
        self._out.seek(0)
        self._out.truncate()
        return "".join(line.rstrip() + "\n" for line in text.splitlines())

    def say(self, text: str, *, style: str = "", indent: int = 0) -> None:
        from rich.padding import Padding

        self._console.print(Padding(_rich(text, style), (0, 0, 0, indent)))

    def hang(self, mark: str, text: str, *, style: str = "", indent: int = 0) -> None:
        """A mark and a text beside it. Lines that wrap stay beside the mark: no text can pose as a line of its own."""
        from rich.padding import Padding

        grid = _grid(gap=1)
        grid.add_row(_rich(mark, style), _rich(text, style))
        self._console.print(Padding(grid, (0, 0, 0, indent)))

    def facts(self, facts: tuple[tuple[str, str], ...]) -> None:
        grid = _grid()
        for name, value in facts:
            grid.add_row(_rich(name, "dim"), _rich(value))
        self._console.print(grid)

    def block(self, block: Block) -> None:
        from rich.table import Table

        self.say("")
        self.say(block.title, style="bold")
        if block.columns == ("",):
            for (text,) in block.rows:
                self.hang("-", text, indent=2)
            return
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        for index, column in enumerate(block.columns):
            table.add_column(_rich(column), justify="right" if index in block.right else "left", overflow="fold")
        for row in block.rows:
            table.add_row(*(_rich(cell) for cell in row))
        self._console.print(table)
        if block.note:
            self.say(block.note, style="dim")

    def session(self, findings: list[Finding]) -> None:
        """All findings of one session under one heading."""
        self.say("")
        self.hang("==", place_of(findings[0]), style="bold")
        for finding in findings:
            self._finding(finding)

    def _finding(self, finding: Finding) -> None:
        aside = []
        if finding.confidence != "exact":
            aside.append(str(finding.confidence))
        if finding.rewound:
            aside.append("rewound")
        if finding.suppressed is not None:
            aside.append(f"suppressed: {finding.suppressed}")
        title = " ".join(dict.fromkeys((finding.rule, finding.name)))
        line = title + (f" ({'; '.join(aside)})" if aside else "")
        self.hang(
            f"{finding.severity.label.upper():7}", line, style=_STYLES[finding.severity] if counts(finding) else "dim"
        )
        self.say(finding.message, indent=8)
        if finding.evidence:
            from rich.padding import Padding

            timeline = _timeline(finding.evidence, width=self._console.width - 8)
            self._console.print(Padding(timeline, (0, 0, 0, 8)))
        if finding.todo:
            self.hang("->", finding.todo, indent=8)


def _timeline(evidence: tuple[Evidence, ...], *, width: int) -> Table:
    """The evidence as an incident timeline: when, what, which call or row. No id is cut that fits into a line."""
    from rich.padding import Padding
    from rich.text import Text

    shown = evidence[:_MOST_EVIDENCE]
    timed = any(one.time is not None for one in evidence)
    whens = [rfc3339(one.time) or "no time" if timed else "" for one in shown]
    room = width - sum(max(len(text) for text in texts) + 2 for texts in (whens, [one.role for one in shown]))
    stacked = room < max((len(word) for one in shown for part in _where(one) for word in part.split(" ")), default=0)
    wide = max(len("  ".join(_where(one))) for one in shown) <= room
    grid = _grid()
    for one, when in zip(shown, whens, strict=True):
        where = [_rich(part) for part in _where(one)]
        if stacked:
            grid.add_row(_rich(f"{when}  {one.role}".strip()))
            for part in where:
                grid.add_row(Padding(part, (0, 0, 0, 2)))
        else:
            what = Text("  " if wide else "\n").join(where)
            grid.add_row(*((_rich(when, "dim"),) if timed else ()), _rich(one.role), what)
    if len(evidence) > len(shown):
        aside = ("", "") if timed else ("",)
        more = _rich(f"and {len(evidence) - len(shown):,} more", "dim")
        grid.add_row(*(() if stacked else aside), more)
    return grid


def _where(one: Evidence) -> list[str]:
    """The call, the event and the note of one piece of evidence; its table when it has neither of the first two."""
    event = f"event {one.key.event_id}" if one.key.event_id else ""
    return [part for part in (one.call_id or "", event or ("" if one.call_id else one.table), one.note) if part]


def _grid(*, gap: int = 2) -> Table:
    from rich.table import Table

    return Table.grid(padding=(0, gap, 0, 0))


def _rich(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(_text(text), style=style, overflow="fold")


def _text(text: str) -> str:
    return printable(text, limit=_LONGEST)
