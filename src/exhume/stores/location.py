"""What a person calls a store, as text, becomes a `Location`: which kind, where, and a name fit to be shown."""

from __future__ import annotations

import enum
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

from exhume.errors import UsageError
from exhume.redact import mask_url


class Kind(enum.StrEnum):
    """Every kind of store; `exhume.stores` has one opener for each."""

    SQLITE = "sqlite"
    SERVER = "server"
    DUMP = "dump"
    EXPORT = "export"


@dataclass(frozen=True, slots=True)
class Location:
    """A store: files have a `path`, servers a `url` for a synchronous SQLAlchemy driver; `name` is redacted."""

    kind: Kind
    name: str
    path: Path | None = None
    url: str | None = None


SQLITE_MAGIC = b"SQLite format 3\x00"

#: SQLAlchemy dialect -> the synchronous driver that exhume installs for it. ADK's releases want now synchronous and
#: now asynchronous drivers for the same server, so the driver in a URL says nothing about the server.
_SERVER_DRIVERS = {
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9.\-]*)(?:\+[A-Za-z0-9_.\-]+)?://", re.ASCII)
_HEAD = 4096
_JSON_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*[\[{]")
#: First words of what pg_dump, mariadb-dump, mysqldump and sqlite3 `.dump` write, or a custom-format pg_dump.
_DUMP_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:--|/\*|\\restrict\b|PGDMP|(?:PRAGMA|BEGIN|SET|CREATE|INSERT|DROP|COPY|LOCK|USE)\b)",
    re.IGNORECASE,
)


def parse_location(source: str | os.PathLike[str], *, what: str = "source") -> Location:
    """The location that a bare path, a `file:` URI or a database URL names.

    Accepted are all spellings that ADK accepts: `sqlite:///relative`, `sqlite:////absolute`, `sqlite+aiosqlite://...`
    (SqliteSessionService and DatabaseSessionService, google-adk 2.13), and server URLs with any driver. A path that is
    spelt with percent escapes is decoded only where no file has the literal name, as SQLAlchemy takes it literally and
    SqliteSessionService decodes it.

    Args:
        what: how errors call it.

    Raises:
        UsageError: the scheme is unknown, or the URL names no file (an in-memory database, a remote host).
    """
    if isinstance(source, os.PathLike):
        path = Path(source)
        return Location(kind=sniff(path), name=str(path), path=path)
    if not source.strip():
        raise UsageError(f"the {what} is empty.", todo="Name a database file or a database URL.")
    if "\x00" in source:
        raise UsageError(f"the {what} holds a NUL character.", todo="Name a database file or a database URL.")
    if source[:5].lower() == "file:":
        path = _path_of_file_uri(source)
        return Location(kind=sniff(path), name=mask_url(source), path=path)
    match = _SCHEME.match(source)
    if match is None:
        if source[:7].lower() == "sqlite:" or source == ":memory:":
            raise UsageError(
                f"{source} names no database file.", todo="Write sqlite:///relative.db or sqlite:////absolute.db."
            )
        return Location(kind=sniff(Path(source)), name=source, path=Path(source))
    scheme = match.group(1).lower()
    if scheme == "sqlite":
        path = _path_of_sqlite_url(source, source[match.end() :])
        return Location(kind=sniff(path), name=mask_url(source), path=path)
    if scheme in _SERVER_DRIVERS:
        return Location(
            kind=Kind.SERVER, name=mask_url(source), url=f"{_SERVER_DRIVERS[scheme]}://{source[match.end() :]}"
        )
    raise UsageError(
        f"{mask_url(source)} has a scheme that exhume does not know.",
        todo="Known are plain paths, file:, sqlite, postgresql, mysql and mariadb URLs.",
    )


def sniff(path: Path) -> Kind:
    """The kind of the file at `path` by its first bytes.

    What cannot be read or is not recognised counts as SQLite, whose opener says exactly what is wrong with it.
    """
    try:
        if not path.is_file():
            return Kind.SQLITE
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return Kind.SQLITE
    if head.startswith(SQLITE_MAGIC):
        return Kind.SQLITE
    if _JSON_START.match(head):
        return Kind.EXPORT
    if _DUMP_START.match(head):
        return Kind.DUMP
    return Kind.SQLITE


def same_location(first: Location, second: Location) -> bool:
    """Do both name the same store? Files: the same inode (so also symbolic and hard links) or the same resolved path.

    Servers are compared by dialect, host, port and database; user and driver do not matter.
    """
    if first.path is not None and second.path is not None:
        try:
            return os.path.samefile(first.path, second.path)
        except OSError:  # at least one does not exist (yet): only names can be compared
            return _resolved(first.path) == _resolved(second.path)
    if first.url is not None and second.url is not None:
        return _server_identity(first.url) == _server_identity(second.url)
    return False


def _resolved(path: Path) -> str:
    return os.path.normcase(os.path.realpath(path))


def _server_identity(url: str) -> tuple[str, str, int, str]:
    parts = urlsplit(url)
    dialect = parts.scheme.partition("+")[0].replace("mariadb", "mysql")
    host = (parts.hostname or "localhost").lower()
    host = "localhost" if host in ("127.0.0.1", "::1") else host
    try:
        port = parts.port
    except ValueError:
        port = None
    return dialect, host, port or (5432 if dialect == "postgresql" else 3306), parts.path.strip("/")


def _path_of_sqlite_url(url: str, rest: str) -> Path:
    """The path in `rest`, what stands after `sqlite://`: a slash and the path, then perhaps a query."""
    rest, _, query = rest.partition("?")
    host, slash, text = rest.partition("/")
    if host or not slash or text in ("", ":memory:") or "mode=memory" in query:
        raise UsageError(
            f"{mask_url(url)} names no database file.", todo="Write sqlite:///relative.db or sqlite:////absolute.db."
        )
    if text[:5].lower() == "file:":  # SQLAlchemy's spelling: sqlite:///file:path?uri=true
        return _path_of_file_uri(text)
    return _literal_or_decoded(text)


def _path_of_file_uri(uri: str) -> Path:
    """The path of a `file:` URI as SQLite reads it: percent escapes decoded, query and fragment ignored."""
    parts = urlsplit(uri)
    if parts.netloc.lower() not in ("", "localhost") or parts.path in ("", ":memory:"):
        raise UsageError(
            f"{mask_url(uri)} names no file on this machine.", todo="Write file:relative or file:///absolute."
        )
    if "mode=memory" in parts.query:
        raise UsageError(f"{mask_url(uri)} names an in-memory database.", todo="Name a database file.")
    return Path(_decoded(parts.path))


def _literal_or_decoded(text: str) -> Path:
    literal = Path(text)
    if "%" not in text or os.path.lexists(literal):
        return literal
    decoded = Path(_decoded(text))
    return decoded if os.path.lexists(decoded) else literal


def _decoded(text: str) -> str:
    plain = unquote_to_bytes(text.encode("utf-8", "surrogateescape"))
    if b"\x00" in plain:
        raise UsageError("the path holds a NUL character.", todo="Name a database file.")
    return os.fsdecode(plain)


__all__ = ["SQLITE_MAGIC", "Kind", "Location", "parse_location", "same_location", "sniff"]
