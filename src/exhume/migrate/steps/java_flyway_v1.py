"""From the Flyway layout of adk-java's draft to v1."""

from __future__ import annotations

from exhume.migrate.interface import Step
from exhume.migrate.rows import to_v1
from exhume.schema.detection import Layout

STEP = Step(
    source=Layout.JAVA_FLYWAY,
    target=Layout.V1,
    changes=(
        "Gathers the event's columns into event_data, turns camelCase names into ADK's own"
        " (never inside application data)."
    ),
    open=to_v1,
)
