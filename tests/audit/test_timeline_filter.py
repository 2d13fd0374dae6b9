"""`show` narrowed: what is asked for stays, in order; the counts of the session stay whole."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from exhume.audit.timeline import Timeline, timeline
from exhume.audit.timeline_filter import GROUPS, TimelineFilter
from exhume.cli.commands.show import Only
from exhume.events.interface import ReadOptions
from exhume.events.readers import open_reader
from exhume.schema.detect import detect
from exhume.stores import open_store

SESSION = "8e5a50b4-ec40-4388-8b7a-5342bba17f2a"  # approved, then rejected


@pytest.fixture
def whole(incident_db: Callable[[str], Path]) -> Timeline:
    with closing(open_store(incident_db("v1a"))) as store:
        detection = detect(store)
        return timeline(open_reader(store, detection, ReadOptions(session=SESSION)), detection, session=SESSION)


def kinds(found: Timeline) -> list[str]:
    return [item.kind for part in found.invocations for turn in part.turns for item in turn.items]


def test_nothing_asked_for_keeps_everything(whole: Timeline) -> None:
    assert TimelineFilter().apply(whole) == whole


def test_only_approvals(whole: Timeline) -> None:
    assert kinds(TimelineFilter(only=("approvals",)).apply(whole)) == [
        "placeholder",
        "request",
        "approval",
        "execution",
        "rejection",
    ]


def test_one_author_and_a_stretch_of_time(whole: Timeline) -> None:
    decisions = TimelineFilter(author="user", only=("approvals",))
    assert kinds(decisions.apply(whole)) == ["approval", "rejection"]
    rejected = decisions.apply(whole).invocations[-1].turns[-1].time
    assert rejected is not None
    later = TimelineFilter(author="user", since=rejected, only=("approvals",)).apply(whole)
    assert kinds(later) == ["rejection"]
    assert kinds(TimelineFilter(author="user", until=rejected - 1, only=("approvals",)).apply(whole)) == ["approval"]
    assert (later.events, later.orphans) == (whole.events, whole.orphans)


def test_one_invocation(whole: Timeline) -> None:
    first = whole.invocations[0]
    kept = TimelineFilter(invocation=first.id).apply(whole)
    assert {part.id for part in kept.invocations} == {first.id}
    assert TimelineFilter(invocation="none").apply(whole).invocations == []


def test_the_command_line_offers_every_group() -> None:
    assert [one.value for one in Only] == list(GROUPS)
