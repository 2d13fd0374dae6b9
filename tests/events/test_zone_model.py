"""The zone of naive times is read off the sessions, whatever the release and the history of the file."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from exhume.errors import UsageError
from tests.events.building import Reading, Written, execute, make_v0, utc


def conversation(session: str, start: datetime, zone: str, *, turns: int = 4, pause: float = 7.25) -> list[Written]:
    return [Written(session, start + timedelta(seconds=pause * turn), zone) for turn in range(turns)]


def days(zone: str, first: str = "2026-01-05 09:00:00.123456", count: int = 12, step: int = 3) -> list[Written]:
    start = utc(first)
    return [
        event
        for number in range(count)
        for event in conversation(f"{zone}-{first[:10]}-{number:02}", start + timedelta(days=step * number), zone)
    ]


@pytest.mark.parametrize(
    "zone", ["UTC", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu", "Pacific/Auckland", "Europe/London"]
)
@pytest.mark.parametrize("whole_seconds", [False, True])
def test_one_zone_all_year(reading: Reading, tmp_path: Path, zone: str, whole_seconds: bool) -> None:
    events = days(zone, count=24, step=15)
    path = make_v0(tmp_path / "a.db", events, whole_seconds=whole_seconds)
    assert set(reading.errors(path, events)) == {0.0}
    report = reading(path).time_zone()
    assert report.proof == "proved"
    assert (report.sessions_agreeing, report.sessions_disagreeing) == (24, 0)


def test_update_time_that_never_moves_is_no_proof(reading: Reading, tmp_path: Path) -> None:
    # three hours long: the last event minus update_time is three hours, which proves nothing
    events = conversation("long", utc("2026-02-01 09:00:00.5"), "UTC", turns=5, pause=2700)
    path = make_v0(tmp_path / "a.db", events, whole_seconds=True, update="create")
    assert set(reading.errors(path, events)) == {0.0}
    assert reading(path).time_zone().zone == "UTC"


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "Europe/Berlin"])
def test_upgrade_from_local_time_to_utc(reading: Reading, tmp_path: Path, zone: str) -> None:
    events = days(zone, "2026-03-01 09:00:00.123456")
    straddling = conversation("lived", utc("2026-04-20 10:00:00.5"), zone)
    after = [event._replace(zone="UTC") for event in conversation("lived", utc("2026-04-20 15:00:00.25"), zone)]
    events = [*events, *straddling, *after, *days("UTC", "2026-05-01 09:00:00.654321")]
    path = make_v0(tmp_path / "a.db", events)
    assert set(reading.errors(path, events)) == {0.0}
    report = reading(path).time_zone()
    assert (report.zone, report.proof, report.sessions_disagreeing) == ("mixed", "proved", 0)
    assert len(report.offsets) >= 2
    assert report.notes


def test_events_in_other_seasons_follow_the_fitted_zone(reading: Reading, tmp_path: Path) -> None:
    # nothing proves summer: New York and Bogota fit, and New York is assumed
    zone = "America/New_York"
    odd = [Written("odd", utc("2025-07-04 12:00:00"), zone), Written("odd", utc("2099-01-01"), zone)]
    events = [*days(zone), *odd]
    path = make_v0(tmp_path / "a.db", events)
    execute(path, "DELETE FROM sessions WHERE id = 'odd'")
    assert set(reading.errors(path, events)) == {0.0}
    assert any("America/Bogota" in note for note in reading(path).time_zone().notes)


def test_utc_that_only_winter_proves_is_taken_and_told(reading: Reading, tmp_path: Path) -> None:
    events = [*days("UTC"), Written("odd", utc("2025-07-04 12:00:00"), "UTC")]
    path = make_v0(tmp_path / "a.db", events)
    execute(path, "DELETE FROM sessions WHERE id = 'odd'")
    assert set(reading.errors(path, events)) == {0.0}
    report = reading(path).time_zone()
    assert (report.zone, report.proof) == ("UTC", "proved")
    assert any("Europe/London" in note and "UTC is assumed" in note for note in report.notes)


def test_utc_is_told_of_nothing_where_every_event_reads_the_same(reading: Reading, tmp_path: Path) -> None:
    winter = make_v0(tmp_path / "a.db", days("UTC"))
    summer = make_v0(tmp_path / "b.db", days("UTC", "2026-07-05 09:00:00.123456"))
    assert reading(winter).time_zone().notes == reading(summer).time_zone().notes == ()


def test_a_back_dated_session_proves_the_season_by_its_own_times(reading: Reading, tmp_path: Path) -> None:
    zone = "America/New_York"
    events = [*days(zone), Written("odd", utc("2025-07-04 12:00:00.5"), zone)]
    path = make_v0(tmp_path / "a.db", events)
    assert reading(path).time_zone().notes == ()
    assert reading(path).time_zone().offsets == {"-05:00": 12, "-04:00": 1}


def test_two_workers_in_different_zones(reading: Reading, tmp_path: Path) -> None:
    new_york, utc_worker = days("America/New_York", count=30), days("UTC", "2026-01-05 10:00:00.5", count=30)
    mixed = [event for pair in zip(new_york, utc_worker, strict=True) for event in pair]
    path = make_v0(tmp_path / "a.db", mixed)
    assert set(reading.errors(path, mixed)) == {0.0}
    assert reading(path).time_zone().zone == "mixed"


def test_the_hour_that_occurs_twice_is_resolved_by_order(reading: Reading, tmp_path: Path) -> None:
    # 01:30 EDT, 01:50 EDT, 01:10 EST, 01:20 EST: the clock runs backwards once
    night = [utc(f"2025-11-02 {clock}") for clock in ("05:30:00", "05:50:00", "06:10:00", "06:20:00", "09:00:00")]
    events = [*days("America/New_York"), *(Written("night", when, "America/New_York") for when in night)]
    path = make_v0(tmp_path / "a.db", events)
    assert set(reading.errors(path, events)) == {0.0}
    assert reading(path).time_zone().ambiguous == 0


def test_the_session_s_own_times_resolve_the_hour_too(reading: Reading, tmp_path: Path) -> None:
    events = [
        *days("America/New_York"),
        *(Written("first", utc("2025-11-02 06:10:00") + timedelta(minutes=m), "America/New_York") for m in (0, 5, 9)),
    ]
    path = make_v0(tmp_path / "a.db", events)
    assert set(reading.errors(path, events)) == {0.0}


def test_what_order_does_not_tell_is_counted(reading: Reading, tmp_path: Path) -> None:
    # the events of the night are neither first nor last in their session, and the clock never runs backwards
    times = ("01:00:00", "05:10:00", "05:20:00", "20:00:00")
    events = [
        *days("America/New_York"),
        *(Written("night", utc(f"2025-11-02 {clock}"), "America/New_York") for clock in times),
    ]
    path = make_v0(tmp_path / "a.db", events)
    report = reading(path).time_zone()
    assert report.ambiguous == 2
    assert any("occurs twice" in note for note in report.notes)


def test_a_stated_zone_that_the_sessions_contradict_stops_the_run(reading: Reading, tmp_path: Path) -> None:
    path = make_v0(tmp_path / "a.db", days("America/New_York"))
    with pytest.raises(UsageError, match="contradict") as caught:
        list(reading(path, timezone="Europe/Berlin").events())
    assert "America/New_York" in caught.value.todo


def test_a_stated_zone_that_fits_is_used(reading: Reading, tmp_path: Path) -> None:
    events = days("America/New_York")
    path = make_v0(tmp_path / "a.db", events)
    report = reading(path, timezone="America/Bogota").time_zone()
    assert (report.zone, report.proof) == ("America/Bogota", "stated")
    assert set(reading.errors(path, events, timezone="-05:00")) == {0.0}


def test_nothing_to_prove_it_by(reading: Reading, tmp_path: Path) -> None:
    path = make_v0(tmp_path / "a.db", days("America/New_York"))
    execute(path, "DELETE FROM sessions")
    report = reading(path).time_zone()
    assert (report.zone, report.proof) == ("UTC", "not proved")
    assert "--source-timezone" in report.notes[0]


def test_a_late_first_message_is_weak_evidence_but_enough_where_all_agree(reading: Reading, tmp_path: Path) -> None:
    events = days("America/New_York")
    path = make_v0(tmp_path / "a.db", events, whole_seconds=True, update="create")
    execute(path, "UPDATE sessions SET create_time = datetime(create_time, '-40 seconds'), update_time = NULL")
    assert set(reading.errors(path, events)) == {0.0}


def test_the_machine_s_own_zone_plays_no_part(
    reading: Reading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    events = days("America/New_York")
    path = make_v0(tmp_path / "a.db", events)
    monkeypatch.setenv("TZ", "Pacific/Chatham")
    time.tzset()
    try:
        assert set(reading.errors(path, events)) == {0.0}
    finally:
        monkeypatch.undo()
        time.tzset()


def test_some_idle_sessions_are_chance(reading: Reading, tmp_path: Path) -> None:
    # made a whole hour before their first event: one in fifty does not move the zone
    events = days("UTC", count=60, step=1)
    path = make_v0(tmp_path / "a.db", events, whole_seconds=True, update="create")
    execute(path, "UPDATE sessions SET create_time = datetime(create_time, '-1 hour') WHERE id = 'UTC-2026-01-05-07'")
    assert set(reading.errors(path, events)) == {0.0}
    report = reading(path).time_zone()
    assert (report.zone, report.sessions_disagreeing) == ("UTC", 1)
