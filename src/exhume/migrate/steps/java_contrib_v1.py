"""From adk-java's contributed MySQL layout to v1: one row per state key becomes one state."""

from __future__ import annotations

from exhume.migrate.interface import Step
from exhume.migrate.rows import to_v1
from exhume.schema.detection import Layout

STEP = Step(
    source=Layout.JAVA_CONTRIB,
    target=Layout.V1,
    changes="Turns camelCase event JSON into event_data and one row per state key into one state object.",
    open=to_v1,
)
