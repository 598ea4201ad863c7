"""Keys of constants: two have one key exactly where they were made alike, in memory, on disk and in launches."""

from __future__ import annotations

import dataclasses
import functools
import struct
import threading
from enum import Enum, IntEnum
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import weft
import weft.language as tl
from weft.compiler import ASTSource
from weft.language.keys import Keys, key_of, key_text
from weft.layouts import BlockedLayout, LinearLayout, SwizzledSharedLayout
from weft.runtime.binder import bind_constant
from weft.runtime.compiled_forms import key_of_specialization


class Colour(Enum):
    RED = 1
    BLUE = 2


class Level(IntEnum):
    LOW = 1


class Pair(NamedTuple):
    a: Any
    b: Any


class Couple(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Record:
    x: Any
    y: Any = None


class Thing:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __repr__(self) -> str:
        return "Thing"  # says nothing of its value

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class Number(int):
    pass


@tl.core._aggregate
class Held:
    x: tl.constexpr


def jit_function(n: Any) -> Any:
    captured = tl.constexpr(n)

    @weft.jit
    def made(x):  # type: ignore[no-untyped-def]
        return x + captured

    return made


def host_function(n: Any) -> Any:
    def made(x: Any) -> Any:
        return (x, n)

    return made


class Method:
    def __init__(self, x: Any) -> None:
        self.x = x

    def take(self) -> Any:
        return self.x


MAKERS: dict[str, Any] = {
    "int": int,
    "bool": bool,
    "float": float.fromhex,
    "bits": lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0],
    "str": str,
    "bytes": bytes,
    "none": lambda _: None,
    "complex": lambda x: complex(0.0, x),
    "number": Number,
    "dtype": lambda name: getattr(tl, name),
    "pointer": lambda name: tl.pointer_type(getattr(tl, name)),
    "np scalar": lambda name: np.dtype(name).type(1),
    "np dtype": np.dtype,
    "np array": lambda n: np.arange(n),
    "enum": lambda name: Colour[name],
    "int enum": lambda _: Level.LOW,
    "class": lambda name: {"Pair": Pair, "Thing": Thing, "int": int}[name],
    "blocked": lambda n: BlockedLayout([n], [32], [4], [0]),
    "shared": lambda n: SwizzledSharedLayout(n, 1, 1, [0]),
    "linear": lambda n: LinearLayout.identity_1d(n, "lane", "row"),
    "tuple": lambda *v: tuple(v),
    "list": lambda *v: list(v),
    "pair": lambda *v: Pair(v, 0),
    "couple": lambda *v: Couple(v, 0),
    "record": lambda *v: Record(v),
    "thing": lambda *v: Thing(v),
    "held": lambda *v: Held(v),
    "dict": lambda *v: dict(enumerate(v)),
    "jit": lambda *v: jit_function(v),
    "host": lambda *v: host_function(v),
    "lambda": lambda *v: lambda: v,
    "constexpr function": lambda *v: weft.constexpr_function(host_function(v)),
    "partial": lambda *v: functools.partial(host_function(0), v),
    "method": lambda *v: Method(v).take,
}
"""What makes a constant of a description: descriptions are equal exactly where the constants are."""

