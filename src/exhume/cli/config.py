"""Defaults of options from `exhume.toml` or `[tool.exhume]`, laid under the command line and the environment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

    from exhume.audit.config import Config

_NAMES = ("exhume.toml", "pyproject.toml")


def use(context: typer.Context, path: Path | None) -> None:
    """Reads the configuration, if there is one, and makes its values the defaults of all commands."""
    if path is None and not any(Path(name).is_file() for name in _NAMES):
        return  # the usual case: nothing is imported for it
    from exhume.audit.config import load

    config = load(path)
    context.obj = config
    context.default_map = {command: dict(options) for command, options in config.options.items()}


def of(context: typer.Context) -> Config | None:
    """The configuration of this run; None where there is none, and then nothing is imported for it."""
    if context.obj is None:
        return None
    from exhume.audit.config import Config

    return context.obj if isinstance(context.obj, Config) else None
