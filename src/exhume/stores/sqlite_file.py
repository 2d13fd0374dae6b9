"""A SQLite database as files: its header, what lies beside it, its hash, and a private copy where one is needed.

Nothing here goes through SQLite. SQLite itself writes beside a database merely to read it (`-shm` for a write-ahead
log, the roll-back of a hot journal), so that a database in such a state is read from a private copy.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import stat
import tempfile
import weakref
from collections import Counter
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from exhume.errors import NothingToLookAt
from exhume.redact import printable
from exhume.stores.interface import Sidecar
from exhume.stores.location import SQLITE_MAGIC

#: Last eight bytes of a rollback journal that belongs to a transaction over several databases. SQLite follows the
#: file name before them, and deletes that file: a stranger's journal must not be rolled back then, not even in a copy.
_SUPER_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_HEADER_SIZE = 100
_CHUNK = 1 << 20
_COPY_ATTEMPTS = 3
_ENCODINGS = {0: "utf-8", 1: "utf-8", 2: "utf-16", 3: "utf-16"}


@dataclass(frozen=True, slots=True)
class Header:
    """What the first hundred bytes of a database file say; sizes in bytes, `pages` is None where it is not recorded."""

    page_size: int
    pages: int | None
    wal: bool
    encoding: str


class SourceFile:
    """The database file, opened once for reading and kept open until the end.

    POSIX drops all of a process's locks on a file when any descriptor of it is closed: one that was closed in between
    would take away the lock under which SQLite reads.

    Args:
        path: the database file; symbolic links are followed, as SQLite does for the files beside it.

    Raises:
        NothingToLookAt: there is no readable database file; the message says what is there instead.
    """

    def __init__(self, path: Path, *, name: str) -> None:
        self.name = name
        self.path = _regular_file(path, name)
        try:
            self._file: FileIO = self.path.open("rb", buffering=0)
        except PermissionError as error:
            raise NothingToLookAt(
                f"{name} may not be read.", todo="Ask for read permission, or read a copy."
            ) from error
        except OSError as error:
            raise NothingToLookAt(f"{name} cannot be opened: {error.strerror}.", todo="Check the path.") from error
        try:
            self.size = os.fstat(self._file.fileno()).st_size
            self.header = self._read_header()
        except OSError as error:
            self.close()
            raise self._unreadable(error) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._file.close()

    def sha256(self) -> str:
        """sha256 of the whole file as it is now, in hexadecimal.

        Raises:
            NothingToLookAt: the disk, or what poses as one, gives an error.
        """
        try:
            self._file.seek(0)
            return hashlib.file_digest(self._file, "sha256").hexdigest()
        except OSError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: OSError) -> NothingToLookAt:
        return NothingToLookAt(
            f"{self.name} cannot be read: {error.strerror}.", todo="Copy the file from a disk that can be read."
        )

    def sidecars(self) -> tuple[Sidecar, ...]:
        """The files of SQLite that lie beside the database now."""
        found = []
        for kind in ("wal", "journal", "shm"):
            path = self.sidecar_path(kind)
            try:
                status = path.lstat()
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                found.append(Sidecar(kind, str(path), status.st_size, _meaning(kind, path)))
        return tuple(found)

    def log_state(self) -> tuple[int, int] | None:
        """Size and time of change of a write-ahead log that holds anything, else None."""
        try:
            status = self.sidecar_path("wal").lstat()
        except OSError:
            return None
        return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) and status.st_size else None

    def odd_sidecars(self) -> list[str]:
        """Names of what lies where a log or journal would be and is a link or folder. SQLite would act on it."""
        paths = [self.sidecar_path(kind) for kind in ("wal", "journal")]
        return [
            printable(path.name) for path in paths if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode)
        ]

    def sidecar_path(self, kind: str) -> Path:
        return self.path.with_name(f"{self.path.name}-{kind}")

    def copy(self, folder: Path, kinds: tuple[str, ...]) -> Path:
        """Copies the database and the named sidecars into `folder`; the database must stand still meanwhile.

        Raises:
            NothingToLookAt: no space for the copy, a sidecar cannot be read, or a writer keeps changing the file.
        """
        target = folder / "copy.db"
        needed = self.size + sum(_size(self.sidecar_path(kind)) for kind in kinds)
        if shutil.disk_usage(folder).free < needed + (16 << 20):
            raise NothingToLookAt(
                f"{self.name} must be copied to be read, and {folder.parent} has less than {needed} bytes free.",
                todo="Set TMPDIR to a folder with more space.",
            )
        try:
            for _ in range(_COPY_ATTEMPTS):
                copied = hashlib.sha256()
                with target.open("wb") as out:
                    self._file.seek(0)
                    while chunk := self._file.read(_CHUNK):
                        copied.update(chunk)
                        out.write(chunk)
                for kind in kinds:
                    shutil.copyfile(self.sidecar_path(kind), f"{target}-{kind}", follow_symlinks=False)
                # What a log or journal adds to is the database as it was copied only if that is still the database.
                if copied.hexdigest() == self.sha256():
                    return target
        except OSError as error:
            raise NothingToLookAt(
                f"{self.name} cannot be copied to be read: {error.strerror}.", todo="Copy it with the files beside it."
            ) from error
        raise NothingToLookAt(
            f"{self.name} is being changed by another process.",
            todo="Stop the writer, or read a backup made by `.backup`.",
        )

    def has_super_journal(self) -> bool:
        """Does the journal beside the database name a second journal, of a transaction over several databases?"""
        path = self.sidecar_path("journal")
        try:
            with path.open("rb") as journal:
                journal.seek(-8, os.SEEK_END)
                return journal.read(8) == _SUPER_JOURNAL_MAGIC
        except OSError:
            return False

    def _read_header(self) -> Header:
        self._file.seek(0)
        head = self._file.read(4096)
        if not head:
            raise NothingToLookAt(
                f"{self.name} is empty (0 bytes).", todo="Check that this is the file that was meant."
            )
        if not head.startswith(SQLITE_MAGIC):
            raise NothingToLookAt(f"{self.name} {_what_it_is(head)}.", todo="Name a SQLite database file.")
        if len(head) < _HEADER_SIZE:
            raise NothingToLookAt(
                f"{self.name} is cut off: {self.size} bytes are no whole SQLite header.", todo="Get the whole file."
            )
        page_size = int.from_bytes(head[16:18], "big")
        page_size = 65536 if page_size == 1 else page_size
        encoding = int.from_bytes(head[56:60], "big")
        if page_size < 512 or page_size & (page_size - 1) or encoding not in _ENCODINGS:
            raise NothingToLookAt(
                f"{self.name} begins like a SQLite database, and its header is damaged.",
                todo="Get another copy, or try `sqlite3 FILE .recover`.",
            )
        # The page count is only kept up to date by writers that also copy the change counter (since SQLite 3.7.0).
        pages = int.from_bytes(head[28:32], "big") if head[24:28] == head[92:96] else 0
        return Header(page_size, pages or None, head[19] == 2, _ENCODINGS[encoding])


class PrivateFolder:
    """A temporary folder that only this user can enter; removed by `close`, at the latest when the process ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="exhume-"))
        self._remove = weakref.finalize(self, shutil.rmtree, str(self.path), ignore_errors=True)

    def close(self) -> None:
        self._remove()


