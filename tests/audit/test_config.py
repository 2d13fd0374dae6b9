"""The configuration: what is read, and that every wrong key or value is named with its place."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from exhume.audit.config import Config, load
from exhume.errors import NothingToLookAt, UsageError

WHOLE = """
source-timezone = "Europe/Berlin"
allow-global = ["shop.*"]

[audit]
fail-on = "warning"
ignore = "EXH312"
baseline = "known/baseline.json"
source-timezone = "UTC"

[scan]
second-opinion = false

[[suppress]]
rule = "duplicate-approval"
session = "load-test"
reason = "The load test approves twice on purpose."
until = 2027-01-31

[[suppress]]
fingerprint = "abcdef0123"
reason = "Looked at."
until = "2027-02-01"
"""


def written(folder: Path, text: str, name: str = "exhume.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_whole_configuration(tmp_path: Path) -> None:
    config = load(written(tmp_path, WHOLE))
    assert config.defaults("audit") == {
        "source_timezone": "UTC",
        "allow_global": ["shop.*"],
        "fail_on": "warning",
        "ignore": ["EXH312"],
        "baseline": str(tmp_path / "known/baseline.json"),
    }
    assert config.defaults("migrate") == {"source_timezone": "Europe/Berlin", "allow_global": ["shop.*"]}
    assert config.defaults("scan") == {"allow_global": ["shop.*"], "second_opinion": False}
    assert config.defaults("rules") == {}
    first, second = config.suppressions
    assert (first.rule, first.session, first.until) == ("EXH101", "load-test", date(2027, 1, 31))
    assert (second.rule, second.fingerprint, second.until) == (None, "abcdef0123", date(2027, 2, 1))
    assert second.place == f"{tmp_path}/exhume.toml: suppress[2]"


def test_the_same_in_pyproject(tmp_path: Path) -> None:
    text = WHOLE.replace("[[suppress", "[[tool.exhume.suppress").replace("[audit", "[tool.exhume.audit")
    text = "[tool.exhume]\n" + text.replace("[scan", "[tool.exhume.scan")
    config = load(written(tmp_path, text, "pyproject.toml"))
    assert config.options == load(written(tmp_path, WHOLE)).options
    assert config.suppressions[0].place.endswith("pyproject.toml: tool.exhume.suppress[1]")


def test_where_it_is_looked_for(tmp_path: Path) -> None:
    assert load(folder=tmp_path) == Config()
    written(tmp_path, "[project]\nname = 'x'\n", "pyproject.toml")
    assert load(folder=tmp_path) == Config()
    written(tmp_path, "[tool.exhume.audit]\nfail-on = 'info'\n", "pyproject.toml")
    assert load(folder=tmp_path).defaults("audit") == {"fail_on": "info"}
    written(tmp_path, "[audit]\nfail-on = 'error'\n")
    assert load(folder=tmp_path).defaults("audit") == {"fail_on": "error"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[audit]\nfail-onn = 'error'", r"audit\.fail-onn is no key"),
        ("[audits]\n", "audits is no key"),
        ("drift = true", "drift is no key"),
        ("audit = 1", "audit is not a table"),
        ("[audit]\nfail-on = 'fatal'", r"audit\.fail-on is none of error, warning, info"),
        ("[audit]\nselect = 'EXH1'\nwindow = 7", r"audit\.window is not a text"),
        ("[audit]\nselect = [1]", r"audit\.select is not a list of texts"),
        ("[detect]\ndrift = 'yes'", r"detect\.drift is not true or false"),
        ("suppress = 'EXH101'", "suppress is not an array of tables"),
        ("suppress = ['EXH101']", "suppress is not an array of tables"),
        ("[[suppress]]\nrule = 'EXH101'", r"suppress\[1\] has no reason"),
        ("[[suppress]]\nrule = 'EXH101'\nreason = ' '", r"suppress\[1\]\.reason is not a text"),
        ("[[suppress]]\nuser = 'u1'\nreason = 'x'", r"suppress\[1\] names no rule, session or fingerprint"),
        ("[[suppress]]\nrule = 'EXH999'\nreason = 'x'", r"suppress\[1\]\.rule: there is no rule EXH999"),
        ("[[suppress]]\nrules = 'EXH101'\nreason = 'x'", r"suppress\[1\]\.rules is no key"),
        ("[[suppress]]\nrule = 'EXH101'\nreason = 'x'\nuntil = 'soon'", r"suppress\[1\]\.until is not a date"),
        ("[[suppress]]\nrule = 'EXH101'\nreason = 'x'\nuntil = 2027", r"suppress\[1\]\.until is not a date"),
        ("audit = ", "is not TOML"),
        ("a = " + "[" * 5000, "is not TOML"),
        ("a = " + "9" * 5000, "is not TOML"),
        ("# " + "x" * (1 << 20), "larger than 1 MiB"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_key(tmp_path: Path, text: str, says: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError, match=says) as caught:
        load(path)
    assert str(path) in caught.value.what
    assert caught.value.todo


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "exhume.toml"
    path.write_bytes(b"a = '\xff'")
    with pytest.raises(UsageError, match="is not TOML"):
        load(path)


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "exhume.toml"
    path.write_bytes(b"\xef\xbb\xbf[audit]\nfail-on = 'warning'\n")
    assert load(path).defaults("audit") == {"fail_on": "warning"}


def test_a_file_that_is_not_there_is_an_error_only_when_it_was_named(tmp_path: Path) -> None:
    with pytest.raises(NothingToLookAt, match="There is no configuration"):
        load(tmp_path / "none.toml")
    with pytest.raises(NothingToLookAt, match="cannot be read"):
        load(tmp_path)
