"""Private folders for files that are not finished: made beside where they go, removed on every way out.

Each folder is 0700 and holds a marker file that its owner keeps locked. The kernel drops the lock when the process
ends, however it ends; so a later run can prove that a folder is exhume's own and that its owner is dead, and only then
removes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from exhume.errors import UsageError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # pragma: no cover - no such locks on Windows: leftovers are then left alone
    fcntl = None

_MAGIC = "exhume workspace 1"
_MARKER = "owner.json"
_PREFIX = ".exhume-work-"
_NAME = re.compile(re.escape(_PREFIX) + r"[a-z0-9_]{8}\Z")


class Workspace:
    """A private folder inside `parent`, which must exist; use as a context manager.

    Raises:
        UsageError: the folder cannot be made there.
    """

    def __init__(self, parent: Path) -> None:
        try:
            # under another name until the marker is locked, so that no other run can take it for a leftover
            fresh = Path(tempfile.mkdtemp(prefix=".exhume-new-", dir=parent))
        except OSError as error:
            raise UsageError(
                f"a temporary folder cannot be made in {parent}: {error.strerror}.",
                todo="Choose a folder that can be written.",
            ) from error
        self._marker = os.open(fresh / _MARKER, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(self._marker, json.dumps({"made_by": _MAGIC, "pid": os.getpid(), "started": time.time()}).encode())
        if fcntl is not None:
            fcntl.flock(self._marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.path = fresh.with_name(_PREFIX + fresh.name.removeprefix(".exhume-new-"))
        fresh.rename(self.path)

    def file(self, name: str) -> Path:
        """A new empty file of mode 0600 in the folder."""
        path = self.path / name
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        return path

    def close(self) -> None:
        """Removes the folder and all in it; may be called again."""
        if self._marker >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._marker)
            self._marker = -1

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def sweep(parent: Path) -> list[Path]:
    """Removes folders that an exhume which was killed left in `parent`; gives their paths.

    Only real folders of this user with exhume's name and marker are looked at, and only those whose marker nobody holds
    locked are removed.
    """
    removed: list[Path] = []
    try:
        candidates = sorted(path for path in parent.iterdir() if _NAME.match(path.name))
    except OSError:
        return removed  # a folder that cannot be listed holds nothing that could be removed
    for folder in candidates:
        with _dead_marker(folder) as dead:
            if dead:
                shutil.rmtree(folder, ignore_errors=True)
                removed.append(folder)
    return removed


@contextlib.contextmanager
def _dead_marker(folder: Path) -> Iterator[bool]:
    """Is `folder` exhume's own, and its owner dead? The lock is held while the caller acts on the answer."""
    if fcntl is None or not _is_own_folder(folder):
        yield False
        return
    try:
        marker = os.open(folder / _MARKER, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        yield _is_marker(marker) and _lock(marker)
    finally:
        os.close(marker)


def _is_own_folder(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == 0o700


def _is_marker(descriptor: int) -> bool:
    try:
        marker = json.loads(os.read(descriptor, 4096))
    except (OSError, ValueError):
        return False
    return isinstance(marker, dict) and marker.get("made_by") == _MAGIC and isinstance(marker.get("pid"), int)


def _lock(descriptor: int) -> bool:
    assert fcntl is not None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
