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
    """

    document: Callable[[], dict[str, Any]]
    view: Callable[[], View]
    items: str = ""
    csv: Callable[[], Iterator[str]] | None = None


def render(report: Report, fmt: Format, *, look: Look | None = None) -> Iterator[str]:
    """A report in one format, as pieces of text to write one after the other; the last ends in a line end.

    Raises:
        UsageError: the report does not come in this format.
    """
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
            if report.csv is None:
                raise UsageError("This report has no CSV form.", todo="Use --format json or jsonl.")
            return report.csv()
    assert_never(fmt)
