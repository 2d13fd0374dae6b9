"""What the parts of a migration say to each other: a step, what it yields, and the reports at the end.

Layouts are named by text here: `exhume.schema.detection.Layout` members are text, and a layout that exhume does not
know yet is one more name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from exhume.events.interface import ReadOptions
from exhume.events.model import EventKey, EventRecord, Loss, Problem, StateRecord, TimeZoneReport
from exhume.schema.detection import Detection, Layout
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
        table_prefix: what the source's tables are called before their usual names.
        dry_run: say what would be done, write nothing.
        resume: go on after a run that was ended. A file is made whole or not at all: a finished one is compared
            with the source, otherwise the run starts anew.
    """

    to: str = Layout.V1
    read: ReadOptions = field(default_factory=ReadOptions)
    quarantine: str | os.PathLike[str] | None = None
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


class StepOutput(NamedTuple):
    """What a step makes of one source row.

    Attributes:
        table: table of the target layout.
        row: cells in the order of the target's columns; None when nothing of the row can go on. When a problem is
            fatal, this is the row without what could not be read: written only by a quarantining run.
        key: primary key of the source row (`event_id`, `session_id`, `user_id` empty for tables without them).
        record: the source row as read, which knows its raw cells.
        losses: conversions made on the way.
        problems: reasons for a refusal (fatal), and what must be told.
    """

    table: str
    row: Row | None
    key: EventKey
    record: EventRecord | StateRecord | None = None
    losses: tuple[Loss, ...] = ()
    problems: tuple[Problem, ...] = ()


class Hop(Protocol):
    """One step at work on one store."""

    def rows(self) -> Iterator[StepOutput]:
        """Every row of the target, streamed in a fixed order: app states, user states, sessions, events."""
        ...

    def time_zone(self) -> TimeZoneReport:
        """How times were read; complete after `rows` has ended."""
        ...

    def notes(self) -> Sequence[str]:
        """Sentences for the report; complete after `rows` has ended."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """One hop between two layouts; one module each in `exhume.migrate.steps`, registered there in one line.

    Attributes:
        source, target: names of layouts.
        changes: one sentence for `--dry-run` and `exhume layouts`.
        open: begins the hop on a store that `detect` has seen.
    """

    source: str
    target: str
    changes: str
    open: Callable[[Store, Detection, ReadOptions], Hop]

    @property
    def name(self) -> str:
        """Such as `v0 -> v1`."""
        return f"{self.source} -> {self.target}"


@dataclass(slots=True)
class TableCount:
    """Rows of one table: read from the source, written to the destination, made by exhume, put into quarantine.

    A row whose event was kept without the part that could not be read counts as written and as quarantined.
    """

    read: int = 0
    written: int = 0
    created: int = 0
    quarantined: int = 0


@dataclass(frozen=True, slots=True)
class LossCount:
    """All losses of one kind in one hop, with the place of the first, such as
    `app/user/session/event: actions.state_delta.x`."""

    kind: str
    count: int
    example: str
    hop: str = ""


@dataclass(slots=True)
class MigrationReport:
    """The result of `migrate`; the fields are those of the machine contract.

    `refused` holds the first rows only (`exhume.migrate.run.LISTED`), `refused_count` counts all of them.
    """

    status: str  # "complete", "incomplete", "refused", "nothing to do"
    source: str
    destination: str
    path: tuple[str, ...]
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


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """Everything that a run of `verify` can be told; `source` and `destination` are each read in their own layout."""

    read: ReadOptions = field(default_factory=ReadOptions)
    table_prefix: str = ""
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that is not the same on both sides.

    Attributes:
        table: "sessions", "events", "app_states" or "user_states".
        key: of the row; parts that its table lacks are empty.
        field: path inside the row, such as `actions.state_delta.cart[3]`; empty when a side lacks the whole row.
        source, destination: the value on each side as JSON text, cut when long; None where it is absent.
    """

    table: str
    key: EventKey
    field: str
    source: str | None
    destination: str | None


@dataclass(slots=True)
class VerifyTable:
    """Rows of one table on each side, how many of them are equal, and how many destination rows only fill a gap
    (empty state rows, which newer ADK needs)."""

    source: int = 0
    destination: int = 0
    equal: int = 0
    created: int = 0


@dataclass(slots=True)
class VerifyReport:
    """The result of `verify`; `differences` holds the first hundred, `difference_count` counts all of them."""

    equal: bool
    source: str
    destination: str
    source_layout: str
    destination_layout: str
    tables: dict[str, VerifyTable]
    differences: list[Difference]
    difference_count: int
    source_time_zone: TimeZoneReport
    destination_time_zone: TimeZoneReport
    notes: list[str] = field(default_factory=list)
    started_at: str = ""
    finished_at: str = ""
