"""Every instruction of the table against a second definition: Python's integers and fractions, bit by bit.

What NVIDIA's PTX ISA says of an instruction is written down here again, of one number and not of arrays. The table is
judged by this and by `test_instructions.py`; what it judges are kernels.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft.sim.nvidia as folder
from weft.sim.nvidia.ptx_floats import FLOAT_WORDS
from weft.sim.nvidia.ptx_integers import INTEGERS, MODES
from weft.sim.nvidia.ptx_table import atomic, computed, lane_masks, operand_types, source_lanes
from weft.sim.nvidia.ptx_text import PTXError
from weft.sim.nvidia.ptx_values import BITS, BYTES, FLOATS, WORDS, Array

RNG = np.random.default_rng(0)


def test_the_table_knows_nothing_of_lane_programs() -> None:
    """It stays a judge of them: NumPy and the other files of the table are all that it imports."""
    for path in Path(folder.__path__[0]).glob("ptx_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                module = node.module or ""
                assert (node.level == 1 and module.startswith("ptx_")) or (node.level == 0 and module[:4] != "weft"), (
                    path
                )
            elif isinstance(node, ast.Import):
                assert not any(name.name.startswith("weft") for name in node.names), path


# -- integers ---------------------------------------------------------------------------------------------------------


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def cut(a: int, b: int) -> int:
    """The quotient towards zero; by zero, which the manual leaves open, 0."""
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def field(a: int, start: int, length: int, bits: int, type: str) -> int:
    """bfe as the manual writes it, bit by bit."""
    start, length = start & 255, length & 255
    sign = a >> min(start + length - 1, bits - 1) & 1 if type[0] == "s" and length else 0
    inside = [a >> start + k & 1 if k < length and start + k < bits else sign for k in range(bits)]
    return sum(bit << k for k, bit in enumerate(inside))


def inserted(a: int, b: int, start: int, length: int, bits: int) -> int:
    start, length = start & 255, length & 255
    for k in range(length):
        if start + k < bits:
            b = b & ~(1 << start + k) | (a >> k & 1) << start + k
    return b


def permuted(a: int, b: int, selectors: int) -> int:
    both, found = (b << 32 | a).to_bytes(8, "little"), 0
    for k in range(4):
        selector = selectors >> 4 * k & 15
        byte = both[selector & 7]
        found |= ((255 if byte & 128 else 0) if selector & 8 else byte) << 8 * k
    return found


def mode(name: str, c: int) -> int:
    """prmt's modes: which byte goes to each place, the lowest first."""
    c &= 3
    places = {
        "f4e": [c, c + 1, c + 2, c + 3], "b4e": [c, c - 1, c - 2, c - 3], "rc8": [c] * 4,
        "ecl": [max(k, c) for k in range(4)], "ecr": [min(k, c) for k in range(4)],
        "rc16": [2 * (c & 1), 2 * (c & 1) + 1] * 2,
    }  # fmt: skip
    return sum((place & 7) << 4 * k for k, place in enumerate(places[name]))


def bytes_of(value: int, type: str) -> list[int]:
    return [signed(v, 8) if type[0] == "s" else v for v in value.to_bytes(4, "little")]


WHOLE: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "min": min, "max": max,
    "div": cut, "rem": lambda a, b: a - cut(a, b) * b, "sad": lambda a, b, c: abs(a - b) + c,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "not": lambda a: ~a,
    "neg": lambda a: -a, "abs": abs, "cnot": lambda a: int(a == 0),
}  # fmt: skip
"""Of values with their signs; what is more than the register holds is cut off."""


