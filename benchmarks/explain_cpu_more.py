"""More memory-bound kernels of other kinds, with sizes such as 1,000, 4,097 and 50,257; see explain_cpu.py.

They were written before the model had anything for what they do, and no constant was chosen by their times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import weft
import weft.language as tl


@weft.jit
def cross_entropy(logits, targets, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    most = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        value = tl.load(logits + row * columns + start + i, mask=start + i < columns, other=-float("inf"))
        higher = tl.maximum(most, value)
        total = total * tl.exp(most - higher) + tl.exp(value - higher)
        most = higher
    top = tl.max(most, 0)
    chosen = tl.load(logits + row * columns + tl.load(targets + row))
    tl.store(out + row, top + tl.log(tl.sum(total * tl.exp(most - top), 0)) - chosen)


@weft.jit
def largest_at(x, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    tl.store(out + row, tl.argmax(value, 0))


@weft.jit
def sliced(x, out, wide, columns, first, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out + row * columns + i, tl.load(x + row * wide + first + i, mask=i < columns), mask=i < columns)


@weft.jit
def put_in_slots(new, slots, cache, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    slot = tl.load(slots + row)
    tl.store(cache + slot * columns + i, tl.load(new + row * columns + i, mask=i < columns), mask=i < columns)


@weft.jit
def dequantised(x, scales, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + i, mask=i < columns, other=0).to(tl.float32)
    tl.store(out + row * columns + i, value * tl.load(scales + row), mask=i < columns)


@weft.jit
def heads_swapped(x, out, LENGTH: tl.constexpr, HEADS: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr):
    head, row, i = tl.program_id(1), tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, SIZE)
    value = tl.load(x + row[:, None] * HEADS * SIZE + head * SIZE + i[None, :])
    tl.store(out + head * LENGTH * SIZE + row[:, None] * SIZE + i[None, :], value)


@weft.jit
def convolved(x, w, out, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(4):
        at = i - 3 + k
        total += tl.load(w + row * 4 + k) * tl.load(x + row * n + at, mask=(at >= 0) & (at < n), other=0.0)
    tl.store(out + row * n + i, total, mask=i < n)


@weft.jit
def smoothed(x, out, wide, BLOCK: tl.constexpr):
    row, j = tl.program_id(0) + 1, tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at, mask = row * wide + 1 + j, j < wide - 2
    near = tl.load(x + at - 1, mask=mask) + tl.load(x + at + 1, mask=mask)
    far = tl.load(x + at - wide, mask=mask) + tl.load(x + at + wide, mask=mask)
    tl.store(out + at, 0.5 * tl.load(x + at, mask=mask) + 0.125 * (near + far), mask=mask)


@weft.jit
def silu_times(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n).to(tl.float32)
    value = value / (1 + tl.exp(-value)) * tl.load(y + i, mask=i < n).to(tl.float32)
    tl.store(out + i, value.to(out.dtype.element_ty), mask=i < n)


@weft.jit
def added_and_scaled(x, residual, w, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    mask, at = i < columns, row * columns + i
    value = tl.load(x + at, mask=mask, other=0.0) + tl.load(residual + at, mask=mask, other=0.0)
    tl.store(residual + at, value, mask=mask)
    scale = tl.rsqrt(tl.sum(value * value, 0) / columns + 1e-6)
    tl.store(out + at, value * scale * tl.load(w + i, mask=mask), mask=mask)


@weft.jit
def norm_gradient(x, dy, w, dx, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    mask, at = i < columns, row * columns + i
    value = tl.load(x + at, mask=mask, other=0.0)
    up = tl.load(dy + at, mask=mask, other=0.0) * tl.load(w + i, mask=mask, other=0.0)
    scale = tl.rsqrt(tl.sum(value * value, 0) / columns + 1e-6)
    along = tl.sum(value * up, 0) * scale * scale / columns
    tl.store(dx + at, scale * (up - value * along), mask=mask)


@weft.jit
def outer(a, b, out, columns, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + row * columns + j, tl.load(a + row) * tl.load(b + j, mask=j < columns), mask=j < columns)


@weft.jit
def mean_of_steps(x, out, steps, columns, BLOCK: tl.constexpr):
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(steps):
        total += tl.load(x + (tl.program_id(0) * steps + step) * columns + j, mask=j < columns, other=0.0)
    tl.store(out + tl.program_id(0) * columns + j, total / steps, mask=j < columns)


@weft.jit
def by_matrix(x, a, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    j, k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, ROWS)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(0, rows, ROWS):
        tile = tl.load(a + (row + k)[:, None] * columns + j[None, :], mask=j[None, :] < columns, other=0.0)
        total += tl.sum(tile * tl.load(x + row + k)[:, None], 0)
    tl.store(out + j, total, mask=j < columns)


@weft.jit
def pooled(x, out, wide, columns, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    mask = j < columns
    first, second = tl.load(x + 2 * row * wide + j, mask=mask), tl.load(x + (2 * row + 1) * wide + j, mask=mask)
    tl.store(out + row * columns + j, tl.maximum(first, second), mask=mask)


@weft.jit
def masked_scores(x, mask, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    keep = tl.load(mask + row % 512 * columns + i, mask=i < columns, other=0) != 0
    value = tl.load(x + row * columns + i, mask=i < columns, other=0.0)
    tl.store(out + row * columns + i, tl.where(keep, value * 0.125, -1e9), mask=i < columns)


@weft.jit
def master_step(p, master, g, n, rate, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    new = tl.load(master + i, mask=mask) * 0.999 - rate * tl.load(g + i, mask=mask).to(tl.float32)
    tl.store(master + i, new, mask=mask)
    tl.store(p + i, new.to(tl.bfloat16), mask=mask)


@weft.jit
def summed_products(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=0.0) * tl.load(y + i, mask=i < n, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(value, 0))


def more(array: Callable[[np.random.Generator, Any, str], Any], case: Callable[..., Any]) -> list[Any]:
    """As `explain_cpu.cases`; `array` and `case` make arrays and cases."""

    def made(name: str, kernel: Any, kinds: Sequence[Any], more: Sequence[Any], grid: Any, **constants: int) -> Any:
        return case(
            name, kernel, lambda rng: [*(array(rng, shape, kind) for shape, kind in kinds), *more], grid, constants
        )

    def rows(name: str, kernel: Any, rows: int, columns: int, kinds: Sequence[str], block: int) -> Any:
        """Of matrices ("m:f32"), rows of a matrix's columns ("c:f32"), and numbers by row ("r:f32")."""
        shapes = {"m": (rows, columns), "c": (columns,), "r": (rows,)}
        arrays = [(shapes[kind[0]], kind[2:]) for kind in kinds]
        return made(f"{name} of {rows:,} x {columns:,}", kernel, arrays, [columns], (rows,), BLOCK=block)

    return [
        case("cross entropy of 80 x 50,257", cross_entropy,
             lambda rng: [array(rng, (80, 50257), "f32"), rng.integers(0, 50257, 80), array(rng, 80, "f32"), 50257],
             (80,), {"BLOCK": 1024}),
        case("largest of 1,000 x 4,097", largest_at,
             lambda rng: [array(rng, (1000, 4097), "f32"), np.zeros(1000, np.int32), 4097], (1000,), {"BLOCK": 8192}),
        made("slice of columns, 1,000 of 4,097", sliced, [((2000, 4097), "f32"), ((2000, 1000), "f32")],
             [4097, 1000, 3000], (2000,), BLOCK=1024),
        case("put in slots, 3,000 rows of 1,000", put_in_slots,
             lambda rng: [array(rng, (3000, 1000), "f32"), rng.permutation(6000)[:3000].astype(np.int64),
                          array(rng, (6000, 1000), "f32"), 1000], (3000,), {"BLOCK": 1024}),
        rows("dequantised", dequantised, 1000, 4097, ("m:i8", "r:f32", "m:f32"), 8192),
        made("heads swapped, 4,096 x 16 x 64", heads_swapped, [((4096, 16, 64), "f32"), ((16, 4096, 64), "f32")], [],
             (256, 16), LENGTH=4096, HEADS=16, SIZE=64, ROWS=16),
        made("convolved, 512 x 4,097", convolved, [((512, 4097), "f32"), ((512, 4), "f32"), ((512, 4097), "f32")],
             [4097], (5, 512), BLOCK=1024),
        made("smoothed, 1,500 x 2,000", smoothed, [((1500, 2000), "f32"), ((1500, 2000), "f32")], [2000], (1498, 2),
             BLOCK=1024),
        made("silu times, bf16 of 3,000,000", silu_times, [(3_000_000, "bf16")] * 3, [3_000_000], (2930,), BLOCK=1024),
        rows("added and scaled", added_and_scaled, 1000, 2000, ("m:f32", "m:f32", "c:f32", "m:f32"), 2048),
        rows("norm gradient", norm_gradient, 2000, 1000, ("m:f32", "m:f32", "c:f32", "m:f32"), 1024),
        made("outer, 1,000 x 4,097", outer, [(1000, "f32"), (4097, "f32"), ((1000, 4097), "f32")], [4097], (1000, 5),
             BLOCK=1024),
        made("mean of 100 steps, 40 x 1,000", mean_of_steps, [((40, 100, 1000), "f32"), ((40, 1000), "f32")],
             [100, 1000], (40, 4), BLOCK=256),
        made("vector by matrix, 1,024 x 4,097", by_matrix, [(1024, "f32"), ((1024, 4097), "f32"), (4097, "f32")],
             [1024, 4097], (17,), ROWS=8, BLOCK=256),
        made("rows pooled, 1,500 x 2,000", pooled, [((3000, 2000), "f32"), ((1500, 2000), "f32")], [2000, 2000],
             (1500,), BLOCK=2048),
        made("masked scores, 4,096 x 1,000", masked_scores, [((4096, 1000), "f32"), ((512, 1000), "i8"),
             ((4096, 1000), "f32")], [1000], (4096,), BLOCK=1024),
        made("master step of 3,000,000", master_step,
             [(3_000_000, "bf16"), (3_000_000, "f32"), (3_000_000, "bf16")], [3_000_000, 1e-3], (1465,), BLOCK=2048),
        made("summed products of 4,000,000", summed_products,
             [(4_000_000, "f32"), (4_000_000, "f32"), (3907, "f32")], [4_000_000], (3907,), BLOCK=1024),
    ]  # fmt: skip
