"""Reports: results become documents for machines and views for people, and both become text in one of the formats."""

from exhume.report.documents import Span
from exhume.report.formats import Format, Look, Report, render
from exhume.report.output import write
from exhume.report.results import of_audit, of_detection, of_migration, of_verify
from exhume.report.schema import load_schema, schema_names
from exhume.report.wire import now

__all__ = [
    "Format",
    "Look",
    "Report",
    "Span",
    "load_schema",
    "now",
    "of_audit",
    "of_detection",
    "of_migration",
    "of_verify",
    "render",
    "schema_names",
    "write",
]
