"""Iterations that stand for others: what the counter says of long loops is what it says when it follows all of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import weft
import weft.language as tl
from weft.ir.lane import LaneProgram
from weft.sim import count


@weft.jit
def rows(x, out, n, stride, BLOCK: tl.constexpr):
    """Rows that begin at other places in a sector each time, and a mask that cuts the last block off."""
    total = tl.zeros((BLOCK,), tl.float32)
    i = tl.arange(0, BLOCK)
    for start in range(0, n, BLOCK):
        row = x + (tl.program_id(0) + start // BLOCK) * stride
        total += tl.load(row + start + i, mask=start + i < n, other=0.0)
    tl.store(out + tl.program_id(0) * BLOCK + i, total)


@weft.jit
def triangle(x, out, n, BLOCK: tl.constexpr):
    """A mask that holds for fewer elements from the middle of the loop on."""
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + start + i, mask=start + i < n // 2, other=0.0)
    tl.store(out + i, total)


@weft.jit
def product(a, b, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j, k = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :], tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        total += tl.dot(tl.load(a + i * K + start + k[None, :]), tl.load(b + (start + k[:, None]) * N + j))
    tl.store(c + i * N + j, total.to(tl.float16))


HALF, FLOAT = weft.MockTensor("fp16"), weft.MockTensor("fp32")
CASES: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any], dict[str, int]]] = {
    "rows": (rows, (FLOAT, FLOAT, 9999, 1000), {"BLOCK": 128}, {"n": 9999, "stride": 1000}),
    "rows of odd sizes": (rows, (FLOAT, FLOAT, 9999, 1001), {"BLOCK": 128}, {"n": 9999, "stride": 1001}),
    "product 80": (product, (HALF, HALF, HALF, 2048, 64), {"BM": 64, "BN": 64, "BK": 32}, {"K": 2048, "N": 64}),
    "product 90": (product, (HALF, HALF, HALF, 4096, 64), {"BM": 64, "BN": 64, "BK": 64}, {"K": 4096, "N": 64}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_few_iterations_stand_for_all(name: str) -> None:
    kernel, args, constants, scalars = CASES[name]
    target = "sim:cuda:90" if name == "product 90" else "sim:cuda:80"
    program = kernel.warmup(*args, **constants, grid=(1,), target=target).program
    assert _is_counted_alike(program, 2, scalars)


def _is_counted_alike(program: LaneProgram, grid: int, scalars: dict[str, int]) -> bool:
    whole, part = count(program, grid, scalars), count(program, grid, scalars, steady=True)
    lines = {
        k: Counter({n: c for n, c in line.items() if not n.endswith(("_distinct", "_lines", "_boxes"))})
        for k, line in part.lines.items()
    }
    return part.exact and lines == whole.lines


def test_fewer_are_followed() -> None:
    """More iterations than anybody would wait for."""
    program = rows.warmup(FLOAT, FLOAT, 9999, 1000, BLOCK=128, grid=(1,), target="sim:cuda:80").program
    iterations = 1_100_000
    scalars = {"n": 128 * iterations, "stride": 0}
    assert count(program, 1, scalars, steady=True)["kind:for"] == 4 * iterations


def test_a_change_on_the_way_is_counted() -> None:
    program = triangle.warmup(FLOAT, FLOAT, 9999, BLOCK=128, grid=(1,), target="sim:cuda:80").program
    assert _is_counted_alike(program, 1, {"n": 9999})


def test_some_programs() -> None:
    kernel, args, constants, scalars = CASES["rows"]
    program = kernel.warmup(*args, **constants, grid=(1,), target="sim:cuda:80").program
    parts = [count(program, 3, scalars, programs=[i]) for i in range(3)]
    assert sum(p["global_load_sectors"] for p in parts) == count(program, 3, scalars)["global_load_sectors"]
