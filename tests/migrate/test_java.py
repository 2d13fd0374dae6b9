"""adk-java's two layouts, whose tables are put up here as their sources describe them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from exhume.migrate.run import migrate
from exhume.migrate.verify import verify

CONTRIB = """
CREATE TABLE adk_sessions (app_name, user_id, session_id, state, created_at, updated_at);
CREATE TABLE adk_events (event_sequence INTEGER PRIMARY KEY, app_name, user_id, session_id, event_id, event_data,
    created_at);
CREATE TABLE adk_app_state (app_name, state_key, state_value, updated_at);
CREATE TABLE adk_user_state (app_name, user_id, state_key, state_value, updated_at);
INSERT INTO adk_sessions VALUES ('a', 'u', 's', '{"k": 1}', '2026-01-01 00:00:00', '2026-01-01 00:00:05');
INSERT INTO adk_app_state VALUES ('a', 'x', '1', '2026-01-01 00:00:00'), ('a', 'y', '"z"', '2026-01-01 00:00:01');
"""
EVENT = {
    "id": "e1",
    "invocationId": "i1",
    "author": "user",
    "timestamp": 1767225601500,
    "content": {"role": "user", "parts": [{"functionCall": {"id": "c1", "name": "t", "args": {"camelCase": 1}}}]},
    "actions": {"stateDelta": {"camelKey": {"innerKey": None}}, "artifactDelta": {}},
    "longRunningToolIds": ["c1"],
}
FLYWAY = """
CREATE TABLE flyway_schema_history (installed_rank INTEGER PRIMARY KEY);
CREATE TABLE sessions (id TEXT, app_name TEXT, user_id TEXT, state JSONB, create_time TIMESTAMP, update_time TIMESTAMP,
    PRIMARY KEY (app_name, user_id, id));
CREATE TABLE events (id TEXT, app_name TEXT, user_id TEXT, session_id TEXT, invocation_id TEXT, author TEXT,
    actions JSONB, long_running_tool_ids_json TEXT, branch TEXT, timestamp TIMESTAMP, content JSONB,
    partial BOOLEAN, turn_complete BOOLEAN, error_code TEXT, error_message TEXT, interrupted BOOLEAN,
    PRIMARY KEY (id, app_name, user_id, session_id));
CREATE INDEX idx_events_session ON events (session_id);
CREATE TABLE app_states (app_name TEXT PRIMARY KEY, state JSONB, update_time TIMESTAMP);
CREATE TABLE user_states (app_name TEXT, user_id TEXT, state JSONB, update_time TIMESTAMP,
    PRIMARY KEY (app_name, user_id));
INSERT INTO sessions VALUES ('s', 'a', 'u', '{"k": 1}', '2026-01-01 00:00:00', '2026-01-01 00:00:05');
"""


def event_of(path: Path) -> dict[str, object]:
    connection = sqlite3.connect(path)
    ((text,),) = connection.execute("SELECT event_data FROM events").fetchall()
    connection.close()
    found: dict[str, object] = json.loads(text)
    return found


def test_contributed_mysql_service(tmp_path: Path) -> None:
    source, out = tmp_path / "contrib.db", tmp_path / "out.db"
    connection = sqlite3.connect(source)
    connection.executescript(CONTRIB)
    row = (1, "a", "u", "s", "e1", json.dumps(EVENT), "2026-01-01 00:00:01.500")
    connection.execute("INSERT INTO adk_events VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()
    report = migrate(source, out)
    assert (report.status, report.refused) == ("complete", [])
    assert report.path == ("java-contrib", "v1")
    assert [(loss.kind, loss.count, loss.example) for loss in report.losses] == [
        ("no-time-to-epoch", 1, "a: update_time")
    ]
    event = event_of(out)
    assert event["timestamp"] == 1767225601.5
    assert event["long_running_tool_ids"] == ["c1"]
    assert event["actions"]["state_delta"] == {"camelKey": {"innerKey": None}}  # type: ignore[index]
    connection = sqlite3.connect(out)
    assert json.loads(connection.execute("SELECT state FROM app_states").fetchone()[0]) == {"x": 1, "y": "z"}
    assert connection.execute("SELECT state FROM user_states").fetchall() == [("{}",)]
    connection.close()
    assert verify(source, out).equal


def test_flyway_draft(tmp_path: Path) -> None:
    source, out = tmp_path / "flyway.db", tmp_path / "out.db"
    connection = sqlite3.connect(source)
    connection.executescript(FLYWAY)
    connection.execute(
        "INSERT INTO events (id, app_name, user_id, session_id, invocation_id, author, actions, timestamp, content)"
        " VALUES ('e1', 'a', 'u', 's', 'i1', 'user', ?, '2026-01-01 00:00:01.500', ?)",
        (json.dumps(EVENT["actions"]), json.dumps(EVENT["content"])),
    )
    connection.commit()
    connection.close()
    report = migrate(source, out)
    assert (report.status, report.path) == ("complete", ("java-flyway", "v1"))
    event = event_of(out)
    assert event["timestamp"] == 1767225601.5
    assert event["content"]["parts"][0]["function_call"]["args"] == {"camelCase": 1}  # type: ignore[index]
    assert report.tables["app_states"].created == report.tables["user_states"].created == 1
    assert verify(source, out).equal


def test_state_keys_that_become_equal_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "contrib.db"
    connection = sqlite3.connect(source)
    connection.executescript(CONTRIB)
    row = (1, "a", "u", "s", "e1", json.dumps(EVENT), "2026-01-01 00:00:01.500")
    connection.execute("INSERT INTO adk_events VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    connection.execute("INSERT INTO adk_app_state VALUES (CAST('a' AS BLOB), 'x', '2', '2026-01-01 00:00:00')")
    connection.execute("INSERT INTO adk_app_state VALUES (CAST('a' AS BLOB), 'n', '3', '2026-01-01 00:00:00')")
    connection.commit()
    connection.close()
    report = migrate(source, tmp_path / "out.db")
    assert [(one.table, one.key.app_name) for one in report.refused] == [("app_states", "a")]
    assert "same key once keys are text" in report.refused[0].problems[0].reason


def test_what_adk_refuses_in_an_event_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "contrib.db"
    connection = sqlite3.connect(source)
    connection.executescript(CONTRIB)
    spoilt = {**EVENT, "actions": {"stateDelta": {}, "unheardOf": 1}}
    row = (1, "a", "u", "s", "e1", json.dumps(spoilt), "2026-01-01 00:00:01.500")
    connection.execute("INSERT INTO adk_events VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()
    report = migrate(source, tmp_path / "out.db")
    assert [problem.reason.partition(":")[0] for problem in report.refused[0].problems] == ["actions.unheardOf"]
