from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time

import pytest

from exhume.errors import ExitCode, Interrupted
from exhume.migrate.signals import caught

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_raises_and_handlers_are_restored(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Interrupted, match=number.name) as error, caught():  # noqa: PT012
        os.kill(os.getpid(), number)
        time.sleep(5)
    assert error.value.exit_code is ExitCode.INTERRUPTED
    assert signal.getsignal(number) == before


def test_a_signal_waits_for_a_held_block() -> None:
    done = False
    with pytest.raises(Interrupted), caught() as signals:  # noqa: PT012
        with signals.held():
            os.kill(os.getpid(), signal.SIGTERM)
            done = True
        assert signals.received == "SIGTERM"
        signals.check()
    assert done


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with caught() as signals:
            os.kill(os.getpid(), signal.SIGHUP)
            assert signals.received is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_long_statement_is_ended() -> None:
    connection = sqlite3.connect(":memory:")
    start = time.monotonic()
    with pytest.raises(Interrupted), caught() as signals:  # noqa: PT012
        signals.watch(connection)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            connection.execute(ENDLESS)
        signals.check()
    assert time.monotonic() - start < 5
    connection.close()


def test_outside_of_the_main_thread_nothing_is_caught() -> None:
    seen: list[object] = []

    def work() -> None:
        with caught() as signals:
            seen.append(signals.received)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [None]
