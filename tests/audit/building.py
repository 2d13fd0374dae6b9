"""Builds logs from the shorthand of tests/cases/README.md, and runs rules over them through the whole engine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from exhume.audit.engine import AuditOptions, audit
from exhume.audit.findings import AuditReport
from exhume.audit.log import SessionLog
from exhume.audit.pairing import build_log
from exhume.events.model import Capability, EventKey, EventRecord, Problem, SessionKey, StateRecord, TimeZoneReport
from exhume.events.readers import open_reader
from exhume.events.readers.base import read_state
from exhume.schema.detection import Detection, Layout, ReleaseRange
from exhume.stores.interface import Column, Ordered, Row, StoreInfo, Table

#: Zero of a case's clock: 2026-03-02T09:00:00.25Z; with a fraction, as real times have.
ZERO = 1772442000.25

#: The session of a case that names none.
KEY = SessionKey("desk", "u1", "s1")

_KEY_COLUMNS = ("id", "app_name", "user_id", "session_id")
_ALL = frozenset(value for name, value in vars(Capability).items() if name.isupper())
_CAPABILITIES = {
    Layout.V0: _ALL - {Capability.EVENT_COLUMNS},
    Layout.GO: _ALL - {Capability.EVENT_COLUMNS},
    Layout.EXPORT: frozenset({Capability.ACTIONS, Capability.LONG_RUNNING, Capability.STATE, Capability.CONFIRMATIONS}),
}


@dataclass
class Log:
    """A made-up source; a `Reader`."""

    layout: Layout = Layout.V1
    capabilities: frozenset[str] = _ALL
    zone: TimeZoneReport = field(default_factory=lambda: TimeZoneReport("UTC", "not needed"))
    session_rows: list[StateRecord] = field(default_factory=list)
    app_rows: list[StateRecord] = field(default_factory=list)
    user_rows: list[StateRecord] = field(default_factory=list)
    records: list[EventRecord] = field(default_factory=list)

    def sessions(self) -> Iterator[StateRecord]:
        return iter(sorted(self.session_rows, key=lambda row: (row.app_name, row.user_id or "", row.session_id or "")))

    def app_states(self) -> Iterator[StateRecord]:
        return iter(self.app_rows)

    def user_states(self) -> Iterator[StateRecord]:
        return iter(self.user_rows)

    def events(self) -> Iterator[EventRecord]:
        return iter(
            sorted(self.records, key=lambda record: (record.key[:3], record.column_time or 0.0, record.position))
        )

    def time_zone(self) -> TimeZoneReport:
        return self.zone


def seconds(text: str | float) -> float:
    """`12h`, `7d`, or a number of seconds."""
    if isinstance(text, str):
        return float(text[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[text[-1]]
    return float(text)


def build(case: Mapping[str, Any]) -> tuple[Log, Detection]:
    """The source of one case, and what detect would say of it."""
    layout = Layout(case.get("layout", "v1"))
    log = Log(layout, _CAPABILITIES.get(layout, _ALL))
    log.zone = TimeZoneReport(**{"zone": "UTC", "proof": "not needed", **case.get("zone", {})})
    apps: set[str] = set()
    users: set[tuple[str, str]] = set()
    for session in case["sessions"]:
        app, user = session.get("app", KEY.app_name), session.get("user", KEY.user_id)
        ident = session.get("id", KEY.session_id)
        apps.add(app)
        users.add((app, user))
        records = _events(session.get("events", ()), (app, user, ident), layout, len(log.records))
        log.records += records
        if session.get("row", True):
            last = max((record.time for record in records if record.time is not None), default=ZERO)
            updated = last if session.get("updated", "last") == "last" else _at(session["updated"])
            text = session.get("state_text", json.dumps(session.get("state", {})))
            created = _at(session.get("created", 0))
            log.session_rows.append(_row(app, user, ident, text, created=created, updated=updated))
    apps_given = {app: {} for app in apps} | (case.get("app_states") or {})
    for app, state in apps_given.items():
        if state is not None:
            log.app_rows.append(_row(app, None, None, _text(state)))
    users_given = {f"{app}/{user}": {} for app, user in users} | (case.get("user_states") or {})
    for name, state in users_given.items():
        if state is not None:
            app, _, user = name.partition("/")
            log.user_rows.append(_row(app, user, None, _text(state)))
    columns = tuple(Column(name, kind) for name, kind in case.get("columns", {}).items())
    return log, Detection(
        info=StoreInfo("case", "sqlite file", case.get("dialect", "sqlite")),
        layout=layout,
        schema_version="1",
        declared_version="1",
        releases=ReleaseRange(),
        tables={"events": Table("events", columns)},
    )


def log_of(*events: Mapping[str, Any], storage_ordered: bool = True) -> SessionLog:
    """One session of these events as rules see it."""
    source, _ = build({"sessions": [{"events": events}]})
    return build_log(KEY, None, source.records, storage_ordered=storage_ordered)


def run(case: Mapping[str, Any], *rules: str) -> AuditReport:
    """What the engine says of a case; with `rules`, only those."""
    log, detection = build(case)
    window = seconds(case.get("window", "7d"))
    return audit(log, detection, AuditOptions(select=rules, window=window))


def _at(at: float | None) -> float | None:
    return None if at is None else ZERO + at


def _text(state: Any) -> str:
    return state if isinstance(state, str) else json.dumps(state)


def _row(
    app: str,
    user: str | None,
    ident: str | None,
    text: str,
    *,
    created: float | None = None,
    updated: float | None = ZERO,
) -> StateRecord:
    state, stored, losses, problems = read_state(text)
    return StateRecord(app, user, ident, state, stored, created, updated, 0, problems, losses=losses)


def _events(
    events: Sequence[Mapping[str, Any]], session: tuple[str, str, str], layout: Layout, stored: int
) -> list[EventRecord]:
    records: list[EventRecord] = []
    at = 0.0
    for number, event in enumerate(events, 1):
        at = event.get("at", at + 1.0)
        ident = event.get("id", f"e{number}")
        records.append(_event(event, EventKey(*session, ident), at, event.get("position", stored + number), layout))
    return records


def _event(event: Mapping[str, Any], key: EventKey, at: float | None, position: int, layout: Layout) -> EventRecord:
    time = _at(at)
    invocation = event.get("inv", "i1")
    data: dict[str, Any] | None = {
        "id": key.event_id,
        "invocation_id": invocation,
        "author": event.get("author", "user" if "answer" in event else "agent"),
        "actions": {**event.get("actions", {})},
        "timestamp": time,
        **_filled(event.get("data", {})),
    }
    assert data is not None
    if "delta" in event:
        data["actions"]["state_delta"] = event["delta"]
    for name in ("partial", "branch", "error_code"):
        if name in event:
            data[name] = event[name]
    if "long" in event:
        data["long_running_tool_ids"] = event["long"]
    parts = _parts(event, data)
    if parts:
        data["content"] = {"role": "user" if data["author"] == "user" else "model", "parts": parts}
    key = key._replace(event_id=event.get("column_id", key.event_id))
    column_time = _at(event.get("column_at", at))
    record = EventRecord(key, position, event.get("column_inv", invocation), column_time, time, data)
    if "event_data" in event:
        return _read(record, event["event_data"])
    if layout in (Layout.V1, Layout.V1_UNMARKED, Layout.SQLITE_SERVICE, Layout.JS):
        record.source = json.dumps(data).encode()
    raw = _filled(event.get("raw", {}))
    record.columns, record.raw = tuple(raw), tuple(raw.values())
    record.problems = tuple(Problem(**{"sha256": "0" * 64, **problem}) for problem in event.get("problems", ()))
    return record


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """`x * 1024` stands for 1024 letters, `pickle * 65535` for so many bytes."""
    found = dict(values)
    for name, value in values.items():
        if isinstance(value, str) and value.startswith(("x * ", "pickle * ")):
            count = int(value.rpartition(" ")[2])
            found[name] = "x" * count if value.startswith("x") else b"\x80\x05" + b"N" * (count - 2)
    return found


class _OneRow:
    """A store with one row in its table of events."""

    table = Table(
        "events", tuple(Column(name, "TEXT") for name in (*_KEY_COLUMNS, "invocation_id", "timestamp", "event_data"))
    )

    def __init__(self, row: Row) -> None:
        self.row = row

    def info(self) -> StoreInfo:
        return StoreInfo("case", "sqlite file", "sqlite")

    def tables(self) -> Mapping[str, Table]:
        return {"events": self.table}

    def count(self, table: str) -> int:
        return 1

    def rows(self, table: str, columns: Sequence[str], **_: Any) -> Iterator[Ordered]:
        cells = dict(zip(self.table.column_names, self.row, strict=True))
        yield Ordered(1, tuple(cells[name] for name in columns))

    def check_unchanged(self) -> str | None:
        return None

    def close(self) -> None:
        pass


def _read(record: EventRecord, text: str) -> EventRecord:
    """The record with `event_data` as stored, read by the reader of v1."""
    key = record.key
    time = None if record.column_time is None else datetime.fromtimestamp(record.column_time, UTC)
    cell = None if time is None else time.strftime("%Y-%m-%d %H:%M:%S.%f")
    store = _OneRow((key.event_id, *key[:3], record.invocation_id, cell, text))
    detection = Detection(store.info(), Layout.V1, "1", "1", ReleaseRange(), tables=store.tables())
    read = next(open_reader(store, detection).events())
    read.position = record.position
    return read


def _parts(event: Mapping[str, Any], data: dict[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = list(event.get("parts", ()))
    if "text" in event:
        parts.append({"text": event["text"]})
    for call in _listed(event.get("call")):
        parts.append({"function_call": {"name": "lookup", "args": {}, **call}})
    for response in _listed(event.get("response")):
        rest = {key: value for key, value in response.items() if key != "body"}
        parts.append({"function_response": {"name": "lookup", **rest, "response": response.get("body", {})}})
    for ask in _listed(event.get("ask")):
        args = {
            "originalFunctionCall": {"id": ask["for"], "name": ask.get("name", "refund"), "args": ask.get("args", {})},
            "toolConfirmation": {"hint": "", "confirmed": False},
        }
        parts.append({"function_call": {"id": ask["id"], "name": "adk_request_confirmation", "args": args}})
        data.setdefault("long_running_tool_ids", []).append(ask["id"])
    for hold in _listed(event.get("hold")):
        error = "This tool call requires confirmation, please approve or reject."
        response = {"id": hold["id"], "name": hold.get("name", "refund"), "response": {"error": error}}
        parts.append({"function_response": response})
        data["actions"].setdefault("requested_tool_confirmations", {})[hold["id"]] = {"hint": "", "confirmed": False}
    for answer in _listed(event.get("answer")):
        body = {key: value for key, value in answer.items() if key != "id"}
        parts.append({"function_response": {"id": answer["id"], "name": "adk_request_confirmation", "response": body}})
    return parts


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
