"""Files that are part of a package."""

from __future__ import annotations

from pkgutil import get_data  # importlib.resources takes ten times as long to import


def packaged(package: str, name: str) -> bytes:
    """The bytes of a file in a package.

    Raises:
        OSError: there is no such file.
    """
    found = get_data(package, name)
    if found is None:
        raise FileNotFoundError(f"{package} cannot give {name}")
    return found
