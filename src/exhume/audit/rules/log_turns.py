"""3xx: turns of a session that are repeated, mixed up or never ended (EXH305, EXH311, EXH312)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter

from exhume.audit.digest import quick_digest
from exhume.audit.findings import Finding, Severity
from exhume.audit.log import CONFIRMATION, CREDENTIAL, REQUEST_PREFIX, Call, Entry, SessionLog
from exhume.audit.rule import Rule, register
from exhume.audit.rules.row_findings import of_session, plural, spelt

_EVENT_ID = attrgetter("record.key.event_id")
#: Two events this close in time, in seconds, can be one event stored twice.
_CLOSE = 1.0
#: So many events are compared pair by pair; more are hashed.
_FEW = 8
_OWN_FIELDS = frozenset({"id", "timestamp"})
#: Actions that a resumable agent stores at every step, equal ones in a row too (google.adk.agents, 1.16.0 on).
_CHECKPOINTS = frozenset({"agent_state", "end_of_agent"})


@register
class RepeatedEvent(Rule):
    """EXH305 repeated-event

    ## What it detects
    Two events of a session that are equal in invocation, author, branch, content, actions, output and node of a
    workflow, within one second; or one event id that occurs twice.

    ## Why it matters
    A retry stored the same event again. The model reads the request twice, a tool's result counts twice, and a replay
    of the log does everything twice.

    ## Example
    A client's retry stores "refund order 7" twice within 20 ms.

    ## How ADK behaves
    Every event gets a new id when it is made, so storing it again under another id is not noticed. The primary key of
    the table forbids the same id in one session; exports have no such guard.

    ## Harmless causes
    An agent that says the same short text twice on purpose. Chunks of a stream and answers to a confirmation are left
    to EXH302 and EXH101.

    ## What to do
    Make the writer retry with the same event id; remove the copy before the session is continued.
    """

    id = "EXH305"
    name = "repeated-event"
    severity = Severity.WARNING
    todo = "Make the writer's retry use the same event id, and remove the copy."

    def session(self, log: SessionLog) -> Iterator[Finding]:
        entries = log.entries
        if len(set(map(_EVENT_ID, entries))) < len(entries):
            yield from self._same_ids(log)
        start = 0  # of the events that lie close to each other
        last: float | None = None
        for place, entry in enumerate(entries):
            time = entry.time
            if time is None or last is None or time - last > _CLOSE:
                if place - start > 1:
                    yield from self._close(log, entries[start:place])
                start = place
            last = time
        if len(entries) - start > 1:
            yield from self._close(log, entries[start:])

    def _same_ids(self, log: SessionLog) -> Iterator[Finding]:
        seen: dict[str, Entry] = {}
        for entry in log.entries:
            first = seen.setdefault(entry.event_id, entry)
            if first is not entry:
                yield self._finding(log, first, entry, "have the same id")

    def _close(self, log: SessionLog, group: list[Entry]) -> Iterator[Finding]:
        """Compares events in order of time, each at most a second from the one before."""
        if len(group) == 2 and not _alike(*group):  # nearly every group is two events that differ
            return
        authors: dict[tuple[str, str], list[Entry]] = {}
        for entry in group:
            authors.setdefault((entry.invocation_id, entry.author), []).append(entry)
        for entries in authors.values():
            if len(entries) > 1 and (len(entries) > _FEW or _any_equal(entries)):
                yield from self._compare(log, entries)

    def _compare(self, log: SessionLog, entries: list[Entry]) -> Iterator[Finding]:
        latest: dict[bytes, Entry] = {}
        for entry in filter(_comparable, entries):
            mark = _fingerprint(entry)
            twin = latest.get(mark)
            latest[mark] = entry
            if twin is None or twin.time is None or entry.time is None or twin.event_id == entry.event_id:
                continue
            apart = entry.time - twin.time
            if apart <= _CLOSE:
                yield self._finding(log, twin, entry, f"are equal and {apart:.3f} s apart")

    def _finding(self, log: SessionLog, first: Entry, second: Entry, how: str) -> Finding:
        subject = sorted((first.event_id, second.event_id))
        return of_session(self, log, f"Two events {how}.", entries=[first, second], subject=subject)


def _alike(one: Entry, other: Entry) -> bool:
    """Have two events the same author, invocation and content?"""
    return (
        one.author == other.author
        and one.invocation_id == other.invocation_id
        and one.data.get("content") == other.data.get("content")
    )


def _any_equal(entries: list[Entry]) -> bool:
    """A quick look: do any two of a few events have equal content?"""
    contents = [entry.data.get("content") for entry in entries]
    return any(content in contents[:place] for place, content in enumerate(contents))


def _comparable(entry: Entry) -> bool:
    """Can this event be a copy? Not a chunk, not a row that was not read whole, not an answer to a confirmation, not a
    mere checkpoint, not an attempt of a workflow's node that failed and is tried again."""
    if entry.partial or entry.blind:
        return False
    if entry.data.get("error_code") and _node(entry) and not entry.data.get("content"):
        return False
    if entry.author == "user" and any(response.name == CONFIRMATION for response in entry.responses):
        return False
    actions = {name for name, value in entry.actions.items() if value}
    return not (actions and actions <= _CHECKPOINTS and not entry.data.get("content"))


