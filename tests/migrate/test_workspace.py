from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from exhume.errors import UsageError
from exhume.migrate.workspace import Workspace, sweep


def killed_workspace(parent: Path) -> Path:
    """A workspace whose owner was ended by SIGKILL."""
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from exhume.migrate.workspace import Workspace\n"
        "made = Workspace(Path(sys.argv[1]))\n"
        "made.file('half.db').write_bytes(b'half')\n"
        "print(made.path, flush=True)\n"
        "time.sleep(60)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program, str(parent)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    path = Path(child.stdout.readline().strip())
    assert sweep(parent) == [], "its owner lives"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    return path


def test_folder_and_files_are_private_and_vanish(tmp_path: Path) -> None:
    with Workspace(tmp_path) as made:
        path = made.file("hop.db")
        assert stat.S_IMODE(made.path.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert list(tmp_path.iterdir()) == [made.path]
    assert list(tmp_path.iterdir()) == []


def test_leftover_of_a_killed_run_is_removed(tmp_path: Path) -> None:
    left = killed_workspace(tmp_path)
    assert (left / "half.db").exists()
    assert sweep(tmp_path) == [left]
    assert list(tmp_path.iterdir()) == []


def test_own_live_folder_is_left_alone(tmp_path: Path) -> None:
    with Workspace(tmp_path) as made:
        assert sweep(tmp_path) == []
        assert made.path.is_dir()


@pytest.mark.parametrize("change", ["no marker", "other magic", "not json", "other mode", "other name", "a file"])
def test_what_is_not_provably_ours_is_left_alone(tmp_path: Path, change: str) -> None:
    left = killed_workspace(tmp_path)
    marker = left / "owner.json"
    if change == "no marker":
        marker.unlink()
    elif change == "other magic":
        marker.write_text(json.dumps({"made_by": "somebody else", "pid": 1}))
    elif change == "not json":
        marker.write_text("exhume workspace 1")
    elif change == "other mode":
        left.chmod(0o755)
    elif change == "other name":
        left = left.rename(tmp_path / ".exhume-work-precious-things")
    else:
        for name in left.iterdir():
            name.unlink()
        left.rmdir()
        left.write_text("a file of that name")
    assert sweep(tmp_path) == []
    assert left.exists()


def test_links_are_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    left = killed_workspace(elsewhere)
    here = tmp_path / "here"
    here.mkdir()
    (here / left.name).symlink_to(left)
    assert sweep(here) == []
    assert left.is_dir()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="temporary folder"):
        Workspace(tmp_path / "missing")


def test_sweeping_a_missing_folder_finds_nothing(tmp_path: Path) -> None:
    assert sweep(tmp_path / "missing") == []
    assert not os.path.lexists(tmp_path / "missing")
