"""The class of every command: what `-` means, and that a run's reports never replace what it reads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from exhume.cli.parameters import QuickHelp, quick
from exhume.errors import Refused, UsageError

_READ = {
    "source": "the source",
    "destination": "the destination",
    "quarantine": "the quarantine file",
    "ledger": "the ledger",
    "baseline": "the baseline",
}
_WRITTEN = {"output": "the report", "write_baseline": "the baseline"}
#: Names of stdout, where a report goes without `-o`.
_STDOUT = (Path("-"), Path("/dev/stdout"), Path("/dev/fd/1"))
#: What SQLite keeps beside a database; replacing one changes what the database says.
_SIDECARS = ("-wal", "-shm", "-journal")


class Command(QuickHelp, TyperCommand):
    """A command that checks its paths before it begins."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params = [quick(parameter) for parameter in self.params]

    def invoke(self, ctx: Any) -> Any:
        """Runs the command unless a report of it would replace what it reads."""
        if ctx.params.get("output") in _STDOUT:
            ctx.params["output"] = None
        check_paths(ctx.params)
        return super().invoke(ctx)


def check_paths(parameters: Mapping[str, Any]) -> None:
    """Compares the files that a command reads with those that it writes.

    Raises:
        UsageError: there is no such folder, so that the work would be done and its report lost.
        Refused: a file would be written over one that is read, or two reports have the same name.
    """
    written = [(name, Path(parameters[name])) for name in _WRITTEN if parameters.get(name) is not None]
    if not written:
        return
    for name, path in written:
        if path == Path("-"):
            raise UsageError("--write-baseline takes a file; stdout is for the report.", todo="Name a file.")
        if os.path.isdir(path):
            raise UsageError(f"{path} is a folder.", todo="Nothing was done. Name a file.")
        try:
            path.stat()
        except FileNotFoundError:
            pass
        except OSError as error:  # such as a name that is too long, or a loop of links
            raise UsageError(
                f"{path} cannot be written: {error.strerror}.", todo="Nothing was done. Name another file."
            ) from error
        if not os.path.isdir(os.path.dirname(os.path.realpath(path))):  # a link is written through
            raise UsageError(f"{path} is in no folder that exists.", todo="Nothing was done. Name another file.")
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
                yield name, Path(f"{path}{suffix}")


def _same(first: Path, second: Path) -> bool:
    """Do both name one file, or would they once it exists? A hard or symbolic link counts as the same."""
    try:
        return first.samefile(second)
    except (OSError, ValueError):
        try:
            return first.resolve() == second.resolve()
        except (OSError, RuntimeError, ValueError):
            return False
