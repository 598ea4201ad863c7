"""Loops by two kinds of warps: right under every schedule, and bit by bit what the loop without them gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

from .running import aligned
from .specialized import (
    SCHEDULES,
    Attention,
    Product,
    described,
    is_specialized,
    product,
    product_by_pointers,
    simulated,
    why_not,
)

scheduled = pytest.mark.parametrize("options", SCHEDULES, ids=lambda o: f"{o.copies}-{o.order}{o.seed}")
slow = pytest.mark.slow


def check_product(case: Product, options: Any = None) -> None:
    found, made = case.run(options=options)
    assert is_specialized(made)
    plain, other = case.run(stages=1)
    assert not is_specialized(other) and why_not(other) == ["num_stages is 1"]
    np.testing.assert_array_equal(found, plain)
    np.testing.assert_allclose(found, case.exact(), atol=1e-2 if case.kind.startswith("fp8") else 1e-4)


def check_attention(case: Attention, options: Any = None, specialized: bool = True, keys: int | None = None) -> None:
    found, sums, made = case.run(options=options, keys=keys)
    assert is_specialized(made) is specialized
    plain, plain_sums, other = case.run(stages=1, keys=keys)
    assert not is_specialized(other)
    np.testing.assert_array_equal(found, plain)
    np.testing.assert_array_equal(sums, plain_sums)
    np.testing.assert_allclose(found, case.exact(keys=keys), atol=0.02)


def test_product() -> None:
    """More iterations than buffers, and what sticks out of the matrices reads 0."""
    check_product(Product(sizes=(64, 40, 200), trans=False), SCHEDULES[2])


def test_attention() -> None:
    check_attention(Attention(n=40, keys=200), SCHEDULES[3])


PRODUCTS = {
    "no step": Product(sizes=(64, 64, 0)),
    "one step": Product(sizes=(64, 64, 64)),
    "two steps": Product(sizes=(64, 64, 128)),
    "many steps": Product(sizes=(128, 128, 1024)),
    "3 stages": Product(sizes=(128, 128, 448), stages=3),
    "4 stages": Product(sizes=(128, 128, 640), stages=4),
    "more stages than steps": Product(sizes=(64, 64, 128), stages=4),
    "right operand as it is": Product(sizes=(128, 128, 320), trans=False),
    "bf16": Product("bf16", (128, 128, 320), stages=3),
    "fp8": Product("fp8", (128, 128, 512), (64, 64, 128), stages=3),
    "fp8, e5": Product("fp8e5", (128, 128, 512), (64, 64, 128)),
    "8 warps": Product("bf16", (256, 128, 320), (128, 128, 64), warps=8, stages=3),
    "8 warps, right as it is": Product("f16", (256, 128, 320), (128, 128, 64), trans=False, warps=8, stages=3),
    "short swizzle": Product("f16", (128, 128, 160), (64, 64, 32)),
    "sticks out": Product("f16", (100, 72, 200), trans=False, stages=3),
    "sticks out, transposed": Product("bf16", (100, 72, 200), stages=3),
}


@slow
@pytest.mark.parametrize("case", PRODUCTS.values(), ids=PRODUCTS)
def test_products(case: Product) -> None:
    if case.sizes[2] == 0:  # memory of no bytes has no descriptor: the loop ends before the matrices do
        found, made = zero_steps()
        assert is_specialized(made) and not found.any()
        return
    check_product(case)


def zero_steps() -> tuple[np.ndarray, Any]:
    a, b = Product(sizes=(64, 64, 64)).operands()
    c = aligned((64, 64), np.float32)
    c[...] = 7
    sides = described(a, (64, 64)), described(b, (64, 64))
    made = simulated(product, (1, 1), *sides, c, 64, 0, BM=64, BN=64, BK=64, TRANS=True, WS=True, num_stages=2)
    return c, made


@slow
@scheduled
@pytest.mark.parametrize("stages", [2, 3])
def test_products_under_schedules(stages: int, options: Any) -> None:
    check_product(Product(sizes=(128, 64, 448), stages=stages), options)


@slow
@pytest.mark.parametrize("kind", ["f16", "bf16", "fp8"])
def test_products_by_pointers_have_the_same_bits(kind: str) -> None:
    bk = 128 if kind == "fp8" else 64
    case = Product(kind, (128, 128, 4 * bk), (64, 64, bk), stages=3)
    found, made = case.run()
    a, b = case.operands()
    c = aligned((128, 128), np.float32)
    by = {"BM": 64, "BN": 64, "BK": bk, "TRANS": True}
    other = simulated(product_by_pointers, (2, 2), a, b, c, 128, 4 * bk, **by, num_warps=4, num_stages=3)
    assert is_specialized(made) and not is_specialized(other)
    np.testing.assert_array_equal(found, c)


ATTENTIONS = {
    "head 64, 2 stages": Attention(n=320),
    "head 64, 3 stages": Attention(n=320, stages=3),
    "head 128, 2 stages": Attention(n=256, head=128),
    "head 128, 3 stages": Attention(n=256, head=128, stages=3),
    "causal, head 64": Attention(n=256, causal=True),
    "causal, head 128, 3 stages": Attention(n=256, head=128, causal=True, stages=3),
    "200 rows": Attention(n=200, head=128),
    "200 rows, causal": Attention(n=200, causal=True, stages=3),
    "one block of keys": Attention(n=64, keys=64),
    "half a block of keys": Attention(n=64, keys=24),
    "two blocks of keys": Attention(n=64, keys=128, stages=3),
    "many blocks of keys": Attention(n=64, keys=712),
    "f16": Attention(n=200, kind="f16"),
    "heads": Attention(n=136, heads=3),
    "8 warps asked": Attention(n=256, block=(128, 64), warps=8),
    "blocks of 128 keys": Attention(n=256, block=(64, 128), stages=3),
}


@slow
@pytest.mark.parametrize("case", ATTENTIONS.values(), ids=ATTENTIONS)
def test_attentions(case: Attention) -> None:
    check_attention(case)


@slow
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("keys", [256, 200])
def test_eight_warps_do_it_unasked(causal: bool, keys: int) -> None:
    """Where the tiles of two blocks have no room in the registers; else nothing is done."""
    case = Attention(n=keys, head=128, block=(128, 128), warps=8, causal=causal, asked=False)
    check_attention(case)
    check_attention(replace(case, head=64, block=(128, 32)), specialized=False)


@slow
@pytest.mark.parametrize("keys", [0, 2, 64, 65])
def test_keys_that_are_not_looked_at(keys: int) -> None:
    """A loop of no iterations gives what it was given."""
    check_attention(Attention(n=64, keys=320), keys=keys)


@slow
@scheduled
@pytest.mark.parametrize("causal", [False, True])
def test_attentions_under_schedules(causal: bool, options: Any) -> None:
    check_attention(Attention(n=264, causal=causal, stages=2), options)
    check_attention(Attention(n=264, causal=causal, stages=3), options)


@slow
def test_what_is_stored_behind_a_loop_shares_its_buffers() -> None:
    """Was too much shared memory: the buffers were taken to be in use until the kernel ends."""
    a, b = (described(aligned((256, 256), np.float16), block) for block in ((128, 64), (256, 64)))
    given = (a, b, aligned((256, 256), np.float32), 256, 256)
    more = {"BM": 128, "BN": 256, "BK": 64, "TRANS": True, "WS": True, "num_warps": 8, "num_stages": 4}
    made = product.warmup(*given, **more, grid=(2, 1), target="sim:cuda:90")
    buffers = 4 * (128 + 256) * 64 * 2
    assert is_specialized(made) and buffers <= made.shared_bytes < buffers + 1024


# -- what the producer computes for itself ----------------------------------------------------------------------------


@weft.jit
def rows_by_arithmetic(a, b, c, group, k, WS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The row of an operand is computed in the loop, of the counter and of an argument."""
    acc = tl.zeros((64, 64), tl.float32)
    for at in tl.range(0, k, 64, warp_specialize=WS):
        acc = tl.dot(a.load([group // 2 * 64, at]), b.load([min(at // 128, 1) * 64, at]).T, acc)
    i = tl.arange(0, 64)
    tl.store(c + i[:, None] * 64 + i[None, :], acc)


@weft.jit
def rows_carried(a, b, c, group, k, WS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The row of an operand is carried by the loop, and does not move by a number."""
    acc = tl.zeros((64, 64), tl.float32)
    row = 0
    for at in tl.range(0, k, 64, warp_specialize=WS):
        acc = tl.dot(a.load([group // 2 * 64, at]), b.load([row, at]).T, acc)
        row = 64 if at >= 64 else 0
    i = tl.arange(0, 64)
    tl.store(c + i[:, None] * 64 + i[None, :], acc)


@pytest.mark.parametrize("kernel", [rows_by_arithmetic, rows_carried], ids=lambda k: k.__name__)
def test_rows_that_the_loop_computes(kernel: Any) -> None:
    """Was a KeyError of the lowering: the producer was to be given what its loop computes."""
    a, b = Product(sizes=(128, 128, 256)).operands()
    c = aligned((64, 64), np.float32)
    sides = described(a, (64, 64)), described(b, (64, 64))
    made = simulated(kernel, (1,), *sides, c, 3, 256, WS=True, num_stages=2)
    x, y = a.astype(np.float32)[64:], b.astype(np.float32)
    exact = x[:, :128] @ y[:64, :128].T + x[:, 128:] @ y[64:, 128:].T
    np.testing.assert_allclose(c, exact, atol=1e-3)
    assert is_specialized(made) == (kernel is rows_by_arithmetic)
    if kernel is rows_carried:
        assert why_not(made) == ["the addresses of an operand depend on values that the loop loads or carries"]


@weft.jit
def stored_then_loaded(a, b, c, n, k, BM: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    b.store([0, 0], tl.full((BK, BM), 1.0, tl.float16))
    acc = tl.zeros((BM, BM), tl.float32)
    for at in tl.range(0, k, BK, warp_specialize=True):
        acc = tl.dot(a.load([0, at]), b.load([at, 0]), acc)
    rows = tl.arange(0, BM)
    tl.store(c + rows[:, None] * n + rows[None, :], acc)


def test_what_the_kernel_has_stored_is_loaded_by_its_threads() -> None:
    """The copy engine need not see what threads have stored to global memory, without a fence of its proxy."""
    a, b, c = aligned((64, 128), np.float16), aligned((128, 64), np.float16), aligned((64, 64), np.float32)
    a[:], b[:] = 1, 0
    made = simulated(stored_then_loaded, (1,), described(a, (64, 64)), described(b, (64, 64)), c, 64, 128, BM=64, BK=64)
    assert not is_specialized(made) and "stores to memory that the loop loads" in why_not(made)[0]
    np.testing.assert_array_equal(c, np.full((64, 64), 64, np.float32))
