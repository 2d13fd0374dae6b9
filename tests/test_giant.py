"""Giant cells hold within 1 GiB: no library ends the process, nothing is lost, the audit judges without the text."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

REFUND_DESK = Path(__file__).resolve().parent.parent / "fixtures" / "refund-desk-1.21.0.db"
EXHUME = Path(sys.executable).with_name("exhume")
LENGTH = 60_000_000


@pytest.fixture(scope="module")
def giant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The refund desk, one event of which says a text of 60 MB."""
    path = tmp_path_factory.mktemp("giant") / "giant.db"
    path.write_bytes(REFUND_DESK.read_bytes())
    connection = sqlite3.connect(path)
    content = json.dumps({"parts": [{"text": "x" * LENGTH}], "role": "model"})
    connection.execute(
        "UPDATE events SET content = ?"
        " WHERE rowid = (SELECT min(rowid) FROM events WHERE content NOT LIKE '%function%')",
        (content,),
    )
    connection.commit()
    connection.close()
    return path


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(EXHUME), *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "TZ": "UTC"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)),
    )


def test_a_giant_text_is_migrated_whole(giant: Path, tmp_path: Path) -> None:
    done = run("migrate", giant, "out.db", "--format", "json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    longest = sqlite3.connect(tmp_path / "out.db").execute("SELECT max(length(event_data)) FROM events").fetchone()[0]
    assert longest > LENGTH
    assert run("verify", giant, "out.db", cwd=tmp_path).returncode == 0
    for source in (giant, "out.db"):
        done = run("audit", source, "--format", "json", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout)["summary"]["events"] == 12


@pytest.mark.parametrize("command", [["audit"], ["approvals"], ["show", "f-approved"]])
def test_reading_commands_say_something(command: list[str], giant: Path, tmp_path: Path) -> None:
    done = run(command[0], giant, *command[1:], cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout


def test_many_large_values_in_one_session_are_audited(tmp_path: Path) -> None:
    """Each is below what is handled on its own; together they are more than a library could write at once."""
    assert run("migrate", REFUND_DESK, "out.db", cwd=tmp_path).returncode == 0
    connection = sqlite3.connect(tmp_path / "out.db")
    app, user, session = connection.execute("SELECT app_name, user_id, session_id FROM events LIMIT 1").fetchone()
    body = {"items": ["y" * 39_000] * 100}
    for number in range(75):
        part = {"function_response": {"id": f"adk-{number}", "name": "search", "response": body}}
        data = {"author": "a", "actions": {}, "content": {"role": "user", "parts": [part]}, "timestamp": 2e9 + number}
        connection.execute(
            "INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)"
            " VALUES (?, ?, ?, ?, 'i', '2033-05-18 03:33:20.000000', ?)",
            (f"large-{number}", app, user, session, json.dumps(data)),
        )
    connection.commit()
    connection.close()
    done = run("audit", "out.db", "--format", "json", "--ignore", "EXH2", cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)["summary"]["events"] == 87
