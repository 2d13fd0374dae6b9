"""The ledger of a log against lists kept elsewhere: what agrees, what only one side has, lists that cannot be meant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.audit.external_list import LedgerOptions, spreadsheet_safe
from exhume.audit.ledger import Ledger
from exhume.audit.reconciliation import Reconciliation, reconcile
from exhume.errors import ExhumeError, NothingToLookAt, UsageError
from exhume.report.formats import Format, render
from exhume.report.results import of_ledger
from tests.report import samples


def held(tmp_path: Path, lines: str, **options: Any) -> Reconciliation:
    path = tmp_path / "list.csv"
    path.write_text(lines, encoding="utf-8")
    return reconcile(samples.ledger(), path, LedgerOptions(**options))


def test_a_list_that_agrees_but_for_the_double_run(tmp_path: Path) -> None:
    found = held(tmp_path, "call_id,amount\nadk-t,54\n")
    assert (found.matched, found.log_only_count, found.ledger_only_count) == (1, 0, 0)
    (more,) = found.more_executions
    assert (more.value, more.tool, more.approvals, more.executions) == ("adk-t", "issue_refund", 1, 2)
    assert found.differences == 1


def test_what_only_one_side_has(tmp_path: Path) -> None:
    found = held(tmp_path, "call_id\nadk-other\n")
    assert found.matched == 0
    assert [row.call_id for row in found.log_only] == ["adk-t"]
    assert [(entry.line, entry.identity, entry.value) for entry in found.ledger_only] == [(2, "call_id", "adk-other")]


def test_executions_kept_elsewhere_count(tmp_path: Path) -> None:
    found = held(tmp_path, "call_id,count\nadk-t,3\n", kind="executions")
    assert [(more.approvals, more.executions) for more in found.more_executions] == [(1, 3)]


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        ("Reference;Betrag\nadk-t;54\n", {"call_id": "Reference"}),
        ("\ufeffrequest_id\tx\nadk-c\t1\n", {}),
        ('{"ref": "adk-c"}\n\n', {"request_id": "ref"}),
        ('tool,args\nissue_refund,"{""amount"": 54, ""order"": ""please refund O-1""}"\n', {}),
        ('{"tool": "issue_refund", "args": {"order": "please refund O-1", "amount": 54}}\n', {}),
        ("call_id,session_id,user_id\n'adk-t,s-1,u-7\n".replace("'", ""), {}),
    ],
)
def test_rows_are_known_by_what_they_have(tmp_path: Path, lines: str, columns: dict[str, str]) -> None:
    found = held(tmp_path, lines, columns=columns)
    assert (found.matched, found.log_only_count, found.ledger_only_count) == (1, 0, 0)


def test_another_session_is_another_action(tmp_path: Path) -> None:
    found = held(tmp_path, "call_id,session_id\nadk-t,s-2\n")
    assert (found.matched, found.log_only_count, found.ledger_only_count) == (0, 1, 1)


def test_equal_actions_are_matched_one_by_one(tmp_path: Path) -> None:
    row, *_ = samples.ledger().rows
    twice = Ledger("x", "v1", [row, replace(row, call_id="adk-t2", request_id="adk-c2")], 1)
    path = tmp_path / "list.csv"
    path.write_text(f"fingerprint\n{row.fingerprint}\n")
    found = reconcile(twice, path)
    assert (found.matched, [one.call_id for one in found.log_only]) == (1, ["adk-t2"])
    path.write_text(f"fingerprint\n{row.fingerprint}\n{row.fingerprint}\n")
    assert reconcile(twice, path).differences == 0


def test_its_own_csv_agrees_with_the_log(tmp_path: Path) -> None:
    row, *_ = samples.ledger().rows
    found = Ledger("x", "v1", [row], 1)
    path = tmp_path / "own.csv"
    path.write_text("".join(render(of_ledger(found, span=samples.SPAN), Format.CSV)))
    assert reconcile(found, path).differences == 0


@pytest.mark.parametrize(
    ("lines", "options", "error"),
    [
        ("a,b\n1,2\n", {"columns": {"call_id": "ref"}}, UsageError),
        ("a,b\n1,2\n", {}, UsageError),
        ("a,b\n1,2\n", {"columns": {"colour": "a"}}, UsageError),
        ("call_id\nadk-t\n", {"kind": "wishes"}, UsageError),
        ('{"call_id": "adk-t"}\n{"call_id": \n', {}, NothingToLookAt),
        ('{"call_id": "adk-t"}\n[1]\n', {}, NothingToLookAt),
        ('{"call_id": ' + "[" * 100_000 + "\n", {}, NothingToLookAt),
        ('[{"call_id": "adk-t"}]', {}, NothingToLookAt),
        ("a,b\n", {}, UsageError),
        ('call_id\n"' + "x" * 200_000 + '"\n', {}, NothingToLookAt),
    ],
)
def test_lists_that_cannot_be_meant(
    tmp_path: Path, lines: str, options: dict[str, Any], error: type[ExhumeError]
) -> None:
    with pytest.raises(error) as caught:
        held(tmp_path, lines, **options)
    assert caught.value.todo


def test_an_empty_list_and_a_missing_one(tmp_path: Path) -> None:
    assert held(tmp_path, "").log_only_count == 1
    with pytest.raises(NothingToLookAt):
        reconcile(samples.ledger(), tmp_path / "none.csv")
    with pytest.raises(NothingToLookAt):
        reconcile(samples.ledger(), tmp_path)


@pytest.mark.parametrize("fmt", [Format.TABLE, Format.JSON, Format.MARKDOWN])
def test_the_report_names_every_difference(tmp_path: Path, fmt: Format) -> None:
    found = held(tmp_path, "call_id,decision\nadk-other,approved\nadk-t,rejected\n")
    assert found.contradicted_count == 1
    text = "".join(render(of_ledger(samples.ledger(), span=samples.SPAN, reconciliation=found), fmt))
    plain = text.replace("\\", "")
    for word in ("adk-other", "adk-t"):
        assert word in plain


def test_a_call_listed_more_often_than_answered_is_surplus(tmp_path: Path) -> None:
    answers = sum(row.call_id == "adk-t" for row in samples.ledger().rows)
    found = held(tmp_path, "call_id\n" + "adk-t\n" * (answers + 2))
    assert (found.matched, found.ledger_only_count) == (answers, 2)


def answered(*decisions: str) -> Ledger:
    """A log with equal actions, one for each decision; what was approved ran once."""
    row, *_ = samples.ledger().rows
    rows = [
        replace(
            row,
            call_id=f"adk-t{place}",
            request_id=f"adk-c{place}",
            decision=decision,
            nth=1,
            executions=int(decision == "approved"),
            early=0,
        )
        for place, decision in enumerate(decisions)
    ]
    return Ledger("x", "v1", rows, 1)


@pytest.mark.parametrize("logged", ["rejected", "pending", "closed", "unreadable"])
def test_an_approval_that_the_log_does_not_have_is_a_contradiction(tmp_path: Path, logged: str) -> None:
    path = tmp_path / "list.csv"
    path.write_text("call_id\nadk-t0\n")
    found = reconcile(answered(logged), path)
    assert (found.matched, found.ledger_only_count, found.log_only_count, found.differences) == (0, 0, 0, 1)
    (one,) = found.contradicted
    assert (one.listed.line, one.listed.decision, one.logged, one.call_id) == (2, "approved", logged, "adk-t0")


def test_a_rejection_in_the_list_permits_no_run(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text("ref;verdict\nadk-t0;Denied\n")
    columns = {"call_id": "ref", "decision": "verdict"}
    found = reconcile(answered("approved"), path, LedgerOptions(columns=columns))
    assert [(one.listed.decision, one.logged) for one in found.contradicted] == [("rejected", "approved")]
    assert [(one.approvals, one.executions) for one in found.more_executions] == [(0, 1)]
    assert found.log_only_count == 0


@pytest.mark.parametrize("order", [("approved", "rejected", "pending"), ("pending", "approved", "rejected")])
def test_equal_actions_are_matched_by_their_decisions(tmp_path: Path, order: tuple[str, ...]) -> None:
    log = answered("rejected", "pending", "approved")
    path = tmp_path / "list.jsonl"
    fingerprint = log.rows[0].fingerprint
    path.write_text("".join(f'{{"fingerprint": "{fingerprint}", "decision": "{one}"}}\n' for one in order))
    found = reconcile(log, path)
    assert (found.matched, found.differences) == (3, 0)


def test_equal_actions_that_were_executed_are_those_that_ran(tmp_path: Path) -> None:
    log = answered("rejected", "approved")
    path = tmp_path / "list.csv"
    path.write_text(f"fingerprint\n{log.rows[0].fingerprint}\n")
    assert reconcile(log, path, LedgerOptions(kind="executions")).differences == 0


@given(st.lists(st.sampled_from(["approved", "rejected", "pending", "closed", "unreadable"]), min_size=1, max_size=8))
def test_its_own_ledger_of_any_decisions_agrees_with_the_log(decisions: list[str]) -> None:
    log = answered(*decisions)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "own.csv"
        path.write_text("".join(render(of_ledger(log, span=samples.SPAN), Format.CSV)))
        found = reconcile(log, path)
    assert (found.matched, found.differences) == (len(decisions), 0)


@given(st.permutations(["approved", "approved", "rejected", "pending"]))
def test_the_order_of_the_list_does_not_matter(order: list[str]) -> None:
    log = answered("approved", "rejected", "pending")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "list.csv"
        path.write_text("fingerprint,decision\n" + "".join(f"{log.rows[0].fingerprint},{one}\n" for one in order))
        found = reconcile(log, path)
    assert found.differences > 0
    assert found.matched + found.contradicted_count + found.ledger_only_count == 4


def test_a_list_as_spreadsheets_save_it_in_unicode(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("call_id\tdecision\r\nadk-t0\tAPPROVED\r\n", encoding="utf-16")
    assert reconcile(answered("approved"), path).differences == 0


@pytest.mark.parametrize(
    ("lines", "options", "named"),
    [
        ("call_id,decision\nadk-t0,perhaps\n", {}, "perhaps"),
        ("call_id,decision,decision\nadk-t0,approved,rejected\n", {}, "two columns decision"),
        ("call_id,done\nadk-t0,yes\n", {"kind": "executions", "columns": {"decision": "done"}}, "no decisions"),
    ],
)
def test_decisions_that_cannot_be_meant(tmp_path: Path, lines: str, options: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named) as caught:
        held(tmp_path, lines, **options)
    assert caught.value.todo


def test_a_row_that_ends_before_its_decision_has_none(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text("call_id,decision\nadk-t0\n")
    assert [one.listed.decision for one in reconcile(answered("approved"), path).contradicted] == ["open"]


def test_cells_that_begin_with_a_sign_come_back() -> None:
    assert spreadsheet_safe("-7") == "'-7"
    assert spreadsheet_safe("a-7") == "a-7"
