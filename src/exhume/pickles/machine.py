"""The opcode interpreter: pickle protocols 0 to 5 over bytes into plain values and inert nodes, nothing else.

It does what the standard unpickler does to its stack and memo, but a global becomes a `GlobalRef`, a call becomes an
`Instance`, and no class, function or module is ever looked up. What the opcodes mean: `pickletools` of CPython 3.14.
"""

from __future__ import annotations

import struct
from typing import Any

from exhume.pickles.budget import DEFAULT_BUDGET, Budget
from exhume.pickles.interface import MalformedPickle, NamedGlobal
from exhume.pickles.keys import KeyGuard
from exhume.pickles.nodes import NO_STATE, GlobalRef, Instance, SetValue
from exhume.pickles.opcodes import ATOMS, BUILDERS, OTHERS

_MEMOIZE, _NONE, _EMPTY_DICT = 0x94, 0x4E, 0x7D
#: How nearly every value of `actions` begins behind its FRAME, and how the state of a pydantic model goes on behind its
#: fields. Where exactly these bytes stand, one turn of the loop does what their opcodes do, memo and budgets included.
_MODULE, _CLASS, _DICT = "google.adk.events.event_actions", "EventActions", "__dict__"
_OPENING = (
    b"\x8c\x1fgoogle.adk.events.event_actions\x94\x8c\x0cEventActions\x94\x93\x94)\x81\x94"
    b"}\x94(\x8c\x08__dict__\x94}\x94("
)
_AT_GLOBAL, _AT_OBJECT = _OPENING.index(b"\x93"), _OPENING.index(b"\x81")
_EXTRA, _FIELDS_SET = "__pydantic_extra__", "__pydantic_fields_set__"
_BEHIND_FIELDS = b"\x8c\x12__pydantic_extra__\x94N\x8c\x17__pydantic_fields_set__\x94\x8f\x94("
_read_double = struct.Struct(">d").unpack_from
_read_u2 = struct.Struct("<H").unpack_from
_read_i4 = struct.Struct("<i").unpack_from
_read_u4 = struct.Struct("<I").unpack_from
_read_u8 = struct.Struct("<Q").unpack_from


