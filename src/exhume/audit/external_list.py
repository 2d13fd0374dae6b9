"""A list of approvals or executed actions that is kept elsewhere: CSV or JSON Lines, read line by line."""

from __future__ import annotations

import codecs
import csv
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from exhume.audit.ledger import action_fingerprint
from exhume.errors import NothingToLookAt, UsageError
from exhume.events.json_text import NotJson, parse
from exhume.redact import printable

#: What a row can be known by, strongest first. `tool` counts only together with `args`.
IDENTITIES = ("request_id", "call_id", "fingerprint")
#: Which session a row means, where it says so.
SCOPE = ("session_id", "user_id", "app_name")
FIELDS = (*IDENTITIES, "tool", "args", *SCOPE, "decision", "count")
#: Bounds on the list.
_MOST_ROWS = 1_000_000
_LONGEST_LINE = 16 << 20
#: Spreadsheets run a cell that begins so; exhume's own CSV puts an apostrophe before it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")

Decided = Literal["approved", "rejected", "open"]
#: The words of a decision, in lower case: those of exhume's own ledger, and those that such lists use.
DECISION_WORDS: dict[str, Decided] = {
    **dict.fromkeys(
        ["approved", "approve", "accepted", "confirmed", "granted", "allowed", "yes", "true", "1"], "approved"
    ),
    **dict.fromkeys(["rejected", "reject", "denied", "declined", "refused", "no", "false", "0"], "rejected"),
    **dict.fromkeys(["pending", "open", "unreadable", "closed", "expired", "cancelled", "canceled"], "open"),
    "": "open",
}


@dataclass(frozen=True, slots=True)
class LedgerOptions:
    """How to read the external list.

    Attributes:
        columns: field (one of `FIELDS`) -> name of its column; a field not named here is looked for under its own name.
        kind: `approvals`: each row is one decision, an approval where no column says which; `executions`: each row is
            one executed action.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    kind: str = "approvals"


@dataclass(frozen=True, slots=True)
class ListedRow:
    """One row of the external list: its line, what it is known by, how many it stands for, and what was decided.

    Attributes:
        scope: the parts of the session's key that it names.
    """

    line: int
    identity: str
    value: str
    count: int = 1
    decision: Decided = "approved"
    scope: tuple[tuple[str, str], ...] = ()


def rows_of(path: Path, options: LedgerOptions) -> Iterator[ListedRow]:
    """The rows of the list in `path`.

    Raises:
        NothingToLookAt: no such file, or it cannot be read as CSV or JSON Lines.
        UsageError: a column is not in the file, no row can be told by anything, or a decision is no word for one.
    """
    _check(options)
    for line, row in _rows(path, options):
        identity, value = _identity(row)
        decision: Decided = "approved"
        if options.kind == "approvals" and "decision" in row:
            decision = _decision(row["decision"], line)
        scope = tuple((name, text) for name in SCOPE if (text := _text(row.get(name))))
        yield ListedRow(line, identity, value, _count(row), decision, scope)


def _check(options: LedgerOptions) -> None:
    unknown = sorted(set(options.columns) - set(FIELDS))
    if unknown:
        raise UsageError(
            f"There is no field {printable(unknown[0], limit=40)}.", todo=f"Known are {', '.join(FIELDS)}."
        )
    if options.kind not in ("approvals", "executions"):
        raise UsageError(
            f"{printable(options.kind, limit=40)} is no kind of list.", todo="Known are approvals and executions."
        )
    if options.kind == "executions" and "decision" in options.columns:
        raise UsageError(
            "A list of executed actions has no decisions.",
            todo="Leave the column out, or read it as a list of approvals.",
        )


def _identity(row: Mapping[str, Any]) -> tuple[str, str]:
    for name in IDENTITIES:
        value = _text(row.get(name))
        if value:
            return name, value
    tool = _text(row.get("tool"))
    if not tool:
        return "line", ""
    args = row.get("args")
    if isinstance(args, str) and args.strip():
        try:
            args = parse(args).value
        except NotJson:
            return "line", ""
    return "fingerprint", action_fingerprint(tool, args or {})


def _decision(cell: Any, line: int) -> Decided:
    known = DECISION_WORDS.get(_text(cell).lower())
    if known is None:
        raise UsageError(
            f"Line {line} of the list has the decision {printable(cell, limit=40)}, which is not understood.",
            todo="Write approved, rejected or pending, or name another column with --column decision=NAME.",
        )
    return known


def _count(row: Mapping[str, Any]) -> int:
    text = _text(row.get("count"))
    return int(text) if text.isdecimal() and len(text) < 10 else 1


def _text(value: Any) -> str:
    if value is None or isinstance(value, (dict, list)):
        return ""
    text = str(value).strip()
    # as exhume's own CSV protects a cell from spreadsheets
    return text[1:] if text[:1] == "'" and text[1:2] in _FORMULA else text


def _rows(path: Path, options: LedgerOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of the list as field -> value, with their line numbers."""
    try:
        with path.open("rb") as file:
            start = file.read(2)
        # what spreadsheets call Unicode text
        encoding = "utf-16" if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
        with path.open(encoding=encoding, errors="surrogateescape", newline="") as file:
            yield from _named(_bounded(file), path, options)
    except OSError as error:
        raise NothingToLookAt(f"{printable(path)} cannot be read: {error.strerror}.", todo="Check the path.") from error
    except csv.Error as error:
        raise NothingToLookAt(
            f"{printable(path)} is no CSV file: {error}.", todo="Save it as CSV or JSON Lines."
        ) from error