def integer_cases() -> Iterator[tuple[str, Callable[..., int]]]:
    """A name, and what it computes of operands as unsigned integers."""
    for base, function in WHOLE.items():
        for type in (
            ("b16", "b32", "b64")
            if base in ("and", "or", "xor", "not", "cnot")
            else ("s16", "u32", "s32", "u64", "s64")
        ):
            yield (
                f"{base}.{type}",
                lambda *x, f=function, t=type: f(*(signed(v, int(t[1:])) if t[0] == "s" else v for v in x)),
            )
    for type in ("s16", "u16", "s32", "u32", "s64", "u64"):
        bits = int(type[1:])

        def value(v: int, type: str = type, bits: int = bits) -> int:
            return signed(v, bits) if type[0] == "s" else v

        yield f"mul.lo.{type}", lambda a, b: a * b
        yield f"mul.hi.{type}", lambda a, b, v=value, n=bits: v(a) * v(b) >> n
        yield f"mad.lo.{type}", lambda a, b, c: a * b + c
        yield f"mad.hi.{type}", lambda a, b, c, v=value, n=bits: (v(a) * v(b) >> n) + c
        if bits < 64:
            yield f"mul.wide.{type}", lambda a, b, v=value: v(a) * v(b)
            yield f"mad.wide.{type}", lambda a, b, c, v=value: v(a) * v(b) + c
        yield f"shr.{type}", lambda a, n, v=value: v(a) >> n
        if bits > 16:
            yield f"bfe.{type}", lambda a, s, n, b=bits, t=type: field(a, s, n, b, t)
    for bits in (16, 32, 64):
        yield f"shl.b{bits}", lambda a, n, b=bits: a << n if n < b else 0
    for bits in (32, 64):
        yield f"bfi.b{bits}", lambda a, b, s, n, w=bits: inserted(a, b, s, n, w)
        yield f"popc.b{bits}", lambda a: a.bit_count()
        yield f"clz.b{bits}", lambda a, b=bits: b - a.bit_length()
        yield f"brev.b{bits}", lambda a, b=bits: int(f"{a:0{b}b}"[::-1], 2)
    for base, sign in (("add", 1), ("sub", -1)):
        yield f"{base}.sat.s32", lambda a, b, s=sign: max(-(2**31), min(2**31 - 1, signed(a, 32) + s * signed(b, 32)))
    yield "shf.l.wrap.b32", lambda a, b, n: (b << 32 | a) << (n & 31) >> 32
    yield "shf.r.wrap.b32", lambda a, b, n: (b << 32 | a) >> (n & 31)
    yield "shf.l.clamp.b32", lambda a, b, n: (b << 32 | a) << min(n, 32) >> 32
    yield "shf.r.clamp.b32", lambda a, b, n: (b << 32 | a) >> min(n, 32)
    yield "prmt.b32", permuted
    for name in MODES:
        yield f"prmt.b32.{name}", lambda a, b, c, m=name: permuted(a, b, mode(m, c))
    for s, t in product("us", "us"):
        yield (
            f"dp4a.{s}32.{t}32",
            lambda a, b, c, s=s, t=t: c + sum(x * y for x, y in zip(bytes_of(a, s), bytes_of(b, t), strict=True)),
        )


INTEGER_CASES = dict(integer_cases())


def corners(bits: int) -> list[int]:
    """Patterns that matter, and some at random."""
    top = 1 << bits - 1
    random = [int(v) % (1 << bits) for v in RNG.integers(0, 1 << 63, 5)]
    return [0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, bits - 1, bits, top, top - 1, top + 1, 2 * top - 1, *random]


def combinations(types: tuple[str, ...], count: int = 3000) -> list[Array]:
    """Operands of these types: every combination of two corners, with what stands behind them drawn."""
    values = [corners(BITS[type]) for type in types]
    chosen = list(product(*values[:2]))
    if len(types) > 2:
        chosen = [
            (*c, *(int(RNG.choice(np.array(v, np.uint64))) for v in values[2:])) for c in chosen for _ in range(4)
        ]
        chosen = chosen[:count]
    columns = zip(*chosen, strict=True)
    return [np.array(list(c), np.uint64).astype(f"u{BITS[t] // 8}") for c, t in zip(columns, types, strict=True)]


def arity(base: str) -> int:
    return {"not": 1, "neg": 1, "abs": 1, "cnot": 1, "popc": 1, "clz": 1, "brev": 1, "mad": 3, "sad": 3, "dp4a": 3,
            "bfe": 3, "shf": 3, "prmt": 3, "bfi": 4}.get(base, 2)  # fmt: skip


