"""Each layout's reader: the event model that comes out, odd cells told, and nothing lost."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from exhume.errors import NothingToLookAt, Refused
from exhume.events.interface import ReadOptions
from exhume.events.model import Capability, EventKey
from exhume.events.readers import open_reader, readable_layouts
from exhume.events.readers.base import read_state
from exhume.schema.detect import detect
from exhume.schema.detection import Detection, Layout, ReleaseRange
from exhume.stores import open_store
from exhume.stores.interface import Cell, StoreInfo
from tests.conftest import hostile_entries, make_hostile
from tests.events.building import Reading, Written, execute, make_v0, only, utc

V1 = """
CREATE TABLE adk_internal_metadata (key TEXT PRIMARY KEY, value TEXT);
INSERT INTO adk_internal_metadata VALUES ('schema_version', '1');
CREATE TABLE sessions (app_name TEXT, user_id TEXT, id TEXT, state TEXT, create_time DATETIME, update_time DATETIME,
 PRIMARY KEY (app_name, user_id, id));
CREATE TABLE app_states (app_name TEXT PRIMARY KEY, state TEXT, update_time DATETIME);
CREATE TABLE user_states (app_name TEXT, user_id TEXT, state TEXT, update_time DATETIME,
 PRIMARY KEY (app_name, user_id));
CREATE TABLE events (id TEXT, app_name TEXT, user_id TEXT, session_id TEXT, invocation_id TEXT, timestamp DATETIME,
 event_data TEXT, PRIMARY KEY (id, app_name, user_id, session_id));
INSERT INTO sessions VALUES ('app', 'user', 's', '{"a": 1}', '2026-01-01 12:00:00.000000',
 '2026-01-01 12:00:00.000000');
