"""From inert nodes to plain data: the objects that genuine values hold, rebuilt by rules from checked arguments.

What `Decoded.value` may hold, at any depth (anything else is a bug here):

* None, bool, int (at most 4300 digits), float (NaN and infinities too), str (lone surrogates and NUL too), bytes,
  bytearray
* list, tuple, dict. `OrderedDict` and `defaultdict` are plain dicts in pickled order. Keys of a dict are hashable
  values of this list: str nearly always, else None, bool, int, float, bytes, tuple, `EnumValue`, datetime, Decimal, ...
* complex, datetime.datetime, date, time, timedelta, timezone, decimal.Decimal, uuid.UUID, real ones
* `SetValue`: set and frozenset, members in pickled order
* `ModelValue`: a pydantic model, dataclass or other object by its fields. `(module, name)` says which
* `EnumValue`: a member of an enum, by value
* `Converted`: a value that had to become another one, with the kind of that loss

Nesting is at most `Budget.depth`, there are no cycles, and the number of values, shared parts counted each time, is at
most `Budget.nodes`. Parts may be the same object: never change them.
"""

from __future__ import annotations

from typing import Any

from exhume.pickles.allowed import Allowed
from exhume.pickles.budget import DEFAULT_BUDGET, Budget
from exhume.pickles.builders import BUILDERS, builtin_text, deque_of, exception_text, is_exception, uuid_of
from exhume.pickles.interface import MalformedPickle, NamedGlobal, UnsafeGlobal
from exhume.pickles.keys import KeyGuard
from exhume.pickles.measure import measure
from exhume.pickles.nodes import NO_STATE, Converted, EnumValue, GlobalRef, Instance, ModelValue, SetValue
from exhume.pickles.opcodes import ATOMS

#: Bases that `copyreg._reconstructor` may name, and what a class of that base becomes.
_PLAIN_BASES = frozenset({"int", "float", "str", "bytes", "list", "tuple", "dict", "set", "frozenset", "complex"})
_MAPPINGS = frozenset({("collections", "OrderedDict"), ("collections", "defaultdict")})


def rebuild(root: Any, *, allowed: Allowed, shared: bool, length: int, budget: Budget = DEFAULT_BUDGET) -> Any:
    """Turns what the machine made into plain data. Lists and dicts are changed in place.

    Args:
        root: the machine's result; all globals in it are known to be permitted.
        shared: may parts occur more than once? Then the size with all of them written out is checked first.
        length: bytes of the pickle, for the text that it holds itself.

    Raises:
        MalformedPickle: arguments that the named type never has, a cycle, too deep or too large.
        UnsafeGlobal: a permitted global in a place where it would be more than data.
    """
    if shared:
        measure(root, length=length, budget=budget)
    return _Rebuilder(allowed, budget, shared=shared).value(root, budget.depth)


