"""The command `migrate`: looks before it writes, runs the hops, and gives the result its name at the very end."""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path

from exhume import __version__
from exhume.errors import ExhumeError, Incomplete, Refused, UsageError
from exhume.events.model import TimeZoneReport
from exhume.migrate import plan, space
from exhume.migrate.chain import find_path, readable_detection, starting_layout
from exhume.migrate.hops import Chain, Findings, Folders, check_drift, rows_to_read
from exhume.migrate.interface import MigrateOptions, MigrationReport, Step, VerifyOptions
from exhume.migrate.publish import destination_path, is_sidecar, mode_like, publish
from exhume.migrate.quarantine import Quarantine
from exhume.migrate.rehearsal import Rehearsal
from exhume.migrate.signals import Signals, caught
from exhume.migrate.targets import target
from exhume.migrate.transfer import Ledger, transfer
from exhume.migrate.verify import verify
from exhume.migrate.workspace import sweep
from exhume.migrate.write import clear_errors
from exhume.redact import printable
from exhume.schema.detect import detect
from exhume.schema.detection import Detection
from exhume.stores import open_store
from exhume.stores.interface import Store
from exhume.stores.location import parse_location

#: Tables that are not migrated and are named in a note.
_NAMED = 20
_NO_ZONE = TimeZoneReport(zone="UTC", proof="not needed")


def migrate(
    source: str | os.PathLike[str], destination: str | os.PathLike[str], options: MigrateOptions | None = None
) -> MigrationReport:
    """Moves a store to another layout in a new SQLite file, verified, all or nothing (or with a quarantine).

    The destination comes into being whole, at the end, or not at all. The source is only read.

    Raises:
        Refused: same file, destination exists, no path to the layout, not enough space.
        UsageError: the destination or an option cannot be meant.
        NothingToLookAt: the source cannot be read.
        Incomplete: the disk is full, or the source changed meanwhile.
        Interrupted: SIGINT, SIGTERM or SIGHUP came.
    """
    with caught() as signals, closing(open_store(source)) as store:
        try:
            return _Migration(source, destination, options or MigrateOptions(), store, signals).run()
        except ExhumeError:
            signals.check()  # a signal may have ended a statement of SQLite, and is then the true reason
            raise


