"""Ctrl-C, SIGTERM and SIGHUP during a migration: stop at once, clean up, leave nothing half-made."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from exhume.errors import Interrupted

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
#: virtual machine steps of SQLite between two looks at pending signals: some milliseconds
_STEPS = 200_000


class Signals:
    """What arrived; made by `caught`.

    A signal raises `Interrupted` where the program stands, except inside `held()`. Python runs handlers only between
    its own instructions, so long statements of SQLite must be `watched`: they then end in `sqlite3.OperationalError`,
    and the caller asks `check`.
    """

    def __init__(self) -> None:
        self.received: str | None = None
        self._held = 0

    def handle(self, number: int, _frame: FrameType | None) -> None:
        self.received = signal.Signals(number).name
        if not self._held:
            self.check()

    def check(self) -> None:
        """Raises:
        Interrupted: a signal has arrived.
        """
        if self.received is not None:
            raise Interrupted(
                f"stopped by {self.received}; nothing was left at the destination.",
                todo="Run the same command again, with --resume if you like: a file is made whole or not at all.",
            )

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Signals wait until the end of the block, and the block is never cut in two."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    def watch(self, connection: sqlite3.Connection) -> None:
        """Lets a signal end a statement that runs long inside SQLite."""
        # the callback itself need not do anything but be Python, so that a pending handler runs; what it raises
        # there is turned into the statement's end
        connection.set_progress_handler(lambda: self.received is not None and not self._held, _STEPS)


@contextlib.contextmanager
def caught() -> Iterator[Signals]:
    """Catches the signals that end a process, and restores their handlers afterwards.

    A signal that is ignored (a job under `nohup`) stays ignored. Outside the main thread Python allows no handlers:
    nothing is caught there.
    """
    signals = Signals()
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name in _SIGNALS:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, signals.handle)
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
