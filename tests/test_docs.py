"""The documentation says what the program does: pages are up to date, every command is named, README commands run."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from exhume.audit.external_list import DECISION_WORDS, FIELDS
from exhume.cli.app import build

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = sorted(build().commands)


def make_pages() -> dict[str, str]:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        found: dict[str, str] = import_module("make_pages").pages()
    finally:
        sys.path.pop(0)
    return found


def test_rule_pages_are_up_to_date() -> None:
    there = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "rules").iterdir()}
    assert there == make_pages()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_readme_names_every_command(command: str) -> None:
    assert re.search(rf"\bexhume {command}\b", README) or f"`{command}`" in README


def test_the_readme_names_only_commands_and_options_that_exist() -> None:
    exhume = build()
    blocks = "\n".join(re.findall(r"```bash\n(.*?)```", README, flags=re.DOTALL))
    lines = re.findall(r"(?:^|/)exhume ([^\n]*)$", blocks, flags=re.MULTILINE)
    assert len(lines) > 15
    for line in lines:
        words = line.split("#")[0].split()
        assert words[0] in exhume.commands, line
        known = {option for parameter in exhume.commands[words[0]].params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, line


def test_the_page_on_ledgers_names_every_field_and_word() -> None:
    page = (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8")
    fields = re.findall(r"`([a-z_]+)`", page.split("## The list")[1].split("A column of another name")[0])
    assert set(FIELDS) == set(fields) - {"approvals", "executions", "adk_request_confirmation"}
    rows = dict(re.findall(r"^\| (approved|rejected|open) \| (.+?)(?:, or nothing)? \|$", page, flags=re.MULTILINE))
    told = {word: decision for decision, words in rows.items() for word in words.split(", ")}
    assert told == {word: decision for word, decision in DECISION_WORDS.items() if word}


def test_the_changelog_has_an_unreleased_section() -> None:
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_quickstart_of_the_readme_runs(tmp_path: Path) -> None:
    block = README.split("<!-- command: quickstart -->")[1].split("```")[1].removeprefix("bash\n").strip()
    # the last part is the main job; installing is what the environment of this test has done already
    command = block.rpartition("&& ")[2].replace(".venv/bin/exhume", str(Path(sys.executable).with_name("exhume")))
    command = command.replace("refund-desk-v1.db", str(tmp_path / "refund-desk-v1.db"))
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "12" in done.stdout
    assert (tmp_path / "refund-desk-v1.db").exists()


def test_shell_scripts_are_well_formed() -> None:
    for script in (ROOT / ".ci" / "run", ROOT / ".github" / "audit.sh"):
        subprocess.run(["bash", "-n", str(script)], check=True)
