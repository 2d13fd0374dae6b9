"""The standard streams of the process, made safe to use in whatever state it was started with them."""

from __future__ import annotations

import errno
import os
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING, TextIO

from exhume.errors import Incomplete

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_BUFFER = 64 * 1024


def secure() -> None:
    """Makes stdout tell once, as an `Incomplete`, that it takes nothing, and stderr take everything.

    A stream that is closed (`>&-`) gets a place holder: the next file that is opened, such as a database, would
    otherwise have its number, and what is written to the stream would go there.
    """
    for number, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # takes the lowest number that is free: this one
    sys.stdout = _text(_Stdout(1, "wb", closefd=False), sys.stdout)
    sys.stderr = _text(_Stderr(2, "wb", closefd=False), sys.stderr)


class _Stdout(FileIO):
    """After its first error it takes everything, so that the flush at exit does not fail once more."""

    _failed = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Writes some bytes; `BrokenPipeError` and `Incomplete` say, once, that nothing more can be written."""
        if self._failed:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except BrokenPipeError:
            self._failed = True
            raise
        except OSError as error:
            self._failed = True
            reason = "it is closed" if error.errno == errno.EBADF else error.strerror
            raise Incomplete(
                f"Stdout could not be written: {reason}.", todo="Send it elsewhere; a report may go to a file: -o FILE."
            ) from error


class _Stderr(FileIO):
    """A message that nobody can read changes nothing about the run."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Writes some bytes, or does not."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def _text(raw: FileIO, before: TextIO | None) -> TextIOWrapper:
    """`raw` as text in the encoding of the stream that it takes the place of."""
    file = BufferedWriter(raw, _BUFFER)
    if isinstance(before, TextIOWrapper):
        return TextIOWrapper(file, before.encoding, before.errors, line_buffering=before.line_buffering)
    return TextIOWrapper(file, "utf-8", "backslashreplace")
