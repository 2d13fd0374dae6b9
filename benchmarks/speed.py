"""CPU, wall and memory of `adk migrate session` and `exhume migrate`, in turn, and the rate of `exhume audit`.

usage: python benchmarks/speed.py [EVENTS] [--rounds N] [--no-adk] [--big EVENTS]

CPU is user + system of the process and its children. Only ratios within one call are worth comparing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent


class Cost(NamedTuple):
    """CPU and wall seconds, peak MiB of one command."""

    cpu: float
    wall: float
    mib: float


def measure(*command: object) -> Cost:
    started = time.monotonic()
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(
            [str(word) for word in command],
            stdout=said,
            stderr=said,
            env={**os.environ, "TZ": "UTC", "OTEL_SDK_DISABLED": "true"},
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in (0, 1):
            said.seek(0)
            sys.exit(f"{command[0]}: exit {child.returncode}: {said.read().decode()[-500:]}")
    return Cost(usage.ru_utime + usage.ru_stime, time.monotonic() - started, usage.ru_maxrss / 1024)


def generated(size: int, folder: Path) -> Path:
    path = folder / f"v0-{size}.db"
    subprocess.run(
        [sys.executable, HERE / "make_v0.py", str(size), str(path)], check=True, env={**os.environ, "TZ": "UTC"}
    )
    return path


def show(name: str, cost: Cost) -> None:
    print(f"{name:32s} cpu {cost.cpu:7.2f} s   wall {cost.wall:7.2f} s   peak {cost.mib:6.1f} MiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("events", nargs="?", type=int, default=20_000)
    parser.add_argument("--big", type=int, default=100_000, help="events for memory and audit; 0 leaves them out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-adk", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, out = generated(arguments.events, folder), folder / "out.db"
        ratios = []
        for _ in range(arguments.rounds):
            costs = []
            if not arguments.no_adk:
                urls = ("--source_db_url", f"sqlite:///{source}", "--dest_db_url", f"sqlite:///{out}")
                costs.append(measure(BIN / "adk", "migrate", "session", *urls))
                show(f"adk migrate, {arguments.events}", costs[-1])
                out.unlink()
            costs.append(measure(BIN / "exhume", "migrate", source, out, "--format", "json"))
            show(f"exhume migrate, {arguments.events}", costs[-1])
            out.unlink()
            ratios.append(costs[0].cpu / costs[-1].cpu)
        if not arguments.no_adk:
            print(f"median ratio of CPU: {statistics.median(ratios):.1f}")
        if arguments.big:
            source = generated(arguments.big, folder)
            cost = measure(BIN / "exhume", "migrate", source, out, "--format", "json")
            show(f"exhume migrate, {arguments.big}", cost)
            cost = measure(BIN / "exhume", "audit", out, "--format", "json", "--output", folder / "audit.json")
            show(f"exhume audit, {arguments.big}", cost)
            print(f"audit: {arguments.big / cost.cpu:,.0f} events per CPU second")


if __name__ == "__main__":
    main()
