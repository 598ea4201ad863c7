"""Launches of clusters as far as the host goes: the grid counts programs, the driver blocks."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from typing import Any

import pytest

import weft
import weft.language as tl
from weft.backends.nvidia import loaded_kernel

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


def test_programs_that_run_at_once(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what the driver says of the very launch: its threads, its shared memory, its blocks a cluster."""

    def clusters(count: Any, function: Any, config: Any) -> int:
        *sizes, _, attributes, number = struct.unpack("<IIIIII4xxxxxQQI4x", config.raw[:56])
        assert (function.value, number) == (0xABC0, 1)
        kind, blocks = struct.unpack_from("<I4xI", ctypes.string_at(attributes, 72))
        assert (kind, *sizes) == (4, blocks, 1, 1, 128, 1, 1)
        count._obj.value = 30
        return 0

    monkeypatch.setattr(loaded_kernel, "_clusters_function", lambda: clusters)
    gpu.blocks_at_once = 3
    x = Array(1 << 40)
    assert fill.warmup(x, 1.0, BLOCK=256, num_ctas=4, grid=(1,)).n_max_programs == 30
    assert fill.warmup(x, 1.0, BLOCK=256, grid=(1,)).n_max_programs == 3 * 132
