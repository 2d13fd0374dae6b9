"""Mutated genuine values: out comes a value or a refusal, in little time, and nothing else ever."""

from __future__ import annotations

import collections
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from exhume.pickles.decoder import Decoder
from exhume.pickles.interface import MalformedPickle, UnsafeGlobal
from tests.pickles.mutations import mutations


def test_mutations_of_genuine_values(adk_db: Callable[[str], Path]) -> None:
    connection = sqlite3.connect(adk_db("db-1.14.1-utc"))
    values = [blob for (blob,) in connection.execute("SELECT DISTINCT actions FROM events ORDER BY actions")]
    connection.close()
    decoder = Decoder()
    ends: collections.Counter[str] = collections.Counter()
    slowest = 0.0
    for data in mutations(values, count=4_000, seed=20):
        started = time.process_time()
        made = decoder.decode(data)
        slowest = max(slowest, time.process_time() - started)
        assert made.error is None or isinstance(made.error, UnsafeGlobal | MalformedPickle)
        assert made.error is None or made.value is None
        ends["value" if made.error is None else type(made.error).__name__] += 1
    # each end is reached, so the mutations are neither harmless nor all fatal
    assert min(ends[name] for name in ("value", "UnsafeGlobal", "MalformedPickle")) > 100
    assert slowest < 0.5  # processor time; the benchmark holds the strict limit