@pytest.mark.parametrize("name", INTEGER_CASES)
def test_integers(name: str) -> None:
    parts = tuple(name.split("."))
    given = combinations(operand_types(parts)[: arity(parts[0])])
    (found,) = computed(parts, given)
    bits = 8 * found.dtype.itemsize
    expected = [INTEGER_CASES[name](*(int(v) for v in x)) % (1 << bits) for x in zip(*given, strict=True)]
    assert found.dtype.kind == "u" and found.tolist() == expected


def test_any_logic_of_three() -> None:
    a, b, c = (np.uint32([v]) for v in (0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA))
    for table in range(256):
        (found,) = computed(("lop3", "b32"), [a, b, c, np.uint32([table])])
        assert found.tolist() == [table * 0x01010101]


def test_predicates() -> None:
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    for name, expected in (("and", [0, 0, 0, 1]), ("or", [0, 1, 1, 1]), ("xor", [0, 1, 1, 0])):
        assert computed((name, "pred"), [a, b])[0].tolist() == expected
    assert computed(("not", "pred"), [a])[0].tolist() == [1, 1, 0, 0]
    assert computed(("selp", "b32"), [np.uint32([5] * 4), np.uint32([6] * 4), b])[0].tolist() == [6, 5, 6, 5]


def test_every_integer_instruction_is_tested() -> None:
    assert {name.split(".")[0] for name in INTEGER_CASES} | {"lop3"} == set(INTEGERS)


RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def test_comparisons_of_integers() -> None:
    for type in ("s16", "u32", "s32", "u64", "s64"):
        a, b = combinations((type, type))
        x, y = ([signed(int(v), int(type[1:])) if type[0] == "s" else int(v) for v in w] for w in (a, b))
        names = {**RELATIONS, **({"lo": RELATIONS["lt"], "hi": RELATIONS["gt"]} if type[0] == "u" else {})}
        names |= {"ls": RELATIONS["le"], "hs": RELATIONS["ge"]} if type[0] == "u" else {}
        third = RNG.integers(0, 2, len(a)).astype(bool)
        for name, relation in names.items():
            holds = [relation(*both) for both in zip(x, y, strict=True)]
            p, q = computed(("setp", name, type), [a, b])
            assert p.tolist() == holds and q.tolist() == [not h for h in holds], (name, type)
            p, q = computed(("setp", name, "and", type), [a, b, third])
            assert p.tolist() == (holds & third).tolist() and q.tolist() == (~np.array(holds) & third).tolist()
            assert computed(("setp", name, "xor", type), [a, b, third])[0].tolist() == (holds ^ third).tolist()
            assert computed(("setp", name, "or", type), [a, b, third])[0].tolist() == (holds | third).tolist()
            ones = [0xFFFFFFFF if h else 0 for h in holds]
            assert computed(("set", name, "u32", type), [a, b])[0].tolist() == ones
            assert computed(("set", name, "f32", type), [a, b])[0].view("f4").tolist() == [float(h) for h in holds]


# -- floats -----------------------------------------------------------------------------------------------------------


def float_corners(type: str) -> Array:
    dtype = FLOATS[type]
    info = {"f16": (2.0**-24, 65504.0), "bf16": (2.0**-133, 3.38e38), "f32": (2.0**-149, 3.4028234e38)}
    tiny, largest = info.get(type, (5e-324, 1.7976931348623157e308))
    plain = [0.0, -0.0, 1.0, -1.0, 1.5, 3.0, -0.1, 1 / 3, tiny, -3 * tiny, largest, -largest, largest / 3, 2.5, 1e-3]
    with np.errstate(all="ignore"):
        return np.array([*plain, math.inf, -math.inf, math.nan, *RNG.normal(size=6)]).astype(dtype)


def raised(x: Array) -> list[tuple[float, ...]]:
    """Python's floats of NumPy's, which are exact."""
    return [float(v) for v in x.astype(np.float64)]


def neighbours(x: Any, dtype: np.dtype[Any]) -> tuple[float, float]:
    """The next numbers of a type below and above."""
    value = np.array(x, dtype)
    with np.errstate(all="ignore"):
        return tuple(float(np.nextafter(value, np.array(to, dtype))) for to in (-math.inf, math.inf))  # type: ignore[return-value]


