"""placeholder"""

from __future__ import annotations

from typing import Any


def looks_camel(data: dict[str, Any], text: str) -> bool:
    return "invocationId" in data


def canonical(data: dict[str, Any]) -> dict[str, Any]:
    return data