def _named(lines: Iterator[str], path: Path, options: LedgerOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of some lines; refuses a list of which no row can say what it means. An empty file is an empty list."""
    first = next((line for line in lines if line.strip()), "")
    if not first:
        return
    start = first.lstrip()[0]
    if start == "[":
        raise NothingToLookAt(f"{printable(path)} is a JSON array.", todo="Save it as JSON Lines: one object a line.")
    everything = itertools.chain([first], lines)
    names: dict[str, str] | None = None
    told = False
    for line, row in _json_rows(everything) if start == "{" else _csv_rows(first, everything):
        if line > _MOST_ROWS:
            raise UsageError(f"{printable(path)} has more than {_MOST_ROWS:,} rows.", todo="Divide it.")
        if names is None:
            names = _columns(row, options)
        wanted = {name: row[column] for name, column in names.items() if column in row}
        told = told or _identity(wanted)[0] != "line"
        yield line, wanted
    if names is None:  # a header alone: an empty list, if it could say anything
        header = dict.fromkeys(_header(first), "")
        names = _columns(header, options)
        told = any(names[field] in header for field in (*IDENTITIES, "tool"))
    if not told:
        raise UsageError(
            f"No row of {printable(path)} says which action it means.",
            todo=f"Name the columns: one of {', '.join(IDENTITIES)}, or tool and args.",
        )


def _bounded(file: Any) -> Iterator[str]:
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise UsageError("A line of the list is longer than 16 MiB.", todo="Save it as CSV or JSON Lines.")
        yield line


def _csv_rows(first: str, lines: Iterator[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.reader((line.replace("\x00", "�") for line in lines), delimiter=_delimiter(first))
    header = [name.strip() for name in next(reader, [])]
    twice = next((name for name in header if name and header.count(name) > 1), None)
    if twice is not None:
        raise UsageError(
            f"The list has two columns {printable(twice, limit=60)}.", todo="Rename one: which is meant cannot be told."
        )
    for row in reader:
        if row:
            yield reader.line_num, dict(itertools.zip_longest(header, row[: len(header)], fillvalue=""))


def _delimiter(first: str) -> str:
    return max(",;\t", key=first.count)


def _header(first: str) -> list[str]:
    return [name.strip() for name in next(csv.reader([first], delimiter=_delimiter(first)), [])]


def _json_rows(lines: Iterator[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = parse(line).value
        except NotJson as error:
            raise NothingToLookAt(
                f"Line {number} of the list: {error.what}", todo="Save it as CSV or JSON Lines."
            ) from error
        if not isinstance(value, dict):
            raise NothingToLookAt(f"Line {number} of the list is no object.", todo="Save it as CSV or JSON Lines.")
        yield number, value


def _columns(row: Mapping[str, Any], options: LedgerOptions) -> dict[str, str]:
    """Field -> column, for this file. JSON rows may lack a field now and then: only what was asked for must exist."""
    for column in options.columns.values():
        if column not in row:
            shown = ", ".join(printable(name, limit=40) for name in list(row)[:20])
            raise UsageError(f"The list has no column {printable(column, limit=60)}.", todo=f"Its columns are {shown}.")
    return {name: options.columns.get(name, name) for name in FIELDS}


def spreadsheet_safe(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