def check_rounding(found: float, exact: Fraction, way: str, dtype: np.dtype[Any], what: Any) -> None:
    """A finite value was rounded as the name says; what is beyond the largest number goes to infinity or to it."""
    below, above = neighbours(found, dtype)
    if way in ("rz", "rm", "rp"):
        down = way == "rm" or (way == "rz" and exact >= 0)
        assert math.isinf(found) or (Fraction(found) <= exact if down else Fraction(found) >= exact), what
        beyond = above if down else below
        if math.isinf(found):
            assert (found > 0) != down and (below if found > 0 else above) != found, what
            assert exact > Fraction(below) if found > 0 else exact < Fraction(above), what
        else:
            assert math.isinf(beyond) or (Fraction(beyond) > exact if down else Fraction(beyond) < exact), what
        return
    if math.isinf(found):
        largest = below if found > 0 else above
        second, _ = neighbours(abs(largest), dtype)
        step = Fraction(abs(largest)) - Fraction(second)
        assert abs(exact) >= Fraction(abs(largest)) + step / 2 and (exact > 0) == (found > 0), what
        return
    distance = abs(Fraction(found) - exact)
    for other in (below, above):
        if not math.isinf(other):
            further = abs(Fraction(other) - exact)
            even = int(np.array(found, dtype).view(f"u{dtype.itemsize}")) % 2 == 0
            assert distance < further or (distance == further and even), what


EXACT: dict[str, tuple[int, Callable[..., Fraction]]] = {
    "add": (2, lambda a, b: a + b), "sub": (2, lambda a, b: a - b), "mul": (2, lambda a, b: a * b),
    "div": (2, lambda a, b: a / b), "fma": (3, lambda a, b, c: a * b + c), "rcp": (1, lambda a: 1 / a),
}  # fmt: skip
ROUNDED = [
    *((base, way, type) for base in EXACT for way in ("rn", "rz", "rm", "rp") for type in ("f32", "f64")),
    *((base, "rn", type) for base in ("add", "sub", "mul", "fma") for type in ("f16", "bf16")),
]


def operands_of(count: int, type: str) -> list[Array]:
    values = float_corners(type)
    chosen = np.array(list(product(range(len(values)), repeat=min(count, 2))))
    given = [values[chosen[:, k]] for k in range(min(count, 2))]
    return [*given, RNG.permutation(np.tile(values, len(values)))] if count == 3 else given


@pytest.mark.parametrize(("base", "way", "type"), ROUNDED)
def test_floats_are_rounded_once(base: str, way: str, type: str) -> None:
    count, exact = EXACT[base]
    given, dtype = operands_of(count, type), FLOATS[type]
    with np.errstate(all="ignore"):
        (bits,) = computed((base, way, type), [x.view(f"u{dtype.itemsize}") for x in given])
        plain = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}.get(base)
        wide = [x.astype(np.float64) for x in given]
        special = plain(*wide) if plain else 1 / wide[0] if base == "rcp" else wide[0] * wide[1] + wide[2]
    for found, s, *x in zip(raised(bits.view(dtype)), special, *map(raised, given), strict=True):
        if not all(map(math.isfinite, x)) or (base in ("div", "rcp") and x[-1] == 0):
            assert found == s or (math.isnan(found) and math.isnan(s)), (x, found)
            continue
        value = exact(*map(Fraction, x))
        check_rounding(found, value, way, dtype, (x, found))
        if value == 0:
            signs = {math.copysign(1, x[0]), math.copysign(1, -x[1] if base == "sub" else x[-1])}
            if base == "fma":
                signs = {math.copysign(1, x[0]) * math.copysign(1, x[1]), math.copysign(1, x[2])}
            if base in ("add", "sub", "fma"):
                sign = signs.pop() if len(signs) == 1 else -1.0 if way == "rm" else 1.0
                assert math.copysign(1, found) == sign, (x, found)


def test_sums_that_f64_cannot_tell_from_a_tie() -> None:
    """(1 + 2^-12)^2 is half way between two numbers of f32; what is added is too small for f64."""
    x = 1 + 2.0**-12
    for sign, small in product((1.0, -1.0), (2.0**-60, -(2.0**-60))):
        (found,) = values_of("fma.rn.f32", *(float_bits("f32", v) for v in (sign * x, x, small)))
        check_rounding(found, Fraction(sign * x) * Fraction(x) + Fraction(small), "rn", FLOATS["f32"], (sign, small))


