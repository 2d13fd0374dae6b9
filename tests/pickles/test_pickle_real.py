"""Every value of the real databases decodes to what google-adk itself unpickles, under a list of names only."""

from __future__ import annotations

import enum
import importlib
import io
import pathlib
import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pydantic
import pytest

from exhume.pickles.allowed import Allowed, reviewed
from exhume.pickles.decoder import Decoder
from exhume.pickles.interface import UnsafeGlobal
from exhume.pickles.nodes import Converted, EnumValue, ModelValue, SetValue

V0 = [
    "db-1.0.0-ny",
    "db-1.14.1-utc",
    "db-1.18.0-ny",
    "db-1.18.0-utc-py313",
    "db-1.21.0-ny",
    "db-1.21.0-utc",
    "db-2.13.0-utc-over-1.21.0",
]
#: What the pickles of these databases name besides the reviewed set.
GENUINE_BUT_REFUSED = (
    "shop_models.*",
    "collections.Counter",
    "collections.deque",
    "builtins.range",
    "builtins.ValueError",
    "builtins.len",
)


def values_of(path: Path) -> list[bytes]:
    connection = sqlite3.connect(path)
    values = [blob for (blob,) in connection.execute("SELECT DISTINCT actions FROM events")]
    connection.close()
    return values


class RealUnpickler(pickle.Unpickler):
    """The standard unpickler, kept to the reviewed set."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in reviewed():
            raise pickle.UnpicklingError(f"{module}.{name}")
        # Python 3.13 names the module of paths otherwise
        return getattr(importlib.import_module(module.removesuffix("._local")), name)


def described(value: Any) -> Any:
    """A real object and a decoded one in the same words."""
    if isinstance(value, pydantic.BaseModel):
        extra = value.__pydantic_extra__ or None
        return (
            "model",
            type(value).__module__,
            type(value).__qualname__,
            [(name, described(item)) for name, item in value.__dict__.items()],
            described(extra),
        )
    if isinstance(value, ModelValue):
        fields = [(name, described(item)) for name, item in value.fields.items()]
        return ("model", value.module, value.name, fields, described(value.extra))
    if isinstance(value, enum.Enum):
        return ("enum", type(value).__module__, type(value).__qualname__, value.value)
    if isinstance(value, EnumValue):
        return ("enum", value.module, value.name, value.value)
    if isinstance(value, pathlib.PurePath):
        return ("path-to-text", str(value))
    if isinstance(value, Converted):
        return (value.kind, value.value)
    if isinstance(value, SetValue):
        return ("set", value.frozen, sorted(repr(described(item)) for item in value.items))
    if isinstance(value, set | frozenset):
        return ("set", isinstance(value, frozenset), sorted(repr(described(item)) for item in value))
    if isinstance(value, dict):
        return ("dict", [(described(key), described(item)) for key, item in value.items()])
    if isinstance(value, list | tuple):
        return (type(value).__name__, [described(item) for item in value])
    return (type(value).__name__, repr(value))


@pytest.mark.parametrize("name", V0)
def test_the_same_as_google_adk_unpickles(name: str, adk_db: Callable[[str], Path]) -> None:
    decoder = Decoder()
    read = refused = 0
    for blob in values_of(adk_db(name)):
        made = decoder.decode(blob)
        assert made.trailing is None
        unsafe: str | None = None
        try:
            expected = RealUnpickler(io.BytesIO(blob)).load()
        except pickle.UnpicklingError as error:
            unsafe = str(error)
        if unsafe is not None:
            assert isinstance(made.error, UnsafeGlobal)
            assert unsafe in {one.dotted for one in made.error.globals}
            refused += 1
            continue
        assert made.error is None, made.error
        assert described(made.value) == described(expected)
        read += 1
    assert read > 50
    assert refused > 0


@pytest.mark.parametrize("name", V0)
def test_all_can_be_allowed(name: str, adk_db: Callable[[str], Path]) -> None:
    decoder = Decoder(Allowed(GENUINE_BUT_REFUSED))
    values = values_of(adk_db(name))
    errors = [made.error for made in map(decoder.decode, values) if made.error is not None]
    assert (errors, len(values) > 50) == ([], True)


@pytest.mark.parametrize("protocol", range(6))
def test_genuine_values_in_every_protocol(protocol: int, adk_db: Callable[[str], Path]) -> None:
    """As if another release, or an application's own copy of the service, had written them."""
    decoder = Decoder()
    compared = 0
    for blob in values_of(adk_db("db-1.14.1-utc")):
        try:
            real = RealUnpickler(io.BytesIO(blob)).load()
        except pickle.UnpicklingError:
            continue
        for dumps in (pickle.dumps, pickle._dumps):  # type: ignore[attr-defined]
            made = decoder.decode(dumps(real, protocol))
            assert made.error is None, made.error
            expected = pickle.loads(pickle.dumps(real, protocol))  # protocols 0 to 3 lose the fold of a time
            assert described(made.value) == described(expected)
            compared += 1
    assert compared > 150


def test_the_reviewed_set_is_what_adk_allows() -> None:
    """Name by name the set of google-adk's own loader, and what older protocols add to the same values."""
    from google.adk.sessions._restricted_pickle import _allowed_globals

    assert set(reviewed()) - _allowed_globals() == {
        ("builtins", "frozenset"),
        ("builtins", "getattr"),
        ("builtins", "object"),
        ("copyreg", "_reconstructor"),
        ("copyreg", "__newobj__"),
        ("_codecs", "encode"),
    }
    assert _allowed_globals() - set(reviewed()) == set()


def test_kinds_and_members_are_those_of_the_real_classes() -> None:
    kinds = {"model": 0, "enum": 0}
    for (module, name), entry in reviewed().items():
        if entry.kind not in kinds:
            continue
        kinds[entry.kind] += 1
        cls = getattr(importlib.import_module(module), name)
        if entry.kind == "enum":
            assert {member.name: member.value for member in cls} == dict(entry.members)
        elif isinstance(cls, type):  # SecurityScheme is a union: ADK lists it, nothing pickles it
            assert issubclass(cls, pydantic.BaseModel)
    assert kinds["model"] > 40
    assert kinds["enum"] > 8
