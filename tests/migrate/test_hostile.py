"""Every hostile value of the fixtures through a whole migration: nothing runs, nothing is lost, nothing is left."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from exhume.errors import NothingToLookAt, Refused
from exhume.migrate.interface import MigrateOptions
from exhume.migrate.run import migrate
from tests.conftest import hostile_entries, make_hostile

ENTRIES = hostile_entries()


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


@pytest.fixture(params=ENTRIES, ids=[entry["file"] for entry in ENTRIES])
def entry(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


def test_all_or_nothing_and_quarantine(entry: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = f"exhume-test-marker-{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16]}"
    monkeypatch.setenv("CORPUS_MARKER", marker)
    (tmp_path / "source").mkdir()
    (tmp_path / "out").mkdir()
    source, out = make_hostile(entry, tmp_path / "source" / "hostile.db"), tmp_path / "out" / "out.db"
    box = out.with_name("box.db")
    before = hashlib.sha256(source.read_bytes()).hexdigest()
    try:
        plain = migrate(source, out)
    except (NothingToLookAt, Refused):
        assert "sql" in entry, "a single value never refuses a whole database without naming its row"
        assert list(out.parent.iterdir()) == []
        return
    if plain.status == "refused":
        assert list(out.parent.iterdir()) == []
        assert entry["expect"] != "keep"
        assert all(any(problem.fatal for problem in row.problems) for row in plain.refused)
    else:
        assert plain.status == "complete"
        assert entry["expect"] != "refuse"
        out.unlink()
    report = migrate(source, out, MigrateOptions(quarantine=box))
    assert report.status == ("incomplete" if plain.status == "refused" else "complete")
    assert box.exists() == (plain.status == "refused")
    assert report.refused_count == plain.refused_count
    alone = rows(box, "SELECT count(*) FROM rows WHERE table_name = 'events'")[0][0] if box.exists() else 0
    read, written = report.tables["events"].read, report.tables["events"].written
    assert written <= read <= written + alone
    assert rows(source, "SELECT count(*) FROM events") == [(read,)]
    if box.exists() and "column" in entry:
        (stored,) = rows(source, f"SELECT {entry['column']} FROM events WHERE id = '{entry['event_id']}'")[0]
        kept = rows(box, f"SELECT value FROM cells WHERE column_name = '{entry['column']}'")
        assert (stored,) in kept
        hashes = {one for (one,) in rows(box, "SELECT sha256 FROM problems")}
        if isinstance(stored, bytes):
            assert hashlib.sha256(stored).hexdigest() in hashes
    assert hashlib.sha256(source.read_bytes()).hexdigest() == before
    assert not Path("/tmp", marker).exists()  # where the payloads would make their mark


def test_bytes_after_a_pickle_are_a_loss(tmp_path: Path) -> None:
    entry = next(entry for entry in ENTRIES if entry["file"] == "trailing-bytes.db")
    report = migrate(make_hostile(entry, tmp_path / "source.db"), tmp_path / "out.db")
    (loss,) = [loss for loss in report.losses if loss.kind == "trailing-bytes"]
    assert (loss.count, loss.hop) == (1, "v0 -> v1")
    assert "sha256" in loss.example
