"""The entry point: runs a command and turns whatever goes wrong into one message and the documented exit code."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from types import FrameType
from typing import NoReturn

from exhume.errors import ExhumeError, ExitCode, Interrupted
from exhume.redact import mask_url, printable


def main() -> NoReturn:
    """Runs `exhume` with the arguments of the process and exits."""
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(run(sys.argv[1:]))


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
    except typer.Abort:
        complain(Interrupted("Interrupted.", todo="Nothing half-made was left; run the same command again."))
        return int(ExitCode.INTERRUPTED)
    except typer.TyperException as error:
        print(f"exhume: {printable(error.format_message())}", file=sys.stderr)
        print("  Run `exhume --help`, or the command with `--help`.", file=sys.stderr)
        return int(ExitCode.USAGE)
    except KeyboardInterrupt:
        complain(Interrupted("Interrupted.", todo="Nothing half-made was left; run the same command again."))
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # the reader of our output went away (`| head`): no message, and no second error when Python flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.INTERRUPTED)
    except MemoryError:
        print("exhume: out of memory.", file=sys.stderr)
        print("  Raise the memory limit of the process, or report the file as a bug of exhume.", file=sys.stderr)
        return int(ExitCode.INCOMPLETE)
    except Exception as error:  # noqa: BLE001 - the one edge: no traceback ever reaches a user
        return _internal(error)
    return code if isinstance(code, int) else int(ExitCode.DONE)


def complain(error: ExhumeError) -> None:
    """Prints what happened and what to do, on stderr, harmlessly."""
    print(f"exhume: {printable(mask_url(error.what))}", file=sys.stderr)
    for line in filter(None, error.todo.splitlines()):
        print(f"  {printable(mask_url(line))}", file=sys.stderr)


def _internal(error: Exception) -> int:
    import traceback

    details = mask_url("".join(traceback.format_exception(error)))
    with tempfile.NamedTemporaryFile(
        "w", prefix="exhume-error-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.write(details.encode("utf-8", "backslashreplace").decode("utf-8"))
    print(f"exhume: internal error ({type(error).__name__}); the details are in {file.name}", file=sys.stderr)
    print("  This is a bug of exhume: please report it with that file.", file=sys.stderr)
    return int(ExitCode.INTERNAL)


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise Interrupted("Ended by SIGTERM.", todo="Nothing half-made was left; run the same command again.")
