"""`exhume approvals`: the ledger of approvals, and how it agrees with a list kept elsewhere."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exhume.cli.options import (
    AllowGlobal,
    App,
    Output,
    ReportFormat,
    Session,
    Source,
    SourceTimezone,
    TablePrefix,
    User,
    reading,
)
from exhume.report.formats import Format

if TYPE_CHECKING:
    from exhume.audit.external_list import LedgerOptions


class Kind(enum.StrEnum):
    """What each row of an external list is."""

    APPROVALS = "approvals"
    EXECUTIONS = "executions"


def command(
    source: Source,
    ledger: Annotated[
        Path | None,
        typer.Option(
            "--ledger", metavar="FILE", help="Hold the log against this list (CSV or JSON Lines); 1 if they differ."
        ),
    ] = None,
    ledger_kind: Annotated[Kind, typer.Option("--ledger-kind", help="What each row of that list is.")] = Kind.APPROVALS,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column", metavar="FIELD=NAME", help="Where a field of the list stands, e.g. call_id=ref. Repeatable."
        ),
    ] = None,
    reveal: Annotated[bool, typer.Option("--reveal", help="Show credentials in arguments and payloads, too.")] = False,
    format: ReportFormat = Format.TABLE,
    output: Output = None,
    app: App = None,
    user: User = None,
    session: Session = None,
    source_timezone: SourceTimezone = "auto",
    allow_global: AllowGlobal = None,
    table_prefix: TablePrefix = "",
) -> None:
    """List every request for approval: who answered, when, how, and how often the tool ran."""
    from exhume import api
    from exhume.audit.ledger import ledger as ledger_of
    from exhume.audit.reconciliation import reconcile
    from exhume.cli.exits import after_reconcile
    from exhume.cli.output import emit
    from exhume.report.documents import Span
    from exhume.report.results import of_ledger
    from exhume.report.wire import now

    started = now()
    read = reading(source_timezone, allow_global, app=app, user=user, session=session)
    with api.opened(source, read, table_prefix=table_prefix) as (reader, detection):
        found = ledger_of(reader, detection, reveal=reveal)
    result = None if ledger is None else reconcile(found, ledger, _options(column or [], ledger_kind))
    emit(of_ledger(found, span=Span(started, now()), reconciliation=result), format, output)
    raise typer.Exit(after_reconcile(differences=0 if result is None else result.differences))


def _options(columns: list[str], kind: Kind) -> LedgerOptions:
    from exhume.audit.external_list import LedgerOptions
    from exhume.errors import UsageError

    mapped: dict[str, str] = {}
    for text in columns:
        field, equals, name = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--column {text} is not FIELD=NAME.", todo="Write it like --column call_id=reference.")
        mapped[field.strip()] = name
    return LedgerOptions(columns=mapped, kind=kind.value)
