"""Opening a source for the commands that read events: the store is closed again, whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exhume.events.interface import Reader, ReadOptions
    from exhume.schema.detection import Detection


@contextmanager
def opened(source: str, read: ReadOptions, *, table_prefix: str) -> Iterator[tuple[Reader, Detection]]:
    """A reader of the source, and what was detected of it."""
    from exhume.events.readers import open_reader
    from exhume.schema.detect import detect
    from exhume.stores import open_store

    with closing(open_store(source)) as store:
        detection = detect(store, table_prefix=table_prefix)
        yield open_reader(store, detection, read), detection
