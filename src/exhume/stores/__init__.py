"""Where rows come from: one `Store` interface, one module per kind of store, one line of registration each."""

from __future__ import annotations

import os
from collections.abc import Callable

from exhume.errors import NothingToLookAt
from exhume.stores.interface import Store
from exhume.stores.location import Kind, Location, parse_location, same_location


def _open_sqlite(location: Location) -> Store:
    from exhume.stores.sqlite import SqliteStore

    assert location.path is not None
    return SqliteStore(location.path, name=location.name)


def _open_export(location: Location) -> Store:
    from exhume.stores.exported import open_export

    assert location.path is not None
    return open_export(location.path, name=location.name)


#: The registry. A new kind of store is one module and one line here; openers import it only when it is needed.
_OPENERS: dict[Kind, Callable[[Location], Store]] = {
    Kind.SQLITE: _open_sqlite,
    Kind.EXPORT: _open_export,
}


def open_store(source: str | os.PathLike[str] | Location, *, what: str = "source") -> Store:
    """Opens the store that `source` names, read only; errors in the name call it `what`.

    Raises:
        UsageError: `source` cannot be a store.
        NothingToLookAt: there is no such file, or it cannot be read as what it is.
    """
    location = source if isinstance(source, Location) else parse_location(source, what=what)
    opener = _OPENERS.get(location.kind)
    if opener is None:
        raise NothingToLookAt(
            f"{location.name} is a {_WORDS[location.kind]}, which this release does not read.",
            todo="Restore it into a SQLite file, or name a SQLite database.",
        )
    return opener(location)


def same_store(first: str | os.PathLike[str] | Location, second: str | os.PathLike[str] | Location) -> bool:
    """Do both texts name the same store, however spelt: relative, through links, as a URL, with percent escapes?"""
    one, other = (item if isinstance(item, Location) else parse_location(item) for item in (first, second))
    return same_location(one, other)


_WORDS = {Kind.SQLITE: "SQLite file", Kind.SERVER: "server", Kind.DUMP: "SQL dump", Kind.EXPORT: "JSON export"}

__all__ = ["Kind", "Location", "Store", "open_store", "parse_location", "same_store"]
