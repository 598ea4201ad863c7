"""Clusters of blocks in the simulator, with every checker on: tests/gpu/test_clusters.py runs the same on a GPU."""

from __future__ import annotations

import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import weft
from backends.nvidia.assembling import needs_ptxas
from hopper.running import Described, launch
from one_in import one_in
from weft.backends.nvidia import emit
from weft.ir import parse_module
from weft.ir.lane import LaneProgram
from weft.lower import lower
from weft.sim import RaceError, options

from .clusters import CHECKS


def run(kernel: Any, grid: Any, *args: Any, **more: Any) -> None:
    """In the simulator."""
    with weft.target("sim:cuda:90"):
        kernel[grid](*args, **more)


@pytest.mark.parametrize("name", one_in(3, CHECKS))
@pytest.mark.thinned(3)
def test_cluster(name: str) -> None:
    order = ("forward", "backward", "random")[zlib.crc32(name.encode()) % 3]
    with options(order=order):
        CHECKS[name](run)


COMPILED = [name for i, name in enumerate(CHECKS) if i % 8 == 0]


@needs_ptxas
@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.thinned(3)
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


def multicast_program() -> tuple[LaneProgram, dict[str, Any]]:
    """The lane program of copies that go to both blocks of a cluster, four times, and arguments for it."""
    made: list[tuple[Any, Any]] = []

    def compiled(kernel: Any, grid: Any, *args: Any, **more: Any) -> None:
        made.append((kernel.warmup(*args, grid=grid, target="cuda:90", **more), args))
        raise Compiled

    with suppress(Compiled):
        CHECKS["bulk-copies-True"](compiled)
    kernel, args = made[0]
    module = parse_module(kernel.asm["ttgir"], "kernel.ttgir")
    values = {name: Described(value.base, value.block_shape) for name, value in zip("xy", args[:2], strict=True)}
    return lower(module), values


def test_multicast_without_a_barrier_is_a_race() -> None:
    """A block may still read what the next copy overwrites, or have no mbarrier yet."""
    program, values = multicast_program()
    launch(program, 2, values)
    loop = next(op for op in program.body.ops if op.name == "for").regions[0]
    barriers = [op for op in loop.ops if op.name == "barrier" and op.attrs["scope"] == "cluster"]
    assert len(barriers) == 1
    loop.ops.remove(barriers[0])
    with pytest.raises(RaceError):
        launch(program, 2, values)


def test_multicast_goes_to_all_that_hold_copies() -> None:
    program, _ = multicast_program()
    ptx = emit(program).code
    assert ptx.count(".multicast::cluster") == 1 and "%cluster_ctarank" in ptx
    assert ptx.count("barrier.cluster.arrive") == 2


def test_layout_ir_for_clusters_is_refused_where_there_are_none() -> None:
    text = (Path(__file__).parents[1] / "data" / "ttgir" / "gluon_cluster_copy.ttgir").read_text(encoding="utf-8")
    with pytest.raises(
        weft.Unsupported, match=r"a cluster of 2 blocks \(num_ctas=2\) is not supported on target cuda:80"
    ):
        weft.compile(text, target="cuda:80")
