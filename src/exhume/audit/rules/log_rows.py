"""3xx: rows that should not be there, or are not whole (EXH301, EXH302, EXH303, EXH307, EXH313)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from exhume.audit.findings import Finding, Severity
from exhume.audit.log import Entry, SessionLog
from exhume.audit.rule import Context, Rule, register
from exhume.audit.rules.log_times import LARGEST_OFFSET
from exhume.audit.rules.pickles import ProblemRule
from exhume.audit.rules.row_findings import Held, of_session, of_state_row, plural, spelt, whose_state
from exhume.events.model import Problem, StateRecord

#: A session's row is written after the moment it was created at, and some databases round times to whole seconds.
_CLOCK_TOLERANCE = 1.0
#: ADK's mark at the end of a text that it cut (google.adk.sessions.schemas.v0, 2.13.0).
_TRUNCATION_MARK = "...[truncated]"
#: Longest `error_message`: VARCHAR(1024) of 1.0.0 to 1.21.0; 255 and 256 are the columns of files older still.
_ERROR_MESSAGE_LIMITS = frozenset({255, 256, 1024})
#: MySQL's TEXT and BLOB: 1.0.0 stored actions in a BLOB there.
_BYTES_LIMIT = 65535
_VARCHAR = re.compile(r"(?:n?varchar2?|character varying|n?char)\s*\(\s*(\d+)", re.IGNORECASE)
#: Columns whose text can be longer than the column; keys cannot, they are made short.
_TEXT_COLUMNS = ("author", "branch", "error_code", "error_message", "invocation_id")


@register
class OrphanedEvents(Rule):
    """EXH301 orphaned-events

    ## What it detects
    Events whose session row does not exist, or events older than the creation of their session.

    ## Why it matters
    The log of one session holds the life of another: decisions, results and state changes that belong to a deleted
    session are replayed into the new one, and the model reads them as its own history.

    ## Example
    Session `case-7` was deleted and created again; its old approvals are part of the new conversation.

    ## How ADK behaves
    Up to 1.11.0 `delete_session` left the events behind on SQLite. A session created again under the same id then
    shows them (google.adk.sessions.database_session_service). From 1.14.1 on they are deleted with the session.

    ## Harmless causes
    Events that an application appended with timestamps of its own (an imported history), a server whose clock ran
    ahead. Where many sessions are off by one and the same zone, EXH310 says so once, and this rule is silent.

    ## What to do
    Do not continue the session before the old events are moved away; check whether approvals among them were acted
    upon.
    """

    id = "EXH301"
    name = "orphaned-events"
    severity = Severity.ERROR
    todo = "Keep these events apart from the session before anyone continues it."

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._held = Held()  # by the age of the oldest event, in seconds: a clock in another zone may explain it

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if log.session is None:
            count = plural(len(log.entries), "event")
            return (of_session(self, log, f"The session has no row, but {count}.", entries=log.entries),)
        self.context.clock.see(log)
        created = log.session.create_time
        if created is None:
            return ()
        limit = created - _CLOCK_TOLERANCE
        first = log.entries[0].time if log.entries else None
        if first is not None and first >= limit:  # in order of time: nothing is older than the first
            return ()
        older = [entry for entry in log.entries if entry.time is not None and entry.time < limit]
        if not older:
            return ()
        message = (
            f"{plural(len(older), 'event')} of {len(log.entries)} in this session "
            f"{'is' if len(older) == 1 else 'are'} older than the session itself: its id was used before, "
            "or events were dated back."
        )
        finding = of_session(self, log, message, entries=older)
        age = created - (older[0].time or 0.0)
        return (finding,) if age > LARGEST_OFFSET else self._held.hold(age, finding, log, older)

    def finish(self) -> Iterable[Finding]:
        return self._held.unless(self.context.clock.explains_age)


@register
class PartialEventStored(Rule):
    """EXH302 partial-event-stored

    ## What it detects
    A stored event that is marked `partial`: a chunk of a streamed answer.

    ## Why it matters
    A chunk may hold function calls under ids that the final event does not repeat. Tools that do not skip it see
    calls that were never made, and the text of the answer twice.

    ## Example
    Two chunks "I will" and "I will refund" stand before the final event.

    ## How ADK behaves
    Its runner never appends partial events, and its session services drop them. exhume ignores calls and responses in
    them as ADK does.

    ## Harmless causes
    An application that appends every event of the stream itself.

    ## What to do
    Append only final events; the chunks can be deleted once the final event is there.
    """

    id = "EXH302"
    name = "partial-event-stored"
    severity = Severity.WARNING
    todo = "Let the application append only events that are not partial."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        partial = log.partials
        if not partial:
            return ()
        message = f"{plural(len(partial), 'partial event')} of a stream {'is' if len(partial) == 1 else 'are'} stored."
        return (of_session(self, log, message, entries=partial),)


@register
class MissingInvocationId(Rule):
    """EXH303 missing-invocation-id

    ## What it detects
    Events without an invocation id.

    ## Why it matters
    Without it nobody can tell which turn an event belongs to: resuming, rewinding and the pairing of parallel answers
    rest on it.

    ## Example
    An agent's answer with `invocation_id` "" between two whole turns.

    ## How ADK behaves
    The runner always sets one; `Event()` made by hand has an empty one, and every session service stores it.

    ## Harmless causes
    An application that appends events of its own, such as a greeting or a state change.

    ## What to do
    Set an invocation id on events that the application makes.
    """

    id = "EXH303"
    name = "missing-invocation-id"
    severity = Severity.WARNING
    todo = "Set an invocation id on events that the application makes itself."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        missing = [entry for entry in log.entries if not entry.invocation_id]
        # an event of which nothing could be read is told by EXH307 or EXH502
        missing = [entry for entry in missing if not entry.blind]
        if not missing:
            return ()
        return (of_session(self, log, f"{plural(len(missing), 'event')} without invocation id.", entries=missing),)


@register
class UnreadableEvent(ProblemRule):
    """EXH307 unreadable-event

    ## What it detects
    JSON of an event or of a state that cannot be read: cut off, not JSON, not an object, a wrong type of column.

    ## Why it matters
    Whatever the event did is missing from every other verdict on this session. One such row makes the session, or
    with app state the whole app, impossible to load.

    ## Example
    `event_data` ends in the middle of a string; a state is the bare word `Inf`.

    ## How ADK behaves
    Loading the session raises. SqliteSessionService 2.9.2 could itself write `Inf` for a very large number, after
    which no session of that app could be loaded. `adk migrate session` drops such events with a line in its log.

    ## Harmless causes
    None is known: a disk fault, a cut restore and a faulty script are all worth repairing.

    ## What to do
    Restore the row from a backup, or migrate with `--quarantine`, which keeps it beside the result. A state whose one
    fault is the bare word `Inf` needs neither: `exhume migrate` makes it `Infinity`, which ADK loads, and says so.
    """

    id = "EXH307"
    name = "unreadable-event"
    severity = Severity.ERROR
    todo = "Restore the row from a backup, or migrate with --quarantine, which keeps it."
    lead = "Cannot be read:"

    def session(self, log: SessionLog) -> Iterable[Finding]:
        row = log.session
        if row is None or not row.problems:
            return super().session(log)
        return (*self._of_row(log, row), *super().session(log))

    def _of_row(self, log: SessionLog, row: StateRecord) -> Iterator[Finding]:
        problems = _of_rule(row.problems, self.id)
        if problems:
            message = " ".join(self.tell(problem) for problem in problems)
            subject = ("sessions", *(f"{problem.column} {problem.sha256}" for problem in problems))
            yield of_session(self, log, message, subject=subject)

    def state_row(self, row: StateRecord) -> Iterable[Finding]:
        problems = _of_rule(row.problems, self.id) if row.problems else []
        if not problems:
            return ()
        message = " ".join(f"{self.tell(problem)[:-1]}, in {whose_state(row)}." for problem in problems)
        return (of_state_row(self, row, message, subject=[problem.column for problem in problems]),)


def _of_rule(problems: Iterable[Problem], rule: str) -> list[Problem]:
    return [problem for problem in problems if problem.rule == rule]


@register
class TruncatedValue(Rule):
    """EXH313 truncated-value

    ## What it detects
    A text that ends exactly at the limit of its column or with ADK's truncation mark, or a pickle of 65535 bytes.

    ## Why it matters
    A database that cuts instead of refusing leaves an error message without its cause, or a pickle without its end.

    ## Example
    An `error_message` of exactly 1024 characters in a v0 file.

    ## How ADK behaves
    2.13.0 cuts `error_message` in v0 databases to 256 characters and marks it with `...[truncated]`. Older releases
    store longer texts uncut in SQLite; MySQL in non-strict mode cuts without a word. Release 1.0.0 stored actions in
    a column of 65535 bytes there.

    ## Harmless causes
    A text that happens to be exactly that long.

    ## What to do
    Look for the whole text in the application's own logs; migrate to v1, which has no such limit.
    """

    id = "EXH313"
    name = "truncated-value"
    severity = Severity.WARNING
    todo = "Look for the whole text in the application's logs, and migrate to v1, which has no such limit."

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._limits: dict[str, frozenset[int]] = {}
        table = context.detection.tables.get("events")
        for column in table.columns if table is not None else ():
            if column.name in _TEXT_COLUMNS:
                found = _VARCHAR.search(column.type)
                declared = {int(found.group(1))} if found and len(found.group(1)) < 10 else set()
                known = _ERROR_MESSAGE_LIMITS if column.name == "error_message" else frozenset()
                self._limits[column.name] = known | frozenset(size for size in declared if size >= 64)
        self._columns: tuple[str, ...] | None = None
        self._texts: list[tuple[int, str, frozenset[int]]] = []
        self._pickle: int | None = None

    def session(self, log: SessionLog) -> Iterable[Finding]:
        cut: list[Entry] = []
        notes: list[str] = []
        for entry in log.entries:
            record = entry.record
            if record.source is not None:  # event_data: no column cuts a part of it, but a migration keeps the mark
                told = entry.data.get("error_message")
                if told and isinstance(told, str) and told.endswith(_TRUNCATION_MARK):
                    cut.append(entry)
                    notes.append("error_message ends with ADK's truncation mark")
                continue
            if not record.raw:
                continue
            if record.columns is not self._columns:
                self._learn(record.columns)
            note = self._cut(record.raw)
            if note:
                cut.append(entry)
                notes.append(note)
        if not cut:
            return ()
        message = f"{plural(len(cut), 'event')} with a value that was probably cut: {spelt(dict.fromkeys(notes))}."
        return (of_session(self, log, message, entries=cut, notes=notes),)

    def _learn(self, columns: tuple[str, ...]) -> None:
        self._columns = columns
        self._texts = [
            (place, name, self._limits.get(name, frozenset()))
            for place, name in enumerate(columns)
            if name in _TEXT_COLUMNS
        ]
        self._pickle = columns.index("actions") if "actions" in columns else None

    def _cut(self, raw: tuple[object, ...]) -> str:
        for place, name, limits in self._texts:
            text = raw[place]
            if isinstance(text, str) and (len(text) in limits or text.endswith(_TRUNCATION_MARK)):
                return f"{name} ends at {len(text)} characters"
        if self._pickle is not None:
            actions = raw[self._pickle]
            if isinstance(actions, bytes) and len(actions) == _BYTES_LIMIT:
                return f"actions end at {_BYTES_LIMIT} bytes"
        return ""
