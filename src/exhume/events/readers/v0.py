"""Reader of v0, DatabaseSessionService before ADK 1.22: pickled actions, and naive times of the writer's clock."""

from __future__ import annotations

from collections.abc import Iterator

from exhume.events.actions import Actions, PickledActions
from exhume.events.interface import ReadOptions
from exhume.events.model import Capability, EventRecord, TimeZoneReport
from exhume.events.readers.columns import ColumnReader
from exhume.events.times import TimeCell
from exhume.events.zone_model import ZoneModel, build
from exhume.schema.detection import Detection, Layout
from exhume.stores.interface import Cell, Store

_FULL = frozenset(
    {
        Capability.ACTIONS,
        Capability.LONG_RUNNING,
        Capability.STATE,
        Capability.SESSION_TIMES,
        Capability.STATE_ROWS,
        Capability.CONFIRMATIONS,
    }
)
_EMPTY_ZONE = TimeZoneReport("UTC", "not proved")


class V0Reader(ColumnReader):
    """Pickled v0 of any release. A row whose pickle is refused keeps its other columns and has empty actions."""

    layout = Layout.V0

    def __init__(self, store: Store, detection: Detection, options: ReadOptions) -> None:
        super().__init__(store, detection, options)
        table = self.table("events")
        columns = table.column_names if table is not None else ()
        # ADK before 0.3 had no column for long-running ids
        self.capabilities = _FULL if "long_running_tool_ids_json" in columns else _FULL - {Capability.LONG_RUNNING}
        self._pickles = PickledActions(options.allow_globals)
        self._zone: ZoneModel | None = None

    def events(self) -> Iterator[EventRecord]:
        self._zone_model()
        return super().events()

    def time_zone(self) -> TimeZoneReport:
        model = self._zone_model()
        return _EMPTY_ZONE if model is None else model.report

    def _zone_model(self) -> ZoneModel | None:
        if self._zone is None:
            table = self.table("events")
            if table is not None and "timestamp" in table.column_names:
                self._zone = build(self.store, self.table("sessions"), table, self.options.timezone)
        return self._zone

    def actions(self, cell: Cell) -> Actions:
        return self._pickles.read(cell)

    def instant(self, key: tuple[Cell, Cell, Cell], position: int, moment: TimeCell) -> int:
        return moment.us if self._zone is None else self._zone.instant(key, position, moment.us)
