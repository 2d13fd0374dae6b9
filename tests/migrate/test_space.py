from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from exhume.errors import Refused
from exhume.migrate import space


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_too_little_space_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(100, 99, 1000))
    space.require({tmp_path: 1000})
    with pytest.raises(Refused, match=r"1\.0 kB free, about 1\.0 kB are needed"):
        space.require({tmp_path: 1001})


def test_folders_of_one_disk_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(100, 99, 1000))
    space.require({tmp_path: 500, other: 500})
    with pytest.raises(Refused):
        space.require({tmp_path: 500, other: 501})


def test_the_write_ahead_log_counts(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(b"12345")
    assert space.size_of(path) == 5
    (tmp_path / "x.db-wal").write_bytes(b"123")
    assert space.size_of(path) == 8
    assert space.estimate(8) > 8


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (38_072_320, "38.1 MB"), (10**13, "10.0 TB")]
)
def test_sizes_are_told_in_units(size: int, text: str) -> None:
    assert space.in_units(size) == text
