"""Streams that are closed, full or meant by `-`: one message, the documented code, nothing where it should not be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXHUME = str(Path(sys.executable).with_name("exhume"))
REFUND_DESK = Path(__file__).resolve().parents[2] / "fixtures" / "refund-desk-1.21.0.db"

needs_full = pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")


def shell(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a line of bash; `exhume` in it is this one, `$DB` a database."""
    return subprocess.run(
        ["bash", "-c", f'exhume() {{ "{EXHUME}" "$@"; }}; {command}'],
        cwd=cwd,
        env={**os.environ, "DB": str(REFUND_DESK)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "command",
    [
        'audit "$DB" -f json',
        'detect "$DB"',
        'export "$DB"',
        'migrate "$DB" new.db -f jsonl',
        "rules",
        "explain EXH101",
        "layouts",
        "schema audit",
        "audit --help",
        "--version",
    ],
)
@pytest.mark.parametrize("stdout", [">&-", pytest.param(">/dev/full", marks=needs_full)])
def test_a_stdout_that_takes_nothing_is_told_once(command: str, stdout: str, tmp_path: Path) -> None:
    done = shell(f"exhume {command} {stdout}", tmp_path)
    assert done.returncode == 5
    assert done.stderr.splitlines()[0].startswith("exhume: Stdout could not be written: ")
    assert done.stderr.count("exhume:") == 1
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize("stderr", ["2>&-", pytest.param("2>/dev/full", marks=needs_full)])
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("detect missing.db", 3),
        ("nosuch", 2),
        ('migrate "$DB" "$DB"', 4),
        ('-v detect "$DB" --require 0', 0),
        ('detect "$DB" --require 1', 1),
        ("rules >&-", 5),
        ("detect missing.db <&- >&-", 3),
    ],
)
def test_a_message_that_cannot_be_written_changes_no_exit_code(
    command: str, code: int, stderr: str, tmp_path: Path
) -> None:
    done = shell(f"exhume {command} {stderr}", tmp_path)
    assert (done.returncode, done.stderr) == (code, "")
    assert "exhume:" not in done.stdout


def test_a_closed_stream_is_no_place_for_the_database(tmp_path: Path) -> None:
    """Its number must not become that of a file which is opened next."""
    done = shell('exhume migrate "$DB" new.db --format json <&- >&- 2>&-; exhume verify "$DB" new.db', tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_report_in_a_file_needs_no_stdout(tmp_path: Path) -> None:
    done = shell('exhume detect "$DB" -o report.txt >&-', tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "report.txt").read_text().splitlines()


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1"])
@pytest.mark.parametrize("command", ["detect", "audit", "export", "approvals"])
def test_dash_is_stdout(name: str, command: str, tmp_path: Path) -> None:
    told = shell(f'echo before > all; exhume {command} "$DB" -o {name} >> all; cat all', tmp_path).stdout
    first, *report = told.splitlines()
    assert first == "before"
    assert report
    assert [path.name for path in tmp_path.iterdir()] == ["all"]


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ('audit "$DB" --write-baseline -', 2, "--write-baseline takes a file"),
        ('migrate "$DB" -', 2, "the destination cannot be a stream"),
        ('migrate "$DB" new.db --quarantine -', 2, "the quarantine file cannot be a stream"),
        ("audit -", 3, "a source is read more than once"),
        ("scan - -o report.txt", 3, "a source is read more than once"),
        ('cat "$DB" | exhume audit /dev/stdin', 3, "a source is read more than once"),
        ('audit <(cat "$DB")', 3, "a source is read more than once"),
        ("detect /dev/null", 3, "a source is read more than once"),
    ],
)
def test_what_cannot_be_a_stream(command: str, code: int, said: str, tmp_path: Path) -> None:
    done = shell(command if "exhume" in command else f"exhume {command}", tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_regular_file_on_stdin_is_a_source(tmp_path: Path) -> None:
    done = shell('exhume detect /dev/stdin < "$DB"', tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_report_is_written_through_a_link(tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    link = tmp_path / "latest"
    link.symlink_to("reports/monday.txt")
    for _ in range(2):
        assert shell('exhume detect "$DB" -o latest', tmp_path).returncode == 0
        assert link.is_symlink()
        assert [path.name for path in reports.iterdir()] == ["monday.txt"]
    link.unlink()
    link.symlink_to("nowhere/monday.txt")
    done = shell('exhume migrate "$DB" new.db -o latest', tmp_path)
    assert done.returncode == 2
    assert "Nothing was done" in done.stderr
    link.unlink()
    link.symlink_to("latest")
    assert shell('exhume detect "$DB" -o latest', tmp_path).returncode == 2


def test_the_hooks_have_the_same_streams(tmp_path: Path) -> None:
    done = shell(f"'{sys.executable}' -m exhume.cli.hook detect -- missing.db 2>&-", tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
