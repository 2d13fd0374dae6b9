"""Readers of the layouts that spread an event over columns: Python's v0, and adk-go's and adk-java's like it.

The event that comes out is what google-adk 2.13 stores in v1 for the event it reads from the same row
(`sessions/schemas/v0.py`, `StorageEvent.to_event`), also where ADK itself cannot read the row.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

from exhume.events.actions import Actions, refusals
from exhume.events.interface import ReadOptions
from exhume.events.json_text import NotJson, parse
from exhume.events.model import EventKey, EventRecord, Loss, Problem
from exhume.events.readers.base import TableReader, cell_text, kind_of, sha256_of, unreadable
from exhume.events.shapes import Findings, Model, model, shape
from exhume.events.times import MICROSECONDS, TimeCell, parse_time
from exhume.schema.detection import Detection
from exhume.stores.interface import Cell, Store

_KEY = ("id", "app_name", "user_id", "session_id")
_ORDER = ("app_name", "user_id", "session_id", "timestamp")
#: Columns that hold a model of ADK as JSON, in ADK's order, with the model's name.
_MODELS = {
    "content": "Content",
    "grounding_metadata": "GroundingMetadata",
    "usage_metadata": "GenerateContentResponseUsageMetadata",
    "citation_metadata": "CitationMetadata",
    "input_transcription": "Transcription",
    "output_transcription": "Transcription",
}
_FLAGS = ("partial", "turn_complete", "interrupted")
_TEXTS = ("error_code", "error_message", "branch")
_OTHERS = ("invocation_id", "author", "actions", "long_running_tool_ids_json", "timestamp", "custom_metadata")
_WORDS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
_BAD_BYTE = re.compile("[\udc80-\udcff]")


class Seen:
    """What is found in one row besides its data."""

    __slots__ = ("losses", "problems")

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self.problems: list[Problem] = []

    def take(self, found: Findings, column: str, cell: Cell) -> None:
        """Takes over what a walk through one column found."""
        if found.losses:
            self.losses += found.losses
        if found.faults:
            self.problems += refusals(found.faults, column, sha256_of(cell))


class ColumnReader(TableReader):
    """Base: columns to event. Subclasses read `actions`, times, and columns of their own."""

    #: Columns of the layout's own, handed to `take_own` as a dict of those that are not NULL.
    own_columns: tuple[str, ...] = ()

    @abstractmethod
    def actions(self, cell: Cell) -> Actions:
        """The actions of an event."""

    def instant(self, key: tuple[Cell, Cell, Cell], position: int, moment: TimeCell) -> int:
        """Microseconds since 1970 UTC of a naive time, here taken as UTC."""
        del key, position  # for layouts whose zone depends on them
        return moment.us

    def take_own(self, data: dict[str, Any], cells: dict[str, Cell], seen: Seen) -> None:
        """Takes the layout's own columns into the event."""

    def __init__(self, store: Store, detection: Detection, options: ReadOptions) -> None:
        super().__init__(store, detection, options)
        self._found = self.findings()  # one for all walks that find nothing, which are nearly all

    def findings(self) -> Findings:
        """How strictly JSON columns are walked."""
        return Findings()

    def events(self) -> Iterator[EventRecord]:
        table = self.table("events")
        if table is None:
            return
        names = table.column_names
        known = (*_KEY, *_OTHERS, *_MODELS, *_FLAGS, *_TEXTS)
        spots = {name: index for index, name in enumerate(names)}
        # the NULL that ends each padded row stands for every column that the table lacks
        pick = itemgetter(*(spots.get(name, len(names)) for name in (*_KEY, *_OTHERS)))
        columns: list[tuple[int, str, Callable[..., None], Any]] = []
        for name, model_name in _MODELS.items():
            if name in spots:
                columns.append((spots[name], name, self._model_column, model(model_name)))
        columns += [(spots[name], name, self._flag, None) for name in _FLAGS if name in spots]
        columns += [(spots[name], name, self._text, None) for name in _TEXTS if name in spots]
        own = [(spots[name], name) for name in self.own_columns if name in spots]
        foreign = [(i, name) for i, name in enumerate(names) if name not in known and name not in self.own_columns]
        for position, row in self.rows(table, _ORDER, "session_id"):
            ident, app, user, session, invocation, author, actions_cell, running, time_cell, custom = pick((*row, None))
            key = EventKey(
                app if type(app) is str else cell_text(app),
                user if type(user) is str else cell_text(user),
                session if type(session) is str else cell_text(session),
                ident if type(ident) is str else cell_text(ident),
            )
            seen = Seen()
            data: dict[str, Any] = {}
            for spot, name, read, about in columns:
                cell = row[spot]
                if cell is not None:
                    read(data, name, cell, about, seen)
            if custom is not None:
                self._custom_metadata(data, custom, seen)
            data["invocation_id"] = self._required(invocation, "invocation_id", seen)
            data["author"] = self._required(author, "author", seen)
            actions = self.actions(actions_cell)
            data["actions"] = actions.data
            data["node_info"] = {"path": ""}
            data["long_running_tool_ids"] = [] if running is None or running == "[]" else self._running(running, seen)
            data["id"] = key.event_id
            if own:
                self.take_own(data, {name: row[i] for i, name in own if row[i] is not None}, seen)
            for spot, name in foreign:
                if row[spot] is not None:
                    seen.losses.append(Loss("column-dropped", name))
            moment = parse_time(time_cell, milliseconds=self.milliseconds)
            time = column_time = None
            if moment is not None:
                column_time = moment.us / MICROSECONDS
                us = moment.us if moment.exact else self.instant((app, user, session), position, moment)
                data["timestamp"] = time = us / MICROSECONDS
            whole = time is not None and key.event_id != "" and "".join(key).isascii()
            if not whole:
                whole = self._can_be_held(key, ident, time_cell, time, seen)
            losses, problems = actions.losses, actions.problems
            if seen.losses:
                losses += tuple(seen.losses)
            if seen.problems:
                problems += tuple(seen.problems)
            yield EventRecord(
                key,
                position,
                None if invocation is None else data["invocation_id"],  # where bytes that are not UTF-8 are escapes
                column_time,
                time,
                data if whole else None,
                losses,
                problems,
                names,
                row,
            )

    # ------------------------------------------------------------------------------------------ columns
    def _can_be_held(self, key: EventKey, ident: Cell, time_cell: Cell, time: float | None, seen: Seen) -> bool:
        """Can v1 hold the row at all? It needs an id, a time, and keys that are text."""
        whole = True
        if not key.event_id:
            seen.problems.append(unreadable("id", "The event has no id", ident))
            whole = False
        if time is None:
            seen.problems.append(unreadable("timestamp", "The time cannot be read", time_cell))
            whole = False
        for column, part in zip((*_ORDER[:3], "id"), key, strict=True):
            if not part.isascii() and _BAD_BYTE.search(part):
                seen.problems.append(unreadable(column, "It is not valid UTF-8", part))
                whole = False
        return whole

    def _model_column(self, data: dict[str, Any], name: str, cell: Cell, of: Model, seen: Seen) -> None:
        value = self.json_value(cell, name, seen)
        if value is None:
            return
        if type(value) is not dict:
            reason = f"{name} is {kind_of(value)}, not an object; ADK drops it"
            seen.problems.append(unreadable(name, reason, cell))
            return
        found = self._found
        data[name] = shape(value, of, name, found)
        if found.losses or found.faults:
            seen.take(found, name, cell)
            self._found = self.findings()

    def json_value(self, cell: Cell, name: str, seen: Seen) -> Any:
        """The JSON value of a cell; None for null, and where it cannot be read, which is told."""
        try:
            value, losses = parse(cell if type(cell) is str else cell_text(cell), name)
        except NotJson as error:
            seen.problems.append(unreadable(name, f"{name} cannot be read: {error.what}", cell))
            return None
        if losses:
            seen.losses += losses
        return value

    def _custom_metadata(self, data: dict[str, Any], cell: Cell, seen: Seen) -> None:
        value = self.json_value(cell, "custom_metadata", seen)
        if type(value) is dict:
            data["custom_metadata"] = value
        elif value is not None:
            reason = f"custom_metadata is {kind_of(value)}, and ADK 2.13 would refuse the session"
            seen.problems.append(unreadable("custom_metadata", reason, cell))

    def _flag(self, data: dict[str, Any], name: str, cell: Cell, _about: None, seen: Seen) -> None:
        if type(cell) is int and cell in (0, 1):
            data[name] = cell == 1
            return
        if isinstance(cell, (int, float)):
            # SQLAlchemy's Boolean reads every number but zero as true
            data[name] = bool(cell)
            seen.losses.append(Loss("number-to-boolean", name))
            return
        word = _WORDS.get(cell_text(cell).lower())
        if word is None:
            seen.problems.append(unreadable(name, f"{name} is no boolean", cell))
        else:
            data[name] = word

    def _text(self, data: dict[str, Any], name: str, cell: Cell, _about: None, seen: Seen) -> None:
        data[name] = self.plain_text(cell, name, seen)

    def _required(self, cell: Cell, name: str, seen: Seen) -> str:
        """A text column that ADK does not read when it is NULL."""
        if type(cell) is str and cell.isascii():
            return cell
        if cell is None:
            seen.losses.append(Loss("null-to-empty-text", name))
            return ""
        return self.plain_text(cell, name, seen)

    @staticmethod
    def plain_text(cell: Cell, name: str, seen: Seen) -> str:
        """A cell of a text column as text."""
        text = cell if type(cell) is str else cell_text(cell)
        if type(cell) is not str:
            seen.losses.append(Loss("blob-to-text" if isinstance(cell, bytes) else "number-to-text", name))
        if not text.isascii() and _BAD_BYTE.search(text):
            seen.losses.append(Loss("bad-utf8-to-escape", name))
            return _BAD_BYTE.sub(lambda match: f"\\x{ord(match.group()) - 0xDC00:02x}", text)
        return text

    def _running(self, cell: Cell, seen: Seen) -> list[str]:
        """`long_running_tool_ids`: a set in ADK, stored sorted. ADK's reader takes whatever `set()` takes."""
        name = "long_running_tool_ids_json"
        if cell in ("", b""):
            return []
        before = len(seen.problems)
        value = self.json_value(cell, name, seen)
        if value is None:
            if len(seen.problems) == before:
                seen.losses.append(Loss("null-to-absent", "long_running_tool_ids"))
            return []
        if type(value) is dict:
            seen.losses.append(Loss("object-to-keys", "long_running_tool_ids"))
            return sorted(value)
        if type(value) is list:
            ids = [one for one in value if type(one) is str]
            if len(ids) == len(value):
                return sorted(set(ids))
            seen.problems.append(unreadable(name, "Some of the ids are no texts; ADK 2.13 refuses them", cell))
            return sorted(set(ids))
        seen.problems.append(unreadable(name, f"The ids are {kind_of(value)}, not a list", cell))
        return []
