"""`exhume migrate`: move a database to another layout, verified, losing and executing nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from exhume.cli.options import AllowGlobal, Output, Quiet, ReportFormat, Source, SourceTimezone, TablePrefix, reading
from exhume.report.formats import Format


def command(
    source: Source,
    destination: Annotated[
        str, typer.Argument(metavar="DESTINATION", help="The file to make; it must not exist.", show_envvar=False)
    ],
    to: Annotated[
        str, typer.Option("--to", metavar="LAYOUT", help="Layout of the destination (see `exhume layouts`).")
    ] = "v1",
    source_timezone: SourceTimezone = "auto",
    allow_global: AllowGlobal = None,
    quarantine: Annotated[
        str | None,  # no Path, which would break a URL
        typer.Option(
            "--quarantine",
            metavar="FILE",
            help="Migrate the rest when values are refused; keep every refused row raw in this SQLite file.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was ended before it was complete.")
    ] = False,
    workdir: Annotated[
        Path | None, typer.Option("--workdir", metavar="DIR", help="Folder for temporary files between hops.")
    ] = None,
    table_prefix: TablePrefix = "",
    format: ReportFormat = Format.TABLE,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Migrate SOURCE to DESTINATION: all or nothing, or with a quarantine for what is refused."""
    from exhume import api
    from exhume.cli.exits import after_migrate
    from exhume.cli.output import emit, progress
    from exhume.migrate.interface import MigrateOptions
    from exhume.report.results import of_migration

    with progress("migrate", quiet=quiet) as update:
        options = MigrateOptions(
            to=to,
            read=reading(source_timezone, allow_global),
            quarantine=quarantine,
            workdir=workdir,
            table_prefix=table_prefix,
            dry_run=dry_run,
            resume=resume,
            progress=update,
        )
        result = api.migrate(source, destination, options)
    emit(of_migration(result), format, output)
    raise typer.Exit(after_migrate(result))
