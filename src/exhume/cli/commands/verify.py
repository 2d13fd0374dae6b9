"""`exhume verify`: are two databases the same sessions, event by event."""

from __future__ import annotations

from typing import Annotated

import typer

from exhume.cli.options import AllowGlobal, Output, ReportFormat, Source, SourceTimezone, TablePrefix, reading
from exhume.report.formats import Format


def command(
    source: Source,
    destination: Annotated[
        str, typer.Argument(metavar="DESTINATION", help="The database to compare with.", show_envvar=False)
    ],
    source_timezone: SourceTimezone = "auto",
    allow_global: AllowGlobal = None,
    table_prefix: TablePrefix = "",
    format: ReportFormat = Format.TABLE,
    output: Output = None,
) -> None:
    """Compare two databases event by event, whatever their layouts; both are only read."""
    from exhume import api
    from exhume.cli.exits import after_verify
    from exhume.cli.output import emit
    from exhume.migrate.interface import VerifyOptions
    from exhume.report.results import of_verify

    options = VerifyOptions(read=reading(source_timezone, allow_global), table_prefix=table_prefix)
    result = api.verify(source, destination, options)
    emit(of_verify(result), format, output)
    raise typer.Exit(after_verify(equal=result.equal))
