"""Runs an export: one module a format, one line of registration here."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import assert_never

from exhume.events.interface import Reader
from exhume.export.interface import ExportFormat, ExportOptions
from exhume.export.redaction import Redactor
from exhume.export.writing import Writing
from exhume.schema.detection import Detection


@dataclass(slots=True)
class Export:
    """A running export: iterate over `pieces`, then look at the counts and notes."""

    pieces: Iterator[str]
    writing: Writing = field(default_factory=Writing)

    @property
    def notes(self) -> list[str]:
        """Sentences on what could not be exported as it is; complete when `pieces` has ended."""
        return self.writing.notes()


def export(reader: Reader, detection: Detection, options: ExportOptions | None = None) -> Export:
    """Exports what a reader gives. Nothing is read before the first piece is asked for.

    The text is JSON in ASCII. Memory holds one session at a time (for JSON Lines: one session's events).
    """
    options = options or ExportOptions()
    known = detection.info.sha256
    key = hashlib.sha256(known.encode()).digest() if known else os.urandom(32)
    redactor = Redactor(options.redact, key)
    writing = Writing()
    match options.format:
        case ExportFormat.JSONL:
            from exhume.export import json_lines

            return Export(json_lines.pieces(reader, redactor, writing, scoped=options.scoped), writing)
        case ExportFormat.SESSION:
            from exhume.export import session_json

            return Export(session_json.pieces(reader, redactor, writing), writing)
        case ExportFormat.EVALSET:
            from exhume.export import eval_set

            return Export(eval_set.pieces(reader, redactor, writing, name=options.name), writing)
    assert_never(options.format)
