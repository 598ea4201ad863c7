"""Clusters in the Triton language: how tiles are divided among blocks, and kernels launched with `num_ctas`."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from backends.nvidia.assembling import needs_ptxas
from kernels.clusters import CHECKS, in_clusters, product_kernel, softmax_kernel, sums_kernel
from kernels.simulated import NAMES
from weft.compiler.gpu import lane_program
from weft.ir.lane import Block
from weft.sim import Options, RaceError, SimulationError, UninitializedError, options, run as simulate


def run(kernel: Any, grid: Any, *args: Any, **more: Any) -> None:
    """In the simulator."""
    with weft.target("sim:cuda:90"):
        kernel[grid](*args, **more)


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.thinned(2)
def test_kernel(name: str) -> None:
    order = ("forward", "backward")[zlib.crc32(name.encode()) % 2]
    with options(order=order):
        CHECKS[name](run)


class Compiled(Exception):
    """The kernel is there; its results are not."""


@needs_ptxas
@pytest.mark.parametrize("name", [name for name in CHECKS if name.endswith("-4")])
@pytest.mark.thinned(3)
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
    """One, at which blocks arrive when they begin: results are sent, and who has received them all may end."""
    x = np.zeros((1, 4096), np.float32)
    kernel = softmax_kernel.warmup(x, x, 4096, 4096, BLOCK=4096, num_ctas=2, grid=(1,), target="cuda:90")
    ptx = kernel.asm["ptx"]
    assert ptx.count("barrier.cluster.arrive") == ptx.count("barrier.cluster.wait") == 1
    arrival, loaded, wait = (ptx.index(x) for x in ("cluster.arrive.relaxed", "ld.global", "barrier.cluster.wait"))
    assert arrival < loaded < wait < ptx.index("st.async") < ptx.index("st.global")
    assert ptx.count("st.async") == ptx.count("mbarrier.init") == 2


@weft.jit
def extremes_kernel(x, out, N: tl.constexpr):
    value = tl.load(x + tl.program_id(0) * N + tl.arange(0, N))
    tl.store(out + 4 * tl.program_id(0), tl.argmax(value, 0))
    tl.store(out + 4 * tl.program_id(0) + 1, tl.argmin(value, 0))
    tl.store(out + 4 * tl.program_id(0) + 2, tl.sum(value, 0).to(tl.int32))
    tl.store(out + 4 * tl.program_id(0) + 3, tl.max((value > 50).to(tl.int1), 0).to(tl.int32))


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.float64, np.int64])
def test_results_of_any_type_are_sent(dtype: Any) -> None:
    """Several at a time, in words of 32 bits."""
    x, out = np.random.default_rng(0).permutation(256).astype(dtype).reshape(2, 128), np.zeros((2, 4), np.int32)
    with options(copies="latest"):
        run(extremes_kernel, (2,), x, out, N=128, num_ctas=4)
    total = x.sum(1) if dtype != np.int8 else x.sum(1, dtype=np.int32)
    expected = [x.argmax(1), x.argmin(1), total.astype(np.int32), (x > 50).any(1)]
    np.testing.assert_array_equal(out, np.stack(expected, 1))


@pytest.mark.parametrize("name", ["mbarrier.init", "expect_tx", "wait.parity", "made.arrive", "st.async"])
def test_nothing_of_an_exchange_can_be_left_out(name: str) -> None:
    """Without any one of its instructions there is an error; an arrival goes with the wait for it."""
    source = weft.ASTSource(softmax_kernel, {"x": "*fp32", "out": "*fp32", "n": "i32", "stride": "i32"}, {"BLOCK": 256})
    program = lane_program(source, "sim:cuda:90", {"num_ctas": 2, "num_warps": 1})
    ops, x = list(program.body.ops), np.zeros((1, 256), np.float32)
    chosen = [op for op in ops if name in op.attrs.get("isa", "")]
    assert chosen
    for left_out in chosen:
        waits = "arrive" in name and "made" in name
        program.body.ops[:] = [
            op for op in ops if op is not left_out and not (waits and op.attrs.get("isa") == "barrier.cluster.wait")
        ]
        errors = []
        for order in ("forward", "backward"):
            with suppress(SimulationError):
                simulate(program, (1,), {"x": x, "out": x, "n": 256, "stride": 256}, Options(order=order))
                continue
            errors.append(order)
        assert errors


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
@pytest.mark.thinned(3)
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
@pytest.mark.thinned(2)
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


@weft.jit
def norm_kernel(x, w, out, n, COUNTED: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    value = tl.load(x + row + at, mask=at < n, other=0.0).to(tl.float32)
    mean = tl.sum(value, 0) / n
    apart = tl.where(at < n, value - mean, 0.0)
    scale = tl.rsqrt(tl.sum(apart * apart, 0) / n + 1e-6)
    weight = tl.load(w + at, mask=at < n, other=0.0)
    tl.store(out + row + at, (apart * scale * weight).to(out.dtype.element_ty), mask=at < n)
    if COUNTED:
        tl.atomic_add(w, 1.0)


def blocks_of(kernel: Any, dtype: Any, block: int, target: str = "cuda:90", **more: Any) -> int:
    """How many blocks a kernel of rows is run by that does not say it."""
    x, w = np.zeros((1, block), dtype), np.zeros(block, np.float32)
    args = (x, x, block, block) if kernel is softmax_kernel else (x, w, x, block, more.pop("counted", False))
    compiled = kernel.warmup(*args, BLOCK=block, grid=(1,), target=target, **more)
    assert bool(compiled.remarks.of("in clusters")) == (compiled.metadata.num_ctas > 1)
    return int(compiled.metadata.num_ctas)


def test_a_row_that_one_block_has_no_room_for_is_a_clusters() -> None:
    """Counted is what is held across a reduction: 8,192 elements of 32 bits are 256 words of each of 32 threads."""
    assert blocks_of(softmax_kernel, np.float32, 8192, num_warps=1) == 8
    assert blocks_of(softmax_kernel, np.float32, 4096, num_warps=1) == 1
    assert blocks_of(softmax_kernel, np.float32, 8192, num_warps=2) == 1
    assert blocks_of(norm_kernel, np.float32, 8192, num_warps=1) == 8
    assert blocks_of(norm_kernel, np.float16, 8192, num_warps=1) == 1, "the elements are held as they were loaded"
    assert blocks_of(norm_kernel, np.float32, 8192, num_warps=1, counted=True) == 1, "it has an atomic operation"
    assert blocks_of(softmax_kernel, np.float32, 8192, "cuda:80", num_warps=1) == 1


@weft.jit
def entropy_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    most = tl.max(value, 0)
    tl.store(out + tl.program_id(0), most + tl.log(tl.sum(tl.exp(value - most), 0)))


@pytest.mark.parametrize(("n", "blocks"), [(16_001, 2), (16_384, 1)])
def test_a_row_that_waits_in_shared_memory_has_room_there(n: int, blocks: int) -> None:
    """Two blocks of 64 threads have it for 64 words of each; rows of which all vectors are aligned are in registers."""
    x, out = np.zeros((1, n), ml_dtypes.bfloat16), np.zeros(1, np.float32)
    made = entropy_kernel.warmup(x, out, n, BLOCK=16_384, num_warps=2, grid=(1,), target="cuda:90")
    assert made.metadata.num_ctas == blocks


def test_rows_that_are_reduced_again_are_divided_less() -> None:
    """Of 512 threads each has 64 words, half of them in shared memory, and not 32: fewer blocks wait for each other."""
    assert blocks_of(norm_kernel, np.float32, 131072, num_warps=16) == 4
    assert blocks_of(norm_kernel, np.float16, 262144, num_warps=16) == 4
    assert blocks_of(softmax_kernel, np.float32, 131072, num_warps=16) == 8, "its exponentials are dear"


@pytest.mark.parametrize(("dtype", "blocks"), [(np.float32, (2, 4, 4)), (np.float16, (1, 2, 4))])
def test_rows_of_which_the_next_are_asked_for_are_divided_more(dtype: Any, blocks: tuple[int, ...]) -> None:
    """Each of 512 threads holds 32 words if four blocks are enough for that, although a thread has room for 64."""
    assert tuple(blocks_of(norm_kernel, dtype, n, num_warps=16) for n in (32768, 65536, 131072)) == blocks
    assert blocks_of(norm_kernel, dtype, 32768, "cuda:100", num_warps=16) == 1, "there nobody asks"


def test_a_row_of_a_cluster_is_right() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 8000)).astype(np.float32), rng.standard_normal(8000).astype(np.float32)
    out = np.zeros_like(x)
    run(norm_kernel, (2,), x, w, out, 8000, False, BLOCK=8192, num_warps=1)
    assert weft.sim.last_run().kinds["st.async.b32"], "its blocks send each other their sums"
    apart = x - x.mean(1, keepdims=True)
    np.testing.assert_allclose(out, apart / np.sqrt(apart.var(1, keepdims=True) + 1e-6) * w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n, blocks, dtype", [(1001, 2, np.float16), (317, 8, np.float32), (999, 4, np.float32)])
def test_a_row_that_begins_anywhere_is_divided_too(n: int, blocks: int, dtype: Any) -> None:
    """By aligned vectors; its first and last elements one by one."""
    rng = np.random.default_rng(n)
    x, w = rng.standard_normal((3, n)).astype(dtype), rng.standard_normal(n).astype(np.float32)
    out = np.full(3 * n + 64, 7, dtype)
    run(norm_kernel, (3,), x, w, out, n, False, BLOCK=1024, num_warps=1, num_ctas=blocks)
    kinds = weft.sim.last_run().kinds
    assert kinds["store.global.128"] > kinds[f"store.global.{8 * x.itemsize}"], "elements of two runs of a row"
    rows = x.astype(np.float32)
    apart = rows - rows.mean(1, keepdims=True)
    expected = apart / np.sqrt(apart.var(1, keepdims=True) + 1e-6) * w
    np.testing.assert_allclose(out[: 3 * n].reshape(3, n), expected, rtol=1e-3, atol=1e-3)
    assert (out[3 * n :] == 7).all()


def test_a_block_of_a_cluster_parks_what_it_has_no_registers_for() -> None:
    """Two blocks of 512 threads have 64 registers a thread: of 64 words that each holds, a half waits in memory."""
    x = np.random.default_rng(0).standard_normal((1, 65000)).astype(np.float32)
    out = np.zeros_like(x)
    run(softmax_kernel, (1,), x, out, 65000, 65000, BLOCK=65536, num_warps=16, num_ctas=2)
    assert weft.sim.last_run().kinds["store.shared.128"] >= 2 * 16 * 8
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=2e-5)
