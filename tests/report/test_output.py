"""Where reports go: a stream, or a file that is whole or not there; and how values are spelt in JSON."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.errors import Incomplete, UsageError
from exhume.report.output import write
from exhume.report.wire import TOO_DEEP, compact, document_lines, plain, rfc3339, short_json


def test_a_file_is_written_whole_and_alone(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    write(["a\n", "ü\n"], output=target, stream=io.StringIO())
    assert target.read_text("utf-8") == "a\nü\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]


def test_an_earlier_report_survives_a_failure(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("earlier")

    def pieces() -> Iterator[str]:
        yield "half"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(Incomplete, match="No space left") as caught:
        write(pieces(), output=target, stream=io.StringIO())
    assert "Free space" in caught.value.todo
    assert target.read_text() == "earlier"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]


def test_nothing_is_left_when_rendering_fails(tmp_path: Path) -> None:
    def pieces() -> Iterator[str]:
        yield "half"
        raise UsageError("no", todo="yes")

    with pytest.raises(UsageError):
        write(pieces(), output=tmp_path / "x", stream=io.StringIO())
    assert list(tmp_path.iterdir()) == []


def test_modes_are_the_usual_ones(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("")
    old.chmod(0o640)
    before = os.umask(0o027)
    try:
        for target in (new, old):
            write(["x"], output=target, stream=io.StringIO())
    finally:
        os.umask(before)
    assert [stat.S_IMODE(target.stat().st_mode) for target in (new, old)] == [0o640, 0o640]


@pytest.mark.parametrize("name", ["", "missing/x.json"])
def test_a_place_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        write(["x"], output=tmp_path / name, stream=io.StringIO())
    assert caught.value.todo


def test_a_narrow_terminal_gets_escapes() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    write(["✅ fine\n"], output=None, stream=stream)
    assert raw.getvalue() == b"\\u2705 fine\n"


@pytest.mark.parametrize(
    ("epoch", "text"),
    [
        (0.0, "1970-01-01T00:00:00Z"),
        (1772444881.504208, "2026-03-02T09:48:01.504208Z"),
        (-0.5, "1969-12-31T23:59:59.500000Z"),
        (-62135596800.0, "0001-01-01T00:00:00Z"),
        (1e300, None),
        (float("nan"), None),
        (float("inf"), None),
        (None, None),
    ],
)
def test_times(epoch: float | None, text: str | None) -> None:
    assert rfc3339(epoch) == text


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters()) | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(), inner, max_size=4),
    max_leaves=10,
)


@given(value=ANY)
def test_any_value_becomes_ascii_json(value: Any) -> None:
    text = compact(plain(value))
    assert text.isascii()
    assert text.isprintable()
    json.loads(text)
    assert len(short_json(value, 40)) <= 40


def test_values_that_no_reader_could_take_are_told() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    assert TOO_DEEP in compact(plain(deep))
    assert plain(10**5000) == f"(integer of {(10**5000).bit_length()} bits)"
    assert plain(10**3000) == 10**3000


@given(document=st.dictionaries(st.text(max_size=5), ANY.map(plain), max_size=4))
def test_lines_of_a_document_are_that_document(document: dict[str, Any]) -> None:
    assert json.loads("\n".join(document_lines(document))) == document


def test_what_is_no_regular_file_is_written_to_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(["a report\n"], output=pipe, stream=io.StringIO())
        assert os.read(reader, 100) == b"a report\n"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_link_stays_and_what_it_leads_to_is_replaced_whole(tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    link = tmp_path / "latest"
    link.symlink_to(folder / "monday")
    write(["first"], output=link, stream=io.StringIO())
    (folder / "monday").chmod(0o640)

    def pieces() -> Iterator[str]:
        yield "half"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(Incomplete):
        write(pieces(), output=link, stream=io.StringIO())
    assert link.read_text() == "first"
    write(["second"], output=link, stream=io.StringIO())
    assert link.is_symlink()
    assert (folder / "monday").read_text() == "second"
    assert stat.S_IMODE((folder / "monday").stat().st_mode) == 0o640
    assert [path.name for path in folder.iterdir()] == ["monday"]


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs /dev/fd")
def test_an_open_file_is_written_to_not_replaced(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w+") as file:
        file.write("before\n")
        file.flush()
        write(["a report\n"], output=Path(f"/dev/fd/{file.fileno()}"), stream=io.StringIO())
        file.seek(0)
        assert file.read() == "before\na report\n"


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")
def test_a_device_that_takes_nothing_is_an_error(tmp_path: Path) -> None:
    link = tmp_path / "full"
    link.symlink_to("/dev/full")
    with pytest.raises(Incomplete, match="could not be written"):
        write(["a report\n"], output=link, stream=io.StringIO())
    assert link.is_symlink()
