"""Loops that are known to have one iteration are none: nothing is copied ahead for them, and right operands may be
transposed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import weft
import weft.language as tl
from weft.compiler import ASTSource, GPUTarget
from weft.compiler.options import make_options
from weft.ir import verify
from weft.ir.gpu import MemDescType
from weft.machines import machine_of
from weft.passes import tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline


@weft.jit
def stream(x, w, out, DEPTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]  # fmt: skip
    """A block of rows of a product whose sums are cut into blocks, of which there may be one only."""
    n = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, COLUMNS)
    acc = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in tl.range(0, DEPTH, BLOCK, num_stages=2):
        d = start + tl.arange(0, BLOCK)
        left = tl.load(x + n[:, None] * DEPTH + d[None, :], mask=d[None, :] < DEPTH, other=0.0)
        right = tl.load(w + d[:, None] * COLUMNS + k[None, :], mask=d[:, None] < DEPTH, other=0.0)
        acc += tl.dot(left, right, input_precision="tf32")
    tl.store(out + n[:, None] * COLUMNS + k[None, :], acc)


def laid_out(**constants: int) -> ModuleOp:
    signature: dict[str, Any] = dict.fromkeys(("x", "w", "out"), "*fp32") | dict.fromkeys(constants, "constexpr")
    divisible: dict[tuple[int, ...], list[list[Any]]] = {(i,): [["tt.divisibility", 16]] for i in range(3)}
    source = ASTSource(stream, signature, constants, divisible)
    tiles = source.make_ir(make_options({"num_warps": 4}).language, GPUTarget("cuda", 90, 32))
    module = gpu_pipeline(tile_pipeline(tiles), machine_of("cuda:90"), 4, 3)
    verify(module, "layout")
    return module


def count(module: ModuleOp, name: str) -> int:
    return sum(op.name == name for op in module.walk())


def buffered(module: ModuleOp) -> int:
    """How many tiles have several buffers."""
    made = [op.results[0].type for op in module.walk() if op.name == "ttg.local_alloc"]
    return sum(isinstance(type, MemDescType) and len(type.shape) == 3 for type in made)


def test_one_iteration() -> None:
    module = laid_out(DEPTH=32, ROWS=128, BLOCK=64, COLUMNS=32)
    assert not count(module, "scf.for") and not buffered(module)
    assert count(module, "ttng.warp_group_dot") == 1 and not count(module, "tt.dot")


def test_two_iterations() -> None:
    module = laid_out(DEPTH=96, ROWS=128, BLOCK=64, COLUMNS=32)
    assert count(module, "scf.for") == 1 and buffered(module) == 2
    assert count(module, "tt.dot") == 1 and not count(module, "ttng.warp_group_dot")


@pytest.mark.parametrize("depth", [32, 96])
def test_both_compute_the_same(depth: int) -> None:
    rng = np.random.default_rng(depth)
    x, w = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((128, depth), (depth, 32)))
    out = np.zeros((128, 32), np.float32)
    stream[(2,)](x, w, out, DEPTH=depth, ROWS=64, BLOCK=64, COLUMNS=32, target="sim:cuda:90")
    assert np.array_equal(out, x @ w)
