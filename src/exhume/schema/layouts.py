"""The tables of every layout as data: what each ADK release declares, column by column, in the order it creates them.

Read from google-adk's own releases (`sessions/database_session_service.py` up to 1.21.0, `sessions/schemas/v0.py` and
`v1.py` from 1.22.0, `sessions/sqlite_session_service.py` from 1.19.0) and compared with files that they wrote.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import NamedTuple

from exhume.schema.detection import Layout

KEY_LENGTH = 128
TEXT_LENGTH = 256


class ColumnType(enum.Enum):
    """What a column means; `exhume.schema.ddl` and `exhume.schema.metadata` say how each store spells it."""

    VARCHAR = "varchar"
    TEXT = "text"
    JSON = "json"
    PICKLE = "pickle"
    TIME = "time"
    BOOLEAN = "boolean"
    EPOCH = "epoch"


# These are named tuples, since every run makes all of them, and frozen dataclasses take longer to make.


class ColumnSpec(NamedTuple):
    """A declared column. `length` in characters is for VARCHAR alone; None there means no limit."""

    name: str
    type: ColumnType
    length: int | None = None
    nullable: bool = False


class TableSpec(NamedTuple):
    """A declared table. `logical` is its name in `Detection.tables`; `sessions_key` are the columns that refer to
    a session (ON DELETE CASCADE), empty where there is no foreign key."""

    logical: str
    name: str
    columns: tuple[ColumnSpec, ...]
    primary_key: tuple[str, ...]
    sessions_key: tuple[str, ...] = ()

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


class IndexSpec(NamedTuple):
    """A declared index: (column, is it descending) in order."""

    name: str
    table: str
    columns: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class LayoutSpec:
    """All tables of a layout in the order in which they are created.

    Attributes:
        releases: first and last ADK release that create it so; a last one of None is the newest known.
        metadata: rows of the metadata table, written with the tables.
    """

    layout: str
    releases: tuple[str, str | None]
    tables: tuple[TableSpec, ...]
    indexes: tuple[IndexSpec, ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()

    def table(self, logical: str) -> TableSpec:
        """The table with that logical name; KeyError where the layout has none."""
        for spec in self.tables:
            if spec.logical == logical:
                return spec
        raise KeyError(logical)

    def prefixed(self, prefix: str) -> LayoutSpec:
        """The same layout with `prefix` before the names of all tables and indexes."""
        if not prefix:
            return self
        return replace(
            self,
            tables=tuple(table._replace(name=prefix + table.name) for table in self.tables),
            indexes=tuple(
                index._replace(name=prefix + index.name, table=prefix + index.table) for index in self.indexes
            ),
        )


METADATA_TABLE = "adk_internal_metadata"
SCHEMA_VERSION_KEY = "schema_version"

_SESSION_KEY = ("app_name", "user_id", "session_id")
_TIME_INDEX_COLUMNS = (("app_name", False), ("user_id", False), ("session_id", False), ("timestamp", True))
#: Created by ADK 1.28.0 to 2.9.2 in every database that they open, of either version.
TIME_INDEX = IndexSpec("idx_events_app_user_session_ts", "events", _TIME_INDEX_COLUMNS)
#: Its successor from 2.10.0 on.
TIME_ID_INDEX = IndexSpec("idx_events_app_user_session_ts_id", "events", (*_TIME_INDEX_COLUMNS, ("id", True)))


def _varchar(name: str, length: int | None, *, nullable: bool = False) -> ColumnSpec:
    return ColumnSpec(name, ColumnType.VARCHAR, length, nullable)


def _optional(kind: ColumnType, *names: str) -> tuple[ColumnSpec, ...]:
    return tuple(ColumnSpec(name, kind, nullable=True) for name in names)


def _state_tables(key: int | None) -> tuple[TableSpec, ...]:
    """`sessions`, `app_states`, `user_states`, which are the same in v0 and v1 but for the length of keys."""
    state = ColumnSpec("state", ColumnType.JSON)
    created, updated = ColumnSpec("create_time", ColumnType.TIME), ColumnSpec("update_time", ColumnType.TIME)
    app, user, session = _varchar("app_name", key), _varchar("user_id", key), _varchar("id", key)
    return (
        TableSpec("sessions", "sessions", (app, user, session, state, created, updated), ("app_name", "user_id", "id")),
        TableSpec("app_states", "app_states", (app, state, updated), ("app_name",)),
        TableSpec("user_states", "user_states", (app, user, state, updated), ("app_name", "user_id")),
    )


def _events(columns: tuple[ColumnSpec, ...], key: int | None) -> TableSpec:
    keys = tuple(_varchar(name, key) for name in ("id", *_SESSION_KEY))
    return TableSpec("events", "events", keys + columns, ("id", *_SESSION_KEY), _SESSION_KEY)


def _v0(
    first: str, last: str | None, columns: tuple[ColumnSpec, ...], *, key: int | None = KEY_LENGTH, index: bool = False
) -> LayoutSpec:
    indexes = (TIME_ID_INDEX,) if index else ()
    return LayoutSpec(Layout.V0, (first, last), (*_state_tables(key), _events(columns, key)), indexes)


_TIMESTAMP = ColumnSpec("timestamp", ColumnType.TIME)
_ACTIONS = ColumnSpec("actions", ColumnType.PICKLE)
_CONTENT = ColumnSpec("content", ColumnType.JSON, nullable=True)


def _early(length: int | None, content: ColumnSpec) -> tuple[ColumnSpec, ...]:
    """The columns of 0.1.0, in its order, which lasted until 1.13.0."""
    return (
        _varchar("invocation_id", length),
        _varchar("author", length),
        _varchar("branch", length, nullable=True),
        _TIMESTAMP,
        content,
        _ACTIONS,
    )


def _answer(code: int | None, message: ColumnSpec) -> tuple[ColumnSpec, ...]:
    return (
        *_optional(ColumnType.BOOLEAN, "partial", "turn_complete"),
        _varchar("error_code", code, nullable=True),
        message,
        *_optional(ColumnType.BOOLEAN, "interrupted"),
    )


_LONG_RUNNING = _optional(ColumnType.TEXT, "long_running_tool_ids_json")
_GROUNDING = _optional(ColumnType.JSON, "grounding_metadata")
_CUSTOM = _optional(ColumnType.JSON, "custom_metadata")
_USAGE = _optional(ColumnType.JSON, "usage_metadata", "citation_metadata")
_TRANSCRIPTION = _optional(ColumnType.JSON, "input_transcription", "output_transcription")
_SHORT_MESSAGE = _varchar("error_message", 1024, nullable=True)
_LONG_MESSAGE = ColumnSpec("error_message", ColumnType.TEXT, nullable=True)


def _later(
    *added: ColumnSpec, after: tuple[ColumnSpec, ...] = (), message: ColumnSpec = _SHORT_MESSAGE
) -> tuple[ColumnSpec, ...]:
    """The columns in the order that 1.14.0 introduced."""
    return (
        _varchar("invocation_id", TEXT_LENGTH),
        _varchar("author", TEXT_LENGTH),
        _ACTIONS,
        *_LONG_RUNNING,
        _varchar("branch", TEXT_LENGTH, nullable=True),
        _TIMESTAMP,
        _CONTENT,
        *_GROUNDING,
        *added,
        *_answer(TEXT_LENGTH, message),
        *after,
    )


_SECOND = (*_LONG_RUNNING, *_GROUNDING, *_answer(None, _varchar("error_message", None, nullable=True)))

#: Every form of the pickled layout, oldest first. The last is what 2.10.0 and later declare for a v0 database.
V0_FORMS: tuple[LayoutSpec, ...] = (
    _v0("0.1.0", "0.1.0", _early(None, ColumnSpec("content", ColumnType.JSON)), key=None),
    _v0("0.2.0", "0.2.0", (*_early(None, ColumnSpec("content", ColumnType.JSON)), *_SECOND), key=None),
    _v0("0.3.0", "0.3.0", (*_early(None, _CONTENT), *_SECOND), key=None),
    _v0(
        "0.4.0",
        "1.13.0",
        (*_early(TEXT_LENGTH, _CONTENT), *_LONG_RUNNING, *_GROUNDING, *_answer(TEXT_LENGTH, _SHORT_MESSAGE)),
    ),
    _v0("1.14.0", "1.16.0", _later(*_CUSTOM)),
    _v0("1.17.0", "1.18.0", _later(*_CUSTOM, *_USAGE)),
    _v0("1.19.0", "1.21.0", _later(*_CUSTOM, *_USAGE, after=_TRANSCRIPTION)),
    _v0("1.22.0", None, _later(*_CUSTOM, *_USAGE, after=_TRANSCRIPTION, message=_LONG_MESSAGE), index=True),
)

_METADATA = TableSpec(
    "metadata", METADATA_TABLE, (_varchar("key", KEY_LENGTH), _varchar("value", TEXT_LENGTH)), ("key",)
)
_V1_EVENTS = _events(
    (_varchar("invocation_id", TEXT_LENGTH), _TIMESTAMP, ColumnSpec("event_data", ColumnType.JSON, nullable=True)),
    KEY_LENGTH,
)

#: The current layout as google-adk 2.10.0 to 2.13.0 create it.
V1 = LayoutSpec(
    Layout.V1,
    ("1.22.0", None),
    (_METADATA, *_state_tables(KEY_LENGTH), _V1_EVENTS),
    (TIME_ID_INDEX,),
    ((SCHEMA_VERSION_KEY, "1"),),
)


def _text(name: str) -> ColumnSpec:
    return ColumnSpec(name, ColumnType.TEXT)


_EPOCH_CREATED, _EPOCH_UPDATED = (
    ColumnSpec("create_time", ColumnType.EPOCH),
    ColumnSpec("update_time", ColumnType.EPOCH),
)
_APP, _USER = _text("app_name"), _text("user_id")

#: `SqliteSessionService`, 1.19.0 on.
SQLITE_SERVICE = LayoutSpec(
    Layout.SQLITE_SERVICE,
    ("1.19.0", None),
    (
        TableSpec("app_states", "app_states", (_APP, _text("state"), _EPOCH_UPDATED), ("app_name",)),
        TableSpec("user_states", "user_states", (_APP, _USER, _text("state"), _EPOCH_UPDATED), ("app_name", "user_id")),
        TableSpec(
            "sessions",
            "sessions",
            (_APP, _USER, _text("id"), _text("state"), _EPOCH_CREATED, _EPOCH_UPDATED),
            ("app_name", "user_id", "id"),
        ),
        TableSpec(
            "events",
            "events",
            (
                _text("id"),
                _APP,
                _USER,
                _text("session_id"),
                _text("invocation_id"),
                ColumnSpec("timestamp", ColumnType.EPOCH),
                _text("event_data"),
            ),
            (*_SESSION_KEY, "id"),
            _SESSION_KEY,
        ),
    ),
)

#: Layouts that exhume can write, and compares with when asked for drift.
DECLARED: dict[str, LayoutSpec] = {
    Layout.V0: V0_FORMS[-1],
    Layout.V1: V1,
    Layout.V1_UNMARKED: V1,
    Layout.SQLITE_SERVICE: SQLITE_SERVICE,
}

#: Columns that only adk-go has (session/database/storage_session.go), beside those of Python's v0.
GO_COLUMNS = frozenset({"routes_json", "output_json", "node_info_json", "requested_input_json", "isolation_scope"})
#: Length of keys in adk-js (core/src/sessions/db/schema.ts), which is otherwise laid out like v1.
JS_KEY_LENGTH = 191


def v0_form(release: str) -> LayoutSpec:
    """The form of v0 that an ADK release declares, e.g. `"1.18.0"`; ValueError for what is no release number."""
    wanted = release_number(release)
    return max(
        (form for form in V0_FORMS if release_number(form.releases[0]) <= wanted),
        key=lambda form: release_number(form.releases[0]),
        default=V0_FORMS[0],
    )


def release_number(release: str) -> tuple[int, ...]:
    """`"1.14.1"` as numbers that compare; ValueError where it is not three numbers at most."""
    parts = release.strip().removeprefix("v").split(".")
    if not 1 <= len(parts) <= 3 or not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts):
        raise ValueError(f"{release!r} is no release number")
    numbers = tuple(int(part) for part in parts)
    return numbers + (0,) * (3 - len(numbers))
