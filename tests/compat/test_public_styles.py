"""Kernels in the styles of the public libraries: paged caches, packed weights, sampling, chunked scans, hypercubes.

Each is written for this test and compared with float64. Not here: the libraries themselves
(docs/reference/conformance.md).
"""

from __future__ import annotations

import numpy as np
import pytest

import weft as triton
import weft.language as tl

rng = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def close(got: np.ndarray, want: np.ndarray, tolerance: float = 1e-4) -> None:
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * np.abs(want).max())


# One split of the cache of one request for a group of heads; what it found is merged by a second kernel. The values are
# the first columns of the keys, and a second, narrower part of the keys has a dot of its own.
@triton.jit
def latent_decode(
    q, cache, table, lengths, parts, lses, scale,
    HEADS: tl.constexpr, D: tl.constexpr, ROPE: tl.constexpr, PAGE: tl.constexpr, PAGES: tl.constexpr,
    SPLITS: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    request, split = tl.program_id(0), tl.program_id(1)
    h, d, r = tl.arange(0, HEADS), tl.arange(0, D), D + tl.arange(0, ROPE)
    length = tl.load(lengths + request)
    each = tl.cdiv(length, SPLITS)
    start = each * split
    end = tl.minimum(start + each, length)
    rows = (request * HEADS + h)[:, None] * (D + ROPE)
    q_main, q_rope = tl.load(q + rows + d[None, :]), tl.load(q + rows + r[None, :])
    top = tl.full([HEADS], float("-inf"), tl.float32)
    total = tl.zeros([HEADS], tl.float32)
    acc = tl.zeros([HEADS, D], tl.float32)
    if end > start:
        for first in range(start, end, N):
            n = first + tl.arange(0, N)
            page = tl.load(table + request * PAGES + n // PAGE, mask=n < end, other=0)
            place = (page * PAGE + n % PAGE) * (D + ROPE)
            k = tl.load(cache + place[None, :] + d[:, None], mask=(n < end)[None, :], other=0.0)
            s = tl.dot(q_main, k)
            k_rope = tl.load(cache + place[None, :] + r[:, None], mask=(n < end)[None, :], other=0.0)
            s = (s + tl.dot(q_rope, k_rope)) * scale
            s = tl.where((n < end)[None, :], s, float("-inf"))
            new = tl.maximum(top, tl.max(s, 1))
            shrink, p = tl.exp(top - new), tl.exp(s - new[:, None])
            acc = acc * shrink[:, None] + tl.dot(p, tl.trans(k))
            total, top = total * shrink + tl.sum(p, 1), new
        place = (request * HEADS + h) * SPLITS + split
        tl.store(parts + place[:, None] * D + d[None, :], acc / total[:, None])
        tl.store(lses + place, top + tl.log(total))


@triton.jit
def merge_splits(parts, lses, out, lengths, HEADS: tl.constexpr, D: tl.constexpr, SPLITS: tl.constexpr):
    request, head = tl.program_id(0), tl.program_id(1)
    length = tl.load(lengths + request)
    top, total, acc = -float("inf"), 0.0, tl.zeros([D], tl.float32)
    each = tl.cdiv(length, SPLITS)
    for split in range(SPLITS):
        if split * each < length:
            place = (request * HEADS + head) * SPLITS + split
            lse = tl.load(lses + place)
            new = tl.maximum(lse, top)
            old, this = tl.exp(top - new), tl.exp(lse - new)
            acc = acc * old + this * tl.load(parts + place * D + tl.arange(0, D))
            total, top = total * old + this, new
    tl.store(out + (request * HEADS + head) * D + tl.arange(0, D), acc / total)


@pytest.mark.parametrize("heads", [1, 8, 32])
def test_paged_decode_attention_in_splits(heads: int) -> None:
    d, rope, page, pages, splits = 64, 16, 8, 12, 4
    lengths = np.array([3, 50, 96], np.int32)
    cache, q = normal(40, page, d + rope), normal(3, heads, d + rope)
    table = rng.permutation(40)[: 3 * pages].reshape(3, pages).astype(np.int32)
    parts, lses = np.zeros((3, heads, splits, d), np.float32), np.zeros((3, heads, splits), np.float32)
    out = np.zeros((3, heads, d), np.float32)
    sizes = {"HEADS": heads, "D": d, "SPLITS": splits}
    latent_decode[(3, splits)](
        q, cache, table, lengths, parts, lses, 0.1, ROPE=rope, PAGE=page, PAGES=pages, N=16, **sizes
    )
    merge_splits[(3, heads)](parts, lses, out, lengths, **sizes)
    for i, length in enumerate(lengths):
        keys = cache[table[i]].reshape(-1, d + rope)[:length].astype(np.float64)
        s = q[i].astype(np.float64) @ keys.T * 0.1
        p = np.exp(s - s.max(1, keepdims=True))
        close(out[i], p / p.sum(1, keepdims=True) @ keys[:, :d])


# Eight weights of four bits a word, in the order 0 4 1 5 2 6 3 7; zero points packed the same way, a scale for a group.
@triton.jit
def int4_matmul(
    x, words, zeros, scales, out, M, N, K,
    GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    w = tl.program_id(1) * (BN // 8) + tl.arange(0, BN // 8)
    order = ((tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None]).reshape(8)
    shifts = tl.reshape(tl.broadcast_to((order * 4)[None, :], (BK * (BN // 8), 8)), (BK, BN))
    acc = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        k = first + tl.arange(0, BK)
        a = tl.load(x + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
        b = tl.load(words + k[:, None] * (N // 8) + w[None, :])
        z = tl.load(zeros + (first // GROUP + tl.arange(0, 1))[:, None] * (N // 8) + w[None, :])
        for _ in tl.static_range(3):
            b, z = tl.interleave(b, b), tl.interleave(z, z)
        s = tl.load(scales + (first // GROUP) * N + n)
        b = (((b >> shifts) & 15) - ((tl.broadcast_to(z, (BK, BN)) >> shifts) & 15)) * s[None, :]
        acc = tl.dot(a, b.to(tl.float16), acc)
    tl.store(out + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None])


def test_weights_of_four_bits() -> None:
    m, n, k, group = 20, 64, 128, 32
    order = np.array([0, 4, 1, 5, 2, 6, 3, 7], np.uint32)

    def pack(values: np.ndarray) -> np.ndarray:
        parts = values.astype(np.uint32).reshape(len(values), -1, 8) << (4 * order)
        return np.bitwise_or.reduce(parts, axis=2).view(np.int32)

    weights, zeros = rng.integers(0, 16, (k, n)), rng.integers(0, 16, (k // group, n))
    scales, x = rng.random((k // group, n)).astype(np.float16), normal(m, k).astype(np.float16)
    out = np.zeros((m, n), np.float32)
    int4_matmul[(2, 2)](x, pack(weights), pack(zeros), scales, out, m, n, k, GROUP=group, BM=16, BN=32, BK=32)
    full = (weights - zeros.repeat(group, 0)) * scales.repeat(group, 0).astype(np.float64)
    close(out, x.astype(np.float64) @ full.astype(np.float16).astype(np.float64), 2e-3)


# The largest probabilities that make up at least p: their least is found by halving an interval.
@triton.jit
def keep_top_p(logits, out, ps, n, N: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, N)
    x = tl.load(logits + row * n + i, mask=i < n, other=float("-inf"))
    e = tl.exp(x - tl.max(x))
    e /= tl.sum(e)
    p = tl.load(ps + row)
    low, high, rounds = 0.0, tl.max(e), 0
    while (high - low > 1e-9) & (rounds < 60):
        middle = (low + high) / 2
        if tl.sum(tl.where(e > middle, e, 0.0)) >= p:
            low = middle
        else:
            high = middle
        rounds += 1
    tl.store(out + row * n + i, tl.where(e > low, x, float("-inf")), mask=i < n)


def test_top_p_by_halving() -> None:
    x, ps = normal(8, 1000) * 2, rng.uniform(0.2, 0.9, 8).astype(np.float32)
    out = np.zeros_like(x)
    keep_top_p[(8,)](x, out, ps, 1000, N=1024)
    e = np.exp(x.astype(np.float64))
    e /= e.sum(1, keepdims=True)
    for row in range(8):
        kept = np.sort(e[row])[::-1].cumsum()
        assert abs(int(np.isfinite(out[row]).sum()) - int(np.searchsorted(kept, ps[row]) + 1)) <= 1


# y[t] = C[t] . S[t], S[t] = exp(a[t]) S[t-1] + B[t] x[t]^T: within a chunk by dots, between chunks by the state.
@triton.jit
def chunk_scan(x, a, b, c, y, T, P: tl.constexpr, S: tl.constexpr, CHUNK: tl.constexpr):
    p, s, t = tl.arange(0, P), tl.arange(0, S), tl.arange(0, CHUNK)
    base = tl.program_id(0) * T
    state = tl.zeros((S, P), tl.float32)
    for first in range(0, T, CHUNK):
        row = base + first + t
        decay = tl.cumsum(tl.load(a + row), 0)
        xs = tl.load(x + row[:, None] * P + p[None, :])
        bs, cs = tl.load(b + row[:, None] * S + s[None, :]), tl.load(c + row[:, None] * S + s[None, :])
        within = tl.dot(cs, tl.trans(bs)) * tl.exp(tl.minimum(decay[:, None] - decay[None, :], 0.0))
        out = tl.dot(tl.where(t[:, None] >= t[None, :], within, 0.0), xs) + tl.dot(cs, state) * tl.exp(decay)[:, None]
        tl.store(y + row[:, None] * P + p[None, :], out)
        last = tl.sum(tl.where(t == CHUNK - 1, decay, 0.0), 0)
        state = state * tl.exp(last) + tl.dot(tl.trans(bs * tl.exp(last - decay)[:, None]), xs)


def test_state_space_scan_in_chunks() -> None:
    heads, t, p, s = 3, 96, 32, 16
    x, b, c = normal(heads, t, p), normal(heads, t, s), normal(heads, t, s)
    a, y = -rng.random((heads, t)).astype(np.float32), np.zeros((heads, t, p), np.float32)
    chunk_scan[(heads,)](x, a, b, c, y, t, P=p, S=s, CHUNK=32)
    want, state = np.zeros((heads, t, p)), np.zeros((heads, s, p))
    for i in range(t):
        state = state * np.exp(a[:, i, None, None].astype(np.float64)) + b[:, i, :, None] * x[:, i, None, :]
        want[:, i] = np.einsum("hs,hsp->hp", c[:, i], state)
    close(y, want)


# Sorting with the numbers of the elements carried along, a pair a time, on a hypercube.
@triton.jit
def other_end(x, AXIS: tl.constexpr):
    bits = x.to(tl.int32, bitcast=True)
    return (bits ^ tl.xor_sum(bits, AXIS, True)).to(x.dtype, bitcast=True)


@triton.jit
def sort_pairs(keys, order, K: tl.constexpr, BITS: tl.constexpr):
    i = tl.arange(0, K)
    x = tl.reshape(tl.load(keys + tl.program_id(0) * K + i), [2] * BITS)
    n = tl.reshape(i, [2] * BITS)
    for stage in tl.static_range(1, BITS + 1):
        for step in tl.static_range(stage):
            AXIS: tl.constexpr = BITS - stage + step
            right = tl.reshape(tl.arange(0, 2), [1] * AXIS + [2] + [1] * (BITS - AXIS - 1))
            if stage < BITS:
                down = tl.reshape(tl.arange(0, 2), [1] * (BITS - stage - 1) + [2] + [1] * stage)
            else:
                down = 0
            y, m = other_end(x, AXIS), other_end(n, AXIS)
            swap = (x > y) != ((down ^ right) != 0)
            x, n = tl.where(swap & (x != y), y, x), tl.where(swap & (x != y), m, n)
    tl.store(keys + tl.program_id(0) * K + i, tl.reshape(x, [K]))
    tl.store(order + tl.program_id(0) * K + i, tl.reshape(n, [K]))


def test_sorting_pairs_on_a_hypercube() -> None:
    keys = rng.permutation(4 * 32).reshape(4, 32).astype(np.float32)
    got, order = keys.copy(), np.zeros((4, 32), np.int32)
    sort_pairs[(4,)](got, order, K=32, BITS=5)
    np.testing.assert_array_equal(got, np.sort(keys, 1))
    np.testing.assert_array_equal(order, np.argsort(keys, 1))


@triton.jit
def ramp(out, n, STEP: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, i * STEP, mask=i < n)


@pytest.mark.parametrize("size", [np.int64(16), np.prod((4, 4)), np.uint8(16), 16])
@pytest.mark.parametrize("step", [np.float32(2), np.int32(2), 2.0])
@pytest.mark.thinned(3)
def test_numbers_of_numpy_as_constexprs(size: int, step: float) -> None:
    out = np.zeros(16, np.float32)
    ramp[(np.int64(1),)](out, np.int64(9), STEP=step, N=size)
    np.testing.assert_array_equal(out, np.where(np.arange(16) < 9, np.arange(16) * 2.0, 0))


# Names of which nothing is left for the text of the IR, and one that is no ASCII.
@triton.jit
def odd_names(_0, αx, _, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    _1 = tl.zeros([1], tl.float32)
    __1 = tl.load(_0 + i, mask=i < n, other=_1)
    for _2 in range(3):
        __1 += _2
    if n > 3:
        _3 = __1 + 1
    else:
        _3 = __1 + 2
    _3 += tl.load(_)
    tl.store(αx + i, _3)


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("target", ["cpu", "sim:cuda:80"])
def test_names_that_are_numbers_but_for_underscores(target: str, debug: bool) -> None:
    x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
    with triton.target(target):
        odd_names[(1,)](x, out, x, 5, 8, debug=debug)
    assert out.tolist() == [6.0] * 5 + [5.0] * 3
