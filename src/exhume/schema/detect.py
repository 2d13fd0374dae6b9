"""Which layout a store has: all evidence is weighed, and every mark that disagrees with the tables is named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from exhume.redact import printable
from exhume.schema.detection import Detection, Layout, ReleaseRange
from exhume.schema.layouts import GO_COLUMNS, JS_KEY_LENGTH, METADATA_TABLE, SCHEMA_VERSION_KEY
from exhume.schema.releases import release_range
from exhume.schema.samples import sample
from exhume.stores.interface import Cell, Store, Table

#: Logical name -> name without prefix, for the layouts of Python, Go and JavaScript.
_NAMES = {
    "sessions": "sessions",
    "events": "events",
    "app_states": "app_states",
    "user_states": "user_states",
    "metadata": METADATA_TABLE,
}
#: The same for the MySQL session service of ADK Java's contributions, which keeps one row per state key.
_JAVA_CONTRIB_NAMES = {
    "sessions": "adk_sessions",
    "events": "adk_events",
    "app_states": "adk_app_state",
    "user_states": "adk_user_state",
}
_EVENT_KEYS = ("id", "app_name", "user_id", "session_id", "timestamp")
_SESSION_KEYS = ("app_name", "user_id", "id", "state")
#: Names under which somebody keeps a table that is not in use any more.
_KEPT = re.compile(r"backup|bak|old|archive|legacy|copy", re.IGNORECASE)
_FLYWAY_INDEXES = frozenset({"idx_events_session", "idx_events_timestamp"})
#: What ADK counts the tables of a layout as.
_SCHEMA_VERSIONS = {Layout.V0: "0", Layout.V1: "1", Layout.V1_UNMARKED: "1", Layout.JS: "1"}


def detect(store: Store, *, table_prefix: str = "", drift: bool = False) -> Detection:
    """The verdict on a store.

    Reads the schema, counts the rows of all tables, and looks at the first rows of `events` and at the metadata row.

    Args:
        table_prefix: text before the names of all ADK tables.
        drift: also compare the tables with those that the layout declares.

    Raises:
        NothingToLookAt: the store is damaged where it was read.
    """
    info = store.info()
    if info.kind == "export":
        tables = dict(store.tables())
        counts = {name: store.count(name) for name in tables}
        return Detection(
            info, Layout.EXPORT, None, None, ReleaseRange(), evidence=info.notes, tables=tables, counts=counts
        )
    case = _Case(store, table_prefix)
    case.judge()
    counts = {name: store.count(name) for name in store.tables()}
    verdict = Detection(
        info=info,
        layout=case.layout,
        schema_version=_SCHEMA_VERSIONS.get(case.layout),
        declared_version=case.declared_version,
        releases=case.releases,
        contradictions=tuple(case.contradictions),
        evidence=tuple(case.evidence),
        tables=case.tables,
        counts=counts,
    )
    verdict = _emptied(verdict)
    if drift:
        from exhume.schema.drift import find_drift

        verdict = replace(
            verdict, drift=tuple(find_drift(store, verdict, table_prefix=table_prefix)), drift_checked=True
        )
    return verdict


def meets(detection: Detection, version: str) -> bool:
    """Are the tables of that schema version, marked as such where ADK marks it, and does nothing contradict it?"""
    if detection.schema_version != version.strip() or detection.contradictions:
        return False
    return detection.declared_version == version.strip() or (
        version.strip() == "0" and detection.declared_version is None
    )


def _emptied(verdict: Detection) -> Detection:
    """`empty` instead of the layout where no ADK table but the metadata has a row."""
    known = {name: table for name, table in verdict.tables.items() if name != "metadata"}
    if "events" not in known or any(verdict.counts[table.name] for table in known.values()):
        return verdict
    if verdict.layout in (Layout.MIXED, Layout.UNKNOWN_VERSION, Layout.FOREIGN):
        return verdict
    sentence = f"No ADK table has a row; the tables are those of {verdict.layout}."
    return replace(verdict, layout=Layout.EMPTY, shape=verdict.layout, evidence=(*verdict.evidence, sentence))


@dataclass(slots=True)
class _Case:
    """One store under examination; `judge` fills in everything that is not given."""

    store: Store
    prefix: str
    layout: Layout = Layout.FOREIGN
    declared_version: str | None = None
    releases: ReleaseRange = field(default_factory=ReleaseRange)
    tables: dict[str, Table] = field(default_factory=dict)
    evidence: list[str] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)

    def judge(self) -> None:
        self.tables = self._find(_NAMES)
        self.evidence.extend(self.store.info().notes)
        if "events" not in self.tables and self._judge_java_contrib():
            return
        self._read_metadata()
        if not self._has_adk_tables():
            self._judge_unknown_version()
            return
        events = self.tables["events"]
        columns = {column.lower() for column in events.column_names}
        if {"actions", "event_data"} <= columns:
            self._judge_both_columns(events)
        elif "actions" in columns:
            self._judge_actions(events, columns)
        elif "event_data" in columns:
            self._judge_event_data(events)
        else:
            self.evidence.append("events has neither a column actions nor a column event_data.")
            self._judge_unknown_version()
            return
        self._look_for_second_events(columns)
        self.releases, why = release_range(self.layout, events)
        self.evidence.extend(why)

    def _find(self, names: Mapping[str, str]) -> dict[str, Table]:
        """Real tables by logical name; upper and lower case are the same to SQLite, but an exact name comes first."""
        tables = self.store.tables()
        folded = {name.lower(): table for name, table in tables.items()}
        found = {}
        for logical, name in names.items():
            full = self.prefix + name
            table = tables.get(full) or folded.get(full.lower())
            if table is not None:
                found[logical] = table
        return found

    def _has_adk_tables(self) -> bool:
        """Are there sessions and events with their keys? Says what is missing if not."""
        if not self.tables:
            prefixes = sorted(
                name[: -len("events")]
                for name, table in self.store.tables().items()
                if name.lower().endswith("events") and len(name) > len("events") and _lacking(table, _EVENT_KEYS) == []
            )
            self.evidence.append(f"No table has a name of ADK's{' with this prefix' if self.prefix else ''}.")
            for prefix in prefixes[:3]:
                shown = printable(prefix, limit=60)
                self.evidence.append(f"A table {shown}events looks like ADK's: try --table-prefix {shown}")
            return False
        complete = True
        for logical, keys in (("events", _EVENT_KEYS), ("sessions", _SESSION_KEYS)):
            table = self.tables.get(logical)
            if table is None:
                self.evidence.append(f"There is no table {self.prefix}{logical}.")
                complete = False
            elif missing := _lacking(table, keys):
                self.evidence.append(f"{logical} has no column {', '.join(missing)}.")
                complete = False
        return complete

    def _read_metadata(self) -> None:
        table = self.tables.get("metadata")
        if table is None:
            return
        if _lacking(table, ("key", "value")):
            self.contradictions.append(f"{METADATA_TABLE} does not have the columns key and value.")
            return
        rows = self.store.rows(
            table.name, [_real_name(table, "value")], where={_real_name(table, "key"): SCHEMA_VERSION_KEY}
        )
        values = [row[0] for _, row in islice(rows, 2)]
        if not values:
            self.contradictions.append(f"{METADATA_TABLE} exists, but has no row {SCHEMA_VERSION_KEY}.")
            return
        self.declared_version = _version_text(values[0])
        if not isinstance(values[0], str):
            self.contradictions.append(f"{METADATA_TABLE} holds {SCHEMA_VERSION_KEY} as another type than text.")
        if len(values) > 1:
            self.contradictions.append(f"{METADATA_TABLE} has more than one row {SCHEMA_VERSION_KEY}.")

    def _judge_both_columns(self, events: Table) -> None:
        self.layout = Layout.MIXED
        self.evidence.append("events has both actions (v0) and event_data (v1).")
        halves = []
        for column in ("actions", "event_data"):
            seen = sample(self.store, events.name, _real_name(events, column)).seen
            halves.append(f"{column} in {seen}")
        self.contradictions.append(
            f"events has the columns of v0 and of v1 at once; of its first rows, {' and '.join(halves)} are set."
        )

    def _judge_actions(self, events: Table, columns: set[str]) -> None:
        found = sample(self.store, events.name, _real_name(events, "actions"))
        go_columns = sorted(GO_COLUMNS & columns)
        flyway = "flyway_schema_history" in self.store.tables() or _FLYWAY_INDEXES & set(events.indexes)
        if found.seen:
            self.evidence.append(
                f"Of the first {found.seen} values of actions {found.pickles} are pickles and {found.json} are JSON."
            )
        if found.pickles > found.json or not (go_columns or flyway or found.json > found.other):
            self.layout = Layout.V0
            self.evidence.append("events has a column actions and no event_data.")
            if go_columns and found.pickles:
                self.contradictions.append(
                    f"events has columns of adk-go ({', '.join(go_columns)}), but actions holds pickles of Python."
                )
            self._compare_version("0")
            return
        self.layout = Layout.JAVA_FLYWAY if flyway else Layout.GO
        if go_columns:
            self.evidence.append(f"events has columns that only adk-go has: {', '.join(go_columns)}.")
        if flyway:
            self.evidence.append("The tables were made by Flyway, as in ADK Java's draft.")
        if found.pickles:
            self.contradictions.append(f"{found.pickles} of {found.seen} values of events.actions are pickles.")
        if self.declared_version is not None:
            self.contradictions.append(
                f"{METADATA_TABLE} says {self._declared()}, which only Python and JavaScript write."
            )

    def _judge_event_data(self, events: Table) -> None:
        found = sample(self.store, events.name, _real_name(events, "event_data"))
        self.evidence.append("events has a column event_data and no actions.")
        if found.camel > found.snake:
            self.evidence.append("event_data has camelCase keys, which Python's ADK does not write.")
        if found.seen and found.json == 0:
            self.contradictions.append(f"None of the first {found.seen} values of event_data is JSON.")
        if _type_of(events, "timestamp") in ("REAL", "FLOAT", "DOUBLE"):
            self.layout = Layout.SQLITE_SERVICE
            self.evidence.append("Times are REAL: SqliteSessionService made the tables.")
            if "metadata" in self.tables:
                self.contradictions.append(
                    f"{METADATA_TABLE} says {self._declared()}, but the tables are those of SqliteSessionService:"
                    " DatabaseSessionService opened the file once."
                )
            return
        if self._is_js(events):
            self.layout = Layout.JS
            self._compare_version("1")
            return
        self._judge_v1()

    def _judge_v1(self) -> None:
        if self.declared_version == "1":
            self.layout = Layout.V1
            self.evidence.append(f'{METADATA_TABLE} says schema_version "1".')
        elif self.declared_version is None:
            self.layout = Layout.V1_UNMARKED
            if "metadata" not in self.tables:
                self.evidence.append(f"There is no table {METADATA_TABLE}.")
        elif self.declared_version == "0":
            self.layout = Layout.V1_UNMARKED
            self._compare_version("1")
        else:
            self._judge_unknown_version()
            self.evidence.append("The tables look like v1.")

    def _judge_unknown_version(self) -> None:
        """A version that is not known makes tables that are not understood ADK's, and tables that are, doubtful."""
        if self.declared_version not in (None, "0", "1"):
            self.layout = Layout.UNKNOWN_VERSION
            self.contradictions.append(
                f"{METADATA_TABLE} says {self._declared()}, a version that this release of exhume does not know."
            )

    def _compare_version(self, actual: str) -> None:
        if self.declared_version not in (None, actual):
            self.contradictions.append(
                f"{METADATA_TABLE} says {self._declared()}, but the tables are those of v{actual}."
            )
        elif "metadata" in self.tables and actual == "0" and self.declared_version is None and not self.contradictions:
            self.contradictions.append(f"{METADATA_TABLE} exists, but the tables are those of v0.")

    def _is_js(self, events: Table) -> bool:
        """MikroORM declares JSON and keys of 191, and stores epoch milliseconds; each may be missing in some store."""
        marks = []
        if str(JS_KEY_LENGTH) in _type_of(events, "app_name"):
            marks.append(f"keys are {JS_KEY_LENGTH} characters long")
        if _type_of(self.tables["sessions"], "state") == "JSON":
            marks.append("state is of type JSON")
        times = sample(self.store, events.name, _real_name(events, "timestamp"))
        if times.milliseconds * 2 > times.seen:
            marks.append("times are epoch milliseconds")
        if marks:
            self.evidence.append(f"As in adk-js, {' and '.join(marks)}.")
        return bool(marks)

    def _judge_java_contrib(self) -> bool:
        tables = self._find(_JAVA_CONTRIB_NAMES)
        events = tables.get("events")
        if events is None or _lacking(events, ("app_name", "user_id", "session_id", "event_id", "event_data")):
            return False
        self.tables, self.layout = tables, Layout.JAVA_CONTRIB
        self.evidence.append("Tables are named adk_events and so on, as in ADK Java's MySQL session service.")
        return True

    def _look_for_second_events(self, columns: set[str]) -> None:
        """A half-done migration can also leave two tables of events in one file, one of each kind."""
        other = "event_data" if "actions" in columns else "actions"
        for name, table in self.store.tables().items():
            present = {column.lower() for column in table.column_names}
            if table is self.tables["events"] or "events" not in name.lower() or other not in present:
                continue
            if _lacking(table, ("app_name", "user_id", "session_id")):
                continue
            owner = name.lower().replace("events", "sessions")
            if any(real.lower() == owner for real in self.store.tables()):
                continue  # with sessions of its own it is another application's set of tables
            if _KEPT.search(name):
                self.evidence.append(
                    f"A table {printable(name, limit=80)} keeps events in the form of the other version."
                )
                continue
            self.layout = Layout.MIXED
            self.contradictions.append(
                f"Beside events there is a table {printable(name, limit=80)} of the other kind:"
                " a migration was left half done."
            )

    def _declared(self) -> str:
        shown = printable(self.declared_version or "nothing", limit=40)
        return f'schema_version "{shown}"' if self.declared_version is not None else "nothing"


def _lacking(table: Table, columns: tuple[str, ...]) -> list[str]:
    present = {column.lower() for column in table.column_names}
    return [column for column in columns if column not in present]


def _real_name(table: Table, column: str) -> str:
    return next(name for name in table.column_names if name.lower() == column)


def _type_of(table: Table, column: str) -> str:
    return next((found.type.upper().strip() for found in table.columns if found.name.lower() == column), "")


def _version_text(value: Cell) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
