"""What `--dry-run` says: the path, what each step changes, rows, refusals, space and temporary files."""

from __future__ import annotations

from pathlib import Path

from exhume.migrate.interface import MigrationReport, Step
from exhume.migrate.space import in_units


def sentences(
    steps: tuple[Step, ...],
    report: MigrationReport,
    final: Path,
    *,
    aside: Path | None,
    between: Path | None,
    bytes_each: int,
) -> list[str]:
    """The plan, one sentence a line.

    Args:
        report: of the rows as they were read and judged.
        aside: quarantine file, if there would be one.
        between: folder for files between hops; None when there is a single hop.
        bytes_each: estimated size of one copy of the data; 0 when it is not known.
    """
    said = [f"path: {' -> '.join(report.path)}"]
    said += [f"step {number}: {step.name}: {step.changes}" for number, step in enumerate(steps, start=1)]
    said += [f"rows: {table}: {count.read} read" for table, count in report.tables.items()]
    if report.refused_count:
        what = f"refused: {report.refused_count} row{'s' if report.refused_count > 1 else ''}"
        if aside is None:
            said.append(f"{what}; nothing would be written without --quarantine FILE")
        else:
            said.append(f"{what}, which would be kept raw in {aside}")
    else:
        said.append("refused: no row")
    if bytes_each:
        said.append(f"space: about {in_units(bytes_each)} in {final.absolute().parent} for {final.name}")
    if between is None:
        said.append("temporary files: one private folder beside the destination, renamed from at the end")
    else:
        needed = f" (about {in_units(min(len(steps) - 1, 2) * bytes_each)} at most)" if bytes_each else ""
        said.append(
            f"temporary files: {len(steps) - 1} SQLite file{'s' if len(steps) > 2 else ''} between hops in a private"
            f" folder in {between}{needed}, and a private folder beside the destination; all removed at the end"
        )
    return said
