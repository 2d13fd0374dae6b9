"""Reader of adk-js: the tables of v1 with MikroORM's column types."""

from __future__ import annotations

from exhume.events.model import EventKey, EventRecord
from exhume.events.readers.v1 import V1Reader
from exhume.schema.detection import Layout
from exhume.stores.interface import Cell, Row

#: A Python time in seconds is below this for another three thousand years; JavaScript's milliseconds are above it.
_MILLISECONDS_FROM = 100_000_000_000


class JsReader(V1Reader):
    """adk-js (`core/src/sessions/db/schema.ts`): whole numbers in time columns are epoch milliseconds.

    `event_data.timestamp` counts milliseconds too where the event was never in Python; it is read as seconds.
    """

    layout = Layout.JS
    milliseconds = True

    def record(
        self,
        key: EventKey,
        position: int,
        cells: tuple[Cell, Cell, Cell],
        names: tuple[str, ...] = (),
        row: Row = (),
    ) -> EventRecord:
        """As in v1, but a time in milliseconds becomes seconds."""
        record = super().record(key, position, cells, names, row)
        if record.time is not None and abs(record.time) >= _MILLISECONDS_FROM and record.data is not None:
            record.time = record.time / 1000
            record.data["timestamp"] = record.time
        return record
