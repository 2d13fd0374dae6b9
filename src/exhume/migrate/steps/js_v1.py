"""From adk-js's layout to v1: MikroORM's column types and epoch milliseconds become those of the Python package."""

from __future__ import annotations

from exhume.migrate.interface import Step
from exhume.migrate.rows import to_v1
from exhume.schema.detection import Layout

STEP = Step(
    source=Layout.JS,
    target=Layout.V1,
    changes=(
        "Keeps every event, turns epoch milliseconds into naive UTC times and the tables into those of Python's ADK."
    ),
    open=to_v1,
)
