"""What `detect` found out about a store, as data."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from exhume.stores.interface import StoreInfo, Table


class Layout(enum.StrEnum):
    """Every layout that exhume can name; the table in the docs of `exhume detect` says how each is known."""

    V0 = "v0"
    V1 = "v1"
    V1_UNMARKED = "v1-unmarked"
    SQLITE_SERVICE = "sqlite-service"
    GO = "go"
    JS = "js"
    JAVA_FLYWAY = "java-flyway"
    JAVA_CONTRIB = "java-contrib"
    EXPORT = "export"
    MIXED = "mixed"
    UNKNOWN_VERSION = "unknown-version"
    EMPTY = "empty"
    FOREIGN = "foreign"


class ReleaseRange(NamedTuple):
    """ADK releases, both inclusive, that can have written a store; an end that nothing bounds is None."""

    first: str | None = None
    last: str | None = None


@dataclass(frozen=True, slots=True)
class Detection:
    """The verdict on one store and all that it rests on.

    Attributes:
        layout: what the tables are, whatever a mark says.
        schema_version: "0", "1" or None: what the tables are in ADK's own counting.
        declared_version: value of the metadata row, None where there is no such row.
        contradictions: marks that disagree with the tables, one sentence each.
        evidence: what the verdict rests on, one sentence each.
        tables: logical name ("sessions", "events", "app_states", "user_states", "metadata") -> the real table.
        counts: real table name -> number of rows, all tables of the store.
        drift: differences to the declared layout, one sentence each; empty also when not asked for.
        shape: where `layout` is `empty`, the layout that the tables would have with rows in them.
    """

    info: StoreInfo
    layout: Layout
    schema_version: str | None
    declared_version: str | None
    releases: ReleaseRange
    contradictions: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    tables: Mapping[str, Table] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    drift: tuple[str, ...] = ()
    drift_checked: bool = False
    shape: Layout | None = None

    @property
    def latest(self) -> bool:
        """Is this the newest layout, marked as such, without a contradiction?"""
        return (self.shape or self.layout) is Layout.V1 and not self.contradictions
