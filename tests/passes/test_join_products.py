"""Products by wgmma that begin together: which, what is stored before them, and that they compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import weft
import weft.language as tl
from weft.compiler import ASTSource, GPUTarget
from weft.compiler.options import make_options
from weft.ir import int_value, verify
from weft.machines import machine_of
from weft.passes import tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline

SIDE = 64


@weft.jit
def split(x, y, out, STEPS: tl.constexpr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    """Products of numbers cut into two halves of eight bits: high by high, and the two mixed ones added up."""
    m, n = tl.arange(0, N), tl.arange(0, N)
    main, rest = tl.zeros((N, N), tl.float32), tl.zeros((N, N), tl.float32)
    for i in range(STEPS):
        k = i * N + tl.arange(0, N)
        left = tl.load(x + m[:, None] * (STEPS * N) + k[None, :])
        right = tl.load(y + k[:, None] * N + n[None, :])
        high_left, high_right = left.to(tl.bfloat16), right.to(tl.bfloat16)
        main = tl.dot(high_left, high_right, main)
        low_right = (right - high_right.to(tl.float32)).to(tl.bfloat16)
        rest = tl.dot(high_left, low_right, rest)
        low_left = (left - high_left.to(tl.float32)).to(tl.bfloat16)
        rest = tl.dot(low_left, high_right, rest)
    tl.store(out + m[:, None] * N + n[None, :], main + rest)


@weft.jit
def chained(x, y, out, STEPS: tl.constexpr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    """One after the other: the second takes what the first gives, and so does the sum."""
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    left, right = tl.load(x + at).to(tl.bfloat16), tl.load(y + at).to(tl.bfloat16)
    first = tl.dot(left, right)
    second = tl.dot(first.to(tl.bfloat16), right)
    tl.store(out + at, tl.dot(right, left, second) + second)


@weft.jit
def wide(x, y, out, STEPS: tl.constexpr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    """Two products with operands of their own."""
    m, n, k = tl.arange(0, 64), tl.arange(0, 64), tl.arange(0, N)
    left, right = tl.load(x + m[:, None] * N + k[None, :]), tl.load(y + k[:, None] * 64 + n[None, :])
    both = tl.dot(left.to(tl.bfloat16), right.to(tl.bfloat16))
    both += tl.dot((left + 1).to(tl.bfloat16), (right + 1).to(tl.bfloat16))
    tl.store(out + m[:, None] * 64 + n[None, :], both)


def laid_out(kernel: Any, **constants: int) -> ModuleOp:
    signature: dict[str, Any] = dict.fromkeys(("x", "y", "out"), "*fp32") | dict.fromkeys(constants, "constexpr")
    divisible: dict[tuple[int, ...], list[list[Any]]] = {(i,): [["tt.divisibility", 16]] for i in range(3)}
    source = ASTSource(kernel, signature, constants, divisible)
    tiles = source.make_ir(make_options({"num_warps": 4}).language, GPUTarget("cuda", 90, 32))
    module = gpu_pipeline(tile_pipeline(tiles), machine_of("cuda:90"), 4, 3)
    verify(module, "layout")
    return module


def order(module: ModuleOp) -> list[str]:
    """What is stored for products, fenced, begun and awaited, in the order of the text."""
    names = {"ttg.local_alloc": "store", "ttng.fence_async_shared": "fence", "ttng.warp_group_dot_wait": "wait"}
    found = []
    for op in module.walk():
        if op.name == "ttng.warp_group_dot":
            goes_on = "isAsync" in op.properties and int_value(op.properties["isAsync"])
            found.append("begin" if goes_on else "product")
        elif op.name in names and (op.name != "ttg.local_alloc" or op.operands):
            found.append(names[op.name])
    return found


def test_three_begin_together() -> None:
    assert order(laid_out(split, STEPS=4, N=SIDE)) == [*["store"] * 4, "fence", *["begin"] * 3, "wait"]


def test_what_needs_a_result_waits_for_it() -> None:
    """And a result that others use too is added to once it is there."""
    assert "begin" not in order(laid_out(chained, STEPS=1, N=SIDE))


def test_memory_for_another_block() -> None:
    assert "begin" in order(laid_out(wide, STEPS=1, N=64))
    assert "begin" not in order(laid_out(wide, STEPS=1, N=512))


@pytest.mark.parametrize(("kernel", "steps"), [(split, 3), (chained, 1)])
def test_they_compute_the_same(kernel: Any, steps: int) -> None:
    rng = np.random.default_rng(steps)
    most = 2000 if kernel is split else 3  # of eleven bits: both halves are of bfloat16
    x, y = (rng.integers(-most, most + 1, s).astype(np.float32) for s in ((SIDE, steps * SIDE), (steps * SIDE, SIDE)))
    out = np.zeros((SIDE, SIDE), np.float32)
    kernel[(1,)](x, y, out, STEPS=steps, N=SIDE, target="sim:cuda:90")
    if kernel is chained:
        second = (x @ y) @ y  # sums of less than 256 would be exact; what is not is rounded to bfloat16
        assert np.abs(out - (y @ x + 2 * second)).max() <= 2.0**-7 * 2 * (np.abs(x @ y) @ np.abs(y)).max()
    else:
        assert np.allclose(out, x.astype(np.float64) @ y, rtol=1e-4, atol=2.0**-15 * (np.abs(x) @ np.abs(y)).max())


@weft.jit
def in_parts(x, y, out, N: tl.constexpr, LIMIT: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, N)
    a = tl.load(x + i[:, None] * N + i[None, :])
    b = tl.load(y + i[:, None] + i[None, :] * N)
    first = tl.dot(a, b)
    tl.store(out + i[:, None] * N + i[None, :], tl.dot(a, b, first, max_num_imprecise_acc=LIMIT))


@pytest.mark.parametrize("limit", [0, 32])
def test_what_threads_add_to_is_awaited(limit: int) -> None:
    """Of fp8, in parts: these are added to what the product before it gives, which has to be there."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(limit)
    numbers = [rng.integers(-2, 3, (64, 64)).astype(np.float32) for _ in range(2)]
    x, y = (v.astype(ml_dtypes.float8_e4m3fn) for v in numbers)
    out = np.zeros((64, 64), np.float32)
    in_parts[(1,)](x, y, out, N=64, LIMIT=limit, target="sim:cuda:90")
    np.testing.assert_array_equal(out, 2 * numbers[0] @ numbers[1].T)
