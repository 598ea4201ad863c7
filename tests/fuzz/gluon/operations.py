"""Operations on tiles with layouts: what moves elements between threads, and what only names them anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .. import operations as plain
from ..elements import NAMES, is_float
from ..operations import is_tile
from ..scope import Impossible, Shape, Var
from . import layouts
from .scope import GluonGenerator


def convert(g: GluonGenerator) -> None:
    """To another layout, perhaps on the way through others."""
    x = g.pick(is_tile)
    text = x.name
    for _ in range(g.rng.choice((1, 1, 2, 3))):
        layout = g.layout(x.shape)
        text = f"gl.convert_layout({text}, {layout})"
    g.made(text, lambda s: s[x.name], x.shape, x.elem, x.lo, x.hi, layout)


def expand(g: GluonGenerator) -> None:
    x = g.pick(lambda v: is_tile(v) and len(v.shape) < 3)
    axis = g.rng.randrange(len(x.shape) + 1)
    shape = (*x.shape[:axis], 1, *x.shape[axis:])
    parent = g.layout(shape)
    text = f"gl.expand_dims({g.converted_text(x, f'gl.SliceLayout({axis}, {parent})')}, {axis})"
    g.made(text, lambda s: np.expand_dims(s[x.name], axis), shape, x.elem, x.lo, x.hi, parent)


def spread(g: GluonGenerator) -> None:
    """A tile with dimensions of one element, broadcast."""
    x = g.pick(lambda v: 1 in v.shape and is_tile(v))
    shape = tuple(g.rng.choice(g.dims) if n == 1 else n for n in x.shape)
    if int(np.prod(shape)) > g.max_numel:
        raise Impossible("too large")
    zero = "False" if x.elem == "i1" else "0.0" if is_float(x.elem) else "0"
    g.define(
        f"{x.name} {'|' if x.elem == 'i1' else '+'} tl.full({list(shape)}, {zero}, {NAMES[x.elem]})",
        lambda s: np.broadcast_to(s[x.name], shape).copy(), shape, x.elem, x.lo, x.hi,
    )  # fmt: skip


def _cut(g: GluonGenerator, shape: Shape) -> Shape:
    left, sizes = int(np.prod(shape)), []
    for _ in range(g.rng.choice((0, 1, 1, 2))):
        n = g.rng.choice([d for d in (1, 2, 4, 8, 16, 32) if left % d == 0])
        sizes.append(n)
        left //= n
    sizes.append(left)
    g.rng.shuffle(sizes)
    return tuple(sizes)


def renamed(g: GluonGenerator) -> None:
    """A chain of reshapes and permutations, which move nothing, and a conversion."""
    x = g.pick(is_tile)
    text, shape = g.plainly(x), x.shape
    steps: list[tuple[str, tuple[int, ...]]] = []
    for _ in range(g.rng.choice((1, 2, 3, 4))):
        if g.rng.random() < 0.5 and len(shape) > 1:
            order = list(range(len(shape)))
            g.rng.shuffle(order)
            text, shape = f"gl.permute({text}, {order})", tuple(shape[o] for o in order)
            steps.append(("permute", tuple(order)))
        else:
            shape = _cut(g, shape)
            text = f"gl.reshape({text}, {list(shape)})"
            steps.append(("reshape", shape))
    layout = g.layout(shape)

    def run(s: object) -> np.ndarray:  # type: ignore[type-arg]
        value = s[x.name]  # type: ignore[index]
        for kind, how in steps:
            value = value.transpose(how) if kind == "permute" else value.reshape(how)
        return np.ascontiguousarray(value)

    g.made(f"gl.convert_layout({text}, {layout})", run, shape, x.elem, x.lo, x.hi, layout)


def join(g: GluonGenerator) -> None:
    x = g.pick(lambda v: is_tile(v) and len(v.shape) < 3 and v.numel * 2 <= g.max_numel)
    y = g.pick(lambda v: v.elem == x.elem and v.shape == x.shape)
    shape = (*x.shape, 2)
    own, layout = g.layout(x.shape), g.layout(shape)
    text = f"gl.join({g.converted_text(x, own)}, {g.converted_text(y, own)})"
    g.made(
        f"gl.convert_layout({text}, {layout})", lambda s: np.stack([s[x.name], s[y.name]], -1),
        shape, x.elem, min(x.lo, y.lo), max(x.hi, y.hi), layout,
    )  # fmt: skip


def split(g: GluonGenerator) -> None:
    """Neighbours of the last dimension, which one thread must have."""
    x = g.pick(lambda v: is_tile(v) and v.shape[-1] % 2 == 0)
    shape = x.shape if x.shape[-1] == 2 and len(x.shape) > 1 else (*x.shape[:-1], x.shape[-1] // 2, 2)
    if len(shape) > 3:
        raise Impossible("too many dimensions")
    pairs = g.named(layouts.blocked(g.rng, len(shape), g.warps, last=2))
    results = [replace(x, name=g.fresh(), shape=shape[:-1]) for _ in range(2)]
    layout = g.layout(shape[:-1])

    def run(state: object) -> None:
        value = state[x.name].reshape(shape)  # type: ignore[index]
        for k, var in enumerate(results):
            state.env[var.name] = value[..., k].copy()  # type: ignore[attr-defined]

    a, b = (v.name for v in results)
    lines = [f"{a}, {b} = gl.split(gl.convert_layout(gl.reshape({g.plainly(x)}, {list(shape)}), {pairs}))"]
    lines += [f"{name} = gl.convert_layout({name}, {layout})" for name in (a, b)]
    g.put("\n".join(lines), run)
    for var in results:
        g.laid[var.name], g.shapes[var.name] = layout, var.shape
        g.scopes[-1].append(var)


def reduce(g: GluonGenerator) -> None:
    """A reduction of the Triton language, of those that Gluon has too."""
    before = len(g.scopes[-1])
    plain.reduce(g)
    for var in g.scopes[-1][before:]:
        _note(g, var)


def scan(g: GluonGenerator) -> None:
    before = len(g.scopes[-1])
    plain.scan(g)
    for var in g.scopes[-1][before:]:
        _note(g, var)


def _note(g: GluonGenerator, var: Var) -> None:
    """The shape of one of two results; a scalar has no layout."""
    if var.shape:
        g.shapes[var.name] = var.shape
    else:
        g.laid.pop(var.name, None)


def gather(g: GluonGenerator) -> None:
    x = g.pick(is_tile)
    axis = g.rng.randrange(len(x.shape))
    length = x.shape[axis]
    index = g.pick(
        lambda v: v.elem == "i32" and len(v.shape) == len(x.shape)
        and all(k == axis or a == b for k, (a, b) in enumerate(zip(v.shape, x.shape)))
    )  # fmt: skip
    g.made(
        f"gl.gather({x.name}, {index.name} & {length - 1}, {axis})",
        lambda s: np.take_along_axis(s[x.name], (s[index.name] & np.int32(length - 1)).astype(np.int64), axis),
        index.shape, x.elem, x.lo, x.hi, g.laid[index.name],
    )  # fmt: skip


def histogram(g: GluonGenerator) -> None:
    x = g.pick(lambda v: len(v.shape) == 1 and v.elem == "i32")
    bins = g.rng.choice((2, 8, 16, 64))
    masks = [v for v in g.visible() if v.elem == "i1" and v.shape == x.shape]
    mask = g.rng.choice(masks) if masks and g.rng.random() < 0.4 else None
    layout = g.layout((bins,))

    def run(s: object) -> np.ndarray:  # type: ignore[type-arg]
        value = s[x.name]  # type: ignore[index]
        good = (value >= 0) & (value < bins)
        if mask is not None:
            good &= s[mask.name]  # type: ignore[index]
        return np.bincount(value[good], minlength=bins).astype(np.int32)

    ending = f"mask={g.converted_text(mask, g.laid[x.name])}, " if mask else ""
    text = f"gl.histogram({x.name}, {bins}, {ending}layout={layout})"
    g.made(text, run, (bins,), "i32", 0, x.numel, layout)


TILES = [
    (convert, 10), (expand, 5), (spread, 5), (renamed, 8), (join, 4), (split, 3), (reduce, 8), (scan, 5),
    (gather, 4), (histogram, 1),
]  # fmt: skip
ANY_TILES = [(convert, 6), (expand, 4), (renamed, 5), (join, 3), (split, 3), (gather, 3)]
"""Those that change no element."""
EACH = [
    (plain.arange, 3), (plain.full, 3), (plain.argument, 2), (plain.program_id, 1), (plain.arithmetic, 8),
    (plain.with_literal, 5), (plain.division, 3), (plain.bitwise, 4), (plain.shifting, 3), (plain.comparison, 5),
    (plain.where, 5), (plain.extremum, 3), (plain.unary, 2), (plain.convert, 6), (plain.reinterpret, 2),
    (plain.fused, 1), (plain.high_product, 1),
]  # fmt: skip
