"""The steps: one module per hop between two layouts, registered here in one line each."""

from __future__ import annotations

from exhume.migrate.interface import Step
from exhume.migrate.steps import (
    go_v1,
    java_contrib_v1,
    java_flyway_v1,
    js_v1,
    sqlite_service_v1,
    v0_v1,
    v1_sqlite_service,
    v1_unmarked_v1,
)

_STEPS: dict[tuple[str, str], Step] = {}


def register(step: Step) -> None:
    """Adds a step; there is at most one between two layouts."""
    if (step.source, step.target) in _STEPS:
        raise ValueError(f"there is a step {step.name} already")
    _STEPS[step.source, step.target] = step


def registered_steps() -> tuple[Step, ...]:
    """All steps, in order of registration."""
    return tuple(_STEPS.values())


register(v0_v1.STEP)
register(v1_unmarked_v1.STEP)
register(sqlite_service_v1.STEP)
register(go_v1.STEP)
register(js_v1.STEP)
register(java_flyway_v1.STEP)
register(java_contrib_v1.STEP)
register(v1_sqlite_service.STEP)
