"""Barriers of the compiler: each that is taken out makes a race that the simulator finds."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from kernels.simulated import NAMES, Simulated, simulated
from weft.base import WeftError
from weft.ir.lane import Block, Builder, LaneOp, Value
from weft.sim import Options, RaceError, UninitializedError, last_run


def inserted(block: Block) -> Iterator[tuple[Block, LaneOp]]:
    """All barriers that the compiler put there for shared memory, with the blocks they are in."""
    for op in block.ops:
        if op.name == "barrier" and op.attrs["inserted"] and op.attrs.get("of") != "global":
            yield block, op
        for region in op.regions:
            yield from inserted(region)


def peeled(op: LaneOp, block: Block, iterations: int) -> tuple[Value, ...]:
    """Iterations of a `while` that do not ask its condition, at the end of a block; what the next one begins with."""

    def assign(arguments: tuple[Value, ...], values: tuple[Value, ...]) -> None:
        between = [Value(v.elem, v.count) for v in values]
        for to, source in (*zip(between, values, strict=True), *zip(arguments, between, strict=True)):
            block.ops.append(LaneOp("rename", (source,), (to,), {"table": tuple(range(source.count))}))

    before, after = op.regions
    values = op.operands
    for _ in range(iterations):
        assign(before.arguments, values)
        block.ops += before.ops[:-1]
        assign(after.arguments, before.ops[-1].operands[1:])
        block.ops += after.ops[:-1]
        values = after.ops[-1].operands
    return values


@contextmanager
def loops_of(iterations: int, block: Block) -> Iterator[None]:
    """All loops go round so often (a `while` at least), whatever the data say: what comes round meets what was."""
    before, operands = list(block.ops), {op: op.operands for op in block.ops}
    block.ops.clear()
    for op in before:
        if op.name == "for":
            lower, _, step = op.operands[:3]
            build = Builder(block)
            all_of_them = build.op("arith.muli", [step, build.constant(step.elem, iterations)], step.elem)
            op.operands = (lower, build.op("arith.addi", [lower, all_of_them], lower.elem), step, *op.operands[3:])
        if op.name == "while":
            op.operands = peeled(op, block, iterations - 1)
        block.ops.append(op)
    inner = [loops_of(iterations, region) for op in before for region in op.regions]
    for manager in inner:
        manager.__enter__()
    try:
        yield
    finally:
        for manager in inner:
            manager.__exit__(None, None, None)
        block.ops[:] = before
        for op in before:
            op.operands = operands[op]


def is_caught(kernel: Simulated) -> bool:
    """Whether there is a race, or something is read before it is written: with the case's data, or if loops go on."""
    try:
        kernel.run()
    except (RaceError, UninitializedError):
        return True
    for iterations in (3, 2, 4):
        with loops_of(iterations, kernel.program.body), suppress(WeftError):  # a loop may wait for what never comes now
            kernel.run(Options(bounds=False, uninitialized=False, raise_first=False, steps=3000))
        if any(isinstance(e, RaceError) for e in last_run().errors):
            return True
    return False


def check_needed(kernel: Simulated, block: Block, op: LaneOp) -> None:
    """The barrier is missed if it is not there."""
    index = next(i for i, other in enumerate(block.ops) if other is op)
    del block.ops[index]
    try:
        assert is_caught(kernel), f"{op.span}: nothing is found without the barrier"
    finally:
        block.ops.insert(index, op)


def kernel_with_barriers(name: str) -> tuple[Simulated, list[tuple[Block, LaneOp]]]:
    kernel = simulated(name)
    if kernel is None:
        pytest.skip("it has no lowering")
    barriers = list(inserted(kernel.program.body))
    if not barriers:
        pytest.skip("it has no barriers")
    return kernel, barriers


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(3)
def test_one_barrier_is_needed(name: str) -> None:
    kernel, barriers = kernel_with_barriers(name)
    check_needed(kernel, *barriers[zlib.crc32(name.encode()) % len(barriers)])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_barrier_is_needed(name: str) -> None:
    kernel, barriers = kernel_with_barriers(name)
    for block, op in barriers:
        check_needed(kernel, block, op)


@pytest.mark.slow
def test_there_are_enough() -> None:
    kernels = [k for name in NAMES if (k := simulated(name)) is not None]
    assert sum(any(True for _ in inserted(k.program.body)) for k in kernels) >= 50
