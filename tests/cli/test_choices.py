"""Choices of options that the command line spells itself, so that `--help` starts at once, are those of the library."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.audit.external_list import LedgerOptions
from exhume.audit.findings import Severity
from exhume.audit.reconciliation import reconcile
from exhume.audit.timeline_filter import GROUPS
from exhume.cli.commands.approvals import Kind
from exhume.cli.commands.audit import FailOn
from exhume.cli.commands.show import Only
from tests.report import samples


def test_severities() -> None:
    assert {one.value for one in FailOn} == {severity.label for severity in Severity}


def test_groups_of_a_timeline() -> None:
    assert [one.value for one in Only] == list(GROUPS)


@pytest.mark.parametrize("kind", Kind)
def test_kinds_of_a_ledger(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "ledger.csv"
    path.write_text("call_id\nadk-t\n")
    assert reconcile(samples.ledger(), path, LedgerOptions(kind=kind.value)).kind == kind.value
