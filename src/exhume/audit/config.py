"""The project's configuration: `exhume.toml`, or `[tool.exhume]` in `pyproject.toml`, checked key by key.

source-timezone = "Europe/Berlin"       # for every command that has the option

[audit]                                 # defaults of one command
fail-on = "warning"
window = "14d"

[[suppress]]
rule = "EXH103"
session = "load-test"
reason = "The load test approves the same refund on purpose."
until = 2027-01-31
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exhume.errors import NothingToLookAt, UsageError
from exhume.redact import printable

if TYPE_CHECKING:
    from exhume.audit.suppress import Suppression

#: A configuration is written by hand; anything longer is not one.
_LARGEST = 1 << 20

#: What an option takes: a text, texts, a boolean, or the path of a file (relative to the configuration).
_TEXT, _TEXTS, _FLAG, _PATH = "a text", "a list of texts", "true or false", "the path of a file"
_COMMON = {"source-timezone": _TEXT, "allow-global": _TEXTS, "table-prefix": _TEXT}
_VIEW = {"format": _TEXT}
_COMMANDS: dict[str, dict[str, str]] = {
    "approvals": {**_COMMON, **_VIEW, "ledger": _PATH},
    "audit": {
        **_COMMON,
        **_VIEW,
        "fail-on": _TEXT,
        "select": _TEXTS,
        "ignore": _TEXTS,
        "window": _TEXT,
        "baseline": _PATH,
        "app": _TEXT,
        "user": _TEXT,
    },
    "detect": {"table-prefix": _TEXT, **_VIEW, "require": _TEXT, "drift": _FLAG},
    "export": {**_COMMON, **_VIEW, "redact": _TEXT},
    "migrate": {**_COMMON, **_VIEW, "to": _TEXT, "quarantine": _PATH, "workdir": _PATH, "quiet": _FLAG},
    "scan": {"allow-global": _TEXTS, "table-prefix": _TEXT, **_VIEW, "second-opinion": _FLAG},
    "show": {**_COMMON, **_VIEW},
    "verify": {**_COMMON, **_VIEW},
}
_CHOICES = {"fail-on": ("error", "warning", "info")}
_ENTRY = ("rule", "app", "user", "session", "fingerprint", "reason", "until")


@dataclass(frozen=True, slots=True)
class Config:
    """What a configuration says. `path` is None where there is none.

    `options`: name of a command -> name of an option with underscores (`fail_on`) -> its default.
    """

    path: Path | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    suppressions: tuple[Suppression, ...] = ()

    def defaults(self, command: str) -> Mapping[str, Any]:
        """Defaults of one command's options; a list for those that can be repeated."""
        return self.options.get(command, {})


def load(path: Path | None = None, *, folder: Path | None = None) -> Config:
    """Reads a configuration.

    Args:
        path: the file; one named `pyproject.toml` is read at `[tool.exhume]`.
        folder: where to look for `exhume.toml`, then `pyproject.toml`, when no path is given; by default the working
            folder.

    Raises:
        NothingToLookAt: `path` is given and cannot be read.
        UsageError: not TOML, a key that does not exist, or a value of a wrong kind; the message names file and key.
    """
    if path is not None:
        document = _read(path)
        if document is None:
            raise NothingToLookAt(
                f"There is no configuration {printable(path)}.", todo="Check the path that --config names."
            )
        return _config(path, document)
    here = Path.cwd() if folder is None else folder
    for name in ("exhume.toml", "pyproject.toml"):
        document = _read(here / name)
        if document is not None and (name == "exhume.toml" or _table_of(document) is not None):
            return _config(here / name, document)
    return Config()


