"""From a finished temporary file to its final name: never over another file, and on the disk before it is seen."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from exhume.errors import Incomplete, Refused, UsageError
from exhume.stores import same_store
from exhume.stores.location import Kind, parse_location

_SIDECARS = ("-wal", "-shm", "-journal")


def destination_path(
    text: str | os.PathLike[str],
    source: str | os.PathLike[str],
    *,
    what: str = "destination",
    may_exist: bool = False,
) -> Path:
    """The path of a file to make.

    Args:
        text: path or SQLite URL.
        source: of the migration, which must be another file.
        what: how errors call it.
        may_exist: a file of that name is no error.

    Raises:
        UsageError: not a file name, or its folder does not exist.
        Refused: it is the source, or exists.
    """
    if os.fspath(text) == "-":
        raise UsageError(f"the {what} cannot be a stream.", todo="Name a SQLite file to make.")
    location = parse_location(text, what=what)
    if location.path is None or location.kind is Kind.SERVER:
        raise UsageError(f"the {what} {location.name} is a server.", todo="Name a SQLite file to make.")
    path = location.path
    if same_store(location, source):
        raise Refused(f"the {what} is the source.", todo="Name another file.")
    if is_sidecar(path, parse_location(source).path):
        raise Refused(f"the {what} has the name of a file that belongs to the source.", todo="Name another file.")
    if os.path.isdir(path):
        raise UsageError(f"the {what} {path} is a folder.", todo="Name a file to make.")
    try:
        is_folder = stat.S_ISDIR(path.parent.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        is_folder = False
    except OSError as error:  # a folder that may not be entered, a name that is too long, a loop of links
        raise UsageError(f"the {what} {path} cannot be made: {error.strerror}.", todo="Name another file.") from error
    if not is_folder:
        raise UsageError(
            f"the folder {path.parent} of the {what} does not exist.", todo="Make it, or name another file."
        )
    try:
        path.lstat()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise UsageError(f"the {what} {path} cannot be made: {error.strerror}.", todo="Name another file.") from error
    for taken in (path, *(path.with_name(path.name + suffix) for suffix in _SIDECARS)):
        if os.path.lexists(taken) and not (may_exist and taken == path):
            raise Refused(f"the {what} cannot be made: {taken} exists.", todo="Name a file that does not exist.")
    return path


def is_sidecar(path: Path, database: Path | None) -> bool:
    """Would SQLite take `path` for a part of `database`?"""
    if database is None:
        return False
    own = os.path.realpath(path)
    return any(own == os.path.realpath(database) + suffix for suffix in _SIDECARS)


def mode_like(source: Path | None) -> int:
    """File mode for what is made of `source`: as private as the source is, and writable by its owner."""
    umask = os.umask(0o077)
    os.umask(umask)
    allowed = stat.S_IMODE(source.stat().st_mode) if source is not None else 0o600
    return (allowed | 0o600) & 0o666 & ~umask


def publish(finished: Path, final: Path, mode: int) -> None:
    """Gives `finished` its final name in the same file system, durably.

    Raises:
        Refused: a file of that name has come up meanwhile; it is left alone.
        Incomplete: the file cannot be written out or renamed.
    """
    try:
        os.chmod(finished, mode)
        _sync(finished)
        try:
            os.link(finished, final)  # unlike a rename, this fails when the name is taken
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES):
                raise
            # a file system without hard links: take the name first, then move over our own empty file
            os.close(os.open(final, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
            os.replace(finished, final)
        else:
            finished.unlink()
        _sync(final.parent)
    except FileExistsError:
        raise Refused(f"{final} has been made by something else meanwhile.", todo="Name another file.") from None
    except OSError as error:
        raise Incomplete(
            f"{final} cannot be written: {error.strerror}.", todo="Check the disk and run again."
        ) from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