def _fingerprint(entry: Entry) -> bytes:
    data = entry.data
    content = data.get("content")
    actions = {name: value for name, value in entry.actions.items() if value}
    if not content and not actions:  # what such an event says stands in its other fields
        return quick_digest({name: value for name, value in data.items() if name not in _OWN_FIELDS})
    return quick_digest([data.get("branch") or "", content, actions, data.get("output"), _node(entry)])


def _node(entry: Entry) -> str:
    """Path of the workflow's node that made the event; empty outside of workflows (2.x)."""
    info = entry.data.get("node_info")
    path = info.get("path") if isinstance(info, dict) else None
    return path if isinstance(path, str) else ""


@register
class InterleavedInvocations(Rule):
    """EXH311 interleaved-invocations

    ## What it detects
    Events of two invocations alternate: one invocation goes on after events of another one.

    ## Why it matters
    Two workers wrote one session at the same time. Each built its requests from a history that the other was
    changing: both may have acted on the same request.

    ## Example
    A1 B1 A2 B2: two users' messages are answered at once, each with calls of its own.

    ## How ADK behaves
    Nothing locks a session against a second worker; since 1.24.0 a stale session is loaded again instead of refused.

    ## Harmless causes
    None of these are reported: an invocation that goes on with a user's answer to one of its calls (2.x), responses
    that older releases stored under an invocation of their own, compaction, responses with which 2.13 closes an
    abort.

    ## What to do
    Let one worker at a time write a session; look for double work among the tools called by both.
    """

    id = "EXH311"
    name = "interleaved-invocations"
    severity = Severity.WARNING
    todo = "Let one worker at a time write a session, and look for work done twice."

    def session(self, log: SessionLog) -> Iterable[Finding]:
        if not log.order_known or not _returns(log, frozenset()):
            return ()
        returns = _returns(log, _only_answers(log))
        if not returns:
            return ()
        entries = list(dict.fromkeys(entry for pair in returns for entry in pair))
        invocations = {entry.invocation_id for entry in entries}
        message = (
            f"Events of {plural(len(invocations), 'invocation')} alternate ({plural(len(returns), 'return')}): "
            "two workers wrote this session at the same time."
        )
        return (of_session(self, log, message, entries=entries, subject=sorted(invocations)),)


