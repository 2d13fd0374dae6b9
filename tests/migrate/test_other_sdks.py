"""adk-go's and adk-js's layouts: events in their columns and spellings come out as Python wrote them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exhume.migrate.compare import differences
from exhume.migrate.interface import MigrateOptions
from exhume.migrate.run import migrate
from exhume.migrate.verify import verify
from tests.conftest import FIXTURES, unpack

Key = tuple[str, str, str, str]


@pytest.fixture(params=["go", "js"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def source(name: str, tmp_path: Path) -> Path:
    return unpack(FIXTURES / "other-sdks" / f"{name}.db.gz", tmp_path / f"{name}.db")


def events_of(path: Path) -> dict[Key, dict[str, Any]]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT app_name, user_id, session_id, id, event_data FROM events").fetchall()
    connection.close()
    return {(app, user, session, ident): json.loads(text) for app, user, session, ident, text in rows}


def is_go_default(field: str, value: str | None) -> bool:
    """Go writes what was never set as false or as an empty list."""
    last = field.rpartition(".")[2]
    flags = ("partial", "turn_complete", "interrupted", "skip_summarization", "escalate")
    return (last in flags and value == "false") or (last == "long_running_tool_ids" and value == "[]")


def test_events_are_those_that_python_wrote(
    name: str, source: Path, adk_db: Callable[[str], Path], tmp_path: Path
) -> None:
    result = tmp_path / "v1.db"
    report = migrate(source, result)
    assert (report.status, report.path, report.losses) == ("complete", (name, "v1"), [])
    wanted, found = events_of(adk_db("db-2.13.0-utc")), events_of(result)
    assert len(found) == report.tables["events"].read == 97
    for key, event in found.items():
        shorter = 1e-3 if name == "js" else 1e-6  # milliseconds in JavaScript, microseconds in Go
        assert abs(event.pop("timestamp") - wanted[key].pop("timestamp")) < shorter
        others = [one for one in differences(wanted[key], event) if not is_go_default(one.field, one.destination)]
        # the type of an OAuth scheme, which Python leaves out of its own file, is in the camelCase spelling
        assert [one for one in others if not one.field.endswith("auth_scheme.type")] == [], key


@pytest.mark.parametrize("target", ["v1", "sqlite-service"])
def test_the_result_is_equal_to_its_source(source: Path, tmp_path: Path, target: str) -> None:
    result = tmp_path / "result.db"
    report = migrate(source, result, MigrateOptions(to=target, workdir=tmp_path))
    assert report.path[1:] == ("v1", "sqlite-service")[: 1 if target == "v1" else 2]
    found = verify(source, result)
    assert found.equal
    assert found.tables["events"].equal == 97
    assert found.tables["sessions"].equal == 19
