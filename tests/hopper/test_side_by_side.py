"""Products of tiles whose columns are no power of two: several sums that one instruction computes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.passes.blocks_of_clusters import of_product, own_shape

from .crossed import Crossed
from .running import aligned
from .specialized import SCHEDULES, described, is_specialized, simulated, why_not

slow = pytest.mark.slow


@weft.jit
def three_sums(  # type: ignore[no-untyped-def]
    a, b, b2, b3, c, n, k, tiles,
    N: tl.constexpr, N2: tl.constexpr, N3: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr, TRANS: tl.constexpr,
):  # fmt: skip
    """c = a b, or a b^T, by tiles of N + N2 + N3 columns."""
    rows = tl.arange(0, BM)
    for tile in tl.range(tl.program_id(0), tiles, 2, warp_specialize=True):
        j = tile * (N + N2 + N3)
        acc, acc2, acc3 = tl.zeros((BM, N), tl.float32), tl.zeros((BM, N2), tl.float32), tl.zeros((BM, N3), tl.float32)
        for at in range(0, k, BK):
            x = a.load([0, at])
            acc = tl.dot(x, b.load([j, at]).T if TRANS else b.load([at, j]), acc)
            acc2 = tl.dot(x, b2.load([j + N, at]).T if TRANS else b2.load([at, j + N]), acc2)
            acc3 = tl.dot(x, b3.load([j + N + N2, at]).T if TRANS else b3.load([at, j + N + N2]), acc3)
        _store(c, acc, rows, j, n)
        _store(c, acc2, rows, j + N, n)
        _store(c, acc3, rows, j + N + N2, n)


@weft.jit
def _store(c, part, rows, first, n):  # type: ignore[no-untyped-def]
    columns = first + tl.arange(0, part.shape[1])
    tl.store(c + rows[:, None] * n + columns[None, :], part, mask=columns[None, :] < n)


def summed(
    columns: tuple[int, int, int],
    *,
    trans: bool,
    stages: int,
    blocks: int = 1,
    warps: int = 4,
    bk: int = 64,
    **more: Any,
) -> tuple[Any, np.ndarray, np.ndarray]:
    """The kernel, its result and NumPy's."""
    bm, (n, k) = 16 * warps * blocks, (sum(columns) + 8, bk + 8)
    rng, (a, b) = np.random.default_rng(1), (aligned(s, np.float16) for s in ((bm, k), (n, k) if trans else (k, n)))
    a[...], b[...] = rng.standard_normal(a.shape), rng.standard_normal(b.shape)
    c = np.zeros((bm, n), np.float32)
    sides = [described(a, (bm, bk)), *(described(b, (x, bk) if trans else (bk, x)) for x in columns)]
    sizes = dict(zip(("N", "N2", "N3"), columns, strict=True)) | {"BM": bm, "BK": bk, "TRANS": trans}
    launch = {"num_stages": stages, "num_ctas": blocks, "num_warps": warps}
    made = simulated(three_sums, (2,), *sides, c, n, k, 2, **sizes, **launch, **more)
    return made, c, a.astype(np.float32) @ (b.T if trans else b).astype(np.float32)


WAYS = [((32, 8, 8), True, 1, 4, "n48"), ((64, 64, 64), False, 1, 4, "n192")]
MORE = [
    ((64, 16, 8), True, 1, 8, "n88"),
    ((64, 16, 8), True, 2, 4, "n88"),
    ((128, 128, 128), False, 2, 4, "n192"),
    ((128, 64, 32), False, 1, 4, "n192"),
]


@pytest.mark.parametrize(
    ("columns", "trans", "blocks", "warps", "wide"), [*WAYS, *(pytest.param(*x, marks=slow) for x in MORE)]
)
def test_one_instruction(columns: tuple[int, int, int], trans: bool, blocks: int, warps: int, wide: str) -> None:
    """It adds up what instructions of each of the sums do; the loop is otherwise as it was."""
    made, c, expected = summed(columns, trans=trans, stages=2, blocks=blocks, warps=warps)
    assert is_specialized(made), why_not(made)
    assert f"wgmma.m64{wide}k16" in made.asm["lane"]
    np.testing.assert_allclose(c, expected, atol=1e-3)
    apart, other, _ = summed(columns, trans=trans, stages=1, blocks=blocks, warps=warps)
    assert not is_specialized(apart) and f"wgmma.m64{wide}k16" not in apart.asm["lane"]
    np.testing.assert_array_equal(c, other)


@slow
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_in_any_order(schedule: Any) -> None:
    """Nothing races, in whatever order warps and copies go on."""
    _, c, expected = summed((32, 8, 8), trans=True, stages=3, warps=8, options=schedule)
    np.testing.assert_allclose(c, expected, atol=1e-3)


@weft.jit
def transposed(  # type: ignore[no-untyped-def]
    a, a2, b, c, c2, m, n, k, M: tl.constexpr, M2: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """c = a b by tiles of M + M2 rows, as rows of c^T = b^T a^T."""
    blocks_n = tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, M + M2) * blocks_n, 2, warp_specialize=True):
        i, j = tile // blocks_n * (M + M2), tile % blocks_n * BN
        acc, acc2 = tl.zeros((BN, M), tl.float32), tl.zeros((BN, M2), tl.float32)
        for at in range(0, k, BK):
            x = b.load([at, j]).T
            acc = tl.dot(x, a.load([i, at]).T, acc)
            acc2 = tl.dot(x, a2.load([i + M, at]).T, acc2)
        c.store([i, j], acc.to(c.dtype).T)
        c2.store([i + M, j], acc2.to(c2.dtype).T)


