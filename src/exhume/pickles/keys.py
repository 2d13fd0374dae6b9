"""Guards the keys of dicts: hostile numbers can have hashes that are all alike, hostile tuples can take for ever."""

from __future__ import annotations

import sys
from typing import Any

from exhume.pickles.budget import Budget
from exhume.pickles.interface import MalformedPickle
from exhume.pickles.nodes import SetValue

#: Modulus of the hash of numbers, 2 ** 61 - 1 on 64-bit machines; smaller integers all hash differently.
_MODULUS = sys.hash_info.modulus
_DEEPEST_KEY = 20
#: Hashing costs as many steps as the key has parts, each time it is used.
_ALL_KEY_NODES = 1_000_000
#: Classes with a randomised hash, or with too few values of equal hash to matter.
_HARMLESS = frozenset({str, bytes, float, bool, type(None)})
_UNHASHABLE = frozenset({list, dict, bytearray})


class KeyGuard:
    """Checks every key of one value that is not text, before it is hashed."""

    __slots__ = ("_alike", "_budget", "_left")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._left = _ALL_KEY_NODES
        self._alike: dict[tuple[int, int], int] = {}

    def check(self, container: object, key: Any, offset: int) -> None:
        """Refuses keys that are unhashable, too large to hash, or one more of too many with the same hash.

        Raises:
            MalformedPickle: with `offset`.
        """
        kind = key.__class__
        if kind in _HARMLESS or (kind is int and -_MODULUS < key < _MODULUS):
            return
        if kind is tuple:
            self._left -= self._measure(key, self._budget.key_nodes, _DEEPEST_KEY, offset)
            if self._left < 0:
                raise MalformedPickle("the keys of dicts are too large", offset)
        elif kind in _UNHASHABLE or (kind is SetValue and not key.frozen):
            raise MalformedPickle("a key that Python cannot hash", offset)
        place = (id(container), hash(key))
        count = self._alike.get(place, 0) + 1
        self._alike[place] = count
        if count > self._budget.alike:
            raise MalformedPickle("too many keys with the same hash", offset)

    def _measure(self, key: tuple[Any, ...], left: int, depth: int, offset: int) -> int:
        """Number of values in a tuple, its own parts counted again each time they occur."""
        count = len(key)
        if count > left or depth == 0:
            raise MalformedPickle("a key of a dict is too large", offset)
        for part in key:
            kind = part.__class__
            if kind is tuple:
                count += self._measure(part, left - count, depth - 1, offset)
            elif kind in _UNHASHABLE or (kind is SetValue and not part.frozen):
                raise MalformedPickle("a key that Python cannot hash", offset)
        return count
