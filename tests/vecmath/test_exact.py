"""Functions whose results are exact or exactly rounded: rounding modes, conversions, integers, classification,
remainders."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from vecmath.jit import NUMPY, bit_patterns, compiled, specials
from weft.backends.llvm import vecmath

BITS = {"float": (24, -149, np.float32), "double": (53, -1074, np.float64)}


def round_fraction(value: Fraction, mode: str, elem: str, zero: float = 0.0) -> float:
    """An exact rational rounded; `zero` is what an exact zero gives."""
    if value == 0:
        return zero
    precision, least, kind = BITS[elem]
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    place = max(exponent - precision + 1, least)
    scaled = size / Fraction(2) ** place
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    away = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
        "rz": False,
        "ru": rest > 0 and value > 0,
        "rd": rest > 0 and value < 0,
    }[mode]
    result = Fraction(whole + away) * Fraction(2) ** place
    largest = Fraction(float(np.finfo(kind).max))
    if result > largest:
        stays = mode == "rz" or (mode == "rd" and value > 0) or (mode == "ru" and value < 0)
        number = float(largest) if stays else math.inf
    else:
        number = float(result)
    return math.copysign(number, 1 if value > 0 else -1)


def operands(elem: str, count: int, seed: int) -> np.ndarray:
    """Near 1, of every size, at the ends of the range, and special ones."""
    random = np.random.default_rng(seed)
    kind = NUMPY[elem]
    info = np.finfo(kind)
    tiny = (random.integers(1, 2**20, count) * float(info.smallest_subnormal)).astype(kind)
    with np.errstate(all="ignore"):
        huge = (random.uniform(0.1, 1, count) * float(info.max)).astype(kind)
        simple = random.integers(-64, 64, count).astype(kind) / kind(8)
        pools = [random.uniform(-2, 2, count).astype(kind), bit_patterns(elem, count, seed), tiny, -huge, simple, huge]
    values = np.concatenate(pools)
    return random.permutation(values[np.isfinite(values)])


def same(got: float, wanted: float) -> bool:
    return (math.isnan(got) and math.isnan(wanted)) or (
        got == wanted and math.copysign(1, got) == math.copysign(1, wanted)
    )


def exact_sum(mode: str, elem: str, *terms: tuple[Fraction, bool]) -> float:
    """A sum of (value, has a minus sign) rounded; its zero has C99's sign."""
    total = sum((t for t, _ in terms), Fraction(0))
    signs = {minus for _, minus in terms}
    zero = (
        (-0.0 if signs.pop() else 0.0)
        if len(signs) == 1 and all(t == 0 for t, _ in terms)
        else (-0.0 if mode == "rd" else 0.0)
    )
    return round_fraction(total, mode, elem, zero)


def negative(x: float) -> bool:
    return math.copysign(1, x) < 0


def wanted_add(mode: str, elem: str, a: float, b: float) -> float:
    return exact_sum(mode, elem, (Fraction(a), negative(a)), (Fraction(b), negative(b)))


def wanted_sub(mode: str, elem: str, a: float, b: float) -> float:
    return wanted_add(mode, elem, a, -b)


def wanted_mul(mode: str, elem: str, a: float, b: float) -> float:
    return round_fraction(
        Fraction(a) * Fraction(b), mode, elem, math.copysign(0.0, math.copysign(1, a) * math.copysign(1, b))
    )


def wanted_fma(mode: str, elem: str, a: float, b: float, c: float) -> float:
    return exact_sum(mode, elem, (Fraction(a) * Fraction(b), negative(a) != negative(b)), (Fraction(c), negative(c)))


def wanted_div(mode: str, elem: str, a: float, b: float) -> float:
    sign = math.copysign(1, a) * math.copysign(1, b)
    if b == 0:
        return math.nan if a == 0 else math.copysign(math.inf, sign)
    return round_fraction(Fraction(a) / Fraction(b), mode, elem, math.copysign(0.0, sign))


def wanted_sqrt(mode: str, elem: str, a: float) -> float:
    if a < 0:
        return math.nan
    if a == 0:
        return a
    value = Fraction(a)
    # enough digits that the rounding of the root is decided; a remainder makes it inexact
    shift = 4000
    scaled = value.numerator * 2 ** (2 * shift) // value.denominator
    root = math.isqrt(scaled)
    exact = Fraction(root, 2**shift)
    if root * root != scaled or exact * exact != value:
        exact += Fraction(1, 2 ** (shift + 1))
    return round_fraction(exact, mode, elem)


