"""One session as a causal timeline: invocations, what happened in each event, and what belongs to what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from exhume.audit.engine import is_storage_ordered, sessions_with_events
from exhume.audit.findings import Confidence
from exhume.audit.log import REQUEST_PREFIX, TEMPORARY, Call, Decision, Entry, GatedCall, Request, Response, SessionLog
from exhume.audit.pairing import build_log
from exhume.audit.secrets import hide
from exhume.errors import NothingToLookAt, UsageError
from exhume.events.interface import Reader
from exhume.events.model import SessionKey, StateRecord, TimeZoneReport
from exhume.redact import printable
from exhume.schema.detection import Detection

_MOST_CANDIDATES = 10


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that happened in an event.

    Attributes:
        kind: `text`, `thought`, `data`, `call`, `request`, `response`, `placeholder`, `execution`, `refusal`,
            `approval`, `rejection`, `unreadable decision`, `answer`, `state`, `artifact`, `transfer`, `escalation`,
            `error`, `compaction`, `rewind`, `unreadable`.
        name: of the tool, state key or artifact; empty otherwise.
        call_id: id of the call that it makes or answers.
        value: arguments, response body, new state, text: as JSON data, without credentials unless revealed.
        note: what is remarkable, in words: `never answered`, `second approval of this request`, ...
        partner: event id of the call that a response answers, or of the request that a decision answers.
    """

    kind: str
    name: str = ""
    call_id: str | None = None
    value: Any = None
    note: str = ""
    partner: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One event. `time` is the corrected epoch in seconds; `rewound` when a later rewind took it back."""

    event_id: str
    time: float | None
    author: str
    branch: str
    partial: bool
    rewound: bool
    items: tuple[Item, ...]


@dataclass(slots=True)
class Invocation:
    """Consecutive events of one invocation; one that is resumed later stands in the timeline again, as `resumed`."""

    id: str
    resumed: bool
    turns: list[Turn] = field(default_factory=list)


@dataclass(slots=True)
class Timeline:
    """A session from its first event to its last; `row` is False for events whose session row does not exist.

    `orphans` counts what belongs to nothing: `orphaned response`, `call without response`, `open request`, ...
    """

    source: str
    layout: str
    key: SessionKey
    row: bool
    created: float | None
    updated: float | None
    time_zone: TimeZoneReport
    order_known: bool
    invocations: list[Invocation]
    state: dict[str, Any]
    orphans: dict[str, int]
    events: int
    revealed: bool


def timeline(reader: Reader, detection: Detection, *, session: str, reveal: bool = False) -> Timeline:
    """The timeline of one session.

    Args:
        reader: opened with `session`, and `app` and `user` as far as they are known, in its options.
        reveal: show credentials, too.

    Raises:
        NothingToLookAt: there is no such session, and no event of one.
        UsageError: the id names several sessions; the message lists them.
    """
    zone = reader.time_zone()
    chosen: SessionLog | None = None
    candidates: list[SessionKey] = []
    for key, row, records in sessions_with_events(reader):
        if key.session_id != session:
            continue
        candidates.append(key)
        if len(candidates) > _MOST_CANDIDATES:
            break
        if chosen is None:
            chosen = build_log(key, row, records, storage_ordered=is_storage_ordered(detection))
    if chosen is None:
        raise NothingToLookAt(
            f"There is no session {printable(session, limit=200)} in {detection.info.name}.",
            todo="Check the id, and --app and --user if they were given.",
        )
    if len(candidates) > 1:
        raise UsageError(
            f"{len(candidates)} sessions have the id {printable(session, limit=200)}: {_listed(candidates)}.",
            todo="Choose one with --app and --user.",
        )
    return make_timeline(chosen, detection, zone, reveal=reveal)


def _listed(candidates: list[SessionKey]) -> str:
    shown = [
        f"--app {printable(repr(key.app_name), limit=80)} --user {printable(repr(key.user_id), limit=80)}"
        for key in candidates[:_MOST_CANDIDATES]
    ]
    return "; ".join(shown) + (" and more" if len(candidates) > _MOST_CANDIDATES else "")


def make_timeline(log: SessionLog, detection: Detection, zone: TimeZoneReport, *, reveal: bool = False) -> Timeline:
    """The timeline of a session that is already paired."""
    teller = _Teller(log, (lambda value: value) if reveal else hide)
    invocations: list[Invocation] = []
    seen: set[str] = set()
    for entry in log.entries:
        ident = entry.invocation_id
        if not invocations or invocations[-1].id != ident:
            invocations.append(Invocation(ident, resumed=ident in seen))
            seen.add(ident)
        invocations[-1].turns.append(teller.turn(entry))
    row = log.session
    return Timeline(
        source=detection.info.name,
        layout=str(detection.layout),
        key=log.key,
        row=row is not None,
        created=row.create_time if row else None,
        updated=row.update_time if row else None,
        time_zone=zone,
        order_known=log.order_known,
        invocations=invocations,
        state=teller.show(_state_of(row)),
        orphans=dict(teller.orphans),
        events=len(log.entries),
        revealed=reveal,
    )


def _state_of(row: StateRecord | None) -> dict[str, Any]:
    return row.state if row is not None and row.state is not None else {}


class _Teller:
    """Turns the events of one session into items, with what the pairing knows of each call and response."""

    def __init__(self, log: SessionLog, show: Callable[[Any], Any]) -> None:
        self.log = log
        self.show = show
        self.orphans: Counter[str] = Counter()
        self._requests: dict[int, Request] = {}
        self._decisions: dict[int, Decision] = {}
        self._nth: dict[int, int] = {}
        self._parts_of_gated: dict[int, tuple[str, str]] = {}
        approvals = log.approvals
        for request in approvals.requests if approvals else ():
            self._requests.update((id(call), request) for call in request.calls)
            self._decisions.update((id(decision.response), decision) for decision in request.decisions)
            approvals_given = [decision for decision in request.decisions if decision.approved]
            self._nth.update((id(decision), nth) for nth, decision in enumerate(approvals_given, start=1))
        for gated in approvals.gated if approvals else ():
            self._parts_of_gated.update((id(one), (kind, note)) for one, kind, note in _gated_parts(gated))

    def turn(self, entry: Entry) -> Turn:
        return Turn(
            event_id=entry.event_id,
            time=entry.time,
            author=entry.author,
            branch=entry.branch,
            partial=entry.partial,
            rewound=self.log.is_rewound(entry.index),
            items=tuple(self._items(entry)),
        )

    def _items(self, entry: Entry) -> Iterator[Item]:
        for problem in entry.record.problems:
            yield Item("unreadable", problem.column, note=problem.reason)
        code, message = entry.data.get("error_code"), entry.data.get("error_message")
        if code or message:
            yield Item("error", str(code or ""), value=self.show(message))
        yield from self._parts(entry)
        for call in entry.calls:
            yield self._call(call)
        for response in entry.responses:
            yield self._response(response)
        yield from self._actions(entry)

    def _parts(self, entry: Entry) -> Iterator[Item]:
        for part in entry.parts:
            if isinstance(part.get("text"), str) and part["text"]:
                yield Item("thought" if part.get("thought") else "text", value=self.show(part["text"]))
            for name in ("inline_data", "file_data", "executable_code", "code_execution_result"):
                if isinstance(part.get(name), dict):
                    yield Item("data", name, value=_data(name, self.show(part[name])))
            if entry.partial and (part.get("function_call") or part.get("function_response")):
                yield Item("data", "partial call or response", note="ignored: the final event repeats it")

    def _call(self, call: Call) -> Item:
        request = self._requests.get(id(call))
        if request is not None:
            return self._request(call, request)
        note = ""
        if not call.responses:
            self.orphans["call without response"] += 1
            note = "never answered" if not call.long_running else "long-running, not answered"
        elif call.name.startswith(REQUEST_PREFIX):
            note = "asks a person"
        return Item("call", call.name, call.id, self.show(call.args), note)

    def _request(self, call: Call, request: Request) -> Item:
        notes = []
        if request.sealed and not request.decisions:
            notes.append("closed without an answer")
        elif not request.decisions:
            self.orphans["open request"] += 1
            notes.append("no answer")
        elif call is not request.calls[0]:
            notes.append("the same request, stored again")
        gated = request.gated.call if request.gated else None
        if gated is None:
            self.orphans["request for an unknown call"] += 1
            notes.append("asks about a call that is not in the log")
        name = request.original.get("name")
        return Item(
            "request",
            name if isinstance(name, str) else call.name,
            call.id,
            self.show(call.args),
            "; ".join(notes),
            partner=gated.entry.event_id if gated else None,
        )

    def _response(self, response: Response) -> Item:
        call = response.call
        partner = call.entry.event_id if call else None
        decision = self._decisions.get(id(response))
        if decision is not None:
            return self._decision(response, decision, partner)
        kind, note = "response", ""
        if call is None:
            self.orphans["orphaned response"] += 1
            note = "answers no call" if response.late_call is None else "stands before its call"
        elif id(response) in self._parts_of_gated:
            kind, note = self._parts_of_gated[id(response)]
        elif response.by_user:
            kind = "answer"
        notes = [note] if note else []
        if response.confidence is Confidence.INFERRED and call is not None:
            notes.append("paired by name and order")
        if response.against_clock:
            notes.append("its time is before that of its call")
        return Item(kind, response.name, response.id, self.show(response.body), "; ".join(notes), partner)

    def _decision(self, response: Response, decision: Decision, partner: str | None) -> Item:
        kinds = {True: "approval", False: "rejection", None: "unreadable decision"}
        notes = [decision.reason] if decision.reason else []
        if decision.lax is not None:
            notes.append("by a value that is not a boolean")
        nth = self._nth.get(id(decision), 1)
        if nth > 1:
            notes.append(f"approval number {nth} of this request")
        original = decision.request.original.get("name")
        name = original if isinstance(original, str) else response.name
        return Item(kinds[decision.approved], name, response.id, self.show(response.body), "; ".join(notes), partner)

    def _actions(self, entry: Entry) -> Iterator[Item]:
        actions = entry.actions
        delta = actions.get("state_delta")
        if isinstance(delta, dict):
            shown = self.show(delta)
            for name in delta:
                yield Item("state", name, value=shown[name], note="temporary" if name.startswith(TEMPORARY) else "")
        artifacts = actions.get("artifact_delta")
        if isinstance(artifacts, dict):
            for name, version in artifacts.items():
                yield Item("artifact", name, value=version)
        if actions.get("transfer_to_agent"):
            yield Item("transfer", str(actions["transfer_to_agent"]))
        if actions.get("escalate"):
            yield Item("escalation")
        if actions.get("rewind_before_invocation_id"):
            yield Item(
                "rewind",
                str(actions["rewind_before_invocation_id"]),
                note="takes back this invocation and all after it",
            )
        compaction = actions.get("compaction")
        if isinstance(compaction, dict):
            yield Item("compaction", value=self.show(compaction))


def _gated_parts(gated: GatedCall) -> Iterator[tuple[Response, str, str]]:
    """What each agent response is to a call that needed a confirmation: kind and note."""
    for response in gated.placeholders:
        yield response, "placeholder", ""
    for response in gated.refusals:
        yield response, "refusal", ""
    for response in gated.unknown_tool:
        yield response, "response", "the agent did not know the tool"
    for response in gated.sealed:
        yield response, "response", "closed by ADK"
    for response in gated.misdirected:
        yield response, "answer", "answers the call itself, not its request"
    for response in gated.early:
        yield response, "execution", "before any answer"
    for nth, response in enumerate(gated.executions, start=1):
        yield response, "execution", f"run number {nth} of this call" if nth > 1 else ""


def _data(name: str, value: dict[str, Any]) -> Any:
    """Inline bytes by type and size: nobody reads base64 in a timeline."""
    data = value.get("data")
    if name == "inline_data" and isinstance(data, str):
        return {"mime_type": value.get("mime_type"), "bytes": len(data.rstrip("=")) * 3 // 4}
    return value
