"""What is loaded from addresses that were computed from loaded numbers lies as those do: addresses are not moved."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def sum_of_looked_up(x, rows, out, n, stride, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    row = tl.load(rows + i, mask=i < n, other=0)
    tl.atomic_add(out, tl.sum(tl.load(x + i * stride + row, mask=i < n, other=0)))


@weft.jit
def weighed(x, rows, out, n, stride, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    row = tl.load(rows + i, mask=i < n, other=0)
    value = tl.load(x + i * stride + row, mask=(i < n) & (row != 3), other=0)
    tl.atomic_add(out, tl.sum(value * tl.load(x + row, mask=i < n, other=0)))


@pytest.mark.parametrize("kernel", [sum_of_looked_up, weighed])
def test_addresses_stay_where_they_are(kernel: weft.JITFunction) -> None:
    f, i = weft.MockTensor("fp32"), weft.MockTensor("i32")
    made = kernel.warmup(f, i, f, 4096, 16, B=4096, grid=(1,), target="cuda:90")
    assert "convert_layout" not in str(made.asm["ttgir"])
    assert str(made.asm["ptx"]).count("ld.global.v4") >= 4096 // 128 // 4  # the numbers are loaded 16 bytes at a time


def test_it_is_computed_so() -> None:
    rng = np.random.default_rng(3)
    x, rows = rng.integers(0, 9, 256 * 8 + 8).astype(np.float32), rng.integers(0, 8, 256).astype(np.int32)
    out = np.zeros(1, np.float32)
    with weft.target("sim:cuda:90"):
        weighed[(2,)](x, rows, out, 250, 8, B=128)
    i = np.arange(250)
    assert out[0] == (x[i * 8 + rows[:250]] * (rows[:250] != 3) * x[rows[:250]]).sum()