def test_square_roots() -> None:
    for way, type in product(("rn", "rz", "rm", "rp"), ("f32", "f64")):
        x = np.abs(float_corners(type))
        x = x[np.isfinite(x)]
        (bits,) = computed(("sqrt", way, type), [x.view(f"u{x.dtype.itemsize}")])
        for value, found in zip(raised(x), raised(bits.view(x.dtype)), strict=True):
            below, above = (Fraction(v) for v in neighbours(found, x.dtype))
            root, exact = Fraction(found), Fraction(value)
            if way == "rn":
                assert ((root + max(below, 0)) / 2) ** 2 <= exact <= ((root + above) / 2) ** 2, (way, value)
            else:
                lower, upper = (max(below, 0), root) if way == "rp" else (root, above)
                assert (lower**2 <= exact <= upper**2 and root**2 != exact) or root**2 == exact, (way, value)


def float_bits(type: str, *values: float) -> Array:
    x = np.array(values).astype(FLOATS[type])
    return x.view(f"u{x.dtype.itemsize}")


def values_of(name: str, *operands: Array) -> list[float]:
    parts = tuple(name.split("."))
    with np.errstate(all="ignore"):
        return raised(computed(parts, list(operands))[0].view(FLOATS[parts[-1]]))


def test_extrema_signs_and_limits() -> None:
    for type in ("f16", "bf16", "f32", "f64"):
        nan, one, zero, minus = (float_bits(type, v) for v in (math.nan, 1.0, 0.0, -0.0))
        assert values_of(f"max.{type}", nan, one) == [1.0] == values_of(f"min.{type}", one, nan)
        assert all(
            math.isnan(v) for v in values_of(f"max.NaN.{type}", nan, one) + values_of(f"min.NaN.{type}", one, nan)
        )
        assert math.isnan(values_of(f"min.{type}", nan, nan)[0])
        for x, y in ((zero, minus), (minus, zero)):
            assert math.copysign(1, values_of(f"min.{type}", x, y)[0]) == -1
            assert math.copysign(1, values_of(f"max.{type}", x, y)[0]) == 1
        assert values_of(f"max.{type}", float_bits(type, -3.0), one) == [1.0]
        assert values_of(f"min.{type}", float_bits(type, -3.0), one) == [-3.0]
        assert values_of(f"neg.{type}", one) == [-1.0] and values_of(f"abs.{type}", float_bits(type, -2.0)) == [2.0]
        if type in ("f32", "f64"):
            assert values_of(f"copysign.{type}", float_bits(type, -2.0), one) == [-1.0]
    assert values_of("add.sat.f32", float_bits("f32", 0.75), float_bits("f32", 0.75)) == [1.0]
    assert values_of("add.sat.f32", float_bits("f32", math.nan), float_bits("f32", 0.75)) == [0.0]
    assert values_of("fma.rn.relu.f16", *(float_bits("f16", v) for v in (-1.0, 1.0, 0.5))) == [0.0]
    small = float_bits("f32", 2.0**-127)
    assert values_of("add.ftz.f32", small, small) == [0.0] and values_of("add.f32", small, small) == [2.0**-126]
    assert values_of("mul.ftz.f32", float_bits("f32", 2.0**-70), float_bits("f32", -(2.0**-70))) == [-0.0]


def test_pairs_are_two() -> None:
    x, y = (RNG.integers(0, 1 << 32, 50).astype(np.uint32) & np.uint32(0xBFFFBFFF) for _ in range(2))
    for base, type in product(("add", "sub", "mul", "min", "max"), ("f16", "bf16")):
        (found,) = computed((base, f"{type}x2"), [x, y])
        for k in (0, 16):
            (half,) = computed((base, type), [(v >> k).astype(np.uint16) for v in (x, y)])
            assert ((found >> k).astype(np.uint16) == half).all(), base
    low, high = computed(("setp", "lt", "f16x2"), [np.uint32([0x3C004000]), np.uint32([0x40003C00])])
    assert (low.tolist(), high.tolist()) == ([False], [True])


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "rsqrt": lambda a: 1 / math.sqrt(a), "ex2": lambda a: 2.0**a, "lg2": math.log2, "sin": math.sin, "cos": math.cos,
    "tanh": math.tanh,
}  # fmt: skip


