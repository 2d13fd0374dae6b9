"""The entry point: runs a command and turns whatever goes wrong into one message and the documented exit code."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from exhume.cli.streams import secure
from exhume.errors import ExhumeError, ExitCode, Interrupted
from exhume.redact import mask_url, printable


def main() -> NoReturn:
    """Runs `exhume` with the arguments of the process and exits."""
    # imports make many objects and no garbage; looking for it after every 700 is a tenth of the start
    gc.set_threshold(50_000, *gc.get_threshold()[1:])
    secure()
    try:
        # Python's own KeyboardInterrupt would end in typer, without a word
        _on_signal(_interrupted)
        code = run(sys.argv[1:])
        _on_signal(signal.SIG_IGN)  # the run is over, and its exit code stands while Python ends
    except Interrupted as error:  # while modules are imported, or another error is told
        _on_signal(signal.SIG_IGN)
        complain(error)
        code = int(error.exit_code)
    with suppress(ExhumeError, OSError):  # what an error left there
        sys.stdout.flush()
    gc.freeze()  # the last search for garbage would take a tenth of a short run, for memory that goes with the process
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Runs one command; the exit code is the result, an error's message is already on stderr."""
    import typer

    from exhume.cli.app import build

    try:
        code = build().main(args=arguments, prog_name="exhume", standalone_mode=False)
        sys.stdout.flush()
    except ExhumeError as error:
        complain(error)
        return int(error.exit_code)
    except typer.TyperException as error:
        # typer passes on how pydantic begins a message
        print(f"exhume: {printable(error.format_message().replace(': Value error, ', ': '))}", file=sys.stderr)
        print("  Run `exhume --help`, or the command with `--help`.", file=sys.stderr)
        return int(ExitCode.USAGE)
    except BrokenPipeError:  # the reader went away (`| head`) and wants no message
        return int(ExitCode.INTERRUPTED)
    except MemoryError:
        print("exhume: out of memory.", file=sys.stderr)
        print("  Raise the memory limit of the process, or report the file as a bug of exhume.", file=sys.stderr)
        return int(ExitCode.INCOMPLETE)
    except Exception as error:  # noqa: BLE001 - the one edge: no traceback ever reaches a user
        # Python 3.11 wraps what `__set_name__` raises, where a signal may land while a module is imported
        if isinstance(error.__cause__, Interrupted):
            complain(error.__cause__)
            return int(ExitCode.INTERRUPTED)
        return _internal(error)
    return code if isinstance(code, int) else int(ExitCode.DONE)


def complain(error: ExhumeError) -> None:
    """Prints what happened and what to do, on stderr, harmlessly."""
    print(f"exhume: {printable(mask_url(error.what))}", file=sys.stderr)
    for line in filter(None, error.todo.splitlines()):
        print(f"  {printable(mask_url(line))}", file=sys.stderr)


def _internal(error: Exception) -> int:
    import traceback

    print(
        f"exhume: internal error ({type(error).__name__}); {_kept(traceback.format_exception(error))}", file=sys.stderr
    )
    print("  This is a bug of exhume: please report it with the details.", file=sys.stderr)
    return int(ExitCode.INTERNAL)


def _kept(details: list[str]) -> str:
    """Keeps the details of an internal error in a file; says where, or why not."""
    import tempfile

    try:
        with tempfile.NamedTemporaryFile("wb", prefix="exhume-error-", suffix=".txt", delete=False) as file:
            file.write(mask_url("".join(details)).encode("utf-8", "backslashreplace"))
    except OSError as error:
        return f"the details could not be kept: {error.strerror}"
    return f"the details are in {file.name}"


def _on_signal(do: Callable[[int, FrameType | None], NoReturn] | signal.Handlers) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, do)


def _interrupted(number: int, _frame: FrameType | None) -> NoReturn:
    raise Interrupted(
        f"Ended by {signal.Signals(number).name}.", todo="Nothing half-made was left; run the same command again."
    )
