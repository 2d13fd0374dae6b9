"""What SQLite's errors mean to a person, and what to do about each."""

from __future__ import annotations

import sqlite3

from exhume.errors import NothingToLookAt
from exhume.redact import printable

#: All that reading can raise. UnicodeError: Python cannot decode SQLite's message where that quotes a damaged schema.
FAILURES = (sqlite3.Error, MemoryError, UnicodeError)
#: Longest value in bytes that is read. ADK has no such values; a file that claims one is out for memory.
LONGEST_VALUE = 256 << 20

_RECOVER = "Get another copy, or try `sqlite3 FILE .recover`."
_LOCKED = (
    "is locked by another process that writes.",
    "Wait until it is done, or read a copy made by `sqlite3 FILE '.backup COPY'`.",
)
_UNKNOWN = ("cannot be read: {error}.", "Check the file with `sqlite3 FILE .schema`.")
_REASONS = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_CORRUPT: ("is damaged: {error}.", _RECOVER),
    sqlite3.SQLITE_NOTADB: ("is damaged or encrypted: {error}.", "Decrypt it first, or get another copy."),
    sqlite3.SQLITE_IOERR: ("cannot be read to the end: {error}.", "Check the disk, or get another copy."),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened: {error}.", "Check its permissions, or read a copy."),
    sqlite3.SQLITE_FULL: ("cannot be sorted: the folder for temporary files is full.", "Set TMPDIR to another folder."),
    sqlite3.SQLITE_NOMEM: ("needs more memory than there is.", "Allow more memory."),
    sqlite3.SQLITE_TOOBIG: (f"holds a value of more than {LONGEST_VALUE} bytes.", "Take that row out of a copy."),
    sqlite3.SQLITE_INTERRUPT: ("is damaged: it unfolds to more rows than fit into it.", _RECOVER),
}


def explained(name: str, error: Exception, *, exhausted: bool) -> NothingToLookAt:
    """The error for a person.

    Args:
        name: of the store, redacted.
        error: one of `FAILURES`.
        exhausted: was it the budget of steps that stopped SQLite?

    Raises:
        KeyboardInterrupt: something else stopped it, which can only be an exception that a signal raised inside the
            budget's callback: SQLite swallows those.
    """
    if isinstance(error, MemoryError):
        what, todo = _REASONS[sqlite3.SQLITE_NOMEM]
    elif isinstance(error, UnicodeError):
        return damaged(name, "its schema is no text")
    else:
        code = primary_code(error)
        if code == sqlite3.SQLITE_INTERRUPT and not exhausted:
            raise KeyboardInterrupt from error
        what, todo = _REASONS.get(code, _UNKNOWN)
    return NothingToLookAt(f"{name} {what.format(error=printable(error, limit=200))}", todo=todo)


def damaged(name: str, how: str) -> NothingToLookAt:
    """The error for a file whose inside contradicts itself."""
    return NothingToLookAt(f"{name} is damaged: {how}.", todo=_RECOVER)


def primary_code(error: Exception) -> int:
    """SQLite's result code without its extension; SQLITE_ERROR where Python gives none."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else sqlite3.SQLITE_ERROR
