"""`scan` on real and hostile stores: counts, refusals, what is told, extraction, second opinions."""

from __future__ import annotations

import hashlib
import os
import pickle
import sqlite3
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exhume.errors import UsageError
from exhume.pickles import evidence
from exhume.pickles.allowed import Allowed, option_for
from exhume.pickles.decoder import Decoder
from exhume.pickles.disassembly import excerpt
from exhume.pickles.evidence import SecondOpinion, second_opinions
from exhume.pickles.evidence_child import opinion
from exhume.pickles.interface import MalformedPickle, UnsafeGlobal
from exhume.pickles.scan import ScanReport, scan_store
from exhume.schema.detect import detect
from exhume.stores import open_store
from tests.conftest import hostile_entries, make_hostile

EXEC = b"cos\nsystem\n(V: > marker\ntR."


def scan(path: Path, **options: Any) -> ScanReport:
    store = open_store(path)
    try:
        return scan_store(store, detect(store), **{"second_opinion": False, **options})
    finally:
        store.close()


def hostile(file: str, folder: Path) -> Path:
    (entry,) = [entry for entry in hostile_entries() if entry["file"] == file]
    return make_hostile(entry, folder / "source.db")


def rewritten(path: Path, blob: object, *, rows: int = 1) -> Path:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE events SET actions = ? WHERE rowid IN (SELECT rowid FROM events LIMIT ?)", (blob, rows))
    connection.commit()
    connection.close()
    return path


def test_a_real_store(adk_db: Callable[[str], Path]) -> None:
    path = adk_db("db-1.14.1-utc")
    connection = sqlite3.connect(path)
    rows, distinct = connection.execute("SELECT COUNT(*), COUNT(DISTINCT actions) FROM events").fetchone()
    connection.close()
    report = scan(path)
    assert (report.values_total, report.values_distinct, report.values_refused) == (rows, distinct, 22)
    assert (len(report.refused), report.values_told, report.notes) == (22, 0, ())
    counts = {(one.module, one.name): one for one in report.globals}
    actions = counts["google.adk.events.event_actions", "EventActions"]
    assert (actions.count, actions.allowed) == (rows, True)
    assert not counts["shop_models", "Priority"].allowed
    assert {one.rule for one in report.refused} == {"EXH501"}
    assert "--allow-global shop_models.Priority" in report.options
    again = scan(path, allow_globals=tuple(option.split()[1] for option in report.options))
    assert (again.values_refused, again.refused) == (0, ())
    assert again.allowed_globals[0] in report.options[0]


