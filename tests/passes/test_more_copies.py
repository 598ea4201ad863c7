"""Loops whose loads are copied ahead though pages are looked up in them, they store, or only a hint says how wide."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def paged(Q, K, V, TABLE, OUT, n, G: tl.constexpr, HEAD: tl.constexpr, PAGE: tl.constexpr):
    g, d, t = tl.arange(0, G), tl.arange(0, HEAD), tl.arange(0, PAGE)
    q = tl.load(Q + g[:, None] * HEAD + d[None, :])
    acc = tl.zeros((G, HEAD), tl.float32)
    for p in range(tl.cdiv(n, PAGE)):
        base = tl.load(TABLE + p).to(tl.int64) * PAGE * HEAD
        scores = tl.dot(q, tl.load(K + base + t[None, :] * HEAD + d[:, None]))
        scores = tl.where((p * PAGE + t)[None, :] < n, scores, 0.0)
        acc = tl.dot(scores.to(q.dtype), tl.load(V + base + t[:, None] * HEAD + d[None, :]), acc)
    tl.store(OUT + g[:, None] * HEAD + d[None, :], acc)


@weft.jit
def slotted(Q, K, SLOTS, OUT, n, G: tl.constexpr, HEAD: tl.constexpr, BN: tl.constexpr):
    g, d, t = tl.arange(0, G), tl.arange(0, HEAD), tl.arange(0, BN)
    q = tl.load(Q + g[:, None] * HEAD + d[None, :])
    acc = tl.zeros((G, HEAD), tl.float32)
    for s in range(0, n, BN):
        slot = tl.load(SLOTS + s + t, mask=s + t < n, other=0)
        k = tl.load(K + slot[:, None] * HEAD + d[None, :], mask=(s + t < n)[:, None], other=0.0)
        scores = tl.dot(q, tl.trans(k))
        acc = tl.dot(scores.to(q.dtype), k, acc)
    tl.store(OUT + g[:, None] * HEAD + d[None, :], acc)


@weft.jit
def states(K, V, OUT, n, C: tl.constexpr, D: tl.constexpr):
    c, d = tl.arange(0, C), tl.arange(0, D)
    state = tl.zeros((D, D), tl.float32)
    for s in range(0, n, C):
        tl.store(OUT + s // C * D * D + d[:, None] * D + d[None, :], state)
        k = tl.load(K + (s + c)[None, :] * D + d[:, None])
        v = tl.load(V + (s + c)[:, None] * D + d[None, :])
        state = tl.dot(k, v, state)


@weft.jit
def hinted(TABLE, C, K, STRIDE, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    a = tl.load(TABLE).to(tl.pointer_type(tl.float16))
    b = tl.load(TABLE + 1).to(tl.pointer_type(tl.float16))
    stride = tl.load(STRIDE)
    left, right = a + m[:, None] * stride + k[None, :], b + k[:, None] * N + n[None, :]
    acc = tl.zeros((M, N), tl.float32)
    for _ in range(0, K, BK):
        tl.multiple_of(left, [16, 16])
        tl.multiple_of(right, [16, 16])
        acc += tl.dot(tl.load(left), tl.load(right))
        left += BK
        right += BK * N
    tl.store(C + m[:, None] * N + n[None, :], acc)


def numbers(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Small integers in f16."""
    rng = np.random.default_rng(0)
    return [rng.integers(-2, 3, shape).astype(np.float16) for shape in shapes]


