"""What every kind of store offers the stages after it: named tables and rows in a stable order, read only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

#: One value of a row. Text that is not valid UTF-8 comes as `str` with surrogate escapes (U+DC80 to U+DCFF),
#: so that its bytes can be given back exactly.
Cell = None | int | float | str | bytes
Row = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the store declares it; `type` is the store's own spelling."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it really is: columns in storage order, names of the primary key's columns, names of indexes."""

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A file beside a SQLite database that belongs to it: `wal`, `journal` or `shm`, and what it means for a reader."""

    kind: str
    path: str
    size: int
    meaning: str


class Ordered(NamedTuple):
    """One row with its place in storage order (for SQLite the rowid), counted from the store's own zero."""

    position: int
    row: Row


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What a report says of a store. `name` is redacted; `sha256` is None where there is no one file."""

    name: str
    kind: str
    dialect: str
    sha256: str | None = None
    sidecars: tuple[Sidecar, ...] = ()
    notes: tuple[str, ...] = field(default=())


class Store(Protocol):
    """A place where rows come from. Opening one never creates, writes or upgrades anything."""

    def info(self) -> StoreInfo:
        """Name, dialect, hash and sidecars, as they were when the store was opened."""
        ...

    def tables(self) -> Mapping[str, Table]:
        """All tables by their real name."""
        ...

    def count(self, table: str) -> int:
        """Number of rows of a table."""
        ...

    def rows(
        self,
        table: str,
        columns: Sequence[str],
        *,
        order_by: Sequence[str] = (),
        where: Mapping[str, str] | None = None,
        as_text: Sequence[str] = (),
        as_utf8: Sequence[str] = (),
    ) -> Iterator[Ordered]:
        """Rows of a table, streamed in bounded batches.

        Args:
            columns: names of columns to give, in this order; all must exist.
            order_by: names of columns to sort by (binary order of their UTF-8 bytes for text), storage order last.
                Rows with equal leading columns come together, whatever the data.
            where: columns that must equal a text.
            as_text: names of columns of which cells that are no text are ordered, and compared with `where`, by the
                text that readers make of them: bytes as UTF-8, numbers spelt out, NULL as the empty text.
            as_utf8: names of columns of which texts may come as their bytes in UTF-8, where that spares the store
                work; a BLOB cannot be told from a text there.
        """
        ...

    def check_unchanged(self) -> str | None:
        """sha256 of the source now, for comparison with `info().sha256`; None where there is no one file, or where
        commits have come into a log beside it."""
        ...

    def close(self) -> None: ...
