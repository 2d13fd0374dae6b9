"""Decodes values one by one: interpret, judge the globals, rebuild as plain data. Equal values are decoded once."""

from __future__ import annotations

from typing import Any

from exhume.pickles.allowed import Allowed
from exhume.pickles.budget import DEFAULT_BUDGET, Budget
from exhume.pickles.interface import Decoded, MalformedPickle, NamedGlobal, PickleError, UnsafeGlobal
from exhume.pickles.machine import Machine
from exhume.pickles.values import rebuild
from exhume.stores.interface import Cell

_CACHED_VALUES = 2_000
_CACHED_BYTES = 8 << 20


class Decoder:
    """Decodes the values of one column under one set of allowed globals.

    Args:
        allowed: the set; the reviewed one by default.
        budget: limits per value.
    """

    def __init__(self, allowed: Allowed | None = None, *, budget: Budget = DEFAULT_BUDGET) -> None:
        self.allowed = Allowed() if allowed is None else allowed
        self.budget = budget
        self._cache: dict[bytes, Decoded] = {}
        self._cached_bytes = 0

    def decode(self, blob: bytes) -> Decoded:
        """Decodes one value. Never raises for what the bytes hold: `Decoded.error` says what is wrong.

        An unsafe global is named before any other fault, since it is what matters about such a value.
        """
        known = self._cache.get(blob)
        if known is not None:
            return known
        made = self.decode_anew(blob)
        self._remember(blob, made)
        return made

    def decode_cell(self, cell: Cell) -> Decoded:
        """Decodes a cell of the column, whatever type it has; only bytes can be a pickle."""
        if isinstance(cell, bytes):
            return self.decode(cell)
        kind = "NULL" if cell is None else "text" if isinstance(cell, str) else "a number"
        return Decoded(None, (), None, MalformedPickle(f"the column holds {kind}, not a pickle", 0))

    def _remember(self, blob: bytes, made: Decoded) -> None:
        if len(blob) > _CACHED_BYTES >> 4:
            return  # one large value must not drive out all the others
        if len(self._cache) >= _CACHED_VALUES or self._cached_bytes + len(blob) > _CACHED_BYTES:
            # values repeat close to each other: starting anew costs less than keeping order on each hit
            self._cache.clear()
            self._cached_bytes = 0
        self._cache[blob] = made
        self._cached_bytes += len(blob)

    def decode_anew(self, blob: bytes) -> Decoded:
        """As `decode`, for callers that remember what they make of a value, so that the value itself need not stay."""
        if len(blob) > self.budget.length:
            return Decoded(
                None, (), None, MalformedPickle(f"the pickle is {len(blob)} bytes long, too long to read", 0)
            )
        machine = Machine(blob, budget=self.budget)
        value: Any = None
        trailing: int | None = None
        error: PickleError | None = None
        try:
            value = machine.run()
            if machine.pos < len(blob):
                trailing = machine.pos
            shared = machine.shared
            error = machine.refusal or (self._read_on(machine) if trailing is not None else None)
            error = self._unsafe(machine.named) or error
            if error is None:
                value = rebuild(value, allowed=self.allowed, shared=shared, length=len(blob), budget=self.budget)
        except UnsafeGlobal as unsafe:
            error = unsafe
        except MalformedPickle as malformed:
            error = self._unsafe(machine.named) or malformed
        except RecursionError:
            error = MalformedPickle("the value is nested too deep", machine.pos)
        except MemoryError:
            error = MalformedPickle("the value needs more memory than there is", machine.pos)
        return Decoded(value if error is None else None, tuple(machine.named), trailing, error)

    def _read_on(self, machine: Machine) -> PickleError | None:
        """Reads what follows the first STOP for the globals that it names: another reader may load that as well."""
        for _ in range(self.budget.pickles):
            if machine.pos >= len(machine.data):
                return None
            try:
                machine.run()
            except MalformedPickle as malformed:
                # no pickle: reported as trailing bytes; unless the budget ended where a pickle could go on
                return malformed if malformed.over_budget else None
            if machine.refusal is not None:
                return machine.refusal
        return MalformedPickle("too many pickles in one value", machine.pos)

    def _unsafe(self, named: list[NamedGlobal]) -> UnsafeGlobal | None:
        permits = self.allowed.permits
        unsafe = tuple(one for one in named if not permits(one.module, one.name))
        return UnsafeGlobal(unsafe) if unsafe else None
