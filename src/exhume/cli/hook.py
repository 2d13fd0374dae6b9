"""What the pre-commit hooks run: one command of exhume for each of the files that pre-commit names.

usage: python -m exhume.cli.hook COMMAND [OPTION ...] -- FILE ...
"""

from __future__ import annotations

import sys
from typing import NoReturn

from exhume.cli.main import run
from exhume.cli.streams import secure


def main() -> NoReturn:
    """Runs the command once a file; exits with the highest code, 2 without a `--`."""
    secure()
    arguments = sys.argv[1:]
    if "--" not in arguments:
        print("exhume: usage: python -m exhume.cli.hook COMMAND [OPTION ...] -- FILE ...", file=sys.stderr)
        sys.exit(2)
    cut = arguments.index("--")
    command, files = arguments[:cut], arguments[cut + 1 :]
    sys.exit(max((run([*command, "--", file]) for file in files), default=0))


if __name__ == "__main__":
    main()
