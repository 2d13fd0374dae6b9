"""The declared tables as SQLAlchemy `MetaData`, with the types that ADK uses on each kind of server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from exhume.schema.layouts import ColumnSpec, ColumnType, LayoutSpec, TableSpec

if TYPE_CHECKING:
    from sqlalchemy import Column, MetaData
    from sqlalchemy.types import TypeEngine


def metadata_of(spec: LayoutSpec) -> MetaData:
    """One `MetaData` with all tables and indexes of a layout."""
    from sqlalchemy import MetaData

    metadata = MetaData()
    sessions = spec.table("sessions").name
    for table in spec.tables:
        _add_table(metadata, table, sessions)
    for index in spec.indexes:
        _add_index(metadata, index.name, index.table, index.columns)
    return metadata


def sqlalchemy_column(spec: ColumnSpec) -> Column[Any]:
    """A declared column on its own, not yet in a table."""
    from sqlalchemy import Column

    return Column(spec.name, _type(spec), nullable=spec.nullable)


def _add_table(metadata: MetaData, spec: TableSpec, sessions: str) -> None:
    from sqlalchemy import ForeignKeyConstraint, PrimaryKeyConstraint, Table

    constraints: list[Any] = [PrimaryKeyConstraint(*spec.primary_key)]
    if spec.sessions_key:
        referred = [f"{sessions}.{column}" for column in ("app_name", "user_id", "id")]
        constraints.append(ForeignKeyConstraint(spec.sessions_key, referred, ondelete="CASCADE"))
    Table(spec.name, metadata, *(sqlalchemy_column(column) for column in spec.columns), *constraints)


def _add_index(metadata: MetaData, name: str, table: str, columns: tuple[tuple[str, bool], ...]) -> None:
    from sqlalchemy import Index

    owner = metadata.tables[table]
    Index(name, *(owner.c[column].desc() if down else owner.c[column] for column, down in columns))


def _type(spec: ColumnSpec) -> TypeEngine[Any]:
    """As ADK declares them (google-adk 2.13, `sessions/schemas/shared.py` and `v0.py`)."""
    from sqlalchemy import REAL, Boolean, DateTime, LargeBinary, String, Text
    from sqlalchemy.dialects import mysql, postgresql

    types: dict[ColumnType, TypeEngine[Any]] = {
        ColumnType.VARCHAR: String(spec.length),
        ColumnType.TEXT: Text(),
        ColumnType.JSON: Text().with_variant(postgresql.JSONB(), "postgresql").with_variant(mysql.LONGTEXT(), "mysql"),
        ColumnType.PICKLE: LargeBinary().with_variant(mysql.LONGBLOB(), "mysql"),
        ColumnType.TIME: DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql"),
        ColumnType.BOOLEAN: Boolean(),
        ColumnType.EPOCH: REAL(),
    }
    return types[spec.type]
