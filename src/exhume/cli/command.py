"""The class of every command: what a run reads, its reports never replace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from exhume.errors import Refused

_READ = {"source": "the source", "destination": "the destination", "ledger": "the ledger", "baseline": "the baseline"}
_WRITTEN = {"output": "the report", "write_baseline": "the baseline"}
#: What SQLite keeps beside a database; replacing one changes what the database says.
_SIDECARS = ("-wal", "-shm", "-journal")


class Command(TyperCommand):
    """A command that checks its paths before it begins."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command unless a report of it would replace what it reads."""
        check_paths(ctx.params)
        return super().invoke(ctx)


def check_paths(parameters: Mapping[str, Any]) -> None:
    """Compares the files that a command reads with those that it writes.

    Raises:
        Refused: a file would be written over one that is read, or two reports have the same name.
    """
    written = [(name, Path(parameters[name])) for name in _WRITTEN if parameters.get(name) is not None]
    if not written:
        return
    for name, path in written:
        for read, original in _read(parameters):
            if name == "write_baseline" and read == "baseline":
                continue  # to bring a baseline up to date
            if _same(path, original):
                raise Refused(
                    f"{path} is {_READ[read]} of this run, or belongs to it; {_WRITTEN[name]} would replace it.",
                    todo="Nothing was written. Name another file.",
                )
    for (_, first), (_, second) in combinations(written, 2):
        if _same(first, second):
            raise Refused(
                f"{first} is named for the report and for the baseline.", todo="Nothing was written. Name two files."
            )


def _read(parameters: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    from exhume.stores.location import parse_location

    for name in _READ:
        given = parameters.get(name)
        if given is None:
            continue
        path = parse_location(given).path
        if path is not None:
            yield name, path
            for suffix in _SIDECARS:
                yield name, path.with_name(path.name + suffix)


def _same(first: Path, second: Path) -> bool:
    """Do both name one file, or would they once it exists? A hard or symbolic link counts as the same."""
    try:
        return first.samefile(second)
    except (OSError, ValueError):
        try:
            return first.resolve() == second.resolve()
        except (OSError, RuntimeError, ValueError):
            return False
