"""`scan`: what the pickles of a store name, which values are refused and why. Streams; keeps hashes, not values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from exhume.errors import NothingToLookAt
from exhume.pickles.allowed import Allowed, option_for, reviewed
from exhume.pickles.decoder import Decoder
from exhume.pickles.disassembly import excerpt
from exhume.pickles.evidence import SecondOpinion, second_opinions
from exhume.pickles.extract import Extraction
from exhume.pickles.interface import Decoded, PickleError, UnsafeGlobal
from exhume.pickles.nodes import ModelValue
from exhume.pickles.scan_report import GlobalCount, ScannedValue, ScanReport
from exhume.schema.detection import Detection, Layout
from exhume.stores.interface import Cell, Store

__all__ = ["GlobalCount", "ScanReport", "ScannedValue", "scan_store"]

_KEY_COLUMNS = ("app_name", "user_id", "session_id", "id")
#: Rows listed in a report; more are counted.
_MOST_LISTED = 10_000
#: Bytes of refused values kept for the second opinion.
_KEPT_BYTES = 8 << 20
#: Different names counted; a hostile store can name a new one in every row.
_MOST_NAMES = 10_000
#: Bytes of the digest by which equal values are known again.
_DIGEST = 16
_PROGRESS_EVERY = 2_000
#: Stands in what is said of a value until it is said of a row.
_NO_KEY = ("", "", "", "")
_EVENT_ACTIONS = ("google.adk.events.event_actions", "EventActions")

Progress = Callable[[int, int, str], None]


def scan_store(
    store: Store,
    detection: Detection,
    *,
    allow_globals: tuple[str, ...] = (),
    extract_dir: Path | None = None,
    second_opinion: bool = True,
    progress: Progress | None = None,
) -> ScanReport:
    """Reads every pickled value of a store, each distinct one once.

    Args:
        allow_globals: `module.name` or `module.*`, decoded inertly besides the reviewed set.
        extract_dir: folder that gets each distinct refused value as `<sha256>.pickle`; existing files stay as they are.
        second_opinion: ask fickling about refused values.
        progress: called with (rows done, rows in all, table).

    Raises:
        UsageError: a name that is none, a folder that cannot be written.
    """
    allowed = Allowed(allow_globals)
    report = ScanReport(
        source=detection.info.name,
        layout=detection.layout,
        sha256=detection.info.sha256,
        allowed_globals=allowed.extra,
    )
    reason = _nothing_pickled(detection)
    if reason is not None:
        return replace(report, notes=(reason,))
    extraction = Extraction(extract_dir) if extract_dir is not None else None
    scan = _Scan(allowed, extraction)
    events = detection.tables["events"]
    total = detection.counts.get(events.name, 0)
    for done, (key, cell) in enumerate(_cells(store, detection), start=1):
        scan.take(key, cell)
        if progress is not None and done % _PROGRESS_EVERY == 0:
            progress(done, total, events.name)
    return scan.finish(report, ask=second_opinion)


def _nothing_pickled(detection: Detection) -> str | None:
    """Why there is no pickle to look for; None where there may be."""
    events = detection.tables.get("events")
    if detection.layout is Layout.FOREIGN:
        return "These are no ADK tables: nothing was looked for."
    if events is None or "actions" not in events.column_names:
        return f"The layout {detection.layout} holds JSON only: nothing is pickled."
    if detection.layout in (Layout.GO, Layout.JAVA_FLYWAY):
        return f"The layout {detection.layout} holds JSON in `actions`: nothing is pickled."
    return None


def _cells(store: Store, detection: Detection) -> Iterator[tuple[tuple[str, str, str, str], Cell]]:
    table = detection.tables["events"]
    columns = [name for name in _KEY_COLUMNS if name in table.column_names]
    if columns != list(_KEY_COLUMNS):
        raise NothingToLookAt(
            f"The table '{table.name}' lacks key columns.", todo="Run `exhume detect` to see what this database is."
        )
    for _, row in store.rows(table.name, [*columns, "actions"]):
        app_name, user_id, session_id, event_id, cell = row
        yield (_text(app_name), _text(user_id), _text(session_id), _text(event_id)), cell


def _text(cell: Cell) -> str:
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "surrogateescape")
    return "" if cell is None else str(cell)


def raw_bytes(cell: Cell) -> bytes:
    """A cell as the bytes that its sha256 is taken of."""
    if isinstance(cell, bytes):
        return cell
    return b"" if cell is None else str(cell).encode("utf-8", "surrogateescape")


@dataclass(slots=True)
class _Outcome:
    """What is kept of one distinct value: its globals, and its faults."""

    names: tuple[tuple[str, str], ...]
    refused: ScannedValue | None = None
    told: tuple[ScannedValue, ...] = ()


@dataclass(slots=True)
class _Scan:
    allowed: Allowed
    extraction: Extraction | None
    #: hash of each distinct value -> its outcome; None for those looked at again when they come again, since so many
    #: different outcomes are kept already
    seen: dict[bytes, _Outcome | None] = field(default_factory=dict)
    #: outcomes of values with nothing to tell, which are the same for all that name the same globals
    harmless: dict[tuple[tuple[str, str], ...], _Outcome] = field(default_factory=dict)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    refused: list[ScannedValue] = field(default_factory=list)
    told: list[ScannedValue] = field(default_factory=list)
    kept: dict[str, tuple[bytes, tuple[str, ...]]] = field(default_factory=dict)
    kept_bytes: int = 0
    outcomes: int = 0
    total: int = 0
    refused_count: int = 0
    told_count: int = 0
    empty: int = 0
    uncounted: int = 0
    _decoder: Decoder = field(init=False)

    def __post_init__(self) -> None:
        self._decoder = Decoder(self.allowed)

    def take(self, key: tuple[str, str, str, str], cell: Cell) -> None:
        """Looks at one row."""
        if cell is None:
            self.empty += 1
            return
        self.total += 1
        raw = raw_bytes(cell)
        # the type counts too: text that spells a pickle is none
        digest = hashlib.blake2b(raw, digest_size=_DIGEST, salt=cell.__class__.__name__[:8].encode()).digest()
        outcome = self.seen.get(digest)
        if outcome is None:
            outcome = self._look(raw, cell, fresh=digest not in self.seen)
            self.seen[digest] = outcome if self.outcomes < _MOST_LISTED else None
        for name in outcome.names:
            if name in self.counts:
                self.counts[name] += 1
            elif len(self.counts) < _MOST_NAMES:
                self.counts[name] = 1
            else:
                self.uncounted += 1
        if outcome.refused is not None:
            self.refused_count += 1
            if len(self.refused) < _MOST_LISTED:
                self.refused.append(_at(key, outcome.refused))
        for told in outcome.told:
            self.told_count += 1
            if len(self.told) < _MOST_LISTED:
                self.told.append(_at(key, told))

    def _look(self, raw: bytes, cell: Cell, *, fresh: bool) -> _Outcome:
        decoded = self._decoder.decode_cell(cell)
        names = tuple(dict.fromkeys((one.module, one.name) for one in decoded.globals))
        if decoded.error is None and decoded.trailing is None and _is_actions(decoded.value):
            known = self.harmless.get(names)
            if known is None:
                known = _Outcome(names)
                if len(self.harmless) < _MOST_LISTED:
                    self.harmless[names] = known
                else:
                    self.outcomes += 1
            return known
        self.outcomes += 1
        if decoded.error is not None and not _is_json_object(cell):
            return _Outcome(names, refused=self._refuse(raw, decoded, decoded.error, fresh=fresh))
        told = tuple(_told(raw, cell, decoded))
        if decoded.error is not None or _can_stand_for_actions(decoded.value):
            return _Outcome(names, told=told)
        refused = self._refuse(raw, decoded, UnexpectedPayload(decoded.value), fresh=fresh)
        return _Outcome(names, refused=refused, told=told)

    def _refuse(self, raw: bytes, decoded: Decoded, error: PickleError, *, fresh: bool) -> ScannedValue:
        sha256 = hashlib.sha256(raw).hexdigest()
        unsafe = error.globals if isinstance(error, UnsafeGlobal) else ()
        if fresh:
            if self.extraction is not None:
                self.extraction.write(sha256, raw)
            if self.kept_bytes + len(raw) <= _KEPT_BYTES:
                self.kept_bytes += len(raw)
                self.kept[sha256] = (raw, tuple(one.dotted for one in decoded.globals))
        options = (option_for(one.dotted) for one in unsafe if (one.module, one.name) not in reviewed())
        return ScannedValue(
            *_NO_KEY,
            rule=error.rule,
            reason=error.what,
            offset=error.offset,
            sha256=sha256,
            size=len(raw),
            globals=tuple(dict.fromkeys(one.dotted for one in unsafe)),
            excerpt=excerpt(raw, error.offset),
            options=tuple(dict.fromkeys(option for option in options if option)),
        )

    def finish(self, report: ScanReport, *, ask: bool) -> ScanReport:
        """The report, once every row has been looked at."""
        notes: list[str] = []
        if self.empty:
            notes.append(f"{self.empty} rows have NULL in `actions`: they hold no pickle.")
        for listed, count, what in (
            (self.refused, self.refused_count, "refused"),
            (self.told, self.told_count, "remarkable"),
        ):
            if count > len(listed):
                notes.append(f"{count} rows are {what}; the first {len(listed)} are listed.")
        if self.uncounted:
            notes.append(f"More than {_MOST_NAMES} different globals are named; those after them are not counted.")
        if self.extraction is not None:
            notes.extend(self.extraction.notes)
        refused = self._with_opinions() if ask and self.kept else self.refused
        return replace(
            report,
            globals=tuple(
                GlobalCount(module, name, count, self.allowed.permits(module, name))
                for (module, name), count in sorted(self.counts.items())
            ),
            refused=tuple(refused),
            told=tuple(self.told),
            values_total=self.total,
            values_distinct=len(self.seen),
            values_refused=self.refused_count,
            values_told=self.told_count,
            options=tuple(dict.fromkeys(option for one in self.refused for option in one.options)),
            extracted=tuple(self.extraction.written) if self.extraction is not None else (),
            notes=tuple(notes),
        )

    def _with_opinions(self) -> list[ScannedValue]:
        """Opinions on the listed rows; the decompiled program only at the first row of each value."""
        opinions = dict(zip(self.kept, second_opinions(list(self.kept.values())), strict=True))
        missing = SecondOpinion(note="not asked: the limit of bytes per run is reached")
        made = []
        for one in self.refused:
            opinion = opinions.get(one.sha256, missing)
            made.append(replace(one, second_opinion=opinion))
            opinions[one.sha256] = replace(opinion, decompiled="")
        return made


def _at(key: tuple[str, str, str, str], value: ScannedValue) -> ScannedValue:
    return replace(value, app_name=key[0], user_id=key[1], session_id=key[2], event_id=key[3])


class UnexpectedPayload(PickleError):
    """A well-formed pickle of something that cannot stand for event actions."""

    rule = "EXH503"

    def __init__(self, value: object) -> None:
        kind = f"{value.module}.{value.name}" if isinstance(value, ModelValue) else type(value).__name__
        super().__init__(f"the pickle is well-formed, but holds {kind}, not event actions.")


def _is_actions(value: object) -> bool:
    return isinstance(value, ModelValue) and (value.module, value.name) == _EVENT_ACTIONS


def _can_stand_for_actions(value: object) -> bool:
    """Event actions, their fields as a dict, or None, which ADK reads as no actions."""
    return value is None or isinstance(value, dict) or _is_actions(value)


def _is_json_object(cell: Cell) -> bool:
    """Text that is a JSON object: what a hand-made migration may leave in the column."""
    if not isinstance(cell, str) or cell[:1] != "{":
        return False
    try:
        return isinstance(json.loads(cell), dict)
    except (ValueError, RecursionError):
        return False


def _told(raw: bytes, cell: Cell, decoded: Decoded) -> Iterator[ScannedValue]:
    """What must be said of a value that was read, or can be."""
    sha256 = hashlib.sha256(raw).hexdigest()
    reason = ""
    if not isinstance(cell, bytes):
        reason = "the column holds JSON text, not a pickle; its fields can be read."
    elif isinstance(decoded.value, dict):
        reason = "a pickled dict stands for the event actions; its fields can be read."
    elif decoded.value is None:
        reason = "a pickled None stands for the event actions; ADK reads no actions."
    if reason:
        yield ScannedValue(*_NO_KEY, rule="EXH503", reason=reason, offset=0, sha256=sha256, size=len(raw))
    if decoded.trailing is not None:
        reason = f"{len(raw) - decoded.trailing} bytes follow the pickle, which no reader looks at."
        yield ScannedValue(
            *_NO_KEY,
            rule="EXH504",
            reason=reason,
            offset=decoded.trailing,
            sha256=sha256,
            size=len(raw),
            excerpt=excerpt(raw[decoded.trailing :], 0),
        )
