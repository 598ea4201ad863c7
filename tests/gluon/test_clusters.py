"""Clusters of blocks in the simulator, with every checker on: tests/gpu/test_clusters.py runs the same on a GPU."""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import Any

import pytest

import weft
from backends.nvidia.assembling import needs_ptxas
from weft.sim import options

from .clusters import CHECKS


def run(kernel: Any, grid: Any, *args: Any, **more: Any) -> None:
    """In the simulator."""
    with weft.target("sim:cuda:90"):
        kernel[grid](*args, **more)


@pytest.mark.parametrize("name", CHECKS)
def test_cluster(name: str) -> None:
    order = ("forward", "backward", "random")[zlib.crc32(name.encode()) % 3]
    with options(order=order):
        CHECKS[name](run)


COMPILED = [name for i, name in enumerate(CHECKS) if i % 8 == 0]


@needs_ptxas
@pytest.mark.parametrize("name", COMPILED)
def test_ptxas_takes_it(name: str) -> None:
    """The same lane programs as PTX for a cluster of so many blocks."""
    made: list[Any] = []

    def compiled(kernel: Any, grid: Any, *args: Any, **more: Any) -> None:
        made.append(kernel.warmup(*args, grid=grid, target="cuda:90", **more))
        raise Compiled

    with suppress(Compiled):
        CHECKS[name](compiled)
    kernel = made[0]
    assert f".reqnctapercluster {kernel.metadata.num_ctas}" in kernel.asm["ptx"]
    assert kernel.asm["cubin"]


class Compiled(Exception):
    """The kernel is there; its results are not."""
