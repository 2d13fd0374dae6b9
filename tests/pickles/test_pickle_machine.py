"""The interpreter on single opcodes, on hostile programs, and on whatever is not a pickle."""

from __future__ import annotations

import itertools
import pickletools
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from exhume.pickles.budget import Budget
from exhume.pickles.decoder import Decoder
from exhume.pickles.interface import MalformedPickle, NamedGlobal, UnsafeGlobal
from exhume.pickles.machine import Machine
from exhume.pickles.nodes import GlobalRef, Instance, SetValue

OP = {opcode.name: opcode.code.encode("latin-1") for opcode in pickletools.opcodes}


def text(value: str) -> bytes:
    """SHORT_BINUNICODE."""
    return OP["SHORT_BINUNICODE"] + bytes([len(value.encode())]) + value.encode()


def proto(number: int) -> bytes:
    return OP["PROTO"] + bytes([number])


def run(program: bytes, budget: Budget | None = None) -> object:
    return Machine(program + OP["STOP"], budget=budget or Budget()).run()


def refused(program: bytes) -> MalformedPickle | UnsafeGlobal:
    error = Decoder().decode(program).error
    assert isinstance(error, MalformedPickle | UnsafeGlobal)
    return error


@pytest.mark.parametrize(
    ("program", "value"),
    [
        (b"I01\n", True),
        (b"I00\n", False),
        (b"I-7\n", -7),
        (b"L12345678901234567890L\n", 12345678901234567890),
        (b"L5\n", 5),
        (b"F-1.5\n", -1.5),
        (b"G" + struct.pack(">d", 2.5), 2.5),
        (b"J" + struct.pack("<i", -5), -5),
        (b"K\xff", 255),
        (b"M\xff\xff", 65535),
        (b"\x8a\x02\x00\xff", -256),
        (b"\x8a\x00", 0),
        (b"\x8b" + struct.pack("<i", 3) + b"\x00\x00\x80", -(2**23)),
        (b"Vtext \\u00fc\n", "text ü"),
        (b"S'a\\x41\\n'\n", "aA\n"),
        (b"T" + struct.pack("<i", 2) + b"ab", "ab"),
        (b"U\x02ab", "ab"),
        (b"X" + struct.pack("<I", 2) + "ü".encode(), "ü"),
        (b"\x8d" + struct.pack("<Q", 3) + b"\xed\xa0\x80", "\ud800"),
        (b"B" + struct.pack("<I", 2) + b"\x00\xff", b"\x00\xff"),
        (b"C\x01\x00", b"\x00"),
        (b"\x8e" + struct.pack("<Q", 1) + b"z", b"z"),
        (b"\x96" + struct.pack("<Q", 1) + b"z", bytearray(b"z")),
        (b"N", None),
        (b"\x88", True),
        (b"\x89", False),
        (b"(K\x01K\x02l", [1, 2]),
        (b"(K\x01K\x02t", (1, 2)),
        (b"(K\x01K\x02d", {1: 2}),
        (b"K\x01K\x02\x86", (1, 2)),
        (b"K\x01K\x02K\x03\x87", (1, 2, 3)),
        (b"](K\x01K\x02e", [1, 2]),
        (b"]K\x01a", [1]),
        (b"}(K\x01K\x02K\x03K\x04u", {1: 2, 3: 4}),
        (b"K\x01K\x020", 1),  # POP
        (b"K\x01(0", 1),  # POP of a mark
        (b"K\x01(K\x021", 1),  # POP_MARK
        (b"K\x012\x86", (1, 1)),  # DUP
        (b"K\x05p3\n0g3\n", 5),  # PUT, GET
        (b"K\x05q\x030h\x03", 5),  # BINPUT, BINGET
        (b"K\x05r\xff\xff\xff\xff0j\xff\xff\xff\xff", 5),  # LONG_BINPUT, LONG_BINGET, as far off as can be
        (b"K\x05\x940h\x00", 5),  # MEMOIZE
    ],
)
def test_one_opcode(program: bytes, value: object) -> None:
    made = run(program)
    assert made == value
    assert type(made) is type(value)


def test_sets_keep_the_order_of_the_pickle() -> None:
    made = run(b"\x8f(K\x03K\x01K\x02\x90")
    assert isinstance(made, SetValue)
    assert (made.items, made.frozen) == ([3, 1, 2], False)
    made = run(b"(K\x03K\x01\x91")
    assert isinstance(made, SetValue)
    assert (made.items, made.frozen) == ([3, 1], True)


