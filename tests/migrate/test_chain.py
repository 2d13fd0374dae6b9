from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from exhume.errors import NothingToLookAt, Refused, UsageError
from exhume.events.interface import ReadOptions
from exhume.events.model import EventKey, TimeZoneReport
from exhume.migrate import steps as registry
from exhume.migrate.chain import find_path, layouts_graph
from exhume.migrate.interface import MigrateOptions, Step, StepOutput
from exhume.migrate.run import migrate
from exhume.schema import layouts
from exhume.schema.detection import Detection, Layout
from exhume.stores.interface import Store


@pytest.mark.parametrize(
    ("source", "target", "names"),
    [
        ("v0", "v1", ["v0 -> v1"]),
        ("v0", "sqlite-service", ["v0 -> v1", "v1 -> sqlite-service"]),
        ("go", "sqlite-service", ["go -> v1", "v1 -> sqlite-service"]),
        ("js", "v1", ["js -> v1"]),
        ("v1-unmarked", "v1", ["v1-unmarked -> v1"]),
        ("sqlite-service", "v1", ["sqlite-service -> v1"]),
        ("v1", "v1", []),
        ("sqlite-service", "sqlite-service", []),
    ],
)
def test_the_shortest_path_is_found(source: str, target: str, names: list[str]) -> None:
    assert [step.name for step in find_path(source, target)] == names


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("v1", "v0", "no steps lead from v1 to v0"),
        ("v1", "go", "From v1 exhume can make: sqlite-service"),
        ("mixed", "v1", "half migrated"),
        ("unknown-version", "v1", "newer exhume"),
    ],
)
def test_what_cannot_be_moved_is_refused_with_a_reason(source: str, target: str, said: str) -> None:
    with pytest.raises(Refused) as error:
        find_path(source, target)
    assert said in error.value.diagnostics()


def test_a_store_of_something_else_is_nothing_to_look_at() -> None:
    with pytest.raises(NothingToLookAt, match="does not hold the tables") as error:
        find_path("foreign", "v1")
    assert "--table-prefix" in error.value.todo


def test_a_layout_that_is_none_is_an_error_of_usage() -> None:
    with pytest.raises(UsageError, match="no layout nonsense") as error:
        find_path("v0", "nonsense")
    assert "sqlite-service" in error.value.todo


def test_a_step_is_registered_once() -> None:
    with pytest.raises(ValueError, match="v0 -> v1 already"):
        registry.register(find_path("v0", "v1")[0])


def test_the_graph_names_every_layout() -> None:
    nodes = {node.name: node for node in layouts_graph()}
    assert set(nodes) == {str(layout) for layout in Layout}
    assert [target for target, _ in nodes["v1"].steps] == ["sqlite-service"]
    assert nodes["mixed"].steps == ()
    assert all(node.summary for node in nodes.values())


class CopyHop:
    """Copies all tables, with one change to each event: what a step to a made-up layout may look like."""

    def __init__(self, store: Store, mark: str) -> None:
        self.store, self.mark = store, mark

    def rows(self) -> Iterator[StepOutput]:
        for name in ("app_states", "user_states", "sessions", "events"):
            columns = self.store.tables()[name].column_names
            for _, row in self.store.rows(name, columns):
                cells = list(row)
                if name == "events":
                    cells[-1] = json.dumps({**json.loads(str(cells[-1])), self.mark: True})
                yield StepOutput(name, tuple(cells), EventKey("", "", "", str(cells[0])))

    def time_zone(self) -> TimeZoneReport:
        return TimeZoneReport("UTC", "not needed")

    def notes(self) -> Sequence[str]:
        return (f"marked {self.mark}",)


def made_up_step(source: str, target: str) -> Step:
    def begin(store: Store, _detection: Detection, _options: ReadOptions) -> CopyHop:
        return CopyHop(store, f"seen_by_{target}")

    return Step(source, target, f"Marks every event for {target}.", begin)


@pytest.fixture
def future(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layouts that do not exist yet: each one declaration and one step."""
    monkeypatch.setattr(registry, "_STEPS", dict(registry._STEPS))
    for version, before in (("2", "v1"), ("3", "v2")):
        spec = replace(layouts.V1, layout=f"v{version}", metadata=(("schema_version", version),))
        monkeypatch.setitem(layouts.DECLARED, f"v{version}", spec)
        registry.register(made_up_step(before, f"v{version}"))


@pytest.mark.usefixtures("future")
def test_a_chain_goes_through_layouts_of_the_future(adk_db: Callable[[str], Path], tmp_path: Path) -> None:
    workdir, destination = tmp_path / "work", tmp_path / "out.db"
    workdir.mkdir()
    options = MigrateOptions(
        to="v3", workdir=workdir, read=ReadOptions(allow_globals=("shop_models.*", "collections.*", "builtins.*"))
    )
    report = migrate(adk_db("db-1.14.1-utc"), destination, options)
    assert report.path == ("v0", "v1", "v2", "v3")
    assert (report.status, report.verified) == ("complete", True)
    assert [note for note in report.notes if note.startswith("marked")] == ["marked seen_by_v2", "marked seen_by_v3"]
    assert list(workdir.iterdir()) == []
    connection = sqlite3.connect(destination)
    assert connection.execute("SELECT value FROM adk_internal_metadata").fetchall() == [("3",)]
    events = [json.loads(text) for (text,) in connection.execute("SELECT event_data FROM events")]
    connection.close()
    assert len(events) == report.tables["events"].written == report.tables["events"].read == 386
    assert all(event["seen_by_v2"] and event["seen_by_v3"] for event in events)


@pytest.mark.usefixtures("future")
def test_the_graph_shows_layouts_of_the_future() -> None:
    nodes = {node.name: node for node in layouts_graph()}
    assert nodes["v2"].steps == (("v3", "Marks every event for v3."),)
    assert [step.name for step in find_path("v0", "v3")] == ["v0 -> v1", "v1 -> v2", "v2 -> v3"]