def test_functions() -> None:
    for base, function in FUNCTIONS.items():
        x = float_bits("f32", 0.5, 1.0, 2.75, 10.0)
        found = values_of(f"{base}.approx.f32", x)
        np.testing.assert_allclose(found, [function(v) for v in raised(x.view("f4"))], rtol=1e-7)


def test_comparisons_of_floats() -> None:
    for type in ("f16", "bf16", "f32", "f64"):
        x, y = operands_of(2, type)
        a, b = (v.view(f"u{v.dtype.itemsize}") for v in (x, y))
        pairs = list(zip(raised(x), raised(y), strict=True))
        nan = [math.isnan(p) or math.isnan(q) for p, q in pairs]
        for name, relation in RELATIONS.items():
            holds = [relation(p, q) for p, q in pairs]
            ordered = [h and not n for h, n in zip(holds, nan, strict=True)]
            assert computed(("setp", name, type), [a, b])[0].tolist() == ordered, (name, type)
            unordered = [h or n for h, n in zip(ordered, nan, strict=True)]
            assert computed(("setp", f"{name}u", type), [a, b])[0].tolist() == unordered, (name, type)
        assert computed(("setp", "nan", type), [a, b])[0].tolist() == nan
        assert computed(("setp", "num", type), [a, b])[0].tolist() == [not n for n in nan]
    third = np.array([False, True])
    for combine, wanted in (("and", [False, True]), ("or", [True, True]), ("xor", [True, False])):
        both = [float_bits("f32", 1.0, 1.0), float_bits("f32", 2.0, 2.0), third]
        assert computed(("setp", "lt", combine, "f32"), both)[0].tolist() == wanted
    small, zero = float_bits("f32", 2.0**-127), float_bits("f32", 0.0)
    assert computed(("setp", "eq", "ftz", "f32"), [small, zero])[0].tolist() == [True]


def test_kinds_of_floats() -> None:
    x = float_bits("f32", 0.0, 1.0, 2.0**-127, -math.inf, math.nan)
    expected = {
        "finite": [1, 1, 1, 0, 0], "infinite": [0, 0, 0, 1, 0], "number": [1, 1, 1, 1, 0],
        "notanumber": [0, 0, 0, 0, 1], "normal": [0, 1, 0, 0, 0], "subnormal": [0, 0, 1, 0, 0],
    }  # fmt: skip
    for kind, wanted in expected.items():
        assert computed(("testp", kind, "f32"), [x])[0].tolist() == wanted, kind


def test_every_float_instruction_is_tested() -> None:
    tested = {*EXACT, *FUNCTIONS, "sqrt", "min", "max", "neg", "abs", "copysign", "mad"}
    assert tested == set(FLOAT_WORDS)
    x = [float_bits("f32", v) for v in (3.0, 5.0, 7.0)]
    assert values_of("mad.rn.f32", *x) == [22.0]


# -- conversions ------------------------------------------------------------------------------------------------------

WAYS = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


def test_floats_to_integers() -> None:
    for source, to, way in product(("f16", "bf16", "f32", "f64"), ("s16", "u16", "s32", "u32", "s64", "u64"), WAYS):
        more = [2.5, 3.5, -2.5, -0.5, 0.5, 1e4, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, 2.0**64, 3e9, -1.0]
        with np.errstate(all="ignore"):
            x = np.concatenate([float_corners(source), np.array(more).astype(FLOATS[source])])
            (found,) = computed(("cvt", way, to, source), [x.view(f"u{x.dtype.itemsize}")])
        bits = int(to[1:])
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if to[0] == "s" else (0, (1 << bits) - 1)
        for value, got in zip(raised(x), found, strict=True):
            if math.isnan(value):
                wanted = 1 << bits - 1 if bits == 64 or source == "f64" else 0
            elif math.isinf(value):
                wanted = high if value > 0 else low
            else:
                wanted = max(low, min(high, WAYS[way](value)))
            assert (int(got) - wanted) % (1 << bits) == 0, (source, to, way, value)


