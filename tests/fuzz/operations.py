"""Operations on tiles and scalars: each function appends one statement or raises Impossible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .elements import (
    DTYPES,
    FLOATS,
    INTEGERS,
    NAMES,
    Array,
    bits,
    is_float,
    is_int,
    is_signed,
    limits,
    shift,
    truncated_division,
    truncated_remainder,
)
from .rounding import cast
from .scope import Generator, Impossible, Shape, Var

Operation = Callable[[Generator], None]


def is_number(v: Var) -> bool:
    return v.elem != "i1"


def is_tile(v: Var) -> bool:
    return v.shape != ()


# -- leaves -----------------------------------------------------------------------------------------------------------


def arange(g: Generator) -> None:
    n = g.rng.choice([d for d in g.dims if d > 1] or [2])
    start = g.rng.choice((0, 0, 0, 3, 100))
    g.define(
        f"tl.arange({start}, {start + n})",
        lambda s: np.arange(start, start + n, dtype=np.int32),
        (n,), "i32", start, start + n - 1,
    )  # fmt: skip


def full(g: Generator) -> None:
    elem = g.rng.choice((*INTEGERS, *FLOATS))
    shape = g.shape()
    lo, hi = limits(elem)
    n = g.rng.choice((0, 1, 2, 5, 7, *((lo, hi, hi // 3) if is_int(elem) else (-3,))))
    text = f"{n}.0" if is_float(elem) else str(n)
    g.define(
        f"tl.full({list(shape)}, {text}, {NAMES[elem]})",
        lambda s: np.full(shape, n, DTYPES[elem]),
        shape, elem, n, n,
    )  # fmt: skip


def argument(g: Generator) -> None:
    value = g.rng.choice((-5, -1, 0, 1, 2, 3, 7, 16, 48, 1000, 2147483647, -2147483648, g.rng.randrange(1 << 20)))
    name = g.scalar(value)
    g.define(f"tl.cast({name}, tl.int32)", lambda s: np.asarray(value, np.int32), (), "i32", value, value)


def program_id(g: Generator) -> None:
    factor = g.rng.choice((1, 3, 16, 64))
    n = g.program.programs - 1
    g.define(f"pid * {factor}", lambda s: np.asarray(s.pid * factor, np.int32), (), "i32", 0, n * factor)


# -- elementwise ------------------------------------------------------------------------------------------------------


def joined(a: Shape, b: Shape) -> Shape | None:
    """The shape two operands are broadcast to."""
    try:
        return tuple(np.broadcast_shapes(a, b))
    except ValueError:
        return None


def pair(g: Generator, wanted: Callable[[Var], bool]) -> tuple[Var, Var, Shape]:
    """Two operands of one element type whose shapes go together."""
    x = g.pick(wanted)
    y = g.pick(lambda v: v.elem == x.elem and joined(v.shape, x.shape) is not None)
    shape = joined(x.shape, y.shape)
    assert shape is not None
    if int(np.prod(shape)) > g.max_numel:
        raise Impossible("too large")
    return x, y, shape


def corners(x: Var, y: Var, f: Callable[[int, int], int]) -> tuple[int, int]:
    values = [f(a, b) for a in (x.lo, x.hi) for b in (y.lo, y.hi)]
    return min(values), max(values)


PLAIN: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


def apply(op: str, x: Array, y: Array) -> Array:
    if op == "+":
        return np.add(x, y)
    if op == "-":
        return np.subtract(x, y)
    return np.multiply(x, y)


def arithmetic(g: Generator) -> None:
    op = g.rng.choice("+-*")
    x, y, shape = pair(g, is_number)
    if is_float(x.elem):
        bound = int(limits(x.elem)[1] ** 0.5) if op == "*" else limits(x.elem)[1] // 2
        x, y = g.clamp(x, -bound, bound), g.clamp(y, -bound, bound)
    lo, hi = corners(x, y, PLAIN[op])
    g.define(f"{x.name} {op} {y.name}", lambda s: apply(op, s[x.name], s[y.name]), shape, x.elem, lo, hi)


def with_literal(g: Generator) -> None:
    x = g.pick(is_number)
    op = g.rng.choice("+-*")
    _, most = limits(x.elem)
    n = g.rng.choice((0, 1, 2, 3, 5, 16, 20, 100, most) if is_int(x.elem) else (1, 2, 3))
    n = min(n, most)
    if is_float(x.elem):
        x = g.clamp(x, -(most // 4), most // 4)
    lo, hi = corners(x, Var("", (), x.elem, n, n), PLAIN[op])
    text = f"{n}.0" if is_float(x.elem) else str(n)
    constant = DTYPES[x.elem].type(n)
    g.define(f"{x.name} {op} {text}", lambda s: apply(op, s[x.name], np.asarray(constant)), x.shape, x.elem, lo, hi)


def division(g: Generator) -> None:
    op = g.rng.choice(("//", "%"))
    compute = truncated_division if op == "//" else truncated_remainder
    if g.rng.random() < 0.5:
        x = g.pick(lambda v: is_int(v.elem))
        n = g.rng.choice((1, 2, 3, 4, 7, 16, 32, 100))
        constant = DTYPES[x.elem].type(n)
        lo, hi = limits(x.elem)
        if op == "%":
            lo, hi = (0 if x.lo >= 0 else -(n - 1)), n - 1
        elif x.lo >= 0:
            lo, hi = x.lo // n, x.hi // n
        g.define(f"{x.name} {op} {n}", lambda s: compute(s[x.name], np.full_like(s[x.name], constant)),
                 x.shape, x.elem, lo, hi)  # fmt: skip
        return
    x, y, shape = pair(g, lambda v: is_int(v.elem))

    def run(s: object, x: Var = x, y: Var = y) -> Array:
        a, b = np.broadcast_arrays(s[x.name], s[y.name])  # type: ignore[index]
        return compute(a, b)

    g.define(f"{x.name} {op} {y.name}", run, shape, x.elem, *limits(x.elem))


def bitwise(g: Generator) -> None:
    op = g.rng.choice("&|^")
    function = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}[op]
    if g.rng.random() < 0.4:
        x = g.pick(lambda v: is_int(v.elem))
        n = g.rng.choice((1, 3, 7, 15, 63, 127))
        constant = DTYPES[x.elem].type(n)
        lo, hi = (0, n) if op == "&" else limits(x.elem)
        g.define(f"{x.name} {op} {n}", lambda s: function(s[x.name], constant), x.shape, x.elem, lo, hi)
        return
    x, y, shape = pair(g, lambda v: not is_float(v.elem))
    lo, hi = (0, min(x.hi, y.hi)) if op == "&" and x.lo >= 0 and y.lo >= 0 else limits(x.elem)
    g.define(f"{x.name} {op} {y.name}", lambda s: function(s[x.name], s[y.name]), shape, x.elem, lo, hi)


def shifting(g: Generator) -> None:
    op = g.rng.choice(("<<", ">>"))
    if g.rng.random() < 0.6:
        x = g.pick(lambda v: is_int(v.elem))
        n = g.rng.randrange(bits(x.elem))
        constant = np.asarray(n, DTYPES[x.elem])
        lo, hi = (x.lo >> n, x.hi >> n) if op == ">>" else (x.lo << n, x.hi << n)
        g.define(f"{x.name} {op} {n}", lambda s: shift(op, s[x.name], constant), x.shape, x.elem, lo, hi)
        return
    x, y, shape = pair(g, lambda v: is_int(v.elem))

    def run(s: object, x: Var = x, y: Var = y) -> Array:
        a, b = np.broadcast_arrays(s[x.name], s[y.name])  # type: ignore[index]
        return shift(op, a, b)

    g.define(f"{x.name} {op} {y.name}", run, shape, x.elem, *limits(x.elem))


COMPARISONS = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip


def comparison(g: Generator) -> None:
    op = g.rng.choice(list(COMPARISONS))
    function = COMPARISONS[op]
    if g.rng.random() < 0.4:
        x = g.pick(is_number)
        least, most = limits(x.elem)
        n = max(least, min(most, g.rng.choice((-3, 0, 1, 5, 13, 100, 1000))))
        constant = DTYPES[x.elem].type(n)
        text = f"{n}.0" if is_float(x.elem) else str(n)
        g.define(f"{x.name} {op} {text}", lambda s: function(s[x.name], constant), x.shape, "i1", 0, 1)
        return
    x, y, shape = pair(g, is_number)
    g.define(f"{x.name} {op} {y.name}", lambda s: function(s[x.name], s[y.name]), shape, "i1", 0, 1)


def where(g: Generator) -> None:
    c = g.pick(lambda v: v.elem == "i1")
    x = g.pick(lambda v: joined(v.shape, c.shape) is not None)
    y = g.pick(lambda v: v.elem == x.elem and joined(v.shape, joined(x.shape, c.shape) or ()) is not None)
    shape = joined(joined(c.shape, x.shape) or (), y.shape) or ()
    if int(np.prod(shape)) > g.max_numel:
        raise Impossible("too large")
    g.define(
        f"tl.where({c.name}, {x.name}, {y.name})",
        lambda s: np.where(s[c.name], s[x.name], s[y.name]),
        shape, x.elem, min(x.lo, y.lo), max(x.hi, y.hi),
    )  # fmt: skip


def extremum(g: Generator) -> None:
    x, y, shape = pair(g, is_number)
    name = g.rng.choice(("minimum", "maximum"))
    function = getattr(np, name)
    pick = min if name == "minimum" else max
    g.define(
        f"tl.{name}({x.name}, {y.name}){'.to(tl.bfloat16)' if x.elem == 'bf16' else ''}",
        lambda s: function(s[x.name], s[y.name]),
        shape, x.elem, pick(x.lo, y.lo), pick(x.hi, y.hi),
    )  # fmt: skip


def unary(g: Generator) -> None:
    x = g.pick(lambda v: True)
    if x.elem == "i1":
        g.define(f"~{x.name}", lambda s: ~s[x.name], x.shape, "i1", 0, 1)
        return
    kinds = ["neg", "abs"] if is_signed(x.elem) or is_float(x.elem) else []
    kinds += ["not"] if is_int(x.elem) else []
    kind = g.rng.choice(kinds)
    if kind == "neg":
        g.define(f"-{x.name}", lambda s: np.negative(s[x.name]), x.shape, x.elem, -x.hi, -x.lo)
    elif kind == "abs":
        top = max(abs(x.lo), abs(x.hi))
        g.define(f"tl.abs({x.name})", lambda s: np.abs(s[x.name]), x.shape, x.elem, 0, top)
    else:
        g.define(f"~{x.name}", lambda s: ~s[x.name], x.shape, x.elem, *limits(x.elem))


def convert(g: Generator) -> None:
    x = g.pick(lambda v: True)
    elem = g.rng.choice([e for e in DTYPES if e != x.elem])
    if elem == "i1":
        g.define(f"{x.name}.to(tl.int1)", lambda s: cast(s[x.name], "i1"), x.shape, "i1", 0, 1)
    else:
        g.converted(x, elem)


def reinterpret(g: Generator) -> None:
    x = g.pick(is_number)
    same = [e for e in INTEGERS if bits(e) == bits(x.elem) and e != x.elem]
    elem = g.rng.choice(same or ["i64"])
    if bits(elem) != bits(x.elem) or elem == x.elem:
        raise Impossible("no other type of this width")
    text = f"({x.name} + 0.0)" if is_float(x.elem) else x.name  # there is only one zero then

    def run(s: object, x: Var = x) -> Array:
        a = s[x.name]  # type: ignore[index]
        if is_float(x.elem):
            a = (a + DTYPES[x.elem].type(0)).astype(a.dtype)
        return np.ascontiguousarray(a).view(DTYPES[elem]).reshape(x.shape)

    g.define(f"{text}.to({NAMES[elem]}, bitcast=True)", run, x.shape, elem, *limits(elem))


def fused(g: Generator) -> None:
    x, y, shape = pair(g, lambda v: v.elem in ("f32", "f64", "f16"))
    bound = int(limits(x.elem)[1] ** 0.5) // 2
    x, y = g.clamp(x, -bound, bound), g.clamp(y, -bound, bound)
    z = g.clamp(g.pick(lambda v: v.elem == x.elem and joined(v.shape, shape) == shape), -bound, bound)
    lo, hi = corners(x, y, PLAIN["*"])
    g.define(
        f"tl.fma({x.name}, {y.name}, {z.name})",
        lambda s: (s[x.name] * s[y.name] + s[z.name]).astype(DTYPES[x.elem]),
        shape, x.elem, lo + z.lo, hi + z.hi,
    )  # fmt: skip


def high_product(g: Generator) -> None:
    x, y, shape = pair(g, lambda v: v.elem == "u32")

    def run(s: object, x: Var = x, y: Var = y) -> Array:
        a, b = s[x.name].astype(np.uint64), s[y.name].astype(np.uint64)  # type: ignore[index]
        return ((a * b) >> np.uint64(32)).astype(np.uint32)

    g.define(f"tl.umulhi({x.name}, {y.name})", run, shape, "u32", *limits("u32"))


# -- shapes -----------------------------------------------------------------------------------------------------------


def expand(g: Generator) -> None:
    x = g.pick(lambda v: is_tile(v) and len(v.shape) < 4)
    axis = g.rng.randrange(len(x.shape) + 1)
    shape = (*x.shape[:axis], 1, *x.shape[axis:])
    if g.rng.random() < 0.5:
        index = ", ".join("None" if k == axis else ":" for k in range(len(shape)))
        text = f"{x.name}[{index}]"
    else:
        text = f"tl.expand_dims({x.name}, {axis})"
    g.define(text, lambda s: np.expand_dims(s[x.name], axis), shape, x.elem, x.lo, x.hi)


def spread(g: Generator) -> None:
    x = g.pick(lambda v: 1 in v.shape or v.shape == ())
    shape = tuple(g.rng.choice(g.dims) if n == 1 else n for n in x.shape) if is_tile(x) else g.shape()
    if int(np.prod(shape)) > g.max_numel:
        raise Impossible("too large")
    g.define(
        f"tl.broadcast_to({x.name}, {list(shape)})",
        lambda s: np.broadcast_to(s[x.name], shape).copy(), shape, x.elem, x.lo, x.hi,
    )  # fmt: skip


def reshape(g: Generator) -> None:
    x = g.pick(is_tile)
    rank = g.rng.choice((1, 2, 2, 3))
    left, shape = x.numel, []
    for _ in range(rank - 1):
        n = g.rng.choice([d for d in (1, 2, 4, 8, 16, 32) if left % d == 0])
        shape.append(n)
        left //= n
    shape.append(left)
    g.rng.shuffle(shape)
    final = tuple(shape)
    g.define(f"tl.reshape({x.name}, {list(final)})", lambda s: s[x.name].reshape(final), final, x.elem, x.lo, x.hi)


def transpose(g: Generator) -> None:
    x = g.pick(lambda v: len(v.shape) >= 2)
    order = list(range(len(x.shape)))
    g.rng.shuffle(order)
    if len(order) == 2:
        order = [1, 0]
    text = f"tl.trans({x.name})" if len(order) == 2 else f"tl.permute({x.name}, {tuple(order)})"
    shape = tuple(x.shape[o] for o in order)
    g.define(text, lambda s: np.ascontiguousarray(s[x.name].transpose(order)), shape, x.elem, x.lo, x.hi)


def join(g: Generator) -> None:
    x = g.pick(lambda v: is_tile(v) and len(v.shape) < 4 and v.numel * 2 <= g.max_numel)
    y = g.pick(lambda v: v.elem == x.elem and v.shape == x.shape)
    lo, hi = min(x.lo, y.lo), max(x.hi, y.hi)
    if g.rng.random() < 0.5:
        shape: Shape = (*x.shape, 2)
        g.define(f"tl.join({x.name}, {y.name})", lambda s: np.stack([s[x.name], s[y.name]], -1), shape, x.elem, lo, hi)
    else:
        shape = (*x.shape[:-1], 2 * x.shape[-1])
        g.define(
            f"tl.interleave({x.name}, {y.name})",
            lambda s: np.stack([s[x.name], s[y.name]], -1).reshape(shape), shape, x.elem, lo, hi,
        )  # fmt: skip


def split(g: Generator) -> None:
    x = g.pick(lambda v: len(v.shape) >= 2 and v.shape[-1] == 2)
    shape = x.shape[:-1]
    a, b = (replace(x, name=g.fresh(), shape=shape) for _ in range(2))

    def run(state: object) -> None:
        value = state[x.name]  # type: ignore[index]
        state.env[a.name], state.env[b.name] = value[..., 0].copy(), value[..., 1].copy()  # type: ignore[attr-defined]

    g.line(f"{a.name}, {b.name} = tl.split({x.name})", run)
    g.scopes[-1] += [a, b]


def flip(g: Generator) -> None:
    x = g.pick(is_tile)
    axis = g.rng.randrange(len(x.shape))
    g.define(f"tl.flip({x.name}, {axis})", lambda s: np.flip(s[x.name], axis).copy(), x.shape, x.elem, x.lo, x.hi)


# -- collectives ------------------------------------------------------------------------------------------------------


def wide_enough(g: Generator, x: Var) -> Var:
    """Integers of less than 32 bits as such of 32, as sums and scans of them are."""
    if is_int(x.elem) and bits(x.elem) < 32:
        return g.converted(x, "i32" if is_signed(x.elem) else "u32")
    if x.elem == "bf16":
        return g.converted(x, "f32")
    return x


REDUCTIONS = (
    "sum", "sum", "max", "min", "argmax", "argmin", "xor_sum", "multiply", "greater", "lesser_if", "both", "pair",
)  # fmt: skip


def reduce(g: Generator) -> None:
    x = g.pick(lambda v: is_tile(v) and is_number(v))
    kind = g.rng.choice(REDUCTIONS)
    axis = g.rng.choice([None, *range(len(x.shape))]) if kind not in ("argmax", "argmin", "pair") else -1
    if axis == -1:
        axis = g.rng.randrange(len(x.shape))
    x = wide_enough(g, x)
    keep = axis is not None and g.rng.random() < 0.25
    shape = () if axis is None else (*x.shape[:axis], *((1,) if keep else ()), *x.shape[axis + 1 :])
    length = x.numel if axis is None else x.shape[axis]
    rest = f", {axis}" if axis is not None else ", None"
    rest += ", keep_dims=True" if keep else ""
    dtype = DTYPES[x.elem]
    if kind == "sum":
        if is_float(x.elem):
            bound = limits(x.elem)[1] // length
            if bound < 1:
                raise Impossible("too many to sum exactly")
            x = g.clamp(x, -bound, bound)
        g.define(f"tl.sum({x.name}{rest})", lambda s: np.sum(s[x.name], axis=axis, dtype=dtype, keepdims=keep),
                 shape, x.elem, x.lo * length, x.hi * length)  # fmt: skip
    elif kind in ("max", "min"):
        function = np.max if kind == "max" else np.min
        wide = "f32" if is_float(x.elem) and bits(x.elem) < 32 else x.elem  # in Triton too
        g.define(f"tl.{kind}({x.name}{rest})",
                 lambda s: function(s[x.name], axis=axis, keepdims=keep).astype(DTYPES[wide]),
                 shape, wide, x.lo, x.hi)  # fmt: skip
    elif kind in ("argmax", "argmin"):
        finder = np.argmax if kind == "argmax" else np.argmin
        g.define(f"tl.{kind}({x.name}{rest})",
                 lambda s: finder(s[x.name], axis=axis, keepdims=keep).astype(np.int32),
                 shape, "i32", 0, length - 1)  # fmt: skip
    elif kind in ("xor_sum", "both"):
        if not is_int(x.elem):
            raise Impossible("integers only")
        function = np.bitwise_xor if kind == "xor_sum" else np.bitwise_and
        text = (
            f"tl.xor_sum({x.name}{rest})"
            if kind == "xor_sum"
            else f"tl.reduce({x.name}{rest.replace(', ', ', ', 1)}, both)"
        )
        if kind == "both":
            text = f"tl.reduce({x.name}, {axis}, both{', keep_dims=True' if keep else ''})"
        g.define(
            text, lambda s: np.asarray(reduce_with(function, s[x.name], axis, keep)), shape, x.elem, *limits(x.elem)
        )
    elif kind == "pair":
        assert axis is not None
        _best_pair(g, x, axis, length, shape, keep)
    else:
        function = {"multiply": np.multiply, "greater": np.maximum, "lesser_if": np.minimum}[kind]
        if kind == "multiply" and not is_int(x.elem):
            raise Impossible("integers only")
        bounds = limits(x.elem) if kind == "multiply" else (x.lo, x.hi)
        g.define(
            f"tl.reduce({x.name}, {axis}, {kind}{', keep_dims=True' if keep else ''})",
            lambda s: np.asarray(reduce_with(function, s[x.name], axis, keep)), shape, x.elem, *bounds,
        )  # fmt: skip


def reduce_with(function: np.ufunc, x: Array, axis: int | None, keep: bool) -> Array:
    if axis is None:
        x, axis = x.reshape(-1), 0
    return np.asarray(function.reduce(x, axis=axis, keepdims=keep, dtype=x.dtype))


def _best_pair(g: Generator, x: Var, axis: int, length: int, shape: Shape, keep: bool) -> None:
    order = tuple(length if k == axis else 1 for k in range(len(x.shape)))
    index = g.define(
        f"tl.broadcast_to(tl.reshape(tl.arange(0, {length}), {list(order)}), {list(x.shape)})",
        lambda s: np.broadcast_to(np.arange(length, dtype=np.int32).reshape(order), x.shape).copy(),
        x.shape, "i32", 0, length - 1,
    )  # fmt: skip
    best, place = Var(g.fresh(), shape, x.elem, x.lo, x.hi), Var(g.fresh(), shape, "i32", 0, length - 1)

    def run(state: object) -> None:
        value = state[x.name]  # type: ignore[index]
        state.env[best.name] = np.asarray(np.max(value, axis=axis, keepdims=keep))  # type: ignore[attr-defined]
        state.env[place.name] = np.asarray(np.argmax(value, axis=axis, keepdims=keep).astype(np.int32))  # type: ignore[attr-defined]

    ending = ", keep_dims=True" if keep else ""
    g.line(f"{best.name}, {place.name} = tl.reduce(({x.name}, {index.name}), {axis}, first_greatest{ending})", run)
    g.scopes[-1] += [best, place]


def scan(g: Generator) -> None:
    x = g.pick(lambda v: is_tile(v) and is_number(v))
    x = wide_enough(g, x)
    axis = g.rng.randrange(len(x.shape))
    reverse = g.rng.random() < 0.4
    kind = g.rng.choice(("cumsum", "cumsum", "cumprod", "greater", "affine"))
    length = x.shape[axis]
    ending = ", reverse=True" if reverse else ""

    def along(function: Callable[[Array], Array]) -> Callable[[object], Array]:
        def run(s: object) -> Array:
            value = s[x.name]  # type: ignore[index]
            value = np.flip(value, axis) if reverse else value
            result = function(value)
            return np.ascontiguousarray(np.flip(result, axis) if reverse else result)

        return run

    if kind == "cumsum":
        if is_float(x.elem):
            bound = limits(x.elem)[1] // length
            if bound < 1:
                raise Impossible("too many to sum exactly")
            x = g.clamp(x, -bound, bound)
        dtype = DTYPES[x.elem]
        g.define(f"tl.cumsum({x.name}, {axis}{ending})", along(lambda v: np.cumsum(v, axis, dtype)),
                 x.shape, x.elem, min(x.lo, x.lo * length), max(x.hi, x.hi * length))  # fmt: skip
    elif kind == "cumprod":
        if not is_int(x.elem):
            raise Impossible("integers only")
        dtype = DTYPES[x.elem]
        g.define(f"tl.cumprod({x.name}, {axis}{ending})", along(lambda v: np.cumprod(v, axis, dtype)),
                 x.shape, x.elem, *limits(x.elem))  # fmt: skip
    elif kind == "greater":
        g.define(f"tl.associative_scan({x.name}, {axis}, greater{ending})",
                 along(lambda v: np.maximum.accumulate(v, axis)), x.shape, x.elem, x.lo, x.hi)  # fmt: skip
    else:
        y = g.pick(lambda v: v.shape == x.shape and v.elem == x.elem and is_int(v.elem))
        a, b = Var(g.fresh(), x.shape, x.elem, *limits(x.elem)), Var(g.fresh(), x.shape, x.elem, *limits(x.elem))

        def run(state: object) -> None:
            p, q = np.moveaxis(state[x.name], axis, 0), np.moveaxis(state[y.name], axis, 0)  # type: ignore[index]
            p, q = (p[::-1].copy(), q[::-1].copy()) if reverse else (p.copy(), q.copy())
            for k in range(1, length):
                q[k] = q[k - 1] * p[k] + q[k]
                p[k] = p[k - 1] * p[k]
            if reverse:
                p, q = p[::-1], q[::-1]
            state.env[a.name] = np.ascontiguousarray(np.moveaxis(p, 0, axis))  # type: ignore[attr-defined]
            state.env[b.name] = np.ascontiguousarray(np.moveaxis(q, 0, axis))  # type: ignore[attr-defined]

        g.line(f"{a.name}, {b.name} = tl.associative_scan(({x.name}, {y.name}), {axis}, affine{ending})", run)
        g.scopes[-1] += [a, b]


def sort(g: Generator) -> None:
    x = g.pick(lambda v: is_tile(v) and is_number(v) and v.shape[-1] <= 64 and v.numel <= 256)
    down = g.rng.random() < 0.5
    if g.rng.random() < 0.3 and x.shape[-1] > 1:
        k = 1 << g.rng.randrange(x.shape[-1].bit_length() - 1)
        shape = (*x.shape[:-1], k)
        g.define(
            f"tl.topk({x.name}, {k})", lambda s: ordered(s[x.name], True)[..., :k].copy(), shape, x.elem, x.lo, x.hi
        )
        return
    g.define(f"tl.sort({x.name}, descending={down})", lambda s: ordered(s[x.name], down), x.shape, x.elem, x.lo, x.hi)


def ordered(x: Array, down: bool) -> Array:
    result = np.sort(x.astype(np.float32) if x.dtype == DTYPES["bf16"] else x, axis=-1)
    return (result[..., ::-1].copy() if down else result).astype(x.dtype)


def gather(g: Generator) -> None:
    x = g.pick(is_tile)
    axis = g.rng.randrange(len(x.shape))
    length = x.shape[axis]
    fits = [
        v for v in g.visible()
        if v.elem == "i32" and len(v.shape) == len(x.shape)
        and all(k == axis or a == b for k, (a, b) in enumerate(zip(v.shape, x.shape)))
    ]  # fmt: skip
    if not fits:
        raise Impossible("no index")
    index = g.rng.choice(fits)
    if index.lo < 0 or index.hi >= length:
        given = index
        index = g.define(
            f"{given.name} & {length - 1}",
            lambda s: s[given.name] & np.int32(length - 1),
            given.shape,
            "i32",
            0,
            length - 1,
        )
    g.define(
        f"tl.gather({x.name}, {index.name}, {axis})",
        lambda s: np.take_along_axis(s[x.name], s[index.name].astype(np.int64), axis),
        index.shape, x.elem, x.lo, x.hi,
    )  # fmt: skip


def histogram(g: Generator) -> None:
    x = g.pick(lambda v: len(v.shape) == 1 and v.elem == "i32")
    bins = g.rng.choice((1, 2, 8, 16, 64))
    mask = None
    if g.rng.random() < 0.4:
        mask = g.pick(lambda v: v.elem == "i1" and v.shape == x.shape)

    def run(s: object) -> Array:
        value = s[x.name]  # type: ignore[index]
        good = (value >= 0) & (value < bins)
        if mask is not None:
            good &= s[mask.name]  # type: ignore[index]
        return np.bincount(value[good], minlength=bins).astype(np.int32)

    ending = f", mask={mask.name}" if mask else ""
    g.define(f"tl.histogram({x.name}, {bins}{ending})", run, (bins,), "i32", 0, x.numel)


def dot(g: Generator) -> None:
    x = g.pick(lambda v: len(v.shape) in (2, 3) and is_number(v) and v.numel <= 2048)
    k = x.shape[-1]
    y = g.pick(
        lambda v: len(v.shape) == len(x.shape) and is_number(v) and k in v.shape[-2:] and v.shape[:-2] == x.shape[:-2]
    )
    elem = g.rng.choice(("f32", "f16", "bf16", "i8", "f64", "f32"))
    bound = {"f32": 64, "f16": 32, "bf16": 16, "i8": 100, "f64": 1000}[elem]

    def operand(v: Var) -> Var:
        v = g.clamp(v, max(-bound, limits(v.elem)[0]), bound)
        return g.converted(v, elem)

    a, b = operand(x), operand(y)
    if b.shape[-2] != k:
        given = b
        rank = len(b.shape)
        order = (*range(rank - 2), rank - 1, rank - 2)
        text = f"tl.permute({given.name}, {order})"
        shape = tuple(given.shape[o] for o in order)
        b = g.define(
            text, lambda s: np.ascontiguousarray(s[given.name].transpose(order)), shape, elem, given.lo, given.hi
        )
    if a.numel * b.shape[-1] > 1 << 16:
        raise Impossible("too much work")
    out = {"f32": "f32", "f16": "f32", "bf16": "f32", "i8": "i32", "f64": "f64"}[elem]
    shape = (*a.shape[:-1], b.shape[-1])
    if int(np.prod(shape)) > g.max_numel:
        raise Impossible("too large")
    top = k * max(abs(a.lo), abs(a.hi)) * max(abs(b.lo), abs(b.hi))
    addend = [v for v in g.visible() if v.elem == out and v.shape == shape and abs(v.lo) < 1 << 20 and v.hi < 1 << 20]
    precision = ', input_precision="ieee"' if elem == "f32" else ""
    types = f", out_dtype={NAMES[out]}" if elem == "f64" else ""
    if addend and g.rng.random() < 0.7:
        c = g.rng.choice(addend)
        g.define(f"tl.dot({a.name}, {b.name}, {c.name}{precision}{types})",
                 lambda s: (product(s[a.name], s[b.name], out) + s[c.name]).astype(DTYPES[out]),
                 shape, out, c.lo - top, c.hi + top)  # fmt: skip
        return
    g.define(f"tl.dot({a.name}, {b.name}{precision}{types})", lambda s: product(s[a.name], s[b.name], out),
             shape, out, -top, top)  # fmt: skip


def product(a: Array, b: Array, out: str) -> Array:
    wide = np.int64 if out == "i32" else np.float64
    x, y = ((v.astype(np.float32) if v.dtype == DTYPES["bf16"] else v).astype(wide) for v in (a, b))
    return np.asarray(np.matmul(x, y).astype(DTYPES[out]))


OPERATIONS: list[tuple[Operation, int]] = [
    (arange, 3), (full, 3), (argument, 2), (program_id, 2),
    (arithmetic, 10), (with_literal, 8), (division, 6), (bitwise, 5), (shifting, 4), (comparison, 6), (where, 6),
    (extremum, 4), (unary, 3), (convert, 8), (reinterpret, 3), (fused, 2), (high_product, 1),
    (expand, 5), (spread, 5), (reshape, 6), (transpose, 6), (join, 4), (split, 3), (flip, 2),
    (reduce, 8), (scan, 4), (sort, 1), (gather, 3), (histogram, 2), (dot, 4),
]  # fmt: skip
