"""Blocks that execute several programs: which kernels' do, that results stay the same, and what a launch starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from runtime.pretended_gpu import PretendedGPU, Tensor, pretend
from weft.ir.lane import Block, LaneOp, LaneProgram
from weft.lower.nvidia.programs_in_turn import PROGRAMS
from weft.machines import machine_of
from weft.remarks import ProgramsInTurn
from weft.runtime import prepared
from weft.sim import Options, RaceError, UninitializedError, run

TARGET = "sim:cuda:90"


@weft.jit
def total(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    tl.store(out + row, tl.sum(tl.load(x + row * n + i, i < n, other=0.0), 0))


@weft.jit
def centred(x, n, BLOCK: tl.constexpr):
    """In place, but for every third row."""
    row = tl.program_id(0)
    if row % 3 == 1:
        return
    i = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + i, i < n, other=0.0)
    tl.store(x + row * n + i, value - tl.sum(value, 0) / n, i < n)


@weft.jit
def numbered(out, BLOCK: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    total = 0
    for k in tl.range(0, 3):
        total += k * x
    tl.store(out + at * BLOCK + tl.arange(0, BLOCK), total + 100 * y + 10000 * z + tl.arange(0, BLOCK))


@weft.jit
def large(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


@weft.jit
def long(x, out, n, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    for k in range(0, n, BLOCK):
        total += tl.load(x + k + tl.arange(0, BLOCK))
    tl.store(out + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), total)


@weft.jit
def counted(x, out):
    tl.store(out + tl.program_id(0), tl.atomic_add(x, 1.0))


@weft.jit
def watching(x, out):
    while tl.load(x, volatile=True) == 0:
        pass
    tl.store(out + tl.program_id(0), 1.0)


@weft.jit
def newest(x, out):
    tl.store(out + tl.program_id(0), tl.load(x + tl.program_id(0), volatile=True))


def program_of(kernel: Any, *args: Any, **options: Any) -> LaneProgram:
    program: LaneProgram = kernel.warmup(*args, grid=(8,), target=TARGET, **options).program
    return program


def rows(count: int, columns: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(count).standard_normal((count, columns)).astype(np.float32)


@pytest.mark.parametrize("count", (1, 3, PROGRAMS, PROGRAMS + 1, 4 * PROGRAMS + 2))
def test_a_block_executes_several_rows(count: int) -> None:
    x, out = rows(count, 100), np.full(count + 1, 7, np.float32)
    launch = total[(count,)](x, out, 100, BLOCK=128, num_warps=2, target=TARGET)
    assert launch.program.programs_each == PROGRAMS
    np.testing.assert_allclose(out[:-1], x.sum(1), rtol=1e-4, atol=1e-4)
    assert out[-1] == 7


@pytest.mark.parametrize("order", ("forward", "backward", "random"))
def test_programs_that_return_early_and_write_in_place(order: str) -> None:
    x = rows(11, 60)
    wanted = np.where(np.arange(11)[:, None] % 3 == 1, x, x - x.mean(1, keepdims=True))
    program = program_of(centred, x, 60, BLOCK=64, num_warps=2)
    assert program.programs_each == PROGRAMS
    run(program, 11, {"x": x, "n": 60}, Options(order=order))
    np.testing.assert_allclose(x, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("grid", ((5, 3, 2), (1, 7, 1), (4, 1, 3), (9, 2, 1)))
def test_grids_of_several_axes(grid: tuple[int, int, int]) -> None:
    x, y, z = np.meshgrid(*map(np.arange, grid), indexing="ij")
    out = np.zeros((grid[2], grid[1], grid[0], 32), np.int32)
    launch = numbered[grid](out, BLOCK=32, num_warps=1, target=TARGET)
    assert launch.program.programs_each == PROGRAMS
    wanted = (3 * x + 100 * y + 10000 * z).transpose(2, 1, 0)[..., None] + np.arange(32)
    np.testing.assert_array_equal(out, wanted)


def barriers(block: Block) -> Iterator[tuple[Block, LaneOp]]:
    for op in block.ops:
        if op.name == "barrier":
            yield block, op
        for region in op.regions:
            yield from barriers(region)


@pytest.mark.parametrize("kernel", (total, centred))
def test_a_program_waits_for_the_shared_memory_of_the_one_before_it(kernel: Any) -> None:
    """One barrier is needed within a program, and one between programs; the simulator misses each."""
    x, out = rows(2 * PROGRAMS, 64), np.zeros(2 * PROGRAMS, np.float32)
    args = {"x": x, "out": out, "n": 64} if kernel is total else {"x": x, "n": 64}
    program = program_of(kernel, *args.values(), BLOCK=64, num_warps=2)
    found = list(barriers(program.body))
    assert len(found) == 2
    run(program, 2 * PROGRAMS, args)
    for block, op in found:
        index = next(i for i, other in enumerate(block.ops) if other is op)
        del block.ops[index]
        with pytest.raises((RaceError, UninitializedError)):
            run(program, 2 * PROGRAMS, args)
        block.ops.insert(index, op)


@pytest.mark.parametrize(
    ("kernel", "why"),
    ((counted, "`atomic`"), (newest, "`load`"), (large, ""), (long, ""), (watching, "")),
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_what_has_a_block_for_each_program(kernel: Any, why: str) -> None:
    """Programs that may wait for others or are not known to be short; of short ones a remark says why."""
    x, out = weft.like((1 << 20,), "fp32"), weft.like((1 << 20,), "fp32")
    options = {large: {"BLOCK": 1024}, long: {"n": 4096, "BLOCK": 128}}.get(kernel, {})
    made = kernel.warmup(x, out, grid=(8,), target=TARGET, **options)
    assert made.program.programs_each == 1
    remarks = [r for r in made.remarks if isinstance(r, ProgramsInTurn)]
    assert len(remarks) == bool(why)
    assert all(why in r.why and "one program" in r.what for r in remarks)


def test_other_gpus_have_a_block_for_each_program() -> None:
    """Nobody has measured how fast they start blocks."""
    x, out = weft.like((1 << 20,), "fp32"), weft.like((1 << 20,), "fp32")
    for target in ("sim:cuda:80", "sim:cuda:100"):
        made = total.warmup(x, out, 100, BLOCK=128, grid=(8,), target=target)
        assert made.program.programs_each == 1


def test_the_loop_is_in_the_code() -> None:
    """Its bound is the last parameter, also for `num_programs`."""
    out = weft.like((1 << 20,), "i32")
    made = numbered.warmup(out, BLOCK=32, num_warps=1, grid=(8,), target="cuda:90")
    assert made.metadata.programs_each == PROGRAMS
    assert made.asm["ptx"].count(".param .u32") == 1
    assert "%nctaid.x" in made.asm["ptx"]


def test_time_is_predicted_with_fewer_blocks() -> None:
    x, out = weft.like((1 << 18, 100), "fp32"), weft.like((1 << 18,), "fp32")
    e = total.explain(x, out, 100, BLOCK=128, num_warps=1, target="cuda:90", grid=(1 << 18,))
    machine = machine_of("cuda:90")
    each = machine.block_start / machine.multiprocessors / machine.clock / 1000
    assert e.time.resources["starting blocks"] == pytest.approx(each * (1 << 18) / PROGRAMS, rel=1e-3)
    assert any(remark.kind == "programs in turn" for remark in e.remarks)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedGPU]:
    monkeypatch.setattr(prepared, "AFTER", 1)
    yield from pretend(monkeypatch)


@pytest.mark.parametrize(
    ("grid", "blocks"),
    (((5,), 5), ((2000,), 1056), ((4229,), 1058), ((1056 * PROGRAMS + 1, 1, 1), 1057), ((4000, 7, 2), 1000)),
)
def test_what_launches_start(gpu: PretendedGPU, grid: tuple[int, ...], blocks: int) -> None:
    """As many blocks as run at a time, or as have four programs each: by Python, by native code, frozen."""
    x, out = Tensor(1 << 40), Tensor(1 << 41)
    gpu.parameters = 4
    kernel = weft.jit(total.fn)  # that has not been launched
    for _ in range(6):
        kernel[grid](x, out, 64, BLOCK=64, num_warps=1)
        assert gpu.launched[-1].grid == (blocks, *(*grid, 1, 1)[1:3])
        assert gpu.launched[-1].values("QQqq") == (1 << 40, 1 << 41, 64, grid[0])
    assert gpu.native or not prepared.supported()
    kernel.bind(x, out, 64, BLOCK=64, num_warps=1, grid=grid)()
    assert gpu.launched[-1].grid == (blocks, *(*grid, 1, 1)[1:3])
    assert gpu.launched[-1].values("QQqq") == (1 << 40, 1 << 41, 64, grid[0])


def test_each_gpu_starts_as_many_as_it_runs(gpu: PretendedGPU) -> None:
    """Whichever is the thread's: GPU 1 runs twice as many blocks at a time."""
    gpu.count = 2
    gpu.parameters = 4
    kernel = weft.jit(total.fn)
    for device in (0, 1):
        x, out = (Tensor(address << device, device=device) for address in (1 << 40, 1 << 41))
        gpu.addresses |= {x.data_ptr(): device, out.data_ptr(): device}
        for _ in range(6):
            kernel[(3000,)](x, out, 64, BLOCK=64, num_warps=1)
            assert gpu.launched[-1].gpu == device
            assert gpu.launched[-1].grid == (1056 * (1 + device), 1, 1)
        kernel.bind(x, out, 64, BLOCK=64, num_warps=1, grid=(3000,))()
        assert gpu.launched[-1].grid == (1056 * (1 + device), 1, 1)
