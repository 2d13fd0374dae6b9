"""Every error that a user can cause: what happened, what to do, and the exit code it ends in."""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """The published table of exit codes; `exhume.cli.exits` alone decides which one a run ends in."""

    DONE = 0
    FINDINGS = 1
    USAGE = 2
    NOTHING_TO_LOOK_AT = 3
    REFUSED = 4
    INCOMPLETE = 5
    INTERNAL = 70
    INTERRUPTED = 130


class ExhumeError(Exception):
    """Base of all errors meant for a person.

    Args:
        what: one sentence, what happened. May hold text from a database: it is made printable when shown.
        todo: one sentence, what to do about it; empty when there is nothing to do.
    """

    exit_code: ExitCode = ExitCode.INTERNAL

    def __init__(self, what: str, *, todo: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.todo = todo

    def diagnostics(self) -> str:
        """What happened and what to do, as one text."""
        return f"{self.what} {self.todo}".strip()


class UsageError(ExhumeError):
    """An option or a configuration value that cannot be meant."""

    exit_code = ExitCode.USAGE


class NothingToLookAt(ExhumeError):
    """No such file, cannot connect, damaged, locked, encrypted, or no ADK database at all."""

    exit_code = ExitCode.NOTHING_TO_LOOK_AT


class Refused(ExhumeError):
    """A run that stopped on purpose before it wrote anything."""

    exit_code = ExitCode.REFUSED


class Incomplete(ExhumeError):
    """A run that could not finish: full disk, a source that changed under it."""

    exit_code = ExitCode.INCOMPLETE


class Interrupted(ExhumeError):
    """Ctrl-C or SIGTERM; nothing half-made is left."""

    exit_code = ExitCode.INTERRUPTED
