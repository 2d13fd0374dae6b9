"""Exported event logs as sources: each known form, in both spellings, and hostile ones."""

from __future__ import annotations

import json
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exhume.errors import NothingToLookAt
from exhume.events.interface import Reader
from exhume.events.model import Capability, EventRecord, StateRecord
from exhume.events.readers import open_reader
from exhume.schema.detect import detect
from exhume.schema.detection import Layout
from exhume.stores import exported as exported_module
from exhume.stores import open_store
from exhume.stores.exported import open_export
from exhume.stores.json_items import NotItemsError, array_items, object_members, root

CALL = {"functionCall": {"id": "adk-1", "name": "refund", "args": {"orderId": 7, "stateDelta": None}}}
EVENT = {
    "id": "e-1",
    "invocationId": "i-1",
    "author": "clerk",
    "timestamp": 1772444880.25,
    "content": {"role": "model", "parts": [CALL]},
    "actions": {"stateDelta": {"camelKey": 1}, "requestedToolConfirmations": {}},
    "longRunningToolIds": ["adk-1"],
}
READ = {
    "id": "e-1",
    "invocation_id": "i-1",
    "author": "clerk",
    "timestamp": 1772444880.25,
    "content": {
        "role": "model",
        "parts": [{"function_call": {"id": "adk-1", "name": "refund", "args": {"orderId": 7, "stateDelta": None}}}],
    },
    "actions": {"state_delta": {"camelKey": 1}, "requested_tool_confirmations": {}},
    "long_running_tool_ids": ["adk-1"],
}
SESSION = {
    "id": "s-1",
    "appName": "desk",
    "userId": "u-1",
    "state": {"n": 1, "app:shared": 2, "user:tone": "formal"},
    "events": [EVENT],
    "lastUpdateTime": 1772444881.5,
}


def read(path: Path, content: Any) -> tuple[Reader, list[StateRecord], list[EventRecord]]:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    with closing(open_store(path)) as store:
        detection = detect(store)
        assert detection.layout is Layout.EXPORT
        reader = open_reader(store, detection)
        return reader, list(reader.sessions()), list(reader.events())


def snake(value: Any) -> Any:
    """The session as older releases write it."""
    names = {"appName": "app_name", "userId": "user_id", "lastUpdateTime": "last_update_time"}
    return {names.get(key, key): ([READ] if key == "events" else item) for key, item in value.items()}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("spelling", [lambda value: value, snake])
def test_a_session(tmp_path: Path, spelling: Any, indent: int | None) -> None:
    reader, (session,), (event,) = read(tmp_path / "x.session.json", json.dumps(spelling(SESSION), indent=indent))
    assert (session.app_name, session.user_id, session.session_id) == ("desk", "u-1", "s-1")
    assert session.state == {"n": 1}  # what belongs to the app and the user is no state of the session
    assert session.update_time == 1772444881.5
    assert event.key == ("desk", "u-1", "s-1", "e-1")
    assert event.data == READ
    assert event.time == event.column_time == 1772444880.25
    assert reader.capabilities == {
        Capability.ACTIONS,
        Capability.LONG_RUNNING,
        Capability.STATE,
        Capability.CONFIRMATIONS,
    }


def test_several_sessions(tmp_path: Path) -> None:
    other = {**SESSION, "id": "s-0", "events": []}
    for content in ([SESSION, other], {"sessions": [SESSION, other]}, f"{json.dumps(SESSION)}\n{json.dumps(other)}\n"):
        _, sessions, events = read(tmp_path / "all.json", content)
        assert [session.session_id for session in sessions] == ["s-0", "s-1"]
        assert [event.data for event in events] == [READ]


def test_a_list_of_java_events(tmp_path: Path) -> None:
    java = {**EVENT, "timestamp": 1772444880250, "branch": None, "partial": None, "errorCode": None}
    _, (session,), (event,) = read(tmp_path / "order-7.json", [java])
    assert session.session_id == "order-7"  # a bare list does not say which session it is
    assert session.problems == ()
    assert event.data == READ


def test_lines_of_events(tmp_path: Path) -> None:
    lines = [{**EVENT, "id": "e-2", "timestamp": 1772444890, "sessionId": "s-9", "appName": "desk"}, EVENT]
    _, _, events = read(tmp_path / "log.jsonl", "\n".join(map(json.dumps, lines)) + "\n\n")
    assert [(event.key.app_name, event.key.session_id, event.key.event_id) for event in events] == [
        ("", "log", "e-1"),
        ("desk", "s-9", "e-2"),
    ]
    assert events[1].data == {**READ, "id": "e-2", "timestamp": 1772444890.0}


VERTEX: dict[str, Any] = {
    "name": "projects/p/locations/l/reasoningEngines/77/sessions/s-5/events/901",
    "author": "clerk",
    "content": EVENT["content"],
    "invocationId": "i-1",
    "timestamp": "2026-03-02T09:48:00.250000000Z",
    "actions": {"stateDelta": {"camelKey": 1}, "transferAgent": "helper"},
    "eventMetadata": {"longRunningToolIds": ["adk-1"], "branch": "a.b", "turnComplete": True},
}


