"""The hostile values of the fixtures: each is refused for the right reason, or read in full."""

from __future__ import annotations

from typing import Any

import pytest

from exhume.pickles.decoder import Decoder
from exhume.pickles.interface import Decoded, MalformedPickle, UnsafeGlobal
from tests.conftest import hostile_entries

ENTRIES = [entry for entry in hostile_entries() if entry.get("column") == "actions"]


def decode(entry: dict[str, Any]) -> Decoded:
    value = entry["value"]
    if entry["type"] in ("blob", "text"):
        value = bytes.fromhex(value)
    if entry["type"] == "text":
        value = value.decode()
    return Decoder().decode_cell(value)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["file"])
def test_as_expected(entry: dict[str, Any]) -> None:
    made = decode(entry)
    assert (made.value is None) or made.error is None
    if entry["expect"] == "keep":
        assert made.error is None, made.error
    elif entry["expect"] in ("refuse", "report"):
        assert made.error is not None
        assert made.error.exit_code == 4


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("exec-builtins-eval.db", {"builtins.eval"}),
        ("exec-inst-opcode.db", {"os.system"}),
        ("exec-obj-opcode.db", {"os.system"}),
        ("exec-partial-not-called.db", {"functools.partial", "posix.system"}),
        ("exec-py2-builtin-eval.db", {"builtins.eval"}),
        ("exec-stack-global-memo-in-state.db", {"posix.system"}),
        ("nested-unsafe-as-dict-key.db", {"posix.system"}),
        ("two-pickles-second-unsafe.db", {"posix.system"}),
        ("pickled-event-not-actions.db", {"google.adk.events.event.Event"}),
        ("app-class-instance-in-state.db", {"shop_models.LineItem", "shop_models.RefundStatus"}),
    ],
)
def test_every_unsafe_name_is_listed(file: str, names: set[str]) -> None:
    (entry,) = [entry for entry in ENTRIES if entry["file"] == file]
    made = decode(entry)
    assert isinstance(made.error, UnsafeGlobal)
    assert {one.dotted for one in made.error.globals} == names
    blob = bytes.fromhex(entry["value"])
    for one in made.error.globals:
        assert blob[one.offset : one.offset + 1] in (b"c", b"i", b"\x93")


@pytest.mark.parametrize("cell", [None, 5, 1.5, "text"])
def test_cells_that_are_no_bytes(cell: Any) -> None:
    assert isinstance(Decoder().decode_cell(cell).error, MalformedPickle)