class Machine:
    """One run over one value. A fresh machine per value: no value can change how another one decodes.

    Attributes:
        named: every global named so far, in order, also when the run ends in an error.
        refusal: the first opcode that is refused whatever it stands for; reading goes on after it, so that all globals
            of the value are listed.
        shared: was a list, dict, object or the like taken from the memo or duplicated? Only then can the result hold
            a cycle, or be larger than the pickle.
        fetched: characters and bytes of text taken from the memo.
        pos: offset of the next byte.
    """

    __slots__ = (
        "_keys",
        "_opcodes",
        "_room",
        "budget",
        "data",
        "fetched",
        "memo",
        "meta",
        "named",
        "pos",
        "protocol",
        "refusal",
        "shared",
        "stack",
    )

    def __init__(self, data: bytes, *, budget: Budget = DEFAULT_BUDGET) -> None:
        self.budget = budget
        self.named: list[NamedGlobal] = []
        self.shared = False
        self.fetched = 0
        self.pos = 0
        self.refusal: MalformedPickle | None = None
        self.data = data
        self._opcodes = budget.opcodes
        self._room = budget.containers
        self._keys: KeyGuard | None = None  # few values have a key that needs it
        self.stack: list[Any] = []
        self.meta: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.protocol = 0

    def run(self) -> Any:
        """Interprets one pickle from `pos` to its STOP and returns what it left on the stack.

        Raises:
            MalformedPickle: truncated, over budget, or not a pickle.
        """
        self.stack, self.meta, self.memo, self.protocol = [], [], {}, 0
        try:
            return self._run()
        except IndexError:
            problem = (
                "the pickle is cut short" if self.pos >= len(self.data) else "an opcode finds too little on the stack"
            )
        except KeyError:
            problem = "an opcode asks for a memo entry that was never made"
        except struct.error:
            problem = "the pickle is cut short"
        except UnicodeDecodeError:
            problem = "text that cannot be decoded"
        except (ValueError, OverflowError):
            problem = "a number or text that cannot be read"
        except MemoryError:
            problem = "the pickle needs more memory than there is"
        raise MalformedPickle(problem, min(self.pos, len(self.data)))

    # ------------------------------------------------------------------ the loop

    def _run(self) -> Any:
        # Local names for everything that is touched on each opcode: this loop decides how long a migration takes.
        # Branches stand in order of frequency in real values. A slice beyond the end of `data` is only short; that
        # shows at the next opcode, which is read by index.
        data = self.data
        size = len(data)
        pos = start = self.pos
        stack = self.stack
        push = stack.append
        meta = self.meta
        memo = self.memo
        size_of_memo = fetched = 0
        atoms = ATOMS
        opcodes = self._opcodes
        room = self._room
        marks = self.budget.marks
        try:
            for opcodes in range(self._opcodes, 0, -1):  # noqa: B007  what is left is kept for the next pickle
                start = pos
                op = data[pos]
                pos += 1
                if op == 0x8C:  # SHORT_BINUNICODE
                    end = pos + 1 + data[pos]
                    try:
                        text = data[pos + 1 : end].decode()
                    except UnicodeDecodeError:
                        text = data[pos + 1 : end].decode("utf-8", "surrogatepass")
                    pos = end
                    push(text)
                    if data[pos] == _MEMOIZE:  # nearly always: one turn of the loop less
                        memo[size_of_memo] = text
                        size_of_memo += 1
                        pos += 1
                        # a field that nobody set: half of all fields are None, and most others an empty dict
                        op = data[pos]
                        if op == _NONE:
                            push(None)
                            pos += 1
                        elif op == _EMPTY_DICT:
                            start = pos
                            pos += 1
                            room -= 1
                            if room < 0:
                                break
                            value: Any = {}
                            push(value)
                            if data[pos] == _MEMOIZE:
                                memo[size_of_memo] = value
                                size_of_memo += 1
                                pos += 1
                elif op == 0x94:  # MEMOIZE
                    memo[size_of_memo] = stack[-1]
                    size_of_memo += 1
                elif op == 0x4E:  # NONE
                    push(None)
                elif op == 0x7D:  # EMPTY_DICT
                    room -= 1
                    if room < 0:
                        break
                    value = {}
                    push(value)
                    if data[pos] == _MEMOIZE:
                        memo[size_of_memo] = value
                        size_of_memo += 1
                        pos += 1
                elif op == 0x68:  # BINGET
                    value = memo[data[pos]]
                    pos += 1
                    push(value)
                    kind = value.__class__
                    if kind is str:
                        fetched += len(value)
                    elif kind not in atoms and kind is not GlobalRef:
                        self.shared = True
                elif op == 0x28:  # MARK
                    if len(meta) >= marks:
                        raise MalformedPickle("too many open marks", start)
                    meta.append(stack)
                    stack = []
                    push = stack.append
                elif op == 0x75:  # SETITEMS
                    items = stack
                    stack = meta.pop()
                    push = stack.append
                    target = stack[-1]
                    if target.__class__ is not dict or len(items) & 1:
                        self.set_items(target, items, start)  # which knows objects, and refuses the rest
                    else:
                        keys = items[::2]
                        for key in keys:
                            if key.__class__ is not str:
                                self.set_items(target, items, start)
                                break
                        else:
                            target.update(zip(keys, items[1::2], strict=True))
                    if room > 0 and len(meta) < marks and data.startswith(_BEHIND_FIELDS, pos):
                        room -= 1
                        value = SetValue([])
                        stack += (_EXTRA, None, _FIELDS_SET, value)
                        memo[size_of_memo] = _EXTRA
                        memo[size_of_memo + 1] = _FIELDS_SET
                        memo[size_of_memo + 2] = value
                        size_of_memo += 3
                        pos += len(_BEHIND_FIELDS)
                        meta.append(stack)
                        stack = []
                        push = stack.append
                elif op == 0x93:  # STACK_GLOBAL
                    name = stack.pop()
                    module = stack.pop()
                    if name.__class__ is not str or module.__class__ is not str:
                        raise MalformedPickle("the name of a global is not text", start)
                    push(self.global_named(module, name, start))
                elif op == 0x29:  # EMPTY_TUPLE
                    push(())
                elif op == 0x81 or op == 0x52:  # NEWOBJ, REDUCE  # noqa: PLR1714 - membership takes longer
                    args = stack.pop()
                    room -= 1
                    if room < 0:
                        break
                    stack[-1] = Instance(stack[-1], args, start)
                elif op == 0x62:  # BUILD
                    state = stack.pop()
                    target = stack[-1]
                    if target.__class__ is not Instance or target.state is not NO_STATE:
                        raise MalformedPickle("a state is set on what is no new object", start)
                    target.state = state
                elif op == 0x8F:  # EMPTY_SET
                    room -= 1
                    if room < 0:
                        break
                    push(SetValue([]))
                elif op == 0x90:  # ADDITEMS
                    items = stack
                    stack = meta.pop()
                    push = stack.append
                    self.add_items(stack[-1], items, start)
                elif op == 0x4B:  # BININT1
                    push(data[pos])
                    pos += 1
                elif op == 0x73:  # SETITEM
                    value = stack.pop()
                    self.set_items(stack[-2], [stack.pop(), value], start)
                elif op == 0x88:  # NEWTRUE
                    push(True)
                elif op == 0x89:  # NEWFALSE
                    push(False)
                elif op == 0x47:  # BINFLOAT
                    push(_read_double(data, pos)[0])
                    pos += 8
                elif op == 0x71:  # BINPUT
                    memo[data[pos]] = stack[-1]
                    size_of_memo = len(memo)
                    pos += 1
                elif op == 0x58:  # BINUNICODE
                    end = pos + 4 + _read_u4(data, pos)[0]
                    if end > size:
                        raise MalformedPickle("a text is longer than what is left of the pickle", start)
                    push(data[pos + 4 : end].decode("utf-8", "surrogatepass"))
                    pos = end
                elif op == 0x85:  # TUPLE1
                    room -= 1
                    if room < 0:
                        break
                    stack[-1] = (stack[-1],)
                elif op == 0x5D:  # EMPTY_LIST
                    room -= 1
                    if room < 0:
                        break
                    push([])
                elif op == 0x65:  # APPENDS
                    items = stack
                    stack = meta.pop()
                    push = stack.append
                    self.append_items(stack[-1], items, start)
                elif op == 0x95:  # FRAME
                    if _read_u8(data, pos)[0] > size - pos - 8:
                        raise MalformedPickle("a frame is longer than what is left of the pickle", start)
                    pos += 8
                    if not memo and room >= 3 and len(meta) + 2 <= marks and data.startswith(_OPENING, pos):
                        room -= 3
                        named = self.global_named(_MODULE, _CLASS, pos + _AT_GLOBAL)
                        value = Instance(named, (), pos + _AT_OBJECT)
                        inner: dict[Any, Any] = {}
                        fields: dict[Any, Any] = {}
                        memo.update(enumerate((_MODULE, _CLASS, named, value, inner, _DICT, fields)))
                        size_of_memo = 7
                        pos += len(_OPENING)
                        stack += (value, inner)
                        meta += (stack, [_DICT, fields])
                        stack = []
                        push = stack.append
                elif op == 0x4A:  # BININT
                    push(_read_i4(data, pos)[0])
                    pos += 4
                elif op == 0x4D:  # BININT2
                    push(_read_u2(data, pos)[0])
                    pos += 2
                elif op == 0x72:  # LONG_BINPUT
                    memo[_read_u4(data, pos)[0]] = stack[-1]
                    size_of_memo = len(memo)
                    pos += 4
                elif op == 0x2E:  # STOP
                    value = stack.pop()
                    if meta:
                        raise MalformedPickle("the pickle ends inside a mark", start)
                    if self.fetched + fetched > self.budget.text:
                        raise MalformedPickle("repeated text makes the value too large", start)
                    return value
                else:
                    handler = OTHERS.get(op)
                    if handler is None:
                        raise MalformedPickle(f"0x{op:02x} is no opcode", start)
                    if op in BUILDERS:
                        room -= 1
                        if room < 0:
                            break
                    self.pos = pos
                    self.stack = stack
                    handler(self, start)
                    pos = self.pos
                    size_of_memo = len(memo)
                    if stack is not self.stack:
                        stack = self.stack
                        push = stack.append
            raise MalformedPickle("too many objects" if room < 0 else "too many opcodes", start, over_budget=True)
        finally:
            self.pos = pos
            self.stack = stack
            self._opcodes = opcodes - 1
            self._room = room
            self.fetched += fetched

    # ------------------------------------------------------- used by the opcodes

    def global_named(self, module: str, name: str, offset: int) -> GlobalRef:
        """Notes that the pickle names `module.name` at `offset`."""
        if len(module) + len(name) > self.budget.name:
            raise MalformedPickle("the name of a global is too long to be one", offset)
        if len(self.named) >= self.budget.globals:
            raise MalformedPickle("too many globals are named", offset, over_budget=True)
        if self.protocol < 3:
            module, name = python3_name(module, name)
        self.named.append(NamedGlobal(module, name, offset))
        return GlobalRef(module, name, offset)

    def fetch(self, value: Any) -> Any:
        """Accounts for a value that occurs once more: from the memo, or duplicated."""
        kind = value.__class__
        if kind is str or kind is bytes:
            self.fetched += len(value)
        elif kind not in ATOMS and kind is not GlobalRef:
            self.shared = True
        return value

    def pop_mark(self) -> list[Any]:
        """Everything above the newest mark, which goes."""
        items = self.stack
        self.stack = self.meta.pop()
        return items

    def set_items(self, target: Any, items: list[Any], offset: int) -> None:
        """SETITEM and SETITEMS: keys and values in turn."""
        if len(items) & 1:
            raise MalformedPickle("a key without a value", offset)
        if target.__class__ is dict:
            for key, value in zip(items[::2], items[1::2], strict=True):
                if key.__class__ is not str:
                    if self._keys is None:
                        self._keys = KeyGuard(self.budget)
                    self._keys.check(target, key, offset)
                target[key] = value
        elif target.__class__ is Instance:
            if target.pairs is None:
                target.pairs = []
            target.pairs.extend(items)
        else:
            raise MalformedPickle("items are set on what is no dict", offset)

    def append_items(self, target: Any, items: list[Any], offset: int) -> None:
        """APPEND and APPENDS."""
        if target.__class__ is list:
            target.extend(items)
        elif target.__class__ is Instance:
            if target.items is None:
                target.items = []
            target.items.extend(items)
        else:
            raise MalformedPickle("items are appended to what is no list", offset)

    def add_items(self, target: Any, items: list[Any], offset: int) -> None:
        """ADDITEMS."""
        if target.__class__ is SetValue and not target.frozen:
            target.items.extend(items)
        elif target.__class__ is Instance:
            self.append_items(target, items, offset)
        else:
            raise MalformedPickle("members are added to what is no set", offset)


def python3_name(module: str, name: str) -> tuple[str, str]:
    """The Python 3 name of a global of protocols 0 to 2, as the standard unpickler maps it."""
    # plain tables of text, the same that `pickle` uses
    from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING

    if (module, name) in NAME_MAPPING:
        return NAME_MAPPING[module, name]
    return IMPORT_MAPPING.get(module, module), name
