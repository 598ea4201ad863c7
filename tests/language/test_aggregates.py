"""Classes of the user's: constructors made of the fields, defaults, inheritance, changed copies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.base import CapturedGlobalError
from weft.language.core import _aggregate as aggregate


@aggregate
class Rows:
    first: tl.tensor
    BLOCK: tl.constexpr = 8

    @weft.jit
    def indices(self):  # type: ignore[no-untyped-def]
        return self.first + tl.arange(0, self.BLOCK)


@aggregate
class Strided(Rows):
    stride: tl.tensor

    @weft.jit
    def offsets(self):  # type: ignore[no-untyped-def]
        return self.indices() * self.stride


@weft.jit
def write(out: Any, first: Any, stride: Any) -> None:
    rows = Strided(first, stride=stride)
    tl.store(out + rows.offsets(), rows.indices())
    later = tl.aggregate_replace(rows, first=first + 8)
    tl.store(out + later.offsets(), later.indices() * 10)


def test_inherited_fields_methods_and_defaults() -> None:
    out = np.zeros(48, np.int32)
    write[(1,)](out, 0, 3)
    wanted = np.zeros(48, np.int32)
    wanted[0:24:3], wanted[24:48:3] = range(8), range(80, 160, 10)
    assert out.tolist() == wanted.tolist()


@aggregate
class Shape:
    rows: tl.constexpr
    columns: tl.constexpr = 64


def test_on_the_host() -> None:
    assert (Shape(3).rows.value, Shape(3).columns.value, Shape(columns=2, rows=1).columns.value) == (3, 64, 2)
    wide = tl.aggregate_replace(Shape(3), columns=256)
    assert (wide.rows.value, wide.columns.value) == (3, 256)


class Pair(NamedTuple):
    x: int
    y: int


@aggregate
class WithTuple:
    pair: tl.tuple


def test_tuples_become_tuples_of_the_language() -> None:
    pair = WithTuple(Pair(3, 7)).pair
    assert isinstance(pair, tl.tuple) and isinstance(pair.x, tl.constexpr) and pair.y.value == 7


def test_a_default_is_part_of_what_a_kernel_depends_on() -> None:
    def key(size: int) -> str:
        @aggregate
        class Tile:
            SIZE: tl.constexpr = size

        @weft.jit
        def kernel(out: Any) -> None:
            tl.store(out + tl.arange(0, Tile().SIZE), 1)

        return kernel.cache_key

    assert key(4) == key(4) != key(8)


@aggregate
class Built:
    value: tl.tensor

    def __init__(self, _semantic: Any = None) -> None:
        self.value = tl.arange(0, 4, _semantic=_semantic)


@weft.jit
def build(out: Any) -> None:
    made = Built()
    tl.store(out + made.value, made.value)


def test_a_constructor_that_builds_ir() -> None:
    out = np.zeros(4, np.int32)
    build[(1,)](out)
    assert out.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Shape(), "missing required argument: 'rows'"),
        (lambda: Shape(1, 2, 3), "takes 2 arguments, got 3"),
        (lambda: Shape(1, rows=2), "multiple values for argument 'rows'"),
        (lambda: Shape(1, depth=2), "unexpected keyword argument 'depth'"),
        (lambda: tl.aggregate_replace(Shape(1), depth=2), "Shape has no field 'depth'"),
        (lambda: tl.aggregate_replace(42, depth=2), "expects an aggregate instance"),
        (lambda: aggregate(type("Child", (Pair,), {}))(), "Aggregates can only inherit from other aggregates"),
    ],
)
def test_what_does_not_fit(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


@weft.jit
def reshaped(out: Any) -> None:
    x = tl.unsqueeze(tl.arange(0, 4), -1)
    tl.static_assert(x.shape[0] == 4 and x.shape[1] == 1)
    y = tl.squeeze(tl.unsqueeze(x, 0), 2)
    tl.static_assert(y.shape[0] == 1 and y.shape[1] == 4)
    tl.store(out + tl.arange(0, 4), tl.squeeze(y, 0))


def test_squeeze_and_unsqueeze() -> None:
    out = np.zeros(4, np.int32)
    reshaped[(1,)](out)
    assert out.tolist() == [0, 1, 2, 3]


def test_keyword_arguments_of_any_name() -> None:
    def kernel(**options: Any) -> None:
        pass

    with pytest.raises(TypeError, match=r"JIT functions do not support \*\*kwargs"):
        weft.jit(kernel)[(1,)]()


@aggregate
class Shifted:
    value: tl.tensor

    @weft.jit
    def __add__(self, other):  # type: ignore[no-untyped-def]
        return Shifted(self.value + other)

    @weft.jit
    def __rsub__(self, other):  # type: ignore[no-untyped-def]
        return Shifted(other - self.value)

    @weft.jit
    def __gt__(self, other):  # type: ignore[no-untyped-def]
        return Shifted(self.value + 1000 * (self.value > other))


@aggregate
class Undecided:
    value: tl.tensor

    @weft.constexpr_function
    def __sub__(self, other: Any) -> Any:
        return NotImplemented


@aggregate
class Reflected:
    value: tl.tensor

    @weft.jit
    def __rsub__(self, other):  # type: ignore[no-untyped-def]
        return Shifted(other.value - self.value)


@weft.jit
def operators(out: Any) -> None:
    i = tl.arange(0, 4)
    first = Shifted(i) + i
    for k in range(2):
        first += k + 1
    tl.store(out + i, first.value)
    tl.store(out + 4 + i, (i * 10 - first).value)
    tl.store(out + 8 + i, (Undecided(i * 5) - Reflected(i)).value)
    tl.store(out + 12 + i, (i + 1 < Shifted(i * 2)).value)  # turned round, as Python does


def test_operators_of_a_class_with_tensors() -> None:
    out = np.zeros(16, np.int32)
    operators[(1,)](out)
    first = [2 * i + 3 for i in range(4)]
    assert out.tolist() == [*first, *(10 * i - x for i, x in enumerate(first)), 0, 4, 8, 12, 0, 2, 1004, 1006]


@aggregate
class Signed:
    value: tl.tensor

    @weft.jit
    def __neg__(self):  # type: ignore[no-untyped-def]
        return Signed(0 - self.value)

    @weft.constexpr_function
    def __invert__(self) -> int:
        return 7


@weft.jit
def unary_operators(out: Any) -> None:
    i = tl.arange(0, 4)
    tl.store(out + i, (-Signed(i)).value)
    tl.store(out + 4 + i, i + ~Signed(i))


def test_unary_operators_of_a_class_with_tensors() -> None:
    out = np.zeros(8, np.int32)
    unary_operators[(1,)](out)
    assert out.tolist() == [0, -1, -2, -3, 7, 8, 9, 10]


@aggregate
class Inner:
    value: tl.constexpr = 0


@aggregate
class Setting:
    value: tl.constexpr
    inner: Inner = Inner()


SETTING = Setting(10)


@weft.jit
def store_setting(y):  # type: ignore[no-untyped-def]
    tl.store(y, SETTING.value)


def test_a_captured_instance_is_part_of_the_cache_key_by_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    def key(setting: Any) -> str:
        monkeypatch.setitem(globals(), "SETTING", setting)
        store_setting.reset()
        return str(store_setting.cache_key)

    keys = [key(Setting(*fields)) for fields in [(10,), (20,), (10,), (10, Inner(1)), (10, Inner(2))]]
    assert keys[0] == keys[2] and len(set(keys)) == 4
    assert repr(Setting(10)) == "Setting(value=constexpr[10], inner=Inner(value=constexpr[0]))"


def test_a_captured_instance_that_changes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Setting(10)
    monkeypatch.setitem(globals(), "SETTING", setting)
    store_setting.reset()
    y = np.zeros(1, np.int32)
    store_setting[(1,)](y)
    monkeypatch.setitem(globals(), "SETTING", Setting(10))
    store_setting[(1,)](y)
    assert y[0] == 10
    with pytest.raises(AttributeError, match="cannot assign to field 'value' on immutable aggregate Setting"):
        setting.value = tl.constexpr(99)
    monkeypatch.setitem(globals(), "SETTING", tl.aggregate_replace(setting, inner=Inner(3)))
    with pytest.raises(CapturedGlobalError, match="SETTING"):
        store_setting[(1,)](y)
