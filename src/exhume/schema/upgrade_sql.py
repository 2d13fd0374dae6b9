"""The statements that give an old v0 database the columns which a given ADK release wants to read."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from exhume.errors import UsageError
from exhume.redact import printable
from exhume.schema.detection import Detection, Layout
from exhume.schema.layouts import TIME_ID_INDEX, TIME_INDEX, ColumnSpec, IndexSpec, release_number, v0_form
from exhume.stores.interface import Store

if TYPE_CHECKING:
    from alembic.operations import Operations

#: (first release, index that it creates in every database that it opens), newest first.
_INDEXES = (("2.10.0", TIME_ID_INDEX), ("1.28.0", TIME_INDEX))

#: The newest release whose tables exhume knows.
NEWEST = "2.13.0"


def is_beyond(release: str) -> bool:
    """Is a release newer than any whose tables exhume knows?"""
    return release_number(release) > release_number(NEWEST)


def upgrade_sql(store: Store, detection: Detection, release: str, dialect: str | None = None) -> list[str]:
    """ALTER TABLE and CREATE INDEX statements in the order to run them, without semicolons; none if none is needed.

    A release cannot read any session of a database that lacks a column which it declares (google-adk 1.14.0 to 2.13.0:
    "no such column"). Every column that a later release added may be NULL, so adding it changes no row.

    Args:
        detection: the verdict on `store`, which must be v0.
        release: an ADK release, e.g. `"2.13.0"`.
        dialect: SQLAlchemy's name of the dialect to write; the store's own by default.

    Raises:
        UsageError: `release` is no release number, or the store is no v0 database.
    """
    if Layout.V0 not in (detection.layout, detection.shape):
        raise UsageError(
            f"{detection.info.name} is {detection.layout}: only a v0 database gains columns from release to release.",
            todo="Leave out --sql.",
        )
    try:
        form = v0_form(release)
    except ValueError as error:
        raise UsageError(
            f"{printable(release, limit=40)} is no ADK release.", todo="Write a release such as 2.13.0."
        ) from error
    events = detection.tables["events"]
    present = {column.lower() for column in events.column_names}
    used = dialect or store.info().dialect
    statements = [
        _render(used, partial(_add_column, table=events.name, spec=spec))
        for spec in form.table("events").columns
        if spec.name not in present
    ]
    index = _index_of(release)
    if index is not None and not any(name.lower().endswith(index.name) for name in events.indexes):
        statements.append(_render(used, partial(_create_index, index=index, table=events.name)))
    return statements


def _index_of(release: str) -> IndexSpec | None:
    wanted = release_number(release)
    return next((index for first, index in _INDEXES if wanted >= release_number(first)), None)


def _render(dialect: str, operation: Callable[[Operations], object]) -> str:
    """One Alembic operation as offline SQL."""
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    buffer = io.StringIO()
    context = MigrationContext.configure(dialect_name=dialect, opts={"as_sql": True, "output_buffer": buffer})
    operation(Operations(context))
    return buffer.getvalue().strip().removesuffix(";").rstrip()


def _add_column(operations: Operations, table: str, spec: ColumnSpec) -> None:
    from exhume.schema.metadata import sqlalchemy_column

    # Rows that are there have no value for it, whatever the layout declares.
    operations.add_column(table, sqlalchemy_column(spec._replace(nullable=True)))


def _create_index(operations: Operations, index: IndexSpec, table: str) -> None:
    from sqlalchemy import text

    columns = [text(f"{column} DESC") if down else column for column, down in index.columns]
    operations.create_index(index.name, table, columns)
