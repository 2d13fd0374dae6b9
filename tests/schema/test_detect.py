"""The verdict on real, altered and made-up databases."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from exhume.schema.ddl import create_statements
from exhume.schema.detect import detect, meets
from exhume.schema.detection import Detection, Layout
from exhume.schema.layouts import SQLITE_SERVICE, V0_FORMS, V1
from exhume.stores import open_store
from tests.conftest import hostile_entries, make_hostile

METADATA = (
    'CREATE TABLE adk_internal_metadata ("key" VARCHAR(128) NOT NULL, value VARCHAR(256) NOT NULL, PRIMARY KEY ("key"))'
)
ODD_FILES = {entry["file"]: entry for entry in hostile_entries() if "sql" in entry}


def verdict(path: Path, *statements: str, prefix: str = "") -> Detection:
    """The verdict after those statements were run."""
    if statements:
        with closing(sqlite3.connect(path)) as connection, connection:
            for statement in statements:
                connection.execute(statement)
    with closing(open_store(path)) as store:
        return detect(store, table_prefix=prefix)


def declare(version: object) -> list[str]:
    return [METADATA, f"INSERT INTO adk_internal_metadata VALUES ('schema_version', {version})"]


@pytest.mark.parametrize(
    ("database", "layout", "versions", "releases"),
    [
        ("db-1.0.0-ny", Layout.V0, ("0", None), ("0.4.0", "1.13.0")),
        ("db-1.14.1-utc", Layout.V0, ("0", None), ("1.14.0", "1.16.0")),
        ("db-1.18.0-ny", Layout.V0, ("0", None), ("1.17.0", "1.18.0")),
        ("db-1.21.0-utc", Layout.V0, ("0", None), ("1.19.0", "1.27.5")),
        ("db-2.13.0-utc-over-1.21.0", Layout.V0, ("0", None), ("1.19.0", None)),
        ("db-1.22.1-ny", Layout.V1, ("1", "1"), ("1.22.0", "1.27.5")),
        ("db-2.0.0-utc", Layout.V1, ("1", "1"), ("1.22.0", "2.9.2")),
        ("db-2.13.0-utc", Layout.V1, ("1", "1"), ("1.22.0", None)),
        ("sqlitesvc-1.21.0-utc", Layout.SQLITE_SERVICE, (None, None), ("1.19.0", None)),
        ("sqlitesvc-2.13.0-utc", Layout.SQLITE_SERVICE, (None, None), ("1.19.0", None)),
    ],
)
def test_real_databases(
    adk_db: Callable[[str], Path],
    database: str,
    layout: Layout,
    versions: tuple[str | None, str | None],
    releases: tuple[str, str | None],
) -> None:
    found = verdict(adk_db(database))
    assert (found.layout, found.schema_version, found.declared_version) == (layout, *versions)
    assert (found.releases.first, found.releases.last) == releases
    assert found.contradictions == ()
    assert found.evidence
    assert {"sessions", "events", "app_states", "user_states"} <= set(found.tables)
    assert found.latest == (layout is Layout.V1)
    assert not found.drift_checked


def test_counts_are_those_of_all_tables(adk_db: Callable[[str], Path]) -> None:
    path = adk_db("db-2.13.0-utc")
    found = verdict(path, "CREATE TABLE other (a)", "INSERT INTO other VALUES (1), (2)")
    with closing(sqlite3.connect(path)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert found.counts == {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names
        }


@pytest.mark.parametrize("database", ["go", "v0", "v1a", "v1camel", "sqlite"])
def test_labelled_incidents(incident_db: Callable[[str], Path], database: str) -> None:
    layouts = {
        "go": Layout.GO,
        "v0": Layout.V0,
        "v1a": Layout.V1,
        "v1camel": Layout.V1,
        "sqlite": Layout.SQLITE_SERVICE,
    }
    found = verdict(incident_db(database))
    assert found.layout is layouts[database]
    assert found.contradictions == ()
    assert any("camelCase" in sentence for sentence in found.evidence) == (database == "v1camel")


# -- marks that disagree


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("odd-metadata-says-1.db", Layout.V0),
        ("odd-metadata-table-empty.db", Layout.V0),
        ("odd-both-columns.db", Layout.MIXED),
        ("odd-no-events-table.db", Layout.FOREIGN),
        ("odd-extra-table.db", Layout.V0),
    ],
)
def test_odd_files(tmp_path: Path, name: str, layout: Layout) -> None:
    found = verdict(make_hostile(ODD_FILES[name], tmp_path / name))
    assert found.layout is layout
    assert len(found.contradictions) == (name not in ("odd-extra-table.db", "odd-no-events-table.db"))


@pytest.mark.parametrize(
    ("database", "version", "layout", "words"),
    [
        ("db-1.21.0-utc", "'1'", Layout.V0, 'says schema_version "1", but the tables are those of v0'),
        ("db-1.21.0-utc", "'2'", Layout.V0, 'says schema_version "2", but the tables are those of v0'),
        ("sqlitesvc-2.13.0-utc", "'1'", Layout.SQLITE_SERVICE, "tables are those of SqliteSessionService"),
    ],
)
def test_the_tables_are_believed_and_not_the_mark(
    adk_db: Callable[[str], Path], database: str, version: str, layout: Layout, words: str
) -> None:
    found = verdict(adk_db(database), *declare(version))
    assert found.layout is layout
    assert words in found.contradictions[0]
    assert not found.latest


@pytest.mark.parametrize(
    ("value", "layout", "contradictions"),
    [
        ("'0'", Layout.V1_UNMARKED, 1),
        ("'2'", Layout.UNKNOWN_VERSION, 1),
        ("''", Layout.UNKNOWN_VERSION, 1),
        ("'1 '", Layout.UNKNOWN_VERSION, 1),
        ("x'31'", Layout.V1, 1),
        ("CAST(x'ff1b5b324a' AS TEXT)", Layout.UNKNOWN_VERSION, 1),
    ],
)
def test_odd_versions_of_v1_tables(
    adk_db: Callable[[str], Path], value: str, layout: Layout, contradictions: int
) -> None:
    found = verdict(adk_db("db-2.13.0-utc"), f"UPDATE adk_internal_metadata SET value = {value}")
    assert found.layout is layout
    assert len(found.contradictions) == contradictions
    assert not found.latest
    assert "\x1b" not in found.contradictions[0]


def test_v1_without_its_mark(adk_db: Callable[[str], Path]) -> None:
    path = adk_db("db-2.13.0-utc")
    found = verdict(path, "DELETE FROM adk_internal_metadata")
    assert (found.layout, found.schema_version, len(found.contradictions)) == (Layout.V1_UNMARKED, "1", 1)
    found = verdict(path, "DROP TABLE adk_internal_metadata")
    assert (found.layout, found.schema_version, found.contradictions) == (Layout.V1_UNMARKED, "1", ())
    found = verdict(path, "CREATE TABLE adk_internal_metadata (a)")
    assert (found.layout, len(found.contradictions)) == (Layout.V1_UNMARKED, 1)


def test_two_marks(adk_db: Callable[[str], Path]) -> None:
    found = verdict(
        adk_db("db-2.13.0-utc"),
        "DROP TABLE adk_internal_metadata",
        "CREATE TABLE adk_internal_metadata (key, value)",
        "INSERT INTO adk_internal_metadata VALUES ('schema_version', '1'), ('schema_version', '0')",
    )
    assert any("more than one row" in sentence for sentence in found.contradictions)


def test_a_future_version_with_other_tables_is_not_called_foreign(tmp_path: Path) -> None:
    found = verdict(tmp_path / "v7.db", *declare("'7'"), "CREATE TABLE turns (id)")
    assert (found.layout, found.declared_version) == (Layout.UNKNOWN_VERSION, "7")


def test_two_tables_of_events_are_a_migration_left_half_done(adk_db: Callable[[str], Path]) -> None:
    path = adk_db("db-1.21.0-utc")
    v1_events = create_statements(V1)[4].replace("TABLE events", "TABLE events_new")
    found = verdict(path, v1_events)
    assert found.layout is Layout.MIXED
    assert any("events_new" in sentence for sentence in found.contradictions)


@pytest.mark.parametrize("other", ["events_backup", "old_events"])
def test_a_table_that_was_put_aside_is_none(adk_db: Callable[[str], Path], other: str) -> None:
    found = verdict(
        adk_db("db-2.13.0-utc"), create_statements(V0_FORMS[-2])[3].replace("TABLE events", f"TABLE {other}")
    )
    assert (found.layout, found.contradictions) == (Layout.V1, ())
    assert any(other in sentence for sentence in found.evidence)


def test_another_applications_tables_beside_are_none(adk_db: Callable[[str], Path]) -> None:
    found = verdict(adk_db("db-2.13.0-utc"), *create_statements(V0_FORMS[-1].prefixed("shop_")))
    assert (found.layout, found.contradictions) == (Layout.V1, ())


# -- names


@pytest.mark.parametrize("prefix", ["agent_", 'we"ird; ', "\u00e4\U0001f600"])
def test_a_prefix_names_the_tables(adk_db: Callable[[str], Path], prefix: str) -> None:
    path = adk_db("db-2.13.0-utc")
    quoted = prefix.replace('"', '""')
    renames = [
        f'ALTER TABLE {name} RENAME TO "{quoted}{name}"'
        for name in ("adk_internal_metadata", "sessions", "app_states", "user_states", "events")
    ]
    found = verdict(path, *renames, prefix=prefix)
    assert (found.layout, found.declared_version, found.contradictions) == (Layout.V1, "1", ())
    assert found.tables["events"].name == f"{prefix}events"
    without = verdict(path)
    assert without.layout is Layout.FOREIGN
    assert any("--table-prefix" in sentence for sentence in without.evidence)
    assert verdict(path, prefix="other_").layout is Layout.FOREIGN


def test_names_are_found_in_upper_case(adk_db: Callable[[str], Path]) -> None:
    found = verdict(
        adk_db("db-1.21.0-utc"),
        "ALTER TABLE events RENAME TO e",
        "ALTER TABLE e RENAME TO EVENTS",
        "ALTER TABLE EVENTS RENAME COLUMN actions TO a",
        "ALTER TABLE EVENTS RENAME COLUMN a TO Actions",
    )
    assert found.layout is Layout.V0
    assert found.tables["events"].name == "EVENTS"


# -- other layouts

GO_EVENTS = (
    "CREATE TABLE events (id text, app_name text, user_id text, session_id text, invocation_id text, author text,"
    " actions blob, branch text, timestamp datetime, content text{more},"
    " PRIMARY KEY (id, app_name, user_id, session_id))"
)
SESSIONS = (
    "CREATE TABLE sessions (app_name {text}, user_id {text}, id {text}, state {json}, create_time datetime,"
    " update_time datetime, PRIMARY KEY (app_name, user_id, id))"
)
A_SESSION = "INSERT INTO sessions VALUES ('a', 'u', 's', '{}', 1700000000000, 1700000000000)"


def go_event(actions: str) -> str:
    return (
        "INSERT INTO events (id, app_name, user_id, session_id, actions, timestamp)"
        f" VALUES (hex(randomblob(8)), 'a', 'u', 's', {actions}, '2026-01-01 00:00:00')"
    )


def test_go_is_known_by_its_json_actions_or_its_columns(tmp_path: Path) -> None:
    sessions = SESSIONS.format(text="text", json="text")
    json_only = verdict(
        tmp_path / "1.db",
        sessions,
        GO_EVENTS.format(more=""),
        A_SESSION,
        go_event("""CAST('{"stateDelta":{}}' AS BLOB)"""),
    )
    assert (json_only.layout, json_only.contradictions) == (Layout.GO, ())
    more = ", routes_json text, output_json text"
    by_columns = verdict(tmp_path / "2.db", sessions, GO_EVENTS.format(more=more), A_SESSION)
    assert by_columns.layout is Layout.GO
    both = verdict(
        tmp_path / "3.db",
        sessions,
        GO_EVENTS.format(more=more),
        A_SESSION,
        *[go_event("x'8005952e'")] * 2,
        go_event("'{}'"),
    )
    assert both.layout is Layout.V0
    assert "adk-go" in both.contradictions[0]


@pytest.mark.parametrize("actions", ["x'80054e2e'", "x'8002632e'", "x'636f73'||x'2e'", "x'7d2e'", "x'286c702e'"])
def test_pickles_of_every_protocol_are_pickles(tmp_path: Path, actions: str) -> None:
    found = verdict(
        tmp_path / "1.db",
        SESSIONS.format(text="text", json="text"),
        GO_EVENTS.format(more=""),
        A_SESSION,
        go_event(f"CAST({actions} AS BLOB)"),
    )
    assert (found.layout, found.contradictions) == (Layout.V0, ())
    assert any("1 are pickles" in sentence for sentence in found.evidence)


@pytest.mark.parametrize(
    ("text", "json_type", "timestamp"),
    [("varchar(191)", "text", "'2026-01-01'"), ("text", "json", "'2026-01-01'"), ("text", "text", "1767225600000")],
)
def test_js_is_known_by_any_of_its_marks(tmp_path: Path, text: str, json_type: str, timestamp: str) -> None:
    found = verdict(
        tmp_path / "js.db",
        *declare("'1'"),
        SESSIONS.format(text=text, json=json_type),
        f"CREATE TABLE events (id {text}, app_name {text}, user_id {text}, session_id {text}, invocation_id {text},"
        f" timestamp datetime, event_data {json_type}, PRIMARY KEY (id, app_name, user_id, session_id))",
        A_SESSION,
        f"INSERT INTO events VALUES ('e', 'a', 'u', 's', 'i', {timestamp}, '{{}}')",
    )
    assert (found.layout, found.schema_version, found.contradictions) == (Layout.JS, "1", ())


def test_java_drafts(tmp_path: Path) -> None:
    flyway = verdict(
        tmp_path / "flyway.db",
        "CREATE TABLE flyway_schema_history (installed_rank INTEGER)",
        SESSIONS.format(text="text", json="text"),
        GO_EVENTS.format(more=""),
        A_SESSION,
        go_event("'{}'"),
    )
    assert flyway.layout is Layout.JAVA_FLYWAY
    contrib = verdict(
        tmp_path / "contrib.db",
        "CREATE TABLE adk_sessions (app_name, user_id, session_id, state, created_at, updated_at)",
        "CREATE TABLE adk_events (event_sequence INTEGER PRIMARY KEY, app_name, user_id, session_id, event_id,"
        " event_data)",
        "CREATE TABLE adk_app_state (app_name, state_key, state_value)",
        "INSERT INTO adk_sessions VALUES ('a', 'u', 's', '{}', 1, 1)",
    )
    assert (contrib.layout, set(contrib.tables)) == (Layout.JAVA_CONTRIB, {"sessions", "events", "app_states"})


# -- nothing, or nothing of ADK's


@pytest.mark.parametrize(
    ("spec", "shape", "version"),
    [(V1, Layout.V1, "1"), (V0_FORMS[0], Layout.V0, "0"), (SQLITE_SERVICE, Layout.SQLITE_SERVICE, None)],
)
def test_tables_without_rows_still_say_what_they_are(
    tmp_path: Path, spec: object, shape: Layout, version: str | None
) -> None:
    marks = ["INSERT INTO adk_internal_metadata VALUES ('schema_version', '1')"] if shape is Layout.V1 else []
    found = verdict(tmp_path / "empty.db", *create_statements(spec), *marks)  # type: ignore[arg-type]
    assert (found.layout, found.shape, found.schema_version) == (Layout.EMPTY, shape, version)
    assert found.latest == (shape is Layout.V1)
    assert found.contradictions == ()


def test_one_row_of_state_is_not_empty(tmp_path: Path) -> None:
    found = verdict(
        tmp_path / "one.db", *create_statements(SQLITE_SERVICE), "INSERT INTO app_states VALUES ('a', '{}', 1)"
    )
    assert (found.layout, found.shape) == (Layout.SQLITE_SERVICE, None)


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE t (a)"],
        ["CREATE TABLE events (a)", "CREATE TABLE sessions (a)"],
        ["CREATE TABLE events (id, app_name, user_id, session_id, timestamp, actions)"],
        [
            "CREATE TABLE events (id, app_name, user_id, session_id, timestamp)",
            SESSIONS.format(text="text", json="text"),
        ],
        ["CREATE VIEW events AS SELECT 1 AS id", SESSIONS.format(text="text", json="text")],
        [
            "CREATE TABLE events (id, app_name, user_id, session_id, event_data)",
            SESSIONS.format(text="text", json="text"),
        ],
    ],
)
def test_what_is_not_adks_is_foreign_and_says_what_is_missing(tmp_path: Path, statements: list[str]) -> None:
    found = verdict(tmp_path / "foreign.db", *statements)
    assert (found.layout, found.schema_version) == (Layout.FOREIGN, None)
    assert any("no table" in s.lower() or "no column" in s or "neither" in s for s in found.evidence)


def test_evidence_is_harmless_to_a_terminal(tmp_path: Path) -> None:
    columns = ", ".join(f'"\x1b[2J\n{n}"' for n in range(500))
    form = create_statements(V0_FORMS[3])
    form[3] = form[3].replace("interrupted BOOLEAN", f"interrupted BOOLEAN, {columns}")
    found = verdict(tmp_path / "x.db", *form, 'CREATE TABLE "\x1b]0;x\x07events" (id, app_name, user_id, session_id)')
    text = " ".join(found.evidence + found.contradictions)
    assert text.isprintable()
    assert len(text) < 3000


# -- what CI asks for


def test_require(adk_db: Callable[[str], Path]) -> None:
    v1, v0, service = (verdict(adk_db(name)) for name in ("db-2.13.0-utc", "db-1.21.0-utc", "sqlitesvc-2.13.0-utc"))
    assert [meets(v1, version) for version in ("1", " 1", "0", "2")] == [True, True, False, False]
    assert [meets(v0, version) for version in ("0", "1")] == [True, False]
    assert not meets(service, "1")
    stamped = verdict(adk_db("db-1.21.0-utc"), *declare("'1'"))
    assert not meets(stamped, "1")
    assert not meets(stamped, "0")
    unmarked = verdict(adk_db("db-2.13.0-utc"), "DROP TABLE adk_internal_metadata")
    assert not meets(unmarked, "1")


def test_no_sqlalchemy_unless_drift_is_asked_for(adk_db: Callable[[str], Path]) -> None:
    import subprocess
    import sys

    program = (
        "import json, sys; from exhume.stores import open_store; from exhume.schema.detect import detect;"
        " layout = detect(open_store(sys.argv[1])).layout;"
        " print(json.dumps([layout, sorted({m.partition('.')[0] for m in sys.modules})]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, adk_db("db-2.13.0-utc")], capture_output=True, text=True, check=True
    )
    layout, modules = json.loads(ran.stdout)
    assert layout == "v1"
    assert not {"sqlalchemy", "alembic", "fickling", "rich", "typer", "google"} & set(modules)
