"""From v1 to the file that SqliteSessionService reads: epoch times, events that stand alone."""

from __future__ import annotations

from exhume.migrate.interface import Step
from exhume.migrate.rows import to_sqlite_service
from exhume.schema.detection import Layout

STEP = Step(
    source=Layout.V1,
    target=Layout.SQLITE_SERVICE,
    changes=(
        "Keeps every event, turns times into exact epochs, puts id, invocation and time into event_data,"
        " which is all that SqliteSessionService reads."
    ),
    open=to_sqlite_service,
)
