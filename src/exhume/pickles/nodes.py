"""What a decoded pickle is made of, beside plain Python data: inert descriptions, never live objects.

Two families live here. The machine makes `GlobalRef`, `Instance` and `SetValue`; `values.py` turns the first two into
the value nodes (`ModelValue`, `EnumValue`, `Converted`), which are what `Decoded.value` may hold.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class GlobalRef:
    """A class or function that a pickle names. It is only ever a name: nothing is imported."""

    __slots__ = ("module", "name", "offset")

    def __init__(self, module: str, name: str, offset: int) -> None:
        self.module = module
        self.name = name
        self.offset = offset


class Instance:
    """What a pickle wants to be built by calling `func`: recorded, never called.

    Attributes:
        func: a `GlobalRef` in every honest pickle; hostile ones put anything here.
        args: a tuple in every honest pickle.
        kwargs: keyword arguments (NEWOBJ_EX), or None.
        state: argument of BUILD, or `NO_STATE`.
        items: members appended later (APPEND, APPENDS, ADDITEMS), or None.
        pairs: keys and values in turn, set later (SETITEM, SETITEMS), or None.
    """

    __slots__ = ("args", "func", "items", "kwargs", "offset", "pairs", "state")

    def __init__(self, func: Any, args: Any, offset: int) -> None:
        self.func = func
        self.args = args
        self.offset = offset
        self.kwargs: Any = None
        self.state: Any = NO_STATE
        self.items: list[Any] | None = None
        self.pairs: list[Any] | None = None


class _NoState:
    """Type of `NO_STATE`: None is a state that a pickle can give."""

    __slots__ = ()


NO_STATE = _NoState()


class SetValue:
    """A set or frozenset, its members in pickled order.

    A real set would order text anew in every process; a migration must give the same bytes on every run. Members are
    as pickled: an honest pickle repeats none.
    """

    __slots__ = ("frozen", "items")

    def __init__(self, items: list[Any], *, frozen: bool = False) -> None:
        self.items = items
        self.frozen = frozen


class ModelValue:
    """An object of a class with named fields: pydantic model, dataclass, or any other object by its attributes.

    Attributes:
        module, name: the class, by name only.
        fields: `__dict__` of the object (and its slots), by Python names, in pickled order.
        extra: `__pydantic_extra__`, None where there is none.
    """

    __slots__ = ("extra", "fields", "module", "name")

    def __init__(self, module: str, name: str, fields: dict[str, Any], extra: dict[str, Any] | None = None) -> None:
        self.module = module
        self.name = name
        self.fields = fields
        self.extra = extra


class EnumValue(NamedTuple):
    """A member of an enum.

    Attributes:
        value: its value, plain data. Of a member pickled by name only, and of an enum that is not one of ADK's, the
            value is not in the pickle: then it is the name of the member.
        member: the name where the pickle gives it, else None.
    """

    module: str
    name: str
    value: Any
    member: str | None = None


class Converted(NamedTuple):
    """A value that had to become another one, with the kind of that loss: encode `value` in its place, count `kind`.

    Kinds: `path-to-text`, `reference-to-text`, `exception-to-text (CLASS)`, `counter-to-object`, `deque-to-list`,
    `range-to-text`, `object-to-list`.
    """

    kind: str
    value: Any
