"""How much a pickle may ask for before it is refused: every figure bounds memory or time on hostile bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits for one value. The defaults are far above what ADK writes and hold within 1 GiB of memory.

    Attributes:
        length: bytes of the pickle.
        opcodes: opcodes executed, those of further pickles after STOP included.
        containers: lists, dicts, sets, tuples and objects made. They cost most memory per byte of pickle.
        nodes: values in the result, shared parts counted every time they occur.
        text: characters and bytes of text beyond the pickle's own length, which only sharing can give.
        depth: levels of nesting. The JSON readers after us (orjson, pydantic-core 2: 255) stop at about as many.
        marks: open MARKs. A value nested `depth` deep needs two a level.
        digits: decimal digits of an integer; Python's own limit for reading JSON (`sys.int_info`).
        alike: members of one dict or set that have the same hash. Text cannot be made to collide, numbers can.
        key_nodes: values in one tuple that is a dict key or a set member.
        globals: globals named, counted each time they are. Real values name at most sixty.
        name: characters of the name of a global.
        pickles: pickles one after the other in one value.
    """

    length: int = 64 << 20
    opcodes: int = 1_000_000
    containers: int = 200_000
    nodes: int = 500_000
    text: int = 32 << 20
    depth: int = 200
    marks: int = 1_000
    digits: int = 4_300
    alike: int = 50
    key_nodes: int = 1_000
    globals: int = 10_000
    name: int = 500
    pickles: int = 100


DEFAULT_BUDGET = Budget()
