"""From inert nodes to plain data: the objects that genuine values hold, rebuilt by rules from checked arguments.

What `Decoded.value` may hold, at any depth (anything else is a bug here):

* None, bool, int (at most 4300 digits), float (NaN and infinities too), str (lone surrogates and NUL too), bytes, bytearray
* list, tuple, dict. `OrderedDict` and `defaultdict` are plain dicts in pickled order. Keys of a dict are hashable values
  of this list: str nearly always, else None, bool, int, float, bytes, tuple, `EnumValue`, datetime, Decimal, UUID, ...
* complex, datetime.datetime, date, time, timedelta, timezone, decimal.Decimal, uuid.UUID, real ones
* `SetValue`: set and frozenset, members in pickled order
* `ModelValue`: a pydantic model, dataclass or other object by its fields. `(module, name)` says which
* `EnumValue`: a member of an enum, by value
* `Converted`: a value that had to become another one, with the kind of that loss

Nesting is at most `Budget.depth`, there are no cycles, and the number of values, shared parts counted each time, is at
most `Budget.nodes`. Parts may be the same object: never change them.
"""
