"""A few opcodes of a pickle in words, around the place that matters; nothing is interpreted."""

from __future__ import annotations

import collections
import itertools
import pickletools

_BEFORE, _AFTER = 8, 5
_MOST_OPCODES = 100_000
_MOST_BYTES = 4 << 20
_LONGEST_ARGUMENT = 80


def excerpt(data: bytes, offset: int) -> tuple[str, ...]:
    """Lines such as `157: STACK_GLOBAL` around the opcode at `offset`, which is marked by `>`.

    Bounded: a place far inside a huge pickle is not shown, a line says so. Arguments are cut and quoted.
    """
    lines: collections.deque[str] = collections.deque(maxlen=_BEFORE)
    shown: list[str] = []
    # genops reads opcodes and their arguments, it has no stack and no memo
    opcodes = pickletools.genops(data[:_MOST_BYTES])
    try:
        for opcode, argument, place in itertools.islice(opcodes, _MOST_OPCODES):
            at = place if place is not None else 0
            line = f"{at}: {opcode.name}{_argument(argument)}"
            if at < offset:
                lines.append("  " + line)
                continue
            if not shown:
                shown = [*lines, ("> " if at == offset else "  ") + line]
            else:
                shown.append("  " + line)
            if len(shown) > _BEFORE + _AFTER:
                break
        else:
            if not shown:
                shown = [*lines, f"  (not shown further: offset {offset} lies beyond what is disassembled)"]
    except (ValueError, OverflowError, MemoryError) as error:
        # what genops raises for broken pickles, bad UTF-8 and integers with too many digits included
        shown = [*(shown or lines), f"> {offset}: cannot be read on: {str(error)[:_LONGEST_ARGUMENT]}"]
    return tuple(shown)


def _argument(argument: object) -> str:
    if argument is None:
        return ""
    if isinstance(argument, int) and argument.bit_length() > 256:
        return f" (an integer of {argument.bit_length()} bits)"
    if isinstance(argument, str | bytes | bytearray) and len(argument) > _LONGEST_ARGUMENT:
        return f" {argument[:_LONGEST_ARGUMENT]!r}... ({len(argument)} long)"
    return f" {argument!r}"
