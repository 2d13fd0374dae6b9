"""How large a value is with its shared parts written out, before anything of that size is made: stops memo bombs."""

from __future__ import annotations

from typing import Any, NamedTuple

from exhume.pickles.budget import Budget
from exhume.pickles.interface import MalformedPickle
from exhume.pickles.nodes import NO_STATE, GlobalRef, Instance, SetValue


class _Size(NamedTuple):
    """Of one node: values in it, characters of text in it, levels below it."""

    nodes: int
    text: int
    height: int


def measure(root: Any, *, length: int, budget: Budget) -> None:
    """Refuses cycles, and values whose written-out size is beyond the budget. Visits each node once.

    Args:
        length: bytes of the pickle: text up to that length is no surprise.

    Raises:
        MalformedPickle: which of the limits it is.
    """
    size = _measure(root, budget.depth, {}, budget)
    if size.text > budget.text + length:
        raise MalformedPickle("repeated text makes the value too large", 0)


def _measure(node: Any, depth: int, known: dict[int, _Size | None], budget: Budget) -> _Size:
    kind = node.__class__
    if kind is str or kind is bytes or kind is bytearray:
        return _Size(1, len(node), 0)
    parts = _parts(node, kind)
    if parts is None:
        return _Size(1, 0, 0)
    if id(node) in known:
        size = known[id(node)]
        if size is None:
            raise MalformedPickle("the value contains itself", 0)
        if size.height >= depth:
            raise MalformedPickle("the value is nested too deep", 0)
        return size
    if depth <= 0:
        raise MalformedPickle("the value is nested too deep", 0)
    known[id(node)] = None
    nodes, text, height = 1, 0, 0
    for part in parts:
        size = _measure(part, depth - 1, known, budget)
        nodes += size.nodes
        text += size.text
        height = max(height, size.height + 1)
        if nodes > budget.nodes:
            raise MalformedPickle("shared parts make the value too large", 0)
    known[id(node)] = size = _Size(nodes, text, height)
    return size


def _parts(node: Any, kind: type) -> list[Any] | None:
    """The nodes directly inside; None for what has none."""
    if kind is dict:
        return [*node.keys(), *node.values()]
    if kind is list or kind is tuple:
        return list(node)
    if kind is SetValue:
        return list(node.items)
    if kind is not Instance:
        return None
    parts = [node.args, *(node.items or ()), *(node.pairs or ())]
    if node.func.__class__ is not GlobalRef:
        parts.append(node.func)
    if node.kwargs is not None:
        parts.append(node.kwargs)
    if node.state is not NO_STATE:
        parts.append(node.state)
    return parts
