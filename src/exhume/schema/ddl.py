"""CREATE TABLE and CREATE INDEX for SQLite, letter by letter as ADK's releases write them, without SQLAlchemy."""

from __future__ import annotations

from exhume.schema.detection import Layout
from exhume.schema.layouts import ColumnSpec, ColumnType, IndexSpec, LayoutSpec, TableSpec

_SPELLING = {
    ColumnType.VARCHAR: "VARCHAR",
    ColumnType.TEXT: "TEXT",
    ColumnType.JSON: "TEXT",
    ColumnType.PICKLE: "BLOB",
    ColumnType.TIME: "DATETIME",
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.EPOCH: "REAL",
}
#: Of all names used by ADK's tables, the one that SQLAlchemy quotes.
_RESERVED = frozenset({"key"})


def sqlite_type(column: ColumnSpec) -> str:
    """A column's type as SQLite files of ADK spell it, e.g. `VARCHAR(128)`."""
    spelling = _SPELLING[column.type]
    return f"{spelling}({column.length})" if column.length else spelling


def create_statements(spec: LayoutSpec) -> list[str]:
    """All statements that create the tables and indexes of a layout, in ADK's order, without a final semicolon."""
    by_hand = spec.layout is Layout.SQLITE_SERVICE
    sessions = spec.table("sessions").name
    tables = [_table_by_hand(table, sessions) if by_hand else _table(table, sessions) for table in spec.tables]
    return tables + [create_index(index) for index in spec.indexes]


def create_index(index: IndexSpec) -> str:
    """One CREATE INDEX statement."""
    columns = ", ".join(f"{_name(column)} DESC" if down else _name(column) for column, down in index.columns)
    return f"CREATE INDEX {_name(index.name)} ON {_name(index.table)} ({columns})"


def _table(table: TableSpec, sessions: str) -> str:
    """As SQLAlchemy 2 renders it for DatabaseSessionService, trailing spaces included."""
    parts = [
        f"{_name(column.name)} {sqlite_type(column)}{'' if column.nullable else ' NOT NULL'}"
        for column in table.columns
    ]
    parts.append(f"PRIMARY KEY ({_names(table.primary_key)})")
    if table.sessions_key:
        parts.append(
            f"FOREIGN KEY({_names(table.sessions_key)}) REFERENCES {_name(sessions)} (app_name, user_id, id)"
            " ON DELETE CASCADE"
        )
    return f"CREATE TABLE {_name(table.name)} (\n\t" + ", \n\t".join(parts) + "\n)"


def _table_by_hand(table: TableSpec, sessions: str) -> str:
    """As SqliteSessionService writes it in its own source."""
    single = len(table.primary_key) == 1
    parts = []
    for column in table.columns:
        is_key = single and column.name == table.primary_key[0]
        suffix = " PRIMARY KEY" if is_key else "" if column.nullable else " NOT NULL"
        parts.append(f"{_name(column.name)} {sqlite_type(column)}{suffix}")
    if not single:
        parts.append(f"PRIMARY KEY ({_names(table.primary_key)})")
    if table.sessions_key:
        parts.append(
            f"FOREIGN KEY ({_names(table.sessions_key)}) REFERENCES {_name(sessions)}(app_name, user_id, id)"
            " ON DELETE CASCADE"
        )
    return f"CREATE TABLE {_name(table.name)} (\n    " + ",\n    ".join(parts) + "\n)"


def _name(identifier: str) -> str:
    plain = identifier.isascii() and identifier.isidentifier() and identifier.islower()
    return identifier if plain and identifier not in _RESERVED else '"' + identifier.replace('"', '""') + '"'


def _names(identifiers: tuple[str, ...]) -> str:
    return ", ".join(_name(identifier) for identifier in identifiers)
