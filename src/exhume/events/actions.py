"""The `actions` column: pickles through the pickle reader, JSON as adk-go writes it, and what is wrong with a cell."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from exhume.events.encode import empty_actions, encode_actions, is_actions
from exhume.events.json_text import NotJson, parse
from exhume.events.model import Loss, Problem
from exhume.events.shapes import Fault, Findings, model, shape
from exhume.pickles.allowed import Allowed
from exhume.pickles.decoder import Decoder
from exhume.pickles.interface import Decoded, MalformedPickle, UnsafeGlobal
from exhume.stores.interface import Cell

_CACHED_VALUES = 2_000
_CACHED_BYTES = 8 << 20
#: Reasons told of one value; a hostile one may have a million.
_REASONS = 20


class Actions(NamedTuple):
    """The actions of an event as JSON data (never change it: equal cells share it), and what must be told of them."""

    data: dict[str, Any]
    losses: tuple[Loss, ...] = ()
    problems: tuple[Problem, ...] = ()


def refusals(faults: tuple[Fault, ...] | list[Fault], column: str, sha256: str) -> tuple[Problem, ...]:
    """Fatal problems for parts that ADK 2.13 would refuse."""
    told = [Problem("EXH307", column, f"{fault.place}: {fault.reason}.", sha256) for fault in faults[:_REASONS]]
    if len(faults) > _REASONS:
        told.append(Problem("EXH307", column, f"{len(faults) - _REASONS} more parts are like that.", sha256))
    return tuple(told)


class PickledActions:
    """Reads v0's pickled actions; equal cells are read once (bounded).

    Args:
        allow_globals: dotted names, or `module.*`, decoded inertly besides the reviewed set.
    """

    def __init__(self, allow_globals: tuple[str, ...] = ()) -> None:
        self._decoder = Decoder(Allowed(extra=allow_globals))
        self._known: dict[bytes, Actions] = {}
        self._known_bytes = 0

    def read(self, cell: Cell) -> Actions:
        """The actions in a cell. Nothing in it raises."""
        if type(cell) is not bytes:
            return _without_pickle(cell)
        known = self._known.get(cell)
        if known is not None:
            return known
        made = _from_pickle(cell, self._decoder.decode_anew(cell))
        if len(cell) <= _CACHED_BYTES >> 4:
            if len(self._known) >= _CACHED_VALUES or self._known_bytes + len(cell) > _CACHED_BYTES:
                self._known.clear()
                self._known_bytes = 0
            self._known[cell] = made
            self._known_bytes += len(cell)
        return made


def _from_pickle(cell: bytes, decoded: Decoded) -> Actions:
    digest = ""
    if decoded.error is not None or decoded.trailing is not None:
        digest = hashlib.sha256(cell).hexdigest()
    error = decoded.error
    if isinstance(error, UnsafeGlobal):
        names = tuple(dict.fromkeys(one.dotted for one in error.globals))
        unsafe = Problem("EXH501", "actions", error.what, digest, names, error.offset)
        return Actions(empty_actions(), (), (unsafe,))
    if error is not None:
        offset = error.offset if isinstance(error, MalformedPickle) else None
        named = tuple(dict.fromkeys(one.dotted for one in decoded.globals))
        return Actions(empty_actions(), (), (Problem("EXH502", "actions", error.what, digest, named, offset),))
    losses: tuple[Loss, ...] = ()
    problems: tuple[Problem, ...] = ()
    if decoded.trailing is not None:
        rest = cell[decoded.trailing :]
        told = f"{len(rest)} bytes follow the pickle, which no reader sees"
        problems = (Problem("EXH504", "actions", told, digest, offset=decoded.trailing, fatal=False),)
        losses = (Loss("trailing-bytes", f"actions: {len(rest)} bytes, sha256 {hashlib.sha256(rest).hexdigest()}"),)
    value = decoded.value
    if is_actions(value):
        encoded = encode_actions(value)
        if encoded.faults:
            digest = digest or hashlib.sha256(cell).hexdigest()
            problems += refusals(encoded.faults, "actions", digest)
        if isinstance(value, dict):
            digest = digest or hashlib.sha256(cell).hexdigest()
            reason = "a pickled dict instead of event actions; it was read as their fields"
            problems += (Problem("EXH503", "actions", reason, digest, fatal=False),)
        return Actions(encoded.data, losses + encoded.losses, problems)
    digest = digest or hashlib.sha256(cell).hexdigest()
    if value is None:
        odd = Problem("EXH503", "actions", "a pickle of None; ADK reads no actions", digest, fatal=False)
    else:
        odd = Problem("EXH503", "actions", "a well-formed pickle that is not event actions", digest)
    return Actions(empty_actions(), losses, (*problems, odd))


def _without_pickle(cell: Cell) -> Actions:
    """A cell that is no BLOB: NULL is no actions, text may be their JSON, a number is neither."""
    if cell is None:
        digest = hashlib.sha256(b"").hexdigest()
        told = Problem("EXH503", "actions", "the column is NULL; ADK reads no actions", digest, fatal=False)
        return Actions(empty_actions(), (), (told,))
    raw = cell.encode("utf-8", "surrogateescape") if isinstance(cell, str) else str(cell).encode()
    digest = hashlib.sha256(raw).hexdigest()
    if isinstance(cell, str) and cell[:1] == "{":
        made = read_json_actions(cell, digest)
        if not any(problem.fatal for problem in made.problems):
            told = Problem("EXH503", "actions", "JSON text instead of a pickle; it was read", digest, fatal=False)
            return Actions(made.data, (*made.losses, Loss("json-text-for-pickle", "actions")), (*made.problems, told))
    what = "text" if isinstance(cell, str) else "a number"
    return Actions(
        empty_actions(), (), (Problem("EXH502", "actions", f"the column holds {what}, not a pickle", digest),)
    )


def read_json_actions(cell: Cell, digest: str | None = None) -> Actions:
    """Actions as JSON text or bytes, in any spelling of their keys (adk-go writes camelCase, once Go's own)."""
    if cell is None:
        return Actions(empty_actions())
    if isinstance(cell, bytes):
        text = cell.decode("utf-8", "surrogateescape")
    else:
        text = cell if isinstance(cell, str) else str(cell)
    if digest is None:
        digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    try:
        value, losses = parse(text, "actions")
    except NotJson as error:
        return Actions(empty_actions(), (), (Problem("EXH307", "actions", error.what, digest, offset=error.offset),))
    if value is None:
        return Actions(empty_actions(), losses)
    if type(value) is not dict:
        wrong = Problem("EXH307", "actions", "the actions are not an object", digest)
        return Actions(empty_actions(), losses, (wrong,))
    found = Findings(go=True)
    data = shape(value, model("EventActions"), "actions", found)
    return Actions(data, (*losses, *found.losses), refusals(found.faults, "actions", digest))
