"""Where a report goes: to a stream, or to a file that is complete the moment it has its name."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from exhume.errors import Incomplete, UsageError

#: Bytes of a report that are handed to the system at once; a piece of one is about 1,000.
_FILE_BUFFER = 256 * 1024


def write(pieces: Iterable[str], *, output: Path | None, stream: TextIO) -> None:
    """Writes a report to `output`, or to `stream` when that is None.

    A file is written beside its final name, synced, then renamed over it: a reader never sees half a report, and an
    earlier report survives a failure.

    Raises:
        UsageError: the folder does not exist or cannot be written.
        Incomplete: the disk is full.
        BrokenPipeError: whoever read the stream has gone.
    """
    if output is None:
        _write_stream(pieces, stream)
    else:
        _write_file(pieces, output)


def _write_stream(pieces: Iterable[str], stream: TextIO) -> None:
    # a terminal in a narrow encoding must not end a report in an exception
    encoding = stream.encoding or "utf-8"
    try:
        for piece in pieces:
            stream.write(piece.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        raise  # whoever read us has gone (`| head`): nothing to tell
    except OSError as error:
        raise Incomplete(f"The report could not be written: {error.strerror}.", todo="Use -o FILE.") from error


def _write_file(pieces: Iterable[str], output: Path) -> None:
    if os.path.isdir(output):
        raise UsageError(f"{output} is a folder.", todo="Name a file with -o.")
    if os.path.exists(output) and not os.path.isfile(output):
        _write_device(pieces, output)
        return
    try:
        handle, name = tempfile.mkstemp(prefix=f".{output.name[:100]}.", suffix=".part", dir=output.parent)
    except OSError as error:
        raise UsageError(
            f"{output} cannot be written: {error.strerror}.",
            todo="Name a file in a folder that exists and can be written.",
        ) from error
    part = Path(name)
    try:
        with os.fdopen(handle, "w", _FILE_BUFFER, encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        part.chmod(_usual_mode(output))
        part.replace(output)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise Incomplete(
            f"{output} could not be written: {error.strerror}.",
            todo="Free space, then run again." if full else "Name another file with -o.",
        ) from error
    finally:
        part.unlink(missing_ok=True)


def _write_device(pieces: Iterable[str], output: Path) -> None:
    """Writes to what is no regular file, such as `/dev/stdout` or a named pipe: it must not be replaced."""
    try:
        with output.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.writelines(pieces)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Incomplete(
            f"{output} could not be written: {error.strerror}.", todo="Name another file with -o."
        ) from error


def _usual_mode(output: Path) -> int:
    """The mode of the file that is replaced, else what the umask gives a new one."""
    if output.exists():
        return output.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
