"""Writes refused values to a folder, raw, for whoever wants to look at them; never over anything that is there."""

from __future__ import annotations

import os
from pathlib import Path

from exhume.errors import UsageError

_MOST_FILES = 10_000


class Extraction:
    """A folder that gets one file for each value, named by its sha256.

    Raises:
        UsageError: the folder cannot be made or written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: list[str] = []
        self._kept = 0
        self._left_out = 0
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot_write(folder, error) from error

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the report."""
        notes = []
        if self._kept:
            notes.append(f"{self._kept} refused values were in the folder already and are left as they are.")
        if self._left_out:
            notes.append(f"{self._left_out} refused values were not extracted: {_MOST_FILES} files are enough.")
        return tuple(notes)

    def write(self, sha256: str, data: bytes) -> None:
        """Writes one value, readable by the user alone: it may be anything."""
        if len(self.written) >= _MOST_FILES:
            self._left_out += 1
            return
        name = f"{sha256}.pickle"
        try:
            # O_EXCL refuses an existing name and never follows a link there
            file = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            self._kept += 1
            return
        except OSError as error:
            raise _cannot_write(self.folder, error) from error
        try:
            with os.fdopen(file, "wb") as target:
                target.write(data)
        except OSError as error:
            raise _cannot_write(self.folder, error) from error
        self.written.append(name)


def _cannot_write(folder: Path, error: OSError) -> UsageError:
    return UsageError(
        f"Refused values cannot be written to '{folder}': {error.strerror}.",
        todo="Pass a folder that you may write to.",
    )
