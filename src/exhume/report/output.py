"""Where a report goes: to a stream, or to a file that is complete the moment it has its name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from exhume.errors import Incomplete
from exhume.whole_file import write_whole


def write(pieces: Iterable[str], *, output: Path | None, stream: TextIO) -> None:
    """Writes a report to `output`, or to `stream` when that is None.

    Raises:
        UsageError: the folder does not exist or cannot be written.
        Incomplete: the report cannot be written to its end.
        BrokenPipeError: whoever read the stream has gone.
    """
    if output is None:
        _write_stream(pieces, stream)
    else:
        write_whole(pieces, output, option="-o")


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
