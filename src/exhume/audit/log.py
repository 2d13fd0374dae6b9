"""One session as the rules see it: events in causal order, calls and responses taken out, pairs and approvals made.

Built once a session by `exhume.audit.pairing`; rules only read it. A rule must not walk all entries on its own when a
shorter list will do: `calls`, `responses`, `acting` and `approvals` are made in the one pass over the events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from exhume.audit.findings import Confidence
from exhume.events.model import EventRecord, SessionKey, StateRecord

#: Calls that ADK makes itself to ask a person (google.adk.flows.llm_flows.functions; confirmation since 1.14.0).
CONFIRMATION = "adk_request_confirmation"
CREDENTIAL = "adk_request_credential"
REQUEST_PREFIX = "adk_request_"
#: Fields of `actions` keyed by the ids of the calls for which a person is asked.
WANTED_CONFIRMATIONS, WANTED_CREDENTIALS = "requested_tool_confirmations", "requested_auth_configs"
#: So begin keys there that no call stands behind: a toolset, or a remote agent, wants a credential
#: (google.adk.auth.auth_preprocessor.TOOLSET_AUTH_CREDENTIAL_ID_PREFIX, 2.13.0).
#: Requests for a credential under such an id belong to no call: to a toolset, or to a node of a workflow (2.x).
NO_CALL_PREFIXES = ("_adk_toolset_auth_", "wf_auth:")
#: Ids that ADK makes itself start so; those that models make may repeat within one session.
OWN_ID_PREFIX = "adk-"
#: Prefixes of state keys (google.adk.sessions.state.State).
APP, USER, TEMPORARY = "app:", "user:", "temp:"
#: What an event without actions has.
NO_ACTIONS: Mapping[str, Any] = MappingProxyType({})


@dataclass(slots=True, eq=False)
class Call:
    """A `function_call` part of an event that is not partial. `ordinal` counts calls in causal order.

    `id` is None where the event has none (or an empty one). `responses` are the ones paired with this call, in causal
    order; `early` are responses to it that stand before it both by time and in storage. `arguments` keeps the digest of
    `args` once `exhume.audit.canonical.arguments` has made it.
    """

    id: str | None
    name: str
    args: Any
    entry: Entry
    ordinal: int
    long_running: bool = False
    responses: list[Response] = field(default_factory=list)
    early: list[Response] = field(default_factory=list)
    arguments: bytes | None = None

    @property
    def own_id(self) -> bool:
        """Was the id made by ADK, so that it is unique?"""
        return self.id is not None and self.id.startswith(OWN_ID_PREFIX)


@dataclass(slots=True, eq=False)
class Response:
    """A `function_response` part of an event that is not partial, with the call it was paired with.

    Attributes:
        call: the newest call before it with its id (same branch first); None for an orphan.
        confidence: `inferred` where the pair was made by name and order, for want of an id on one side or both.
        against_clock: the pair holds in storage order only: by time the response is older than its call.
        late_call: where `call` is None: the first call with this id, which stands after the response.
    """

    id: str | None
    name: str
    body: Any
    entry: Entry
    by_user: bool
    call: Call | None = None
    confidence: Confidence = Confidence.EXACT
    against_clock: bool = False
    late_call: Call | None = None


@dataclass(slots=True, eq=False)
class Entry:
    """One event. `index` is its place in causal order; `data` is `record.data`, or `{}` when nothing could be read;
    `actions` are those of `data`, empty when there are none."""

    record: EventRecord
    data: dict[str, Any]
    index: int
    time: float | None
    author: str
    invocation_id: str
    actions: Mapping[str, Any]
    partial: bool = False
    calls: Sequence[Call] = ()
    responses: Sequence[Response] = ()

    @property
    def event_id(self) -> str:
        return self.record.key.event_id

    @property
    def branch(self) -> str:
        found = self.data.get("branch")
        return found if isinstance(found, str) else ""

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The parts of its content that are objects."""
        content = self.data.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []

    def asked(self, field: str) -> Mapping[str, Any]:
        """`WANTED_CONFIRMATIONS` or `WANTED_CREDENTIALS` of its actions; empty where there are none."""
        found = self.actions.get(field)
        return found if isinstance(found, dict) else NO_ACTIONS

    @property
    def blind(self) -> bool:
        """Was a part of the event not readable, so that its actions (or all of it) are unknown?"""
        return bool(self.record.problems) and (self.record.data is None or self.record.refused)


@dataclass(slots=True, eq=False)
class Decision:
    """A user's answer to a confirmation request.

    Attributes:
        approved: None when it cannot be read as a confirmation.
        payload: what the answer carried for the tool.
        lax: the value of `confirmed` as stored where it is no boolean but ADK takes it as one; else None.
        reason: why it cannot be read; empty when it can.
    """

    response: Response
    request: Request
    approved: bool | None
    payload: Any = None
    lax: Any = None
    reason: str = ""

    @property
    def index(self) -> int:
        return self.response.entry.index


