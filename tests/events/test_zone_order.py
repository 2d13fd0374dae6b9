"""The zone of a file, and what the audit says of it, do not depend on the order in which its rows were stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from exhume import api
from exhume.audit.findings import AuditReport
from exhume.events.interface import ReadOptions
from exhume.events.model import TimeZoneReport

ORDERS = ["timestamp DESC", "id", "session_id DESC, content", "length(content), id DESC"]


def stored_anew(path: Path, order: str) -> Path:
    """The database with the rows of `events` stored in another order."""
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE moved AS SELECT * FROM events ORDER BY {order}")
    connection.execute("DELETE FROM events")
    connection.execute("INSERT INTO events SELECT * FROM moved ORDER BY rowid")
    connection.execute("DROP TABLE moved")
    connection.commit()
    connection.close()
    return path


def zone_of(path: Path) -> TimeZoneReport:
    with api.opened(path, ReadOptions()) as (reader, _):
        return reader.time_zone()


def audited(path: Path) -> AuditReport:
    return api.audit(path)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ["v0newyork", "v0"])
def test_rows_stored_in_another_order(incident_db: Callable[[str], Path], name: str, order: str) -> None:
    path = incident_db(name)
    zone, before = zone_of(path), audited(path).findings
    stored_anew(path, order)
    again = zone_of(path)
    assert (again.zone, again.proof) == (zone.zone, zone.proof)
    assert again.sessions_agreeing == zone.sessions_agreeing
    # which of the two holds is decided by the order of storage itself
    by_storage = {"EXH203", "EXH304"}
    kept = [
        {one.fingerprint for one in found if one.rule not in by_storage} for found in (before, audited(path).findings)
    ]
    assert kept[0] == kept[1]


@pytest.mark.parametrize("order", ORDERS)
def test_a_whole_file_of_another_zone(adk_db: Callable[[str], Path], order: str) -> None:
    path = adk_db("db-1.21.0-ny")
    zone = zone_of(path)
    again = zone_of(stored_anew(path, order))
    assert (zone.zone, again.zone) == ("America/New_York",) * 2
    assert again.sessions_agreeing >= 0.9 * zone.sessions_agreeing
