"""Mutates genuine pickles and holds the interpreter to its limits: a value or a refusal, 50 ms and 64 MiB each.

usage: python benchmarks/fuzz_pickles.py [COUNT] [--seed 1]

COUNT is 100,000 by default. The values are those of the databases in fixtures/adk. Time is processor time of the
decoding alone. Memory: the process is limited to 64 MiB above what it has at the start; beyond that allocations fail,
which counts as a fault. Exit 1 on any fault; the value that caused it is written to the folder of `--keep`.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import hashlib
import resource
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from exhume.pickles.decoder import Decoder  # noqa: E402
from exhume.pickles.interface import MalformedPickle, UnsafeGlobal  # noqa: E402
from tests.pickles.mutations import mutations  # noqa: E402

SECONDS, MEMORY = 0.050, 64 << 20


def genuine_values() -> list[bytes]:
    """All distinct pickles of the fixtures."""
    values: set[bytes] = set()
    for packed in sorted((HERE.parent / "fixtures" / "adk").glob("*.db.gz")):
        with tempfile.NamedTemporaryFile(suffix=".db") as file:
            file.write(gzip.decompress(packed.read_bytes()))
            file.flush()
            connection = sqlite3.connect(file.name)
            if "actions" in [row[1] for row in connection.execute("PRAGMA table_info(events)")]:
                values.update(blob for (blob,) in connection.execute("SELECT actions FROM events"))
            connection.close()
    return sorted(values)


def address_space() -> int:
    """Bytes of address space that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("count", nargs="?", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-faults"))
    args = parser.parse_args()
    values = genuine_values()
    decoder = Decoder()
    ends: collections.Counter[str] = collections.Counter()
    faults: list[str] = []
    times: list[float] = []
    limit = address_space() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for data in mutations(values, count=args.count, seed=args.seed):
        started = time.process_time()
        try:
            error = decoder.decode(data).error
        except BaseException as escaped:  # noqa: BLE001  that nothing escapes is what is tested
            error, fault = None, f"{type(escaped).__name__} escaped: {escaped}"
        else:
            fault = "" if error is None or isinstance(error, MalformedPickle | UnsafeGlobal) else "another error"
        spent = time.process_time() - started
        times.append(spent)
        if isinstance(error, MalformedPickle) and "more memory" in error.reason:
            fault = "more than 64 MiB"
        elif spent > SECONDS and not fault:
            # another process on the same core can make one run slow, not three
            spent = min(spent, *(timed(data) for _ in range(3)))
            fault = f"{spent * 1000:.0f} ms" if spent > SECONDS else ""
        if fault:
            args.keep.mkdir(exist_ok=True)
            name = hashlib.sha256(data).hexdigest()
            (args.keep / name).write_bytes(data)
            faults.append(f"{name}: {fault}")
        ends["value" if error is None else type(error).__name__] += 1
    times.sort()
    print(f"{args.count} mutations of {len(values)} values, seed {args.seed}: {dict(ends)}")
    median, late, most = (times[place] * 1e3 for place in (len(times) // 2, -(len(times) // 1000) - 1, -1))
    print(f"milliseconds: median {median:.3f}, 99.9% {late:.1f}, most {most:.1f}")
    print(f"faults: {len(faults)}", *faults[:20], sep="\n  " if faults else "")
    return 1 if faults else 0


def timed(data: bytes) -> float:
    started = time.process_time()
    Decoder().decode(data)
    return time.process_time() - started


if __name__ == "__main__":
    sys.exit(main())