LEAVES = st.one_of(
    st.tuples(st.just("int"), st.integers(-3, 3) | st.integers()),
    st.tuples(st.just("bool"), st.booleans()),
    st.tuples(st.just("float"), st.sampled_from(["0x0.0p+0", "-0x0.0p+0", "0x1.0p+0", "0x1.0000000000001p+0", "inf"])),
    st.tuples(st.just("bits"), st.sampled_from([0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000])),
    st.tuples(st.just("str"), st.sampled_from(["", "1", "None", "i32", "\ud800", "('int', 1)"])),
    st.tuples(st.just("bytes"), st.sampled_from([b"", b"1"])),
    st.just(("none", None)),
    st.tuples(st.just("complex"), st.sampled_from([0.5, 1.0])),
    st.tuples(st.just("number"), st.integers(0, 1)),
    st.tuples(st.sampled_from(["dtype", "pointer"]), st.sampled_from(["float32", "int32", "int1"])),
    st.tuples(st.sampled_from(["np scalar", "np dtype"]), st.sampled_from(["int32", "float32", "float64"])),
    st.tuples(st.just("np array"), st.integers(0, 2)),
    st.tuples(st.just("enum"), st.sampled_from(["RED", "BLUE"])),
    st.just(("int enum", 0)),
    st.tuples(st.just("class"), st.sampled_from(["Pair", "Thing", "int"])),
    st.tuples(st.sampled_from(["blocked", "shared", "linear"]), st.sampled_from([1, 2])),
)
NESTED = [
    *("tuple", "list", "pair", "couple", "record", "thing", "held", "dict"),
    *("jit", "host", "lambda", "constexpr function", "partial", "method"),
]
DESCRIPTIONS = st.recursive(
    LEAVES,
    lambda inner: st.builds(lambda name, parts: (name, *parts), st.sampled_from(NESTED), st.lists(inner, max_size=2)),
    max_leaves=4,
)


def made(description: Any) -> Any:
    name, *parts = description
    return MAKERS[name](*(made(p) if name in NESTED else p for p in parts))


