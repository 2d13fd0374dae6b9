"""What `scan` found, as data: counts of globals, refused values, values that were read yet are worth a word."""

from __future__ import annotations

from dataclasses import dataclass

from exhume.pickles.evidence import SecondOpinion
from exhume.schema.detection import Layout


@dataclass(frozen=True, slots=True)
class GlobalCount:
    """A global that pickles name, and the number of rows that name it."""

    module: str
    name: str
    count: int
    allowed: bool


@dataclass(frozen=True, slots=True)
class ScannedValue:
    """One row whose value is refused, or told of. Keys that are not text are spelt as text.

    Attributes:
        rule: EXH501 unsafe global, EXH502 malformed, EXH503 something else than event actions, EXH504 bytes after the
            pickle. EXH503 of what can stand for actions, and EXH504, are only told of.
        reason: one sentence without the value itself.
        globals: dotted names of the unsafe globals, each once.
        offset: byte of the value that the reason is about.
        sha256, size: of the raw value.
        excerpt: disassembled opcodes around `offset`.
        options: what would decode it inertly.
        second_opinion: fickling's; its decompiled program stands only at the first row of each value.
    """

    app_name: str
    user_id: str
    session_id: str
    event_id: str
    rule: str
    reason: str
    offset: int
    sha256: str
    size: int
    globals: tuple[str, ...] = ()
    excerpt: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    second_opinion: SecondOpinion | None = None


@dataclass(frozen=True, slots=True)
class ScanReport:
    """The result of `scan`.

    Attributes:
        source: the store's redacted name.
        globals: by module and name, unsafe ones included.
        refused: the first ten thousand rows with a refused value.
        told: the first ten thousand rows with a value that was read, yet is worth a word (EXH503, EXH504).
        values_total, values_distinct, values_refused, values_told: all rows with a value, distinct values, rows refused
            and rows told of, listed or not.
        options: the `--allow-global` options that would decode all that is refused for its globals.
        extracted: files written, by name.
        notes: sentences for the report.
    """

    source: str
    layout: Layout
    sha256: str | None
    globals: tuple[GlobalCount, ...] = ()
    refused: tuple[ScannedValue, ...] = ()
    told: tuple[ScannedValue, ...] = ()
    values_total: int = 0
    values_distinct: int = 0
    values_refused: int = 0
    values_told: int = 0
    options: tuple[str, ...] = ()
    extracted: tuple[str, ...] = ()
    allowed_globals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
