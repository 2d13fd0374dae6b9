"""From adk-go's layout to v1: camelCase JSON in the columns becomes one snake_case event."""

from __future__ import annotations

from exhume.migrate.interface import Step
from exhume.migrate.rows import to_v1
from exhume.schema.detection import Layout

STEP = Step(
    source=Layout.GO,
    target=Layout.V1,
    changes=(
        "Reads JSON actions from bytes, turns camelCase names into ADK's own (never inside application data),"
        " gathers the columns into event_data."
    ),
    open=to_v1,
)
