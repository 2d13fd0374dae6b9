"""ADK's shapes as data: what belongs to a model, what ADK would refuse, and camelCase read as snake_case."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from exhume.events.shapes import Findings, canonical, looks_camel, model, shape

SCHEME = {"type_": "apiKey", "in_": "query", "name": "key"}
ROOT = Path(__file__).resolve().parents[2]


def walk(value: dict[str, Any], of: str = "Content") -> tuple[dict[str, Any], list[str]]:
    found = Findings()
    made = shape(value, model(of), of.lower(), found)
    return made, [fault.place for fault in found.faults]


def test_the_data_file_is_what_this_adk_gives() -> None:
    script = ROOT / "benchmarks" / "make_model_fields.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "the same", done.stderr


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"parts": [{"text": "a", "thought": None}], "role": None}, {"parts": [{"text": "a"}]}),
        ({"parts": [{"functionCall": {"name": "f", "args": {"keepMe": None}}}]},
         {"parts": [{"function_call": {"name": "f", "args": {"keepMe": None}}}]}),
        ({"parts": [{"inlineData": {"data": "+/+/AA", "mimeType": "x"}}]},
         {"parts": [{"inline_data": {"data": "-_-_AA==", "mime_type": "x"}}]}),
        ({"parts": [{"executable_code": {"code": "1", "language": "python"}}]},
         {"parts": [{"executable_code": {"code": "1", "language": "PYTHON"}}]}),
        ({"parts": [{"video_metadata": {"fps": "2.5"}}]}, {"parts": [{"video_metadata": {"fps": 2.5}}]}),
        ({"parts": [{"thought": 1}, {"thought": "no"}]}, {"parts": [{"thought": True}, {"thought": False}]}),
        ({}, {}),
    ],
)  # fmt: skip
def test_what_adk_stores(given: dict[str, Any], stored: dict[str, Any]) -> None:
    from google.genai import types

    made, faults = walk(given)
    assert (made, faults) == (stored, [])
    assert types.Content.model_validate(given).model_dump(mode="json", exclude_none=True) == stored


@pytest.mark.parametrize(
    ("given", "places", "rest"),
    [
        ({"parts": [{"text": "a", "mood": 1}]}, ["content.parts[0].mood"], {"parts": [{"text": "a"}]}),
        ({"role": 5, "parts": []}, ["content.role"], {"parts": []}),
        ({"parts": "none"}, ["content.parts"], {}),
        ({"parts": [None, {"text": "b"}]}, ["content.parts[0]"], {"parts": [{"text": "b"}]}),
        ({"parts": [{"inline_data": {"data": "!!!"}}]}, ["content.parts[0].inline_data.data"],
         {"parts": [{"inline_data": {}}]}),
        ({"parts": [{"functionCall": {"name": "a"}, "function_call": {"name": "b"}}]},
         ["content.parts[0].function_call"], {"parts": [{"function_call": {"name": "a"}}]}),
        ({"parts": [{"function_call": {"args": [1]}}]}, ["content.parts[0].function_call.args"],
         {"parts": [{"function_call": {}}]}),
        ({"parts": [{"thought": 2}]}, ["content.parts[0].thought"], {"parts": [{}]}),
    ],
)  # fmt: skip
def test_what_adk_refuses_is_told_and_left_out(given: dict[str, Any], places: list[str], rest: dict[str, Any]) -> None:
    from google.genai import types
    from pydantic import ValidationError

    made, faults = walk(given)
    assert (made, faults) == (rest, places)
    with pytest.raises(ValidationError):
        types.Content.model_validate(given)
    types.Content.model_validate(rest)


def test_missing_fields_are_filled_in_as_adk_does() -> None:
    made, faults = walk({}, "EventActions")
    assert made == {
        "state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {},
    }  # fmt: skip
    assert faults == []
    assert walk({"requested_tool_confirmations": {"c": {}}}, "EventActions")[0]["requested_tool_confirmations"] == {
        "c": {"hint": "", "confirmed": False}
    }


def test_a_required_field_that_is_missing_is_told() -> None:
    assert walk({"compaction": {"start_timestamp": 1.0}}, "EventActions")[1] == [
        "eventactions.compaction.end_timestamp",
        "eventactions.compaction.compacted_content",
    ]


def test_camel_case_events_become_snake_case_and_application_data_keeps_its_keys() -> None:
    event = {
        "invocationId": "i",
        "content": {"parts": [{"functionCall": {"args": {"orderId": 1}, "name": "f"}}]},
        "actions": {
            "stateDelta": {"lastOrder": None},
            "requestedToolConfirmations": {"callId": {"payload": {"aB": 1}}},
        },
        "longRunningToolIds": ["x"],
        "ownField": {"isKept": None},
    }
    assert looks_camel(event, b"")
    assert canonical(event) == {
        "invocation_id": "i",
        "content": {"parts": [{"function_call": {"args": {"orderId": 1}, "name": "f"}}]},
        "actions": {
            "state_delta": {"lastOrder": None},
            "requested_tool_confirmations": {"callId": {"payload": {"aB": 1}}},
        },
        "long_running_tool_ids": ["x"],
        "ownField": {"isKept": None},
    }


def test_go_s_own_spelling_is_read() -> None:
    found = Findings(go=True)
    made = shape({"StateDelta": {"A": 1}, "SkipSummarization": True}, model("EventActions"), "actions", found)
    assert (made["state_delta"], made["skip_summarization"], found.faults) == ({"A": 1}, True, [])


def test_a_lenient_walk_refuses_nothing() -> None:
    odd = {"content": {"parts": [{"mood": 1}, None], "role": 5}, "partial": "maybe", "actions": 7}
    assert canonical(odd) == odd


def test_places_are_bounded() -> None:
    found = Findings()
    shape({"parts": [{"k" * 5_000: 1} for _ in range(5_000)]}, model("Content"), "content", found)
    assert len(found.losses) == 5_000
    assert len(found.faults) == 1_000
    assert max(len(loss.place) for loss in found.losses) < 600


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_lacks_are_absent_and_told(number: float) -> None:
    found = Findings()
    made = shape({"parts": [{"video_metadata": {"fps": number}}]}, model("Content"), "content", found)
    assert made == {"parts": [{"video_metadata": {}}]}
    assert [loss.kind for loss in found.losses] == ["nan-to-null"]
    assert found.faults == []


#: Security schemes that one model or another of ADK's union takes.
UNION_SCHEMES: list[dict[str, Any]] = [
    {},
    {"scheme": "basic"},
    {"type_": "own", "scheme": 5},
    {"type": "apiKey"},
    {"flows": {}},
    {"openIdConnectUrl": "u", "scheme": 5},
]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"compaction": {"start_timestamp": math.nan, "end_timestamp": 2.0, "compacted_content": {}}}, {}),
        ({"compaction": {"start_timestamp": 1.0, "end_timestamp": "1e999", "compacted_content": {}}}, {}),
        ({"requested_auth_configs": {"a": {"credential_key": "k"}}}, {"requested_auth_configs": {}}),
        *[({"requested_auth_configs": {"a": {"auth_scheme": SCHEME, "raw_auth_credential": one}}},
           {"requested_auth_configs": {"a": {"auth_scheme": SCHEME, **left}}})
          for one, left in [
              ({"auth_type": "magic"}, {}),
              ({"auth_type": "serviceAccount", "service_account": {"scopes": ["a"]}},
               {"raw_auth_credential": {"auth_type": "serviceAccount"}}),
          ]],
        ({"render_ui_widgets": [{"id": "i"}, {"id": "j", "provider": "p"}]},
         {"render_ui_widgets": [{"id": "j", "provider": "p", "payload": {}}]}),
        *[({"requested_auth_configs": {"a": {"auth_scheme": one}}}, {"requested_auth_configs": {}})
          for one in ({"scheme": 5}, {"type": 5}, {"type": ["http"]}, "http", {"description": 1})],
        *[({"requested_auth_configs": {"a": {"auth_scheme": one}}},
           {"requested_auth_configs": {"a": {"auth_scheme": one}}})
          for one in UNION_SCHEMES],
        ({"route": {"a": 1}}, {}),
        ({"route": [["a"]]}, {}),
        ({"route": [1, "a", True]}, {"route": [1, "a", True]}),
    ],
)  # fmt: skip
def test_what_is_left_of_refused_actions_is_what_adk_takes(given: dict[str, Any], stored: dict[str, Any]) -> None:
    from google.adk.events.event_actions import EventActions

    made, faults = walk(given, "EventActions")
    assert {name: value for name, value in made.items() if value or name in stored} == stored
    assert bool(faults) == (given != stored)
    EventActions.model_validate(made)


@pytest.mark.parametrize(
    ("cache", "place"),
    [
        ({}, None),
        ({"cache_name": "n", "expire_time": 1.5, "invocations_used": 0}, None),
        ({"cache_name": "n"}, "expire_time"),
        ({"cache_name": None, "expire_time": 1.5, "invocations_used": 0}, "cache_name"),
        ({"cache_name": "n", "expire_time": 1.5, "invocations_used": -1}, "invocations_used"),
        ({"contents_count": -1}, "contents_count"),
    ],
)
def test_cache_metadata_that_adk_refuses(cache: dict[str, Any], place: str | None) -> None:
    from google.adk.events.event import Event
    from pydantic import ValidationError

    event = {"author": "a", "cache_metadata": {"fingerprint": "f", "contents_count": 1, **cache}}
    made, faults = walk(event, "Event")
    assert faults == ([] if place is None else [f"event.cache_metadata.{place}"])
    assert ("cache_metadata" in made) == (place is None)
    Event.model_validate(made)
    if place is not None:
        with pytest.raises(ValidationError):
            Event.model_validate(event)
