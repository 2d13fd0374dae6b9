"""`exhume scan`: what do the pickles name, and is anything unsafe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from exhume.cli.options import AllowGlobal, Output, Quiet, ReportFormat, Source, TablePrefix
from exhume.report.formats import Format


def command(
    source: Source,
    format: ReportFormat = Format.TABLE,
    output: Output = None,
    allow_global: AllowGlobal = None,
    extract: Annotated[
        Path | None,
        typer.Option("--extract", metavar="DIR", help="Write the raw refused values to this folder, named by sha256."),
    ] = None,
    second_opinion: Annotated[
        bool,
        typer.Option(
            "--second-opinion/--no-second-opinion",
            help="Ask fickling about refused values, in a bounded child process.",
        ),
    ] = True,
    table_prefix: TablePrefix = "",
    quiet: Quiet = False,
) -> None:
    """List what every pickle in a database names; nothing is executed."""
    from exhume import api
    from exhume.cli.exits import after_scan
    from exhume.cli.output import emit, progress
    from exhume.report.documents import Span
    from exhume.report.results import of_scan
    from exhume.report.wire import now

    started = now()
    with progress("scan", quiet=quiet) as update:
        result = api.scan(
            source,
            table_prefix=table_prefix,
            allow_globals=allow_global or (),
            extract=extract,
            second_opinion=second_opinion,
            progress=update,
        )
    emit(of_scan(result, span=Span(started, now())), format, output)
    raise typer.Exit(after_scan(refused=result.values_refused))
