"""The engine: sessions with their events, filters, fingerprints, order, bounds."""

from __future__ import annotations

import gc
import json
import random
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exhume import api
from exhume.audit.engine import MOST_PER_SESSION, AuditOptions, audit, fingerprint, finished, sessions_with_events
from exhume.audit.findings import AuditReport, Finding, Severity
from exhume.errors import UsageError
from exhume.events.model import Capability, EventKey, EventRecord, SessionKey, StateRecord
from tests.audit.building import Log, build, run

FAULTY = {
    "sessions": [
        {
            "id": "worst",
            "events": [
                {"call": {"id": "adk-t", "name": "refund"}},
                {"hold": {"id": "adk-t"}},
                {"ask": {"id": "adk-c", "for": "adk-t"}},
                {"answer": {"id": "adk-c", "confirmed": True}},
                {"response": {"id": "adk-t", "name": "refund", "body": {"receipt": 1}}},
                {"answer": {"id": "adk-c", "confirmed": "yes"}},
                {"response": {"id": "adk-t", "name": "refund", "body": {"receipt": 2}}},
            ],
        },
        {"id": "a-warning", "events": [{"call": {"id": "adk-1"}}, {"text": "done"}]},
        {"id": "healthy", "user": "u2", "events": [{"call": {"id": "adk-1"}}, {"response": {"id": "adk-1"}}]},
        {"id": "orphans", "user": "u2", "row": False, "events": [{"response": {"id": "x"}}, {"text": "hi"}]},
    ]
}
OWN = ("EXH1", "EXH2")


def report_of(case: dict[str, Any], **options: Any) -> AuditReport:
    source, detection = build(case)
    return audit(source, detection, AuditOptions(**{"select": OWN, **options}))


def rules_of(report: AuditReport) -> list[tuple[str | None, str]]:
    return [(finding.session_id, finding.rule) for finding in report.findings]


def test_the_worst_session_comes_first_and_its_worst_finding_first() -> None:
    report = report_of(FAULTY)
    assert rules_of(report) == [
        ("worst", "EXH101"),
        ("worst", "EXH104"),
        ("worst", "EXH111"),
        ("orphans", "EXH201"),
        ("a-warning", "EXH202"),
        (None, "EXH114"),
    ]


def test_counts() -> None:
    summary = report_of(FAULTY).summary
    assert (summary.sessions, summary.events) == (3, 13)
    assert (summary.errors, summary.warnings, summary.infos) == (3, 2, 1)
    assert (summary.rewound, summary.suppressed, summary.unreadable) == (0, 0, 0)


def test_rules_are_chosen_by_id_or_family() -> None:
    assert {rule for _, rule in rules_of(report_of(FAULTY, select=("exh10",)))} == {"EXH101", "EXH104"}
    assert {rule for _, rule in rules_of(report_of(FAULTY, ignore=("EXH1",)))} == {"EXH201", "EXH202"}
    with pytest.raises(UsageError, match="no rule EXH999"):
        report_of(FAULTY, select=("EXH999",))


def test_filters() -> None:
    assert report_of(FAULTY, user="u2").summary.events == 4
    assert rules_of(report_of(FAULTY, session="a-warning")) == [("a-warning", "EXH202")]
    assert report_of(FAULTY, app="elsewhere").findings == []


def test_a_span_of_time_keeps_what_reaches_into_it() -> None:
    full = report_of(FAULTY)
    first = min(one.time or 0.0 for finding in full.findings for one in finding.evidence)
    assert len(report_of(FAULTY, since=first).findings) == len(full.findings)
    late = rules_of(report_of(FAULTY, since=first + 5.5))
    assert late == [("worst", "EXH101"), ("worst", "EXH104"), (None, "EXH114")]
    early = {rule for _, rule in rules_of(report_of(FAULTY, until=first + 0.5))}
    assert "EXH202" in early
    assert "EXH111" not in early


def test_a_rule_that_needs_more_than_the_source_holds_says_so_once() -> None:
    source, detection = build(FAULTY)
    source.capabilities -= {Capability.CONFIRMATIONS}
    report = audit(source, detection, AuditOptions(select=OWN))
    notes = [note for note in report.notes if note.startswith("EXH112")]
    assert len(notes) == 1
    assert "requested_tool_confirmations" in notes[0]


def test_fingerprints_do_not_depend_on_the_order_of_rows() -> None:
    source, detection = build(FAULTY)
    before = {finding.fingerprint for finding in audit(source, detection).findings}
    for record in source.records:
        record.position += 1000
    random.Random(4).shuffle(source.records)
    source.session_rows.reverse()
    assert {finding.fingerprint for finding in audit(source, detection).findings} == before


