"""What decoding a pickle gives: a value made of plain data and inert nodes, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from exhume.errors import ExhumeError, ExitCode

#: Names that a message holds; `UnsafeGlobal.globals` holds all.
_MOST_NAMES = 20


class NamedGlobal(NamedTuple):
    """A global that a pickle names, with the offset in bytes of the opcode that names it."""

    module: str
    name: str
    offset: int

    @property
    def dotted(self) -> str:
        return f"{self.module}.{self.name}"


class PickleError(ExhumeError):
    """Base of the ways in which a pickle is refused; `offset` is the byte that the refusal is about."""

    exit_code = ExitCode.REFUSED
    rule = "EXH502"
    offset = 0


class UnsafeGlobal(PickleError):
    """A pickle names globals outside the allowed set; `globals` lists every one of them, in order of offset."""

    rule = "EXH501"

    def __init__(self, named: tuple[NamedGlobal, ...]) -> None:
        self.globals = named
        self.offset = named[0].offset if named else 0
        distinct = dict.fromkeys(one.dotted for one in named)
        names = ", ".join(list(distinct)[:_MOST_NAMES])
        more = f" and {len(distinct) - _MOST_NAMES} more" if len(distinct) > _MOST_NAMES else ""
        super().__init__(f"the pickle names {names}{more} (offset {self.offset}), which is not allowed.")


class MalformedPickle(PickleError):
    """Truncated, over budget, or not a pickle; `offset` is the byte at which reading ended.

    `over_budget` says that reading ended by a limit of the whole value, not by what stands at `offset`.
    """

    def __init__(self, reason: str, offset: int, *, over_budget: bool = False) -> None:
        self.reason = reason
        self.over_budget = over_budget
        self.offset = offset
        super().__init__(f"{reason} (offset {offset}).")


@dataclass(frozen=True, slots=True)
class Decoded:
    """Outcome for one distinct value. Exactly one of `value` and `error` means something: `error` is None on success.

    Attributes:
        value: plain data and `exhume.pickles.nodes`; shared parts may be the same object, so never change it.
        globals: every (module, name) that the pickle names, in order, unsafe ones included.
        trailing: offset of the first byte after STOP, or None when STOP is the last byte.
    """

    value: Any
    globals: tuple[NamedGlobal, ...]
    trailing: int | None = None
    error: PickleError | None = None
