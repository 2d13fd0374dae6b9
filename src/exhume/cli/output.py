"""From a result to the screen: the report goes to stdout or a file, everything else to stderr."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from exhume.redact import mask_url, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from exhume.migrate.interface import Progress
    from exhume.report.formats import Format, Report


def emit(report: Report, fmt: Format, output: Path | None) -> None:
    """Prints a report in the chosen format, or writes it to a file."""
    from exhume.report.formats import Look, render

    terminal = output is None and sys.stdout.isatty()
    look = Look(
        width=shutil.get_terminal_size().columns if terminal else 120,
        color=terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb",
    )
    deliver(render(report, fmt, look=look), output)


def deliver(pieces: Iterable[str], output: Path | None) -> None:
    """Writes text to stdout or to a file. A reader that went away (`| head`) wants no more: the run's own exit code
    stands, and nothing is said."""
    from exhume.report.output import write

    with suppress(BrokenPipeError):
        write(pieces, output=output, stream=sys.stdout)


def tell(lead: str, text: str) -> None:
    """A line of a list on stdout; a terminal gets the text wrapped beside its lead."""
    width = shutil.get_terminal_size().columns
    if not sys.stdout.isatty() or width < len(lead) + 20:
        print(lead + text)
        return
    from textwrap import fill

    indent = " " * len(lead)
    print(fill(text, width, initial_indent=lead, subsequent_indent=indent, break_long_words=False))


def say(text: str, *, quiet: bool = False) -> None:
    """One line for a person on stderr."""
    if not quiet:
        print(printable(mask_url(text)), file=sys.stderr)


@contextmanager
def progress(label: str, *, quiet: bool) -> Iterator[Progress | None]:
    """A progress bar with rate and time left on stderr; None unless a person is looking at a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    with _bar(label) as update:
        yield update


@contextmanager
def _bar(label: str) -> Iterator[Callable[[int, int, str], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(show_speed=True),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None, rate="")

        def update(done: int, total: int, table: str) -> None:
            speed = bar.tasks[0].speed
            rate = f"{speed:,.0f} rows/s" if speed else ""
            bar.update(
                task, completed=done, total=total, description=f"{label} {printable(table, limit=30)}", rate=rate
            )

        yield update