@pytest.mark.parametrize(
    ("warps", "blocks", "schedule"),
    [(4, 1, None), *(pytest.param(8, b, s, marks=slow) for s in SCHEDULES[:4] for b in (1, 2))],
)
def test_rows_of_the_transposed_product(warps: int, blocks: int, schedule: Any) -> None:
    """Tiles of 40 rows, or 80 of each block, which the copy engine stores when all warps have written theirs."""
    (rows, more), bn, (m, n, k) = (32, 8) if blocks == 1 else (128, 32), 16 * warps, (120, 136, 72)
    rng, (a, b) = np.random.default_rng(1), (aligned(s, np.float16) for s in ((m, k), (k, n)))
    a[...], b[...] = rng.standard_normal(a.shape), rng.standard_normal(b.shape)
    c = aligned((m, n), np.float16)
    blocks_of = [(a, (rows, 64)), (a, (more, 64)), (b, (64, bn)), (c, (rows, bn)), (c, (more, bn))]
    sizes = {"M": rows, "M2": more, "BN": bn, "BK": 64, "num_warps": warps, "num_ctas": blocks, "num_stages": 2}
    made = simulated(transposed, (2,), *(described(*x) for x in blocks_of), m, n, k, **sizes, options=schedule)
    assert is_specialized(made), why_not(made)
    assert f"wgmma.m64n{(rows + more) // blocks}k16.f32.f16.f16.ta" in made.asm["lane"]
    assert made.asm["ttgir"].count("async_tma_copy_local_to_global") == 2
    np.testing.assert_allclose(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64), atol=0.05)


CASES = {
    "one block": (Crossed(), {48, 24}),
    "two blocks that divide columns": (Crossed((48, 392, 72), columns=(256, 128), blocks=2), {48, 24}),
    "two blocks that divide rows": (Crossed((392, 200, 72), rows=(256, 128), blocks=2), {192, 96}),
    "stored through a slot of the ring": (Crossed((168, 200, 72), rows=(64, 16), stages=6, programs=1), {80, 40}),
}


@pytest.mark.parametrize(
    ("name", "schedule"),
    [("one block", None), *(pytest.param(x, s, marks=slow) for x in CASES for s in SCHEDULES[:4])],
)
def test_two_left_operands(name: str, schedule: Any) -> None:
    """Two instructions compute all four products; each warp group has every other 8 columns of the lower ones."""
    case, columns = CASES[name]
    c, made = case.run(options=schedule)
    assert is_specialized(made), why_not(made)
    assert {int(x) for x in re.findall(r"wgmma\.m64n(\d+)k", made.asm["lane"])} == columns
    assert made.asm["ttgir"].count("async_tma_copy_local_to_global") == 4
    assert len(re.findall(r"_stored\w* = ttg.local_alloc", made.asm["ttgir"])) == (0 if "slot" in name else 4)
    np.testing.assert_allclose(c.astype(np.float64), case.exact(), atol=0.05)


@pytest.mark.parametrize(
    ("rows", "columns", "own"),
    [
        (256, (256, 0), (128, 256)),
        (256, (256, 128), (256, 192)),
        (512, (128, 64), (256, 192)),
        (128, (64, 64), (128, 64)),
    ],
)
def test_blocks_divide_products_alike(rows: int, columns: tuple[int, int], own: tuple[int, int]) -> None:
    """By rows or by columns, so that what a block loads is least: of 256 x 384, 256 + 192 is less than 128 + 384."""
    shapes = [(rows, n) for n in columns if n]
    blocks = [own_shape(shape, of_product(shape, 2, sum(columns))) for shape in shapes]
    assert {m for m, _ in blocks} == {own[0]} and sum(n for _, n in blocks) == own[1]


@pytest.mark.parametrize(("rows", "columns", "own"), [((128, 64), 448, (192, 224)), ((256, 128), 240, (192, 240))])
def test_blocks_divide_two_left_operands_alike(rows: tuple[int, int], columns: int, own: tuple[int, int]) -> None:
    """Each of two blocks has 192 x 240 of 384 x 240, although the lower 128 x 240 alone would be divided by columns."""
    blocks = [own_shape((n, columns), of_product((n, columns), 2, columns, rows)) for n in rows]
    assert (sum(m for m, _ in blocks), *{n for _, n in blocks}) == own


@slow
@pytest.mark.parametrize(("columns", "names"), [((64, 64, 32), {128, 32}), ((128, 64, 128), {192, 128})])
def test_what_does_not_fit_into_one(columns: tuple[int, int, int], names: set[int]) -> None:
    """More than 256 columns, or parts of B that do not lie as blocks of 64 columns, are several instructions."""
    made, c, expected = summed(columns, trans=False, stages=2, warps=8)
    assert is_specialized(made), why_not(made)
    assert {int(n) for n in re.findall(r"wgmma\.m64n(\d+)k", made.asm["lane"])} == names
    np.testing.assert_allclose(c, expected, atol=1e-3)


def test_columns_longer_than_a_swizzle() -> None:
    """Of columns of 256 bytes a tile has all first halves first: two tiles do not lie as one of twice the columns."""
    made, c, expected = summed((64, 64, 64), trans=True, stages=2, bk=128)
    assert is_specialized(made), why_not(made)
    assert {int(n) for n in re.findall(r"wgmma\.m64n(\d+)k", made.asm["lane"])} == {64}
    np.testing.assert_allclose(c, expected, atol=1e-3)
