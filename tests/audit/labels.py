"""The labels of the fixtures: what each session of a database must and may be found to hold."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tests.conftest import FIXTURES


@cache
def labels(file: str) -> list[dict[str, Any]]:
    """The labels of all databases in one file of `fixtures/incidents`."""
    found: list[dict[str, Any]] = json.loads((FIXTURES / "incidents" / file).read_text())["databases"]
    return found


def labelled(name: str, rule: str) -> list[dict[str, Any]]:
    """The labels of the sessions of one incident in which a rule must find something."""
    (entry,) = [one for one in labels("labels.json") if one["file"] == f"{name}.db"]
    return [session for session in entry["sessions"] if rule in session["must"]]
