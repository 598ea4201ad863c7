"""Products by wgmma that go on into the next iteration: which, who waits for them, and that they compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import weft
import weft.language as tl
from weft.compiler import ASTSource, GPUTarget
from weft.compiler.stages import make_options
from weft.ir import int_value, verify
from weft.ir.nvidia.ttng import WarpGroupDotWaitOp
from weft.lower import lower
from weft.machines import machine_of
from weft.passes import tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline
from weft.sim import Options, run

HEAD, BLOCK = 64, 64
pytestmark = pytest.mark.usefixtures("copies_by_threads")


@weft.jit
def walk(acc, total, top, q, k_ptr, v_ptr, m, first, last, HEAD: tl.constexpr, BLOCK: tl.constexpr, MASKED: tl.constexpr):  # type: ignore[no-untyped-def]  # fmt: skip  # noqa: E501
    d = tl.arange(0, HEAD)
    for start in range(first, last, BLOCK):
        n = start + tl.arange(0, BLOCK)
        scores = tl.dot(q, tl.load(k_ptr + n[None, :] * HEAD + d[:, None]))
        if MASKED:
            scores = tl.where(m[:, None] >= n[None, :], scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        v = tl.load(v_ptr + n[:, None] * HEAD + d[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        total = total * shrink + tl.sum(p, 1)
        top = new_top
    return acc, total, top


@weft.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, HEAD: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Causal: blocks before the diagonal, then the one on it."""
    first = tl.program_id(0) * BLOCK
    m = first + tl.arange(0, BLOCK)
    here = m[:, None] * HEAD + tl.arange(0, HEAD)[None, :]
    q = tl.load(q_ptr + here)
    top = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    acc = tl.zeros([BLOCK, HEAD], tl.float32)
    acc, total, top = walk(acc, total, top, q, k_ptr, v_ptr, m, 0, first, HEAD, BLOCK, False)
    acc, total, top = walk(acc, total, top, q, k_ptr, v_ptr, m, first, first + BLOCK, HEAD, BLOCK, True)
    tl.store(out_ptr + here, acc / total[:, None])


