"""Holds the ledger of a log against a list kept elsewhere: CSV or JSON Lines, of approvals or executed actions."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exhume.audit.ledger import Ledger, LedgerRow, action_fingerprint
from exhume.errors import NothingToLookAt, UsageError
from exhume.events.json_text import NotJson, parse
from exhume.redact import printable

#: What a row can be known by, strongest first. `tool` counts only together with `args`.
IDENTITIES = ("request_id", "call_id", "fingerprint")
FIELDS = (*IDENTITIES, "tool", "args", "session_id", "user_id", "app_name", "count")
_SCOPE = ("session_id", "user_id", "app_name")
#: Bounds on the list, and on the rows of each kind that a reconciliation keeps.
_MOST_ROWS = 1_000_000
_LONGEST_LINE = 16 << 20
_MOST_LISTED = 1000
#: Spreadsheets run a cell that begins so; exhume's own CSV puts an apostrophe before it.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


@dataclass(frozen=True, slots=True)
class LedgerOptions:
    """How to read the external list.

    Attributes:
        columns: field (one of `FIELDS`) -> name of its column; a field not named here is looked for under its own name.
        kind: `approvals`: each row is one approval; `executions`: each row is one executed action.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    kind: str = "approvals"


@dataclass(frozen=True, slots=True)
class ListedRow:
    """One row of the external list: its line, and what it is known by."""

    line: int
    identity: str
    value: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Mismatch:
    """More runs than approvals of one action or call: `identity` and `value` say which."""

    identity: str
    value: str
    tool: str
    approvals: int
    executions: int


@dataclass(slots=True)
class Reconciliation:
    """What the log and the external list say of each other. Lists are cut at a thousand, the counts are complete.

    Attributes:
        log_only: approved (or, against executions, executed) in the log, not in the list.
        ledger_only: in the list, not in the log.
        more_executions: actions that ran more often than they were approved, whichever side knows of the runs.
    """

    ledger: str
    kind: str
    matched: int = 0
    log_only: list[LedgerRow] = field(default_factory=list)
    log_only_count: int = 0
    ledger_only: list[ListedRow] = field(default_factory=list)
    ledger_only_count: int = 0
    more_executions: list[Mismatch] = field(default_factory=list)

    @property
    def differences(self) -> int:
        return self.log_only_count + self.ledger_only_count + len(self.more_executions)


def reconcile(found: Ledger, path: Path, options: LedgerOptions | None = None) -> Reconciliation:
    """Holds the ledger of a log against the list in `path`.

    A row of the list is looked up by the strongest identity that it has: request id, call id, fingerprint, or the
    fingerprint of its tool and arguments. `session_id`, `user_id` and `app_name`, where given, must agree as well.

    Raises:
        NothingToLookAt: no such file, or it cannot be read as CSV or JSON Lines.
        UsageError: a column is not in the file, or no row can be told by anything.
    """
    options = options or LedgerOptions()
    _check(options)
    index = _Index(found)
    result = Reconciliation(str(path), options.kind)
    listed: Counter[int] = Counter()  # group of the log -> how often the list has it
    for line, row in _rows(path, options):
        entry, group = index.look_up(line, row)
        # a list of approvals that names a call more often than the log was answered knows more than the log
        if group is None or (options.kind == "approvals" and listed[group] >= len(index.groups[group])):
            result.ledger_only_count += 1
            if len(result.ledger_only) < _MOST_LISTED:
                result.ledger_only.append(entry)
        else:
            result.matched += 1
            listed[group] += entry.count
    for group, rows in enumerate(index.groups):
        _judge(result, rows, listed[group])
    return result


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


def _judge(result: Reconciliation, rows: list[LedgerRow], listed: int) -> None:
    """One original call: its approvals and runs in the log against what the list has of it."""
    approved = [row for row in rows if row.decision == "approved"]
    runs = sum(row.executions + row.early for row in rows)
    wanted = approved if result.kind == "approvals" else [row for row in rows if row.executions or row.early]
    if wanted and not listed:
        result.log_only_count += 1
        if len(result.log_only) < _MOST_LISTED:
            result.log_only.append(wanted[0])
    # several answers to one call are one permission: who answers again permits no second run
    permitted = 1 if approved else 0
    if result.kind == "executions":
        runs = max(runs, listed)
    elif listed:
        permitted = min(permitted, listed)
    if runs > permitted:
        first = rows[0]
        identity, value = ("call_id", first.call_id) if first.call_id else ("fingerprint", first.fingerprint)
        result.more_executions.append(Mismatch(identity, value or "", first.tool, permitted, runs))


class _Index:
    """The rows of a log by everything that a list may call them; rows of one original call are one group."""

    def __init__(self, found: Ledger) -> None:
        self.groups: list[list[LedgerRow]] = []
        self._by: dict[tuple[str, str], list[int]] = {}
        self._within: dict[tuple[str, ...], dict[tuple[str, ...], list[int]]] = {}
        self._taken: Counter[tuple[str, ...]] = Counter()
        places: dict[tuple[Any, ...], int] = {}
        for row in found.rows:
            place = (*row.key, row.call_id or row.request_id or row.request_event)
            if place not in places:
                places[place] = len(self.groups)
                self.groups.append([])
            group = places[place]
            self.groups[group].append(row)
            for identity, value in (
                ("request_id", row.request_id),
                ("call_id", row.call_id),
                ("fingerprint", row.fingerprint),
            ):
                if value:
                    known = self._by.setdefault((identity, value), [])
                    if group not in known[-1:]:
                        known.append(group)

    def look_up(self, line: int, row: Mapping[str, Any]) -> tuple[ListedRow, int | None]:
        """The group that a row of the list means. Equal actions are taken in turn: two rows mean two of them."""
        identity, value = _identity(row)
        entry = ListedRow(line, identity, value, _count(row))
        given = {name: text for name in _SCOPE if (text := _text(row.get(name)))}
        place = (identity, value, *given.values())
        fitting = self._groups_within(tuple(given)).get(place, ())
        if not fitting:
            return entry, None
        taken = (*given, *place)
        turn = self._taken[taken]
        self._taken[taken] += 1
        return entry, fitting[turn % len(fitting)]

    def _groups_within(self, names: tuple[str, ...]) -> Mapping[tuple[str, ...], Sequence[int]]:
        """Groups by identity, value and the parts of the session's key that rows of the list give: made once for each
        choice of parts, as a list may have a million rows for actions that are all equal."""
        if names not in self._within:
            within: dict[tuple[str, ...], list[int]] = {}
            for (identity, value), groups in self._by.items():
                for group in groups:
                    key = self.groups[group][0].key
                    within.setdefault((identity, value, *(getattr(key, name) for name in names)), []).append(group)
            self._within[names] = within
        return self._within[names]


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


def _count(row: Mapping[str, Any]) -> int:
    text = _text(row.get("count"))
    return int(text) if text.isdecimal() and len(text) < 10 else 1


def _text(value: Any) -> str:
    if value is None or isinstance(value, (dict, list)):
        return ""
    text = str(value).strip()
    # as exhume's own CSV protects a cell from spreadsheets
    return text[1:] if text[:1] == "'" and text[1:2] in FORMULA else text


def _rows(path: Path, options: LedgerOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of the list as field -> value, with their line numbers."""
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
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
        wanted = {name: row.get(column) for name, column in names.items()}
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
    for row in reader:
        if row:
            yield reader.line_num, dict(zip(header, row, strict=False))


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
    return f"'{text}" if text.startswith(FORMULA) else text
