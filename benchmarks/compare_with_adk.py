"""What `adk migrate session` and `exhume migrate` make of the same files, point by point, as a Markdown table.

usage: python benchmarks/compare_with_adk.py [POINT ...]     (in an environment with the `dev` extra)

Every cell is measured by this run on copies of the databases in `fixtures/`; `adk` is the google-adk of this
environment.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.conftest import FIXTURES, hostile_entries, load_truth, make_hostile, unpack

BIN = Path(sys.executable).parent
TIME_LIMIT = 30

#: What the pickles of the fixtures name besides ADK's own types.
APPLICATION_CLASSES = (
    "shop_models.*",
    "collections.Counter",
    "collections.deque",
    "builtins.range",
    "builtins.ValueError",
    "builtins.len",
)
ALLOW_ALL = [word for name in APPLICATION_CLASSES for word in ("--allow-global", name)]


class Outcome(NamedTuple):
    """How one migration ended: exit code (None when stopped at the time limit), output, destination."""

    code: int | None
    said: str
    destination: Path


def run(command: list[str], *, zone: str = "UTC", cwd: Path) -> tuple[int | None, str]:
    environment = {**os.environ, "TZ": zone, "OTEL_SDK_DISABLED": "true", "NO_COLOR": "1"}
    try:
        done = subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout + done.stderr


def adk(source: Path, work: Path, *, zone: str = "UTC", name: str = "adk.db") -> Outcome:
    out = work / name
    urls = ["--source_db_url", f"sqlite:///{source}", "--dest_db_url", f"sqlite:///{out}"]
    return Outcome(*run([str(BIN / "adk"), "migrate", "session", *urls], zone=zone, cwd=work), out)


def exhume(source: Path, work: Path, *options: str, zone: str = "UTC", name: str = "exhume.db") -> Outcome:
    out = work / name
    return Outcome(*run([str(BIN / "exhume"), "migrate", str(source), str(out), *options], zone=zone, cwd=work), out)


def unpacked(name: str, work: Path) -> Path:
    return unpack(FIXTURES / "adk" / f"{name}.db.gz", work / f"{name}.db")


def hostile(name: str, work: Path) -> Path:
    return make_hostile(next(entry for entry in hostile_entries() if entry["file"] == name), work / "source.db")


def events_of(path: Path) -> dict[tuple[str, str, str, str], dict[str, Any]]:
    if not path.exists():
        return {}
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute("SELECT app_name, user_id, session_id, id, event_data FROM events").fetchall()
    except sqlite3.OperationalError:
        return {}
    finally:
        connection.close()
    return {tuple(row[:4]): json.loads(row[4]) for row in rows}


def matched(outcome: Outcome, name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each event of the result beside what the application handed to ADK when the database was written."""
    events = events_of(outcome.destination)
    for session, known in load_truth(name).items():
        for event_id, truth in known.items():
            key = (*session.split("/"), event_id)
            if key in events:
                yield events[key], truth


def emptied(outcome: Outcome, name: str) -> int:
    """Events of the result without an action that were written with some."""
    return sum(
        any((truth.get("event") or {}).get("actions", {}).values()) and not any(event.get("actions", {}).values())
        for event, truth in matched(outcome, name)
    )


def shifted(outcome: Outcome, name: str) -> str:
    """How many events of the result have another time than they were written with, to the millisecond."""
    known = [
        (event["timestamp"], truth["timestamp"]) for event, truth in matched(outcome, name) if "timestamp" in truth
    ]
    return f"{sum(abs(found - wanted) >= 0.001 for found, wanted in known)} of {len(known)} events wrong"


def ended(outcome: Outcome) -> str:
    return f"no end in {TIME_LIMIT} s" if outcome.code is None else f"exit {outcome.code}"


def lost_actions(work: Path) -> tuple[str, str, str]:
    name = "db-1.18.0-utc-py313"
    source = unpacked(name, work)

    def count(outcome: Outcome) -> str:
        events = events_of(outcome.destination)
        return f"{ended(outcome)}; {len(events)} events, actions emptied in {emptied(outcome, name)}"

    return (
        "events whose state changes or approvals are emptied (1.18.0, Python 3.13)",
        count(adk(source, work)),
        count(exhume(source, work, *ALLOW_ALL)),
    )


def unnamed_classes(work: Path) -> tuple[str, str, str]:
    name = "db-1.21.0-utc"
    source = unpacked(name, work)
    theirs, ours = adk(source, work), exhume(source, work, "--format", "json")
    document = json.loads(ours.said[ours.said.index("{") :])
    named = sorted({name for row in document["refused"] for name in row["globals"]})
    return (
        "values that hold an application's own classes",
        f"{ended(theirs)}; actions emptied in {emptied(theirs, name)}",
        f"{ended(ours)}; {'written' if ours.destination.exists() else 'nothing written'}, "
        f"{document['refused_count']} rows listed, {len(named)} names to allow inertly",
    )


def pending_approval(work: Path) -> tuple[str, str, str]:
    source = unpacked("db-1.21.0-utc", work)

    def count(path: Path) -> int:
        return sum(
            len(e.get("actions", {}).get("requested_tool_confirmations") or {}) for e in events_of(path).values()
        )

    theirs, ours = count(adk(source, work).destination), count(exhume(source, work, *ALLOW_ALL).destination)
    return "requests for approval in the result (1.21.0)", str(theirs), str(ours)