@weft.jit
def product(q_ptr, k_ptr, v_ptr, out_ptr, HEAD: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """A sum of products of blocks of rows of q and of v."""
    m, d = tl.arange(0, BLOCK), tl.arange(0, HEAD)
    acc = tl.zeros([BLOCK, HEAD], tl.float32)
    for i in range(4):
        left = tl.load(q_ptr + i * BLOCK * HEAD + m[:, None] * HEAD + d[None, :])
        acc = tl.dot(left, tl.load(v_ptr + i * HEAD * HEAD + d[:, None] * HEAD + d[None, :]), acc)
    tl.store(out_ptr + m[:, None] * HEAD + d[None, :], acc)


@weft.jit
def large_product(q_ptr, k_ptr, v_ptr, out_ptr, HEAD: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # fmt: skip
    """The same of 128 rows by 256 columns, and of every number of iterations: one block has all of the memory."""
    iterations = tl.program_id(0)
    m, n, d = tl.arange(0, 128), tl.arange(0, 256), tl.arange(0, HEAD)
    acc = tl.zeros([128, 256], tl.float32)
    for i in range(iterations):
        left = tl.load(q_ptr + (i * 128 + m)[:, None] * HEAD + d[None, :])
        acc = tl.dot(left, tl.load(v_ptr + (i * HEAD + d)[:, None] * 256 + n[None, :]), acc)
    tl.store(out_ptr + (iterations * 128 + m)[:, None] * 256 + n[None, :], acc)


def laid_out(kernel: Any, stages: int = 3, warps: int = 4) -> ModuleOp:
    signature = dict.fromkeys(("q_ptr", "k_ptr", "v_ptr"), "*fp16") | {"out_ptr": "*fp32"}
    signature |= dict.fromkeys(("HEAD", "BLOCK"), "constexpr")
    divisible: dict[tuple[int, ...], list[list[Any]]] = {(i,): [["tt.divisibility", 16]] for i in range(4)}
    source = ASTSource(kernel, signature, {"HEAD": HEAD, "BLOCK": BLOCK}, divisible)
    tiles = source.make_ir(make_options({"num_warps": warps}).language, GPUTarget("cuda", 90, 32))
    module = gpu_pipeline(tile_pipeline(tiles), machine_of("cuda:90"), warps, stages)
    verify(module, "layout")
    return module


def loops(module: ModuleOp) -> list[list[Operation]]:
    """The products, waits and copies of each loop, in order."""
    wanted = ("ttng.", "ttg.async_commit_group", "ttg.async_wait")
    found = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    return [[x for x in op.body.block.ops if x.name.startswith(wanted)] for op in found]


def names(ops: list[Operation]) -> list[str]:
    return [op.name.partition(".")[2] for op in ops]


LANDED = ["async_wait", "fence_async_shared"]


def test_a_sum_of_products() -> None:
    """One barrier in an iteration: the product before is over for all warps, and the next copies have landed."""
    module = laid_out(product, stages=4)
    (ops,) = loops(module)
    assert names(ops) == ["warp_group_dot", "warp_group_dot_wait", *LANDED, "async_commit_group"]
    assert "isAsync" in ops[0].properties
    assert int_value(ops[1].properties["pendings"]) == 1 and int_value(ops[2].properties["num"]) == 1
    body = next(op for op in lower(module).body.walk() if op.name == "for").regions[0]
    assert sum(op.name == "barrier" for op in body.ops) == 1


@pytest.mark.parametrize("stages", [2, 3])
def test_a_sum_of_products_in_few_stages(stages: int) -> None:
    """Copies of the next iteration have no time to arrive if they are awaited in this one."""
    (ops,) = loops(laid_out(product, stages))
    assert names(ops) == [*LANDED, "warp_group_dot", "warp_group_dot_wait", "async_commit_group"]


def test_two_iterations_where_a_buffer_more_costs_no_block() -> None:
    """Those of two iterations ago are awaited before the barrier that there is anyway: none is needed behind the
    product.
    """
    module = laid_out(large_product, warps=8)
    (ops,) = loops(module)
    assert names(ops) == ["warp_group_dot_wait", *LANDED, "warp_group_dot", "async_commit_group"]
    assert int_value(ops[0].properties["pendings"]) == 1 and int_value(ops[1].properties["num"]) == 1
    program = lower(module)
    assert sorted(x.bytes for x in program.shared if x.what == "local_alloc") == [4 * 16384, 4 * 32768]
    body = next(op for op in program.body.walk() if op.name == "for").regions[0]
    assert sum(op.name == "barrier" for op in body.ops) == 1
    (ops,) = loops(laid_out(large_product, stages=4, warps=8))  # for which there is no room
    assert names(ops) == ["warp_group_dot", "warp_group_dot_wait", *LANDED, "async_commit_group"]


@pytest.mark.parametrize("copies", ["earliest", "latest"])
def test_two_iterations_compute_the_same(copies: str) -> None:
    rng = np.random.default_rng(0)
    q, v = (rng.standard_normal((6 * n, k)).astype(np.float16) for n, k in ((128, HEAD), (HEAD, 256)))
    out = np.zeros((7 * 128, 256), np.float32)
    program = lower(laid_out(large_product, warps=8))
    run(program, 7, {"q_ptr": q, "k_ptr": q, "v_ptr": v, "out_ptr": out}, Options(copies=copies))
    each = q.reshape(6, 128, HEAD).astype(np.float32) @ v.reshape(6, HEAD, 256).astype(np.float32)
    sums = np.concatenate([np.zeros((1, 128, 256)), each.cumsum(0)])
    np.testing.assert_allclose(out.reshape(7, 128, 256), sums, atol=2e-3, rtol=1e-3)


def test_the_last_of_two() -> None:
    found = loops(laid_out(attention))
    assert len(found) == 2
    for ops in found:
        products = ["warp_group_dot", "warp_group_dot_wait", "async_commit_group", "warp_group_dot"]
        assert names(ops) == [*LANDED, *products]
        first, wait, last = ops[2], ops[3], ops[5]
        assert isinstance(wait, WarpGroupDotWaitOp) and int_value(wait.pendings) == 0
        assert wait.inputs[0] is first.results[0]  # and the result of the last one, which the loop carries
        (use,) = last.results[0].uses
        loop = last.parent_op()
        assert isinstance(loop, scf.ForOp) and wait.inputs[1] is loop.body.block.args[use.index + 1]


def test_loops_one_after_the_other_share_memory() -> None:
    """Neither copies nor products of the first are under way when the second begins."""
    program = lower(laid_out(attention))
    both, *sizes = sorted(x.bytes for x in program.shared if x.what == "local_alloc")  # the first is read in both
    assert program.shared_bytes == both + sum(sizes) // 2


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.thinned(3)
def test_attention(warps: int, stages: int) -> None:
    rng = np.random.default_rng(stages)
    rows = 4 * BLOCK
    q, k, v = (rng.standard_normal((rows, HEAD)).astype(np.float16) for _ in range(3))
    q = (q / 4).astype(np.float16)
    out = np.zeros((rows, HEAD), np.float32)
    run(lower(laid_out(attention, stages, warps)), 4, {"q_ptr": q, "k_ptr": k, "v_ptr": v, "out_ptr": out})
    scores = np.where(np.tri(rows, dtype=bool), q.astype(float) @ k.astype(float).T, -np.inf)
    p = np.exp2(scores - scores.max(-1, keepdims=True))
    wanted = p / p.sum(-1, keepdims=True) @ v.astype(float)
    assert np.abs(out - wanted).max() < 5e-3
