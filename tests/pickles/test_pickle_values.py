"""Every type that values hold, pickled by the real picklers in all protocols, and the inert forms of other classes."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import pathlib
import pickle
import uuid
import zoneinfo
from collections.abc import Iterator
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.pickles.allowed import Allowed
from exhume.pickles.decoder import Decoder
from exhume.pickles.interface import MalformedPickle, UnsafeGlobal
from exhume.pickles.nodes import Converted, EnumValue, ModelValue, SetValue

HERE = __name__


class Size(enum.Enum):
    SMALL = "s"


class Level(enum.IntEnum):
    TWO = 2


class Colour(enum.Enum):
    RED = enum.auto()

    __reduce_ex__ = enum.pickle_by_enum_name  # type: ignore[assignment]


class Item(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    sku: str
    size: Size = Size.SMALL
    _note: str = pydantic.PrivateAttr("private")


@dataclasses.dataclass
class Seat:
    row: int
    letter: str


@dataclasses.dataclass(slots=True, frozen=True)
class SlottedSeat:
    row: int
    letter: str


class Slots:
    __slots__ = ("__dict__", "a")


Pair = collections.namedtuple("Pair", "a b")


class Money(str):
    __slots__ = ()


class Bag(dict[str, int]):
    pass


class Row(list[int]):
    pass


class WithKeywords:
    def __new__(cls, *, text: str) -> WithKeywords:
        made = super().__new__(cls)
        made.__dict__["text"] = text
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, str]]:
        return (), {"text": "x"}


class PaymentError(Exception):
    pass


def price() -> None:
    pass


def pickles_of(value: Any) -> Iterator[bytes]:
    for protocol in range(6):
        yield pickle.dumps(value, protocol)
        yield pickle._dumps(value, protocol)  # type: ignore[attr-defined]


def decoded(data: bytes, *allow: str) -> Any:
    made = Decoder(Allowed(allow)).decode(data)
    if made.error is not None:
        raise made.error
    return made.value


UTC5 = dt.timezone(dt.timedelta(hours=5, minutes=30))
STANDARD = [
    dt.datetime(2024, 2, 29, 23, 59, 59, 999999),
    dt.datetime(2024, 2, 29, 12, tzinfo=UTC5),
    dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC),
    dt.datetime(2024, 11, 3, 1, 30, fold=1),
    dt.datetime(2024, 2, 29, tzinfo=dt.timezone(dt.timedelta(hours=-3), "BRT")),
    dt.datetime.min,
    dt.datetime.max,
    dt.date(2024, 2, 29),
    dt.time(1, 2, 3, 4),
    dt.time(1, tzinfo=UTC5, fold=1),
    dt.timedelta(days=-3, microseconds=5),
    UTC5,
    decimal.Decimal("19.90"),
    decimal.Decimal("NaN"),
    decimal.Decimal("-Infinity"),
    decimal.Decimal("1E+1000"),
    uuid.UUID(int=0x1234),
    uuid.UUID("0205839e-ed14-11f1-b729-02fc00000001"),
    1 - 2j,
    b"",
    b"\x00\xff",
    bytearray(b""),
    bytearray(b"\x00\xff"),
    (),
    (1, ("x", None)),
    {(1, "2"): 3, None: 4, 1.5: 5, b"k": 6, True: 7},
    {dt.date(2024, 1, 1): 1, uuid.UUID(int=5): 2, decimal.Decimal("1.5"): 3},
]


@pytest.mark.parametrize("value", STANDARD, ids=repr)
def test_standard_types(value: Any) -> None:
    for data in pickles_of(value):
        made = decoded(data)
        assert type(made) is type(value)
        # protocols below 4 leave the fold out, and so does the standard unpickler
        assert repr(made) == repr(pickle.loads(data))


@given(
    value=st.datetimes(timezones=st.none() | st.sampled_from([dt.UTC, UTC5]))
    | st.times()
    | st.dates()
    | st.timedeltas()
)
def test_times(value: Any) -> None:
    for protocol in (0, 2, 5):
        data = pickle.dumps(value, protocol)
        assert repr(decoded(data)) == repr(pickle.loads(data))


@given(value=st.decimals() | st.uuids() | st.complex_numbers(allow_nan=False))
def test_numbers(value: Any) -> None:
    for protocol in (0, 2, 5):
        made = decoded(pickle.dumps(value, protocol))
        assert repr(made) == repr(value)


@pytest.mark.parametrize(
    ("value", "frozen", "members"), [({3}, False, [3]), (frozenset({"a"}), True, ["a"]), (set(), False, [])]
)
def test_sets(value: Any, frozen: bool, members: list[Any]) -> None:
    for data in pickles_of(value):
        made = decoded(data)
        assert isinstance(made, SetValue)
        assert (made.items, made.frozen) == (members, frozen)


def test_dicts_keep_their_order() -> None:
    ordered = collections.OrderedDict([("z", 1), ("a", 2)])
    default = collections.defaultdict(list, {"x": [1]})
    for data in pickles_of([ordered, default, collections.defaultdict(None)]):
        first, second, third = decoded(data)
        assert list(first.items()) == [("z", 1), ("a", 2)]
        assert (second, third) == ({"x": [1]}, {})
        assert type(first) is type(second) is dict


@pytest.mark.parametrize("cls", [pathlib.PurePosixPath, pathlib.PosixPath, pathlib.PureWindowsPath])
def test_paths(cls: type[pathlib.PurePath]) -> None:
    for data in pickles_of(cls("a", "b")):
        assert decoded(data) == Converted("path-to-text", str(cls("a", "b")))


def test_paths_written_by_python_3_13() -> None:
    data = pickle.dumps(pathlib.PurePosixPath("/a/b"), 4).replace(b"\x8c\x07pathlib", b"\x8c\x0epathlib._local")
    data = data.replace(b"\x95" + data[3:11], b"")  # the frame's length is another one now
    assert decoded(data) == Converted("path-to-text", "/a/b")


# -------------------------------------------------- classes of an application


def test_an_application_class_is_refused_and_named() -> None:
    for data in pickles_of({"a": Size.SMALL, "b": Seat(1, "C")}):
        made = Decoder().decode(data)
        assert isinstance(made.error, UnsafeGlobal)
        assert [one.dotted for one in made.error.globals] == [f"{HERE}.Size", f"{HERE}.Seat"]
        assert made.value is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Size.SMALL, EnumValue(HERE, "Size", "s")),
        (Level.TWO, EnumValue(HERE, "Level", 2)),
        (Colour.RED, EnumValue(HERE, "Colour", "RED", "RED")),
        (price, Converted("reference-to-text", f"{HERE}.price")),
        (Seat, Converted("reference-to-text", f"{HERE}.Seat")),
        (len, Converted("reference-to-text", "<built-in function len>")),
        (collections.Counter("aab"), Converted("counter-to-object", {"a": 2, "b": 1})),
        (collections.deque([1, 2]), Converted("deque-to-list", [1, 2])),
        (collections.deque([1, 2], 5), Converted("deque-to-list", [1, 2])),
        (range(3), Converted("range-to-text", "range(0, 3)")),
        (range(10, 2**70, 3), Converted("range-to-text", f"range(10, {2**70}, 3)")),
        (ValueError("kept"), Converted("exception-to-text (ValueError)", "kept")),
        (ValueError("kept", 5, [1]), Converted("exception-to-text (ValueError)", "('kept', 5, <list>)")),
        (KeyError("gone"), Converted("exception-to-text (KeyError)", "'gone'")),
        (OverflowError(), Converted("exception-to-text (OverflowError)", "")),
        (PaymentError("declined"), EnumValue(HERE, "PaymentError", "declined")),
        (Bag(a=1), {"a": 1}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_inert_forms(value: Any, expected: Any) -> None:
    allow = (f"{HERE}.*", "builtins.*", "collections.Counter", "collections.deque")
    for data in pickles_of(value):
        assert Decoder().decode(data).error is not None
        made = decoded(data, *allow)
        assert made == expected
        assert type(made) is type(expected)


def model_parts(value: Any) -> tuple[str, str, dict[str, Any], dict[str, Any] | None]:
    assert isinstance(value, ModelValue)
    return value.module, value.name, value.fields, value.extra


def test_models_and_dataclasses_give_their_fields() -> None:
    for data in pickles_of([Item(sku="S-1"), Item.model_validate({"sku": "S-2", "colour": "red"})]):
        first, second = decoded(data, f"{HERE}.*")
        size = EnumValue(HERE, "Size", "s")
        assert model_parts(first) == (HERE, "Item", {"sku": "S-1", "size": size}, None)
        assert model_parts(second) == (HERE, "Item", {"sku": "S-2", "size": size}, {"colour": "red"})
    for data in pickles_of(Seat(3, "C")):
        assert model_parts(decoded(data, f"{HERE}.Seat")) == (HERE, "Seat", {"row": 3, "letter": "C"}, None)


def test_slots_and_other_states() -> None:
    slotted = Slots()
    slotted.a, slotted.b = 1, 2  # type: ignore[attr-defined]
    for protocol in range(2, 6):
        assert model_parts(decoded(pickle.dumps(slotted, protocol), f"{HERE}.*"))[2] == {"b": 2, "a": 1}
        assert decoded(pickle.dumps(Pair(1, 2), protocol), f"{HERE}.*") == Converted("object-to-list", [1, 2])
        assert decoded(pickle.dumps(Money("5"), protocol), f"{HERE}.*") == EnumValue(HERE, "Money", "5")
        assert decoded(pickle.dumps(Row([1, 2]), protocol), f"{HERE}.*") == Converted("object-to-list", [1, 2])
        # a frozen dataclass with slots pickles its state as a list
        assert model_parts(decoded(pickle.dumps(SlottedSeat(3, "C"), protocol), f"{HERE}.*"))[2] == {"state": [3, "C"]}


def test_keyword_arguments_are_refused() -> None:
    data = pickle.dumps(WithKeywords(text="x"), 4)
    with pytest.raises(MalformedPickle, match="keyword"):
        decoded(data, f"{HERE}.*")


def test_zones_of_the_zone_database() -> None:
    value = dt.datetime(2024, 6, 1, 12, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
    made = decoded(pickle.dumps(value, 5), "zoneinfo.ZoneInfo")
    assert made.isoformat() == "2024-06-01T12:00:00+02:00"
    assert isinstance(Decoder().decode(pickle.dumps(value)).error, UnsafeGlobal)
    for key in ("../../etc/passwd", "No/Such", ""):
        data = pickle.dumps(value, 4).replace(b"\x8c\x0dEurope/Berlin", b"\x8c" + bytes([len(key)]) + key.encode())
        data = data.replace(b"\x95" + data[3:11], b"")
        with pytest.raises(MalformedPickle):
            decoded(data, "zoneinfo.ZoneInfo")


def test_allowing_a_function_does_not_call_it() -> None:
    data = b"cos\nsystem\n(V: > marker\ntR."
    assert decoded(data, "os.system") == EnumValue("os", "system", ": > marker")
    assert not pathlib.Path("marker").exists()


# ---------------------------------------------------- arguments that no type has


class _Calls:
    """Pickles as a call of `func` with `args`, whatever they are."""

    def __init__(self, func: Any, *args: Any) -> None:
        self.func, self.args = func, args

    def __reduce__(self) -> tuple[Any, ...]:
        return self.func, self.args


@pytest.mark.parametrize(
    ("func", "args"),
    [
        (dt.datetime, (b"short",)),
        (dt.datetime, (b"\x07\xe8\x0d\x01\x00\x00\x00\x00\x00\x00",)),
        (dt.datetime, (b"\x07\xe8\x02\xff\xff\xff\xff\xff\xff\xff",)),
        (dt.datetime, (b"\x07\xe8\x02\x01\x00\x00\x00\x00\x00\x00", "zone")),
        (dt.datetime, (2024, 1, 1)),
        (dt.datetime, ()),
        (dt.date, (b"\x00\x00\x00\x00",)),
        (dt.time, (b"\xff" * 6,)),
        (dt.timedelta, (10**20, 0, 0)),
        (dt.timedelta, (1.5, 0, 0)),
        (dt.timedelta, ("1", 0, 0)),
        (dt.timezone, (5,)),
        (dt.timezone, (dt.timedelta(days=5),)),
        (dt.timezone, (dt.timedelta(0), 5)),
        (decimal.Decimal, ("x",)),
        (decimal.Decimal, (5,)),
        (decimal.Decimal, ((0, (1,), 0),)),
        (complex, ("1j",)),
        (complex, (1j, 1)),
        (bytes, (2**40,)),
        (bytes, ([256],)),
        (bytes, ("x", "utf-16")),
        (bytearray, (2**40,)),
        (bytearray, (True,)),
        (set, (5,)),
        (set, ("text",)),
        (list, ("text",)),
        (dict, ([("a", 1)],)),
        (int, ("5",)),
        (str, (5,)),
        (tuple, ([1],)),
        (pathlib.PurePosixPath, (5,)),
        (collections.OrderedDict, ([["a", 1]], 2)),
        (collections.defaultdict, (5,)),
        (uuid.UUID, ("12345678123456781234567812345678",)),
    ],
    ids=repr,
)
def test_arguments_are_checked(func: Any, args: tuple[Any, ...]) -> None:
    made = Decoder().decode(pickle.dumps(_Calls(func, *args), 4))
    assert isinstance(made.error, MalformedPickle)
    assert made.value is None


@pytest.mark.parametrize("number", [-1, 2**128, "5", None, 1.5])
def test_the_number_of_a_uuid(number: Any) -> None:
    data = pickle.dumps(uuid.UUID(int=5), 4)
    state = pickle.dumps({"int": number}, 4)
    program = data[: data.index(b"}\x94\x8c\x03int")].replace(data[2:11], b"") + state[11:-1] + b"b."
    assert isinstance(Decoder().decode(program).error, MalformedPickle)


FORMS = {
    "getattr of no enum": b"cbuiltins\ngetattr\n(cgoogle.adk.events.event_actions\nEventActions\nVcopy\ntR.",
    "getattr called": b"cbuiltins\ngetattr\n(cfastapi.openapi.models\nAPIKeyIn\nVquery\ntR)R.",
    "getattr of what getattr gives": b"cbuiltins\ngetattr\n(cbuiltins\ngetattr\n(NVx\ntRVy\ntR.",
    "getattr of a hidden name": b"cbuiltins\ngetattr\n(cfastapi.openapi.models\nAPIKeyIn\nV__class__\ntR.",
    "getattr of no member": b"cbuiltins\ngetattr\n(cfastapi.openapi.models\nAPIKeyIn\nVmro\ntR.",
    "getattr of a value": b"cbuiltins\ngetattr\n(NVreal\ntR.",
    "getattr as a value": b"cbuiltins\ngetattr\n.",
    "encode as a value": b"c_codecs\nencode\n.",
    "object as a value": b"cbuiltins\nobject\n.",
    "encode with another codec": b"c_codecs\nencode\n(Vx\nVrot13\ntR.",
    "encode of no text": b"c_codecs\nencode\n(NVlatin1\ntR.",
    "reconstructor without a class": b"ccopyreg\n_reconstructor\n(Nc__builtin__\nobject\nNtR.",
    "reconstructor of another base": b"ccopyreg\n_reconstructor\n(cuuid\nUUID\ncuuid\nUUID\nNtR.",
    "newobj without a class": b"ccopyreg\n__newobj__\n(NtR.",
    "object called": b"cbuiltins\nobject\n)R.",
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_older_protocols_are_nothing_else(name: str) -> None:
    error = Decoder().decode(FORMS[name]).error
    assert isinstance(error, UnsafeGlobal)
    assert len(error.globals) == 1


def test_enums_of_adk_by_value_and_by_name() -> None:
    expected = ("google.adk.auth.auth_credential", "AuthCredentialTypes", "apiKey")
    by_value = b"cgoogle.adk.auth.auth_credential\nAuthCredentialTypes\n(VapiKey\ntR."
    by_name = b"cbuiltins\ngetattr\n(cgoogle.adk.auth.auth_credential\nAuthCredentialTypes\nVAPI_KEY\ntR."
    assert decoded(by_value) == EnumValue(*expected)
    assert decoded(by_name) == EnumValue(*expected, "API_KEY")


@pytest.mark.parametrize(
    "program",
    [
        b"cgoogle.adk.events.event_actions\nEventActions\n)\x81.",
        b"cgoogle.adk.events.event_actions\nEventActions\n)\x81}b.",
        b"cgoogle.adk.events.event_actions\nEventActions\n)\x81Nb.",
        b"cgoogle.adk.events.event_actions\nEventActions\n)\x81}V__dict__\n]sb.",
        b"cgoogle.adk.events.event_actions\nEventActions\n)\x81}V__dict__\n}K\x01K\x02ssb.",
        b"cgoogle.adk.events.event_actions\nEventActions\n(K\x01tR}V__dict__\n}sb.",
        b"cgoogle.adk.events.event_actions\nEventActions\n)\x81}V__dict__\n}sb}V__dict__\n}sb.",
        b"cgoogle.adk.events.event_actions\nEventActions\n]\x81}V__dict__\n}sb.",
        b"Nc\n\n)\x81b.",
        b"]Nb.",
    ],
)
def test_models_without_the_state_of_a_model(program: bytes) -> None:
    error = Decoder().decode(program).error
    assert isinstance(error, MalformedPickle | UnsafeGlobal)


def test_keys_are_checked_after_they_are_rebuilt() -> None:
    many = b"".join(b"cdecimal\nDecimal\nV%d\n\x85RN" % (number * (2**61 - 1)) for number in range(1, 200))
    error = Decoder().decode(b"}(" + many + b"u.").error
    assert isinstance(error, MalformedPickle)
    assert "same hash" in error.what
    # an object as a key that has no plain hash
    program = b"}" + pickle.dumps(Seat(1, "a"), 2)[2:-1] + b"Ns."
    assert isinstance(Decoder(Allowed([f"{HERE}.*"])).decode(program).error, MalformedPickle)


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        (b"]", b"a"),
        (b"(", b"t"),
        (b"}K\x01", b"s"),
        (b"cshop\nA\n(", b"tR"),
        (b"cshop\nA\n(", b"t\x81"),
        (b"cshop\nA\n)\x81(V__dict__\n}Va\n", b"sV__pydantic_fields_set__\nNdb"),
        (b"cshop\nA\n)\x81(Va\n", b"db"),
        (b"cshop\nA\n)\x81", b"a"),
        (b"cshop\nA\n)\x81K\x01", b"s"),
        (b"ccopyreg\n_reconstructor\n(cshop\nA\ncbuiltins\nlist\n(", b"ltR"),
        (b"ccopyreg\n__newobj__\n(cshop\nA\n", b"tR"),
        (b"cbuiltins\nset\n((", b"ltR"),
        (b"ccollections\nOrderedDict\n)RK\x01", b"s"),
    ],
)
@pytest.mark.parametrize("levels", [20, 150, 199, 201, 400])
def test_every_way_to_nest_ends_in_a_value_or_a_refusal(opening: bytes, closing: bytes, levels: int) -> None:
    """No nesting reaches the limit of Python's own stack, as low as it is."""
    made = Decoder(Allowed(["shop.A"])).decode(opening * levels + b"N" + closing * levels + b".")
    assert made.error is None or isinstance(made.error, MalformedPickle)
    if levels == 20:
        assert made.error is None
    if levels > 200:
        assert made.error is not None