def shifted_times(work: Path) -> tuple[str, str, str]:
    name = "db-1.21.0-ny"
    source = unpacked(name, work)
    return (
        "times of a file written in New York, migrated on a machine under UTC",
        shifted(adk(source, work), name),
        shifted(exhume(source, work, *ALLOW_ALL), name),
    )


def missing_source(work: Path) -> tuple[str, str, str]:
    def say(outcome: Outcome, source: Path) -> str:
        text = f"{ended(outcome)}; {'an empty source file is created' if source.exists() else 'nothing is created'}"
        source.unlink(missing_ok=True)
        return text

    source = work / "typo.db"
    return "a source that does not exist", say(adk(source, work), source), say(exhume(source, work), source)


def twice(work: Path) -> tuple[str, str, str]:
    first, second = FIXTURES / "refund-desk-1.21.0.db", unpacked("db-1.18.0-ny", work)

    def say(migrate: Callable[[Path, Path], Outcome]) -> str:
        before = len(events_of(migrate(first, work).destination))
        outcome = migrate(second, work)
        return f"{ended(outcome)}; {'merged' if len(events_of(outcome.destination)) > before else 'refused'}"

    return "a destination that already holds other sessions", say(adk), say(exhume)


def bomb(work: Path) -> tuple[str, str, str]:
    source = hostile("bomb-memo-22.db", work)
    theirs, ours = adk(source, work), exhume(source, work)
    return (
        "a 597-byte pickle that unfolds to 4 million values",
        ended(theirs),
        f"{ended(ours)}, {'the reason told' if 'EXH502' in ours.said else 'no reason told'}",
    )


def odd_time(work: Path) -> tuple[str, str, str]:
    source = hostile("odd-timestamp-offset.db", work)
    before = sqlite3.connect(source).execute("SELECT count(*) FROM events").fetchone()[0]

    def say(outcome: Outcome) -> str:
        return f"{ended(outcome)}; {len(events_of(outcome.destination))} of {before} events in the result"

    return "an event whose time has an offset", say(adk(source, work)), say(exhume(source, work))


def two_meanings(work: Path) -> tuple[str, str, str]:
    name = "db-1.21.0-utc"
    source = unpacked(name, work)
    connection = sqlite3.connect(source)
    # what an upgrade from local to UTC writing leaves behind: the older half of the sessions in New York time
    sessions = connection.execute("SELECT app_name, user_id, id FROM sessions ORDER BY create_time").fetchall()
    older = set(sessions[: len(sessions) // 2])
    changed = 0
    for rowid, app, user, session, when in connection.execute(
        "SELECT rowid, app_name, user_id, session_id, timestamp FROM events"
    ).fetchall():
        # events with made-up times, at the edges of daylight saving for instance, stay as they are
        if (app, user, session) in older and when.startswith("2026-11-30"):
            connection.execute(
                "UPDATE events SET timestamp = strftime('%Y-%m-%d %H:%M:', ?, '-5 hours') || substr(?, 18)"
                " WHERE rowid = ?",
                (when, when, rowid),
            )
            changed += 1
    connection.commit()
    connection.close()
    return (
        f"a column with two meanings of time ({changed} events local, the rest UTC)",
        shifted(adk(source, work), name),
        shifted(exhume(source, work, *ALLOW_ALL), name),
    )


def api_key(work: Path) -> tuple[str, str, str]:
    source = unpacked("db-1.21.0-utc", work)

    def schemes(outcome: Outcome) -> str:
        found = [
            request.get("auth_scheme", {})
            for event in events_of(outcome.destination).values()
            for request in (event.get("actions", {}).get("requested_auth_configs") or {}).values()
        ]
        keys = [scheme for scheme in found if (scheme.get("type") or scheme.get("type_")) == "apiKey"]
        return f"{sum('scheme' in scheme for scheme in keys)} of {len(keys)} turned into a bearer scheme"

    return "API-key credential requests", schemes(adk(source, work)), schemes(exhume(source, work, *ALLOW_ALL))


def unknown_version(work: Path) -> tuple[str, str, str]:
    source = unpacked("db-2.13.0-utc", work)
    connection = sqlite3.connect(source)
    connection.execute("UPDATE adk_internal_metadata SET value = '2'")
    connection.commit()
    connection.close()
    theirs, ours = adk(source, work), exhume(source, work)
    return (
        "a database that declares version 2",
        f"{ended(theirs)}: {last(theirs.said)}",
        f"{ended(ours)}: {first_line(ours.said)}",
    )


def last(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:100] if lines else ""


def first_line(text: str) -> str:
    return next((line.strip()[:100] for line in text.splitlines() if line.strip()), "")


POINTS: dict[str, Callable[[Path], tuple[str, str, str]]] = {
    point.__name__.replace("_", "-"): point
    for point in (
        lost_actions,
        pending_approval,
        unnamed_classes,
        shifted_times,
        two_meanings,
        api_key,
        odd_time,
        bomb,
        missing_source,
        twice,
        unknown_version,
    )
}


def main() -> None:
    chosen = sys.argv[1:] or list(POINTS)
    unknown = [name for name in chosen if name not in POINTS]
    if unknown:
        sys.exit(f"no such point: {', '.join(unknown)}; choose from {', '.join(POINTS)}")
    print("| point | `adk migrate session` | `exhume migrate` | reproduce |\n|---|---|---|---|")
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            what, theirs, ours = POINTS[name](Path(folder))
        print(f"| {what} | {theirs} | {ours} | `python benchmarks/compare_with_adk.py {name}` |", flush=True)


if __name__ == "__main__":
    main()
