"""`scan`: what the pickles of a store name, which values are refused and why. Streams; keeps hashes, not values."""

from __future__ import annotations

import hashlib
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
from exhume.schema.detection import Detection, Layout
from exhume.stores.interface import Cell, Store

_KEY_COLUMNS = ("app_name", "user_id", "session_id", "id")
#: Rows listed in a report; more are counted.
_MOST_LISTED = 10_000
#: Bytes of refused values kept for the second opinion.
_KEPT_BYTES = 8 << 20
_HASH = 16
_PROGRESS_EVERY = 2_000
_EVENT_ACTIONS = ("google.adk.events.event_actions", "EventActions")

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class GlobalCount:
    """A global that pickles name, and the number of rows that name it."""

    module: str
    name: str
    count: int
    allowed: bool


@dataclass(frozen=True, slots=True)
class ScannedValue:
    """One row whose value is refused, or told of. Keys that are not text are spelt as text.

    Attributes:
        rule: EXH501 unsafe global, EXH502 malformed; told of: EXH503 no event actions, EXH504 bytes after the pickle.
        reason: one sentence without the value itself.
        globals: dotted names of the unsafe globals, each once.
        offset: byte of the value that the reason is about.
        sha256, size: of the raw value.
        excerpt: disassembled opcodes around `offset`.
        options: what would decode it inertly.
    """

    app_name: str
    user_id: str
    session_id: str
    event_id: str
    rule: str
    reason: str
    offset: int
    sha256: str
    size: int
    globals: tuple[str, ...] = ()
    excerpt: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    second_opinion: SecondOpinion | None = None


@dataclass(frozen=True, slots=True)
class ScanReport:
    """The result of `scan`.

    Attributes:
        source: the store's redacted name.
        globals: by module and name, unsafe ones included.
        refused: the first ten thousand rows with a refused value.
        told: the first ten thousand rows with a value that was read, yet is worth a word (EXH503, EXH504).
        values_total, values_distinct, values_refused, values_told: all rows with a value, distinct values, rows refused
            and rows told of, listed or not.
        options: the `--allow-global` options that would decode all that is refused for its globals.
        extracted: files written, by name.
        notes: sentences for the report.
    """

    source: str
    layout: Layout
    sha256: str | None
    globals: tuple[GlobalCount, ...] = ()
    refused: tuple[ScannedValue, ...] = ()
    told: tuple[ScannedValue, ...] = ()
    values_total: int = 0
    values_distinct: int = 0
    values_refused: int = 0
    values_told: int = 0
    options: tuple[str, ...] = ()
    extracted: tuple[str, ...] = ()
    allowed_globals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


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
    """What is kept of one distinct value: its globals, shared with other values that name the same, and its faults."""

    names: tuple[tuple[str, str], ...]
    refused: ScannedValue | None = None
    told: tuple[ScannedValue, ...] = ()


@dataclass(slots=True)
class _Scan:
    allowed: Allowed
    extraction: Extraction | None
    seen: dict[bytes, _Outcome] = field(default_factory=dict)
    harmless: dict[tuple[tuple[str, str], ...], _Outcome] = field(default_factory=dict)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    refused: list[ScannedValue] = field(default_factory=list)
    told: list[ScannedValue] = field(default_factory=list)
    kept: dict[str, tuple[bytes, tuple[str, ...]]] = field(default_factory=dict)
    kept_bytes: int = 0
    total: int = 0
    refused_count: int = 0
    told_count: int = 0
    empty: int = 0

    def __post_init__(self) -> None:
        self._decoder = Decoder(self.allowed)

    _decoder: Decoder = field(init=False)

    def take(self, key: tuple[str, str, str, str], cell: Cell) -> None:
        """Looks at one row."""
        if cell is None:
            self.empty += 1
            return
        self.total += 1
        raw = raw_bytes(cell)
        # the type counts too: text that spells a pickle is none
        digest = hashlib.blake2b(raw, digest_size=_HASH, salt=cell.__class__.__name__[:8].encode()).digest()
        outcome = self.seen.get(digest)
        if outcome is None:
            outcome = self.seen[digest] = self._look(raw, cell)
        for name in outcome.names:
            self.counts[name] = self.counts.get(name, 0) + 1
        if outcome.refused is not None:
            self.refused_count += 1
            if len(self.refused) < _MOST_LISTED:
                self.refused.append(_at(key, outcome.refused))
        for told in outcome.told:
            self.told_count += 1
            if len(self.told) < _MOST_LISTED:
                self.told.append(_at(key, told))

    def _look(self, raw: bytes, cell: Cell) -> _Outcome:
        decoded = self._decoder.decode_cell(cell)
        names = tuple(dict.fromkeys((one.module, one.name) for one in decoded.globals))
        if decoded.error is None and decoded.trailing is None and _is_actions(decoded.value):
            return self.harmless.setdefault(names, _Outcome(names))
        if decoded.error is not None:
            return _Outcome(names, refused=self._refuse(raw, decoded, decoded.error))
        return _Outcome(names, told=tuple(_told(raw, decoded)))

    def _refuse(self, raw: bytes, decoded: Decoded, error: PickleError) -> ScannedValue:
        sha256 = hashlib.sha256(raw).hexdigest()
        unsafe = error.globals if isinstance(error, UnsafeGlobal) else ()
        offset = error.offset
        if self.extraction is not None:
            self.extraction.write(sha256, raw)
        if self.kept_bytes + len(raw) <= _KEPT_BYTES:
            self.kept_bytes += len(raw)
            self.kept[sha256] = (raw, tuple(one.dotted for one in decoded.globals))
        options = (option_for(one.module, one.name) for one in unsafe if (one.module, one.name) not in reviewed())
        return ScannedValue(
            *("", "", "", ""),
            rule=error.rule,
            reason=error.what,
            offset=offset,
            sha256=sha256,
            size=len(raw),
            globals=tuple(dict.fromkeys(one.dotted for one in unsafe)),
            excerpt=excerpt(raw, offset),
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
        opinions = dict(zip(self.kept, second_opinions(list(self.kept.values())), strict=True))
        missing = SecondOpinion(note="not asked: the limit of bytes per run is reached")
        return [replace(one, second_opinion=opinions.get(one.sha256, missing)) for one in self.refused]


def _at(key: tuple[str, str, str, str], value: ScannedValue) -> ScannedValue:
    return replace(value, app_name=key[0], user_id=key[1], session_id=key[2], event_id=key[3])


def _is_actions(value: object) -> bool:
    """Event actions, as the model or in the form of a dict."""
    if isinstance(value, ModelValue):
        return (value.module, value.name) == _EVENT_ACTIONS
    return isinstance(value, dict)


def _told(raw: bytes, decoded: Decoded) -> Iterator[ScannedValue]:
    """What must be said of a value that was read."""
    sha256 = hashlib.sha256(raw).hexdigest()
    key = ("", "", "", "")
    if not _is_actions(decoded.value):
        value = decoded.value
        what = f"{value.module}.{value.name}" if isinstance(value, ModelValue) else type(value).__name__
        reason = f"the pickle is well-formed, but holds {'None' if value is None else what}, not event actions."
        yield ScannedValue(*key, rule="EXH503", reason=reason, offset=0, sha256=sha256, size=len(raw))
    if decoded.trailing is not None:
        reason = f"{len(raw) - decoded.trailing} bytes follow the pickle, which no reader looks at."
        yield ScannedValue(
            *key,
            rule="EXH504",
            reason=reason,
            offset=decoded.trailing,
            sha256=sha256,
            size=len(raw),
            excerpt=excerpt(raw[decoded.trailing :], 0),
        )