@pytest.mark.parametrize(
    "program",
    [
        b"cos\nsystem\n(K\x01tR",  # GLOBAL, REDUCE
        b"(K\x01ios\nsystem\n",  # INST
        b"(cos\nsystem\nK\x01o",  # OBJ
        text("os") + text("system") + b"\x93K\x01\x85\x81",  # STACK_GLOBAL, NEWOBJ
        b"cos\nsystem\nK\x01\x85}\x92",  # NEWOBJ_EX
    ],
)
def test_a_call_is_only_recorded(program: bytes) -> None:
    machine = Machine(program + b".")
    made = machine.run()
    assert isinstance(made, Instance)
    assert isinstance(made.func, GlobalRef)
    assert (made.func.module, made.func.name, made.args) == ("os", "system", (1,))
    assert [one.dotted for one in machine.named] == ["os.system"]


def test_every_opcode_of_the_protocols_is_known() -> None:
    unknown = [name for name, code in OP.items() if _says_unknown(code)]
    assert unknown == []


def _says_unknown(code: bytes) -> bool:
    try:
        Machine(code + b"\x00" * 16).run()
    except MalformedPickle as error:
        return error.reason == f"0x{code[0]:02x} is no opcode"
    return False


def test_bytes_that_are_no_opcode() -> None:
    for byte in set(range(256)) - {code[0] for code in OP.values()}:
        with pytest.raises(MalformedPickle, match="is no opcode"):
            Machine(bytes([byte])).run()


@pytest.mark.parametrize(
    "program",
    [
        b"",
        b".",
        b"N",
        b"0.",
        b"1.",
        b"2.",
        b"a.",
        b"]a.",
        b"](K\x01.",
        b"(.",
        b"NN(u.",
        b"}K\x01s.",
        b"}(K\x01u.",
        b"N(K\x01e.",
        b"N(K\x01\x90.",
        b"(K\x01\x91(K\x02\x90.",
        b"NNb.",
        b"cdatetime\ndatetime\n}b.",
        b"h\x00.",
        b"g7\n.",
        b"gx\n.",
        b"p-1\nN.",
        b"Np" + b"9" * 40 + b"\n.",
        b"Ix\n.",
        b"I\n.",
        b"Fx\n.",
        b"S'open\n.",
        b"Sopen\n.",
        b"Vno line end",
        b"X\xff\xff\xff\xffa.",
        b"\x8e" + b"\xff" * 8 + b"a.",
        b"\x8b\xff\xff\xff\xff.",
        b"T\xff\xff\xff\xff.",
        b"\x8c\x05ab.",
        b"\x8c\x02\xff\xfe.",
        b"U\x01\xff.",
        b"\x95\xff\x00\x00\x00\x00\x00\x00\x00N.",
        b"\x80\x06N.",
        b"K\x01K\x02\x93.",
        b"(o.",
        b"}(]K\x01u.",
        b"}(\x8fK\x01u.",
        b"}(]\x85K\x01u.",
        b"}(\x96\x00\x00\x00\x00\x00\x00\x00\x00K\x01u.",
        b"cos\n",
        b"G\x00.",
        b"J\x00.",
    ],
)
def test_broken_programs_are_malformed(program: bytes) -> None:
    with pytest.raises(MalformedPickle) as caught:
        Machine(program).run()
    assert 0 <= caught.value.offset <= len(program)


@pytest.mark.parametrize(
    "program",
    [
        b"\x82\x01.",
        b"\x83\x01\x00.",
        b"\x84\x01\x00\x00\x00.",
        b"Pid\n.",
        b"NQ.",
        b"\x97.",
        b"\x96\x00\x00\x00\x00\x00\x00\x00\x00\x98.",
    ],
)
def test_what_stands_for_something_outside_is_refused(program: bytes) -> None:
    error = refused(program)
    assert isinstance(error, MalformedPickle)
    assert "which ADK never writes" in error.what


def test_reading_goes_on_after_such_an_opcode() -> None:
    error = refused(b"(Pid\ncos\nsystem\nt.")
    assert isinstance(error, UnsafeGlobal)
    assert error.globals == (NamedGlobal("os", "system", 5),)


# ------------------------------------------------------------------ globals


def test_names_from_the_memo_and_from_python_2() -> None:
    program = text("posix") + b"q\x000" + text("system") + b"q\x010h\x00h\x01\x93\x85c__builtin__\neval\n\x86."
    error = refused(proto(2) + program)
    assert isinstance(error, UnsafeGlobal)
    assert [one.dotted for one in error.globals] == ["posix.system", "builtins.eval"]
    assert error.globals[0].offset == (proto(2) + program).index(b"\x93")


