"""From v1 tables without their mark to v1: the same rows, and the row that says so."""

from __future__ import annotations

from exhume.migrate.interface import Step
from exhume.migrate.rows import to_v1
from exhume.schema.detection import Layout

STEP = Step(
    source=Layout.V1_UNMARKED,
    target=Layout.V1,
    changes="Copies every row as it is and adds the row that marks the schema version.",
    open=to_v1,
)
