"""The opcodes that real values use seldom, one small function each; the frequent ones are in `machine.py`'s loop.

Every function gets the machine, whose `pos` is behind the opcode, and the offset of the opcode for messages.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from exhume.pickles.interface import MalformedPickle
from exhume.pickles.nodes import GlobalRef, Instance, SetValue

if TYPE_CHECKING:
    from exhume.pickles.machine import Machine

#: Classes whose values have no parts: sharing them costs nothing, and nothing in them needs rebuilding.
ATOMS = frozenset({type(None), bool, int, float, str, bytes})

_HIGHEST_PROTOCOL = 5
_LONGEST_INDEX = 10  # digits of a memo index in text: 32 bits, as in the binary opcodes

#: Escapes of Python 2's `repr(str)`.
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|[\\'\"nrt])")
_ESCAPES = {b"\\": b"\\", b"'": b"'", b'"': b'"', b"n": b"\n", b"r": b"\r", b"t": b"\t"}

Opcode = Callable[["Machine", int], None]


# ------------------------------------------------------------------ arguments


def _unsigned(machine: Machine, size: int) -> int:
    data, pos = machine.data, machine.pos
    if pos + size > len(data):
        raise IndexError
    machine.pos = pos + size
    return int.from_bytes(data[pos : pos + size], "little")


def _sized(machine: Machine, size: int, offset: int) -> bytes:
    """Bytes with their length before them, in `size` bytes; the length is checked before anything is taken."""
    length = _unsigned(machine, size)
    pos = machine.pos
    if length > len(machine.data) - pos:
        raise MalformedPickle("a value is longer than what is left of the pickle", offset)
    machine.pos = pos + length
    return machine.data[pos : pos + length]


def _signed_size(machine: Machine, offset: int) -> int:
    (length,) = struct.unpack_from("<i", machine.data, machine.pos)
    if length < 0:
        raise MalformedPickle("a length below zero", offset)
    return int(length)


def _line(machine: Machine, offset: int) -> bytes:
    end = machine.data.find(b"\n", machine.pos)
    if end < 0:
        raise MalformedPickle("a line that does not end", offset)
    line = machine.data[machine.pos : end]
    machine.pos = end + 1
    return line


def _index(machine: Machine, offset: int) -> int:
    line = _line(machine, offset)
    if not line.isdigit() or len(line) > _LONGEST_INDEX:
        raise MalformedPickle("a memo index that cannot be one", offset)
    return int(line)


def _integer(machine: Machine, text: bytes, offset: int) -> int:
    if len(text) > 2 * machine.budget.digits:
        raise MalformedPickle("an integer with too many digits", offset)
    return _bounded(machine, int(text, 0), offset)


def _bounded(machine: Machine, number: int, offset: int) -> int:
    # 10 ** digits needs digits * log2(10) bits; 3.3219 is just below log2(10)
    if number.bit_length() > machine.budget.digits * 3.3219:
        raise MalformedPickle("an integer with too many digits", offset)
    return number


# -------------------------------------------------------------------- numbers


def _int(machine: Machine, offset: int) -> None:
    line = _line(machine, offset)
    if line in (b"00", b"01"):
        machine.stack.append(line == b"01")
    else:
        machine.stack.append(_integer(machine, line, offset))


def _long(machine: Machine, offset: int) -> None:
    machine.stack.append(_integer(machine, _line(machine, offset).removesuffix(b"L"), offset))


def _long1(machine: Machine, offset: int) -> None:
    machine.stack.append(int.from_bytes(_sized(machine, 1, offset), "little", signed=True))


def _long4(machine: Machine, offset: int) -> None:
    _signed_size(machine, offset)
    number = int.from_bytes(_sized(machine, 4, offset), "little", signed=True)
    machine.stack.append(_bounded(machine, number, offset))


def _float(machine: Machine, offset: int) -> None:
    machine.stack.append(float(_line(machine, offset)))


# ------------------------------------------------------------- text and bytes


def _unicode(machine: Machine, offset: int) -> None:
    machine.stack.append(_line(machine, offset).decode("raw-unicode-escape"))


def _binunicode8(machine: Machine, offset: int) -> None:
    machine.stack.append(_sized(machine, 8, offset).decode("utf-8", "surrogatepass"))


def _string(machine: Machine, offset: int) -> None:
    line = _line(machine, offset)
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in (b"'", b'"'):
        raise MalformedPickle("a text without quotes", offset)
    machine.stack.append(_ESCAPE.sub(_unescape, line[1:-1]).decode("ascii"))


def _unescape(match: re.Match[bytes]) -> bytes:
    escape = match.group(1)
    if escape[:1] == b"x":
        return bytes([int(escape[1:], 16)])
    return _ESCAPES[escape]


def _binstring(machine: Machine, offset: int) -> None:
    _signed_size(machine, offset)
    machine.stack.append(_sized(machine, 4, offset).decode("ascii"))


def _short_binstring(machine: Machine, offset: int) -> None:
    machine.stack.append(_sized(machine, 1, offset).decode("ascii"))


def _short_binbytes(machine: Machine, offset: int) -> None:
    machine.stack.append(_sized(machine, 1, offset))


def _binbytes(machine: Machine, offset: int) -> None:
    machine.stack.append(_sized(machine, 4, offset))


def _binbytes8(machine: Machine, offset: int) -> None:
    machine.stack.append(_sized(machine, 8, offset))


def _bytearray8(machine: Machine, offset: int) -> None:
    machine.stack.append(bytearray(_sized(machine, 8, offset)))


# ----------------------------------------------------------------- containers


def _append(machine: Machine, offset: int) -> None:
    item = machine.stack.pop()
    machine.append_items(machine.stack[-1], [item], offset)


def _list(machine: Machine, _offset: int) -> None:
    items = machine.pop_mark()
    machine.stack.append(items)


def _tuple(machine: Machine, _offset: int) -> None:
    items = machine.pop_mark()
    machine.stack.append(tuple(items))


def _tuple2(machine: Machine, _offset: int) -> None:
    last = machine.stack.pop()
    machine.stack[-1] = (machine.stack[-1], last)


def _tuple3(machine: Machine, _offset: int) -> None:
    last = machine.stack.pop()
    middle = machine.stack.pop()
    machine.stack[-1] = (machine.stack[-1], middle, last)


def _dict(machine: Machine, offset: int) -> None:
    items = machine.pop_mark()
    made: dict[Any, Any] = {}
    machine.stack.append(made)
    machine.set_items(made, items, offset)


def _frozenset(machine: Machine, _offset: int) -> None:
    items = machine.pop_mark()
    machine.stack.append(SetValue(items, frozen=True))


# ------------------------------------------------------------- stack and memo


def _pop(machine: Machine, _offset: int) -> None:
    if machine.stack:
        machine.stack.pop()
    else:
        machine.pop_mark()


def _pop_mark(machine: Machine, _offset: int) -> None:
    machine.pop_mark()


def _dup(machine: Machine, _offset: int) -> None:
    machine.stack.append(machine.fetch(machine.stack[-1]))


def _get(machine: Machine, offset: int) -> None:
    machine.stack.append(machine.fetch(machine.memo[_index(machine, offset)]))


def _long_binget(machine: Machine, _offset: int) -> None:
    machine.stack.append(machine.fetch(machine.memo[_unsigned(machine, 4)]))


def _put(machine: Machine, offset: int) -> None:
    # the memo is a dict: an index costs nothing, however large
    machine.memo[_index(machine, offset)] = machine.stack[-1]


# --------------------------------------------------------- globals and objects


def _proto(machine: Machine, offset: int) -> None:
    machine.protocol = _unsigned(machine, 1)
    if machine.protocol > _HIGHEST_PROTOCOL:
        raise MalformedPickle(f"protocol {machine.protocol} is not known", offset)


def _global(machine: Machine, offset: int) -> None:
    machine.stack.append(_global_of_lines(machine, offset))


def _global_of_lines(machine: Machine, offset: int) -> GlobalRef:
    module = _line(machine, offset).decode()
    return machine.global_named(module, _line(machine, offset).decode(), offset)


def _inst(machine: Machine, offset: int) -> None:
    named = _global_of_lines(machine, offset)
    args = machine.pop_mark()
    machine.stack.append(Instance(named, tuple(args), offset))


def _obj(machine: Machine, offset: int) -> None:
    args = machine.pop_mark()
    if not args:
        raise MalformedPickle("an object without a class", offset)
    machine.stack.append(Instance(args[0], tuple(args[1:]), offset))


def _newobj_ex(machine: Machine, offset: int) -> None:
    kwargs = machine.stack.pop()
    args = machine.stack.pop()
    made = Instance(machine.stack[-1], args, offset)
    made.kwargs = kwargs
    machine.stack[-1] = made


# ---------------------------------------------------- what is refused as such


def _refuse(machine: Machine, what: str, offset: int) -> None:
    if machine.refusal is None:
        machine.refusal = MalformedPickle(f"{what}, which ADK never writes", offset)


def _ext(size: int) -> Opcode:
    def run(machine: Machine, offset: int) -> None:
        code = _unsigned(machine, size)
        _refuse(machine, f"extension code {code} stands for a global that the pickle does not name", offset)
        machine.stack.append(GlobalRef("", "", offset))

    return run


def _persid(machine: Machine, offset: int) -> None:
    _line(machine, offset)
    _refuse(machine, "a persistent id", offset)
    machine.stack.append(None)


def _binpersid(machine: Machine, offset: int) -> None:
    machine.stack.pop()
    _refuse(machine, "a persistent id", offset)
    machine.stack.append(None)


def _next_buffer(machine: Machine, offset: int) -> None:
    _refuse(machine, "a buffer outside the pickle", offset)
    machine.stack.append(None)


def _readonly_buffer(machine: Machine, offset: int) -> None:
    _refuse(machine, "a read-only buffer", offset)


OTHERS: dict[int, Opcode] = {
    ord("I"): _int,
    ord("L"): _long,
    0x8A: _long1,
    0x8B: _long4,
    ord("F"): _float,
    ord("V"): _unicode,
    0x8D: _binunicode8,
    ord("S"): _string,
    ord("T"): _binstring,
    ord("U"): _short_binstring,
    ord("C"): _short_binbytes,
    ord("B"): _binbytes,
    0x8E: _binbytes8,
    0x96: _bytearray8,
    ord("a"): _append,
    ord("l"): _list,
    ord("t"): _tuple,
    0x86: _tuple2,
    0x87: _tuple3,
    ord("d"): _dict,
    0x91: _frozenset,
    ord("0"): _pop,
    ord("1"): _pop_mark,
    ord("2"): _dup,
    ord("g"): _get,
    ord("j"): _long_binget,
    ord("p"): _put,
    0x80: _proto,
    ord("c"): _global,
    ord("i"): _inst,
    ord("o"): _obj,
    0x92: _newobj_ex,
    0x82: _ext(1),
    0x83: _ext(2),
    0x84: _ext(4),
    ord("P"): _persid,
    ord("Q"): _binpersid,
    0x97: _next_buffer,
    0x98: _readonly_buffer,
}

#: Of these, the ones that make a container or an object: they count against `Budget.containers`.
BUILDERS = frozenset({0x96, ord("l"), ord("t"), 0x86, 0x87, ord("d"), 0x91, ord("i"), ord("o"), 0x92, 0x82, 0x83, 0x84})
