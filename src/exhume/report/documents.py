"""What all JSON documents have in common: the machine contract, version 1 of each format.

Fields may be added to a document, never changed or taken out. The JSON Schemas in `schemas/` say the same in data;
`exhume.report.schema` loads them. Every document opens with `format`, `exhume_version`, `source` (without passwords),
`started_at` and `finished_at` (UTC, RFC 3339).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from exhume._version import __version__
from exhume.events.model import TimeZoneReport
from exhume.redact import mask_url

Document = dict[str, Any]


class Span(NamedTuple):
    """When a run started and finished, as `exhume.report.wire.now` spells it."""

    started_at: str
    finished_at: str


def header(name: str, source: str, span: Span) -> Document:
    """The fields that every document opens with; `name` is the command, such as `detect`."""
    return {
        "format": f"exhume.{name}/1",
        "exhume_version": __version__,
        "source": mask_url(source),
        "started_at": span.started_at,
        "finished_at": span.finished_at,
    }


def time_zone_part(report: TimeZoneReport | None) -> Document | None:
    """`time_zone` of `detect` and `migrate`; null where times were not looked at."""
    if report is None:
        return None
    return {
        "zone": report.zone,
        "proof": report.proof,
        "sessions_agreeing": report.sessions_agreeing,
        "sessions_disagreeing": report.sessions_disagreeing,
        "ambiguous": report.ambiguous,
        "notes": list(report.notes),
        "offsets": dict(report.offsets),
    }
