"""Arguments and options that take what was typed as it stands, where there is nothing to check.

typer converts every value with pydantic, also a default, and to import that takes a third of a short run. A text, a
path and the exact name of a choice need none of it. Whatever else was typed goes the usual way, with its messages.
"""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

from typer.core import TyperArgument, TyperOption

#: Stands for a value that typer has to judge.
_OPEN = object()


class _Quick:
    """An argument or option that typer made; only its values are taken more quickly."""

    def __init__(self, made: TyperArgument | TyperOption) -> None:
        vars(self).update(vars(made))

    def process_value(self, ctx: Any, value: Any) -> Any:
        """The value for the command's function."""
        parameter: Any = self
        taken = _taken(parameter, value)
        if taken is _OPEN:
            return super().process_value(ctx, value)  # type: ignore[misc]  # of typer's class, behind this one
        return taken if parameter.callback is None else parameter.callback(ctx, parameter, taken)


class Argument(_Quick, TyperArgument):
    """An argument that takes its values quickly."""


class Option(_Quick, TyperOption):
    """An option that takes its values quickly."""


def quick(made: Any) -> Any:
    """The same argument or option, taking its values more quickly."""
    return Option(made) if isinstance(made, TyperOption) else Argument(made)


class QuickHelp:
    """For a command or a group: its `--help` is False, not None, when it is not given. typer would convert None."""

    def get_help_option(self, ctx: Any) -> Any:
        """`--help`, None where there is none."""
        flag: Any = super().get_help_option(ctx)  # type: ignore[misc]  # of typer's class, behind this one
        if flag is not None:
            flag.default = False
        return flag


def _taken(parameter: TyperArgument | TyperOption, value: Any) -> Any:
    """What typer would make of a value, or `_OPEN`."""
    if value is not None:
        described = getattr(parameter, "type_descriptor", None)  # typer does not document it
        return _converted(getattr(described, "annotation", None), value)
    if parameter.required:
        return _OPEN
    return () if parameter.multiple else None


def _converted(kind: Any, value: Any) -> Any:
    """What typer makes of a value by the annotation alone; none of our parameters asks for more, such as `exists=`."""
    if get_origin(kind) is list and isinstance(value, list | tuple):
        (each,) = get_args(kind)
        items = [_converted(each, item) for item in value]
        return _OPEN if _OPEN in items else items
    if not isinstance(kind, type):
        return _OPEN
    if issubclass(kind, Enum):
        return next((member for member in kind if value in (member, member.value)), _OPEN)
    if kind is str and type(value) is str:
        return value
    if kind is Path and type(value) is str and _usable(value):
        return Path(value)
    return _OPEN


def _usable(path: str) -> bool:
    """Has typer nothing to say against this path? A file that exists has to be readable."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False
    return os.access(path, os.R_OK)
