"""From the file of SqliteSessionService to v1: epoch times become naive UTC."""

from __future__ import annotations

from exhume.migrate.interface import Step
from exhume.migrate.rows import to_v1
from exhume.schema.detection import Layout

STEP = Step(
    source=Layout.SQLITE_SERVICE,
    target=Layout.V1,
    changes="Keeps every event, turns epoch times into naive UTC, adds missing state rows and the schema version.",
    open=to_v1,
)
