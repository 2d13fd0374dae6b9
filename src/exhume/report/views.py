"""What detect, scan, migrate and verify found, as people see it: the verdict first, then what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from exhume.audit.findings import Evidence, Finding, Severity
from exhume.events.model import TimeZoneReport
from exhume.migrate.interface import Difference, MigrationReport, RefusedRow, VerifyReport
from exhume.pickles.allowed import option_for
from exhume.redact import mask_url
from exhume.report.documents import Span
from exhume.report.view import Block, Mood, View, number
from exhume.schema.detection import Detection, Layout

#: What writes a layout that no release of ADK for Python writes.
_WRITERS = {
    Layout.GO: "adk-go",
    Layout.JS: "adk-js",
    Layout.JAVA_FLYWAY: "adk-java",
    Layout.JAVA_CONTRIB: "adk-java",
}
_TO_V1 = "To move it to the current schema: exhume migrate SOURCE DESTINATION"
#: Names that one line of advice holds; the documents have all.
_MOST_NAMES = 6


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
        findings=tuple(_whole("contradiction", Severity.WARNING, text) for text in detection.contradictions),
        notes=info.notes,
        started_at=span.started_at,
        finished_at=span.finished_at,
    )


def _releases(detection: Detection) -> str:
    first, last = detection.releases.first, detection.releases.last
    if detection.layout in _WRITERS:
        return _WRITERS[detection.layout]
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


def zone_text(report: TimeZoneReport) -> str:
    """The zone and what speaks for it, in one line."""
    text = f"{report.zone} ({report.proof})"
    if report.sessions_agreeing or report.sessions_disagreeing:
        text += f": {number(report.sessions_agreeing, 'session')} agree"
        text += f", {report.sessions_disagreeing:,} disagree" if report.sessions_disagreeing else ""
    return text + (f"; {number(report.ambiguous, 'time')} in a repeated hour" if report.ambiguous else "")


def list_blocks(*lists: tuple[str, tuple[str, ...] | list[str]]) -> list[Block]:
    """A block of one column for each list that is not empty."""
    return [Block(title, ("",), tuple((text,) for text in texts)) for title, texts in lists if texts]


def allow_todo(names: Iterable[str]) -> tuple[str, ...]:
    """What to do about refused globals with these dotted names: Python's own apart, which attacks use."""
    own: list[str] = []
    python: list[str] = []
    for name in names:
        option = option_for(name)
        if option and name.partition(".")[0] in sys.stdlib_module_names:
            python.append(name)
        elif option:
            own.append(option)
    todo = []
    if own:
        shown = _shortened(own)
        todo.append(f"If these types are your application's own: {shown} decodes them, inertly, as plain data.")
    if python:
        shown = _shortened(python, ", ")
        todo.append(f"Parts of Python, which attacks name, too: {shown}. Find out who wrote them before you allow one.")
    return tuple(todo)


def _shortened(texts: list[str], separator: str = " ") -> str:
    return separator.join(texts[:_MOST_NAMES]) + (f"{separator}..." if len(texts) > _MOST_NAMES else "")


def migration_view(report: MigrationReport) -> View:
    """What to show of a migration, of a refused one too."""
    zone = report.time_zone
    facts = [("destination", mask_url(report.destination)), ("path", " -> ".join(report.path) or "none")]
    facts.append(("time zone", zone_text(zone)))
    if not report.dry_run:
        facts.append(("verified", "yes, every row read back" if report.verified else "no"))
    if report.source_sha256_before:
        same = report.source_sha256_before == report.source_sha256_after
        said = "unchanged" if same else "CHANGED WHILE IT WAS READ"
        facts.append(("sha256", f"{report.source_sha256_before} ({said})"))
    if report.quarantine:
        facts.append(("quarantine", report.quarantine))
    if report.allowed_globals:
        facts.append(("allowed by you", ", ".join(report.allowed_globals)))
    if report.seconds:
        facts.append(("seconds", ", ".join(f"{stage} {spent:.2f}" for stage, spent in report.seconds.items())))
    rows = tuple(
        (name, f"{one.read:,}", f"{one.written:,}", f"{one.created:,}", f"{one.quarantined:,}")
        for name, one in report.tables.items()
    )
    blocks = list_blocks(("Plan", report.plan))
    blocks.append(Block("Rows", ("table", "read", "written", "created", "quarantined"), rows, frozenset({1, 2, 3, 4})))
    if report.losses:
        losses = tuple((one.kind, f"{one.count:,}", one.example) for one in report.losses)
        blocks.append(
            Block("Conversions that JSON forces", ("kind", "count", "first place"), losses, right=frozenset({1}))
        )
    shown = len(report.refused)
    notes = [*report.notes, *zone.notes]
    if report.refused_count > shown:
        notes.append(f"{report.refused_count - shown:,} more refused rows are counted but not listed.")
    return View(
        command="migrate",
        source=mask_url(report.source),
        mood={"complete": Mood.GOOD, "nothing to do": Mood.GOOD, "incomplete": Mood.LOOK}.get(report.status, Mood.BAD),
        verdict=_migration_verdict(report),
        todo=_migration_todo(report),
        facts=tuple(facts),
        blocks=tuple(blocks),
        findings=(
            *(_whole("contradiction", Severity.WARNING, text) for text in report.contradictions),
            *(_refused(row) for row in report.refused),
        ),
        notes=tuple(notes),
        started_at=report.started_at,
        finished_at=report.finished_at,
    )