def _read(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise NothingToLookAt(
            f"The configuration {printable(path)} cannot be read: {printable(error)}.",
            todo="Make the file readable, or name another with --config.",
        ) from None
    if len(text) > _LARGEST:
        raise UsageError(
            f"The configuration {printable(path)} is larger than 1 MiB.", todo="Name another with --config."
        )
    try:
        return tomllib.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # also an integer of more digits than Python takes
        raise UsageError(
            f"The configuration {printable(path)} is not TOML: {printable(error, limit=200)}.",
            todo="Correct the file, or name another with --config.",
        ) from None


def _table_of(document: dict[str, Any]) -> Any:
    tool = document.get("tool")
    return tool.get("exhume") if isinstance(tool, dict) else None


def _config(path: Path, document: dict[str, Any]) -> Config:
    prefix = ""
    table: Any = document
    if path.name == "pyproject.toml":
        prefix = "tool.exhume."
        table = _table_of(document)
        if table is None:
            return Config(path)
    where = _Where(path, prefix)
    if not isinstance(table, dict):
        raise where.wrong("", "is not a table")
    common: dict[str, Any] = {}
    own: dict[str, dict[str, Any]] = {}
    suppressions: tuple[Suppression, ...] = ()
    for key, value in table.items():
        if key in _COMMON:
            common[key] = _value(where, key, key, value, _COMMON[key])
        elif key in _COMMANDS:
            own[key] = _options(where, key, value)
        elif key == "suppress":
            suppressions = _suppressions(where, value)
        else:
            raise where.unknown(key, sorted({*_COMMON, *_COMMANDS, "suppress"}))
    options: dict[str, dict[str, Any]] = {}
    for command, known in _COMMANDS.items():
        found = {name: value for name, value in common.items() if name in known} | own.get(command, {})
        if found:
            options[command] = {name.replace("-", "_"): value for name, value in found.items()}
    return Config(path, options, suppressions)


def _options(where: _Where, command: str, table: Any) -> dict[str, Any]:
    """The defaults of one command, by the names of its options."""
    if not isinstance(table, dict):
        raise where.wrong(command, "is not a table")
    known = _COMMANDS[command]
    for name in table:
        if name not in known:
            raise where.unknown(f"{command}.{name}", sorted(known))
    return {name: _value(where, f"{command}.{name}", name, item, known[name]) for name, item in table.items()}


@dataclass(frozen=True, slots=True)
class _Where:
    """Names places in the file for messages."""

    path: Path
    prefix: str

    def place(self, key: str) -> str:
        return f"{printable(self.path)}: {printable((self.prefix + key).rstrip('.'), limit=100)}"

    def wrong(self, key: str, what: str) -> UsageError:
        return UsageError(f"{self.place(key)} {what}.", todo="Correct the configuration.")

    def unknown(self, key: str, known: list[str]) -> UsageError:
        return UsageError(f"{self.place(key)} is no key of exhume.", todo=f"Known keys here: {', '.join(known)}.")


def _value(where: _Where, key: str, name: str, value: Any, kind: str) -> Any:
    if kind == _TEXTS:
        if isinstance(value, str):
            return [value]
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return value
    elif kind == _FLAG:
        if isinstance(value, bool):
            return value
    elif isinstance(value, str):
        if name in _CHOICES and value not in _CHOICES[name]:
            raise where.wrong(key, f"is none of {', '.join(_CHOICES[name])}")
        return str(where.path.parent / value) if kind == _PATH else value
    raise where.wrong(key, f"is not {kind}")


def _suppressions(where: _Where, value: Any) -> tuple[Suppression, ...]:
    from exhume.audit.suppress import Suppression

    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise where.wrong("suppress", "is not an array of tables")
    found = []
    for number, entry in enumerate(value, 1):
        place = f"suppress[{number}]"
        for key, item in entry.items():
            if key not in _ENTRY:
                raise where.unknown(f"{place}.{key}", list(_ENTRY))
            if key != "until" and not (isinstance(item, str) and item.strip()):
                raise where.wrong(f"{place}.{key}", "is not a text")
        if "reason" not in entry:
            raise where.wrong(place, "has no reason")
        if not any(key in entry for key in ("rule", "session", "fingerprint")):
            raise where.wrong(place, "names no rule, session or fingerprint")
        texts = {key: item for key, item in entry.items() if key != "until"}
        texts["rule"] = _rule(where, place, entry["rule"]) if "rule" in entry else None
        until = _date(where, f"{place}.until", entry["until"]) if "until" in entry else None
        found.append(Suppression(**texts, until=until, place=where.place(place)))
    return tuple(found)


def _rule(where: _Where, place: str, wanted: str) -> str:
    """The id of a rule that is given by id or by name."""
    from exhume.audit.rule import catalogue

    for rule in catalogue():
        if wanted.lower() in (rule.id.lower(), rule.name):
            return rule.id
    raise UsageError(
        f"{where.place(f'{place}.rule')}: there is no rule {printable(wanted, limit=40)}.",
        todo="`exhume rules` lists them.",
    )


def _date(where: _Where, key: str, value: Any) -> date:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise where.wrong(key, "is not a date such as 2027-01-31")
