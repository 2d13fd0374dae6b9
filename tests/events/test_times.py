"""Time cells are read to the microsecond, in every form that a store may hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.events.times import TimeCell, epoch_seconds, offset_text, parse_time
from exhume.stores.interface import Cell

NOON = 1_767_268_800_000_000  # 2026-01-01 12:00:00


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("2026-01-01 12:00:00.000001", TimeCell(NOON + 1, False)),
        ("2026-01-01 12:00:00", TimeCell(NOON, False)),
        ("2026-01-01 12:00", TimeCell(NOON, False)),
        ("2026-01-01", TimeCell(NOON - 43_200_000_000, False)),
        ("2026-01-01T12:00:00.5", TimeCell(NOON + 500_000, False)),
        ("2026-01-01 12:00:00.123", TimeCell(NOON + 123_000, False)),
        ("2026-01-01 12:00:00.123456789", TimeCell(NOON + 123_456, False)),
        ("2026-01-01T12:00:00Z", TimeCell(NOON, True)),
        ("2026-01-01T17:30:00.25+05:30", TimeCell(NOON + 250_000, True)),
        ("2026-01-01 07:00:00-0500", TimeCell(NOON, True)),
        ("2026-01-01 13:00:00+01", TimeCell(NOON, True)),
        ("2026-01-01 12:00:00.0+0000", TimeCell(NOON, True)),  # as long as what SQLAlchemy writes
        ("2026-01-01 12:00:00.00000Z", TimeCell(NOON, True)),
        (b"2026-01-01 12:00:00.000001", TimeCell(NOON + 1, False)),
        (1_767_268_800, TimeCell(NOON, True)),
        (1_767_268_800.123456, TimeCell(NOON + 123_456, True)),
        ("1767268800.5", TimeCell(NOON + 500_000, True)),
        (1_767_268_800_123, TimeCell(NOON + 123_000, True)),
        (1_767_268_800_123_456, TimeCell(NOON + 123_456, True)),
        (1_767_268_800_123_456_789, TimeCell(NOON + 123_456, True)),
        (0, TimeCell(0, True)),
        (-1.5, TimeCell(-1_500_000, True)),
    ],
)
def test_forms(cell: Cell, expected: TimeCell) -> None:
    assert parse_time(cell) == expected


@pytest.mark.parametrize(
    "cell",
    [
        *(None, "", " ", "garbage", "0000-00-00 00:00:00", "2026-02-30 00:00:00.000000", "2026-01-01 25:00:00.000000"),
        *("2026-01-01 12:00:00.123456x", "2026-W01-1", "20260101", "nan", "inf", "1e99", float("nan"), float("inf")),
        *(10**30, b"\xff\xfe", "٢٠٢٦-01-01 12:00:00", "2026-01-01 1x:00:00.000000", "2026-01-01T12:00:00+99:00"),
    ],
)
def test_what_is_no_time(cell: Cell) -> None:
    assert parse_time(cell) is None


def test_milliseconds_of_mikro_orm() -> None:
    assert parse_time(86_400_000, milliseconds=True) == TimeCell(86_400_000_000, True)
    assert parse_time(86_400_000) == TimeCell(86_400_000_000_000, True)


@given(
    st.from_regex(r"2026-01-0[12][ T]12:00(:00)?([.,][0-9]{1,7})?([Z ]|[+-][0-9]{2}:?[0-9]{0,3}:?)?", fullmatch=True)
)
def test_whatever_looks_like_a_time_is_one_or_is_none(cell: str) -> None:
    found = epoch_seconds(cell)
    assert found is None or abs(found - NOON / 1e6) < 4 * 86_400


@given(st.datetimes())
def test_what_sqlalchemy_writes_comes_back_exactly(moment: datetime) -> None:
    text = moment.isoformat(sep=" ", timespec="microseconds")
    assert epoch_seconds(text) == moment.replace(tzinfo=UTC).timestamp()


@given(
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)),
    st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
def test_aware_times_come_back_exactly(moment: datetime, zone: timezone) -> None:
    aware = moment.replace(tzinfo=zone)
    parsed = parse_time(aware.isoformat())
    assert parsed is not None
    assert parsed.exact
    assert parsed.us / 1_000_000 == aware.timestamp()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "+00:00"), (-18_000, "-05:00"), (20_700, "+05:45"), (-17_762, "-04:56:02")]
)
def test_offsets_are_spelt(seconds: int, text: str) -> None:
    assert offset_text(seconds) == text