@weft.jit
def kernel(x, C: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(x, 1)


def keys(value: Any) -> tuple[Any, ...]:
    """Of a launch, of the kernels in memory, and on disk."""
    return (
        bind_constant(kernel.params[1], value),
        key_of_specialization([("*fp32", "D"), ("constexpr", value)], {"debug": False}, "cpu"),
        ASTSource(kernel, {"x": "*fp32", "C": "constexpr"}, {"C": value}).hash(),
        key_text(value),
    )


@settings(max_examples=150, deadline=None)
@given(DESCRIPTIONS, DESCRIPTIONS)
def test_constants_have_one_key_exactly_where_they_are_equal(one: Any, other: Any) -> None:
    first, second = keys(made(one)), keys(made(other))
    assert first == keys(made(one))
    same = _without_types(one) == _without_types(other)
    for a, b in zip(first, second, strict=True):
        assert (a == b) is same


def _without_types(description: Any) -> Any:
    """A description in which 1 and True differ, as they do for a kernel."""
    return tuple(_without_types(p) if isinstance(p, tuple) else (type(p), p) for p in description)


def test_every_leaf_has_a_key_of_its_own() -> None:
    """Pairs that a random search would meet too rarely."""
    found: dict[str, Any] = {}
    values = {
        "bool": [True, False], "int": [0, 1, 2, 1 << 70], "dtype": [tl.float16, tl.float32, tl.int1, tl.uint8, tl.void],
        "str": ["a", "float32", "True"], "float": [0.0, -0.0, 1.0, float("nan"), -float("nan"), 1e-320],
        "tuple": [(), ((),), (1,), (1, 1), ((1,), 1), (1, (1,))], "list": [[], [1], [[1]]],
        "dict": [{}, {1: 2}, {1: 2, 3: 4}, {3: 4, 1: 2}], "set": [set(), {1}, {2}, frozenset({1})],
    }  # fmt: skip
    for kind, several in values.items():
        for value in several:
            text = key_text(value)
            assert text not in found, (kind, value, found[text])
            found[text] = value


def test_what_has_no_value_is_equal_only_to_itself() -> None:
    one, other = object(), threading.Lock()
    assert key_of(one) == key_of(one) != key_of(object())
    assert key_of(other) == key_of(other) != key_of(threading.Lock())
    holder: list[Any] = [1]
    holder.append(holder)
    assert key_of(holder) == key_of(holder) != key_of([1, [1, None]])


def test_numbers_of_numpy_and_constexprs() -> None:
    assert key_of(tl.constexpr(np.int32(3))) == key_of(tl.constexpr(3)) == key_of(3)
    assert key_of(np.float32(0.0)) != key_of(np.float32(-0.0))
    assert key_of((tl.constexpr(3), 4)) == key_of((3, 4))


def silent(base: type) -> Any:
    """A class built on one of Python's that says of itself that it is empty, and equal to anything."""
    said = {name: lambda self: iter(()) for name in ("__iter__", "items", "keys", "values")}
    alike = {"__eq__": lambda self, other: True, "__hash__": lambda self: 0, "__repr__": lambda self: "nothing"}
    return type("Silent", (base,), {**said, **alike, "__bytes__": lambda self: b"", "__str__": lambda self: ""})


@pytest.mark.parametrize(
    ("base", "one", "other"),
    [
        (dict, {0: 1}, {0: 2}),
        (list, [1], [2]),
        (tuple, (1,), (2,)),
        (set, {1}, {2}),
        (frozenset, {1}, {2}),
        (bytes, b"a", b"b"),
        (bytearray, b"a", b"b"),
        (str, "a", "b"),
        (int, 1, 2),
        (float, 1.0, 2.0),
    ],
)
def test_a_class_built_on_pythons_own_may_say_anything_of_itself(base: type, one: Any, other: Any) -> None:
    kind = silent(base)
    assert key_of(kind(one)) == key_of(kind(one)) != key_of(kind(other))


@pytest.mark.parametrize(
    "said",
    [
        {"__reduce_ex__": lambda self, protocol: (int, ())},
        {"__reduce__": lambda self: "name"},
        {"__getstate__": lambda self: None},
        {"__getstate__": lambda self: None, "__slots__": ("x",)},
    ],
)
def test_an_object_is_what_it_consists_of_however_it_pickles(said: dict[str, Any]) -> None:
    kind = type("Sparse", (), {"__init__": lambda self, x: setattr(self, "x", x), **said})
    assert key_of(kind(1)) == key_of(kind(1)) != key_of(kind(2))


def test_a_key_follows_what_changes() -> None:
    thing, function = Thing(1), jit_function(3)
    before = key_of(thing), key_of(function), key_of(Method)
    thing.x = 2
    function._unsafe_update_src("def made(x):\n    return x - captured\n")
    Method.more = 1  # type: ignore[attr-defined]
    try:
        assert all(a != b for a, b in zip(before, (key_of(thing), key_of(function), key_of(Method)), strict=True))
    finally:
        del Method.more  # type: ignore[attr-defined]
    assert key_of(Method) == before[2]


def test_the_key_of_a_layout_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch with layouts took four times as long as one without, because it looked into each of them anew."""

    class Mine(BlockedLayout):
        """A user's class may keep what changes."""

    def layout() -> BlockedLayout:
        return BlockedLayout([1, 8], [2, 16], [4, 1], [1, 0])

    one, mine = layout(), Mine([1, 8], [2, 16], [4, 1], [1, 0])
    before = key_of(one), key_of(mine)
    assert key_of(layout()) == key_of(one) == before[0] != before[1]
    asked: list[object] = []
    of = Keys.of
    monkeypatch.setattr(Keys, "of", lambda self, value: asked.append(value) or of(self, value))
    assert (key_of(one), key_of(mine)) == before
    assert one not in [value for value in asked if type(value) is BlockedLayout] and mine in asked
    keys = {key_of(BlockedLayout([1, size], [2, 16], [4, 1], [1, 0])) for size in (1, 2, 4, 8, 16)}
    assert len(keys) == 5  # though each may be where the one before was


def test_what_could_not_be_followed_is_told_of_constants_too() -> None:
    found = Keys()
    found.of([lambda: open("x")])
    assert list(found.unfollowed) == ["open"]


@pytest.mark.parametrize("nested", [100, 3000])
def test_deep_constants(nested: int) -> None:
    value: Any = 1
    for _ in range(nested):
        value = [value]
    assert key_of(value) == key_of(value)
