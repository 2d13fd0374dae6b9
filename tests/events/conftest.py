"""Readers for the tests of this stage; their stores are closed at the end of each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.events.building import Reading


@pytest.fixture
def reading() -> Iterator[Reading]:
    """`reading(path, timezone=...)` is the reader of a file."""
    opened = Reading()
    yield opened
    opened.close()
