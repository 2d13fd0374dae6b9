"""The way from one layout to another: the shortest path in the graph of steps, or the reason why there is none."""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import NamedTuple

from exhume.errors import NothingToLookAt, Refused, UsageError
from exhume.migrate.interface import Step
from exhume.migrate.steps import registered_steps
from exhume.redact import printable
from exhume.schema.detection import Detection, Layout

#: Layouts that are not moved, whatever steps there are, and what to do about it.
_IMMOVABLE: dict[str, tuple[str, str]] = {
    Layout.MIXED: (
        "the database is half migrated: it holds marks of two layouts.",
        "Go back to the copy from before that migration, or remove what does not belong; `exhume detect` names it.",
    ),
    Layout.UNKNOWN_VERSION: (
        "the database says that it has a schema version that this release does not know.",
        "Use a newer exhume, or correct the row schema_version in adk_internal_metadata if it is wrong.",
    ),
    Layout.FOREIGN: (
        "the database does not hold the tables of an ADK session store.",
        "If they have other names, pass --table-prefix; `exhume detect` lists the tables.",
    ),
    Layout.EXPORT: (
        "an exported file holds single sessions, not a database.",
        "Use `exhume audit`, `show` or `export` on it.",
    ),
}


#: One sentence per layout, for `exhume layouts`.
_SUMMARIES: dict[str, str] = {
    Layout.V0: "DatabaseSessionService up to ADK 1.21: actions are pickles.",
    Layout.V1: "DatabaseSessionService since ADK 1.22: one JSON text per event.",
    Layout.V1_UNMARKED: "The tables of v1 without the row that names their version.",
    Layout.SQLITE_SERVICE: "SqliteSessionService since ADK 1.19: epoch times, one JSON text per event.",
    Layout.GO: "adk-go: columns like those of v0, actions are JSON.",
    Layout.JS: "adk-js: the tables of v1 with other column types.",
    Layout.JAVA_FLYWAY: "adk-java's draft with Flyway: columns like those of v0, actions are JSON.",
    Layout.JAVA_CONTRIB: "adk-java's contributed MySQL service: one row per event, one row per state key.",
    Layout.EXPORT: "Sessions exported as JSON.",
    Layout.MIXED: "Half migrated: marks of two layouts.",
    Layout.UNKNOWN_VERSION: "A schema version that this release does not know.",
    Layout.EMPTY: "Tables of ADK without rows.",
    Layout.FOREIGN: "Not a session store of ADK.",
}


class LayoutNode(NamedTuple):
    """One layout in the graph of `exhume layouts`; `steps` are (target, what the step changes)."""

    name: str
    summary: str
    steps: tuple[tuple[str, str], ...]


def layouts_graph() -> tuple[LayoutNode, ...]:
    """All layouts that exhume can name and the steps between them."""
    steps = registered_steps()
    names = dict.fromkeys([*(str(one) for one in Layout), *(str(name) for s in steps for name in (s.source, s.target))])
    return tuple(
        LayoutNode(
            name,
            _SUMMARIES.get(name, "Registered by an extension."),
            tuple((str(step.target), step.changes) for step in steps if step.source == name),
        )
        for name in names
    )


def starting_layout(detection: Detection) -> str:
    """The layout whose steps apply. Tables without rows are of the layout that their columns say."""
    if detection.layout is Layout.EMPTY:
        return detection.shape or Layout.V1
    return detection.layout


def readable_detection(detection: Detection) -> Detection:
    """The same verdict, where tables without rows are of the layout that their columns say."""
    if detection.layout is not Layout.EMPTY:
        return detection
    return dataclasses.replace(detection, layout=Layout(starting_layout(detection)))


def find_path(source: str, target: str) -> tuple[Step, ...]:
    """The shortest sequence of steps from `source` to `target`, empty when they are the same.

    Among paths of equal length the one whose steps were registered first is taken.

    Raises:
        UsageError: there is no layout of that name.
        NothingToLookAt: the store is not one of ADK.
        Refused: no steps lead there.
    """
    known = [node.name for node in layouts_graph()]
    if target not in known:
        made = sorted({step.target for step in registered_steps()})
        raise UsageError(
            f"There is no layout {printable(target, limit=40)}.", todo=f"exhume can make {' and '.join(made)}."
        )
    if source in _IMMOVABLE:
        what, todo = _IMMOVABLE[source]
        raise (NothingToLookAt if source == Layout.FOREIGN else Refused)(what, todo=todo)
    came_by: dict[str, Step | None] = {source: None}
    waiting = deque([source])
    while waiting and target not in came_by:
        here = waiting.popleft()
        for step in registered_steps():
            if step.source == here and step.target not in came_by:
                came_by[step.target] = step
                waiting.append(step.target)
    if target not in came_by:
        raise Refused(f"no steps lead from {source} to {target}.", todo=_reachable(came_by, source))
    path: list[Step] = []
    last = came_by[target]
    while last is not None:
        path.append(last)
        last = came_by[last.source]
    return tuple(reversed(path))


def _reachable(came_by: dict[str, Step | None], source: str) -> str:
    others = [str(name) for name in came_by if name != source]
    if not others:
        return "Nothing can be made of this layout."
    return f"From {source} exhume can make: {', '.join(others)}."
