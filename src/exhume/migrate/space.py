"""Free disk space, looked at before anything is written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from exhume.errors import Refused

#: A JSON layout takes about as much as the pickled one (measured: 0.9 to 1.3 times); indexes and slack come on top.
_FACTOR = 1.5
_LEAST = 1 << 20


def estimate(source_bytes: int) -> int:
    """Bytes that one copy of a source of that size may take in another layout."""
    return int(source_bytes * _FACTOR) + _LEAST


def size_of(path: Path) -> int:
    """Bytes of a SQLite file with its write-ahead log."""
    total = 0
    for suffix in ("", "-wal"):
        try:
            total += os.stat(f"{path}{suffix}").st_size
        except FileNotFoundError:
            continue  # no write-ahead log is the ordinary case
    return total


def require(needed: Mapping[Path, int]) -> None:
    """Checks folders against the bytes that will be written there; folders of one disk add up.

    Raises:
        Refused: a disk has less free than is needed.
    """
    by_disk: dict[int, tuple[Path, int]] = {}
    for folder, size in needed.items():
        disk = os.stat(folder).st_dev
        first, total = by_disk.get(disk, (folder, 0))
        by_disk[disk] = (first, total + size)
    for folder, total in by_disk.values():
        free = shutil.disk_usage(folder).free
        if free < total:
            raise Refused(
                f"the disk of {folder} has {in_units(free)} free, about {in_units(total)} are needed.",
                todo="Free some space, or choose another place for the destination or for --workdir.",
            )


def in_units(size: int) -> str:
    """Such as `38.1 MB`."""
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
