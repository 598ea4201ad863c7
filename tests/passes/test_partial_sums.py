"""Sums that loops carry: in parts inside the loop, across lanes after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def rows(out, x, n, M: tl.constexpr, N: tl.constexpr, OP: tl.constexpr, START: tl.constexpr):
    m = tl.arange(0, M)
    total = tl.full((M,), START, x.dtype.element_ty)
    for start in range(0, n, N):
        i = start + tl.arange(0, N)
        if OP == "add":
            tile = tl.load(x + m[:, None] * n + i[None, :], mask=i[None, :] < n, other=0)
            total += tl.sum(tile, axis=1)
        elif OP == "max":
            tile = tl.load(x + m[:, None] * n + i[None, :], mask=i[None, :] < n, other=START)
            total = tl.maximum(total, tl.max(tile, axis=1))
        else:
            tile = tl.load(x + m[:, None] * n + i[None, :], mask=i[None, :] < n, other=START)
            total = tl.minimum(total, tl.min(tile, axis=1))
    tl.store(out + m, total)


@weft.jit
def whole(out, x, n, N: tl.constexpr):
    total = 5.0
    for start in range(0, n, N):
        i = start + tl.arange(0, N)
        total += tl.sum(tl.load(x + i, mask=i < n, other=0.0))
    tl.store(out, total)


def _loop(text: str) -> str:
    """The body of the only loop."""
    return text.partition("scf.for")[2].partition("scf.yield")[0]


@pytest.mark.parametrize("op", ["add", "max", "min"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float64])
@pytest.mark.parametrize(("warps", "m", "n"), [(4, 32, 64), (1, 1, 256), (8, 4, 32), (4, 16, 8)])
@pytest.mark.thinned(3)
def test_rows(op: str, dtype: Any, warps: int, m: int, n: int) -> None:
    rng = np.random.default_rng(7)
    x = rng.integers(-60, 60, (m, 3 * n - 5)).astype(dtype)
    start = 3 if op == "add" else {"max": -50, "min": 50}[op]
    out = np.empty(m, dtype)
    with weft.target("sim:cuda:90"):
        rows[(1,)](out, x, x.shape[1], m, n, op, start, num_warps=warps)
    by = {"add": np.sum, "max": np.max, "min": np.min}[op](x, axis=1)
    wanted = {"add": by + start, "max": np.maximum(by, start), "min": np.minimum(by, start)}[op]
    assert (out == wanted.astype(dtype)).all()


@pytest.mark.parametrize("n", [0, 1, 700, 1024, 1500])
def test_the_whole(n: int) -> None:
    x, out = np.arange(max(n, 1), dtype=np.float32), np.empty(1, np.float32)
    with weft.target("sim:cuda:80"):
        whole[(1,)](out, x, n, 512)
    assert out[0] == 5 + x[:n].sum(dtype=np.float64)


def test_nothing_crosses_lanes_inside_the_loop() -> None:
    f32 = weft.MockTensor("fp32")
    kernel = rows.warmup(f32, f32, 1024, 32, 64, "add", 0.0, grid=(1,), target="cuda:90")
    assert kernel.asm["ttir"].count('"tt.reduce"') == 2
    inside = kernel.asm["ptx"].partition("\n$L__BB0_")[2]
    loop, _, after = inside.rpartition("bra")
    assert "shfl" not in loop and "shfl" in after
    alone = whole.warmup(f32, f32, 1024, 512, grid=(1,), target="cuda:90").asm["ptx"]
    loop, _, after = alone.rpartition("bra")
    assert "bar.sync" not in loop and "bar.sync" in after


def test_rows_at_any_address_have_no_neighbours() -> None:
    """Lanes have single elements of them: 64 partial sums would be too many, and 16 come by exchanges of lanes."""

    @weft.jit
    def pieces(out, x, n, N: tl.constexpr):
        total = 0.0
        for start in range(0, n, N):
            i = start + tl.arange(0, N)
            total += tl.sum(tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0))
        tl.store(out + tl.program_id(0), total)

    f32 = weft.MockTensor("fp32")
    for n, size, count in ((1001, 8192, 1), (1024, 8192, 2), (1001, 1024, 1)):
        text = pieces.warmup(f32, f32, n, size, grid=(1,), num_warps=4, target="cuda:90").asm["ttir"]
        assert text.count('"tt.reduce"') == count, (n, size)
        assert ('"tt.reduce"' in _loop(text)) == (size > 1024), (n, size)


def test_what_else_looks_at_stays() -> None:
    @weft.jit
    def seen(out, x, KIND: tl.constexpr):
        m, n = tl.arange(0, 32), tl.arange(0, 64)
        total = tl.zeros((32,), tl.float32)
        for k in range(10):
            part = tl.sum(tl.load(x + k * 2048 + m[:, None] * 64 + n[None, :]), axis=1)
            if KIND == "part":
                tl.store(out + k * 32 + m, part)
            if KIND == "total":
                tl.store(out + k * 32 + m, total)
            total += part * 2 if KIND == "scaled" else part
        tl.store(out + 320 + m, total)

    f32 = weft.MockTensor("fp32")
    for kind in ("part", "total", "scaled"):
        text = seen.warmup(f32, f32, kind, grid=(1,), target="cuda:90").asm["ttir"]
        assert text.count('"tt.reduce"') == 1 and "tt.reduce" in _loop(text), kind


def test_sums_of_products_stay() -> None:
    @weft.jit
    def products(out, x):
        m, n = tl.arange(0, 64), tl.arange(0, 64)
        a = tl.load(x + m[:, None] * 64 + n[None, :])
        total = tl.zeros((64,), tl.float32)
        for k in range(10):
            b = tl.load(x + k * 4096 + m[:, None] * 64 + n[None, :])
            total += tl.sum(tl.exp(tl.dot(a, b)), axis=1)
        tl.store(out + m, total)

    f16 = weft.MockTensor("fp16")
    text = products.warmup(weft.MockTensor("fp32"), f16, grid=(1,), target="cuda:90").asm["ttir"]
    assert text.count('"tt.reduce"') == 1


def test_many_sums_of_one_loop_take_no_more_registers_than_there_are() -> None:
    @weft.jit
    def many(out, x, n, COUNT: tl.constexpr):
        m = tl.arange(0, 64)
        totals = (tl.zeros((64,), tl.float32),) * COUNT
        for start in range(0, n, 128):
            i = start + tl.arange(0, 128)
            tile = tl.load(x + m[:, None] * n + i[None, :])
            new = ()
            for k in tl.static_range(COUNT):
                new = new + (totals[k] + tl.sum(tile * (k + 1.0), axis=1),)
            totals = new
        for k in tl.static_range(COUNT):
            tl.store(out + k * 64 + m, totals[k])

    f32 = weft.MockTensor("fp32")
    text = many.warmup(f32, f32, 1024, 6, grid=(1,), target="cuda:90").asm["ttir"]
    assert text.count('"tt.reduce"') == 6 + 4  # four sums of 16 registers each in two steps, two as they were
    assert _loop(text).count('"tt.reduce"') == 6


def test_on_the_host_they_stay() -> None:
    f32 = weft.MockTensor("fp32")
    assert rows.warmup(f32, f32, 1024, 32, 64, "add", 0.0, grid=(1,)).asm["ttir"].count('"tt.reduce"') == 1


def test_layouts_that_are_said_stay() -> None:
    """Layout IR that somebody wrote is lowered as it is."""
    path = Path(__file__).parents[1] / "data" / "ttgir" / "cross_entropy_sm80.ttgir"
    kernel = weft.compile(str(path), target="cuda:80")
    assert _loop(kernel.asm["ttgir"]).count("tt.reduce") == _loop(path.read_text(encoding="utf-8")).count("tt.reduce")


@pytest.mark.parametrize("n", [0, 1, 700])
@pytest.mark.parametrize("first", [np.nan, 2.0])
@pytest.mark.parametrize("rest", [np.nan, -3.0])
@pytest.mark.thinned(3)
def test_extrema_pass_over_nan_but_of_nan_alone_are_nan(n: int, first: float, rest: float) -> None:
    @weft.jit
    def extrema(out, x, start, n, N: tl.constexpr):
        least = greatest = tl.load(start)
        for begin in range(0, n, N):
            i = begin + tl.arange(0, N)
            tile = tl.load(x + i, mask=i < n, other=float("nan"))
            least = tl.minimum(least, tl.min(tile))
            greatest = tl.maximum(greatest, tl.max(tile))
        tl.store(out, least)
        tl.store(out + 1, greatest)

    x, start, out = np.full(max(n, 1), rest, np.float32), np.array([first], np.float32), np.empty(2, np.float32)
    with weft.target("sim:cuda:90"):
        extrema[(1,)](out, x, start, n, 512)
    seen = [start[0], *x[:n]]
    np.testing.assert_array_equal(out, [np.fmin.reduce(seen), np.fmax.reduce(seen)])


@pytest.mark.parametrize("n", [1, 1500])
def test_sums_of_negative_zeros(n: int) -> None:
    @weft.jit
    def zeros(out, x, n, N: tl.constexpr):
        total = tl.load(out)
        for start in range(0, n, N):
            i = start + tl.arange(0, N)
            total += tl.sum(tl.load(x + i, mask=i < n, other=-0.0))
        tl.store(out, total)

    out = np.array([-0.0], np.float32)
    with weft.target("sim:cuda:90"):
        zeros[(1,)](out, np.full(n, -0.0, np.float32), n, 512)
    assert np.signbit(out[0])


def test_sums_of_narrow_floats_keep_their_order() -> None:
    """A part may overflow where the sums of rows do not."""
    x = np.zeros((4, 4 * 64), np.float16)
    x[:, 0::64], x[:, 63::64] = 40000, -40000
    out = np.empty(4, np.float16)
    with weft.target("sim:cuda:90"):
        rows[(1,)](out, x, 256, 4, 64, "add", 1.0)
    assert (out == 1).all()
