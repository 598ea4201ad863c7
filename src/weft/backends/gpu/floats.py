"""Floats, where the GPU has an instruction of its own: extrema, and what is approximate."""

from __future__ import annotations

from collections.abc import Callable

from weft.backends.llvm.elementwise import call_library, narrow, through_f32, widen
from weft.backends.llvm.values import Value
from weft.ir.lane import LaneOp

from .elementwise import scalars
from .emitter import Emitter


def _typed(e: Emitter, op: LaneOp, a: list[str]) -> list[Value]:
    return [e.typed(op.results[0].elem, x) for x in a]


@scalars("math.roundeven")
def _round(e: Emitter, op: LaneOp, a: list[str]) -> str:
    elem = op.results[0].elem
    x = widen(e.f, elem, _typed(e, op, a)[0])
    return narrow(e.f, elem, e.f.intrinsic("rint", x.type, [x])).name


@scalars("arith.maxnumf", "arith.minnumf", "arith.maximumf", "arith.minimumf")
def _extremum(e: Emitter, op: LaneOp, a: list[str]) -> str:
    """Of a NaN and a number maxnumf gives the number, maximumf the NaN."""
    elem, name, f = op.results[0].elem, op.name.removeprefix("arith.").removesuffix("f"), e.f
    values = [widen(f, elem, x) for x in _typed(e, op, a)]
    type = values[0].type
    if elem == "f64" and name in ("maximum", "minimum"):
        best, either = f.intrinsic(f"{name[:3]}num", type, values), f.fcmp("uno", *values)
        return e.ins(f"select i1 {either.name}, double 0x7FF8000000000000, double {best.name}")
    return narrow(f, elem, f.intrinsic(name, type, values)).name


@scalars("arith.divf")
def quotient(e: Emitter, op: LaneOp, a: list[str]) -> str:
    """f32 to two units in the last place, as Triton does it; `precise` is rounded once; halves go through f32."""
    elem, f, values = op.results[0].elem, e.f, _typed(e, op, a)

    def divided(wide: str, x: list[Value]) -> Value:
        if elem == "f32" and not op.attrs.get("precise"):
            return e.dialect.approximation(f, "quotient", x)
        return f.emit(x[0].type, f"fdiv {x[0].type} {x[0].name}, {x[1].name}")

    return through_f32(f, elem, values, divided).name


HALF_LOG2_E = "0x3FE7154760000000"  # f32: 1.4426950216293335 / 2


def _exp(e: Emitter, x: Value) -> Value:
    """The square of exp(x / 2): where the result is denormal, its root is not, so that exp2 need not give denormals.

    That is one product more. What gives denormals itself, `ex2.approx` without `ftz`, is compared and scaled twice.
    """
    root = e.dialect.approximation(e.f, "exp2", [e.f.fmul(x, e.typed("f32", HALF_LOG2_E))])
    return e.f.fmul(root, root)


FAST: dict[str, Callable[[Emitter, Value], Value]] = {
    "exp": _exp,
    "exp2": lambda e, x: e.dialect.approximation(e.f, "exp2", [x]),
    "sqrt": lambda e, x: e.dialect.approximation(e.f, "sqrt", [x]),
    "rsqrt": lambda e, x: e.dialect.approximation(e.f, "rsqrt", [x]),
}
"""Functions of f32 that are an instruction; the others are in the library."""


@scalars(*(f"math.{name}" for name in FAST))
def _function(e: Emitter, op: LaneOp, a: list[str]) -> str:
    name = op.name.removeprefix("math.")

    def compute(elem: str, x: list[Value]) -> Value:
        if elem == "f32" and not op.attrs.get("precise"):
            return FAST[name](e, x[0])
        return e.f.intrinsic("sqrt", x[0].type, x) if name == "sqrt" else call_library(e.f, name, elem, x)

    return through_f32(e.f, op.results[0].elem, _typed(e, op, a), compute).name
