from __future__ import annotations

from exhume.events.zone_proof import _BUCKETS, PositionRuns


def test_more_positions_than_buckets_keep_their_runs() -> None:
    runs = PositionRuns()
    for position in range(0, 40 * _BUCKETS, 10):
        runs.add(position, position >= 20 * _BUCKETS)
    assert len(runs._buckets) <= _BUCKETS
    regimes = runs.decide()
    assert regimes.is_utc(30 * _BUCKETS)
    assert not regimes.is_utc(10 * _BUCKETS)
    assert len(regimes.starts) == 2
