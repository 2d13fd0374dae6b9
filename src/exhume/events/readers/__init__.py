"""One reader per layout, registered here in one line each."""

from __future__ import annotations

from collections.abc import Callable

from exhume.errors import Refused
from exhume.events.interface import Reader, ReadOptions
from exhume.events.readers.exported import ExportReader
from exhume.events.readers.v0 import V0Reader
from exhume.events.readers.v1 import SqliteServiceReader, V1Reader, V1UnmarkedReader
from exhume.schema.detection import Detection, Layout
from exhume.stores.interface import Store

_READERS: dict[Layout, Callable[[Store, Detection, ReadOptions], Reader]] = {
    Layout.V0: V0Reader,
    Layout.V1: V1Reader,
    Layout.V1_UNMARKED: V1UnmarkedReader,
    Layout.SQLITE_SERVICE: SqliteServiceReader,
    Layout.EXPORT: ExportReader,
}


def open_reader(store: Store, detection: Detection, options: ReadOptions | None = None) -> Reader:
    """The reader for what `detect` found.

    Raises:
        Refused: for a layout whose events cannot be read (mixed, foreign, of an unknown version).
    """
    reader = _READERS.get(detection.layout)
    if reader is None:
        raise Refused(
            f"The events of a store of layout {detection.layout} cannot be read.",
            todo="Run `exhume detect` to see what contradicts what.",
        )
    return reader(store, detection, options or ReadOptions())


def readable_layouts() -> tuple[Layout, ...]:
    """All layouts that have a reader."""
    return tuple(_READERS)
