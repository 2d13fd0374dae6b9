"""Narrows a timeline to what an investigator asks for: an invocation, an author, a stretch of time, kinds of items."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from exhume.audit.timeline import Invocation, Timeline, Turn

#: What `show --only` takes -> kinds of items that it stands for.
GROUPS: dict[str, frozenset[str]] = {
    "approvals": frozenset(
        {"request", "placeholder", "approval", "rejection", "unreadable decision", "execution", "refusal"}
    ),
    "calls": frozenset({"call", "response", "execution", "answer", "placeholder", "refusal"}),
    "state": frozenset({"state", "artifact"}),
    "text": frozenset({"text", "thought", "data"}),
    "control": frozenset({"transfer", "escalation", "error", "compaction", "rewind", "unreadable"}),
}


@dataclass(frozen=True, slots=True)
class TimelineFilter:
    """What to keep; an empty or None member keeps everything.

    Attributes:
        invocation: id of one invocation.
        author: one author.
        since, until: epoch seconds, both inclusive; a turn without a readable time is kept.
        only: names of `GROUPS`; turns that have no such item are left out.
    """

    invocation: str | None = None
    author: str | None = None
    since: float | None = None
    until: float | None = None
    only: tuple[str, ...] = ()

    def apply(self, found: Timeline) -> Timeline:
        """The timeline with only the turns and items asked for; counts of the whole session stay as they are."""
        kept = [part for part in map(self._invocation, found.invocations) if part.turns]
        return replace(found, invocations=kept)

    def _invocation(self, part: Invocation) -> Invocation:
        if self.invocation is not None and part.id != self.invocation:
            return replace(part, turns=[])
        turns = [self._narrowed(turn) for turn in part.turns if self._wanted(turn)]
        return replace(part, turns=[turn for turn in turns if turn.items or not self.only])

    def _wanted(self, turn: Turn) -> bool:
        if self.author is not None and turn.author != self.author:
            return False
        since = -math.inf if self.since is None else self.since
        until = math.inf if self.until is None else self.until
        return turn.time is None or since <= turn.time <= until

    def _narrowed(self, turn: Turn) -> Turn:
        if not self.only:
            return turn
        kinds = frozenset[str]().union(*(GROUPS[name] for name in self.only))
        return replace(turn, items=tuple(item for item in turn.items if item.kind in kinds))
