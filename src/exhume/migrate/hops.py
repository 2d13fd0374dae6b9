"""Runs the hops of a migration one after the other; between two of them the data lives in a private temporary file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from exhume.errors import Incomplete
from exhume.events.interface import ReadOptions
from exhume.events.model import TimeZoneReport
from exhume.migrate.interface import Progress, Step
from exhume.migrate.signals import Signals
from exhume.migrate.targets import target
from exhume.migrate.transfer import Ledger, transfer
from exhume.migrate.workspace import Workspace
from exhume.migrate.write import SqliteWriter
from exhume.schema.detect import detect
from exhume.schema.detection import Detection, Layout
from exhume.stores import open_store
from exhume.stores.interface import Store

#: Logical names of the tables whose rows are moved.
MOVED = ("app_states", "user_states", "sessions", "events")


class Folders:
    """The private folders of one run, at most one in each place, all removed when the stack ends."""

    def __init__(self, stack: ExitStack, signals: Signals) -> None:
        self._stack, self._signals = stack, signals
        self._by_place: dict[Path, Workspace] = {}

    def file(self, place: Path, name: str) -> Path:
        """A new empty file in the private folder of that place."""
        with self._signals.held():
            if place not in self._by_place:
                workspace = Workspace(place)
                self._by_place[place] = workspace
                self._stack.callback(self._remove, workspace)
            return self._by_place[place].file(name)

    def _remove(self, workspace: Workspace) -> None:
        with self._signals.held():
            workspace.close()


@dataclass(slots=True)
class Findings:
    """What the hops tell for the report."""

    zone: TimeZoneReport | None = None
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Adds the time that the block takes to `seconds`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.perf_counter() - start, 3)


class Chain:
    """All hops of one run.

    Args:
        steps: in order; at least one.
        between: place for files between hops.
        beside: place for the last file, in the file system of the destination.
    """

    def __init__(
        self,
        steps: tuple[Step, ...],
        *,
        between: Path,
        beside: Path,
        folders: Folders,
        ledger: Ledger,
        signals: Signals,
        progress: Progress | None,
    ) -> None:
        self._steps = steps
        self._between, self._beside = between, beside
        self._folders, self._ledger, self._signals, self._progress = folders, ledger, signals, progress
        self.findings = Findings()

    def run(self, store: Store, detection: Detection, options: ReadOptions) -> Path:
        """Runs all hops, or as many as there is something to write for.

        Returns:
            The file of the last layout, complete and verified; worth nothing when the ledger no longer keeps writing.
        """
        before: Path | None = None
        path = self._beside
        for number, step in enumerate(self._steps):
            last = number + 1 == len(self._steps)
            path = self._folders.file(self._beside if last else self._between, f"hop-{number + 1}.db")
            with ExitStack() as opened:
                if before is not None:
                    store = open_store(before)
                    opened.callback(store.close)
                    detection = _known_as(step.source, detect(store))
                    options = ReadOptions()  # filters, zone and globals concern the source alone
                self._one(step, store, detection, options, path, first=before is None, last=last)
            if before is not None:
                before.unlink()
            if not self._ledger.keeps_writing:
                break
            before = path
        return path

    def _one(
        self,
        step: Step,
        store: Store,
        detection: Detection,
        options: ReadOptions,
        path: Path,
        *,
        first: bool,
        last: bool,
    ) -> None:
        ledger, findings = self._ledger, self.findings
        hop = step.open(store, detection, options)
        writer = SqliteWriter(path, target(step.target), self._signals)
        try:
            with findings.timed("move"):
                read = transfer(
                    hop,
                    step.name,
                    ledger=ledger,
                    writer=writer,
                    progress=self._progress,
                    total=rows_to_read(detection),
                )
                findings.notes.extend(hop.notes())
                if first:
                    findings.zone = hop.time_zone()
                    for table, number in read.items():
                        ledger.count(table).read = number
            if not ledger.keeps_writing:
                return
            created = writer.fill_state_rows()
            for table, number in created.items():
                ledger.count(table).created += number
            with findings.timed("verify"):
                writer.finish()
            if last:
                self._tell_of_rows(writer)
        finally:
            with self._signals.held():
                writer.close()

    def _tell_of_rows(self, writer: SqliteWriter) -> None:
        ledger = self._ledger
        for table, number in writer.written.items():
            count = ledger.count(table)
            count.written = number - count.created
        created = [f"{one.created} {table}" for table, one in ledger.tables.items() if one.created]
        if created:
            self.findings.notes.append(
                f"made empty state rows that the source lacks ({', '.join(created)});"
                " newer ADK appends to no session without them"
            )
        orphans = writer.orphans()
        if orphans:
            self.findings.notes.append(
                f"{orphans} event{'s' if orphans > 1 else ''} of sessions that do not exist (orphaned events)"
                " were kept; a server database would refuse them"
            )


def _known_as(layout: str, detection: Detection) -> Detection:
    """The verdict on a file that exhume wrote, whose layout is known: also without rows, and when it is one that
    only an extension has registered, which `detect` cannot name."""
    return replace(detection, layout=cast(Layout, layout), shape=None)


def rows_to_read(detection: Detection) -> int:
    """Rows in the tables that are moved."""
    tables = [detection.tables[name].name for name in MOVED if name in detection.tables]
    return sum(detection.counts.get(name, 0) for name in tables)


def check_drift(path: Path, layout: str) -> None:
    """Compares a finished file with the tables that its layout declares, by Alembic.

    Raises:
        Incomplete: they differ, which would be a fault of a step or of a declared layout.
    """
    from exhume.schema.drift import find_drift

    with closing(open_store(path)) as store:
        found = find_drift(store, _known_as(layout, detect(store)))
    if found:
        raise Incomplete(
            f"the result is not as {layout} is declared: {' '.join(found)}", todo="Report this fault of exhume."
        )