def _migration_verdict(report: MigrationReport) -> str:
    events = report.tables.get("events")
    match report.status:
        case "complete" if report.dry_run:
            return "Nothing stands in the way of this migration. Nothing was written."
        case "complete":
            return f"Complete: {number(events.written if events else 0, 'event')} written and verified, none lost."
        case "nothing to do":
            return f"Nothing to do: the layout is {' -> '.join(report.path)} already. Nothing was written."
        case "incomplete":
            return f"Incomplete: {number(report.refused_count, 'row')} in quarantine, the rest written and verified."
    if report.dry_run:
        return f"{number(report.refused_count, 'row')} cannot be carried over as they are. Nothing was written."
    return f"Refused: {number(report.refused_count, 'row')} cannot be carried over as they are. Nothing was written."


def _migration_todo(report: MigrationReport) -> tuple[str, ...]:
    if report.status == "incomplete":
        return (f"Look at the rows in {report.quarantine}: they are not in the destination as they were.",)
    if report.status == "nothing to do":
        return ("Use the source as it is: there is no destination.",)
    if report.status != "refused":
        return ()
    names = sorted({name for row in report.refused for problem in row.problems for name in problem.globals})
    return (*allow_todo(names), "To move the rest and keep these rows apart: --quarantine FILE")


def verify_view(report: VerifyReport) -> View:
    """What to show of a comparison."""
    facts = (
        ("destination", mask_url(report.destination)),
        ("layouts", f"{report.source_layout} and {report.destination_layout}"),
        ("time zone", f"{zone_text(report.source_time_zone)}; destination {zone_text(report.destination_time_zone)}"),
    )
    rows = tuple(
        (name, f"{one.source:,}", f"{one.destination:,}", f"{one.equal:,}", f"{one.created:,}")
        for name, one in report.tables.items()
    )
    columns = ("table", "source", "destination", "equal", "only fill a gap")
    notes = [*report.notes]
    if report.difference_count > len(report.differences):
        notes.append(
            f"{report.difference_count - len(report.differences):,} more differences are counted but not listed."
        )
    verdict = "Equal: the same sessions, event by event."
    if not report.equal:
        verdict = f"Not equal: {number(report.difference_count, 'difference')}."
    return View(
        command="verify",
        source=mask_url(report.source),
        mood=Mood.GOOD if report.equal else Mood.BAD,
        verdict=verdict,
        todo=() if report.equal else ("Do not use the destination in place of the source.",),
        facts=facts,
        blocks=(Block("Rows", columns, rows, right=frozenset({1, 2, 3, 4})),),
        findings=tuple(_difference(one) for one in report.differences),
        notes=tuple(notes),
        started_at=report.started_at,
        finished_at=report.finished_at,
    )


def _difference(one: Difference) -> Finding:
    what = one.field or "the whole row"
    source, destination = one.source or "absent", one.destination or "absent"
    return Finding(
        rule="difference",
        name="difference",
        severity=Severity.ERROR,
        message=f"{one.table}: {what} is {source} in the source, {destination} in the destination",
        app_name=one.key.app_name or None,
        user_id=one.key.user_id or None,
        session_id=one.key.session_id or None,
        event_ids=(one.key.event_id,) if one.key.event_id else (),
    )


def _whole(name: str, severity: Severity, text: str) -> Finding:
    """A finding on the whole database that no rule of the catalogue makes."""
    return Finding(
        rule=name,
        name=name,
        severity=severity,
        message=text,
        app_name=None,
        user_id=None,
        session_id=None,
        fingerprint=name,
    )


def _refused(row: RefusedRow) -> Finding:
    lead = next((problem for problem in row.problems if problem.fatal), None)
    key = row.key
    return Finding(
        rule=lead.rule if lead else "EXH307",
        name="refused-row",
        severity=Severity.ERROR,
        message="; ".join(f"{problem.column}: {problem.reason}" for problem in row.problems),
        app_name=key.app_name,
        user_id=key.user_id,
        session_id=key.session_id,
        event_ids=(key.event_id,) if key.event_id else (),
        evidence=(Evidence(row.table, key, "refused", note=f"hop {row.hop}"),),
    )
