"""Launches of clusters as far as the host goes: the grid counts programs, the driver blocks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import weft
import weft.language as tl

from .pretended_gpu import Array, PretendedGPU, pretend


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedGPU]:
    yield from pretend(monkeypatch)


@weft.jit
def fill(x, value, BLOCK: tl.constexpr):
    tl.store(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), value)


def test_blocks_of_all_programs(gpu: PretendedGPU) -> None:
    x = Array(1 << 40)
    for blocks in (1, 2, 8, 2, 1):  # by the general way and the quickest ones
        for _ in range(3):
            fill[(5, 3, 2)](x, 1.0, BLOCK=256, num_ctas=blocks)
            assert gpu.launched[-1].grid == (5 * blocks, 3, 2)
    fill.bind(x, 1.0, BLOCK=256, num_ctas=4, grid=(7,))()
    assert gpu.launched[-1].grid == (28, 1, 1)


def test_a_compiled_kernel_says_what_its_cluster_is(gpu: PretendedGPU) -> None:
    x = Array(1 << 40)
    kernel = fill.warmup(x, 1.0, BLOCK=256, num_ctas=4, grid=(1,))
    assert (kernel.metadata.num_ctas, kernel.metadata.cluster_dims) == (4, (4, 1, 1))
    kernel[(3,)](x, 1.0, 256)
    assert gpu.launched[-1].grid == (12, 1, 1)