class _Rebuilder:
    """One walk over one value. `done` keeps the nodes themselves, so that an id cannot be used twice."""

    __slots__ = ("_allowed", "_done", "_keys", "_shared")

    def __init__(self, allowed: Allowed, budget: Budget, *, shared: bool) -> None:
        self._allowed = allowed
        self._shared = shared
        self._done: dict[int, tuple[Any, Any]] = {}
        self._keys = KeyGuard(budget)

    def value(self, node: Any, depth: int) -> Any:
        """The plain form of one node; `depth` is how many levels are left."""
        kind = node.__class__
        if kind in ATOMS:
            return node
        if depth <= 0:
            raise MalformedPickle("the value is nested too deep", 0)
        if not self._shared:
            return self._made(node, kind, depth - 1)
        known = self._done.get(id(node))
        if known is not None:
            return known[1]
        made = self._made(node, kind, depth - 1)
        self._done[id(node)] = (node, made)
        return made

    def _made(self, node: Any, kind: type, depth: int) -> Any:
        if kind is dict:
            return self._dict(node, depth)
        if kind is list:
            for place, item in enumerate(node):
                if item.__class__ not in ATOMS:
                    node[place] = self.value(item, depth)
            return node
        if kind is Instance:
            return self._instance(node, depth)
        if kind is tuple:
            return tuple([self.value(item, depth) for item in node])
        if kind is SetValue:
            node.items = [self.value(item, depth) for item in node.items]
            return node
        if kind is GlobalRef:
            return self._reference(node)
        return node  # bytearray

    def _dict(self, node: dict[Any, Any], depth: int) -> dict[Any, Any]:
        text_keys = True
        for key, item in node.items():
            if key.__class__ is not str:
                text_keys = False
            # an empty container is what it is; most are
            if item.__class__ not in ATOMS and item:
                node[key] = self.value(item, depth)  # an existing key: the dict keeps its size
        if text_keys:
            return node
        made: dict[Any, Any] = {}
        for key, item in node.items():
            made[self._key(key, made, depth)] = item
        return made

    def _key(self, node: Any, container: dict[Any, Any], depth: int) -> Any:
        key = self.value(node, depth)
        if key.__class__ is SetValue:
            key = tuple(key.items)  # a frozenset as a key: what counts is what it holds
        if key.__class__ is ModelValue:
            raise MalformedPickle("an object is the key of a dict, which JSON has no form for", 0)
        try:
            self._keys.check(container, key, 0)
        except TypeError as error:
            raise MalformedPickle("a key that Python cannot hash", 0) from error
        return key

    def _reference(self, node: GlobalRef) -> Converted:
        entry = self._allowed.entry(node.module, node.name)
        if entry is not None and entry.kind == "form":
            raise _unsafe(node)
        known = builtin_text(node.name) if node.module == "builtins" else None
        return Converted("reference-to-text", known or f"{node.module}.{node.name}")

    # ------------------------------------------------------------------ objects

    def _instance(self, node: Instance, depth: int) -> Any:
        func = node.func
        if func.__class__ is Instance:
            func = self._class_method(func)
        if func.__class__ is not GlobalRef or node.args.__class__ is not tuple:
            raise MalformedPickle("an object is made from what is no class", node.offset)
        entry = self._allowed.entry(func.module, func.name)
        try:
            if entry is None:
                return self._besides(node, func, depth)
            if entry.kind == "model":
                return self._model(node, func, depth)
            if entry.kind == "enum":
                return self._enum(node, func, depth)
            if entry.kind == "form":
                return self._form(node, func, depth)
            return self._standard(node, func, depth)
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            raise MalformedPickle(f"{func.module}.{func.name} with arguments that it never has", node.offset) from error

    def _args(self, node: Instance, depth: int) -> tuple[Any, ...]:
        if node.kwargs:
            raise MalformedPickle("keyword arguments where none are written", node.offset)
        return tuple([self.value(item, depth) for item in node.args])

    def _model(self, node: Instance, func: GlobalRef, depth: int) -> ModelValue:
        """A pydantic 2 model: NEWOBJ without arguments, then its state."""
        state = node.state
        if node.args or node.kwargs or node.items or node.pairs or state.__class__ is not dict:
            raise MalformedPickle(f"{func.module}.{func.name} without the state of a model", node.offset)
        return self._pydantic(func, state, depth, node.offset)

    def _pydantic(self, func: GlobalRef, state: dict[Any, Any], depth: int, offset: int) -> ModelValue:
        # `__pydantic_fields_set__` and `__pydantic_private__` never reach JSON
        fields = state.get("__dict__")
        extra = state.get("__pydantic_extra__")
        if fields.__class__ is not dict or (extra is not None and extra.__class__ is not dict):
            raise MalformedPickle(f"{func.module}.{func.name} without the state of a model", offset)
        made = self.value(fields, depth)
        more = self.value(extra, depth)
        # a dict stays the same one exactly when all its keys are text (`_dict`), which then need no second look
        for key in (*(() if made is fields else made), *(more or ())):
            if key.__class__ is not str:
                raise MalformedPickle(f"{func.module}.{func.name} with a field whose name is no text", offset)
        return ModelValue(func.module, func.name, made, more or None)

    def _enum(self, node: Instance, func: GlobalRef, depth: int) -> EnumValue:
        """A member by its value: `cls(value)`."""
        (value,) = self._args(node, depth)
        if value.__class__ not in ATOMS or node.items or node.pairs:
            raise MalformedPickle(f"{func.module}.{func.name} with a value that no member has", node.offset)
        return EnumValue(func.module, func.name, value)

    def _form(self, node: Instance, func: GlobalRef, depth: int) -> Any:
        """How protocols 0 to 2, and enums pickled by name, spell values: unsafe in any other shape."""
        if func.name == "_reconstructor" and len(node.args) == 3:
            return self._reconstructed(node, depth)
        if func.name == "__newobj__" and node.args and node.args[0].__class__ is GlobalRef:
            return self._instance(_copied(node, node.args[0], node.args[1:]), depth)
        if func.name == "getattr" and len(node.args) == 2:
            return self._member(node, func)
        if func.name == "encode":
            try:
                return BUILDERS[func.module, func.name](self._args(node, depth))
            except ValueError:
                raise _unsafe(func) from None
        raise _unsafe(func)

    def _reconstructed(self, node: Instance, depth: int) -> Any:
        """`copyreg._reconstructor(cls, base, state of the base)`."""
        cls, base, value = node.args
        if cls.__class__ is not GlobalRef or base.__class__ is not GlobalRef or base.module != "builtins":
            raise _unsafe(node.func)
        if base.name == "object" and value is None:
            return self._instance(_copied(node, cls, ()), depth)
        if base.name in _PLAIN_BASES:
            made = _copied(node, cls, (value,))
            if value.__class__ in (dict, list) and self._allowed.entry(cls.module, cls.name) is None:
                # a dict or list of a class of its own: as protocols from 2 on write it
                made.args = ()
                if isinstance(value, dict):
                    made.pairs = [part for pair in value.items() for part in pair]
                else:
                    made.items = value
            return self._instance(made, depth)
        raise _unsafe(node.func)

    def _class_method(self, node: Instance) -> GlobalRef | None:
        """`getattr(cls, name)` where something is called: only what a builder stands for, such as zones by name."""
        func, args = node.func, node.args
        if func.__class__ is not GlobalRef or (func.module, func.name) != ("builtins", "getattr"):
            return None
        cls, name = args if args.__class__ is tuple and len(args) == 2 else (None, None)
        if cls.__class__ is GlobalRef and (cls.module, f"{cls.name}.{name}") in BUILDERS:
            return GlobalRef(cls.module, f"{cls.name}.{name}", cls.offset)
        raise _unsafe(func)

    def _member(self, node: Instance, func: GlobalRef) -> EnumValue:
        """`getattr(cls, name)`, of an enum only and by a plain name only."""
        cls, name = node.args
        if cls.__class__ is not GlobalRef or name.__class__ is not str or not name.isidentifier() or name[0] == "_":
            raise _unsafe(func)
        entry = self._allowed.entry(cls.module, cls.name)
        if entry is None:
            return EnumValue(cls.module, cls.name, name, name)
        if name not in entry.members:
            raise _unsafe(func)
        return EnumValue(cls.module, cls.name, entry.members[name], name)

    def _standard(self, node: Instance, func: GlobalRef, depth: int) -> Any:
        place = (func.module, func.name)
        if place == ("uuid", "UUID"):
            return uuid_of(self._fields(node, depth))
        if place in _MAPPINGS:
            return self._mapping(node, func, depth)
        if node.state is not NO_STATE or node.items or node.pairs:
            raise MalformedPickle(f"{func.module}.{func.name} with a state that it never has", node.offset)
        return BUILDERS[place](self._args(node, depth))

    def _mapping(self, node: Instance, func: GlobalRef, depth: int) -> dict[Any, Any]:
        """`OrderedDict()` and `defaultdict(factory)`, then their items; a factory is only a name, and falls away."""
        factory = node.args[0] if node.args else None
        if len(node.args) > 1 or node.kwargs or not (factory is None or factory.__class__ is GlobalRef):
            raise MalformedPickle(f"{func.module}.{func.name} with arguments that it never has", node.offset)
        if factory is not None:
            self._reference(factory)
        return self._pairs(node, depth)

    def _pairs(self, node: Instance, depth: int) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        items = node.pairs or []
        for key, item in zip(items[::2], items[1::2], strict=True):
            made[self._key(key, made, depth)] = self.value(item, depth)
        return made

    # ---------------------------------------------- what the user allows besides

    def _besides(self, node: Instance, func: GlobalRef, depth: int) -> Any:
        """An object of a class about which nothing is known but its name: by what was pickled of it."""
        place = (func.module, func.name)
        if place == ("collections", "deque"):
            return Converted("deque-to-list", deque_of(self._args(node, depth)) + self._items(node, depth))
        if place in BUILDERS:
            return BUILDERS[place](self._args(node, depth))
        if is_exception(*place):
            return exception_text(func.name, self._args(node, depth))
        state = node.state
        if state.__class__ is dict and "__dict__" in state and "__pydantic_fields_set__" in state:
            return self._pydantic(func, state, depth, node.offset)
        args = self._args(node, depth)
        fields = self._fields(node, depth)
        if node.pairs and not args and not fields:
            return self._pairs(node, depth)
        if node.items and not args and not fields:
            return Converted("object-to-list", self._items(node, depth))
        if args and not fields and not node.pairs and not node.items:
            # an enum gives its value, a named tuple its members
            return EnumValue(*place, args[0]) if len(args) == 1 else Converted("object-to-list", list(args))
        if args:
            fields.setdefault("args", list(args))
        if node.items:
            fields.setdefault("items", self._items(node, depth))
        if node.pairs:
            fields.setdefault("pairs", self._pairs(node, depth))
        return ModelValue(*place, fields)

    def _items(self, node: Instance, depth: int) -> list[Any]:
        return [self.value(item, depth) for item in node.items or ()]

    def _fields(self, node: Instance, depth: int) -> dict[str, Any]:
        """Attributes from a state: `__dict__`, or a pair of it and the slots. Any other state is a field `state`."""
        state = node.state
        if state is NO_STATE or state is None:
            return {}
        parts = state if state.__class__ is tuple and len(state) == 2 else (state, None)
        if any(part is not None and part.__class__ is not dict for part in parts):
            return {"state": self.value(state, depth)}
        made: dict[str, Any] = {}
        for part in parts:
            for key, item in (part or {}).items():
                if key.__class__ is not str:
                    raise MalformedPickle("an attribute whose name is no text", node.offset)
                made[key] = self.value(item, depth)
        return made


def _copied(node: Instance, func: GlobalRef, args: tuple[Any, ...]) -> Instance:
    """The same object, made by `func(*args)`."""
    made = Instance(func, args, node.offset)
    made.state, made.items, made.pairs = node.state, node.items, node.pairs
    return made


def _unsafe(named: GlobalRef) -> UnsafeGlobal:
    return UnsafeGlobal((NamedGlobal(named.module, named.name, named.offset),))