def loop_of(kernel: weft.JITFunction, target: str, *args: object, **more: object) -> str:
    """The layout IR of the only loop of a kernel."""
    made = kernel.warmup(*args, grid=(1,), target=target.removeprefix("sim:"), **more)
    return str(made.asm["ttgir"]).partition("scf.for")[2].partition("scf.yield")[0]


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
@pytest.mark.parametrize("n", [5, 16, 64, 77])
def test_pages(target: str, n: int) -> None:
    """The number of the page is loaded an iteration before the copies need it; the last page may be partly used."""
    q, k, v = numbers((16, 64), (8 * 16, 64), (8 * 16, 64))
    table, out = np.random.default_rng(1).permutation(8).astype(np.int32), np.zeros((16, 64), np.float32)
    args, more = (q, k, v, table[: -(-n // 16)].copy(), out, n), {"G": 16, "HEAD": 64, "PAGE": 16}
    paged[(1,)](*args, **more, target=target)
    rows = (table[:, None] * 16 + np.arange(16)).reshape(-1)[:n]
    np.testing.assert_array_equal(out, (q.astype(np.float32) @ k[rows].T) @ v[rows].astype(np.float32))
    loop = loop_of(paged, target, *args, **more)
    assert loop.count("async_copy_global_to_local") == 2
    assert loop.count("tt.load") == 1
    assert loop.index("tt.load") < loop.index("tt.dot") < loop.rindex("tt.dot") < loop.index("async_copy")


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
@pytest.mark.parametrize("n", [3, 32, 100])
def test_rows_looked_up_in_each_iteration(target: str, n: int) -> None:
    q, k = numbers((16, 64), (128, 64))
    slots, out = np.random.default_rng(1).permutation(128)[:n].astype(np.int32), np.zeros((16, 64), np.float32)
    args, more = (q, k, slots, out, n), {"G": 16, "HEAD": 64, "BN": 32}
    slotted[(1,)](*args, **more, target=target)
    np.testing.assert_array_equal(out, (q.astype(np.float32) @ k[slots].T) @ k[slots].astype(np.float32))
    assert "async_copy_global_to_local" in loop_of(slotted, target, *args, **more)


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
def test_a_loop_that_stores_what_it_does_not_load(target: str) -> None:
    k, v = numbers((160, 64), (160, 64))
    out = np.zeros((5, 64, 64), np.float32)
    states[(1,)](k, v, out, 160, C=32, D=64, target=target)
    expected = [k[: 32 * i].astype(np.float32).T @ v[: 32 * i].astype(np.float32) for i in range(5)]
    np.testing.assert_array_equal(out, expected)
    loop = loop_of(states, target, k, v, out, 160, C=32, D=64)
    assert loop.count("copy_global_to_local") == 2, "by threads, or by the copy engine"


@weft.jit
def recurrence(X, n, C: tl.constexpr):
    """Each block of X is the block before it times itself: what the loop loads it has stored."""
    c = tl.arange(0, C)
    at = c[:, None] * C + c[None, :]
    for s in range(n):
        x = tl.load(X + s * C * C + at)
        tl.store(X + (s + 1) * C * C + at, tl.dot(x, x).to(tl.float16))


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
def test_a_loop_that_loads_what_it_stores(target: str) -> None:
    x = np.zeros((5, 64, 64), np.float16)
    x[0] = np.eye(64)[np.random.default_rng(0).permutation(64)]
    expected = x.copy()
    for i in range(4):
        expected[i + 1] = expected[i] @ expected[i]
    assert "async_copy" not in loop_of(recurrence, target, x, 4, C=64)
    recurrence[(1,)](x, 4, C=64, target=target)
    np.testing.assert_array_equal(x, expected)


def test_hints_on_what_a_loop_carries() -> None:
    """Addresses out of memory are multiples of 16 because the loop says so of the pointers that it moves along."""
    table, out = np.zeros(2, np.int64), np.zeros((64, 64), np.float32)
    kernel = hinted.warmup(table, out, 96, np.zeros(1, np.int32), M=64, N=64, BK=32, grid=(1,), target="cuda:90")
    copies = re.findall(r"cp\.async\.c[ag].*", kernel.asm["ptx"])
    assert copies and all("0x10," in c or ", 16" in c for c in copies), copies[:1]


@weft.jit
def whiled(A, B, C, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    at = 0
    while (at < K) & (at >= 0):  # of a loop that only counts all loads are copied ahead
        a = tl.load(A + m[:, None] * K + (at + k)[None, :])
        acc = tl.dot(a, tl.load(B + (at + k)[:, None] * N + n[None, :]), acc)
        at += BK
    tl.store(C + m[:, None] * N + n[None, :], acc)


def test_what_a_while_carries_is_known_to_be_a_multiple() -> None:
    a, b = numbers((64, 96), (96, 64))
    out = np.zeros((64, 64), np.float32)
    kernel = whiled.warmup(a, b, out, 96, M=64, N=64, BK=32, grid=(1,), target="cuda:90")
    loads = re.findall(r"ld\.global\S*", kernel.asm["ptx"])
    assert loads and all("v4" in x for x in loads), loads
    whiled[(1,)](a, b, out, 96, M=64, N=64, BK=32, target="sim:cuda:90")
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


@weft.jit
def past_the_end(A, B, OUT, iterations, BK: tl.constexpr, N: tl.constexpr):
    n, k = tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((N, N), tl.float32)
    for i in range(iterations):
        a = tl.load(A + n[:, None] * BK + k[None, :])
        b = tl.load(B + (i * BK + k)[:, None] * N + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(OUT + n[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize("iterations", [2, 4])  # copied before the loop, and in it
def test_a_copy_is_where_its_load_is(iterations):
    a, b = np.ones((64, 16), np.float16), np.ones((16, 64), np.float16)
    with pytest.raises(weft.sim.OutOfBoundsError, match="of `B`") as caught:
        past_the_end[(1,)](a, b, np.zeros((64, 64), np.float32), iterations, BK=16, N=64, target="sim:cuda:80")
    assert "b = tl.load(B" in str(caught.value)
