"""What an export can be told: the format, how much is taken out, names. Light, so that `--help` costs nothing."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class ExportFormat(enum.StrEnum):
    """What `export --format` takes."""

    JSONL = "jsonl"
    SESSION = "session"
    EVALSET = "evalset"


class Redact(enum.StrEnum):
    """How much is taken out of an export."""

    NOTHING = "nothing"
    CREDENTIALS = "credentials"
    TEXTS = "texts"


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Everything that a run of `export` can be told; filters are those of the reader.

    `name` is the id of the eval set, and the beginning of the ids of its cases. `scoped`: of the states of apps and
    users, only those of the exported sessions are wanted.
    """

    format: ExportFormat = ExportFormat.JSONL
    redact: Redact = Redact.NOTHING
    name: str = "exhume"
    scoped: bool = False
