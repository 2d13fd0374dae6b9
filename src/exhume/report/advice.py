"""What to do about refused globals, for `scan` and `migrate` alike."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from exhume.pickles.allowed import option_for

#: Names that one line of advice holds; the documents have all.
_MOST_NAMES = 6


def allow_todo(names: Iterable[str]) -> tuple[str, ...]:
    """What to do about refused globals with these dotted names: Python's own apart, which attacks use."""
    own: list[str] = []
    python: list[str] = []
    for name in names:
        option = option_for(name)
        if option and name.partition(".")[0] in sys.stdlib_module_names:
            python.append(name)
        elif option:
            own.append(option)
    todo = []
    if own:
        shown = _shortened(own)
        todo.append(f"If these types are your application's own: {shown} decodes them, inertly, as plain data.")
    if python:
        shown = _shortened(python, ", ")
        todo.append(f"Parts of Python, which attacks name, too: {shown}. Find out who wrote them before you allow one.")
    return tuple(todo)


def _shortened(texts: list[str], separator: str = " ") -> str:
    return separator.join(texts[:_MOST_NAMES]) + (f"{separator}..." if len(texts) > _MOST_NAMES else "")