def test_fingerprints_are_unique_and_tell_parts_apart() -> None:
    one = Finding("EXH201", "x", Severity.ERROR, "m", "a", "b", "c", subject=("de", "f"))
    other = Finding("EXH201", "x", Severity.ERROR, "m", "a", "b", "c", subject=("d", "ef"))
    assert fingerprint(one) != fingerprint(other)
    assert re.fullmatch("[0-9a-f]{32}", fingerprint(one))
    assert len({finding.fingerprint for finding in finished([one, one, one, other])}) == 4
    assert {f.fingerprint for f in finished([one, other])} < {f.fingerprint for f in finished([other, one, one])}


def test_findings_of_one_rule_in_one_session_are_bounded_and_counted() -> None:
    events = [{"response": {"id": f"x{number}"}} for number in range(MOST_PER_SESSION + 50)]
    report = report_of({"sessions": [{"events": events}]}, select=("EXH201",))
    assert len(report.findings) == MOST_PER_SESSION
    assert report.notes == ["EXH201: 50 more findings are not listed."]


def test_the_garbage_collector_is_left_as_it_was() -> None:
    before = gc.get_threshold()
    report_of(FAULTY)
    assert gc.get_threshold() == before


class AsStored(Log):
    """A source whose rows come in the order in which they are given."""

    def sessions(self) -> Iterator[StateRecord]:
        return iter(self.session_rows)

    def events(self) -> Iterator[EventRecord]:
        return iter(self.records)


NAMES = st.sampled_from(["", "a", "b", "B", "é", "z\u0301", "\U0001f600", "\uffff", "\udc80", "aa"])
KEYS = st.tuples(NAMES, NAMES, NAMES).map(lambda names: SessionKey(*names))


@given(st.lists(KEYS, unique=True, max_size=12), st.lists(KEYS, max_size=20))
@settings(max_examples=200, deadline=None)
def test_every_event_meets_its_session(sessions: list[SessionKey], events: list[SessionKey]) -> None:
    def stored(key: SessionKey) -> tuple[bytes, ...]:
        return tuple(name.encode("utf-8", "surrogateescape") for name in key)

    rows = [StateRecord(*key, {}, "{}", None, None, 0) for key in sorted(sessions, key=stored)]
    records = [
        EventRecord(EventKey(*key, f"e{place}"), place, "i", 1.0, 1.0, {})
        for place, key in enumerate(sorted(events, key=stored))
    ]
    met = list(sessions_with_events(AsStored(session_rows=rows, records=records)))
    assert [key for key, _, _ in met] == sorted(set(sessions) | set(events), key=stored)
    for key, session, found in met:
        assert (session is not None) == (key in sessions)
        assert len(found) == Counter(events)[key]
        assert all(record.key.session == key for record in found)


def test_sessions_meet_their_events_whatever_the_types_of_their_keys(tmp_path: Path) -> None:
    path = tmp_path / "odd.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE sessions (app_name, user_id, id, state, create_time, update_time)")
    connection.execute("CREATE TABLE events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)")
    connection.execute("CREATE TABLE adk_internal_metadata (key, value)")
    connection.execute("INSERT INTO adk_internal_metadata VALUES ('schema_version', '1')")
    now = "2026-01-01 00:00:00.000000"
    keys: list[Any] = [7, "10", b"05", 65.5, "a", 2**60]
    for key in keys:
        connection.execute("INSERT INTO sessions VALUES ('a', 'u', ?, '{}', ?, ?)", (key, now, now))
    for key in keys[::2]:  # the others have no event
        data = '{"id": "e", "author": "user", "timestamp": 1767225600.0}'
        connection.execute("INSERT INTO events VALUES ('e', 'a', 'u', ?, 'i', ?, ?)", (key, now, data))
    connection.commit()
    connection.close()
    with api.opened(path) as (reader, _):
        met = [(key.session_id, row is not None, len(found)) for key, row, found in sessions_with_events(reader)]
    assert sorted(met) == [
        ("05", True, 1),
        ("10", True, 0),
        (str(2**60), True, 0),
        ("65.5", True, 0),
        ("7", True, 1),
        ("a", True, 1),
    ]


CROWD = 20_000


