"""Memory-bound kernels by which no constant and no kernel of `weft calibrate` was chosen; see explain_cpu.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import weft
import weft.language as tl


@weft.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * columns + i, power / tl.sum(power, 0), mask=i < columns)


@weft.jit
def log_sum(x, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    most = tl.max(value, 0)
    tl.store(out + row, most + tl.log(tl.sum(tl.exp(value - most), 0)))


@weft.jit
def gated_halves(x, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    a = tl.load(x + row * 2 * columns + i, mask=i < columns)
    b = tl.load(x + row * 2 * columns + columns + i, mask=i < columns)
    tl.store(out + row * columns + i, a * tl.sigmoid(1.7 * b), mask=i < columns)


@weft.jit
def momentum(p, g, m, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    new = 0.9 * tl.load(m + i, mask=i < n) + tl.load(g + i, mask=i < n)
    tl.store(m + i, new, mask=i < n)
    tl.store(p + i, tl.load(p + i, mask=i < n) - 0.01 * new, mask=i < n)


@weft.jit
def halved(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 0.5 * (tl.load(x + 2 * i, mask=i < n) + tl.load(x + 2 * i + 1, mask=i < n)), mask=i < n)


@weft.jit
def quantised(x, out, scales, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + i, mask=i < columns, other=0.0)
    scale = tl.max(tl.abs(value), 0) / 127.0 + 1e-9
    tl.store(out + row * columns + i, (value / scale).to(tl.int8), mask=i < columns)
    tl.store(scales + row, scale)


@weft.jit
def side_by_side(x, y, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out + row * 2 * columns + i, tl.load(x + row * columns + i, mask=i < columns), mask=i < columns)
    tl.store(out + row * 2 * columns + columns + i, tl.load(y + row * columns + i, mask=i < columns), mask=i < columns)


@weft.jit
def rows_and_columns_added(x, by_row, by_column, out, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row, i = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    at = row[:, None] * columns + i[None, :]
    value = tl.load(x + at) + tl.load(by_row + row)[:, None] + tl.load(by_column + i)[None, :]
    tl.store(out + at, value)


@weft.jit
def most_of_rows(x, out, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row, i = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    tl.store(out + row, tl.max(tl.load(x + row[:, None] * columns + i[None, :]), 1))


@weft.jit
def bags(ids, table, out, columns, EACH: tl.constexpr, BLOCK: tl.constexpr):
    bag, i = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(EACH):
        total += tl.load(table + tl.load(ids + bag * EACH + k) * columns + i, mask=i < columns, other=0.0)
    tl.store(out + bag * columns + i, total, mask=i < columns)


@weft.jit
def blended(x, y, z, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a, b, c = tl.load(x + i, mask=mask), tl.load(y + i, mask=mask), tl.load(z + i, mask=mask)
    tl.store(out + i, tl.minimum(tl.maximum(a * b + c, -1.0), 1.0), mask=mask)


@weft.jit
def spread_of_columns(x, out, rows, columns, BLOCK: tl.constexpr):
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total, squares = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        value = tl.load(x + row * columns + j)
        total += value
        squares += value * value
    tl.store(out + j, squares / rows - (total / rows) * (total / rows))


def others(array: Callable[[np.random.Generator, Any, str], Any], case: Callable[..., Any]) -> list[Any]:
    """As `explain_cpu.cases`; `array` and `case` make arrays and cases."""
    million = 1 << 20

    def made(name: str, kernel: Any, kinds: Sequence[Any], more: Sequence[Any], grid: Any, **constants: int) -> Any:
        return case(
            name, kernel, lambda rng: [*(array(rng, shape, kind) for shape, kind in kinds), *more], grid, constants
        )

    wide, tall = (1024, 4000), (4096, 1000)
    return [
        made("softmax of 4,096 x 1,000", softmax, [(tall, "f32"), (tall, "f32")], [1000], (4096,), BLOCK=1024),
        made("softmax of 1,024 x 4,000", softmax, [(wide, "f32"), (wide, "f32")], [4000], (1024,), BLOCK=4096),
        made("log of sums of 1,024 x 4,000", log_sum, [(wide, "f32"), (1024, "f32")], [4000], (1024,), BLOCK=4096),
        made("gated halves of 2,000 x 1,024", gated_halves, [((2000, 2048), "f32"), ((2000, 1024), "f32")], [1024],
             (2000,), BLOCK=1024),
        made("momentum of 3,000,000", momentum, [(3_000_000, "f32")] * 3, [3_000_000], (2930,), BLOCK=1024),
        made("pairs of 2,097,152", halved, [(4 * million, "f32"), (2 * million, "f32")], [2 * million], (2048,),
             BLOCK=1024),
        made("quantised 2,000 x 2,048", quantised, [((2000, 2048), "f32"), ((2000, 2048), "i8"), (2000, "f32")], [2048],
             (2000,), BLOCK=2048),
        made("side by side 1,500 x 1,000", side_by_side, [((1500, 1000), "f32")] * 2 + [((1500, 2000), "f32")], [1000],
             (1500,), BLOCK=1024),
        made("rows and columns added, 4,096 x 1,024", rows_and_columns_added,
             [((4096, 1024), "f32"), (4096, "f32"), (1024, "f32"), ((4096, 1024), "f32")], [1024], (1024,), ROWS=4,
             BLOCK=1024),
        made("most of rows, 16,384 x 256", most_of_rows, [((16384, 256), "f32"), (16384, "f32")], [256], (2048,),
             ROWS=8, BLOCK=256),
        case("bags of 8 rows of 512", bags,
             lambda rng: [rng.permutation(8192).astype(np.int64), array(rng, (8192, 512), "f32"),
                          array(rng, (1024, 512), "f32"), 512], (1024,), {"EACH": 8, "BLOCK": 512}),
        made("blended 2,000,000", blended, [(2_000_000, "f32")] * 4, [2_000_000], (1954,), BLOCK=1024),
        made("blended bf16 4,194,304", blended, [(4 * million, "bf16")] * 4, [4 * million], (1024,), BLOCK=4096),
        made("spread of columns of 2,048 x 2,048", spread_of_columns, [((2048, 2048), "f32"), (2048, "f32")],
             [2048, 2048], (4,), BLOCK=512),
    ]  # fmt: skip