"""


def make(path: Path, script: str) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return path


def v1_with(path: Path, event_data: Cell, *, time: Cell = "2026-01-01 12:00:00.000000") -> Path:
    make(path, V1)
    execute(path, "INSERT INTO events VALUES ('e', 'app', 'user', 's', 'i', ?, ?)", time, event_data)
    return path


def v0_with(path: Path, column: str, cell: Cell) -> Path:
    make_v0(path, [Written("s", utc("2026-01-01 12:00:00"))])
    execute(path, f"UPDATE events SET {column} = ?", cell)
    return path


# ------------------------------------------------------------------------------------------------ v1 and its kin
@pytest.mark.parametrize("name", ["db-2.13.0-utc", "db-1.22.1-ny", "db-2.0.0-utc", "sqlitesvc-2.13.0-utc"])
def test_json_layouts_come_out_as_they_are_stored(name: str, adk_db: Callable[[str], Path], reading: Reading) -> None:
    path = adk_db(name)
    connection = sqlite3.connect(path)
    stored = {
        EventKey(*row[:4]): json.loads(row[4])
        for row in connection.execute("SELECT app_name, user_id, session_id, id, event_data FROM events")
    }
    connection.close()
    reader = reading(path)
    records = list(reader.events())
    assert [record.key for record in records] == [
        record.key for record in sorted(records, key=lambda one: (*one.key.session, str(one.raw[5]), one.position))
    ] or name.startswith("sqlitesvc")
    assert len(records) == len(stored)
    for record in records:
        assert record.problems == ()
        assert record.time == stored[record.key]["timestamp"]
        if not record.losses:
            assert record.data == stored[record.key]
    assert reader.time_zone().proof == "not needed"


@pytest.mark.parametrize(
    ("cell", "fatal"), [(None, False), ("", True), ("[1]", True), ("Inf", True), ("[" * 9_999, True), (7, True)]
)
def test_event_data_that_is_no_object(reading: Reading, tmp_path: Path, cell: Cell, fatal: bool) -> None:
    record = only(reading(v1_with(tmp_path / "a.db", cell)).events())
    assert [(problem.rule, problem.fatal) for problem in record.problems] == [("EXH307", fatal)]
    assert record.data is not None
    assert record.data["id"] == "e"
    assert record.time == record.column_time == utc("2026-01-01 12:00:00").timestamp()


def test_the_exact_time_is_that_of_event_data(reading: Reading, tmp_path: Path) -> None:
    record = only(reading(v1_with(tmp_path / "a.db", '{"id": "e", "timestamp": 1767272400.5}')).events())
    assert record.time == 1_767_272_400.5
    assert record.column_time == 1_767_268_800.0


@pytest.mark.parametrize("stamp", ['"noon"', "[]", "true", "1" + "0" * 400])
def test_a_timestamp_that_is_none(reading: Reading, tmp_path: Path, stamp: str) -> None:
    record = only(reading(v1_with(tmp_path / "a.db", f'{{"id": "e", "timestamp": {stamp}}}')).events())
    assert record.refused
    assert record.time == record.column_time


def test_camel_case_event_data(incident_db: Callable[[str], Path], reading: Reading) -> None:
    records = list(reading(incident_db("v1camel")).events())
    calls = [part for record in records for part in (record.data or {}).get("content", {}).get("parts", [])]
    assert any("function_call" in part for part in calls)
    assert not any("functionCall" in part or "functionResponse" in part for part in calls)
    assert all("invocation_id" in (record.data or {}) for record in records)


# ------------------------------------------------------------------------------------------------ states
@pytest.mark.parametrize(
    ("text", "state", "fatal"),
    [
        ('{"a":Inf,"b":"Inf"}', {"a": None, "b": "Inf"}, [False]),
        ('{"a":[-Inf]}', {"a": [None]}, [False]),
        ('{"a":"Inf"}', {"a": "Inf"}, []),
        ('{"a":Inf', None, [True]),
        ('{"a":"Inf', None, [True]),
        ('{"a":Info}', None, [True]),
        ('{"a":nan,"b":Inf}', None, [True]),
        ("Inf", None, [True]),
    ],
)
def test_the_bare_word_that_sqlite_wrote_is_infinity(
    text: str, state: dict[str, object] | None, fatal: list[bool]
) -> None:
    found, kept, _, problems = read_state(text)
    assert (found, [problem.fatal for problem in problems]) == (state, fatal)
    assert kept == (text.replace(":Inf", ":Infinity").replace("-Inf", "-Infinity") if fatal == [False] else text)


def test_state_is_kept_as_text_and_parsed(reading: Reading, tmp_path: Path) -> None:
    path = make(tmp_path / "a.db", V1)
    execute(path, "INSERT INTO app_states VALUES ('app', '[1]', '2026-01-01 12:00:00.5')")
    execute(path, "INSERT INTO user_states VALUES ('app', 'user', '{\"x\": NaN}', 'garbage')")
    reader = reading(path)
    (session,), (app,), (user,) = reader.sessions(), reader.app_states(), reader.user_states()
    assert (session.state, session.state_text, session.problems) == ({"a": 1}, '{"a": 1}', ())
    assert session.create_time == utc("2026-01-01 12:00:00").timestamp()
    assert (app.state, app.state_text, app.user_id) == (None, "[1]", None)
    assert [problem.rule for problem in app.problems] == ["EXH307"]
    assert (user.state, user.state_text, user.update_time) == ({"x": None}, '{"x": NaN}', None)


def test_filters(adk_db: Callable[[str], Path], reading: Reading) -> None:
    path = adk_db("db-1.21.0-ny")
    every = list(reading(path).events())
    key = next(record.key for record in every if record.key.session_id == "a-chat")
    chosen = list(reading(path, app=key.app_name, user=key.user_id, session="a-chat").events())
    # the zone is still that of the whole store
    assert [(one.key, one.time) for one in chosen] == [
        (one.key, one.time) for one in every if one.key.session == key.session
    ]


# ------------------------------------------------------------------------------------------------ v0, odd columns
@pytest.mark.parametrize(
    "case",
    [
        ("content", '{"parts": [{"text": "a"}], "role": null}', "content", {"parts": [{"text": "a"}]}),
        ("content", b'{"parts": []}', "content", {"parts": []}),
        ("content", "null", "content", None),
        ("custom_metadata", '{"a": null, "unknown": 1}', "custom_metadata", {"a": None, "unknown": 1}),
        ("long_running_tool_ids_json", '["b", "a", "b"]', "long_running_tool_ids", ["a", "b"]),
        ("long_running_tool_ids_json", "", "long_running_tool_ids", []),
        ("partial", 0, "partial", False),
        ("turn_complete", 1, "turn_complete", True),
        ("interrupted", "true", "interrupted", True),
        ("error_message", "x" * 5_000, "error_message", "x" * 5_000),
        ("author", "", "author", ""),
        ("branch", "a.b", "branch", "a.b"),
    ],
)
def test_kept_without_a_word(reading: Reading, tmp_path: Path, case: tuple[str, Cell, str, Any]) -> None:
    column, cell, field, value = case
    record = only(reading(v0_with(tmp_path / "a.db", column, cell)).events())
    assert record.data is not None
    assert record.data.get(field) == value
    assert record.losses == ()
    assert [problem.rule for problem in record.problems] == ["EXH503"]  # the pickle of {} that the helper writes


@pytest.mark.parametrize(
    "case",
    [
        ("content", '{"role": "a", "role": "b"}', "content", {"role": "b"}, "duplicate-key"),
        ("content", '{"parts": [{"function_call": {"args": {"x": NaN}}}]}', "content",
         {"parts": [{"function_call": {"args": {"x": None}}}]}, "nan-to-null"),
        ("long_running_tool_ids_json", "null", "long_running_tool_ids", [], "null-to-absent"),
        ("long_running_tool_ids_json", '{"b": 1, "a": 2}', "long_running_tool_ids", ["a", "b"], "object-to-keys"),
        ("partial", 2, "partial", True, "number-to-boolean"),
        ("author", None, "author", "", "null-to-empty-text"),
        ("invocation_id", b"\xff", "invocation_id", "\\xff", "bad-utf8-to-escape"),
    ],
)  # fmt: skip
def test_kept_and_told(reading: Reading, tmp_path: Path, case: tuple[str, Cell, str, Any, str]) -> None:
    column, cell, field, value, loss = case
    record = only(reading(v0_with(tmp_path / "a.db", column, cell)).events())
    assert record.data is not None
    assert record.data.get(field) == value
    assert not record.refused
    assert loss in [one.kind for one in record.losses]


@pytest.mark.parametrize(
    ("column", "cell", "place"),
    [
        ("content", "not json", "content"),
        ("content", "", "content"),
        ("content", '"text"', "content"),
        ("content", '{"mood": 1}', "content"),
        ("content", "[" * 99_999, "content"),
        ("usage_metadata", '{"mood": 1}', "usage_metadata"),
        ("custom_metadata", "[1]", "custom_metadata"),
        ("long_running_tool_ids_json", "[1]", "long_running_tool_ids_json"),
        ("long_running_tool_ids_json", '"abc"', "long_running_tool_ids_json"),
        ("interrupted", "maybe", "interrupted"),
        ("actions", b"junk", "actions"),
    ],
)
def test_refused_and_salvaged(reading: Reading, tmp_path: Path, column: str, cell: Cell, place: str) -> None:
    from google.adk.events.event import Event

    record = only(reading(v0_with(tmp_path / "a.db", column, cell)).events())
    assert [problem.column for problem in record.problems if problem.fatal] == [place]
    assert record.data is not None
    assert record.time == utc("2026-01-01 12:00:00").timestamp()
    assert cell in record.raw
    Event.model_validate(record.data)


@pytest.mark.parametrize(
    ("column", "cell"),
    [("timestamp", None), ("timestamp", ""), ("timestamp", "garbage"), ("id", ""), ("id", None), ("user_id", b"\xff")],
)
def test_what_v1_cannot_hold_at_all(reading: Reading, tmp_path: Path, column: str, cell: Cell) -> None:
    record = only(reading(v0_with(tmp_path / "a.db", column, cell)).events())
    assert record.refused
    assert record.data is None
    assert column in [problem.column for problem in record.problems]


@pytest.mark.parametrize(
    "cell", ["2026-01-01T12:00:00Z", "2026-01-01 17:30:00+05:30", 1_767_268_800, 1_767_268_800_000, "2026-01-01 12:00"]
)
def test_times_in_other_forms_are_kept(reading: Reading, tmp_path: Path, cell: Cell) -> None:
    record = only(reading(v0_with(tmp_path / "a.db", "timestamp", cell)).events())
    assert record.time == utc("2026-01-01 12:00:00").timestamp()
    assert not record.refused


@pytest.mark.parametrize(
    "cell", ["2026-01-01T12:00:00.00000Z", "2026-01-01T12:00:00.0+0000", "2026-01-01 12:00:00.000000"]
)
def test_a_time_as_long_as_one_of_adk_may_have_a_zone(reading: Reading, tmp_path: Path, cell: str) -> None:
    record = only(reading(v1_with(tmp_path / "a.db", "{}", time=cell)).events())
    assert (len(cell), record.column_time) == (26, 1_767_268_800.0)


@pytest.mark.parametrize("name", ["db-2.13.0-utc", "sqlitesvc-2.13.0-utc", "db-1.21.0-utc"])
def test_events_without_their_rows_are_the_same_events(adk_db: Callable[[str], Path], name: str) -> None:
    path = adk_db(name)
    with closing(open_store(path)) as store:
        detection = detect(store)
        whole = list(open_reader(store, detection, ReadOptions()).events())
        spare = list(open_reader(store, detection, ReadOptions(raw_events=False)).events())
    assert whole
    if detection.layout is not Layout.V0:  # whose rows rules look at
        assert all(record.raw and not other.raw for record, other in zip(whole, spare, strict=True))
        whole = [replace(record, raw=(), columns=()) for record in whole]
    assert spare == whole


def test_columns_of_the_application_s_own_are_told(reading: Reading, tmp_path: Path) -> None:
    path = make_v0(tmp_path / "a.db", [Written("s", utc("2026-01-01 12:00:00"))])
    execute(path, "ALTER TABLE events ADD COLUMN tenant TEXT DEFAULT 'acme'")
    record = only(reading(path).events())
    assert ("column-dropped", "tenant") in record.losses
    assert "acme" in record.raw


def test_hostile_values_give_a_record_or_a_reason(reading: Reading, tmp_path: Path) -> None:
    for number, entry in enumerate(hostile_entries()):
        path = make_hostile(entry, tmp_path / f"{number}.db")
        store = open_store(path)
        try:
            from exhume.schema.detect import detect

            detection = detect(store)
            if detection.layout is not Layout.V0:
                continue
            records = list(open_reader(store, detection).events())
        finally:
            store.close()
        assert records
        for record in records:
            assert record.data is not None or record.refused, entry["file"]
            assert all(len(problem.reason) < 20_000 for problem in record.problems), entry["file"]


def test_unsafe_globals_are_named_and_the_rest_is_kept(adk_db: Callable[[str], Path], reading: Reading) -> None:
    records = {record.key: record for record in reading(adk_db("db-1.21.0-utc")).events()}
    unsafe = [record for record in records.values() if any(one.rule == "EXH501" for one in record.problems)]
    assert {name for record in unsafe for name in record.problems[0].globals} >= {"shop_models.Priority"}
    for record in unsafe:
        assert record.data is not None
        assert record.data["actions"]["state_delta"] == {}
        assert record.data["author"]


# ------------------------------------------------------------------------------------------------ go, js, java
def test_adk_go(incident_db: Callable[[str], Path], reading: Reading) -> None:
    path = incident_db("go")
    execute(
        path,
        "UPDATE events SET routes_json = '[\"left\"]', output_json = '{\"aB\": null}', isolation_scope = 'x',"
        ' node_info_json = \'{"path": "a@1", "outputFor": ["b"]}\' WHERE rowid = 1',
    )
    reader = reading(path)
    assert reader.layout is Layout.GO
    records = list(reader.events())
    assert not [problem for record in records for problem in record.problems]
    datas = [record.data or {} for record in records]
    assert any("function_call" in part for data in datas for part in data.get("content", {}).get("parts", []))
    assert all(data["actions"].keys() >= {"state_delta", "requested_tool_confirmations"} for data in datas)
    assert all(data["timestamp"] == record.time for data, record in zip(datas, records, strict=True))
    first = next(record.data or {} for record in records if record.position == 1)
    assert first["actions"]["route"] == ["left"]
    assert (first["output"], first["isolation_scope"]) == ({"aB": None}, "x")
    assert first["node_info"] == {"path": "a@1", "output_for": ["b"]}


def detection_of(path: Path, layout: Layout, tables: dict[str, str]) -> tuple[Any, Detection]:
    store = open_store(path)
    found = store.tables()
    info = StoreInfo("x", "sqlite", "sqlite")
    real = {logical: found[name] for logical, name in tables.items()}
    return store, Detection(info, layout, None, None, ReleaseRange(), tables=real)


def test_adk_js_counts_milliseconds(tmp_path: Path) -> None:
    path = v1_with(
        tmp_path / "a.db", '{"id": "e", "timestamp": 1767268800500, "invocationId": "i"}', time=1_767_268_800_500
    )
    names = ("sessions", "events", "app_states", "user_states")
    store, detection = detection_of(path, Layout.JS, {name: name for name in names})
    record = only(open_reader(store, detection).events())
    store.close()
    assert record.time == record.column_time == 1_767_268_800.5
    assert record.data == {"id": "e", "timestamp": 1_767_268_800.5, "invocation_id": "i"}


def test_adk_java_contrib(tmp_path: Path) -> None:
    path = make(
        tmp_path / "a.db",
        """
        CREATE TABLE adk_sessions (app_name, user_id, session_id, state, created_at, updated_at);
        CREATE TABLE adk_events (event_sequence INTEGER PRIMARY KEY, app_name, user_id, session_id, event_id,
         event_data, created_at);
        CREATE TABLE adk_app_state (app_name, state_key, state_value);
        CREATE TABLE adk_user_state (app_name, user_id, state_key, state_value);
        INSERT INTO adk_sessions VALUES ('a', 'u', 's', '{}', '2026-01-01 12:00:00', '2026-01-01 12:00:00');
        INSERT INTO adk_events VALUES (7, 'a', 'u', 's', 'e', '{"id": "e", "invocationId": "i", "timestamp":
         1767268800500, "actions": {"stateDelta": {"kK": 1}}}', '2026-01-01 12:00:00');
        INSERT INTO adk_app_state VALUES ('a', 'x', '{"deep": 1}'), ('a', 'y', '2'), ('b', 'x', 'not json'),
         ('c', 'x', '[NaN, {"k": 1, "k": 2}]'), ('c', 'y', NULL);
        """,
    )
    tables = {"sessions": "adk_sessions", "events": "adk_events"}
    tables |= {"app_states": "adk_app_state", "user_states": "adk_user_state"}
    store, detection = detection_of(path, Layout.JAVA_CONTRIB, tables)
    reader = open_reader(store, detection)
    record, (first, second, third), sessions = only(reader.events()), reader.app_states(), list(reader.sessions())
    store.close()
    assert (record.position, record.invocation_id, record.time) == (7, "i", 1_767_268_800.5)
    assert (record.data or {})["actions"]["state_delta"] == {"kK": 1}
    assert (first.app_name, first.state) == ("a", {"x": {"deep": 1}, "y": 2})
    assert [problem.rule for problem in second.problems] == ["EXH307"]
    assert third.state == {"x": [None, {"k": 2}], "y": None}
    assert [loss.kind for loss in third.losses] == ["duplicate-key", "nan-to-null"]
    assert [one.session_id for one in sessions] == ["s"]


def test_adk_java_draft(reading: Reading, tmp_path: Path) -> None:
    path = v0_with(tmp_path / "a.db", "actions", '{"stateDelta": {"a": 1}, "transferToAgent": "b"}')
    names = ("sessions", "events", "app_states", "user_states")
    store, detection = detection_of(path, Layout.JAVA_FLYWAY, {name: name for name in names})
    record = only(open_reader(store, detection).events())
    store.close()
    actions = (record.data or {})["actions"]
    assert (actions["state_delta"], actions["transfer_to_agent"]) == ({"a": 1}, "b")


# ------------------------------------------------------------------------------------------------ the registry
def test_every_layout_has_a_reader_or_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "a.db", V1)
    for layout in Layout:
        store, detection = detection_of(path, layout, {"sessions": "sessions", "events": "events"})
        if layout in readable_layouts():
            reader = open_reader(store, detection)
            assert reader.layout is layout
            assert reader.capabilities <= {
                value for name, value in vars(Capability).items() if not name.startswith("_")
            }
        else:
            with pytest.raises(NothingToLookAt if layout is Layout.FOREIGN else Refused):
                open_reader(store, detection)
        store.close()
