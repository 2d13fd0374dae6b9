"""One reader per layout, registered here in one line each."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from exhume.errors import NothingToLookAt, Refused
from exhume.events.interface import Reader, ReadOptions
from exhume.redact import printable
from exhume.schema.detection import Detection, Layout
from exhume.stores.interface import Store

#: Layout -> module in this folder and its class; a module is imported when its layout is met (start-up is part of
#: every command).
_READERS: dict[Layout, tuple[str, str]] = {
    Layout.V0: ("v0", "V0Reader"),
    Layout.V1: ("v1", "V1Reader"),
    Layout.V1_UNMARKED: ("v1", "V1UnmarkedReader"),
    Layout.SQLITE_SERVICE: ("v1", "SqliteServiceReader"),
    Layout.GO: ("go", "GoReader"),
    Layout.JS: ("js", "JsReader"),
    Layout.JAVA_FLYWAY: ("go", "JavaFlywayReader"),
    Layout.JAVA_CONTRIB: ("java_contrib", "JavaContribReader"),
    Layout.EXPORT: ("exported", "ExportReader"),
}


def open_reader(store: Store, detection: Detection, options: ReadOptions | None = None) -> Reader:
    """The reader for what `detect` found.

    Raises:
        NothingToLookAt: the source is no session store of ADK.
        Refused: for a layout whose events cannot be read (mixed, of an unknown version).
        UsageError: the options name a time zone that does not exist.
    """
    options = options or ReadOptions()
    if options.timezone != "auto":
        from exhume.events.zones import load_zone

        load_zone(options.timezone)  # also where the source has exact times: a wrong name is a mistake
    if detection.layout is Layout.FOREIGN:
        raise NothingToLookAt(
            f"{printable(detection.info.name)} holds no session store of ADK.",
            todo="Check the path and --table-prefix; `exhume detect` lists the tables.",
        )
    found = _READERS.get(detection.layout)
    if found is None:
        raise Refused(
            f"The events of a store of layout {detection.layout} cannot be read.",
            todo="Run `exhume detect` to see what contradicts what.",
        )
    module, name = found
    reader = getattr(import_module(f"{__name__}.{module}"), name)
    return cast(Reader, reader(store, detection, options))


def readable_layouts() -> tuple[Layout, ...]:
    """All layouts that have a reader."""
    return tuple(_READERS)
