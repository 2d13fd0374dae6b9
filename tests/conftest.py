"""Databases for tests: the real ones of `fixtures/` unpacked into a temporary folder, one private copy each."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# a property says what holds, not how fast: the machine may be busy
settings.register_profile("exhume", settings.get_profile(settings.get_current_profile_name()), deadline=None)
settings.load_profile("exhume")

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


def unpack(packed: Path, target: Path) -> Path:
    """Unpacks one `.db.gz` of the fixtures to `target`."""
    target.write_bytes(gzip.decompress(packed.read_bytes()))
    return target


def load_truth(name: str) -> dict[str, dict[str, Any]]:
    """What the application handed to ADK: "app/user/session" -> event id -> {"event", "timestamp", ...}."""
    found: dict[str, dict[str, Any]] = json.loads(
        gzip.decompress((FIXTURES / "adk" / f"{name}.truth.json.gz").read_bytes())
    )
    return found


def hostile_entries() -> list[dict[str, Any]]:
    """The entries of fixtures/hostile/values.json."""
    entries: list[dict[str, Any]] = json.loads((FIXTURES / "hostile" / "values.json").read_text())["files"]
    return entries


def make_hostile(entry: dict[str, Any], target: Path) -> Path:
    """The hostile base database with one value rewritten as the entry says."""
    unpack(FIXTURES / "hostile" / "base.db.gz", target)
    connection = sqlite3.connect(target)
    if "sql" in entry:
        for statement in entry["sql"]:
            connection.execute(statement)
    else:
        value = entry["value"]
        if entry["type"] in ("blob", "text"):
            value = bytes.fromhex(value)
        expression = "CAST(? AS TEXT)" if entry["type"] == "text" else "?"
        changed = connection.execute(
            f"UPDATE events SET {entry['column']} = {expression} WHERE id = ?", (value, entry["event_id"])
        )
        assert changed.rowcount == 1, entry["file"]
    connection.commit()
    connection.close()
    return target


@pytest.fixture
def adk_db(tmp_path: Path) -> Callable[[str], Path]:
    """`adk_db("db-1.21.0-utc")` is a private copy of that database."""

    def copy(name: str) -> Path:
        folder = tmp_path / "source"
        folder.mkdir(exist_ok=True)
        return unpack(FIXTURES / "adk" / f"{name}.db.gz", folder / f"{name}.db")

    return copy


@pytest.fixture
def incident_db(tmp_path: Path) -> Callable[[str], Path]:
    """`incident_db("v1a")` is a private copy of that labelled database."""

    def copy(name: str) -> Path:
        folder = tmp_path / "source"
        folder.mkdir(exist_ok=True)
        return unpack(FIXTURES / "incidents" / f"{name}.db.gz", folder / f"{name}.db")

    return copy
