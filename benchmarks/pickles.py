"""Processor time of decoding genuine pickles, and of refusing bombs.

usage: python benchmarks/pickles.py [DATABASE]

DATABASE is a v0 database (default: all of fixtures/adk). Times are medians of seven rounds, in microseconds a value;
"interpret" is the opcode machine alone, "decode" the whole way to plain data without the cache. "unpickle" is, for
comparison, the standard library's Python unpickler without its calls: the same opcodes read by the same language.
"""

from __future__ import annotations

import io
import pickle
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.fuzz_pickles import genuine_values

from exhume.pickles.decoder import Decoder
from exhume.pickles.machine import Machine
from tests.pickles.test_pickle_machine import BOMBS

ROUNDS = 7


class Inert:
    """Stands for any class: takes any arguments and any state."""

    def __init__(self, *_: Any) -> None: ...

    def __setstate__(self, _: Any) -> None: ...

    def __setitem__(self, *_: Any) -> None: ...

    def append(self, _: Any) -> None: ...

    def extend(self, _: Any) -> None: ...

    add = append


class InertUnpickler(pickle._Unpickler):
    def find_class(self, *_: str) -> Any:
        return Inert


def microseconds(work: Callable[[], object], values: Sequence[bytes]) -> float:
    spent = []
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        spent.append(time.process_time() - started)
    return statistics.median(spent) / len(values) * 1e6


def main() -> int:
    if len(sys.argv) > 1:
        connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
        values = [blob for (blob,) in connection.execute("SELECT DISTINCT actions FROM events LIMIT 20000")]
        connection.close()
    else:
        values = genuine_values()

    def interpret() -> None:
        for data in values:
            Machine(data).run()

    def decode() -> None:
        decoder = Decoder()
        for data in values:
            decoder.decode(data)

    def unpickle() -> None:
        for data in values:
            InertUnpickler(io.BytesIO(data)).load()

    size = statistics.mean(map(len, values))
    print(f"{len(values)} distinct values, {size:.0f} bytes on average")
    for work in (interpret, decode, unpickle):
        print(f"  {work.__name__:10s} {microseconds(work, values):8.1f} us a value")
    print("bombs, milliseconds until refused")
    for name, bomb in BOMBS.items():
        started = time.process_time()
        Decoder().decode(bomb)
        print(f"  {name:26s} {len(bomb):9d} bytes {(time.process_time() - started) * 1e3:8.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