ARITHMETIC: dict[str, tuple[int, Callable[..., float]]] = {
    "add": (2, wanted_add),
    "sub": (2, wanted_sub),
    "mul": (2, wanted_mul),
    "fma": (3, wanted_fma),
    "div": (2, wanted_div),
    "rcp": (1, lambda mode, elem, a: wanted_div(mode, elem, 1.0, a)),
    "sqrt": (1, wanted_sqrt),
}


@pytest.mark.parametrize("elem", ["float", "double"])
@pytest.mark.parametrize("mode", ["rn", "rz", "rd", "ru"])
@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.thinned(2)
def test_rounding_modes(name: str, mode: str, elem: str) -> None:
    count, wanted = ARITHMETIC[name]
    args = [operands(elem, 60, seed) for seed in range(1, count + 1)]
    length = min(map(len, args))
    args = [a[:length] for a in args]
    if count == 3:  # a sum that nearly cancels
        with np.errstate(all="ignore"):
            args[2][: length // 2] = -(args[0] * args[1])[: length // 2]
        args[2] = np.where(np.isfinite(args[2]), args[2], 1).astype(NUMPY[elem])
    got = compiled(f"{name}_{mode}", elem)(*args)
    for y, *point in zip(got, *args):
        expected = wanted(mode, elem, *map(float, point))
        assert same(float(y), expected), f"{name}_{mode}({', '.join(map(repr, point))}) = {y!r}, not {expected!r}"


@pytest.mark.parametrize("mode", ["rn", "rz", "rd", "ru"])
@pytest.mark.parametrize("name", ["add", "mul", "div", "fma", "sqrt", "rcp"])
def test_rounding_modes_of_infinities(name: str, mode: str) -> None:
    count = ARITHMETIC[name][0]
    values = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -2.5], np.float64)
    args = [g.ravel() for g in np.meshgrid(*[values] * count)]
    keep = ~np.all([np.isfinite(a) for a in args], axis=0)
    args = [a[keep] for a in args]
    with np.errstate(all="ignore"):
        plain = {
            "add": lambda a, b: a + b,
            "mul": lambda a, b: a * b,
            "div": lambda a, b: a / b,
            "fma": lambda a, b, c: a * b + c,
            "sqrt": np.sqrt,
            "rcp": lambda a: 1 / a,
        }[name](*args)
    for elem in ("float", "double"):
        got = compiled(f"{name}_{mode}", elem)(*args)
        assert np.array_equal(got, plain.astype(NUMPY[elem]), equal_nan=True)


@pytest.mark.parametrize("mode", ["rn", "rz", "rd", "ru"])
def test_double_to_float(mode: str) -> None:
    x = np.concatenate([operands("double", 100, 3), operands("float", 100, 4).astype(np.float64) * (1 + 2.0**-40)])
    got = compiled(f"double2float_{mode}", "double")(x)
    for a, y in zip(x, got):
        assert same(float(y), round_fraction(Fraction(float(a)), mode, "float", float(a) * 0)), (a, y)


INTEGERS = {
    "int": ("i32", -(2**31), 2**31 - 1),
    "uint": ("i32", 0, 2**32 - 1),
    "ll": ("i64", -(2**63), 2**63 - 1),
    "ull": ("i64", 0, 2**64 - 1),
}


@pytest.mark.parametrize("mode", ["rn", "rz", "rd", "ru"])
@pytest.mark.parametrize("source", ["float", "double"])
@pytest.mark.parametrize("short", INTEGERS)
@pytest.mark.thinned(2)
def test_conversions(short: str, source: str, mode: str) -> None:
    elem, low, high = INTEGERS[short]
    random = np.random.default_rng(11)
    kind = NUMPY[source]
    x = np.concatenate(
        [
            random.uniform(-5, 5, 50),
            random.integers(-20, 20, 50) / 2,
            random.uniform(-1, 1, 50) * 2.0**32,
            random.uniform(-1, 1, 50) * 2.0**64,
            [np.inf, -np.inf, np.nan, 2.0**31, 2.0**32, 2.0**63, 2.0**64, -(2.0**31), -(2.0**63)],
        ]
    ).astype(kind)
    whole = {"rn": lambda v: round(Fraction(v)), "rz": math.trunc, "rd": math.floor, "ru": math.ceil}[mode]
    got = compiled(f"{source}2{short}_{mode}", source)(x)
    width = 32 if elem == "i32" else 64
    for a, y in zip(map(float, x), got):
        if math.isnan(a):
            expected = 0 if source == "float" and elem == "i32" else 2 ** (width - 1)
        elif math.isinf(a):
            expected = high if a > 0 else low
        else:
            expected = min(max(whole(a), low), high)
        assert int(y) % 2**width == expected % 2**width, (a, y, expected)
    ints = np.concatenate(
        [random.integers(-100, 100, 20), random.integers(-(2 ** (width - 1)), 2 ** (width - 1) - 1, 200, endpoint=True)]
    )
    ints = ints.astype(NUMPY[elem])
    back = compiled(f"{short}2{source}_{mode}", elem)(ints)
    for n, y in zip(ints, back):
        value = int(n) % 2**width if short[0] == "u" else int(n)
        assert float(y) == round_fraction(Fraction(value), mode, source), (n, y)


