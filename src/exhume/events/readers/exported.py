"""Reader of exported event logs: session JSON, lists and lines of events, ADK Java's lists, Vertex AI listings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from exhume.events.interface import ReadOptions
from exhume.events.json_text import EVENT_DEPTH, NotJson, parse
from exhume.events.model import Capability, EventKey, EventRecord, Loss, Problem, StateRecord
from exhume.events.readers.base import TableReader, cell_bytes, cell_text, kind_of, unreadable
from exhume.events.shapes import canonical
from exhume.schema.detection import Detection, Layout
from exhume.stores.export_forms import event_of, is_vertex
from exhume.stores.interface import Store

_ORDER = ("app_name", "user_id", "session_id", "timestamp")
_KEY_NAMES = ("appName", "app_name", "userId", "user_id", "sessionId", "session_id")


class ExportReader(TableReader):
    """Reads what `exhume.stores.exported` took apart.

    An export holds no columns beside its events. State, session times and confirmations are capabilities only where
    this very file has them. Rows of app and user state may be there, yet which of them should be depends on the layout
    that was exported, so that is not judged.
    """

    layout = Layout.EXPORT

    def __init__(self, store: Store, detection: Detection, options: ReadOptions) -> None:
        super().__init__(store, detection, options)
        found = {Capability.ACTIONS, Capability.LONG_RUNNING, Capability.CONFIRMATIONS}
        times = [row for _, row in store.rows("sessions", ("create_time", "update_time", "state"))]
        if any(state is not None for *_, state in times):
            found.add(Capability.STATE)
        if times and all(None not in row[:2] for row in times):
            found.add(Capability.SESSION_TIMES)
        if self._some_without_confirmations():
            found.discard(Capability.CONFIRMATIONS)
        self.capabilities = frozenset(found)

    def _some_without_confirmations(self) -> bool:
        """Has any entry of a Vertex AI listing no `rawEvent`? Only that holds requested_tool_confirmations."""
        for _, (text,) in self.store.rows("events", ("event_data",)):
            if isinstance(text, str) and '"rawEvent"' not in text and "/sessions/" in text:
                try:
                    value = parse(text).value
                except NotJson:
                    continue
                if isinstance(value, dict) and is_vertex(value) and event_of(value) is value:
                    return True
        return False

    def sessions(self) -> Iterator[StateRecord]:
        for row in super().sessions():
            if row.state_text is None:  # made up for bare events: nothing is known, which is not a fault
                row.problems = ()
            elif row.state is not None and row.raw[row.columns.index("merged")]:
                # get_session merges the states of app and user into the session's, under these prefixes
                row.state = {name: value for name, value in row.state.items() if not name.startswith(("app:", "user:"))}
            yield row

    def events(self) -> Iterator[EventRecord]:
        table = self.detection.tables["events"]
        names = table.column_names
        for position, row in self.rows(table, _ORDER, "session_id"):
            app, user, session, ident, invocation, time, cell = row
            key = EventKey(cell_text(app), cell_text(user), cell_text(session), cell_text(ident))
            source = cell_bytes(cell)
            found = _read(key, None if time is None else float(time), source)
            yield EventRecord(
                key=key,
                position=position,
                invocation_id=None if invocation is None else cell_text(invocation),
                column_time=found.time,  # there is no column that could say anything else than the event
                time=found.time,
                data=found.data,
                losses=found.losses,
                problems=found.problems,
                columns=names,
                raw=row,
                source=source,
            )


class _Read(NamedTuple):
    """What came out of one text."""

    data: dict[str, Any] | None
    time: float | None
    losses: tuple[Loss, ...] = ()
    problems: tuple[Problem, ...] = ()


def _read(key: EventKey, time: float | None, source: bytes) -> _Read:
    try:
        # a line of `exhume export` has the event in an object of its own
        value, losses = parse(source, deepest=EVENT_DEPTH + 1)
    except NotJson as error:
        return _Read(None, time, problems=(unreadable("event", f"The event cannot be read: {error.what}", source),))
    if not isinstance(value, dict):
        return _Read(
            None, time, losses, (unreadable("event", f"The event is {kind_of(value)}, not an object", source),)
        )
    told = _told(value)
    if value.get("type") == "event" and value.get("event", value) is None:
        unread = unreadable("event", "The event could not be read when it was exported", source)
        return _Read(None, time, losses, told or (unread,))
    own = value.get("type") == "event"  # a line of `exhume export` holds the event in v1 form already
    event = _unwrapped(value) if own else canonical(_unwrapped(value))
    event.setdefault("id", key.event_id)
    problems = told
    if time is not None:
        event["timestamp"] = time
    elif event.pop("timestamp", None) is not None:
        problems = (*told, unreadable("timestamp", "The time of the event cannot be read", source))
    return _Read(event, time, losses, problems)


def _told(value: dict[str, Any]) -> tuple[Problem, ...]:
    """Problems that `exhume export` met when it read the event, as its line tells them."""
    listed = value.get("problems")
    if value.get("type") != "event" or not isinstance(listed, list):
        return ()
    return tuple(
        Problem(
            rule=str(one.get("rule")),
            column=str(one.get("column")),
            reason=str(one.get("reason")),
            sha256=str(one.get("sha256")),
            fatal=one.get("fatal") is not False,
        )
        for one in listed[:20]
        if isinstance(one, dict)
    )


def _unwrapped(value: dict[str, Any]) -> dict[str, Any]:
    """The event itself, in either spelling, without what an export puts around it."""
    inner = event_of(value)
    if inner is not value:
        return dict(inner)
    if is_vertex(value):
        return _from_vertex(value)
    return {name: item for name, item in value.items() if name not in _KEY_NAMES}


def _from_vertex(value: dict[str, Any]) -> dict[str, Any]:
    """An entry of a Vertex AI listing without `rawEvent`; fields that are not known stay, under their own names."""
    event = {name: item for name, item in value.items() if name not in ("name", "actions", "eventMetadata")}
    event["id"] = str(value["name"]).rsplit("/", 1)[-1]
    actions = value.get("actions")
    if isinstance(actions, dict):
        actions = dict(actions)
        agent = actions.pop("transferAgent", None)
        if agent is not None:
            actions["transferToAgent"] = agent
        event["actions"] = actions
    metadata = value.get("eventMetadata")
    if isinstance(metadata, dict):
        event.update((name, item) for name, item in metadata.items() if name not in event)
    return event