def test_python_2_names_are_mapped_only_where_the_unpickler_does() -> None:
    assert Machine(b"c__builtin__\nset\n.").run().module == "builtins"
    assert Machine(proto(3) + b"c__builtin__\nset\n.").run().module == "__builtin__"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("google.adk.events.event_actions", "EventActions.__init__.__globals__"),
        ("google.adk.events.event_actions.EventActions", "model_validate"),
        ("google.adk.events", "event_actions.EventActions"),
        ("google.adk.events.event_actions", "EventActionsX"),
        ("google.adk.events.event_actions", ""),
        ("builtins", "eval"),
        ("", "builtins.list"),
    ],
)
def test_names_are_exact(module: str, name: str) -> None:
    error = refused(proto(4) + text(module) + text(name) + b"\x93.")
    assert isinstance(error, UnsafeGlobal)
    assert error.globals[0][:2] == (module, name)


def test_unsafe_globals_in_what_follows_the_first_pickle() -> None:
    decoded = Decoder().decode(b"}.cos\nsystem\n.")
    assert isinstance(decoded.error, UnsafeGlobal)
    assert decoded.trailing == 2
    assert decoded.error.globals == (NamedGlobal("os", "system", 2),)


def test_more_pickles_and_junk_are_only_told() -> None:
    for tail in (b"}.", b"N.N.", b"junk \xff", b"(((((", b"\x00"):
        decoded = Decoder().decode(b"}." + tail)
        assert decoded.error is None
        assert decoded.value == {}
        assert decoded.trailing == 2


def test_endless_pickles_in_one_value() -> None:
    assert isinstance(refused(b"N." * 100_000), MalformedPickle)


def test_a_first_pickle_cannot_use_up_the_budget_of_what_follows() -> None:
    """A second pickle that cannot be read for lack of budget is not passed over as junk."""
    decoder = Decoder(budget=Budget(opcodes=50))
    assert decoder.decode(b"(" + b"N" * 40 + b"t.junk").error is None
    error = decoder.decode(b"(" + b"N" * 40 + b"t." + b"(" + b"N" * 40 + b"cos\nsystem\n").error
    assert isinstance(error, MalformedPickle)
    assert error.reason == "too many opcodes"


def test_an_unsafe_global_outranks_other_faults() -> None:
    assert isinstance(refused(b"cos\nsystem\n(((("), UnsafeGlobal)
    assert isinstance(refused(b"(cos\nsystem\nt" + b"}(]K\x01u."), UnsafeGlobal)


# ------------------------------------------------------------------ bombs


def memo_bomb(depth: int) -> bytes:
    """A list of two empty lists, twice in a list, and so on: 2 ** depth leaves in a few hundred bytes."""
    program = b"]\x94"
    for level in range(depth):
        program += b"](h" + bytes([level]) + b"h" + bytes([level]) + b"e\x94"
    return program + b"."


def tuple_key_bomb(depth: int) -> bytes:
    """A tuple whose hash takes 2 ** depth steps, as a key."""
    program = b"K\x01\x85\x94"
    for level in range(depth):
        program += b"h" + bytes([level]) + b"h" + bytes([level]) + b"\x86\x94"
    return b"}" + program + b"Ns."


def alike_integers(count: int) -> bytes:
    modulus = 2**61 - 1
    numbers = (number * modulus for number in range(1, count + 1))
    items = b"".join(
        b"\x8a" + bytes([len(raw)]) + raw + b"N"
        for raw in (number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True) for number in numbers)
    )
    return b"}(" + items + b"u."


