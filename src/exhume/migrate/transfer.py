"""One hop: the rows of a step go to a writer in bounded batches, and a ledger counts what became of each."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from exhume.events.model import EventKey, Loss, Problem
from exhume.migrate.interface import Hop, LossCount, Progress, RefusedRow, StepOutput, TableCount
from exhume.migrate.quarantine import Quarantine, row_hash
from exhume.migrate.write import Rejected
from exhume.stores.interface import Row

#: Refused rows that a report lists; the quarantine file holds all of them.
LISTED = 10_000
_BATCH = 100
_BATCH_CHARACTERS = 4 << 20


class Writer(Protocol):
    """Takes the rows of a hop, and gives back those that the target cannot hold."""

    def insert(self, table: str, rows: Sequence[Row]) -> list[Rejected]: ...


@dataclass(slots=True)
class _Told:
    count: int
    reason: str
    place: str


class Ledger:
    """What became of the rows of all hops.

    Args:
        quarantine: makes the quarantine file, at the first refused row; None for all or nothing.
        goes_on: goes on past refused rows without a quarantine file, as a dry run of one with it does.
    """

    def __init__(self, quarantine: Callable[[], Quarantine] | None, *, goes_on: bool = False) -> None:
        self.tables: dict[str, TableCount] = {}
        self.refused: list[RefusedRow] = []
        self.refused_count = 0
        self.quarantine: Quarantine | None = None
        self._make_quarantine = quarantine
        self._goes_on = goes_on or quarantine is not None
        self._losses: dict[tuple[str, str], tuple[int, str]] = {}
        self._told: dict[tuple[str, str, str], _Told] = {}

    @property
    def keeps_writing(self) -> bool:
        """Is there still something to be written: nothing refused, or a place for what is?"""
        return self._goes_on or not self.refused_count

    def count(self, table: str) -> TableCount:
        """The counts of a table, made at first use."""
        return self.tables.setdefault(table, TableCount())

    def lose(self, hop: str, key: EventKey, losses: tuple[Loss, ...]) -> None:
        """Counts conversions."""
        for loss in losses:
            number, example = self._losses.get((hop, loss.kind), (0, ""))
            self._losses[hop, loss.kind] = (number + 1, example or f"{place(key)}: {loss.place}")

    def judge(self, hop: str, output: StepOutput) -> None:
        """Counts what must be told, and keeps the row when it is refused."""
        for problem in output.problems:
            if not problem.fatal:
                self._tell(hop, output, problem)
        if any(problem.fatal for problem in output.problems):
            self.refuse(hop, output, output.problems)

    def refuse(self, hop: str, output: StepOutput, problems: tuple[Problem, ...]) -> None:
        """Keeps a row that could not be carried over as it is."""
        record = output.record
        raw = dict(zip(record.columns, record.raw, strict=True)) if record is not None else {}
        whole = RefusedRow(output.table, output.key, problems, hop, raw)
        if self._make_quarantine is not None:
            if self.quarantine is None:
                self.quarantine = self._make_quarantine()
            if not self.quarantine.add(whole):
                return  # an earlier hop refused this row, with its original bytes
            self.count(output.table).quarantined += 1
        self.refused_count += 1
        if len(self.refused) < LISTED:
            self.refused.append(RefusedRow(output.table, output.key, problems, hop))

    def reject(self, hop: str, output: StepOutput, reason: str) -> None:
        """Keeps a row that the target's tables did not take."""
        record = output.record
        raw = dict(zip(record.columns, record.raw, strict=True)) if record is not None else {}
        self.refuse(hop, output, (*output.problems, Problem("EXH307", "", reason, row_hash(raw))))

    def losses(self) -> list[LossCount]:
        """All losses so far, in the order in which they first came up."""
        return [LossCount(kind, number, example, hop) for (hop, kind), (number, example) in self._losses.items()]

    def notes(self) -> list[str]:
        """What must be told of values that were carried over, one sentence a kind."""
        return [
            f"{rule}: {one.reason} ({one.count} row{'s' if one.count > 1 else ''}, first {one.place})"
            for (_, rule, _), one in self._told.items()
        ]

    def _tell(self, hop: str, output: StepOutput, problem: Problem) -> None:
        if problem.rule == "EXH504" and not any(loss.kind == "trailing-bytes" for loss in output.losses):
            self.lose(hop, output.key, (Loss("trailing-bytes", f"{problem.column} (sha256 {problem.sha256})"),))
        one = self._told.setdefault((hop, problem.rule, problem.column), _Told(0, problem.reason, place(output.key)))
        one.count += 1


def place(key: EventKey) -> str:
    """A key as one text, without the parts that a table lacks."""
    return "/".join(key).rstrip("/") if not key.event_id else "/".join(key)


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Rows are trees, which vanish without the garbage collector; it need not look at every batch of them."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], 50_000), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def transfer(
    hop: Hop, name: str, *, ledger: Ledger, writer: Writer, progress: Progress | None, total: int
) -> dict[str, int]:
    """Runs one hop.

    Args:
        writer: takes the rows.
        progress: told after each batch.
        total: rows that the hop will read, for `progress`.

    Returns:
        table -> rows read.
    """
    read: dict[str, int] = {}
    batch: list[StepOutput] = []
    table, weight, done = "", 0, 0

    def flush() -> None:
        if batch and ledger.keeps_writing:
            for rejected in writer.insert(table, [output.row for output in batch if output.row is not None]):
                ledger.reject(name, batch[rejected.place], rejected.reason)
        batch.clear()
        if progress is not None:
            progress(done, total, table)

    with _rare_collections():
        for output in hop.rows():
            if output.table != table:
                flush()
                table, weight = output.table, 0
                read.setdefault(table, 0)
            read[table] += 1
            done += 1
            if output.losses:
                ledger.lose(name, output.key, output.losses)
            if output.problems:
                ledger.judge(name, output)
            row = output.row
            if row is None:
                continue
            batch.append(output)
            for cell in row:
                if type(cell) is str:
                    weight += len(cell)
            if len(batch) >= _BATCH or weight > _BATCH_CHARACTERS:
                flush()
                weight = 0
        flush()
    return read
