"""What counts as a credential, and what is left of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.audit.secrets import HIDDEN, hide, is_secret_name
from exhume.events.json_text import EVENT_DEPTH


@pytest.mark.parametrize(
    "name",
    [
        "client_secret",
        "clientSecret",
        "access_token",
        "id-token",
        "API_KEY",
        "X-Api-Key",
        "Authorization",
        "user:password",
        "private_key",
        "auth_code",
        "authResponseUri",
        "github_token",
        "client_assertion",
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)
    assert hide({name: "s3cret"}) == {name: HIDDEN}
    assert hide({name: ["s3cret"]}) == {name: HIDDEN}
    assert hide({name: None}) == {name: None}
    assert hide({name: ""}) == {name: ""}


@pytest.mark.parametrize(
    "name", ["credential_key", "token_count", "total_tokens", "authorization_url", "secretary", "tokens", "page_token"]
)
def test_names_that_only_sound_like_it(name: str) -> None:
    assert hide({name: "plain"}) == {name: "plain"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("call me: Bearer abcdefghijkl", f"call me: Bearer {HIDDEN}"),
        ("postgresql://me:pw@host/db?key=1", "postgresql://me:***@host/db?key=***"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY----- rest", f"{HIDDEN} rest"),
        ("the bearer of this letter", "the bearer of this letter"),
        ("{curly prose", "{curly prose"),
    ],
)
def test_texts(text: str, shown: str) -> None:
    assert hide([text]) == [shown]


def test_json_inside_a_text() -> None:
    inner = json.dumps({"a": 1, "deeper": json.dumps({"api_key": "s3cret", "b": 2})})
    (shown,) = hide([inner])
    assert "s3cret" not in shown
    assert json.loads(json.loads(shown)["deeper"]) == {"api_key": HIDDEN, "b": 2}
    plain = '{ "a" :  1 }'
    assert hide([plain]) == [plain]  # what holds no secret stays as it was spelt


def test_depth_across_texts_is_bounded() -> None:
    value: Any = "s3cret"
    for _ in range(3):
        value = json.dumps([{"x": value}])
        for _ in range(150):
            value = f"[{value}]"
    shown = hide(json.loads(value))
    assert "s3cret" not in json.dumps(shown)


def test_credentials_of_oauth_and_http() -> None:
    value = {
        "oauth2": {"client_id": "id", "client_secret": "s", "state": "x", "auth_uri": "https://a.invalid/?state=x"},
        "http": {"scheme": "bearer", "credentials": {"token": "t"}},
    }
    assert hide(value) == {
        "oauth2": {
            "client_id": "id",
            "client_secret": HIDDEN,
            "state": HIDDEN,
            "auth_uri": "https://a.invalid/?state=***",
        },
        "http": {"scheme": "bearer", "credentials": HIDDEN},
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
)


@given(value=JSON)
def test_what_holds_no_secret_is_left_alone(value: Any) -> None:
    assert hide(value) == value


@given(value=JSON)
def test_hiding_twice_changes_nothing_more(value: Any) -> None:
    once = hide({"password": value, "x": [{"access_token": "t"}, value]})
    assert hide(once) == once


def test_all_that_readers_give_is_looked_into() -> None:
    deep: Any = {"api_key": "hunter2"}
    for _ in range(EVENT_DEPTH - 1):
        deep = [deep]
    assert "hunter2" not in json.dumps(hide(deep))