@dataclass(slots=True, eq=False)
class Request:
    """A confirmation request (call C): one for each `adk-` id, however often its event was stored.

    Attributes:
        calls: the stored calls of this request, in causal order.
        original: what C says that it asks about: `originalFunctionCall`, `{}` when it says nothing readable.
        decisions: user-authored answers, in causal order.
        sealed: the agent-authored response with which ADK 2.13 closes an aborted request.
        gated: the call it asks about; None when no such call is in the log.
    """

    calls: list[Call]
    original: dict[str, Any]
    decisions: list[Decision] = field(default_factory=list)
    sealed: Response | None = None
    gated: GatedCall | None = None
    confidence: Confidence = Confidence.EXACT

    @property
    def id(self) -> str | None:
        return self.calls[0].id

    @property
    def index(self) -> int:
        return self.calls[0].entry.index

    @property
    def closed(self) -> int | None:
        """Index of the entry that closed it: the first readable answer or the sealing; None while it is open."""
        ends = [decision.index for decision in self.decisions if decision.approved is not None][:1]
        if self.sealed is not None:
            ends.append(self.sealed.entry.index)
        return min(ends, default=None)


@dataclass(slots=True, eq=False)
class GatedCall:
    """A call that needed a confirmation (call T): one for each `adk-` id, however often its event was stored.

    Attributes:
        calls: its stored calls, in causal order.
        placeholders: agent responses that only say that a confirmation is wanted.
        wanted: the events whose `requested_tool_confirmations` name it.
        requests: confirmation requests for it.
        executions: agent responses after the first readable answer that are results, errors of the tool included.
        early: agent responses that are results and stand before any answer.
        refusals: agent responses that say that the call was refused.
        unknown_tool: agent responses by which an agent says that it does not know the tool.
        sealed: responses with which ADK 2.13 closes an aborted call.
        misdirected: user-authored responses to the call itself.
    """

    calls: list[Call]
    placeholders: list[Response] = field(default_factory=list)
    wanted: list[Entry] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    executions: list[Response] = field(default_factory=list)
    early: list[Response] = field(default_factory=list)
    refusals: list[Response] = field(default_factory=list)
    unknown_tool: list[Response] = field(default_factory=list)
    sealed: list[Response] = field(default_factory=list)
    misdirected: list[Response] = field(default_factory=list)

    @property
    def call(self) -> Call:
        return self.calls[0]

    @property
    def decisions(self) -> list[Decision]:
        """Readable and unreadable answers to any of its requests, in causal order."""
        found = [decision for request in self.requests for decision in request.decisions]
        found.sort(key=lambda decision: decision.index)
        return found

    @property
    def approvals(self) -> list[Decision]:
        return [decision for decision in self.decisions if decision.approved]


@dataclass(slots=True, eq=False)
class Approvals:
    """All about tool confirmations in one session, each list in causal order.

    `strays` are user-authored responses named `adk_request_confirmation` that answer no request in the session.
    """

    requests: list[Request] = field(default_factory=list)
    gated: list[GatedCall] = field(default_factory=list)
    strays: list[Response] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class SessionLog:
    """A session's row (None for orphaned events) and its events.

    Attributes:
        entries: in causal order: by corrected time; among equal times calls before responses, then storage order.
        calls, responses: of all entries that are not partial, in that order.
        acting: the entries whose `actions` hold anything at all.
        asking: those of them that ask a person for a confirmation or a credential.
        scoped: the entries with an `isolation_scope`.
        listing: the entries with `long_running_tool_ids`.
        partials: the entries that are partial; their calls and responses count nowhere.
        plain_parts: those parts of plain events (see `EventRecord.plain`) that are not text alone.
        uncommon: the entries of the other events.
        troubled: the entries whose record has problems.
        approvals: requests, decisions and gated calls; None for a session without any trace of a confirmation.
        order_known: False where the order of events cannot be decided; rules that need it stay silent.
        unread: entries whose content could not be read: what they held, a call or a response, is unknown.
        rewound: per entry index, was it taken back by a later rewind? Empty when nothing was.
        shared: work on this session that several rules need, made by the first of them.
    """

    key: SessionKey
    session: StateRecord | None
    entries: list[Entry]
    calls: list[Call] = field(default_factory=list)
    responses: list[Response] = field(default_factory=list)
    acting: list[Entry] = field(default_factory=list)
    asking: list[Entry] = field(default_factory=list)
    scoped: list[Entry] = field(default_factory=list)
    listing: list[Entry] = field(default_factory=list)
    partials: list[Entry] = field(default_factory=list)
    plain_parts: list[dict[str, Any]] = field(default_factory=list)
    uncommon: list[Entry] = field(default_factory=list)
    troubled: list[Entry] = field(default_factory=list)
    approvals: Approvals | None = None
    order_known: bool = True
    unread: list[Entry] = field(default_factory=list)
    rewound: list[bool] = field(default_factory=list)
    shared: dict[str, Any] = field(default_factory=dict)

    def is_rewound(self, index: int) -> bool:
        """Was the entry at `index` taken back?"""
        return bool(self.rewound) and self.rewound[index]

    def release(self) -> None:
        """Takes the parts apart that refer to each other, so that they are freed at once, without garbage collection.
        The log is of no use afterwards."""
        for response in self.responses:
            response.call = response.late_call = None
            response.entry.responses = ()
        for call in self.calls:
            call.responses.clear()
            call.early.clear()
            call.entry.calls = ()
        if self.approvals is not None:
            for request in self.approvals.requests:
                request.decisions.clear()
                request.gated = None