class _Migration:
    """One run. Nothing is written before `_write`, nothing has a final name before `_publish`."""

    def __init__(
        self,
        source: str | os.PathLike[str],
        destination: str | os.PathLike[str],
        options: MigrateOptions,
        store: Store,
        signals: Signals,
    ) -> None:
        self.started = datetime.now(UTC)
        self.options, self.store, self.signals = options, store, signals
        self.source_path = parse_location(source).path
        self.source_name = source
        self.destination_name = parse_location(destination, what="destination").name
        self.final = destination_path(destination, source, may_exist=options.resume)
        self.aside = self._quarantine_path(source)
        self.detection: Detection = detect(store, table_prefix=options.table_prefix)
        layout = starting_layout(self.detection)
        self.steps: tuple[Step, ...] = find_path(layout, str(options.to))
        self.layouts = (str(layout), *(str(step.target) for step in self.steps))
        self.detection = readable_detection(self.detection)
        self.between = self._place_between()
        self.sha256_after = store.info().sha256
        self.findings = Findings()
        self.findings.notes.extend(store.info().notes)
        if self.steps:
            self.findings.notes.extend(_left_behind(self.detection))

    def run(self) -> MigrationReport:
        if not self.steps:
            return self._report("nothing to do", Ledger(None))
        if self.options.resume:
            if os.path.lexists(self.final):
                return self._made_before()
            self.findings.notes.append(
                "nothing had been begun: a file is made whole or not at all, so this run started"
            )
        return self._dry_run() if self.options.dry_run else self._write()

    def _made_before(self) -> MigrationReport:
        """`--resume` after a run that was ended when its file had its name already: is everything there?"""
        options = VerifyOptions(read=self.options.read, table_prefix=self.options.table_prefix)
        with self.findings.timed("verify"):
            found = verify(self.source_name, self.final, options)
        if not found.equal or found.destination_layout != self.layouts[-1]:
            raise Refused(
                f"the destination {self.final} exists, and does not hold what the source holds.",
                todo="Name a file that does not exist; `exhume verify` tells the differences.",
            )
        self._check_unchanged()
        self.findings.notes.append("the destination had been finished by a run before; it was compared with the source")
        self.findings.zone = found.source_time_zone
        ledger = Ledger(None)
        for table, there in found.tables.items():
            count = ledger.count(table)
            count.read, count.written, count.created = there.source, there.destination - there.created, there.created
        report = self._report("complete", ledger)
        report.verified = True
        return report

    def _dry_run(self) -> MigrationReport:
        """Reads and judges everything in the first hop, and writes nothing."""
        ledger, step = Ledger(None, goes_on=self.aside is not None), self.steps[0]
        with self.findings.timed("read"), closing(Rehearsal(target(step.target), self.signals)) as writer:
            hop = step.open(self.store, self.detection, self.options.read)
            total = rows_to_read(self.detection)
            read = transfer(hop, step.name, ledger=ledger, writer=writer, progress=self.options.progress, total=total)
        for table, number in read.items():
            ledger.count(table).read = number
        self.findings.zone = hop.time_zone()
        self.findings.notes.extend(hop.notes())
        self._check_unchanged()
        refusing = "refused" if self.aside is None else "incomplete"
        report = self._report(refusing if ledger.refused_count else "complete", ledger)
        between = self.between if len(self.steps) > 1 else None
        report.plan = plan.sentences(
            self.steps, report, self.final, aside=self.aside, between=between, bytes_each=self._bytes_each()
        )
        return report

    def _write(self) -> MigrationReport:
        beside = self.final.absolute().parent
        self._sweep(beside)
        self._require_space(beside)
        with ExitStack() as stack:
            folders = Folders(stack, self.signals)
            ledger = Ledger(self._quarantine_maker(folders, stack) if self.aside else None)
            chain = Chain(
                self.steps,
                between=self.between,
                beside=beside,
                folders=folders,
                ledger=ledger,
                signals=self.signals,
                progress=self.options.progress,
            )
            with clear_errors(self.final, self.signals):  # of the quarantine file; the others clear their own
                finished = chain.run(self.store, self.detection, self.options.read)
            self.findings.notes.extend(chain.findings.notes)
            self.findings.zone = chain.findings.zone
            self.findings.seconds.update(chain.findings.seconds)
            self._check_unchanged()
            if not ledger.keeps_writing:
                return self._report("refused", ledger)
            if len(self.steps) > 1:
                check_drift(finished, self.layouts[-1])
            self._publish(finished, ledger.quarantine)
        report = self._report("incomplete" if ledger.refused_count else "complete", ledger)
        report.verified = True
        return report

    def _publish(self, finished: Path, box: Quarantine | None) -> None:
        mode = mode_like(self.source_path)
        if box is not None:
            with clear_errors(box.path, self.signals):
                box.finish()
        self.signals.check()
        with self.signals.held(), self.findings.timed("publish"):
            if box is not None and self.aside is not None:
                publish(box.path, self.aside, mode)
            try:
                publish(finished, self.final, mode)
            except ExhumeError:
                if box is not None and self.aside is not None:
                    self.aside.unlink()
                raise

    def _quarantine_path(self, source: str | os.PathLike[str]) -> Path | None:
        if self.options.quarantine is None:
            return None
        aside = destination_path(self.options.quarantine, source, what="quarantine file")
        if os.path.realpath(aside) == os.path.realpath(self.final):
            raise UsageError("the quarantine file is the destination.", todo="Name another file for --quarantine.")
        if is_sidecar(aside, self.final) or is_sidecar(self.final, aside):
            raise UsageError(
                "SQLite would take the quarantine file and the destination for parts of one database.",
                todo="Name another file for --quarantine.",
            )
        return aside

    def _quarantine_maker(self, folders: Folders, stack: ExitStack) -> Callable[[], Quarantine]:
        def make() -> Quarantine:
            assert self.aside is not None
            path = folders.file(self.aside.absolute().parent, "quarantine.db")
            info = self.store.info()
            box = Quarantine(path, source=info.name, source_sha256=info.sha256, layouts=self.layouts)
            stack.callback(box.discard)
            return box

        return make

    def _place_between(self) -> Path:
        """Where files between hops are made: never in the folder of the source, unless that was asked for."""
        if self.options.workdir is not None:
            if not os.path.isdir(self.options.workdir):
                raise UsageError(
                    f"the folder {self.options.workdir} does not exist.", todo="Name another for --workdir."
                )
            return self.options.workdir.absolute()
        chosen = Path(tempfile.gettempdir())
        if self.source_path is not None and os.path.realpath(chosen) == os.path.realpath(self.source_path.parent):
            return self.final.absolute().parent
        return chosen

    def _sweep(self, beside: Path) -> None:
        for place in sorted({beside, self.between}):
            for folder in sweep(place):
                self.findings.notes.append(f"removed {folder}, which a run that was killed had left")

    def _bytes_each(self) -> int:
        return space.estimate(space.size_of(self.source_path)) if self.source_path is not None else 0

    def _require_space(self, beside: Path) -> None:
        each = self._bytes_each()
        needed = {beside: each}
        if len(self.steps) > 1:  # at most the file of the hop before and that of this one
            more = min(len(self.steps) - 1, 2) * each
            needed[self.between] = needed.get(self.between, 0) + more
        space.require(needed)

    def _check_unchanged(self) -> None:
        self.sha256_after = self.store.check_unchanged()
        if self.sha256_after != self.store.info().sha256:
            raise Incomplete(
                "the source changed while it was read; nothing was written.",
                todo="Stop whatever writes to it, or migrate a copy.",
            )

    def _report(self, status: str, ledger: Ledger) -> MigrationReport:
        info = self.store.info()
        order = ("sessions", "events", "app_states", "user_states")
        for table in order:
            if self.steps:
                ledger.count(table)
        tables = {
            name: ledger.tables[name] for name in sorted(ledger.tables, key=lambda name: (name not in order, name))
        }
        box = ledger.quarantine
        if status == "refused":
            for count in tables.values():
                count.written = count.created = 0
        return MigrationReport(
            status=status,
            source=info.name,
            destination=self.destination_name,
            path=self.layouts,
            tables=tables,
            refused=ledger.refused,
            refused_count=ledger.refused_count,
            losses=ledger.losses(),
            time_zone=self.findings.zone or _NO_ZONE,
            source_sha256_before=info.sha256,
            source_sha256_after=self.sha256_after,
            verified=False,
            quarantine=str(self.aside) if box is not None and self.aside is not None else None,
            allowed_globals=tuple(self.options.read.allow_globals),
            notes=self.findings.notes + ledger.notes(),
            contradictions=self.detection.contradictions,
            dry_run=self.options.dry_run,
            started_at=_rfc3339(self.started),
            finished_at=_rfc3339(datetime.now(UTC)),
            seconds=self.findings.seconds,
            versions={"exhume": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version},
        )


def _left_behind(detection: Detection) -> list[str]:
    """Names the tables of the source that are no part of its layout, and so are not migrated."""
    known = {table.name for table in detection.tables.values()}
    others = [(name, rows) for name, rows in detection.counts.items() if name not in known]
    if not others:
        return []
    named = [f"{printable(name, limit=80)} ({rows} row{'' if rows == 1 else 's'})" for name, rows in others[:_NAMED]]
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    return [
        f"not migrated, as ADK does not know {'it' if len(others) == 1 else 'them'}: table"
        f"{'' if len(others) == 1 else 's'} {', '.join(named)}{more}"
    ]


def _rfc3339(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
