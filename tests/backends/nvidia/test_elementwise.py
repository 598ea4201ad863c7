"""Element-wise operations as PTX: which instructions they are, and the corners of docs/reference/semantics.md."""

from __future__ import annotations

from typing import Any

import pytest

from sim.kit import Kit
from weft.backends.llvm import vecmath
from weft.backends.nvidia import emit
from weft.base import Unsupported
from weft.ir.lane import LaneProgram

from .assembling import TARGETS, assembled, kinds, needs_ptxas

INTEGERS = (
    "addi", "subi", "muli", "andi", "ori", "xori", "shli", "shrsi", "shrui", "divsi", "divui", "remsi", "remui",
    "maxsi", "minsi", "maxui", "minui", "mulhui", "mulhsi",
)  # fmt: skip
FLOATS = ("addf", "subf", "mulf", "divf", "remf", "maxnumf", "minnumf", "maximumf", "minimumf")
UNARY = (
    "absf", "floor", "ceil", "trunc", "round", "roundeven", "sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2",
    "log10", "log1p", "sin", "cos", "tan", "tanh", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
    "cbrt", "erf",
)  # fmt: skip
SMALL = ("f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3B11FNUZ")
STORED = {"i1": "i8", **dict.fromkeys(SMALL, "i8")}


def program(
    name: str, elems: list[str], result: str, target: str = "cuda:80", count: int = 1, **attrs: Any
) -> LaneProgram:
    """out = name(a, b, ...), `count` consecutive elements in each thread."""
    parameters = [f"{'abc'[i]}:{STORED.get(e, e)}*" for i, e in enumerate(elems)]
    kit = Kit(*parameters, f"out:{STORED.get(result, result)}*", target=target)
    place = kit.thread((0,), count)
    values = []
    for parameter, elem in zip("abc", elems, strict=False):
        value = kit.load("global", kit.place(parameter, place), STORED.get(elem, elem), count)
        if elem == "i1":
            value = kit.op("arith.trunci", [value], "i1")
        elif elem in SMALL:
            value = kit.op("arith.bitcast", [value], elem)
        values.append(value)
    found = kit.op(name, values, result, **attrs)
    if result in STORED:
        found = kit.op("arith.extui" if result == "i1" else "arith.bitcast", [found], "i8")
    kit.store("global", kit.place("out", place), found, count)
    return kit.program()


def names(name: str, elems: list[str], result: str, target: str = "cuda:80", count: int = 1, **attrs: Any) -> list[str]:
    """The kinds of the instructions, loads, stores and addresses left out."""
    found = kinds(emit(program(name, elems, result, target, count, **attrs)).code)
    return [k for k in found if not k.startswith(("ld.", "st.", "ret", "mov.u32", "mul.wide", "add.s64", "cvt.u64"))]


@needs_ptxas
@pytest.mark.parametrize("target", TARGETS)
def test_everything_assembles(target: str) -> None:
    """Each operation once, in one kernel for each element type."""
    for elem in ("i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", *SMALL):
        stored = STORED.get(elem, elem)
        kit = Kit(f"a:{stored}*", f"b:{stored}*", f"out:{stored}*", target=target)
        a, b = (kit.load("global", kit.place(n, kit.thread((0,), 2)), stored, 2) for n in "ab")
        if elem in SMALL:
            a, b = (kit.op("arith.bitcast", [v], elem) for v in (a, b))
        integer = elem[0] == "i"
        made = [kit.op(f"arith.{n}", [a, b], elem) for n in (INTEGERS if integer else FLOATS)]
        if integer:
            made += [kit.op(f"math.{n}", [a], elem) for n in ("absi", "ctpop", "ctlz", "cttz")]
        else:
            made += [kit.op(f"math.{n}", [a], elem) for n in UNARY]
            made += [kit.op("math.fma", [a, b, a], elem), kit.op("arith.negf", [a], elem)]
            made += [kit.op(f"math.{n}", [a, b], elem) for n in ("copysign", "powf", "atan2")]
        for value in made:
            whole = kit.op("arith.bitcast", [value], stored) if elem in SMALL else value
            kit.store("global", kit.place("out", kit.thread((0,), 2)), whole, 2)
        assembled(kit.program())