BOMBS = {
    "memo 22": memo_bomb(22),
    "memo 40": memo_bomb(40),
    "memo 200": memo_bomb(199),
    "memo of dicts": b"}\x94" + b"".join(b"}(K\x01h%cK\x02h%cu\x94" % (n, n) for n in range(40)) + b".",
    "memo of objects": b"cdecimal\nDecimal\n\x940)\x94"
    + b"".join(b"h\x00h%ch%c\x86R\x94" % (n, n) for n in range(1, 60))
    + b".",
    "deep tuples": b")" + b"\x85" * 4_500_000 + b".",
    "deep lists": b"]" * 100_000 + b"a" * 99_999 + b".",
    "deep dicts": b"(" * 100_000,
    "500 lists": b"]" * 500 + b"a" * 499 + b".",
    "deep by the memo": b"]q\x000" + b"]h\x00aq\x000" * 100_000 + b"h\x00.",
    "deep calls": b"cdecimal\nDecimal\n)R" + b"\x85cdecimal\nDecimal\n0)R0" * 50_000 + b".",
    "deep reduce": b"cdecimal\nDecimal\n" + b")R" * 300_000 + b".",
    "deep build": b"cuuid\nUUID\n)\x81\x94" + b"0cuuid\nUUID\n)\x81h\x00b" * 50_000 + b".",
    "marks": b"(" * 1_000_000,
    "marks and pops": b"(0" * 2_600_000 + b".",
    "empty sets": b"\x8f" * 1_000_000,
    "empty dicts": b"}" * 1_000_000,
    "nones": b"(" + b"N" * 6_000_000 + b"t.",
    "same text": b"(X\x00\x00\x10\x00" + b"a" * (1 << 20) + b"\x94" + b"h\x00" * 100_000 + b"l.",
    "same text in shared lists": b"X\x00\x00\x10\x00"
    + b"a" * (1 << 20)
    + b"\x940](h\x00h\x00e\x94"
    + b"".join(b"0](h%ch%ce\x94" % (n, n) for n in range(1, 15))
    + b".",
    "alike integers": alike_integers(3_000),
    "tuple as a key": tuple_key_bomb(40),
    "deep tuple as a key": b"})" + b"\x85" * 100_000 + b"Ns.",
    "long tuple as a key": b"}(" + b"N" * 900 + b"t\x940" + b"(" + b"h\x00N" * 1_000_000 + b"u.",
    "frozensets as keys": b"}(" + b"(K\x01\x91N" * 200_000 + b"u(" * 2_000,
    "long integer text": b"I" + b"9" * 1_000_000 + b"\n.",
    "long hexadecimal text": b"I0x" + b"f" * 1_000_000 + b"\n.",
    "long integer": b"\x8b" + struct.pack("<i", 1_000_000) + b"\x7f" * 1_000_000 + b".",
    "long bytes asked for": proto(4) + text("builtins") + text("bytes") + b"\x93\x8a\x05\x00\x00\x00\x00\x10\x85R.",
    "long bytearray asked for": b"cbuiltins\nbytearray\nL68719476736L\n\x85R.",
    "memo index": b"N" + b"p" + b"9" * 40 + b"\n.",
    "cycle of a list": b"]\x94h\x00a.",
    "cycle of a dict": b"}\x94K\x01h\x00s.",
    "cycle by DUP": b"]2a.",
    "cycle through a tuple": b"]\x94h\x00\x85a.",
    "cycle through a state": b"cuuid\nUUID\n)\x81\x94h\x00b.",
    "cycle through arguments": b"]\x94cdecimal\nDecimal\nh\x00\x85Ra.",
    "cycle of a set": b"\x8f\x94(h\x00\x90.",
    "decimal": b"cdecimal\nDecimal\nV" + b"9" * 1_000_000 + b"\n\x85R.",
    "duration": b"cdatetime\ntimedelta\nL" + b"9" * 4_000 + b"L\nK\x00K\x00\x87R.",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_in_little_time(name: str) -> None:
    started = time.process_time()
    error = refused(BOMBS[name])
    assert time.process_time() - started < 8
    assert error.rule == "EXH502"


def test_bombs_are_refused_in_little_memory() -> None:
    """All of them in one process of 512 MiB; running out of it would be told as such."""
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from exhume.pickles.decoder import Decoder\n"
        "from test_pickle_machine import BOMBS\n"
        "for name, bomb in BOMBS.items():\n"
        "    error = Decoder().decode(bomb).error\n"
        "    assert error is not None and 'memory' not in error.what, (name, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_looks_like_a_bomb_but_is_not() -> None:
    """Values near the limits are read."""
    nested = b"]" * 199 + b"a" * 198 + b"."
    assert Decoder().decode(nested).error is None
    shared = memo_bomb(15)
    assert Decoder().decode(shared).error is None
    many_keys = b"}(" + b"".join(b"J" + struct.pack("<i", number) + b"N" for number in range(20_000)) + b"u."
    assert len(Decoder().decode(many_keys).value) == 20_000
    pairs = itertools.product(range(100), range(100))
    tuples = b"}(" + b"".join(b"K%cK%c\x86N" % pair for pair in pairs) + b"u."
    assert len(Decoder().decode(tuples).value) == 10_000
    big = 10**4_000
    raw = big.to_bytes(big.bit_length() // 8 + 1, "little")
    assert Decoder().decode(b"\x8b" + struct.pack("<i", len(raw)) + raw + b".").value == big


def test_one_value_cannot_change_another() -> None:
    decoder = Decoder()
    plain = b"}\x94(\x8c\x01aK\x01u."
    before = decoder.decode(plain).value
    for program in BOMBS.values():
        if len(program) < 100_000:
            decoder.decode(program)
    assert decoder.decode(plain).value == before == {"a": 1}
    assert Decoder().decode(plain).value == before
    # what one pickle put in its memo, the next in the same value does not see
    assert Decoder().decode(b"K\x05q\x00.h\x00.").error is None
    with pytest.raises(MalformedPickle, match="memo"):
        Machine(b"h\x00.").run()