def crowd(kind: str) -> list[dict[str, Any]]:
    """Many events that a naive rule would compare each with each."""
    if kind == "one id":
        return [{"at": n, "call" if n % 2 else "response": {"id": "x"}, "branch": f"b{n}"} for n in range(CROWD)]
    if kind == "one time":
        return [{"at": 1, "response" if n < CROWD / 2 else "call": {"id": f"x{n % 50}"}} for n in range(CROWD)]
    if kind == "one gated call":
        events: list[dict[str, Any]] = [{"call": {"id": "adk-t", "name": "refund"}}, {"hold": {"id": "adk-t"}}]
        for n in range(CROWD // 5):
            events += [
                {"ask": {"id": f"adk-c{n}", "for": "adk-t"}},
                {"answer": {"id": f"adk-c{n}", "confirmed": n % 3 > 0}},
                {"hold": {"id": "adk-t"}},
                {"response": {"id": "adk-t", "name": "refund", "body": {"n": n}}},
                {"author": "user", "response": {"id": "adk-t", "name": "refund"}},
            ]
        return events
    if kind == "compactions":
        span = {"start_timestamp": 0, "end_timestamp": 9e9}
        return [{"call": {"id": f"x{n}"}, "actions": {"compaction": span}} for n in range(CROWD)]
    if kind == "no ids":
        return [{"call" if n % 2 else "response": {"name": f"t{n % 3}"}} for n in range(CROWD)]
    if kind == "wanted again":
        return [{"call": {"id": "adk-t", "name": "refund"}}, *({"hold": {"id": "adk-t"}} for _ in range(CROWD))]
    if kind == "misdirected answers":
        gated = [{"call": {"id": "adk-t", "name": "refund"}}, {"ask": {"id": "adk-c", "for": "adk-t"}}]
        answer = {"author": "user", "response": {"id": "adk-t", "name": "adk_request_confirmation"}}
        return [*gated, *(answer for _ in range(CROWD))]
    if kind == "keys of their own":
        return [{"text": "a", "delta": {f"k{n}": n}} for n in range(CROWD)]
    if kind == "one event":
        return [{"call": [{"id": f"x{n}"} for n in range(CROWD)]}, {"text": "a later turn", "inv": "i2"}]
    return [
        {"call": {"id": f"x{n}"}, "inv": f"i{n}", "actions": {"rewind_before_invocation_id": "i0"}}
        for n in range(CROWD)
    ]


@pytest.mark.parametrize(
    "kind",
    [
        *("one id", "one time", "one gated call", "compactions", "no ids", "wanted again"),
        *("misdirected answers", "one event", "rewinds", "keys of their own"),
    ],
)
def test_a_crowd_of_events_takes_no_longer_than_its_number(kind: str) -> None:
    source, detection = build({"sessions": [{"events": crowd(kind), "state": {}}]})
    begun = time.process_time()
    report = audit(source, detection, AuditOptions(select=("EXH401", *OWN)))
    assert report.summary.events == len(source.records)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("stamp", ["9" * 400, "-1" + "0" * 399, "1e308"])
def test_a_timestamp_that_is_no_time_is_told(stamp: str) -> None:
    event = {"event_data": f'{{"author": "user", "timestamp": {stamp}}}'}
    (finding,) = run({"sessions": [{"events": [event]}]}, "EXH306").findings
    assert "event_data.timestamp is no time" in finding.message


@pytest.mark.parametrize("value", [{}, [], [{}], {"a": [1]}, 5, True, 1e308, "", "\ud800"], ids=repr)
def test_no_rule_needs_a_field_to_be_of_its_type(value: Any) -> None:
    event: dict[str, Any] = {
        "author": "desk",
        "content": {"parts": [{"function_call": {"id": "c1", "name": "pay", "args": {}}}, {"text": "x"}]},
        "actions": {"state_delta": {"k": 1}, "requested_tool_confirmations": {"c1": {}}},
        "long_running_tool_ids": ["c2"],
    }
    actions = ["compaction", "rewind_before_invocation_id", "state_delta", "transfer_to_agent", "agent_state"]
    actions += ["requested_tool_confirmations", "requested_auth_configs", "artifact_delta"]
    top = ["isolation_scope", "branch", "author", "id", "timestamp", "invocation_id", "partial", "content", "actions"]
    top += ["long_running_tool_ids", "error_code", "error_message", "node_info", "custom_metadata", "output"]
    hostile = [{**event, name: value} for name in top]
    hostile += [{**event, "actions": {**event["actions"], name: value}} for name in actions]
    later = {"text": "a later turn", "inv": "i2"}
    for one in hostile:
        report = run({"sessions": [{"events": [{"event_data": json.dumps(one)}, later]}]})
        assert report.summary.events == 2


def test_filters_that_fit_nothing_are_told() -> None:
    log, detection = build({"sessions": [{"events": [{"text": "x"}]}]})
    note = "nothing was judged"
    assert note in audit(log, detection, AuditOptions(session="s2")).notes[0]
    assert not audit(log, detection, AuditOptions(session="s1")).notes
    empty, detection = build({"sessions": []})
    assert not audit(empty, detection).notes