def _regular_file(path: Path, name: str) -> Path:
    """The file itself behind `path`, all links resolved; never opens what might block, such as a pipe."""
    try:
        mode = path.stat().st_mode  # of what a link leads to that has no name, such as the pipe behind /dev/stdin
        streams = not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
        real = path if streams else path.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError) as error:
        if str(path) == "-":
            raise _is_stream("- stands for stdin") from error
        raise NothingToLookAt(f"{name} does not exist.", todo="Check the path; nothing was created.") from error
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, up to Python 3.12
        reason = getattr(error, "strerror", None) or "too many symbolic links"
        raise NothingToLookAt(f"{name} cannot be reached: {reason}.", todo="Check the path.") from error
    if stat.S_ISDIR(mode):
        raise NothingToLookAt(f"{name} is a folder.", todo="Name the database file in it.")
    if streams:
        raise _is_stream(f"{name} is no regular file")
    return real


def _is_stream(what: str) -> NothingToLookAt:
    return NothingToLookAt(
        f"{what}, and a source is read more than once.", todo="Save it to a file, and name that as the source."
    )


def _size(path: Path) -> int:
    try:
        status = path.lstat()
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _meaning(kind: str, path: Path) -> str:
    if kind == "shm":
        return "index of the write-ahead log; holds no data of its own"
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not head.strip(b"\x00"):
        return "empty, or left from a transaction that ended"
    if kind == "wal":
        return "write-ahead log: commits that are not in the database file yet; read from a private copy"
    return "rollback journal: another process is writing, or a transaction was cut off"


def _what_it_is(head: bytes) -> str:
    """The most likely reason why a file does not begin as a SQLite database does."""
    if head.startswith(b"\x1f\x8b"):
        return "is compressed by gzip"
    if head.startswith((b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"BZh", b"\xfd7zXZ")):
        return "is a compressed file or an archive"
    if len(head) >= 512 and _entropy(head) > 7.2:
        return "is no plain SQLite database: its bytes look random, so it is encrypted or damaged"
    return "is no SQLite database"


def _entropy(data: bytes) -> float:
    """Shannon entropy in bits per byte."""
    return -sum(n / len(data) * math.log2(n / len(data)) for n in Counter(data).values())
