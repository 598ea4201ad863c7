"""Sums that addresses of a tile have in common: they are computed once, not again for each address."""

from __future__ import annotations

import weft
import weft.language as tl


@weft.jit
def sums(x, y, row, plane, stride, n, COLUMNS: tl.constexpr):
    line = x + tl.program_id(0) * row + tl.program_id(1) * plane
    total = tl.zeros((COLUMNS,), tl.float32)
    for c in range(0, n, COLUMNS):
        total += tl.load(line + (c + tl.arange(0, COLUMNS)) * stride)
    tl.store(y + tl.arange(0, COLUMNS), total)


def test_a_sum_in_front_of_a_loop_stays_a_term() -> None:
    """LLVM takes the size of an element out of sums, after which `line` is no term of any address: two additions and a
    shift of 64 bits for each of 16 elements of a thread."""
    half, single = weft.MockTensor("fp16"), weft.MockTensor("fp32")
    kernel = sums.warmup(half, single, 1001, 77, 33, 4096, COLUMNS=2048, grid=(1, 1), target="cuda:90")
    ptx = kernel.asm["ptx"]
    addresses = ptx.count("ld.global.b16")
    assert addresses == 16 and "shl.b64" not in ptx
    assert ptx.count("mul.wide.s32") >= addresses
    assert ptx.count("add.s64") <= addresses + 8
