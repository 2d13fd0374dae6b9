"""The baseline: a file of fingerprints of known findings, so that only new ones count."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exhume.audit.findings import Finding
from exhume.errors import NothingToLookAt, UsageError
from exhume.redact import printable
from exhume.whole_file import write_whole

FORMAT = "exhume.baseline/1"
#: A report holds at most half a million findings, and an entry about 200 bytes.
_LARGEST = 256 << 20


@dataclass(frozen=True, slots=True)
class Baseline:
    """The fingerprints of a baseline file; `name` is its path, for messages."""

    name: str
    fingerprints: frozenset[str]


def read(path: Path) -> Baseline:
    """Reads a baseline file.

    Raises:
        NothingToLookAt: there is no such file, or it cannot be read.
        UsageError: it is no baseline, or one of a newer exhume.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1)
    except FileNotFoundError:
        raise NothingToLookAt(
            f"There is no baseline {printable(path)}.", todo="Write one with --write-baseline."
        ) from None
    except (OSError, ValueError) as error:
        raise NothingToLookAt(
            f"The baseline {printable(path)} cannot be read: {printable(error)}.", todo="Make the file readable."
        ) from None
    document: Any = None
    if len(text) <= _LARGEST:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            document = None
    if not isinstance(document, dict) or not isinstance(document.get("findings"), list):
        raise UsageError(f"{printable(path)} is no baseline of exhume.", todo="Write one with --write-baseline.")
    if document.get("format") != FORMAT:
        raise UsageError(
            f"The baseline {printable(path)} is of format {printable(document.get('format'), limit=40)}, not {FORMAT}.",
            todo="Write it anew with this release of exhume.",
        )
    entries = document["findings"]
    prints = [entry.get("fingerprint") for entry in entries if isinstance(entry, dict)]
    known = frozenset(one for one in prints if isinstance(one, str))
    if len(prints) < len(entries) or not all(isinstance(one, str) for one in prints):
        raise UsageError(
            f"The baseline {printable(path)} has an entry without a fingerprint.",
            todo="Write it anew, or remove the entry.",
        )
    return Baseline(str(path), known)


def write(path: Path, findings: Iterable[Finding]) -> int:
    """Writes the baseline of some findings: complete or not at all, sorted, the same on every run.

    Rule, session and severity stand beside each fingerprint for the people who review the file; only the fingerprint
    counts. Returns the number of entries.

    Raises:
        UsageError, Incomplete: the file cannot be written; an older one is left as it was.
    """
    entries = sorted(
        {finding.fingerprint: _entry(finding) for finding in findings}.values(),
        key=lambda entry: (
            entry["rule"],
            entry["app_name"],
            entry["user_id"],
            entry["session_id"],
            entry["fingerprint"],
        ),
    )
    lines = ",\n".join("    " + json.dumps(entry) for entry in entries)
    text = f'{{\n  "format": "{FORMAT}",\n  "findings": [\n{lines}\n  ]\n}}\n'
    write_whole([text], path, option="--write-baseline")
    return len(entries)


def _entry(finding: Finding) -> dict[str, str]:
    return {
        "fingerprint": finding.fingerprint,
        "rule": finding.rule,
        "severity": finding.severity.label,
        "app_name": finding.app_name or "",
        "user_id": finding.user_id or "",
        "session_id": finding.session_id or "",
    }
