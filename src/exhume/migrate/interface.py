"""What the parts of a migration say to each other: a step, what it writes to, and the report at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from exhume.events.interface import ReadOptions
from exhume.events.model import EventKey, Loss, Problem, TimeZoneReport
from exhume.schema.detection import Layout
from exhume.stores.interface import Row, Store

#: Called with (rows done, rows in all, table); used for progress on a terminal.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class MigrateOptions:
    """Everything that a run of `migrate` can be told.

    Attributes:
        to: layout of the destination.
        read: zone, allowed globals, filters.
        quarantine: file that takes refused rows; None means all or nothing.
        workdir: folder for temporary stores; None means the system's place.
        dry_run: say what would be done, write nothing.
        resume: go on with a run that was killed (server destinations).
    """

    to: Layout = Layout.V1
    read: ReadOptions = field(default_factory=ReadOptions)
    quarantine: Path | None = None
    workdir: Path | None = None
    table_prefix: str = ""
    dry_run: bool = False
    resume: bool = False
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row that could not be carried over as it is, and every reason why. `hop` names the step, e.g. `v0 -> v1`.

    `raw` holds the original cells by column, exactly as stored; only the quarantine file gets them.
    """

    table: str
    key: EventKey
    problems: tuple[Problem, ...]
    hop: str
    raw: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowToWrite:
    """One row for a table of the target layout, its cells in the order of the layout's columns."""

    table: str
    row: Row


@dataclass(frozen=True, slots=True)
class StepOutput:
    """What a step makes of one source row: rows to write, conversions, and the refusal if there is one.

    `made_by_exhume` marks rows that the source lacks (missing state rows).
    """

    rows: tuple[RowToWrite, ...] = ()
    losses: tuple[Loss, ...] = ()
    refused: RefusedRow | None = None
    place: EventKey | None = None
    made_by_exhume: bool = False


class Step(Protocol):
    """One hop between two layouts; one module each in `exhume.migrate.steps`, registered there in one line."""

    source: Layout
    target: Layout
    changes: str  # one sentence for `--dry-run` and `exhume layouts`

    def rows(self, store: Store, options: ReadOptions) -> Iterator[StepOutput]:
        """Every row of the target, streamed in a fixed order, states first, then sessions, then events."""
        ...

    def time_zone(self) -> TimeZoneReport:
        """How times were read; complete after `rows` has ended."""
        ...


@dataclass(slots=True)
class TableCount:
    """Rows of one table: read from the source, written to the destination, made by exhume, put into quarantine."""

    read: int = 0
    written: int = 0
    created: int = 0
    quarantined: int = 0


@dataclass(frozen=True, slots=True)
class LossCount:
    """All losses of one kind, with the place of the first as an example: `app/user/session/event: actions.state_delta.x`."""

    kind: str
    count: int
    example: str


@dataclass(slots=True)
class MigrationReport:
    """The result of `migrate`; the fields are those of the machine contract."""

    status: str  # "complete", "incomplete", "refused", "nothing to do"
    source: str
    destination: str
    path: tuple[Layout, ...]
    tables: dict[str, TableCount]
    refused: list[RefusedRow]
    refused_count: int
    losses: list[LossCount]
    time_zone: TimeZoneReport
    source_sha256_before: str | None
    source_sha256_after: str | None
    verified: bool
    quarantine: str | None
    allowed_globals: tuple[str, ...]
    notes: list[str] = field(default_factory=list)
    contradictions: tuple[str, ...] = ()
    dry_run: bool = False
    plan: list[str] = field(default_factory=list)
    started_at: str = ""
    finished_at: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
