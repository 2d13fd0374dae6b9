"""Whatever goes wrong ends in one clear message and the documented exit code."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from exhume.cli.app import build

EXHUME = str(Path(sys.executable).with_name("exhume"))
REFUND_DESK = Path(__file__).resolve().parents[2] / "fixtures" / "refund-desk-1.21.0.db"


def exhume(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [EXHUME, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def names_in(folder: Path) -> list[str]:
    """Names of the files there, `-wal` and other sidecars included."""
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nosuch"], 2, "No such command"),
        (["detect"], 2, "SOURCE"),
        (["detect", "x.db", "--format", "nope"], 2, "nope"),
        (["detect", "missing.db"], 3, "missing.db does not exist"),
        (["scan", "missing.db"], 3, "missing.db does not exist"),
        (["migrate", "missing.db", "out.db"], 3, "missing.db does not exist"),
        (["audit", "missing.db"], 3, "missing.db does not exist"),
        (["verify", "missing.db", "also.db"], 3, "missing.db does not exist"),
        (["show", "missing.db", "s"], 3, "missing.db does not exist"),
        (["approvals", "missing.db"], 3, "missing.db does not exist"),
        (["explain", "EXH999"], 2, "There is no rule EXH999"),
        (["schema", "nope"], 2, "There is no schema named nope"),
        (["audit", str(REFUND_DESK), "--window", "soon"], 2, "'soon' is not a duration"),
        (["audit", str(REFUND_DESK), "--since", "soon"], 2, "'soon' is not a time"),
        (["migrate", str(REFUND_DESK), "out.db", "--source-timezone", "Nowhere/Land"], 2, "Nowhere/Land"),
        (["migrate", str(REFUND_DESK), "out.db", "--to", "v9"], 2, "exhume can make sqlite-service and v1"),
        (["--config", "missing.toml", "detect", str(REFUND_DESK)], 3, "missing.toml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_errors_are_one_message_and_a_documented_code(
    arguments: Sequence[str], code: int, said: str, tmp_path: Path
) -> None:
    done = exhume(*arguments, cwd=tmp_path)
    assert done.returncode == code
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert names_in(tmp_path) == []


def test_a_version_that_is_not_the_required_one_is_told_beside_the_report(tmp_path: Path) -> None:
    done = exhume("detect", REFUND_DESK, "--require", "1", cwd=tmp_path)
    assert done.returncode == 1
    assert "not what --require asks for: schema 1" in done.stderr
    assert "written by  ADK 1.19.0 to 1.27.5" in done.stdout
    assert exhume("detect", REFUND_DESK, "--require", "0", cwd=tmp_path).stderr == ""


def test_detect_tells_the_zone_of_the_times(tmp_path: Path) -> None:
    told = json.loads(exhume("detect", REFUND_DESK, "--format", "json", cwd=tmp_path).stdout)["time_zone"]
    assert (told["zone"], told["proof"], told["sessions_agreeing"], told["sessions_disagreeing"]) == (
        "UTC", "proved", 2, 0,
    )  # fmt: skip
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE notes (id)")
    assert json.loads(exhume("detect", foreign, "--format", "json", cwd=tmp_path).stdout)["time_zone"] is None


@pytest.mark.parametrize("command", ["audit", "approvals", "export"])
@pytest.mark.parametrize("option", ["--app", "--user", "--session"])
def test_a_filter_that_fits_nothing_is_no_clean_verdict(command: str, option: str, tmp_path: Path) -> None:
    done = exhume(command, REFUND_DESK, option, "typo", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert "No session of" in done.stderr


def test_help_and_version(tmp_path: Path) -> None:
    bare, asked = exhume(cwd=tmp_path), exhume("--help", cwd=tmp_path)
    assert bare.returncode == asked.returncode == 0
    assert bare.stdout == asked.stdout
    assert exhume("--version", cwd=tmp_path).stdout.startswith("exhume 0.")


@pytest.mark.parametrize(
    "command",
    [
        "detect",
        "scan",
        "migrate",
        "verify",
        "audit",
        "show",
        "approvals",
        "export",
        "layouts",
        "rules",
        "explain",
        "schema",
    ],
)
def test_every_command_has_help(command: str, tmp_path: Path) -> None:
    done = exhume(command, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: exhume {command}")


def test_an_option_can_come_from_the_environment_and_from_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "exhume.toml").write_text('[detect]\nformat = "json"\n')
    assert json.loads(exhume("detect", REFUND_DESK, cwd=tmp_path).stdout)["layout"] == "v0"
    shown = exhume("detect", REFUND_DESK, cwd=tmp_path, EXHUME_DETECT_FORMAT="markdown").stdout
    assert shown.startswith("## ")
    assert json.loads(exhume("detect", REFUND_DESK, "--format", "json", cwd=tmp_path).stdout)["layout"] == "v0"
    assert exhume("detect", REFUND_DESK, cwd=tmp_path, EXHUME_VERSION="1").returncode == 0


def test_a_reader_that_goes_away_gets_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{EXHUME} rules | head -n 1"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("EXH101")
    assert done.stderr == ""
    command = f"{EXHUME} migrate {REFUND_DESK} out.db --format json | head -c 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("{0\n", "")


def test_no_colour_reaches_a_pipe(tmp_path: Path) -> None:
    assert "\x1b" not in exhume("detect", REFUND_DESK, cwd=tmp_path).stdout


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing_behind(sent: signal.Signals, tmp_path: Path, adk_db: Callable[[str], Path]) -> None:
    source = adk_db("db-2.13.0-utc-over-1.21.0")
    work = tmp_path / "work"
    work.mkdir()
    child = subprocess.Popen(
        [EXHUME, "migrate", str(source), "out.db", "--quarantine", "box.db"],
        cwd=work,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(0.35)
    child.send_signal(sent)
    _, said = child.communicate(timeout=30)
    assert child.returncode in (130, 5)
    assert child.returncode == 5 or "exhume: " in said
    # all of it or nothing: a signal may come when the files have their names and only the report is missing
    assert names_in(work) in ([], ["box.db", "out.db"])
    if child.returncode == 5:
        assert names_in(work) == ["box.db", "out.db"]
    if names_in(work):
        events = sqlite3.connect(work / "out.db").execute("SELECT count(*) FROM events").fetchone()
        assert events == (675,)
    assert names_in(source.parent) == [source.name]


def test_every_option_has_its_variable_under_its_own_name() -> None:
    for name, command in build().commands.items():
        for parameter in command.params:
            longest = max(parameter.opts, key=len).lstrip("-").replace("-", "_")
            assert parameter.name == longest, f"EXHUME_{name}_{longest} would not be read"


def test_verbose_says_what_the_run_ran_on(tmp_path: Path) -> None:
    done = exhume("--verbose", "detect", REFUND_DESK, "--format", "json", cwd=tmp_path)
    assert json.loads(done.stdout)["layout"] == "v0"
    assert re.fullmatch(r"exhume [\d.]+, Python [\d.]+, SQLite [\d.]+; configuration: none; \d+\.\d\d s\n", done.stderr)


def copied(folder: Path) -> Path:
    path = folder / "evidence.db"
    path.write_bytes(REFUND_DESK.read_bytes())
    return path


@pytest.mark.parametrize("named", ["evidence.db", "./evidence.db", "link.db", "evidence.db-wal", "evidence.db-journal"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["detect", "evidence.db", "-o"],
        ["-o@scan", "evidence.db"],
        ["migrate", "evidence.db", "new.db", "-o"],
        ["verify", "evidence.db", "evidence.db", "-o"],
        ["audit", "evidence.db", "-o"],
        ["audit", "sqlite:///evidence.db", "-o"],
        ["audit", "evidence.db", "--write-baseline"],
        ["show", "evidence.db", "s1", "-o"],
        ["approvals", "evidence.db", "-o"],
        ["export", "evidence.db", "-o"],
    ],
    ids=" ".join,
)
def test_no_report_replaces_what_is_read(arguments: list[str], named: str, tmp_path: Path) -> None:
    evidence = copied(tmp_path)
    (tmp_path / "link.db").symlink_to(evidence)
    if arguments[0].startswith("-o@"):  # the option may stand before the source
        arguments = [arguments[0][3:], "-o", named, *arguments[1:]]
    else:
        arguments = [*arguments, named]
    done = exhume(*arguments, cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert "would replace it" in done.stderr
    assert evidence.read_bytes() == REFUND_DESK.read_bytes()
    assert names_in(tmp_path) == ["evidence.db", "link.db"]


def test_reports_do_not_replace_lists_or_each_other(tmp_path: Path) -> None:
    evidence = copied(tmp_path)
    ledger = tmp_path / "ledger.csv"
    ledger.write_text("call_id\nx\n")
    done = exhume("approvals", evidence, "--ledger", ledger, "-o", ledger, cwd=tmp_path)
    assert (done.returncode, ledger.read_text()) == (4, "call_id\nx\n")
    assert exhume("audit", evidence, "--write-baseline", "a", "-o", "./a", cwd=tmp_path).returncode == 4
    for _ in range(2):
        again = ["--baseline", "known.json"] if (tmp_path / "known.json").exists() else []
        assert exhume("audit", evidence, *again, "--write-baseline", "known.json", cwd=tmp_path).returncode in (0, 1)
    assert exhume("audit", evidence, "--baseline", "known.json", "-o", "known.json", cwd=tmp_path).returncode == 4


@pytest.mark.parametrize("command", ["audit", "approvals", "export", "show"])
def test_a_database_that_is_not_adks_is_nothing_to_look_at(command: str, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "notes.db") as connection:
        connection.execute("CREATE TABLE notes (text)")
    connection.close()
    done = exhume(command, "notes.db", *(["s"] if command == "show" else []), cwd=tmp_path)
    assert done.returncode == 3
    assert "no session store of ADK" in done.stderr


def test_a_zone_that_does_not_exist_is_told_where_none_is_needed(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text('{"type": "session", "app_name": "a", "user_id": "u", "session_id": "s"}')
    done = exhume("audit", "log.json", "--source-timezone", "Nowhere/Land", cwd=tmp_path)
    assert (done.returncode, "Nowhere/Land" in done.stderr) == (2, True)


@pytest.mark.parametrize("name", ["no/report.json", "x" * 300 + "/report.json", "x" * 300, "."])
def test_a_report_that_cannot_be_written_is_told_before_the_work(tmp_path: Path, name: str) -> None:
    done = exhume("migrate", REFUND_DESK, tmp_path / "made.db", "-o", name, cwd=tmp_path)
    assert (done.returncode, names_in(tmp_path)) == (2, [])
    assert "Nothing was done" in done.stderr


def test_the_report_never_replaces_the_quarantine_file(tmp_path: Path) -> None:
    done = exhume("migrate", REFUND_DESK, "made.db", "--quarantine", "q.db", "-o", "q.db", cwd=tmp_path)
    assert (done.returncode, names_in(tmp_path)) == (4, [])
    assert "would replace it" in done.stderr


@pytest.mark.parametrize("source", [".", "/"])
def test_a_folder_as_source_is_told_also_with_a_report(tmp_path: Path, source: str) -> None:
    done = exhume("detect", source, "-o", "report.json", cwd=tmp_path)
    assert done.returncode == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_modules_are_imported_ends_in_one_message(number: signal.Signals, tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == 'exhume.cli.app': os.kill(os.getpid(), {int(number)})\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from exhume.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 130
    assert done.stderr.startswith(f"exhume: Ended by {number.name}.")


@pytest.mark.parametrize(
    ("release", "lines", "said"),
    [("2.13.0", 1, ""), ("9.9", 1, "up to 2.13.0"), ("1.21.0", 0, "Nothing is needed"), ("soon", 0, "no ADK release")],
)
def test_statements_for_a_release_are_alone_on_stdout(release: str, lines: int, said: str, tmp_path: Path) -> None:
    done = exhume("detect", REFUND_DESK, "--sql", release, cwd=tmp_path)
    assert done.returncode == (2 if release == "soon" else 0)
    assert len(done.stdout.splitlines()) == lines
    assert said in done.stderr
    assert bool(said) == bool(done.stderr)


def test_the_zone_of_a_large_database_is_looked_for_when_asked(tmp_path: Path) -> None:
    large = tmp_path / "large.db"
    shutil.copy(REFUND_DESK, large)
    connection = sqlite3.connect(large)
    connection.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
        " INSERT INTO events (id, app_name, user_id, session_id, invocation_id, author, actions, timestamp)"
        " SELECT 'more-' || i, app_name, user_id, session_id, invocation_id, author, actions, timestamp"
        " FROM n, (SELECT * FROM events LIMIT 1)"
    )
    connection.commit()
    connection.close()
    quick = exhume("detect", large, "--format", "json", cwd=tmp_path)
    assert json.loads(quick.stdout)["time_zone"] is None
    assert "--time-zone" in quick.stderr
    whole = exhume("detect", large, "--format", "json", "--time-zone", cwd=tmp_path)
    assert json.loads(whole.stdout)["time_zone"]["zone"] == "UTC"
    assert whole.stderr == ""


def test_the_audit_names_the_hash_of_what_it_judged(tmp_path: Path) -> None:
    known = hashlib.sha256(REFUND_DESK.read_bytes()).hexdigest()
    assert json.loads(exhume("audit", REFUND_DESK, "--format", "json", cwd=tmp_path).stdout)["sha256"] == known
    assert known in exhume("audit", REFUND_DESK, cwd=tmp_path).stdout
