"""5xx: what the pickles of old session databases hold. Nothing is executed: the verdicts come from the interpreter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from exhume.audit.findings import Finding, Severity
from exhume.audit.log import Entry, SessionLog
from exhume.audit.rule import Rule, register
from exhume.audit.rules.row_findings import MOST_FINDINGS, of_session, plural, spelt
from exhume.events.model import Problem


class ProblemRule(Rule):
    """Base of the rules that tell what a reader could not read: a finding an event, beyond a bound one for the rest."""

    #: What stands before the reason in a finding.
    lead: ClassVar[str] = ""

    def session(self, log: SessionLog) -> Iterable[Finding]:
        affected = log.troubled
        if not affected:
            return ()
        return self._findings(log, affected)

    def _findings(self, log: SessionLog, affected: list[Entry]) -> Iterator[Finding]:
        rest: list[Entry] = []
        told = 0
        for entry in affected:
            problems = [problem for problem in entry.record.problems if problem.rule == self.id]
            if not problems:
                continue
            if told == MOST_FINDINGS:
                rest.append(entry)
                continue
            told += 1
            yield of_session(
                self,
                log,
                " ".join(self.tell(problem) for problem in problems),
                entries=[entry],
                subject=(entry.event_id, *(f"{problem.column} {problem.sha256}" for problem in problems)),
                notes=[", ".join(problem.column for problem in problems)],
            )
        if rest:
            message = f"{plural(len(rest), 'further event')} of this session with the same problem."
            yield of_session(self, log, message, entries=rest, subject=("rest", *(entry.event_id for entry in rest)))

    def tell(self, problem: Problem) -> str:
        """One sentence about one problem."""
        at = "" if problem.offset is None else f" (offset {problem.offset})"
        reason = problem.reason.rstrip(".")
        return f"{self.lead} `{problem.column}`: {reason}{'' if at in reason else at}."


@register
class UnsafeGlobal(ProblemRule):
    """EXH501 unsafe-global

    ## What it detects
    A pickle in `events.actions` names a class or function outside the reviewed set of types that ADK itself stores.

    ## Why it matters
    Unpickling calls what a pickle names. Whoever can write to the database can run code in every process that reads
    it with a loader that trusts it, and ADK releases before 2.8 do. exhume executes nothing and only names what it
    found.

    ## Example
    `cposix\\nsystem\\n(S'id'\\ntR.` in the actions of one event: the pickle calls `posix.system`.

    ## How ADK behaves
    Up to 2.7.1 such a value runs when the session is read. From 2.8.0 on ADK refuses it and the whole session cannot
    be loaded; `adk migrate session` empties the actions of the event and goes on (google.adk.sessions.schemas.v0).

    ## Harmless causes
    An enum, dataclass or pydantic model of the application itself that was put into state or into a confirmation's
    payload: ADK stored it without a word. The names tell which it is.

    ## What to do
    Read the names. A type of your own application can be decoded inertly with `--allow-global`; anything else is an
    incident: keep the file, see `exhume scan --extract`. The session was judged without the actions of this event.
    """

    id = "EXH501"
    name = "unsafe-global"
    severity = Severity.ERROR
    todo = (
        "If every name is a type of your own application, allow it with --allow-global and run again; "
        "otherwise treat it as an attack and keep the file as evidence."
    )

    def tell(self, problem: Problem) -> str:
        names = spelt(problem.globals) if problem.globals else problem.reason.rstrip(".")
        return f"The pickle in `{problem.column}` names {names}; the session was judged without these actions."


@register
class MalformedPickle(ProblemRule):
    """EXH502 malformed-pickle

    ## What it detects
    A value that should be a pickle is truncated, asks for more memory or depth than any honest one, or is no pickle.

    ## Why it matters
    What the event did is lost: state changes, pending approvals and requests for credentials live in its actions. A
    value that is built to exhaust memory takes down every process that reads it.

    ## Example
    The first 40 bytes of a pickle, or 759 bytes that unfold to 2^40 lists.

    ## How ADK behaves
    A session with such a value cannot be loaded. `adk migrate session` empties the actions and ends with exit code 0;
    on some of these values it never ends.

    ## Harmless causes
    A disk fault, a restore that was cut, a column of 65535 bytes (MySQL BLOB, see EXH313).

    ## What to do
    Restore the row from a backup, or migrate with `--quarantine`, which keeps the raw bytes.
    """

    id = "EXH502"
    name = "malformed-pickle"
    severity = Severity.ERROR
    todo = "Restore the row from a backup, or migrate with --quarantine, which keeps its raw bytes."
    lead = "No pickle can be read from"


@register
class UnexpectedPayload(ProblemRule):
    """EXH503 unexpected-payload

    ## What it detects
    A well-formed pickle that is not the actions of an event: a dict, a number, None, another object.

    ## Why it matters
    Something other than ADK wrote the row, or a column was mixed up. Readers disagree about what such a value means.

    ## Example
    The pickle of `{"state_delta": {"paid": True}}` where an `EventActions` object is expected.

    ## How ADK behaves
    The runtime fails on most of these values; `adk migrate session` takes a dict as actions and empties the rest.

    ## Harmless causes
    A script of your own that wrote events, or an import from another tool.

    ## What to do
    Find out what wrote the row; compare the event with its neighbours before you trust it.
    """

    id = "EXH503"
    name = "unexpected-payload"
    severity = Severity.WARNING
    todo = "Find out what wrote this row before you trust it."
    lead = "Unexpected content of the pickle in"


@register
class TrailingData(ProblemRule):
    """EXH504 trailing-data

    ## What it detects
    Bytes after the end of a pickle, or a second pickle in the same value.

    ## Why it matters
    Loaders stop at the first end and never see the rest: a place to hide a payload, or a sign of a faulty writer.

    ## Example
    A genuine value, followed by a pickle that calls `os.system`.

    ## How ADK behaves
    It loads the first pickle and ignores what follows, in every release.

    ## Harmless causes
    A line feed that an export or an import appended, padding of a fixed-width column.

    ## What to do
    Look at the bytes with `exhume scan --extract`; a second pickle does not get there by accident.
    """

    id = "EXH504"
    name = "trailing-data"
    severity = Severity.WARNING
    todo = "Look at the bytes after the end with `exhume scan --extract`."
    lead = "More than one pickle in"
