"""Damaged copies of pickles: bytes flipped, cut, repeated, swapped and spliced, with opcodes and numbers that hurt."""

from __future__ import annotations

import pickletools
import random
from collections.abc import Iterator, Sequence

_OPCODES = [opcode.code.encode("latin-1") for opcode in pickletools.opcodes]
_HURTFUL = [
    b"\x00",
    b"\xff",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\x7f",
    b"\x00" * 8,
    b"\xff" * 8,
    b"cos\nsystem\n",
    b"\x8c\x02os\x8c\x06system\x93",
    b"(" * 40,
    b"2" * 40,
    b"]\x94h\x00a",
    b"\x85" * 300,
    b"I" + b"9" * 5000 + b"\n",
    b"h\x00h\x00\x86\x94" * 20,
]


def mutations(values: Sequence[bytes], *, count: int, seed: int) -> Iterator[bytes]:
    """`count` damaged copies of `values`; the same for the same seed."""
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(chance.choice(values))
        for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
            _damage(data, values, chance)
        yield bytes(data)


def _damage(data: bytearray, values: Sequence[bytes], chance: random.Random) -> None:
    place = chance.randrange(len(data) + 1)
    length = chance.choice((1, 1, 2, 4, 16, 64))
    match chance.randrange(8):
        case 0:
            data[place : place + 1] = bytes([chance.randrange(256)])
        case 1:
            data[place : place + 1] = chance.choice(_OPCODES)
        case 2:
            data[place:place] = chance.choice(_OPCODES)
        case 3:
            data[place : place + chance.choice((0, len(chance.choice(_HURTFUL))))] = chance.choice(_HURTFUL)
        case 4:
            del data[place : place + length]
        case 5:
            data[place:place] = data[place : place + length] * chance.choice((1, 2, 50))
        case 6:
            other = chance.choice(values)
            start = chance.randrange(len(other))
            data[place : place + length] = other[start : start + chance.choice((length, 200))]
        case _:
            del data[place:]
