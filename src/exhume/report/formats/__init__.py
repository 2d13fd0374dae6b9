"""The formats of reports: one module each, one line of registration here."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from exhume.errors import UsageError

if TYPE_CHECKING:
    from exhume.report.view import View


class Format(enum.StrEnum):
    """Everything that `--format` takes for a report."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    SARIF = "sarif"
    MARKDOWN = "markdown"
    JUNIT = "junit"
    GITHUB = "github"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class Look:
    """How a table is to look: `width` in columns, colours or plain. Colours are for terminals without NO_COLOR."""

    width: int = 100
    color: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """One result, ready for any format. Both parts are made when they are asked for.

    `items` names the list in the document whose members are the lines of `jsonl`. `csv` is None for most reports.
    `judges` is False for what makes no findings: it has no form as SARIF, JUnit or annotations, which would show an
    empty, and so a reassuring, result.
    """

    document: Callable[[], dict[str, Any]]
    view: Callable[[], View]
    items: str = ""
    csv: Callable[[], Iterator[str]] | None = None
    judges: bool = True

    def formats(self) -> list[Format]:
        """The formats that this report comes in."""
        findings_only = (Format.SARIF, Format.JUNIT, Format.GITHUB)
        return [
            fmt
            for fmt in Format
            if (self.judges or fmt not in findings_only) and (self.csv is not None or fmt is not Format.CSV)
        ]


def render(report: Report, fmt: Format, *, look: Look | None = None) -> Iterator[str]:
    """A report in one format, as pieces of text to write one after the other; the last ends in a line end.

    Raises:
        UsageError: the report does not come in this format.
    """
    if fmt not in report.formats():
        raise UsageError(f"This report does not come as {fmt}.", todo=f"Use one of {', '.join(report.formats())}.")
    # a format is imported when it is asked for: rich alone costs more than a whole `detect`
    match fmt:
        case Format.TABLE:
            from exhume.report.formats import table

            return table.render(report.view(), look or Look())
        case Format.JSON:
            from exhume.report.formats import json_document

            return json_document.render(report.document())
        case Format.JSONL:
            from exhume.report.formats import json_lines

            return json_lines.render(report.document(), report.items)
        case Format.SARIF:
            from exhume.report.formats import sarif

            return sarif.render(report.view())
        case Format.MARKDOWN:
            from exhume.report.formats import markdown

            return markdown.render(report.view())
        case Format.JUNIT:
            from exhume.report.formats import junit

            return junit.render(report.view())
        case Format.GITHUB:
            from exhume.report.formats import github

            return github.render(report.view())
        case Format.CSV:
            assert report.csv is not None
            return report.csv()
    assert_never(fmt)