def test_integers_to_others() -> None:
    for source in ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"):
        bits = int(source[1:])
        ties = [(1 << 62) + (1 << 54) + 1, (1 << 62) + (1 << 54)] if bits == 64 else []  # f64 has no room for the 1
        given = np.array([*corners(bits), *ties], np.uint64).astype(f"u{bits // 8}")
        values = [signed(int(v), bits) if source[0] == "s" else int(v) for v in given]
        for to in ("f16", "bf16", "f32", "f64"):
            with np.errstate(all="ignore"):
                (found,) = computed(("cvt", "rn", to, source), [given])
            for value, got in zip(values, raised(found.view(FLOATS[to])), strict=True):
                check_rounding(got, Fraction(value), "rn", FLOATS[to], (source, to, value))
        for to in ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"):
            size = int(to[1:])
            low, high = (-(1 << size - 1), (1 << size - 1) - 1) if to[0] == "s" else (0, (1 << size) - 1)
            for words in ((), ("sat",)):
                (found,) = computed(("cvt", *words, to, source), [given])
                wide = 8 * found.dtype.itemsize
                for value, got in zip(values, found, strict=True):
                    kept = max(low, min(high, value)) if words else value % (1 << size)
                    kept = signed(kept % (1 << size), size) if to[0] == "s" else kept
                    assert int(got) == kept % (1 << wide), (source, to, words, value)


def test_floats_to_floats() -> None:
    for source, to, way in product(
        ("f16", "bf16", "f32", "f64"), ("f16", "bf16", "f32", "f64"), ("rn", "rz", "rm", "rp")
    ):
        x = float_corners(source)
        with np.errstate(all="ignore"):
            more = np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11, 65519.0, 65520.0, 1 + 2.0**-8 + 2.0**-40])
            x = np.concatenate([x, more.astype(FLOATS[source])])
            (found,) = computed(("cvt", way, to, source), [x.view(f"u{x.dtype.itemsize}")])
        for value, got in zip(raised(x), raised(found.view(FLOATS[to])), strict=True):
            if math.isfinite(value):
                check_rounding(got, Fraction(value), way, FLOATS[to], (source, to, way, value))
            else:
                assert got == value or math.isnan(got) == math.isnan(value)


def test_whole_numbers_as_floats() -> None:
    x = float_bits("f32", 2.5, -2.5, 2.1, -2.9)
    for way, expected in {
        "rni": [2, -2, 2, -3],
        "rzi": [2, -2, 2, -2],
        "rmi": [2, -3, 2, -3],
        "rpi": [3, -2, 3, -2],
    }.items():
        assert values_of(f"cvt.{way}.f32.f32".replace(".f32.f32", ".f32.f32"), x) == expected


def test_ten_bits_of_fraction() -> None:
    x = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-12, -1 - 2.0**-11, math.inf, -3.0], np.float32).view(
        np.uint32
    )
    step = 2.0**-10
    expected = {
        "rna": [1 + step, 1 + 2 * step, 1.0, -1 - step, math.inf, -3.0],
        "rn": [1.0, 1 + 2 * step, 1.0, -1.0, math.inf, -3.0],
        "rz": [1.0, 1 + step, 1.0, -1.0, math.inf, -3.0],
    }
    for way, wanted in expected.items():
        assert computed(("cvt", way, "tf32", "f32"), [x])[0].view(np.float32).tolist() == wanted, way
    assert computed(("cvt", "rna", "relu", "tf32", "f32"), [x])[0].view(np.float32).tolist()[-1] == 0.0


