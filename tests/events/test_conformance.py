"""Event by event: what exhume makes of a v0 row is what google-adk 2.13 stores for the event it reads from that row."""

from __future__ import annotations

import json
import logging
import math
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from exhume.events.json_text import dump
from exhume.events.model import EventRecord
from tests.conftest import load_truth
from tests.events.building import Reading

DATABASES = [
    *("db-1.0.0-ny", "db-1.14.1-utc", "db-1.18.0-ny", "db-1.18.0-utc-py313", "db-1.21.0-ny", "db-1.21.0-utc"),
    "db-2.13.0-utc-over-1.21.0",
]
#: What application classes and standard library types the application of these databases kept in its state.
ALLOWED = ("shop_models.*", "collections.Counter", "collections.deque", "builtins.*")


def read_by_adk(path: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    """Every event that ADK can read, as it would store it in v1; the columns that it misses are added first."""
    import sqlalchemy as sa
    from google.adk.sessions.schemas import v0
    from sqlalchemy.orm import Session

    connection = sqlite3.connect(path)
    have = {row[1] for row in connection.execute("PRAGMA table_info(events)")}
    for column in v0.StorageEvent.__table__.columns:
        if column.name not in have:
            connection.execute(f"ALTER TABLE events ADD COLUMN {column.name} TEXT")
    connection.commit()
    keys = list(connection.execute("SELECT app_name, user_id, session_id, id FROM events"))
    connection.close()
    engine = sa.create_engine(f"sqlite:///{path}")
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for app, user, session, ident in keys:
        with Session(engine) as opened:
            try:
                stored = opened.get(v0.StorageEvent, (ident, app, user, session))
                assert stored is not None
                found[app, user, session, ident] = stored.to_event().model_dump(mode="json", exclude_none=True)
            except Exception:  # noqa: BLE001 - whatever ADK raises, it cannot read this row
                continue
    engine.dispose()
    return found


def differences(expected: Any, got: Any, place: str = "") -> Iterator[str]:
    """Places at which two JSON values differ, their types included."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for key in sorted(expected.keys() | got.keys()):
            if key in expected and key in got:
                yield from differences(expected[key], got[key], f"{place}.{key}")
            else:
                yield f"{place}.{key}"
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, (one, other) in enumerate(zip(expected, got, strict=True)):
            yield from differences(one, other, f"{place}[{index}]")
    elif type(expected) is not type(got) or expected != got:
        yield place


def documented(place: str, expected: dict[str, Any]) -> bool:
    """The exceptions: ADK makes bearer requests of API-key ones, and computes a key for requests of old releases."""
    if not place.startswith(".actions.requested_auth_configs."):
        return False
    if place.endswith(".credential_key"):
        return True
    call = place.split(".")[3]
    scheme = expected["actions"]["requested_auth_configs"][call]["auth_scheme"]
    return place.endswith(".auth_scheme.scheme") and scheme["type_"] == "apiKey"


@pytest.mark.parametrize("name", DATABASES)
def test_what_adk_can_read(
    name: str, adk_db: Callable[[str], Path], reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root, "disabled", True)
    path = adk_db(name)
    records = list(reading(path).events())
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_adk = read_by_adk(copy)
    compared = 0
    for record in records:
        expected = by_adk.get(tuple(record.key))
        if expected is None:
            continue
        compared += 1
        assert not record.refused
        assert record.data is not None
        got = json.loads(dump(record.data))
        expected["timestamp"] = got["timestamp"]  # ADK reads local times as UTC
        odd = [place for place in differences(expected, got) if not documented(place, expected)]
        assert odd == [], record.key
    assert compared == len(by_adk) > 200


def in_comparable_form(value: Any) -> Any:
    """JSON values up to what the application's JSON had of its own: spelling of base64 and of UTC, order of sets."""
    if isinstance(value, dict):
        return {key: in_comparable_form(item) for key, item in value.items()}
    if isinstance(value, list):
        items = [in_comparable_form(item) for item in value]
        return items if any(isinstance(item, (dict, list)) for item in items) else sorted(items, key=repr)
    if isinstance(value, str):
        return value.replace("+00:00", "Z").rstrip("=").replace("-", "+").replace("_", "/")
    return None if isinstance(value, float) and not math.isfinite(value) else value


#: Kinds of state whose truth is a text that ADK made of something else than data (DESIGN: inert forms).
NO_DATA = ("exception", "function", "class", "range", "callable")


@pytest.mark.parametrize("name", DATABASES)
def test_what_adk_cannot_read_is_what_the_application_stored(
    name: str, adk_db: Callable[[str], Path], reading: Reading
) -> None:
    truth = load_truth(name)
    strict = {record.key: record for record in reading(adk_db(name)).events()}
    full = {record.key: record for record in reading(adk_db(name), allow_globals=ALLOWED).events()}
    refused = [key for key, record in strict.items() if record.refused]
    assert refused
    compared = 0
    for key in refused:
        record: EventRecord = full[key]
        assert not record.refused, record.problems
        assert record.data is not None
        event = truth.get("/".join(key.session), {}).get(key.event_id, {}).get("event") or {}
        delta = (event.get("actions") or {}).get("state_delta")
        if not delta or any(word in key.session_id for word in NO_DATA):
            continue
        compared += 1
        stored = json.loads(dump(record.data))["actions"]["state_delta"]
        assert in_comparable_form(stored) == in_comparable_form(delta), key
    assert compared


@pytest.mark.parametrize("name", DATABASES)
def test_times_are_exact(name: str, adk_db: Callable[[str], Path], reading: Reading) -> None:
    truth = load_truth(name)
    wrong = []
    for record in reading(adk_db(name)).events():
        known = truth.get("/".join(record.key.session), {}).get(record.key.event_id, {})
        # the application's clock gave fractions of a microsecond, the column has none
        off = (record.time or 0) - known.get("timestamp", record.time)
        if abs(off) > 1e-6:
            wrong.append((record.key.session_id, round(off)))
    # 01:30 of the autumn night, twice in one session with the same text: nothing tells them apart
    assert wrong == ([("j-timestamps", -3600)] if name.endswith("-ny") else [])
