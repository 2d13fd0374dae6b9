"""What a new file of each target layout looks like: its tables, what must be in them, and its marks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from exhume.errors import Refused
from exhume.schema.ddl import create_statements
from exhume.schema.layouts import DECLARED, LayoutSpec
from exhume.stores.interface import Row

_METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class Fill:
    """Rows that a table must have: `missing` selects them, complete, in the order of the table's columns."""

    table: str
    missing: str


@dataclass(frozen=True, slots=True)
class Target:
    """A layout as something to write.

    Attributes:
        create: statements that make the tables and their indexes.
        tables: table -> its columns in order; the table of the marks aside.
        marks: rows that say which layout this is, written when everything else is verified: (table, row).
        fills: rows that are made where the source has none.
        orphans: counts events without a session; None where events refer to none.
    """

    name: str
    create: tuple[str, ...]
    tables: Mapping[str, tuple[str, ...]]
    marks: tuple[tuple[str, Row], ...]
    fills: tuple[Fill, ...]
    orphans: str | None


def target(name: str) -> Target:
    """The declared layout of that name as something to write.

    Raises:
        Refused: exhume does not write that layout.
    """
    spec = DECLARED.get(name)
    if spec is None:
        raise Refused(f"exhume does not write the layout {name}.", todo="`exhume layouts` lists what can be written.")
    marks = [(table.name, row) for table in spec.tables if table.logical == _METADATA for row in spec.metadata]
    return Target(
        name=str(name),
        create=tuple(create_statements(spec)),
        tables={table.name: table.column_names for table in spec.tables if table.logical != _METADATA},
        marks=tuple(marks),
        fills=_fills(spec) if marks else (),
        orphans=_orphans(spec),
    )


def _fills(spec: LayoutSpec) -> tuple[Fill, ...]:
    """State rows without which DatabaseSessionService refuses to append (SqliteSessionService makes its own)."""
    fills = []
    for logical, key in (("app_states", ("app_name",)), ("user_states", ("app_name", "user_id"))):
        table = next((one for one in spec.tables if one.logical == logical), None)
        if table is None or table.column_names != (*key, "state", "update_time"):
            continue
        same = " AND ".join(f"have.{column} = s.{column}" for column in key)
        columns = ", ".join(f"s.{column}" for column in key)
        fills.append(
            Fill(
                table.name,
                f"SELECT {columns}, '{{}}', max(s.update_time) FROM {spec.table('sessions').name} AS s"
                f" WHERE NOT EXISTS (SELECT 1 FROM {table.name} AS have WHERE {same})"
                f" GROUP BY {columns} ORDER BY {columns}",
            )
        )
    return tuple(fills)


def _orphans(spec: LayoutSpec) -> str | None:
    events = next((table for table in spec.tables if table.sessions_key), None)
    if events is None:
        return None
    same = " AND ".join(
        f"s.{theirs} = e.{ours}"
        for ours, theirs in zip(events.sessions_key, ("app_name", "user_id", "id"), strict=True)
    )
    return (
        f"SELECT count(*) FROM {events.name} AS e"
        f" WHERE NOT EXISTS (SELECT 1 FROM {spec.table('sessions').name} AS s WHERE {same})"
    )
