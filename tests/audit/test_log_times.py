"""Offsets of clocks, and times that no clock shows."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exhume.audit.engine import AuditOptions, audit
from exhume.audit.rules.log_times import spelt_offset, zone_offset
from tests.audit.building import build

CASE = {"layout": "v0", "sessions": [{"state": {"a": 1}, "events": [{"text": "a", "delta": {"a": 1}}, {"text": "b"}]}]}


@given(st.integers(-60, 60), st.floats(-1.0, 1.0))
@example(60, 1.0)
@example(-60, -1.0)
def test_whole_quarter_hours_are_offsets(quarters: int, rest: float) -> None:
    assert zone_offset(quarters * 900 + rest) == quarters * 900


@given(st.integers(-60, 59), st.floats(1.1, 898.9))
def test_nothing_else_is_one(quarters: int, rest: float) -> None:
    assert zone_offset(quarters * 900 + rest) is None


@pytest.mark.parametrize("seconds", [math.inf, -math.inf, math.nan, 1e308, 16 * 3600.0, -16 * 3600.0])
def test_no_zone_is_that_far(seconds: float) -> None:
    assert zone_offset(seconds) is None


def test_offsets_are_spelt_as_zones_are() -> None:
    assert [spelt_offset(seconds) for seconds in (-18000, 19800, -12600, 0)] == ["-05:00", "+05:30", "-03:30", "+00:00"]


@pytest.mark.parametrize("time", [math.inf, -math.inf, math.nan, 1e308, -1e308, None])
@pytest.mark.parametrize("place", ["create_time", "update_time", "time", "column_time"])
def test_times_that_no_clock_shows_do_no_harm(place: str, time: float | None) -> None:
    log, detection = build(CASE)
    for row in log.session_rows if place in ("create_time", "update_time") else log.records:
        setattr(row, place, time)
    report = audit(log, detection, AuditOptions(select=("EXH3", "EXH4")))
    assert report.summary.events == 2
    assert {finding.rule for finding in report.findings} <= {"EXH301", "EXH309"}
