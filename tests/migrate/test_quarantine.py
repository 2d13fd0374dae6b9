from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exhume.events.model import EventKey, Problem
from exhume.migrate.interface import RefusedRow
from exhume.migrate.quarantine import Quarantine, cell_bytes, row_hash

KEY = EventKey("app", "user", "session", "event")
PROBLEM = Problem("EXH501", "actions", "the pickle names os.system", "0" * 64, ("os.system",), 12)
CELL = st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.binary() | st.binary().map(
    lambda raw: raw.decode("utf-8", "surrogateescape")
)  # fmt: skip


def refused(
    raw: dict[str, Any], *, hop: str = "v0 -> v1", key: EventKey = KEY, problem: Problem = PROBLEM
) -> RefusedRow:
    return RefusedRow("events", key, (problem,), hop, raw)


def query(path: Path, statement: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    found = connection.execute(statement).fetchall()
    connection.close()
    return found


@pytest.fixture
def box(tmp_path: Path) -> Quarantine:
    return Quarantine(tmp_path / "box.db", source="x.db", source_sha256="ab" * 32, layouts=("v0", "v1"))


@pytest.fixture(scope="module")
def new_box(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Quarantine]:
    def make() -> Quarantine:
        path = tmp_path_factory.mktemp("box") / "box.db"
        return Quarantine(path, source="x.db", source_sha256=None, layouts=("v0", "v1"))

    return make


@settings(max_examples=40, deadline=None)
@given(raw=st.dictionaries(st.sampled_from(["id", "actions", "timestamp", "ü"]), CELL))
def test_cells_keep_their_type_and_bytes(new_box: Callable[[], Quarantine], raw: dict[str, Any]) -> None:
    box = new_box()
    assert box.add(refused(raw))
    box.finish()
    found = dict(query(box.path, "SELECT column_name, value FROM cells"))
    assert found == raw
    assert {name: type(cell) for name, cell in found.items()} == {name: type(cell) for name, cell in raw.items()}


def test_a_row_of_a_later_hop_adds_its_reasons_only(box: Quarantine) -> None:
    assert box.add(refused({"actions": b"\x80"}))
    assert not box.add(refused({"event_data": "{}"}, hop="v1 -> v2", problem=PROBLEM))
    assert box.add(refused({"actions": b"\x81"})), "a second row of the same key in one hop is another row"
    box.finish()
    assert query(box.path, "SELECT row, hop FROM rows") == [(1, "v0 -> v1"), (2, "v0 -> v1")]
    assert query(box.path, "SELECT row, hop FROM problems") == [(1, "v0 -> v1"), (1, "v1 -> v2"), (2, "v0 -> v1")]
    assert query(box.path, "SELECT value FROM cells") == [(b"\x80",), (b"\x81",)]


def test_reasons_and_keys_of_any_text_are_kept(box: Quarantine) -> None:
    odd = Problem("EXH501", "actions", "the pickle names \ud800.x", "", ("\ud800.x",))
    assert box.add(refused({}, key=EventKey("a\x00b", "\udcff", "ü", ""), problem=odd))
    box.finish()
    assert query(box.path, "SELECT reason, globals FROM problems") == [
        (b"the pickle names \\ud800.x", '["\\ud800.x"]'),
    ]
    assert query(box.path, "SELECT app_name, session_id FROM rows") == [("a\x00b", "ü")]


def test_it_says_what_ran_on_what(box: Quarantine) -> None:
    box.finish()
    about = dict(query(box.path, "SELECT * FROM about"))
    assert about["format"] == "exhume.quarantine/1"
    assert (about["source"], about["source_sha256"], about["path"]) == ("x.db", "ab" * 32, "v0 -> v1")


def test_the_hash_of_a_row_knows_types_and_boundaries() -> None:
    rows: list[dict[str, Any]] = [
        {"a": "1"}, {"a": 1}, {"a": b"1"}, {"a": None}, {"a": ""}, {"a": 1.0}, {"b": "1"}, {"a": "1", "b": ""},
        {"a": "1b"}, {},
    ]  # fmt: skip
    assert len({row_hash(row) for row in rows}) == len(rows)
    assert row_hash({"a": "\udcff"}) == row_hash({"a": "\udcff"})
    assert cell_bytes("\udcff") == b"\xff"