def test_progress_is_told(adk_db: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exhume.pickles.scan._PROGRESS_EVERY", 100)
    told: list[tuple[int, int, str]] = []
    report = scan(adk_db("db-1.21.0-utc"), progress=lambda *what: told.append(what))
    assert told[0] == (100, report.values_total, "events")


@pytest.mark.parametrize(
    ("file", "rules", "told"),
    [
        ("exec-builtins-eval.db", ["EXH501"], []),
        ("bomb-memo-22.db", ["EXH502"], []),
        ("empty-blob.db", ["EXH502"], []),
        ("integer-in-actions.db", ["EXH502"], []),
        ("two-pickles-second-unsafe.db", ["EXH501"], []),
        ("two-pickles-genuine.db", [], ["EXH504"]),
        ("trailing-bytes.db", [], ["EXH504"]),
        ("pickled-int.db", ["EXH503"], []),
        ("pickled-none.db", [], ["EXH503"]),
        ("dict-form-empty.db", [], ["EXH503"]),
        ("json-text-in-actions.db", [], ["EXH503"]),
        ("genuine-state-protocol-0.db", [], []),
    ],
)
def test_hostile_values(file: str, rules: list[str], told: list[str], tmp_path: Path) -> None:
    path = hostile(file, tmp_path)
    report = scan(path)
    assert [one.rule for one in report.refused] == rules
    assert [one.rule for one in report.told] == told
    connection = sqlite3.connect(path)
    for one in (*report.refused, *report.told):
        (raw,) = connection.execute("SELECT actions FROM events WHERE id = ?", (one.event_id,)).fetchone()
        raw = raw if isinstance(raw, bytes) else str(raw).encode()
        assert (one.sha256, one.size) == (hashlib.sha256(raw).hexdigest(), len(raw))
        assert one.reason
    connection.close()


def test_a_refusal_says_where_and_what_would_decode_it(tmp_path: Path) -> None:
    (one,) = scan(hostile("exec-stack-global-memo-in-state.db", tmp_path)).refused
    assert one.globals == ("posix.system",)
    assert one.options == ("--allow-global posix.system",)
    (marked,) = [line for line in one.excerpt if line.startswith(">")]
    assert marked == f"> {one.offset}: STACK_GLOBAL"


def test_every_row_is_listed_and_every_value_read_once(
    adk_db: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exhume.pickles.scan._MOST_LISTED", 7)
    report = scan(rewritten(adk_db("db-1.21.0-utc"), EXEC, rows=20))
    assert (len(report.refused), report.values_refused) == (7, 20 + 12)
    assert "32 rows are refused; the first 7 are listed." in report.notes
    assert len({one.event_id for one in report.refused}) == 7
    assert {(one.module, one.name): one.count for one in report.globals}["os", "system"] == 20


def test_text_that_spells_a_pickle_is_none(adk_db: Callable[[str], Path]) -> None:
    path = rewritten(adk_db("db-1.21.0-utc"), b"N.", rows=2)
    rewritten(path, "N.", rows=1)
    report = scan(path)
    assert [one.reason.split(" stands")[0] for one in report.told] == ["a pickled None"]
    (malformed,) = [one for one in report.refused if one.rule == "EXH502"]
    assert "text" in malformed.reason


@pytest.mark.parametrize("name", ["db-2.13.0-utc", "sqlitesvc-2.13.0-utc"])
def test_other_layouts_hold_no_pickle(name: str, adk_db: Callable[[str], Path]) -> None:
    report = scan(adk_db(name))
    assert report.values_total == 0
    assert "nothing is pickled" in report.notes[0]


def test_json_bytes_of_go_are_no_pickles(incident_db: Callable[[str], Path]) -> None:
    assert "nothing is pickled" in scan(incident_db("go")).notes[0]


def test_a_value_of_another_class_is_refused(adk_db: Callable[[str], Path]) -> None:
    """Allowed globals alone do not make event actions."""
    blob = b"cgoogle.adk.tools.tool_confirmation\nToolConfirmation\n)\x81}V__dict__\n}sb."
    report = scan(rewritten(adk_db("db-1.21.0-utc"), blob + b"junk"))
    (one,) = [one for one in report.refused if one.rule == "EXH503"]
    assert "google.adk.tools.tool_confirmation.ToolConfirmation" in one.reason
    assert [told.rule for told in report.told] == ["EXH504"]


def test_memory_is_bounded_by_what_is_listed(adk_db: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """With so many different outcomes that not all are kept, every count is the same."""
    path = adk_db("db-1.14.1-utc")
    whole = scan(path)
    monkeypatch.setattr("exhume.pickles.scan._MOST_LISTED", 3)
    monkeypatch.setattr("exhume.pickles.scan._MOST_NAMES", 2)
    bounded = scan(path)
    for name in ("values_total", "values_distinct", "values_refused", "values_told"):
        assert getattr(bounded, name) == getattr(whole, name)
    assert len(bounded.refused) == 3
    assert len(bounded.globals) == 2
    assert set(bounded.globals) <= set(whole.globals)
    assert "different globals" in bounded.notes[-1]


def test_many_names_in_one_value() -> None:
    many = b"(" + b"".join(b"ca\nb%d\n" % number for number in range(20_000)) + b"t."
    error = Decoder().decode(many).error
    assert isinstance(error, UnsafeGlobal)
    assert len(error.globals) == 10_000
    assert "and 9980 more" in error.what
    assert len(error.what) < 1_000
    long = Decoder().decode(b"c" + b"a" * 10_000 + b"\nb\n.").error
    assert isinstance(long, MalformedPickle)
    assert "too long" in long.what


# ---------------------------------------------------------------- extraction


def test_refused_values_are_written_once_and_privately(adk_db: Callable[[str], Path], tmp_path: Path) -> None:
    path = rewritten(adk_db("db-1.21.0-utc"), EXEC, rows=3)
    name = f"{hashlib.sha256(EXEC).hexdigest()}.pickle"
    folder = tmp_path / "made" / "here"
    report = scan(path, extract_dir=folder)
    assert name in report.extracted
    assert sorted(report.extracted) == sorted(os.listdir(folder))
    assert (folder / name).read_bytes() == EXEC
    assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    (folder / name).write_bytes(b"mine")
    report = scan(path, extract_dir=folder)
    assert report.extracted == ()
    assert "left as they are" in report.notes[0]
    assert (folder / name).read_bytes() == b"mine"


def test_a_link_in_the_folder_is_not_followed(adk_db: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / f"{hashlib.sha256(EXEC).hexdigest()}.pickle").symlink_to(tmp_path / "victim")
    scan(rewritten(adk_db("db-1.21.0-utc"), EXEC), extract_dir=folder)
    assert not (tmp_path / "victim").exists()


def test_a_folder_that_cannot_be_made(adk_db: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        scan(adk_db("db-1.21.0-utc"), extract_dir=tmp_path / "file")


# ------------------------------------------------------------ second opinions


def test_fickling_is_asked_about_refused_values(tmp_path: Path) -> None:
    report = scan(hostile("exec-builtins-eval.db", tmp_path), second_opinion=True)
    (one,) = report.refused
    assert one.second_opinion is not None
    assert one.second_opinion.severity == "OVERTLY_MALICIOUS"
    assert "eval(" in one.second_opinion.decompiled
    assert one.second_opinion.as_text() == "fickling: OVERTLY_MALICIOUS"
    assert not one.second_opinion.differs


def test_differences_between_the_two_lists_are_told() -> None:
    (answer,) = second_opinions([(EXEC, ["posix.system"])])
    assert (answer.only_fickling, answer.only_exhume) == (("os.system",), ("posix.system",))
    assert "os.system" in answer.as_text()
    assert "posix.system" in answer.as_text()


def test_one_bad_value_does_not_cost_the_others(tmp_path: Path) -> None:
    (entry,) = [entry for entry in hostile_entries() if entry["file"] == "bomb-memo-22.db"]
    bomb = bytes.fromhex(entry["value"])
    answers = second_opinions([(EXEC, ["os.system"]), (bomb, []), (EXEC, ["os.system"])])
    assert [one.severity is None for one in answers] == [False, True, False]
    assert answers[1].note


def test_bounds_of_second_opinions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "_MOST_VALUES", 1)
    monkeypatch.setattr(evidence, "_LONGEST_VALUE", 100)
    answers = second_opinions([(b"N" * 200, []), (EXEC, ["os.system"]), (EXEC, ["os.system"])])
    assert [one.severity is not None for one in answers] == [False, True, False]
    assert "too long" in answers[0].note
    assert "limit" in answers[2].as_text()


def test_a_child_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(slow))
    monkeypatch.setattr(evidence, "_WALL_SECONDS", 0.2)
    (answer,) = second_opinions([(EXEC, [])])
    assert answer.severity is None
    assert "took too long" in answer.as_text()


def test_a_child_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    assert second_opinions([(EXEC, [])]) == [SecondOpinion(note="could not be started")]


def test_an_absent_or_failing_fickling_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "failed with" in opinion(b"\x8c\xff")["problem"] or opinion(b"\x8c\xff")["severity"]
    monkeypatch.setitem(sys.modules, "fickling", None)
    assert opinion(EXEC) == {"problem": "not available"}
    assert evidence._opinion({"problem": "not available"}, []).as_text() == "fickling: not available"


def test_fickling_runs_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "marker"

    class Payload:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.system, (f": > {marker}",)

    (answer,) = second_opinions([(pickle.dumps(Payload()), ["posix.system"])])
    assert answer.severity is not None
    assert not marker.exists()


# ------------------------------------------------------- names and excerpts


def test_names_that_can_be_allowed() -> None:
    allowed = Allowed(["a.B", "m.*", "p.q.R.<locals>.S"])
    named = (("a", "B"), ("m", "X"), ("m", "X.Y"), ("p.q", "R.<locals>.S"))
    assert [allowed.permits(*name) for name in named] == [True] * 4
    refused = (("a", "Bc"), ("a", "B.c"), ("a.B", "c"), ("m.n", "X"), ("mm", "X"), ("", "a.B"), ("os", "system"))
    assert [allowed.permits(*name) for name in refused] == [False] * 7
    assert not allowed.permits_besides("uuid", "UUID")


@pytest.mark.parametrize("text", ["", "a", "*", ".*", "a.", ".b", "a..b", "a.b*", "a b.c", "a.*.b", "a.*x"])
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(UsageError, match="not the name"):
        Allowed([text])


def test_options_are_fit_for_a_shell() -> None:
    assert option_for("m.f.<locals>.C") == "--allow-global 'm.f.<locals>.C'"
    assert option_for("m.a b") == option_for("m.*") == option_for(".x") == ""


def test_excerpts_are_bounded() -> None:
    assert excerpt(b"", 0) == ("> 0: cannot be read on: pickle exhausted before seeing STOP",)
    long_text = b"X\x40\x42\x0f\x00" + b"a" * 1_000_000 + b"."
    assert len(excerpt(long_text, 0)[0]) < 200
    assert "an integer of" in excerpt(b"\x8b\x00\x01\x00\x00" + b"\x7f" * 256 + b".", 0)[0]
    assert "cannot be read on" in excerpt(b"I" + b"9" * 5_000 + b"\n.", 0)[-1]
    far = excerpt(b"N" * 200_000 + b".", 200_000)
    assert "beyond what is disassembled" in far[-1]
    assert len(far) == 9