CASTS = ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", *SMALL)


@needs_ptxas
@pytest.mark.parametrize("target", TARGETS)
def test_every_cast_assembles(target: str) -> None:
    for source in CASTS:
        stored = STORED.get(source, source)
        kit = Kit(f"a:{stored}*", "out:i8*", target=target)
        value = kit.load("global", kit.place("a", kit.thread((0,), 2)), stored, 2)
        if source == "i1":
            value = kit.op("arith.trunci", [value], "i1")
        elif source in SMALL:
            value = kit.op("arith.bitcast", [value], source)
        for to in CASTS:
            if to == source:
                continue
            if source[0] == "i":
                name = "arith.sitofp" if to[0] != "i" else "arith.extsi" if CASTS.index(to) > CASTS.index(source) else "arith.trunci"  # fmt: skip  # noqa: E501
                if to in SMALL:
                    continue  # the language refuses it
            else:
                name = "arith.fptosi" if to[0] == "i" else "arith.truncf"
            made = kit.op(name, [value], to)
            kit.store("global", kit.place("out", kit.thread()), _as_byte(kit, made))
        assembled(kit.program())


def _as_byte(kit: Kit, value: Any) -> Any:
    """Something of one register that depends on the value."""
    first = kit.rename(value, [1])
    if value.elem == "i1":
        return kit.op("arith.extui", [first], "i8")
    bits = {"f16": "i16", "bf16": "i16", "f32": "i32", "f64": "i64"}.get(value.elem, "i8")
    if value.elem[0] != "i":
        first = kit.op("arith.bitcast", [first], bits)
    return first if first.elem == "i8" else kit.op("arith.trunci", [first], "i8")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("math.exp", ["mul.f32", "ex2.approx.ftz.f32", "mul.f32"]),
        ("math.exp2", ["ex2.approx.ftz.f32"]),
        ("math.sqrt", ["sqrt.approx.ftz.f32"]),
        ("math.rsqrt", ["rsqrt.approx.ftz.f32"]),
        ("math.floor", ["cvt.rmi.f32.f32"]),
        ("math.absf", ["abs.f32"]),
    ],
)
def test_functions_that_are_instructions(name: str, expected: list[str]) -> None:
    assert names(name, ["f32"], "f32") == expected


def test_halves_of_a_word_are_widened_by_an_instruction_each() -> None:
    assert names("arith.extf", ["bf16"], "f32", count=2) == ["shl.b32", "and.b32"]


def test_division() -> None:
    assert names("arith.divf", ["f32", "f32"], "f32") == ["div.full.f32"]
    assert names("arith.divf", ["f32", "f32"], "f32", scaled=()) == ["rcp.approx.ftz.f32", "mul.f32"]
    comparison = ["abs.f32", "setp.gt.f32", "selp.f32", "mul.f32", "mul.f32"]
    scaled = names("arith.divf", ["f32", "f32"], "f32", scaled=("huge",))
    assert sorted(scaled) == sorted([*comparison, "rcp.approx.ftz.f32", "mul.f32"])
    assert names("arith.divf", ["f32", "f32"], "f32", precise=True) == ["div.rn.f32"]
    assert names("math.sqrt", ["f32"], "f32", precise=True) == ["sqrt.rn.f32"]
    assert names("arith.divf", ["f64", "f64"], "f64") == ["div.rn.f64"]


def test_nan_passes_or_wins() -> None:
    assert names("arith.maxnumf", ["f32", "f32"], "f32") == ["max.f32"]
    assert names("arith.maximumf", ["f32", "f32"], "f32") == ["max.NaN.f32"]
    assert names("arith.minimumf", ["bf16", "bf16"], "bf16") == ["min.NaN.bf16"]
    assert "setp.nan.f64" in names("arith.maximumf", ["f64", "f64"], "f64")


def test_shifts_by_the_width_and_more() -> None:
    """Amounts are limited, or the result replaced."""
    assert names("arith.shrsi", ["i32", "i32"], "i32") == ["min.u32", "shr.s32"]
    assert names("arith.shli", ["i8", "i8"], "i8") == ["setp.lt.u32", "shl.b16", "selp.b16"]


