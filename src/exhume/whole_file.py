"""Writes a file that is complete the moment it has its name."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from exhume.errors import Incomplete, UsageError
from exhume.redact import printable

#: Bytes that are handed to the system at once; a piece of a report is about 1,000.
_BUFFER = 256 * 1024
#: Names of open files. They are links, too, and to rename something over one would take the name away from everybody.
_OPEN_FILE = re.compile(r"/dev/(?:std(?:in|out|err)|fd/\d+)|/proc/[^/]+/fd/\d+")


def write_whole(pieces: Iterable[str], path: Path, *, option: str) -> None:
    """Writes text to `path`, which an earlier file may have.

    It is written beside its final name, synced, then renamed over it: a reader never sees half a file, and an earlier
    one survives a failure. The earlier one's mode is kept. A symbolic link stays, and the file that it leads to is
    replaced. A device, a pipe and an open file by its number (`/dev/fd/3`) are written to as they are.

    Args:
        option: the option that named the file, for messages.

    Raises:
        UsageError: a folder has that name, or its folder does not exist or cannot be written.
        Incomplete: the file cannot be written to its end (the disk is full).
        BrokenPipeError: whoever read the device `path` has gone.
    """
    if os.path.isdir(path):
        raise UsageError(f"{printable(path)} is a folder.", todo=f"Name a file with {option}.")
    if _OPEN_FILE.fullmatch(os.path.abspath(path)) or (os.path.exists(path) and not os.path.isfile(path)):
        _write_device(pieces, path, option)
        return
    path = Path(os.path.realpath(path))
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".part", dir=path.parent)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{printable(path)} cannot be written: {_reason(error)}.",
            todo="Name a file in a folder that exists and can be written.",
        ) from error
    part = Path(name)
    try:
        with os.fdopen(handle, "w", _BUFFER, encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        part.chmod(_usual_mode(path))
        part.replace(path)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise Incomplete(
            f"{printable(path)} could not be written: {_reason(error)}.",
            todo="Free space, then run again." if full else f"Name another file with {option}.",
        ) from error
    finally:
        part.unlink(missing_ok=True)


def _write_device(pieces: Iterable[str], path: Path, option: str) -> None:
    """Writes to what must not be replaced, such as `/dev/stdout` or a named pipe, after what an open file holds."""
    try:
        with path.open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.writelines(pieces)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Incomplete(
            f"{printable(path)} could not be written: {_reason(error)}.", todo=f"Name another file with {option}."
        ) from error


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _usual_mode(path: Path) -> int:
    """The mode of the file that is replaced, else what the umask gives a new one."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
