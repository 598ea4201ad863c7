"""Kernels on any values: NaN, infinities, both zeros, denormals, numbers that round.

In a kernel with these there are two kinds of floats: whole numbers, for operations of any kind, and special ones, for
operations whose result is defined to the last bit whatever comes in: `SPECIAL`. While `Generator.special` is true (in
`on_any`) it chooses, makes and stores the latter; integers and conditions belong to both.

Left open by the language, and therefore made one here: which zero an extremum is (0.0 is added), and the bits of a
NaN (none is reinterpreted; the one that is sorted is a constant).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import memory, operations as plain
from .elements import DTYPES, INTEGERS, NAMES, Array, bits, is_float
from .operations import Operation, is_tile, pair, wide_enough
from .program import State
from .rounding import FP8, fused, through_fp8
from .scope import Generator, Impossible, Var

LITERALS = {
    'float("nan")': np.nan, 'float("inf")': np.inf, '-float("inf")': -np.inf, "-0.0": -0.0, "0.1": 0.1,
    "65520.0": 65520.0, "3.4028234663852886e38": 3.4028234663852886e38, "1e-40": 1e-40, "6e-8": 6e-8,
}  # fmt: skip
EXTREMA: dict[tuple[str, bool], np.ufunc] = {
    ("minimum", False): np.fmin, ("maximum", False): np.fmax,
    ("minimum", True): np.minimum, ("maximum", True): np.maximum,
}  # fmt: skip
ALL = ", propagate_nan=tl.PropagateNan.ALL"


def on_any(operation: Operation) -> Operation:
    """An operation on special floats."""

    def run(g: Generator) -> None:
        with g.any_values():
            operation(g)

    return run


def _float(v: Var) -> bool:
    return is_float(v.elem)


def _define(g: Generator, text: str, like: Var, value: Callable[[State], Array], elem: str = "") -> Var:
    return g.define(text, value, like.shape, elem or like.elem, 0, 0)


def _narrow(x: Var) -> str:
    """Extrema of bf16 are f32."""
    return ".to(tl.bfloat16)" if x.elem == "bf16" else ""


def _one_zero(a: Array) -> Array:
    """With 0.0 for -0.0; and with quiet NaN, since `fmax` of C gives a signaling one rather than the number."""
    return (a + a.dtype.type(0)).astype(a.dtype)


def literal(g: Generator) -> None:
    elem, (text, value) = g.rng.choice(("f16", "bf16", "f32")), g.rng.choice(list(LITERALS.items()))
    shape = g.shape()
    g.define(f"tl.full({list(shape)}, {text}, tl.float32).to({NAMES[elem]})",
             lambda s: plain.cast(np.full(shape, value, np.float32), elem), shape, elem, 0, 0)  # fmt: skip


def extremum(g: Generator) -> None:
    x, y, shape = pair(g, _float)
    (name, every), function = g.rng.choice(list(EXTREMA.items()))
    g.define(
        f"(tl.{name}({x.name}, {y.name}{ALL if every else ''}) + 0.0){_narrow(x)}",
        lambda s: _one_zero(function(_one_zero(s[x.name]), _one_zero(s[y.name]))), shape, x.elem, 0, 0,
    )  # fmt: skip


def clamped(g: Generator) -> None:
    x, every = g.pick(_float), g.rng.random() < 0.5
    lo, hi = g.rng.choice(((-1, 1), (-3, 7), (0, 6)))
    low, high = DTYPES[x.elem].type(lo), DTYPES[x.elem].type(hi)
    most, least = (np.maximum, np.minimum) if every else (np.fmax, np.fmin)
    bounds = f"tl.cast({lo}, {NAMES[x.elem]}), tl.cast({hi}, {NAMES[x.elem]})"
    text = f"(tl.clamp({x.name}, {bounds}{ALL if every else ''}) + 0.0){_narrow(x)}"
    _define(g, text, x, lambda s: _one_zero(least(most(_one_zero(s[x.name]), low), high)))


def arithmetic(g: Generator) -> None:
    x, y, shape = pair(g, _float)
    op = g.rng.choice("+-*")
    g.define(f"{x.name} {op} {y.name}", lambda s: plain.apply(op, s[x.name], s[y.name]), shape, x.elem, 0, 0)


def multiply_add(g: Generator) -> None:
    x, y, shape = pair(g, lambda v: v.elem in ("f16", "bf16", "f32"))
    z = g.pick(lambda v: v.elem == x.elem and plain.joined(v.shape, shape) == shape)
    g.define(f"tl.fma({x.name}, {y.name}, {z.name})", lambda s: fused(s[x.name], s[y.name], s[z.name]),
             shape, x.elem, 0, 0)  # fmt: skip


def unary(g: Generator) -> None:
    x = g.pick(_float)
    kind = g.rng.choice(("-", "abs", *(("floor", "ceil", "sqrt_rn") if x.elem == "f32" else ())))
    if kind == "-":
        _define(g, f"-{x.name}", x, lambda s: np.negative(s[x.name]))
        return
    function = {"abs": np.abs, "floor": np.floor, "ceil": np.ceil, "sqrt_rn": np.sqrt}[kind]
    _define(g, f"tl.{kind}({x.name})", x, lambda s: function(s[x.name]))


def quotient(g: Generator) -> None:
    x, y, shape = pair(g, lambda v: v.elem == "f32")
    g.define(f"tl.div_rn({x.name}, {y.name})", lambda s: np.divide(s[x.name], s[y.name]), shape, "f32", 0, 0)


def fp8(g: Generator) -> None:
    x = g.pick(lambda v: v.elem in ("f16", "bf16", "f32"))
    name = g.rng.choice(list(FP8))
    _define(g, f"{x.name}.to(tl.{name}).to({NAMES[x.elem]})", x, lambda s: through_fp8(s[x.name], name))


def _without_nan(g: Generator, x: Var, text: str, value: float) -> Var:
    """The variable with a constant for each NaN."""
    constant = DTYPES[x.elem].type(value)
    return _define(
        g, f"tl.where({x.name} == {x.name}, {x.name}, tl.cast({text}, {NAMES[x.elem]}))", x,
        lambda s: np.where(s[x.name] == s[x.name], s[x.name], constant),
    )  # fmt: skip


def reinterpret(g: Generator) -> None:
    """The bits of floats as integers, or of integers as floats."""
    x = g.pick(lambda v: v.elem != "i1")
    same = INTEGERS if is_float(x.elem) else ("f16", "bf16", "f32", "f64")
    fits = [e for e in same if bits(e) == bits(x.elem)]
    if not fits:
        raise Impossible("no other type of this width")
    elem = g.rng.choice(fits)
    if is_float(x.elem):
        x = _without_nan(g, x, "-0.0", -0.0)
    g.define(f"{x.name}.to({NAMES[elem]}, bitcast=True)",
             lambda s: np.ascontiguousarray(s[x.name]).view(DTYPES[elem]).reshape(x.shape),
             x.shape, elem, *plain.limits(elem))  # fmt: skip


def reduce(g: Generator) -> None:
    x = wide_enough(g, g.pick(lambda v: is_tile(v) and _float(v)))
    axis = g.rng.randrange(len(x.shape))
    keep = g.rng.random() < 0.25
    shape = (*x.shape[:axis], *((1,) if keep else ()), *x.shape[axis + 1 :])
    ending = ", keep_dims=True" if keep else ""
    kind = g.rng.choice(("max", "max", "min", "min", "argmax", "argmin", "greater"))
    if kind.startswith("arg"):
        x = _without_nan(g, x, "0.5", 0.5)
        finder = np.argmax if kind == "argmax" else np.argmin
        g.define(f"tl.{kind}({x.name}, {axis}{ending})",
                 lambda s: finder(s[x.name], axis=axis, keepdims=keep).astype(np.int32),
                 shape, "i32", 0, x.shape[axis] - 1)  # fmt: skip
        return
    function = np.fmin if kind == "min" else np.fmax
    wide = "f32" if x.elem == "f16" and kind != "greater" else x.elem
    call = f"tl.reduce({x.name}, {axis}, greater" if kind == "greater" else f"tl.{kind}({x.name}, {axis}"

    def run(s: State) -> Array:
        found = np.asarray(function.reduce(_one_zero(s[x.name]), axis=axis, keepdims=keep))
        return _one_zero(found.astype(DTYPES[wide]))

    g.define(f"{call}{ending}) + 0.0", run, shape, wide, 0, 0)


def scan(g: Generator) -> None:
    x = wide_enough(g, g.pick(lambda v: is_tile(v) and _float(v)))
    axis, reverse = g.rng.randrange(len(x.shape)), g.rng.random() < 0.4

    def run(s: State) -> Array:
        value = _one_zero(np.flip(s[x.name], axis) if reverse else s[x.name])
        result = np.fmax.accumulate(value, axis)
        return _one_zero(np.flip(result, axis) if reverse else result)

    ending = ", reverse=True" if reverse else ""
    _define(g, f"tl.associative_scan({x.name}, {axis}, greater{ending}) + 0.0", x, run)


def sort(g: Generator) -> None:
    x = g.pick(lambda v: is_tile(v) and _float(v) and v.shape[-1] <= 64 and v.numel <= 256)
    x = _without_nan(g, x, 'float("nan")', np.nan)
    down = g.rng.random() < 0.5
    _define(g, f"tl.sort({x.name}, descending={down})", x, lambda s: _ordered(s[x.name], down))


def _ordered(x: Array, down: bool) -> Array:
    """By the bits: -0.0 before 0.0, and NaN, whose sign bit is clear, at the end."""
    kind = f"i{x.dtype.itemsize}"
    value = np.ascontiguousarray(np.where(np.isnan(x), x.dtype.type(np.nan), x)).view(kind)
    most = np.iinfo(kind).max
    order = np.argsort(np.where(value < 0, value ^ most, value), -1)
    return np.take_along_axis(x, order[..., ::-1] if down else order, -1)


def on_any_values(operations: Sequence[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Operations on special floats, for a menu of which they are most."""
    return [(on_any(operation), 4 * weight) for operation, weight in operations]


EACH: list[tuple[Operation, int]] = [
    (memory.load, 24), (memory.store, 8), (memory.update, 2), (literal, 3), (extremum, 8), (clamped, 3),
    (arithmetic, 6), (multiply_add, 5), (unary, 6), (quotient, 1), (fp8, 3), (reinterpret, 4),
    (plain.comparison, 6), (plain.where, 5), (plain.convert, 12),
]  # fmt: skip
SPECIAL = on_any_values([
    *EACH, (reduce, 8), (scan, 4), (sort, 3), (plain.expand, 3), (plain.spread, 3),
    (plain.reshape, 4), (plain.transpose, 4), (plain.join, 3), (plain.split, 3), (plain.flip, 2), (plain.gather, 3),
])  # fmt: skip
