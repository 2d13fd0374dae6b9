"""What a few cells of a column hold: pickles, JSON in snake_case or camelCase, or something else."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from typing import NamedTuple

from exhume.stores.interface import Cell, Store

#: Rows looked at, from the start of the table in storage order. Enough for a verdict; the rest is read when it is used.
SAMPLE_ROWS = 32
_HEAD = 400
#: 2001 in epoch milliseconds; in seconds it would be the year 33658.
_MILLISECONDS = 10**12
_JSON_START = re.compile(r"\s*[{\[\"]|\s*null\s*\Z")
#: First opcode of what the picklers of protocols 0 and 1 write for an object, a dict, a list or a constant.
_OLD_PICKLE_START = frozenset(b"c(}])NIFSVKJMGU")
_CAMEL_KEYS = re.compile(r'"(?:invocationId|stateDelta|artifactDelta|longRunningToolIds|turnComplete|usageMetadata)"')
_SNAKE_KEYS = re.compile(
    r'"(?:invocation_id|state_delta|artifact_delta|long_running_tool_ids|turn_complete|usage_metadata)"'
)


class Sample(NamedTuple):
    """Number of sampled cells by what they hold; `seen` counts those that are not NULL.

    `camel` and `snake` count JSON by the spelling of its keys, `milliseconds` counts numbers that are epoch
    milliseconds of this century.
    """

    pickles: int = 0
    json: int = 0
    other: int = 0
    camel: int = 0
    snake: int = 0
    milliseconds: int = 0

    @property
    def seen(self) -> int:
        return self.pickles + self.json + self.other


def sample(store: Store, table: str, column: str) -> Sample:
    """Looks at the first rows of a column."""
    found: Counter[str] = Counter()
    for _, row in islice(store.rows(table, [column]), SAMPLE_ROWS):
        cell = row[0]
        if cell is None:
            continue
        kind, text = _kind(cell)
        found[kind] += 1
        found["milliseconds"] += isinstance(cell, int) and cell > _MILLISECONDS
        if kind == "json":
            found["camel"] += bool(_CAMEL_KEYS.search(text))
            found["snake"] += bool(_SNAKE_KEYS.search(text))
    return Sample(**found)


def _kind(cell: Cell) -> tuple[str, str]:
    if isinstance(cell, bytes):
        if cell[:1] == b"\x80" and len(cell) > 1 and cell[1] <= 5:
            return "pickles", ""
        text = cell[:_HEAD].decode("utf-8", "replace")
        if _JSON_START.match(text):
            return "json", text
        return ("pickles" if cell[:1] and cell[0] in _OLD_PICKLE_START and cell.endswith(b".") else "other"), ""
    if isinstance(cell, str):
        text = cell[:_HEAD]
        return ("json" if _JSON_START.match(text) else "other"), text
    return "other", ""