def test_a_vertex_listing(tmp_path: Path) -> None:
    raw = {**VERTEX, "name": VERTEX["name"].replace("901", "900"), "rawEvent": {**EVENT, "author": "raw"}}
    path = tmp_path / "events.json"
    reader, _, (from_api, from_raw) = read(path, {"sessionEvents": [VERTEX, raw], "nextPageToken": "more"})
    assert from_raw.key == ("77", "", "s-5", "e-1")
    assert from_raw.data == {**READ, "author": "raw"}
    assert from_api.key == ("77", "", "s-5", "901")
    assert from_api.data == {
        **READ,
        "id": "901",
        "actions": {"state_delta": {"camelKey": 1}, "transfer_to_agent": "helper"},
        "branch": "a.b",
        "turn_complete": True,
    }
    # without rawEvent a listing has no place for them
    assert Capability.CONFIRMATIONS not in reader.capabilities
    with closing(open_store(path)) as store:
        assert any("next page" in note for note in store.info().notes)
    reader, _, _ = read(path, {"sessionEvents": [raw]})
    assert Capability.CONFIRMATIONS in reader.capabilities


def test_values_are_kept_exactly(tmp_path: Path) -> None:
    text = json.dumps({**EVENT, "customMetadata": {"big": "BIG", "lone": "LONE"}})
    text = text.replace('"BIG"', str(10**30)).replace('"LONE"', '"\\ud800"')
    _, _, (event,) = read(tmp_path / "x.json", f"[{text}]")
    assert event.data is not None
    assert event.data["custom_metadata"] == {"big": 10**30, "lone": "\ud800"}


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ('{"id": "e", "a": ' + "[" * 5000 + "]" * 5000 + "}", "nested"),
        ("17", "a number"),
        ("null", "null"),
        ('{"id": "e", "timestamp": "yesterday"}', "time"),
        ('{"id": "e", "n": ' + "9" * 5000 + "}", "digits"),
    ],
)
def test_an_event_that_cannot_be_read_is_told(tmp_path: Path, event: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(f'{{"id": "s", "appName": "a", "userId": "u", "events": [{json.dumps(EVENT)}, {event}]}}')
    if said == "nested":
        with pytest.raises(NothingToLookAt, match="nested deeper"):
            open_store(path)
        path.write_text(f"{json.dumps(EVENT)}\n{event}\n")
    with closing(open_store(path)) as store:
        events = list(open_reader(store, detect(store)).events())
    assert len(events) == 2
    told = [problem for record in events for problem in record.problems]
    assert [problem.rule for problem in told] == ["EXH307"]
    assert said in told[0].reason


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "{}",
        '{"name": "a package", "version": 1}',
        '[{"role": "user", "content": "a chat of another kind"}]',
        "[]",
        "[1, 2",
        '{"id": "s", "events": [{"id": "e"}',
        '{"events": {}} trailing',
        "[" * 100_000,
        '{"a":' * 100_000,
        '["' + "\\" * 99,
        "[1 2]",
        '{"a" 1}',
        "{1: 2}",
    ],
)
def test_what_is_no_export_is_said_to_be_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(NothingToLookAt) as caught:
        open_store(path).close()
    assert caught.value.todo


def test_one_document_must_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exported_module, "MOST_DOCUMENT", 1000)
    path = tmp_path / "x.json"
    path.write_text(json.dumps([EVENT] * 20, indent=1))
    with pytest.raises(NothingToLookAt, match="one JSON document of more than"):
        open_store(path)


def test_the_folder_of_the_source_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(SESSION))
    before = path.stat(), path.read_bytes()
    with closing(open_export(path, name="x.json")) as store:
        assert store.check_unchanged() == store.info().sha256
        assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]
    assert (path.stat().st_mtime_ns, path.read_bytes()) == (before[0].st_mtime_ns, before[1])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(value=st.dictionaries(st.text(max_size=6), JSON, max_size=5), indent=st.sampled_from([None, 1]))
def test_members_are_the_slices_that_they_are(value: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    found = {name: json.loads(text[span.start : span.end]) for name, span in object_members(text, root(text))}
    assert found == value
    listed = json.dumps(list(value.values()), indent=indent)
    items = [json.loads(listed[span.start : span.end]) for span in array_items(listed, root(listed))]
    assert items == list(value.values())


@given(text=st.text(alphabet='{}[]",:\\ a1\n', max_size=40))
def test_scanning_ends_in_spans_or_in_one_error(text: str) -> None:
    offset = 0
    try:
        span = root(text)
        if text[span.start] == "{":
            list(object_members(text, span))
        elif text[span.start] == "[":
            list(array_items(text, span))
    except NotItemsError as error:
        offset = error.offset
    assert 0 <= offset <= len(text)


@settings(max_examples=60)
@given(value=st.one_of(JSON, st.fixed_dictionaries({"events": JSON, "id": JSON, "userId": JSON, "state": JSON})))
def test_any_json_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = tmp_path_factory.mktemp("any") / "x.json"
    path.write_text(json.dumps([value]))
    with suppress(NothingToLookAt), closing(open_export(path, name="x.json")) as store:
        reader = open_reader(store, detect(store))
        for record in reader.events():
            assert record.data is not None or record.refused
        list(reader.sessions())
