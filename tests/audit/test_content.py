"""What the rules on values see in texts and names: EXH405 and EXH406 beyond the cases of tests/cases."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exhume.audit.pairing import build_log
from exhume.audit.rules.content_json import not_portable
from exhume.audit.rules.content_secrets import QuickLook, names_secret, secret_places
from exhume.events.model import EventKey, EventRecord, SessionKey
from exhume.events.shapes import is_plain, looks_camel
from tests.audit.building import run

TEXTS = st.text(st.characters(codec=None) | st.sampled_from(["\x00", "\ud83d", "\ude00", "\\", "u", '"', "0"]))
JSON = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def texts_of(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in texts_of(part)]
    return [text for item in value for text in texts_of(item)] if isinstance(value, list) else []


@given(JSON)
def test_escapes_are_seen_exactly_where_they_stand_for_what_postgresql_refuses(value: Any) -> None:
    text = json.dumps(value)
    # surrogates of a pair join when the text is read
    read = texts_of(json.loads(text))
    assert ("U+0000" in not_portable(text)) is any("\x00" in one for one in read)
    lone = any(0xD800 <= ord(char) <= 0xDFFF for one in read for char in one)
    assert ("a lone surrogate" in not_portable(text)) is lone


def test_bytes_that_are_not_utf8_are_another_matter() -> None:
    assert not_portable('"\udc80\udcff"') == []
    assert not_portable('"\udc80\ud800"') == ["a lone surrogate"]


@pytest.mark.parametrize(
    "name",
    [
        *("client_secret", "clientSecret", "CLIENT_SECRET", "access_token", "refreshToken", "id-token", "idtoken"),
        *("api_key", "apiKey", "APIKey", "X-Api-Key", "stripe_api_key", "user:access_token", "password", "dbPassword"),
        *("Authorization", "Proxy-Authorization", "private_key", "aws_secret_access_key", "temp:apikey"),
        *("AUTHorization", "aUTHORIZATION", "proxy authorization"),
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert names_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        *("credential_key", "token_count", "prompt_token_count", "token", "password_hint", "paid_token", "secret"),
        *(
            "authorizationUrl",
            "prior_authorization",
            "token_endpoint",
            "access_token_count",
            "api_keyboard",
            "",
            "é",
            "key",
        ),
    ],
)
def test_names_that_only_sound_so(name: str) -> None:
    assert not names_secret(name)


@given(st.text(min_size=12, alphabet="abcdef0123456789"), st.integers(0, 3))
def test_a_secret_is_found_in_wrapped_texts_and_never_told(secret: str, wraps: int) -> None:
    value: Any = {"oauth2": {"access_token": secret, "scopes": ["a"]}}
    for _ in range(wraps):
        value = {"response": json.dumps(value)}
    assert len(secret_places(value)) == 1
    report = run({"sessions": [{"state": value, "events": [{"delta": value, "response": {"id": "c", "body": value}}]}]})
    told = [finding for finding in report.findings if finding.rule == "EXH406"]
    assert len(told) == 1
    assert secret not in repr(report.findings)


NAMES = st.sampled_from(["turn", "token", "api_key", "credentials", "note", "Password", "items", 't"ext'])
DATA = st.recursive(
    st.integers() | st.sampled_from(["hunter2", "[", " { no JSON", 'say "password": x', "Zürich\n"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES, inner, max_size=3)
        | st.builds(json.dumps, st.dictionaries(NAMES, inner, max_size=2), ensure_ascii=st.booleans())
    ),
    max_leaves=10,
)
PARTS = st.lists(
    st.fixed_dictionaries({"text": DATA})
    | st.fixed_dictionaries({"function_call": DATA}, optional={"text": DATA})
    | DATA,
    max_size=3,
)
ACTIONS = st.fixed_dictionaries({"state_delta": DATA, "artifact_delta": st.just({})})
EVENTS = st.fixed_dictionaries(
    {"author": st.just("a"), "actions": ACTIONS, "content": st.fixed_dictionaries({"parts": PARTS})}
) | st.fixed_dictionaries(
    {"author": st.just("a")},
    optional={
        "content": st.fixed_dictionaries({"parts": PARTS}, optional={"role": st.just("user"), "password": DATA}) | DATA,
        "actions": ACTIONS,
        "custom_metadata": DATA,
        "finish_reason": DATA,
        "api_key": DATA,
    },
)


@example([({"author": "a", "content": {"parts": [{"text": {"Password": "hunter2"}}]}}, True)])
@example([({"author": "a", "actions": {}, "content": {"parts": [{"text": {"Password": "hunter2"}}]}}, False)])
@given(st.lists(st.tuples(EVENTS, st.sampled_from([None, True, False])), max_size=4))
def test_the_quick_look_passes_over_no_secret(events: list[tuple[dict[str, Any], bool | None]]) -> None:
    session = SessionKey("app", "user", "s")
    records = [
        EventRecord(EventKey(*session, f"e{place}"), place, "i", float(place), float(place), data)
        for place, (data, _) in enumerate(events)
    ]
    for record, (data, ascii_only) in zip(records, events, strict=True):
        if ascii_only is not None:  # else a layout that has no text of the whole event
            record.source = json.dumps(data, ensure_ascii=ascii_only).encode()
            record.plain = is_plain(data)
    seen = {entry.event_id for entry in QuickLook().may_hold_secret(build_log(session, None, records))}
    assert {record.key.event_id for record in records if secret_places(record.data)} <= seen


@given(EVENTS)
def test_a_plain_event_is_spelt_by_adk(data: dict[str, Any]) -> None:
    if is_plain(data):
        assert not looks_camel(data, json.dumps(data).encode())


def test_a_place_is_named_in_full() -> None:
    value = {"actions": {"list": [{"x": 1}, {"http": {"credentials": {"token": "hunter2", "username": "u"}}}]}}
    assert secret_places(value) == ["actions.list[1].http.credentials.token"]


def test_a_huge_or_deep_value_ends() -> None:
    deep: Any = {"password": "hunter2"}
    for _ in range(3000):
        deep = [deep]
    assert secret_places(deep)[0].endswith(".password")
    assert len(secret_places([{"password": "hunter2"}] * 100_000)) <= 50
    assert secret_places("[" * 100_000) == []