def each(name: str, elem: str, wanted: Callable[..., int], *args: np.ndarray) -> None:
    got = compiled(name, elem)(*args)
    for y, *point in zip(got, *args):
        expected = wanted(*map(int, point))
        width = got.dtype.itemsize * 8
        assert int(y) % 2**width == expected % 2**width, f"{name}{tuple(point)} = {y}, not {expected}"


@pytest.mark.parametrize("width", [32, 64])
def test_integers(width: int) -> None:
    elem, mask = f"i{width}", 2**width - 1
    random = np.random.default_rng(12)
    kind = NUMPY[elem]
    ends = np.array([0, 1, -1, 2, 2 ** (width - 1) - 1, -(2 ** (width - 1))], kind)
    x = np.concatenate(
        [np.repeat(ends, 6), random.integers(-(2 ** (width - 1)), 2 ** (width - 1) - 1, 200, dtype=kind)]
    )
    y = np.concatenate([np.tile(ends, 6), random.integers(-(2 ** (width - 1)), 2 ** (width - 1) - 1, 200, dtype=kind)])
    each("clz", elem, lambda a: width - (a & mask).bit_length(), x)
    each("popc", elem, lambda a: (a & mask).bit_count(), x)
    each("ffs", elem, lambda a: ((a & mask) & -(a & mask)).bit_length(), x)
    each("brev", elem, lambda a: int(f"{a & mask:0{width}b}"[::-1], 2), x)
    each("abs", elem, abs, x)
    each("mulhi", elem, lambda a, b: (a * b) >> width, x, y)
    each("umulhi", elem, lambda a, b: ((a & mask) * (b & mask)) >> width, x, y)
    if width == 64:
        return
    z = np.roll(x, 3)

    def low24(a: int) -> int:
        return ((a & 0xFFFFFF) ^ 0x800000) - 0x800000

    each("mul24", elem, lambda a, b: low24(a) * low24(b), x, y)
    each("umul24", elem, lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF), x, y)
    each("sad", elem, lambda a, b, c: abs(a - b) + c, x, y, z)
    each("usad", elem, lambda a, b, c: abs((a & mask) - (b & mask)) + c, x, y, z)
    each("hadd", elem, lambda a, b: (a + b) >> 1, x, y)
    each("uhadd", elem, lambda a, b: ((a & mask) + (b & mask)) >> 1, x, y)
    each("rhadd", elem, lambda a, b: (a + b + 1) >> 1, x, y)
    each("urhadd", elem, lambda a, b: ((a & mask) + (b & mask) + 1) >> 1, x, y)

    def byte_perm(a: int, b: int, s: int) -> int:
        source = (a & mask).to_bytes(4, "little") + (b & mask).to_bytes(4, "little")
        return int.from_bytes(bytes(source[(s >> 4 * i) & 7] for i in range(4)), "little")

    each("byte_perm", elem, byte_perm, x, y, z)