def test_division_by_zero_is_not_left_to_the_machine() -> None:
    found = names("arith.divsi", ["i32", "i32"], "i32")
    assert found.count("div.s32") == 1
    assert sum(k.startswith("selp") for k in found) >= 2


def test_floats_to_integers_saturate_and_nan_is_zero() -> None:
    assert names("arith.fptosi", ["f32"], "i32") == ["cvt.rzi.s32.f32"]  # PTX makes 0 of NaN here
    wide = names("arith.fptosi", ["f32"], "i64")
    assert "cvt.rzi.s64.f32" in wide and any(k.startswith("setp") for k in wide)  # and not here
    small = names("arith.fptosi", ["f32"], "i8")
    assert "max.s32" in small and "min.s32" in small


def test_halves_two_at_a_time() -> None:
    assert names("arith.addf", ["f16", "f16"], "f16", count=2) == ["add.f16x2"]
    assert names("arith.mulf", ["bf16", "bf16"], "bf16", "cuda:90", 2) == ["mul.bf16x2"]
    assert "fma.rn.bf16x2" in names("arith.mulf", ["bf16", "bf16"], "bf16", "cuda:80", 2)
    assert names("arith.truncf", ["f32"], "f16", count=2) == ["cvt.rn.f16x2.f32"]


def test_small_floats_by_instruction_where_there_is_one() -> None:
    found = names("arith.truncf", ["f32"], "f8E4M3FN", "cuda:90", 4)
    assert found.count("cvt.rn.satfinite.e4m3x2.f32") == 2
    assert not any("satfinite" in k for k in names("arith.truncf", ["f32"], "f8E4M3FN", "cuda:80", 4))


def test_rounding_towards_zero() -> None:
    assert "cvt.rz.f16.f32" in names("arith.truncf", ["f32"], "f16", roundingmode="toward_zero")
    assert "cvt.rz.bf16.f32" in names("arith.truncf", ["f32"], "bf16", rounding=0)


def test_contraction_only_where_it_is_allowed() -> None:
    kit = Kit("a:f32*", target="cuda:80")
    value = kit.load("global", kit.place("a", kit.thread()), "f32")
    product = kit.op("arith.mulf", [value, value], "f32")
    kit.store("global", kit.place("a", kit.thread()), kit.op("arith.addf", [product, value], "f32"))
    fused, kept = (kinds(emit(kit.program(), fp_fusion=on).code) for on in (True, False))
    assert "fma.rn.f32" in fused
    assert "mul.rn.f32" in kept and "add.rn.f32" in kept


def test_a_function_that_there_is_not() -> None:
    with pytest.raises(Unsupported, match="the external function `nothing`"):
        emit(program("libdevice.nothing", ["f32"], "f32"))


LIBRARY = {"float": "f32", "double": "f64", "i32": "i32", "i64": "i64"}
ARRAYS = {"f32": "f", "f64": "d", "i32": "i", "i64": "l"}


def _library_program(symbols: list[str]) -> LaneProgram:
    kit = Kit("f:f32*", "d:f64*", "i:i32*", "l:i64*", target="cuda:80")
    for symbol in symbols:
        described = vecmath.definition(*vecmath.symbol_to_name[symbol])
        elems = [LIBRARY[a] for a in described.args]
        operands = [kit.load("global", kit.place(ARRAYS[e], kit.thread()), e) for e in elems]
        found = kit.op(f"libdevice.{symbol}", operands, LIBRARY.get(described.result, "i32"))
        kit.store("global", kit.place(ARRAYS[found.elem], kit.thread()), found)
    return kit.program()


@needs_ptxas
def test_every_library_function_assembles() -> None:
    """One symbol for each function; none of libdevice's own code is needed."""
    first: dict[tuple[str, str], str] = {}
    for symbol, function in sorted(vecmath.symbol_to_name.items()):
        first.setdefault(function, symbol)
    symbols = list(first.values())
    assert len(symbols) > 300
    for at in range(0, len(symbols), 40):
        assembled(_library_program(symbols[at : at + 40]))
