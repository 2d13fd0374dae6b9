"""What `detect` found, as a document and for a person."""

from __future__ import annotations

from exhume.events.model import TimeZoneReport
from exhume.redact import mask_url
from exhume.report.documents import Document, Span, header, time_zone_part
from exhume.report.view import Block, Mood, View, contradiction, list_blocks, number, zone_text
from exhume.schema.detection import Detection, Layout

#: What writes a layout that no release of ADK for Python writes.
_WRITERS = {
    Layout.GO: "adk-go",
    Layout.JS: "adk-js",
    Layout.JAVA_FLYWAY: "adk-java",
    Layout.JAVA_CONTRIB: "adk-java",
}
_TO_V1 = "To move it to the current schema: exhume migrate SOURCE DESTINATION"


def detection_document(detection: Detection, *, span: Span, time_zone: TimeZoneReport | None = None) -> Document:
    """`exhume.detect/1`."""
    info = detection.info
    return {
        **header("detect", info.name, span),
        "layout": str(detection.layout),
        "schema_version": detection.schema_version,
        "declared_version": detection.declared_version,
        "latest": detection.latest,
        "adk_releases": {"from": detection.releases.first, "to": detection.releases.last},
        "contradictions": list(detection.contradictions),
        "evidence": list(detection.evidence),
        "tables": dict(detection.counts),
        "drift": list(detection.drift),
        "drift_checked": detection.drift_checked,
        "time_zone": time_zone_part(time_zone),
        "sha256": info.sha256,
        "sidecars": [
            {"kind": one.kind, "path": one.path, "size": one.size, "meaning": one.meaning} for one in info.sidecars
        ],
        "kind": info.kind,
        "dialect": info.dialect,
        "notes": list(info.notes),
    }


def detection_view(detection: Detection, *, span: Span, time_zone: TimeZoneReport | None = None) -> View:
    """What to show of a detection."""
    info = detection.info
    facts = [("layout", str(detection.layout)), ("written by", _releases(detection))]
    if detection.declared_version is not None:
        facts.append(("declares", f"schema version {detection.declared_version}"))
    if time_zone is not None:
        facts.append(("time zone", zone_text(time_zone)))
    if info.sha256 is not None:
        facts.append(("sha256", info.sha256))
    facts += [(one.kind, f"{one.path} ({one.size:,} bytes): {one.meaning}") for one in info.sidecars]
    blocks = [
        Block(
            "Rows",
            ("table", "rows"),
            tuple((name, f"{count:,}") for name, count in detection.counts.items()),
            right=frozenset({1}),
        )
    ]
    blocks += list_blocks(("Evidence", detection.evidence), ("Drift from the declared layout", detection.drift))
    return View(
        command="detect",
        source=mask_url(info.name),
        mood=_detection_mood(detection),
        verdict=_detection_verdict(detection),
        todo=_detection_todo(detection),
        facts=tuple(facts),
        blocks=tuple(blocks),
        findings=tuple(contradiction(text) for text in detection.contradictions),
        notes=info.notes,
        started_at=span.started_at,
        finished_at=span.finished_at,
    )


def _releases(detection: Detection) -> str:
    first, last = detection.releases.first, detection.releases.last
    if detection.layout in _WRITERS:
        return _WRITERS[detection.layout]
    if detection.layout is Layout.EXPORT:
        return "unknown: an export does not say"
    if first is None and last is None:
        return "no ADK release is known to write this"
    if first == last:
        return f"ADK {first}"
    return f"ADK {first or 'of any age'} to {last or 'the newest'}"


def _detection_mood(detection: Detection) -> Mood:
    if detection.layout in (Layout.FOREIGN, Layout.MIXED, Layout.UNKNOWN_VERSION):
        return Mood.BAD
    return Mood.GOOD if detection.latest else Mood.LOOK


def _detection_verdict(detection: Detection) -> str:
    match detection.layout:
        case Layout.V1:
            verdict = "The current schema (v1)."
        case Layout.V0:
            verdict = "An old database (v0): its events hold pickles."
        case Layout.FOREIGN:
            verdict = "Not a session database of ADK."
        case Layout.EMPTY:
            verdict = "A session database of ADK without a single row."
        case Layout.MIXED:
            verdict = "Two layouts in one database: a migration stopped half-way, or two releases wrote side by side."
        case Layout.UNKNOWN_VERSION:
            verdict = f"Declares schema version {detection.declared_version}, which this release does not know."
        case Layout.EXPORT:
            verdict = "Sessions exported as JSON, not a database."
        case Layout.SQLITE_SERVICE:
            verdict = "A session database of SqliteSessionService."
        case Layout.GO | Layout.JS | Layout.JAVA_FLYWAY | Layout.JAVA_CONTRIB as other:
            verdict = f"A session database of {_WRITERS[other]}."
        case other:
            verdict = f"A session database with the layout {other}."
    if detection.contradictions:
        verdict += f" {number(len(detection.contradictions), 'contradiction')}."
    return verdict


def _detection_todo(detection: Detection) -> tuple[str, ...]:
    match detection.layout:
        case Layout.EXPORT:
            return ("To read it: exhume audit, show, approvals or export",)
        case Layout.SQLITE_SERVICE:
            return ("To move it to DatabaseSessionService: exhume migrate SOURCE DESTINATION",)
        case Layout.V0 | Layout.V1_UNMARKED | Layout.GO | Layout.JS | Layout.JAVA_FLYWAY | Layout.JAVA_CONTRIB:
            return (_TO_V1,)
        case Layout.MIXED:
            return ("Look at both kinds of tables before anything is moved; go back to a backup if there is one.",)
        case Layout.UNKNOWN_VERSION:
            return ("Look for a newer exhume.",)
        case Layout.FOREIGN:
            return ("Check the path, and --table-prefix if the tables have other names.",)
    return ()
