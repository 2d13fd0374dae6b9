"""Differences between the tables of a store and those that its layout declares, found by Alembic, told as sentences."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from exhume.errors import NothingToLookAt, UsageError
from exhume.redact import printable
from exhume.schema.detection import Detection
from exhume.schema.layouts import DECLARED, LayoutSpec
from exhume.stores.interface import Store, StoreInfo, Table


@runtime_checkable
class Connectable(Protocol):
    """A store that can hand out a second, read-only DB-API connection of its own."""

    def info(self) -> StoreInfo: ...

    def connect(self) -> sqlite3.Connection: ...


def find_drift(store: Store, detection: Detection, *, table_prefix: str = "") -> list[str]:
    """One sentence for each difference; none if there is none, or if exhume declares no tables for that layout.

    Only ADK's own tables are reflected: whatever else is in the store is merely named.

    Raises:
        UsageError: the store cannot be reflected (only SQLite files can so far).
        NothingToLookAt: the schema cannot be understood.
    """
    declared = DECLARED.get(detection.shape or detection.layout)
    if declared is None:
        return []
    if not isinstance(store, Connectable):
        raise UsageError(f"{detection.info.name} cannot be compared with declared tables.", todo="Leave out --drift.")
    spec = _as_named_there(declared.prefixed(table_prefix), detection.tables)
    names = {table.name for table in spec.tables}
    keys = {(table.name, column) for table in spec.tables for column in table.primary_key}
    sentences = [sentence for difference in _compare(store, spec) for sentence in _told(difference, keys)]
    for table in spec.tables:
        real = detection.tables.get(table.logical)
        if real is not None and tuple(name.lower() for name in real.primary_key) != table.primary_key:
            key = ", ".join(printable(name, limit=80) for name in real.primary_key) or "nothing"
            sentences.append(f"The primary key of {table.name} is ({key}), not ({', '.join(table.primary_key)}).")
    others = sorted(name for name in store.tables() if name not in names)
    sentences.extend(f"Table {printable(name, limit=80)} is not one of ADK's." for name in others)
    return sentences


def _as_named_there(spec: LayoutSpec, tables: Mapping[str, Table]) -> LayoutSpec:
    """The declared layout with the tables spelt as they are in the store, which may write them in upper case."""
    real = {table.name: tables[table.logical].name for table in spec.tables if table.logical in tables}
    return replace(
        spec,
        tables=tuple(table._replace(name=real.get(table.name, table.name)) for table in spec.tables),
        indexes=tuple(index._replace(table=real.get(index.table, index.table)) for index in spec.indexes),
    )


def _compare(store: Connectable, spec: LayoutSpec) -> list[Any]:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext
    from sqlalchemy import create_engine
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool

    from exhume.schema.metadata import metadata_of

    names = {table.name for table in spec.tables}

    def is_ours(name: str | None, kind: str, _parents: object) -> bool:
        return kind != "table" or name in names

    engine = create_engine("sqlite://", creator=store.connect, poolclass=NullPool)
    options = {"compare_type": True, "compare_server_default": True, "include_name": is_ours}
    try:
        # Odd types and indexes on expressions make SQLAlchemy warn; they show up as differences where they matter.
        with warnings.catch_warnings(), engine.connect() as connection:
            warnings.simplefilter("ignore")
            context = MigrationContext.configure(connection, opts=options)
            return list(compare_metadata(context, metadata_of(spec)))
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise NothingToLookAt(
            f"the schema of {store.info().name} cannot be read: {printable(error, limit=200)}.",
            todo="Run detect without --drift.",
        ) from error
    finally:
        engine.dispose()


def _told(difference: Any, keys: set[tuple[str, str]]) -> Iterator[str]:
    """Alembic's tuple, or list of tuples for one column, as sentences; none for what reflection gets wrong."""
    if isinstance(difference, list):
        for part in difference:
            # SQLite reports a key of one column as nullable where NOT NULL is not spelt out
            if part[0] != "modify_nullable" or (part[2], part[3]) not in keys:
                yield from _told_of_column(part)
        return
    kind, subject = difference[0], difference[1]
    if kind == "add_table":
        yield f"Table {subject.name} is missing."
    elif kind in ("add_column", "remove_column"):
        table, column = difference[2], difference[3]
        where = f"Column {printable(table, limit=80)}.{printable(column.name, limit=80)}"
        yield f"{where} is missing." if kind == "add_column" else f"{where} is not declared."
    elif kind in ("add_index", "remove_index", "add_constraint", "remove_constraint", "add_fk", "remove_fk"):
        what = {"index": "Index", "constraint": "Constraint", "fk": "Foreign key"}[kind.partition("_")[2]]
        named = printable(subject.name or f"({', '.join(column.name for column in subject.columns)})", limit=120)
        place = printable(subject.table.name, limit=80)
        yield f"{what} {named} of {place} is {'missing' if kind.startswith('add') else 'not declared'}."
    else:
        yield f"{kind.replace('_', ' ')}: {printable(subject, limit=120)}."


def _told_of_column(part: Any) -> Iterator[str]:
    kind, _, table, column, _, old, new = part
    where = f"{printable(table, limit=80)}.{printable(column, limit=80)}"
    if kind == "modify_type":
        yield f"Column {where} is {printable(_type(old), limit=80)}, declared is {_type(new)}."
    elif kind == "modify_nullable":
        yield f"Column {where} {'may be NULL' if old else 'is NOT NULL'}, declared is the contrary."
    elif kind == "modify_default":
        yield f"Column {where} has a default value, which is not declared."
    else:
        yield f"Column {where} differs: {kind.removeprefix('modify_')}."


def _type(value: Any) -> str:
    from sqlalchemy.dialects import sqlite

    return str(value.compile(dialect=sqlite.dialect()))
