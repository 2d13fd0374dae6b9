"""The interface of rules and their one registry. A rule is one class; its docstring is its page of documentation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from exhume.audit.findings import Confidence, Evidence, Finding, Severity
from exhume.audit.log import SessionLog
from exhume.audit.session_clock import SessionClock
from exhume.events.model import StateRecord, TimeZoneReport
from exhume.schema.detection import Detection

#: Seconds within which equal actions count as repeated (EXH103), unless told otherwise: a week.
WINDOW = 7 * 86400.0


@dataclass(slots=True)
class Context:
    """What a run knows beside the sessions: the detection, the zone, what the source can hold, options.

    `window` is in seconds (EXH103). `whole` is False where only some users or sessions of an app are read.
    `app_states`/`user_states` rows reach rules through `Rule.state_row`. `clock` is what rules show each session to
    that judge its times.
    """

    detection: Detection
    capabilities: frozenset[str]
    time_zone: TimeZoneReport
    window: float = WINDOW
    whole: bool = True
    notes: list[str] = field(default_factory=list)
    clock: SessionClock = field(default_factory=SessionClock)


class Rule:
    """Base of all rules. One instance lives for one run, so a rule may keep compact indexes across sessions.

    Subclasses set the class variables and override what they need. The docstring must have the sections
    `What it detects`, `Why it matters`, `Example`, `How ADK behaves`, `Harmless causes`, `What to do`.
    """

    id: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]
    needs: ClassVar[frozenset[str]] = frozenset()
    todo: ClassVar[str] = ""  # what to do, one sentence, for `Finding.todo`

    def __init__(self, context: Context) -> None:
        self.context = context

    def session(self, log: SessionLog) -> Iterable[Finding]:  # noqa: ARG002 - an interface
        """Findings in one session (or in orphaned events: then `log.session` is None). Sessions come in key order."""
        return ()

    def state_row(self, row: StateRecord) -> Iterable[Finding]:  # noqa: ARG002 - an interface
        """Findings in one row of app_states or user_states; these come before all sessions."""
        return ()

    def finish(self) -> Iterable[Finding]:
        """Findings across sessions or on the whole database, after the last session."""
        return ()

    def finding(
        self,
        message: str,
        *,
        place: tuple[str | None, str | None, str | None],
        subject: Iterable[str],
        severity: Severity | None = None,
        confidence: Confidence = Confidence.EXACT,
        event_ids: tuple[str, ...] = (),
        call_ids: tuple[str, ...] = (),
        evidence: tuple[Evidence, ...] = (),
    ) -> Finding:
        """A finding of this rule.

        Args:
            place: app, user and session; None for each that it does not belong to.
            subject: what the fingerprint is made of beside rule and place.
            severity: None takes the rule's.
        """
        app_name, user_id, session_id = place
        return Finding(  # in the order of its fields: with their names it would take twice as long
            self.id,
            self.name,
            self.severity if severity is None else severity,
            message,
            app_name,
            user_id,
            session_id,
            confidence,
            event_ids,
            call_ids,
            evidence,
            self.todo,
            tuple(subject),
        )


_REGISTRY: dict[str, type[Rule]] = {}


def register(rule: type[Rule]) -> type[Rule]:
    """Class decorator: adds a rule to the catalogue. Ids are unique and never reused."""
    if rule.id in _REGISTRY:
        raise AssertionError(f"rule {rule.id} is registered twice")
    _REGISTRY[rule.id] = rule
    return rule


def catalogue() -> Iterator[type[Rule]]:
    """All rules in order of id."""
    import exhume.audit.rules  # noqa: F401 - importing the families registers their rules

    for ident in sorted(_REGISTRY):
        yield _REGISTRY[ident]
