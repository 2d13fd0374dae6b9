"""Which globals may be decoded: the reviewed set of `allowed_globals.json`, and what the user allows besides."""

from __future__ import annotations

import functools
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from exhume.errors import UsageError
from exhume.packaged import packaged

Kind = Literal["model", "enum", "value", "form"]

#: `module.name` or `module.*`; a name may be dotted (a class in a class) and hold `<locals>`.
_OPTION = re.compile(r"[^\s.*]+(\.[^\s.*]+)*\.(\*|[^\s.*]+)")


@dataclass(frozen=True, slots=True)
class AllowedGlobal:
    """One entry of the reviewed set.

    Attributes:
        kind: how it is decoded, see `allowed_globals.json`.
        since: first ADK release that was seen to write it; None where it is only known to be able to.
        why: what it is for.
        members: of an enum, name -> value.
    """

    kind: Kind
    since: str | None
    why: str
    members: Mapping[str, str] = field(default_factory=dict)


@functools.cache
def reviewed() -> Mapping[tuple[str, str], AllowedGlobal]:
    """The reviewed set: (module, name) -> entry."""
    text = packaged("exhume.pickles", "allowed_globals.json")
    return {
        (module, name): AllowedGlobal(
            kind=entry["kind"],
            since=entry.get("since"),
            why=entry.get("note") or group["why"],
            members=entry.get("members", {}),
        )
        for module, group in json.loads(text)["modules"].items()
        for name, entry in group["names"].items()
    }


class Allowed:
    """The reviewed set and names that the user allows: still decoded inertly, never imported.

    Args:
        extra: `module.name`, or `module.*` for all names of exactly that module. A name is never matched by its
            beginning: `a.B` allows neither `a.B.c` nor `a.Bc`.

    Raises:
        UsageError: a text that is neither.
    """

    def __init__(self, extra: Iterable[str] = ()) -> None:
        self.extra = tuple(dict.fromkeys(extra))
        for text in self.extra:
            if not _OPTION.fullmatch(text):
                raise UsageError(
                    f"'{text}' is not the name of a global.", todo="Write module.Name, or module.* for one module."
                )
        self._names = frozenset(text for text in self.extra if not text.endswith(".*"))
        self._modules = frozenset(text.removesuffix(".*") for text in self.extra if text.endswith(".*"))
        self._reviewed = reviewed()

    def permits(self, module: str, name: str) -> bool:
        """May a pickle name this global?"""
        return (module, name) in self._reviewed or self.permits_besides(module, name)

    def permits_besides(self, module: str, name: str) -> bool:
        """Is it allowed by the user, and not by the reviewed set?"""
        if not self.extra or (module, name) in self._reviewed:
            return False
        return module in self._modules or f"{module}.{name}" in self._names

    def entry(self, module: str, name: str) -> AllowedGlobal | None:
        """The entry of the reviewed set, None for what the user allows."""
        return self._reviewed.get((module, name))


def option_for(dotted: str) -> str:
    """The option that decodes one more global inertly, for a message.

    Args:
        dotted: `module.name`, whatever a pickle may give as either.

    Returns:
        Text that is safe to paste into a shell; empty where no option can name the global.
    """
    # a global that is called `*` must not talk anyone into allowing a whole module
    return f"--allow-global {shlex.quote(dotted)}" if _OPTION.fullmatch(dotted) and "*" not in dotted else ""
