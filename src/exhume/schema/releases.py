"""From columns and indexes to the ADK releases that can have written a database."""

from __future__ import annotations

from exhume.redact import printable
from exhume.schema.ddl import sqlite_type
from exhume.schema.detection import Layout, ReleaseRange
from exhume.schema.layouts import TIME_ID_INDEX, TIME_INDEX, V0_FORMS, LayoutSpec
from exhume.stores.interface import Table

#: Last releases before the index of 1.28.0, and before the one of 2.10.0, are created in every database on opening.
_LAST_WITHOUT_INDEX = "1.27.5"
_LAST_WITH_TIME_INDEX = "2.9.2"
#: Columns that a sentence names before it only counts.
_NAMED = 12


def release_range(layout: Layout, events: Table) -> tuple[ReleaseRange, list[str]]:
    """The releases that can have written a database of that layout, and sentences that say why.

    Up to 1.21.0 the columns tell; a release that wants more columns than there are cannot write events. From 1.28.0 on
    the index that a release creates in every database that it opens tells who was there last.
    """
    if layout is Layout.V0:
        return _v0_range(events)
    if layout in (Layout.V1, Layout.V1_UNMARKED):
        last, evidence = _last_by_index(events)
        return ReleaseRange("1.22.0", last), evidence
    if layout is Layout.SQLITE_SERVICE:
        return ReleaseRange("1.19.0", None), ["SqliteSessionService has had this layout since ADK 1.19.0."]
    return ReleaseRange(), []


def v0_form_of(events: Table) -> LayoutSpec:
    """The newest form of v0 all of whose columns the table has; the oldest one if it lacks some of every form."""
    present = {column.lower() for column in events.column_names}
    forms = (form for form in reversed(V0_FORMS) if present.issuperset(form.table("events").column_names))
    return next(forms, V0_FORMS[0])


def _v0_range(events: Table) -> tuple[ReleaseRange, list[str]]:
    present = tuple(column.lower() for column in events.column_names)
    newest = set(v0_form_of(events).table("events").column_names)
    # Several forms have the same columns: 0.2.0 to 1.13.0. Lengths tell them apart where nobody altered them.
    alike = [form for form in V0_FORMS if set(form.table("events").column_names) == newest]
    complete = alike[-1] is V0_FORMS[-1]
    typed = alike if complete else [form for form in alike if _types_agree(form, events)] or alike
    first, last = typed[0].releases[0], typed[-1].releases[1]
    evidence = [f"events has the columns of ADK {_spoken(first, last)}."]
    base = _base_of(present)
    if base is not None and base not in alike:
        added = [printable(name, limit=60) for name in present[len(base.table("events").columns) :]]
        more = f" and {len(added) - _NAMED} more" if len(added) > _NAMED else ""
        evidence.append(
            f"Columns were added later to a table of ADK {_spoken(*base.releases)}: {', '.join(added[:_NAMED])}{more}."
        )
        first = base.releases[0]
    opened, why = _last_by_index(events)
    # A release that wants more columns than there are may leave its index on opening, but cannot write an event.
    return ReleaseRange(first, opened if complete else last), evidence + why


def _base_of(present: tuple[str, ...]) -> LayoutSpec | None:
    """The newest form whose columns, in its order, the table begins with: what it was created as."""
    for form in reversed(V0_FORMS):
        names = form.table("events").column_names
        if present[: len(names)] == names:
            return form
    return None


def _types_agree(form: LayoutSpec, events: Table) -> bool:
    declared = {column.name: (sqlite_type(column), column.nullable) for column in form.table("events").columns}
    return all(
        declared.get(column.name.lower()) in (None, (column.type.upper(), column.nullable)) for column in events.columns
    )


def _spoken(first: str, last: str | None) -> str:
    if first == last:
        return first
    return f"{first} to {last}" if last else f"{first} and newer"


def _last_by_index(events: Table) -> tuple[str | None, list[str]]:
    """The last release that can have opened the database, None if the newest one can."""
    names = {name.lower() for name in events.indexes}
    if any(name.endswith(TIME_ID_INDEX.name) for name in names):
        return None, [f"ADK 2.10.0 or newer opened it: it has the index {TIME_ID_INDEX.name}."]
    if any(name.endswith(TIME_INDEX.name) for name in names):
        return _LAST_WITH_TIME_INDEX, [f"ADK 1.28.0 to 2.9.2 opened it: it has the index {TIME_INDEX.name}."]
    return _LAST_WITHOUT_INDEX, ["No ADK from 1.28.0 on opened it: it has none of their indexes."]
