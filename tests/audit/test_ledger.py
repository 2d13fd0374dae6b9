"""The ledger of approvals on labelled databases, and its CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from exhume.audit.ledger import Ledger, LedgerRow, action_fingerprint, ledger
from exhume.events.readers import open_reader
from exhume.report.formats import Format, render
from exhume.report.results import of_ledger
from exhume.schema.detect import detect
from exhume.stores import open_store
from tests.audit.labels import labelled
from tests.report import samples

Database = Callable[[str], Path]


def ledger_of(source: Path) -> Ledger:
    with closing(open_store(source)) as store:
        detection = detect(store)
        return ledger(open_reader(store, detection), detection)


def session_ids(name: str, rule: str) -> set[str]:
    return {session["session_id"] for session in labelled(name, rule)}


@pytest.mark.parametrize("name", ["v1a", "v1b", "v1x", "v0", "sqlite", "go", "v1camel"])
def test_the_ledger_shows_what_the_labels_say(incident_db: Database, name: str) -> None:
    rows = ledger_of(incident_db(name)).rows
    by_session: dict[str, list[LedgerRow]] = {}
    for row in rows:
        by_session.setdefault(row.key.session_id, []).append(row)
    for session in session_ids(name, "EXH101"):
        approved = [row.request_id for row in by_session[session] if row.decision == "approved"]
        assert len(approved) > len(set(approved)), session
    for session in session_ids(name, "EXH104"):
        by_call: dict[str | None, int] = {}
        for row in by_session[session]:
            by_call[row.call_id] = by_call.get(row.call_id, 0) + row.executions
        assert max(by_call.values()) > 1, session
    for session in session_ids(name, "EXH108"):
        assert any(row.decision == "pending" for row in by_session[session]), session
    for session in session_ids(name, "EXH103"):
        prints = [row.fingerprint for row in rows if row.decision == "approved"]
        own = {row.fingerprint for row in by_session[session]}
        assert any(prints.count(mark) > 1 for mark in own), session
    assert {row.decision for row in rows} <= {"approved", "rejected", "unreadable", "closed", "pending"}
    assert rows


def test_fingerprints_are_of_the_action() -> None:
    same = action_fingerprint("refund", {"a": 300, "b": [1]})
    assert same == action_fingerprint("refund", {"b": [1.0], "a": 300.0})
    assert same != action_fingerprint("refund", {"a": "300", "b": [1]})
    assert same != action_fingerprint("refunds", {"a": 300, "b": [1]})
    assert action_fingerprint("refund", None) == action_fingerprint("refund", {})


def test_who_decided_what_and_when() -> None:
    first, second, third = samples.ledger().rows
    assert (first.decision, first.nth, first.executions, first.execution_events) == ("approved", 1, 1, ("e-6",))
    assert (second.decision, second.nth, second.executions, second.execution_events) == ("approved", 2, 1, ("e-8",))
    assert (first.request_id, first.call_id, first.tool) == ("adk-c", "adk-t", "issue_refund")
    assert (first.requested_at, first.decided_at, first.latency) == (1772444883.0, 1772444885.0, 2.0)
    assert first.decided_by == "u-7"
    assert first.fingerprint == second.fingerprint
    assert (third.decision, third.call_id, third.note) == ("pending", None, "the original call is not in the log")


def csv_of(found: Ledger) -> list[dict[str, str]]:
    text = "".join(render(of_ledger(found, span=samples.SPAN), Format.CSV))
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "=cmd|' /C calc'!A0"])
def test_csv_holds_no_formula(start: str) -> None:
    rows = csv_of(samples.ledger(f"{start}1+1"))
    assert len(rows) == 3
    for row in rows:
        for name, cell in row.items():
            if name not in ("latency", "nth", "executions", "early_executions"):
                assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")), (name, cell)
            assert "\n" not in cell
    assert json.loads(rows[0]["args"]) == {"amount": 54.0, "order": f"{start}1+1"}
