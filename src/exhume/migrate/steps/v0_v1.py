"""From pickled v0 to v1: pickles become JSON by inert decoding, local times become UTC."""

from __future__ import annotations

from exhume.migrate.interface import Step
from exhume.migrate.rows import to_v1
from exhume.schema.detection import Layout

STEP = Step(
    source=Layout.V0,
    target=Layout.V1,
    changes=(
        "Decodes pickled actions without running them, gathers the event's columns into event_data,"
        " turns local times into UTC."
    ),
    open=to_v1,
)
