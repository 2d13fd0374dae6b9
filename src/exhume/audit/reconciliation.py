"""Holds the ledger of a log against a list kept elsewhere, of approvals or of executed actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exhume.audit.external_list import Decided, LedgerOptions, ListedRow, rows_of
from exhume.audit.ledger import Ledger, LedgerRow

#: Rows of each kind that a reconciliation keeps.
_MOST_LISTED = 1000
_DECISIONS: tuple[Decided, ...] = ("approved", "rejected", "open")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A row of the list that says of a request what the log does not: `logged` is the decision there."""

    listed: ListedRow
    tool: str
    call_id: str | None
    logged: str


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
        contradicted: in both, with different decisions: the list has an approval that the log has not, say.
        more_executions: actions that ran more often than they were approved, whichever side knows of the runs.
    """

    ledger: str
    kind: str
    matched: int = 0
    log_only: list[LedgerRow] = field(default_factory=list)
    log_only_count: int = 0
    ledger_only: list[ListedRow] = field(default_factory=list)
    ledger_only_count: int = 0
    contradicted: list[Contradiction] = field(default_factory=list)
    contradicted_count: int = 0
    more_executions: list[Mismatch] = field(default_factory=list)

    @property
    def differences(self) -> int:
        return self.log_only_count + self.ledger_only_count + self.contradicted_count + len(self.more_executions)


def reconcile(found: Ledger, path: Path, options: LedgerOptions | None = None) -> Reconciliation:
    """Holds the ledger of a log against the list in `path`.

    A row of the list is looked up by the strongest identity that it has: request id, call id, fingerprint, or the
    fingerprint of its tool and arguments. `session_id`, `user_id` and `app_name`, where given, must agree as well.

    Raises:
        NothingToLookAt, UsageError: the list cannot be read, see `external_list.rows_of`.
    """
    options = options or LedgerOptions()
    index = _Index(found, options.kind)
    result = Reconciliation(str(path), options.kind)
    listed: Counter[tuple[int, Decided]] = Counter()  # group of the log and decision -> how often the list has it
    for entry in rows_of(path, options):
        group = index.look_up(entry)
        if group is not None and options.kind == "approvals":
            group = _held(result, entry, group, index.groups[group], listed)
        elif group is not None:
            result.matched += 1
        if group is not None:
            listed[group, entry.decision] += entry.count
            continue
        result.ledger_only_count += 1
        if len(result.ledger_only) < _MOST_LISTED:
            result.ledger_only.append(entry)
    for group, rows in enumerate(index.groups):
        _judge(result, rows, {decided: listed[group, decided] for decided in _DECISIONS})
    return result


def _held(
    result: Reconciliation,
    entry: ListedRow,
    group: int,
    rows: list[LedgerRow],
    listed: Counter[tuple[int, Decided]],
) -> int | None:
    """Holds one row of a list of approvals against the answers to its call; None if the log has no answer for it.

    Each answer in the log stands for one row: a list that names a call more often knows more than the log.
    """
    if sum(listed[group, decided] for decided in _DECISIONS) >= len(rows):
        return None
    answers = [_decided(row) for row in rows]
    if listed[group, entry.decision] < answers.count(entry.decision):
        result.matched += 1
        return group
    result.contradicted_count += 1
    if len(result.contradicted) < _MOST_LISTED:
        other = next(row for row, answer in zip(rows, answers, strict=True) if answer != entry.decision)
        result.contradicted.append(Contradiction(entry, other.tool, other.call_id, other.decision))
    return group


def _judge(result: Reconciliation, rows: list[LedgerRow], listed: Mapping[Decided, int]) -> None:
    """One original call: its approvals and runs in the log against what the list has of it."""
    approved = any(row.decision == "approved" for row in rows)
    runs = sum(row.executions + row.early for row in rows)
    wanted = [row for row in rows if (row.decision == "approved" if result.kind == "approvals" else _ran(row))]
    if wanted and not any(listed.values()):
        result.log_only_count += 1
        if len(result.log_only) < _MOST_LISTED:
            result.log_only.append(wanted[0])
    # several answers to one call are one permission: who answers again permits no second run
    permitted = 1 if approved else 0
    if result.kind == "executions":
        runs = max(runs, *listed.values())
    elif any(listed.values()):
        permitted = min(permitted, listed["approved"])
    if runs > permitted:
        first = rows[0]
        identity, value = ("call_id", first.call_id) if first.call_id else ("fingerprint", first.fingerprint)
        result.more_executions.append(Mismatch(identity, value or "", first.tool, permitted, runs))


def _ran(row: LedgerRow) -> bool:
    return row.executions + row.early > 0


class _Index:
    """The rows of a log by everything that a list may call them; rows of one original call are one group."""

    def __init__(self, found: Ledger, kind: str) -> None:
        self.groups: list[list[LedgerRow]] = []
        self._kind = kind
        self._by: dict[tuple[str, str], list[int]] = {}
        self._within: dict[tuple[tuple[str, ...], Decided], dict[tuple[str, ...], list[int]]] = {}
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

    def look_up(self, entry: ListedRow) -> int | None:
        """The group that a row of the list means. Equal actions are taken in turn: two rows mean two of them, first
        those of which the log says the same."""
        names = tuple(name for name, _ in entry.scope)
        place = (entry.identity, entry.value, *(text for _, text in entry.scope))
        fitting = self._groups_within(names, entry.decision).get(place, ())
        if not fitting:
            return None
        taken = (entry.decision, *names, *place)
        turn = self._taken[taken]
        self._taken[taken] += 1
        return fitting[turn % len(fitting)]

    def _groups_within(self, names: tuple[str, ...], decision: Decided) -> Mapping[tuple[str, ...], Sequence[int]]:
        """Groups by identity, value and the parts of the session's key that rows of the list give: made once for each
        choice of parts, as a list may have a million rows for actions that are all equal."""
        known = self._within.get((names, decision))
        if known is None:
            known = self._within[names, decision] = {}
            for (identity, value), groups in self._by.items():
                for group in sorted(groups, key=lambda one: not self._agrees(one, decision)):
                    key = self.groups[group][0].key
                    known.setdefault((identity, value, *(getattr(key, name) for name in names)), []).append(group)
        return known

    def _agrees(self, group: int, decision: Decided) -> bool:
        if self._kind == "executions":
            return any(map(_ran, self.groups[group]))
        return any(_decided(row) == decision for row in self.groups[group])


def _decided(row: LedgerRow) -> Decided:
    """The decision of a row of the log as lists call it."""
    return "approved" if row.decision == "approved" else "rejected" if row.decision == "rejected" else "open"
