"""Runs in a child process: fickling's opinion on pickles from standard input, as JSON lines on standard output.

Started by `evidence.py` under limits of memory and time. fickling parses and decompiles; it does not load either.
Input: for each value its length as 8 bytes big-endian, then its bytes. Output: one JSON object a value, written at
once, so that what is done is not lost when a later value is too much.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from typing import Any

_MEMORY = 512 << 20
_CPU_SECONDS = 2
_LONGEST_OUTPUT = 8 << 20
_LONGEST_TEXT = 20_000
_MOST_IMPORTS = 1_000


def main() -> None:
    """Reads values until the input ends."""
    _limit()
    source = sys.stdin.buffer
    output = os.dup(1)
    # whatever a library prints must not mix with the answers
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    while header := source.read(8):
        answer = json.dumps(opinion(source.read(int.from_bytes(header, "big")))) + "\n"
        _write(output, answer.encode("ascii"))


def _limit() -> None:
    """Limits of this process, set before anything of the values is read; never above those that it was started with."""
    try:
        import resource
    except ImportError:  # Windows: the parent's limit of time is all there is
        return
    for kind, wanted in (
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_CPU, _CPU_SECONDS),
        (resource.RLIMIT_FSIZE, _LONGEST_OUTPUT),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (limit, limit))


def _write(output: int, data: bytes) -> None:
    while data:
        data = data[os.write(output, data) :]


def opinion(data: bytes) -> dict[str, Any]:
    """fickling's severity, decompiled program and imports of one value, or why it has none."""
    try:
        from fickling import __version__
        from fickling.analysis import check_safety
        from fickling.fickle import Pickled
    except ImportError:
        return {"problem": "not available"}
    try:
        pickled = Pickled.load(data, fail_on_decode_error=False)
        program = pickled.ast
        text = ast.unparse(program)
        severity = check_safety(pickled).severity.name
    except Exception as error:  # noqa: BLE001  a library on hostile bytes: that it fails is the finding
        return {"problem": f"failed with {type(error).__name__}", "version": __version__}
    return {
        "version": __version__,
        "severity": severity,
        "decompiled": text[:_LONGEST_TEXT],
        "cut": len(text) > _LONGEST_TEXT,
        "imports": imports_of(program)[:_MOST_IMPORTS],
    }


def imports_of(program: ast.AST) -> list[str]:
    """Dotted names that the decompiled program imports, in order, each once."""
    found: dict[str, None] = {}
    for node in ast.walk(program):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[f"{node.module or ''}.{alias.name}"] = None
        elif isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.name] = None
    return list(found)


if __name__ == "__main__":
    main()
