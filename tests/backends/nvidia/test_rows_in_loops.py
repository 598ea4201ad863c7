"""Addresses of rows that a loop reads: what is the same in all iterations is computed before it."""

from __future__ import annotations

import re

import weft
import weft.language as tl


@weft.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(left.load([i, k]), right.load([j, k]).T, acc)
    tl.store(c + (i + tl.arange(0, BM))[:, None] * N + (j + tl.arange(0, BN))[None, :], acc)


def test_a_turn_adds_once_to_the_address_of_each_row() -> None:
    """Not to the address of the row before: such a chain has to be gone through in each iteration."""
    half, single = weft.MockTensor("fp16"), weft.MockTensor("fp32")
    by_threads = {"num_warps": 8, "made_tensors": False}
    kernel = product.warmup(half, half, single, 512, 512, 512, 128, 128, 64, grid=(1,), target="cuda:90", **by_threads)
    ptx = kernel.asm["ptx"]
    back = next(m for m in re.finditer(r"bra\s+(\$\w+)", ptx) if f"{m[1]}:" in ptx[: m.start()])
    iteration = ptx[ptx.index(f"{back[1]}:") : back.start()]
    added = re.findall(r"add\.s64\s+(%rd\d+), (%rd\d+), (%rd\d+);", iteration)
    assert len(added) == iteration.count("cp.async.cg") == 8
    assert not {result for result, *_ in added} & {operand for _, *operands in added for operand in operands}