def test_pairs_of_floats() -> None:
    high, low = float_bits("f32", 1.5), float_bits("f32", -2.0)
    for type in ("f16", "bf16"):
        (found,) = computed(("cvt", "rn", f"{type}x2", "f32"), [high, low])
        halves = found.view(np.uint16).view(FLOATS[type])
        assert raised(halves) == [-2.0, 1.5]
    for pair, dtype in BYTES.items():
        largest = {"e4m3x2": 448.0, "e5m2x2": 57344.0}[pair]
        x, y = float_bits("f32", 1.5, math.inf, math.nan), float_bits("f32", -2.0, -1e9, 0.3)
        (found,) = computed(("cvt", "rn", "satfinite", pair, "f32"), [x, y])
        data = found.view(np.uint8).reshape(-1, 2)
        assert raised(data[:2].view(dtype).reshape(-1)) == [-2.0, 1.5, -largest, largest]
        assert data[2, 1] == 0x7F and float(data[2, :1].view(dtype)[0]) == float(np.float32(0.3).astype(dtype))
        (back,) = computed(("cvt", "rn", "f16x2", pair), [found[:2]])
        assert raised(back.view(np.float16)) == [-2.0, 1.5, -largest, largest]
        (relu,) = computed(("cvt", "rn", "satfinite", "relu", pair, "f32"), [x, y])
        assert relu.view(np.uint8)[0] == 0
        (same,) = computed(("cvt", "rn", "satfinite", pair, "f16x2"), [back])
        assert same.tolist() == found[:2].tolist()


# -- lanes and memory -------------------------------------------------------------------------------------------------


def test_lane_masks() -> None:
    masks = {kind: mask.tolist() for kind, mask in lane_masks(np.arange(32)).items()}
    relations = {"eq": "eq", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
    for kind, relation in relations.items():
        expected = [sum(1 << other for other in range(32) if RELATIONS[relation](other, lane)) for lane in range(32)]
        assert masks[kind] == expected


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_source_lanes(mode: str) -> None:
    """shfl's pseudo-code, lane by lane."""
    lane = np.arange(32)
    for by, clamp, segment in product((0, 1, 5, 31, 33), (0, 7, 31), (0, 0x10, 0x18, 0x1F)):
        source, inside = source_lanes(("shfl", "sync", mode, "b32"), lane, np.int64(by), np.int64(clamp | segment << 8))
        for k in range(32):
            last, first, b = k & segment | clamp & ~segment, k & segment, by & 31
            j = {"up": k - b, "down": k + b, "bfly": k ^ b, "idx": first | b & ~segment}[mode]
            held = j >= last if mode == "up" else j <= last
            assert (int(source[k]), bool(inside[k])) == (j if held else k, held)


ATOMICS: dict[str, Callable[[int, int], int]] = {
    "add": lambda o, b: o + b, "min": min, "max": max, "and": lambda o, b: o & b, "or": lambda o, b: o | b,
    "xor": lambda o, b: o ^ b, "exch": lambda o, b: b, "inc": lambda o, b: 0 if o >= b else o + 1,
    "dec": lambda o, b: b if o == 0 or o > b else o - 1,
}  # fmt: skip


def test_atomics() -> None:
    for kind, type in product(ATOMICS, ("u32", "s32", "u64", "s64")):
        if kind in ("inc", "dec") and type != "u32":
            continue
        bits = int(type[1:])
        old, b = combinations((type, type))
        found = atomic(("atom", "global", kind, type))(old, b)
        values = ([signed(int(v), bits) if type[0] == "s" else int(v) for v in x] for x in (old, b))
        expected = [ATOMICS[kind](*both) % (1 << bits) for both in zip(*values, strict=True)]
        assert found.tolist() == expected, (kind, type)
    swap = atomic(("atom", "cas", "b32"))
    assert swap(np.uint32([5, 6]), np.uint32([5, 5]), np.uint32([9, 9])).tolist() == [9, 6]
    pair = atomic(("red", "add", "noftz", "f16x2"))
    assert pair(np.uint32([0x3C004000]), np.uint32([0x3C003C00])).tolist() == [0x40004200]


@pytest.mark.parametrize(
    "name",
    ["add.cc.u32", "addc.u32", "max.relu.s32", "min.xorsign.abs.f32", "mul.wide.u64", "cvt.rs.f16x2.f32", "fma.rz.f16",
     "cvt.rz.f32.s32", "ex3.f32", "setp.ltu.s32", "atom.min.f32", "add.u24", "cvt.s32.f32"],
)  # fmt: skip
def test_what_is_not_in_the_table(name: str) -> None:
    parts = tuple(name.split("."))
    with pytest.raises(PTXError):
        if parts[0] == "atom":
            atomic(parts)
        else:
            computed(parts, [np.zeros(4, WORDS[t]) for t in operand_types(parts)])
