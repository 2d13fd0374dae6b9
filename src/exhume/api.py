"""The public API: the verbs of the command line as functions, and `opened` for whoever reads the events themselves.

Each opens its source read only, closes it again, returns data and raises `exhume.errors.ExhumeError`; nothing here
prints or exits. It is a module of its own because `exhume.migrate` and `exhume.audit` are the stages themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exhume.audit.engine import AuditOptions
    from exhume.audit.findings import AuditReport
    from exhume.events.interface import Reader, ReadOptions
    from exhume.migrate.interface import MigrateOptions, MigrationReport, VerifyOptions, VerifyReport
    from exhume.pickles.scan import Progress, ScanReport
    from exhume.schema.detection import Detection

__all__ = ["audit", "detect", "migrate", "opened", "scan", "verify"]

# Imports stand inside the functions: importing this module costs nothing, and each verb loads only what it needs.


def detect(source: str | Path, *, table_prefix: str = "", drift: bool = False) -> Detection:
    """Which schema a store has, who can have written it, and what contradicts what.

    Args:
        source: a path or a URL, as ADK accepts it.
        table_prefix: what stands before the usual names of the tables.
        drift: compare with the declared layout, too (loads SQLAlchemy and Alembic).
    """
    from exhume.schema.detect import detect as detect_store
    from exhume.stores import open_store

    with closing(open_store(source)) as store:
        return detect_store(store, table_prefix=table_prefix, drift=drift)


def scan(
    source: str | Path,
    *,
    table_prefix: str = "",
    allow_globals: Sequence[str] = (),
    extract: Path | None = None,
    second_opinion: bool = True,
    progress: Progress | None = None,
) -> ScanReport:
    """What the pickles of a store name, and which values are refused.

    Args:
        allow_globals: dotted names, or `module.*`, that are decoded inertly besides the reviewed set.
        extract: folder that takes the raw refused values.
        second_opinion: ask fickling about refused values, in a child process.
        progress: called with (rows done, rows in all, table).
    """
    from exhume.pickles.scan import scan_store
    from exhume.schema.detect import detect as detect_store
    from exhume.stores import open_store

    with closing(open_store(source)) as store:
        detection = detect_store(store, table_prefix=table_prefix)
        return scan_store(
            store,
            detection,
            allow_globals=tuple(allow_globals),
            extract_dir=extract,
            second_opinion=second_opinion,
            progress=progress,
        )


def migrate(source: str | Path, destination: str | Path, options: MigrateOptions | None = None) -> MigrationReport:
    """Moves a store to another layout, verified, all or nothing (or with a quarantine)."""
    from exhume.migrate.interface import MigrateOptions as Options
    from exhume.migrate.run import migrate as run

    return run(source, destination, options or Options())


def verify(source: str | Path, destination: str | Path, options: VerifyOptions | None = None) -> VerifyReport:
    """Are two stores the same sessions, event by event?"""
    from exhume.migrate.interface import VerifyOptions as Options
    from exhume.migrate.verify import verify as run

    return run(source, destination, options or Options())


def audit(
    source: str | Path,
    options: AuditOptions | None = None,
    *,
    read: ReadOptions | None = None,
    table_prefix: str = "",
) -> AuditReport:
    """Reads the event log of a store as an investigator would.

    Args:
        options: rules, filters, window.
        read: zone and allowed globals; its filters are those of `options`.
    """
    from dataclasses import replace

    from exhume.audit.engine import AuditOptions as Options
    from exhume.audit.engine import audit as run
    from exhume.events.interface import ReadOptions as Read

    chosen = options or Options()
    filtered = replace(read or Read(), app=chosen.app, user=chosen.user, session=chosen.session, raw_events=False)
    with opened(source, filtered, table_prefix=table_prefix) as (reader, detection):
        return run(reader, detection, chosen)


@contextmanager
def opened(
    source: str | Path, read: ReadOptions | None = None, *, table_prefix: str = ""
) -> Iterator[tuple[Reader, Detection]]:
    """A reader of a store's events and states, and what was detected of it; the store is closed at the end.

    `exhume.audit.timeline`, `exhume.audit.ledger` and `exhume.export.run` take both.

    Args:
        read: zone, allowed globals and filters.

    Raises:
        NothingToLookAt: no such store, or no session that fits the filters.
    """
    from exhume.events.readers import open_reader
    from exhume.schema.detect import detect as detect_store
    from exhume.stores import open_store

    with closing(open_store(source)) as store:
        detection = detect_store(store, table_prefix=table_prefix)
        reader = open_reader(store, detection, read)
        if read is not None and (read.app, read.user, read.session) != (None, None, None):
            _require_match(reader, detection)
        yield reader, detection


def _require_match(reader: Reader, detection: Detection) -> None:
    """A misspelt filter must not look like a clean verdict."""
    from exhume.errors import NothingToLookAt

    if next(reader.sessions(), None) is None and next(reader.events(), None) is None:
        raise NothingToLookAt(
            f"No session of {detection.info.name} has the app, user or id that was asked for.",
            todo="Check --app, --user and --session; without them, everything is looked at.",
        )