def _returns(log: SessionLog, ignored: frozenset[str]) -> list[tuple[Entry, Entry]]:
    """Where an invocation goes on after events of another: the last of those, and the first that goes on."""
    returns: list[tuple[Entry, Entry]] = []
    seen: set[str] = set()
    current = ""
    before: Entry | None = None
    for entry in log.entries:
        invocation = entry.invocation_id
        if invocation == current:
            before = entry
            continue
        if not invocation or invocation in ignored or _of_adk(entry):
            continue
        if invocation in seen:
            if before is not None and entry.time != before.time and not _is_resumed(entry):
                returns.append((before, entry))
        else:
            seen.add(invocation)
        current = invocation
        before = entry
    return returns


def _of_adk(entry: Entry) -> bool:
    """Did ADK put this event in beside the turns: a compaction, or the seal of an aborted invocation?"""
    return bool(entry.actions.get("compaction")) or entry.data.get("error_code") == "INVOCATION_ABORTED"


def _is_resumed(entry: Entry) -> bool:
    """Does an invocation go on here because a user answered one of its calls?"""
    return entry.author == "user" and any(
        response.call is not None and response.call.entry.invocation_id == entry.invocation_id
        for response in entry.responses
    )


def _only_answers(log: SessionLog) -> frozenset[str]:
    """Invocations of nothing but responses to calls of others: up to 1.11.0 merged parallel responses got a new one."""
    others: set[str] = set()
    seen: set[str] = set()
    for entry in log.entries:
        seen.add(entry.invocation_id)
        answers = entry.responses and all(
            response.call is not None and response.call.entry.invocation_id != entry.invocation_id
            for response in entry.responses
        )
        if not answers or entry.author == "user":
            others.add(entry.invocation_id)
    return frozenset(seen - others)


@register
class UnfinishedInvocation(Rule):
    """EXH312 unfinished-invocation

    ## What it detects
    An invocation that did not end: it waits for a person, or it stopped in a tool, or nobody answered the user.

    ## Why it matters
    It tells what is left to do after an incident: which approvals are still wanted, and in which tool a worker died,
    so that the tool may have run without a trace in the log.

    ## Example
    The last event is the call of `check_balance`; no response follows.

    ## How ADK behaves
    A resumable app goes on where it stopped; all others begin a new invocation and leave the call open.

    ## Harmless causes
    The conversation is still running, or waits for a person as it should.

    ## What to do
    Answer what is waiting; for a tool that died, find out at the other system whether it ran.
    """

    id = "EXH312"
    name = "unfinished-invocation"
    severity = Severity.INFO
    todo = "Answer what is waiting; ask the system behind the tool whether it ran."

    def session(self, log: SessionLog) -> Iterator[Finding]:
        told: set[str] = set()
        for call in log.calls:
            if not call.responses and not call.early and call.entry.invocation_id not in told:
                told.add(call.entry.invocation_id)
                yield self._open(log, call)
        waiting: dict[str, Entry] = {}
        for entry in log.entries:
            if entry.author == "user":
                waiting[entry.invocation_id] = entry
            elif waiting:
                waiting.pop(entry.invocation_id, None)
        for invocation, entry in waiting.items():
            if invocation not in told and entry.data.get("content"):
                message = "Nobody answered the user's message."
                yield of_session(self, log, message, entries=[entry], subject=(invocation, "unanswered"))

    def _open(self, log: SessionLog, call: Call) -> Finding:
        if call.name == CONFIRMATION:
            message = "An invocation waits for a person: a confirmation is wanted."
        elif call.name == CREDENTIAL:
            message = "An invocation waits for a person: a credential is wanted."
        elif call.name.startswith(REQUEST_PREFIX):
            message = f"An invocation waits for a person: {spelt([call.name])} has no answer."
        elif call.long_running:
            message = f"An invocation waits for the long-running tool {spelt([call.name])}."
        else:
            message = f"An invocation ended in the tool {spelt([call.name])}: its call has no response."
        return of_session(
            self,
            log,
            message,
            entries=[call.entry],
            role="call",
            call_ids=[call.id] if call.id else (),
            subject=(call.entry.invocation_id, call.id or call.name),
        )
