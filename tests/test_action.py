"""The GitHub action and the pre-commit hooks: their scripts run as they would there, their files are well formed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent


def run_action(source: Path, folder: Path, **inputs: str) -> tuple[dict[str, str], str, str]:
    """Outputs, job summary and log of the action's script."""
    output, summary = folder / "output", folder / "summary"
    output.touch()
    summary.touch()
    environment = {
        **os.environ,
        "EXHUME": str(Path(sys.executable).with_name("exhume")),
        "RUNNER_TEMP": str(folder),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(summary),
        "SOURCE": str(source),
        "FAIL_ON": "error",
        "ARGUMENTS": "",
        "BASELINE": "",
        **inputs,
    }
    done = subprocess.run(
        ["bash", str(ROOT / ".github" / "audit.sh")], env=environment, capture_output=True, text=True, check=True
    )
    pairs = dict(line.split("=", 1) for line in output.read_text().splitlines())
    return pairs, summary.read_text(), done.stdout


def test_findings_are_uploaded_summarised_and_annotated(tmp_path: Path, incident_db: Callable[[str], Path]) -> None:
    outputs, summary, log = run_action(incident_db("v1a"), tmp_path)
    assert outputs["exit-code"] == "1"
    sarif = json.loads(Path(outputs["sarif"]).read_text())
    assert sarif["version"] == "2.1.0"
    assert any(result["ruleId"] == "EXH101" for result in sarif["runs"][0]["results"])
    assert "EXH101" in summary
    assert "::error " in log


def test_arguments_are_words_not_shell(tmp_path: Path, incident_db: Callable[[str], Path]) -> None:
    outputs, summary, _ = run_action(incident_db("v1a"), tmp_path, ARGUMENTS="--select\nEXH9$(touch pwned)\n")
    assert outputs == {"exit-code": "2"}
    assert summary == ""
    assert not (tmp_path / "pwned").exists()


def test_a_missing_source_uploads_nothing(tmp_path: Path) -> None:
    outputs, summary, _ = run_action(tmp_path / "missing.db", tmp_path)
    assert outputs == {"exit-code": "3"}
    assert summary == ""


def test_the_action_passes_inputs_as_data_only() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    for step in action["runs"]["steps"]:
        assert "${{ inputs." not in step.get("run", ""), "an input inside a script would be run as shell"
    assert set(action["outputs"]) == {"exit-code", "sarif"}


HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}


@pytest.mark.parametrize(
    ("hook", "names", "code"),
    [
        ("exhume-detect", ["db-2.13.0-utc"], 0),
        ("exhume-detect", ["db-2.13.0-utc", "db-1.18.0-ny"], 1),
        ("exhume-audit", [], 0),
    ],
)
def test_hooks_take_every_file_that_changed(
    hook: str, names: list[str], code: int, adk_db: Callable[[str], Path], tmp_path: Path
) -> None:
    python, *rest = str(HOOKS[hook]["entry"]).split()
    assert python == "python"
    files = [str(adk_db(name)) for name in names]
    done = subprocess.run([sys.executable, *rest, *HOOKS[hook]["args"], *files], cwd=tmp_path, check=False)
    assert done.returncode == code


def test_the_audit_hook_fails_on_an_incident(incident_db: Callable[[str], Path], tmp_path: Path) -> None:
    rest = str(HOOKS["exhume-audit"]["entry"]).split()[1:]
    files = [str(incident_db("v1kolkata")), str(incident_db("v1a"))]
    done = subprocess.run(
        [sys.executable, *rest, *HOOKS["exhume-audit"]["args"], *files],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "EXH101" in done.stdout
