"""The timeline of a session: what belongs together, what is orphaned, which session is meant."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from exhume.audit.timeline import Timeline, timeline
from exhume.errors import NothingToLookAt, UsageError
from exhume.events.interface import ReadOptions
from exhume.events.readers import open_reader
from exhume.schema.detect import detect
from exhume.stores import open_store
from tests.audit.labels import labelled
from tests.report import samples

Database = Callable[[str], Path]


def timeline_of(source: Path, session: str, *, app: str | None = None, user: str | None = None) -> Timeline:
    with closing(open_store(source)) as store:
        detection = detect(store)
        reader = open_reader(store, detection, ReadOptions(session=session, app=app, user=user))
        return timeline(reader, detection, session=session)


def kinds(found: Timeline) -> list[str]:
    return [item.kind for part in found.invocations for turn in part.turns for item in turn.items]


def test_a_double_approval_reads_like_a_story() -> None:
    found = samples.timeline()
    told = [item for part in found.invocations for turn in part.turns for item in turn.items]
    approvals = [item for item in told if item.kind == "approval"]
    runs = [item for item in told if item.kind == "execution"]
    assert [item.note for item in approvals] == ["", "approval number 2 of this request"]
    assert [item.note for item in runs] == ["", "run number 2 of this call"]
    assert {item.partner for item in approvals} == {"e-3"}
    assert {item.partner for item in runs} == {"e-2"}
    assert [(part.id, part.resumed) for part in found.invocations] == [("i-1", False), ("i-2", False), ("i-1", True)]
    assert found.orphans == {"open request": 1, "request for an unknown call": 1, "orphaned response": 1}


@pytest.mark.parametrize(
    ("name", "rule", "orphan"),
    [
        ("v1a", "EXH201", "orphaned response"),
        ("v1a", "EXH202", "call without response"),
        ("v1a", "EXH108", "open request"),
        ("v0", "EXH201", "orphaned response"),
    ],
)
def test_orphans_of_labelled_sessions(incident_db: Database, name: str, rule: str, orphan: str) -> None:
    source = incident_db(name)
    cases = labelled(name, rule)
    assert cases
    for case in cases:
        found = timeline_of(source, case["session_id"], app=case["app_name"], user=case["user_id"])
        assert found.orphans.get(orphan, 0) >= 1, case


def test_every_event_is_told_once(adk_db: Database) -> None:
    source = adk_db("db-2.13.0-utc")
    with sqlite3.connect(source) as connection:
        query = "SELECT app_name, user_id, session_id, count(*) FROM events GROUP BY 1, 2, 3"
        keys = connection.execute(query).fetchall()
    connection.close()
    for app, user, session, count in keys[::10]:
        found = timeline_of(source, session, app=app, user=user)
        assert found.events == sum(len(part.turns) for part in found.invocations) == count
        assert found.row


def test_an_ambiguous_id_lists_the_candidates(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    event = {"author": "user", "invocation_id": "i", "id": "e", "timestamp": 1.0}
    lines = [{**event, "app_name": "a", "user_id": user, "session_id": "s"} for user in ("u-1", "u-2\x1b[2J")]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UsageError) as caught:
        timeline_of(path, "s")
    assert "--user 'u-1'" in caught.value.what
    assert "\x1b" not in caught.value.what
    assert "--user" in caught.value.todo
    assert timeline_of(path, "s", user="u-1").events == 1


def test_an_unknown_session_is_said_to_be_none(incident_db: Database) -> None:
    with pytest.raises(NothingToLookAt, match="no session"):
        timeline_of(incident_db("v1a"), "nobody")


def test_rewound_events_are_marked(incident_db: Database) -> None:
    source = incident_db("v1a")
    with closing(open_store(source)) as store:
        detection = detect(store)
        sessions = {
            record.key.session
            for record in open_reader(store, detection).events()
            if ((record.data or {}).get("actions") or {}).get("rewind_before_invocation_id")
        }
    assert sessions
    for key in sessions:
        found = timeline_of(source, key.session_id, app=key.app_name, user=key.user_id)
        assert "rewind" in kinds(found)
        assert any(turn.rewound for part in found.invocations for turn in part.turns)