@pytest.mark.parametrize("elem", ["float", "double"])
def test_rounding_and_parts(elem: str) -> None:
    kind = NUMPY[elem]
    random = np.random.default_rng(13)
    x = np.concatenate(
        [
            specials(elem),
            bit_patterns(elem, 500),
            (random.integers(-40, 40, 100) / 4).astype(kind),
            np.nextafter((random.integers(-40, 40, 100) / 2).astype(kind), kind(0)),
        ]
    )
    y = np.roll(x, 17)
    with np.errstate(all="ignore"):
        wanted = {
            "floor": np.floor(x),
            "ceil": np.ceil(x),
            "trunc": np.trunc(x),
            "rint": np.rint(x),
            "nearbyint": np.rint(x),
            "abs": np.abs(x),
            "round": np.array(
                [
                    v
                    if not np.isfinite(v)
                    else math.copysign(float(math.floor(abs(Fraction(float(v))) + Fraction(1, 2))), v)
                    for v in x
                ]
            ),
            "isnan": np.isnan(x),
            "isinf": np.isinf(x),
            "isfinited": np.isfinite(x),
            "finitef": np.isfinite(x),
            "signbit": np.signbit(x),
            "logb": np.where(np.isinf(x), np.inf, np.where(x == 0, -np.inf, np.frexp(x)[1].astype(float) - 1)),
            "saturatef": np.clip(np.where(np.isnan(x), 0, x), 0, 1),
        }
        for name, expected in wanted.items():
            expected = np.where(np.isnan(x), np.nan, expected) if name == "logb" else expected
            got = compiled(name, elem)(x)
            assert np.array_equal(got, expected.astype(got.dtype), equal_nan=True), name
            if name in ("floor", "ceil", "trunc", "rint", "round"):
                assert np.array_equal(np.signbit(got), np.signbit(x)) or np.isnan(x).any(), name
        for name, function in (("copysign", np.copysign), ("nextafter", np.nextafter)):
            assert np.array_equal(compiled(name, elem)(x, y), function(x, y), equal_nan=True), name
        got = compiled("ilogb", elem)(x)
        for v, e in zip(x, got):
            expected = (
                math.frexp(float(v))[1] - 1 if np.isfinite(v) and v != 0 else 2**31 - 1 if np.isinf(v) else -(2**31)
            )
            assert e == expected, v
        for name, whole in (
            ("llrint", round),
            ("llround", lambda v: int(math.copysign(math.floor(abs(v) + Fraction(1, 2)), v))),
        ):
            small = x[np.isfinite(x) & (np.abs(x) < 2.0**62)]
            for v, n in zip(small, compiled(name, elem)(small)):
                assert n == whole(Fraction(float(v))), (name, v)


@pytest.mark.parametrize("elem", ["float", "double"])
def test_remainders(elem: str) -> None:
    x, y = operands(elem, 300, 5), operands(elem, 300, 6)
    count = min(len(x), len(y))
    x, y = x[:count], y[:count]
    y = np.where(y == 0, 1, y).astype(NUMPY[elem])
    for name, function in (("fmod", math.fmod), ("remainder", math.remainder)):
        got = compiled(name, elem)(x, y)
        for a, b, r in zip(x, y, got):
            assert same(float(r), function(float(a), float(b))), (name, a, b, r)
        ends = np.array([np.inf, 1.0, -2.5, np.nan, 3.0, 0.0, -0.0], NUMPY[elem])
        by = np.array([2.0, np.inf, -np.inf, 1.0, 0.0, 5.0, 5.0], NUMPY[elem])
        assert np.array_equal(
            compiled(name, elem)(ends, by), [np.nan, 1.0, -2.5, np.nan, np.nan, 0.0, -0.0], equal_nan=True
        )


def test_bits_as_they_are() -> None:
    x, d = bit_patterns("float", 100), bit_patterns("double", 100)
    assert np.array_equal(compiled("float_as_int", "float")(x), x.view(np.int32))
    assert np.array_equal(compiled("int_as_float", "i32")(x.view(np.int32)).view(np.int32), x.view(np.int32))
    assert np.array_equal(compiled("double_as_longlong", "double")(d), d.view(np.int64))
    assert np.array_equal(compiled("longlong_as_double", "i64")(d.view(np.int64)).view(np.int64), d.view(np.int64))
    low, high = compiled("double2loint", "double")(d), compiled("double2hiint", "double")(d)
    assert np.array_equal(compiled("hiloint2double", "i32")(high, low).view(np.int64), d.view(np.int64))
    with np.errstate(all="ignore"):
        near = compiled("rcp64h", "double")(d) * d
    assert np.all((np.abs(near - 1) < 2.0**-20) | ~np.isfinite(near) | (np.abs(d) < 1e-300) | (np.abs(d) > 1e300))


def test_reciprocal_root_is_rounded() -> None:
    x = np.abs(bit_patterns("float", 2000))
    x = x[np.isfinite(x) & (x > 0)]
    got = compiled("rsqrt_rn", "float")(x)
    for a, y in zip(x, got):
        # 1/sqrt(a) lies within half a unit of y: compare squares of the middles
        below, above = (
            Fraction(float(y)) + Fraction(float(np.nextafter(y, s))) for s in (np.float32(0), np.float32(np.inf))
        )
        assert below**2 / 4 <= 1 / Fraction(float(a)) <= above**2 / 4, a


def test_missing_function() -> None:
    from weft.backends.llvm.emit import Module
    from weft.backends.llvm.values import FLOAT, PTR, VOID
    from weft.base import Unsupported

    f = Module().function("f", VOID, [("p", PTR)])
    with pytest.raises(Unsupported, match="no_such_function"):
        vecmath.call(f, "no_such_function", [f.const(FLOAT, 1.0)])
