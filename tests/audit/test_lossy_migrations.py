"""EXH308 on what the real `adk migrate session` left of databases whose pickles it could not read."""

from __future__ import annotations

import gzip
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from exhume.audit.engine import AuditOptions, audit
from exhume.audit.findings import AuditReport
from exhume.events.readers import open_reader
from exhume.schema.detect import detect
from exhume.stores.sqlite import SqliteStore
from tests.conftest import FIXTURES, unpack

LOSSY = FIXTURES / "lossy"


def audited(path: Path) -> AuditReport:
    with SqliteStore(path) as store:
        detection = detect(store)
        return audit(open_reader(store, detection), detection, AuditOptions(select=("EXH308",)))


@pytest.mark.parametrize("release", ["1.25.1", "2.13.0"])
def test_a_confirmation_whose_placeholder_was_emptied(tmp_path: Path, release: str) -> None:
    name = f"app-class-instance-in-state.by-{release}.db"
    report = audited(unpack(LOSSY / f"{name}.gz", tmp_path / name))
    [finding] = report.findings
    assert (finding.session_id, finding.severity.label) == ("f-approved", "error")
    assert finding.call_ids == (
        "adk-29d26024-f43d-48cc-b299-0a4ee72774c9",
        "adk-8dc366d8-b8c4-4ca3-a033-ccdf02138582",
    )


@pytest.mark.parametrize(("release", "sessions"), [("1.25.1", [2, 2, 2, 7]), ("2.13.0", [3, 3, 3, 12])])
def test_state_that_no_event_explains(tmp_path: Path, release: str, sessions: list[int]) -> None:
    name = f"db-1.14.1-utc.by-{release}.db"
    report = audited(unpack(LOSSY / f"{name}.gz", tmp_path / name))
    assert {finding.severity.label for finding in report.findings} == {"info"}
    assert sorted(int(finding.message.split()[0]) for finding in report.findings) == sessions
    assert sorted(len(finding.evidence) for finding in report.findings) == sessions
    assert all(finding.app_name and finding.session_id is None for finding in report.findings)


@pytest.mark.parametrize("name", ["db-1.14.1-utc", "db-1.22.1-ny", "db-2.13.0-utc", "sqlitesvc-1.21.0-utc"])
def test_what_adk_wrote_itself_is_whole(tmp_path: Path, name: str) -> None:
    assert not audited(unpack(FIXTURES / "adk" / f"{name}.db.gz", tmp_path / "whole.db")).findings


def test_a_database_without_any_action(tmp_path: Path) -> None:
    path = tmp_path / "emptied.db"
    load_dump(gzip.decompress((LOSSY / "db-1.18.0-pg-utc.by-2.7.0.sql.gz").read_bytes()).decode(), path)
    report = audited(path)
    assert {finding.severity.label for finding in report.findings} == {"error"}
    whole = [finding for finding in report.findings if finding.app_name is None]
    assert len(whole) == 1
    assert "no event of the whole database has any action" in whole[0].message
    asked = {finding.session_id for finding in report.findings} - {None}
    assert {"f-approved", "f-rejected", "g-oauth", "g-apikey"} <= asked


def load_dump(text: str, path: Path) -> None:
    """The COPY blocks of a pg_dump of a v1 database, as a SQLite file."""
    connection = sqlite3.connect(path)
    for table, columns, rows in copy_blocks(text):
        names = columns.replace('"', "").split(", ")
        kinds = ", ".join(f'"{name}" {"DATETIME" if name.endswith("time") else "TEXT"}' for name in names)
        connection.execute(f"CREATE TABLE {table} ({kinds})")
        marks = ", ".join("?" * len(names))
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    connection.commit()
    connection.close()


def copy_blocks(text: str) -> Iterator[tuple[str, str, list[list[str | None]]]]:
    escapes = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "b": "\b"}
    for found in re.finditer(r"^COPY public\.(\w+) \((.*)\) FROM stdin;\n((?:.*\n)*?)\\\.$", text, re.MULTILINE):
        table, columns, block = found.groups()
        cells = [line.split("\t") for line in block.split("\n")[:-1]]
        rows = [
            [None if cell == r"\N" else re.sub(r"\\(.)", lambda m: escapes[m[1]], cell) for cell in row]
            for row in cells
        ]
        yield table, columns, rows
