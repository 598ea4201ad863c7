"""Clusters in the Triton language: how tiles are divided among blocks, and kernels launched with `num_ctas`."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from backends.nvidia.assembling import needs_ptxas
from kernels.clusters import CHECKS, in_clusters, product_kernel, softmax_kernel, sums_kernel
from kernels.simulated import NAMES
from weft.ir.lane import Block
from weft.sim import Options, RaceError, UninitializedError, options


def run(kernel: Any, grid: Any, *args: Any, **more: Any) -> None:
    """In the simulator."""
    with weft.target("sim:cuda:90"):
        kernel[grid](*args, **more)


@pytest.mark.parametrize("name", CHECKS)
def test_kernel(name: str) -> None:
    order = ("forward", "backward")[zlib.crc32(name.encode()) % 2]
    with options(order=order):
        CHECKS[name](run)


class Compiled(Exception):
    """The kernel is there; its results are not."""


@needs_ptxas
@pytest.mark.parametrize("name", [name for name in CHECKS if name.endswith("-4")])
def test_ptxas_takes_it(name: str) -> None:
    made: list[Any] = []

    def compiled(kernel: Any, grid: Any, *args: Any, **more: Any) -> None:
        made.append(kernel.warmup(*args, grid=grid, target="cuda:90", **more))
        raise Compiled

    with suppress(Compiled):
        CHECKS[name](compiled)
    assert made[0].metadata.num_ctas == 4
    assert ".reqnctapercluster 4" in made[0].asm["ptx"]
    assert made[0].asm["cubin"]


def layouts(kernel: Any, *args: Any, **more: Any) -> dict[str, list[str]]:
    """The cga_layouts of a kernel's layout IR, by the kind of layout."""
    text = kernel.warmup(*args, grid=(1,), target="cuda:90", **more).asm["ttgir"]
    found: dict[str, list[str]] = {}
    for kind, division in re.findall(r"#ttg\.(\w+)<\{.*CGALayout = (\[\[.*?\]\])", text):
        if division not in found.setdefault(kind, []):
            found[kind].append(division)
    return found


F16 = np.zeros((512, 512), np.float16)


@pytest.mark.parametrize(
    ("blocks", "result", "operands"),
    [
        (2, "[[0, 1]]", ["[[0, 0]]", "[[0, 1]]"]),
        (4, "[[0, 1], [1, 0]]", ["[[0, 0], [1, 0]]", "[[0, 1], [0, 0]]"]),
    ],
)
def test_products_are_divided_as_in_triton(blocks: int, result: str, operands: list[str]) -> None:
    """What Triton 3.6.0 makes of this kernel; operands are loaded as they are divided, so that nothing crosses."""
    found = layouts(product_kernel, F16, F16, F16, 64, 512, 512, 512, M=128, N=128, BLOCK_K=64, num_ctas=blocks)
    assert found["nvidia_mma"] == [result]
    assert sorted(found["nvmma_shared"]) == operands
    program = product_kernel.warmup(
        F16, F16, F16, 64, 512, 512, 512, M=128, N=128, BLOCK_K=64, num_ctas=blocks, grid=(1,), target="cuda:90"
    )
    assert "shared::cluster" not in program.asm["ptx"]


def test_a_reduction_stays_in_its_block() -> None:
    """Rows are summed where they are; columns are then of all blocks."""
    x, y = np.zeros((64, 128), np.float32), np.zeros(128, np.float32)
    assert "[[1, 0]]" in layouts(sums_kernel, x, y, y, M=64, N=128, num_ctas=2)["blocked"]


def test_clusters_came_with_hopper() -> None:
    x = np.zeros(1024, np.float32)
    for target in ("sim:cuda:80", "cuda:86"):
        with pytest.raises(weft.Unsupported, match="a cluster of 2 blocks") as caught:
            sums_kernel.warmup(x, x, x, M=8, N=128, num_ctas=2, grid=(1,), target=target)
        assert "launch with num_ctas=1, or for target cuda:90" in str(caught.value)


def test_barriers_of_two_reductions() -> None:
    """One before the results of the others are read, each; and one at the end, so that they are there as long."""
    x = np.zeros((1, 4096), np.float32)
    kernel = softmax_kernel.warmup(x, x, 4096, 4096, BLOCK=4096, num_ctas=2, grid=(1,), target="cuda:90")
    assert kernel.asm["ptx"].count("barrier.cluster.arrive") == 3


@weft.jit
def printing_kernel(x, N: tl.constexpr):
    value = tl.load(x + tl.arange(0, N))
    tl.device_print("sum", tl.sum(value, 0))
    tl.device_print("value", value)


@pytest.mark.parametrize("blocks", [2, 4, 8])
def test_each_element_is_printed_once(blocks: int) -> None:
    with weft.target("sim:cuda:90"):
        printing_kernel[(1,)](np.arange(4, dtype=np.int32), N=4, num_ctas=blocks)
    lines = weft.sim.last_run().printed
    assert lines[0] == "pid (0, 0, 0) idx () sum: 6"
    assert lines[1:] == [f"pid (0, 0, 0) idx ({i}) value: {i}" for i in range(4)]


CORPUS = [name for name in NAMES if name.endswith(".ttir")]


def check_corpus(name: str, blocks: int) -> None:
    """A test kernel, each program a cluster of so many blocks, gives what it gives without."""
    kernel = in_clusters(name, blocks)
    _, after = kernel.run(Options(order="backward" if len(name) % 2 else "forward"))
    kernel.case.check(kernel.case.make_inputs(), after)


@pytest.mark.parametrize("name", CORPUS[::6])
def test_kernels_that_know_nothing_of_clusters(name: str) -> None:
    check_corpus(name, 2)


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [2, 4, 8])
@pytest.mark.parametrize("name", CORPUS)
def test_every_kernel(name: str, blocks: int) -> None:
    check_corpus(name, blocks)


def blocks_in(block: Block) -> Iterator[Block]:
    """A block of the lane program, and those inside of it."""
    yield block
    for op in block.ops:
        for region in op.regions:
            yield from blocks_in(region)


@pytest.mark.parametrize("name", CORPUS[::6])
def test_no_barrier_can_be_left_out(name: str) -> None:
    """Without any one of the barriers of the cluster there is a race; those that order global memory are another test's
    (lower/test_order_globals.py)."""
    kernel = in_clusters(name, 2)
    for block in blocks_in(kernel.program.body):
        block.ops[:] = [op for op in block.ops if "of" not in op.attrs]
        for op in list(block.ops):
            if op.name == "barrier" and op.attrs["scope"] == "cluster" and op.attrs["inserted"]:
                before = list(block.ops)
                block.ops.remove(op)
                with pytest.raises((RaceError, UninitializedError)):
                    kernel.run()
                block.ops[:] = before


@weft.jit
def waiting_kernel(flag, out, limit):
    seen = tl.load(flag, volatile=True)
    iterations = 0
    while (seen == 0) & (iterations < limit):
        seen = tl.load(flag, volatile=True)
        iterations += 1
    tl.store(out + tl.arange(0, 128), seen + iterations)


def test_blocks_go_the_same_way() -> None:
    """What decides and may change meanwhile is read by one block for all of them."""
    for flag, expected in ((3, 3), (0, 5)):
        out = np.zeros(128, np.int32)
        run(waiting_kernel, (1,), np.full(1, flag, np.int32), out, 5, num_ctas=2)
        np.testing.assert_array_equal(out, expected)
    assert weft.sim.last_run().kinds["load.cluster.32"] == 6 * 2 * 4, "each load, by each warp of both blocks"
