"""Barriers and fences of the compiler: each that is taken out is missed; and counts without a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from weft.ir.lane import Block, LaneOp, LaneProgram
from weft.sim import Options, SimulationError, count

from .running import Described, aligned, flattened, integers, launch, program_of, read

TILE = (64, 64)


def arguments(name: str, depth: int = 320) -> tuple[Any, dict[str, Any]]:
    """A grid, and what the kernel takes, enough for its loops to iteration several times."""
    f16 = {n: Described(integers(i, (128, depth), np.float16), TILE) for i, n in enumerate("ab")}
    if name == "specialized_matmul":
        c = Described(aligned((128, 128), np.float16), TILE)
        return 1, {**f16, "c": c, "tiles": 3, "tiles_n": 2, "K": depth}
    if name == "results_of_partitions":
        return 1, {"z": aligned((128,), np.int32), "n": 3}
    if name == "faulty_copy_none":
        x, y = integers(0, TILE, np.float16), aligned(TILE, np.float16)
        return 1, {"x": Described(x, TILE), "y": Described(y, TILE)}
    if name == "triton_matmul_of_made_descriptors":
        a, b, c16 = (aligned(shape, np.float16) for shape in ((64, depth), (depth, 128), (64, 128)))
        return 1, {"a": a, "b": b, "c": c16, "M": 64, "N": 128, "K": depth}
    dtype = np.float16 if name.startswith("triton") else np.float32
    return (1, 1), {**f16, "c": Described(aligned((64, 64), dtype), TILE), "K": depth}


KERNELS = (
    "specialized_matmul",
    "results_of_partitions",
    "faulty_copy_none",
    "triton_matmul_of_made_descriptors",
    "triton_matmul_of_descriptors",
    "triton_specialized",
    "matmul_f16_64x64x64_nt",
    "matmul_a_from_registers",
    "two_products_under_way",
)


def inserted(block: Block) -> Iterator[tuple[Block, LaneOp]]:
    """Barriers of the block that the compiler put there, and fences, with the blocks that they are in."""
    for op in block.ops:
        if op.name in ("barrier", "fence") and op.attrs.get("inserted") and op.attrs.get("scope") != "warp":
            yield block, op
        for region in op.regions:
            yield from inserted(region)


def is_missed(program: LaneProgram, name: str) -> bool:
    """Whether something is found: with one number of iterations or another, for stages that buffers have go round."""
    for depth in (320, 256, 192):
        grid, values = arguments(name, depth)
        try:
            launch(program, grid, values)
        except SimulationError:
            return True
    return False


@pytest.mark.parametrize("name", KERNELS)
def test_every_barrier_and_fence_is_needed(name: str) -> None:
    program = program_of(read(name), f"{name}.ttgir")
    for block, op in list(inserted(program.body)):
        index = next(i for i, other in enumerate(block.ops) if other is op)
        del block.ops[index]
        try:
            assert is_missed(program, name), f"{op.span}: nothing is found without `{op.name}`"
        finally:
            block.ops.insert(index, op)


@pytest.mark.parametrize("name", KERNELS)
def test_counts_without_a_run(name: str) -> None:
    """What the counter says is what a run has counted."""
    program = program_of(read(name), f"{name}.ttgir")
    grid, values = arguments(name)
    scalars = {n: v for n, v in flattened(program, values).items() if isinstance(v, int)}
    counted = count(program, grid, scalars)
    ran = launch(program, grid, values, Options())
    assert counted.kinds == ran.kinds
    assert {k: v for k, v in counted.total.items() if v} == {k: v for k, v in ran.total.items() if v}
