"""What transformers are made of: flash attention, rotary embedding, dropout, gated units, quantisation."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from .case import BF16, Case, f64, integers, normal, zeros


@triton.jit
def attention_inner(
    acc,
    total,
    top,
    q,
    k_ptrs,
    v_ptrs,
    start_m,
    first,
    last,
    n_ctx,
    stride_n,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    MASKED: tl.constexpr,
):
    m = start_m + tl.arange(0, BLOCK_M)
    for start in range(first, last, BLOCK_N):
        start = tl.multiple_of(start, BLOCK_N)
        n = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptrs + start * stride_n, mask=n[None, :] < n_ctx, other=0.0)
        scores = tl.dot(q, k, input_precision="ieee")
        if MASKED:
            scores = tl.where((m[:, None] >= n[None, :]) & (n[None, :] < n_ctx), scores, float("-inf"))
        else:
            scores = tl.where(n[None, :] < n_ctx, scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        p = tl.math.exp2(scores - new_top[:, None])
        alpha = tl.math.exp2(top - new_top)
        total = total * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptrs + start * stride_n, mask=n[:, None] < n_ctx, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
        top = new_top
    return acc, total, top


@triton.jit
def flash_attention(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    lse_ptr,
    scale,
    n_ctx,
    stride_h,
    stride_n,
    HEAD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    start_m = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1).to(tl.int64)
    q_ptr += head * stride_h
    k_ptr += head * stride_h
    v_ptr += head * stride_h
    out_ptr += head * stride_h
    m = start_m + tl.arange(0, BLOCK_M)
    n = tl.arange(0, BLOCK_N)
    d = tl.arange(0, HEAD)
    q = tl.load(q_ptr + m[:, None] * stride_n + d[None, :], mask=m[:, None] < n_ctx, other=0.0)
    q = (q * (scale * 1.4426950408889634)).to(q_ptr.dtype.element_ty)
    k_ptrs = k_ptr + n[None, :] * stride_n + d[:, None]
    v_ptrs = v_ptr + n[:, None] * stride_n + d[None, :]
    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD], tl.float32)
    if CAUSAL:
        acc, total, top = attention_inner(
            acc, total, top, q, k_ptrs, v_ptrs, start_m, 0, start_m, n_ctx, stride_n, BLOCK_M, BLOCK_N, False
        )
        acc, total, top = attention_inner(
            acc,
            total,
            top,
            q,
            k_ptrs,
            v_ptrs,
            start_m,
            start_m,
            min(start_m + BLOCK_M, n_ctx),
            n_ctx,
            stride_n,
            BLOCK_M,
            BLOCK_N,
            True,
        )
    else:
        acc, total, top = attention_inner(
            acc, total, top, q, k_ptrs, v_ptrs, start_m, 0, n_ctx, n_ctx, stride_n, BLOCK_M, BLOCK_N, False
        )
    tl.store(lse_ptr + head * n_ctx + m, top + tl.math.log2(total), mask=m < n_ctx)
    tl.store(
        out_ptr + m[:, None] * stride_n + d[None, :],
        (acc / total[:, None]).to(out_ptr.dtype.element_ty),
        mask=m[:, None] < n_ctx,
    )


def attention_case(name, dtype, heads, n_ctx, head, causal, block=(32, 32), rtol=1e-4):
    def inputs(rng):
        draw = lambda: normal(rng, heads, n_ctx, head, dtype=dtype)
        return {
            "q_ptr": draw(),
            "k_ptr": draw(),
            "v_ptr": draw(),
            "out_ptr": zeros(heads, n_ctx, head, dtype=dtype),
            "lse_ptr": zeros(heads, n_ctx),
            "scale": head**-0.5,
            "n_ctx": n_ctx,
            "stride_h": n_ctx * head,
            "stride_n": head,
        }

    def reference(a):
        q, k, v = f64(a["q_ptr"]), f64(a["k_ptr"]), f64(a["v_ptr"])
        scores = q @ k.transpose(0, 2, 1) * a["scale"]
        if causal:
            scores = np.where(np.tril(np.ones((n_ctx, n_ctx), bool)), scores, -np.inf)
        top = scores.max(-1, keepdims=True)
        p = np.exp(scores - top)
        total = p.sum(-1, keepdims=True)
        return {"out_ptr": p / total @ v, "lse_ptr": ((top + np.log(total)) / np.log(2))[..., 0]}

    return Case(
        name,
        flash_attention,
        inputs,
        reference,
        grid=(-(-n_ctx // block[0]), heads),
        constexprs={"HEAD": head, "BLOCK_M": block[0], "BLOCK_N": block[1], "CAUSAL": causal},
        rtol=rtol,
        atol=rtol,
        tags=("dot",),
    )


@triton.jit
def rotary(x_ptr, cos_ptr, sin_ptr, out_ptr, seq_len, heads, HALF: tl.constexpr, HEADS: tl.constexpr):
    """Rotates the two halves of each head's vector by an angle that depends on the position."""
    position = tl.program_id(0) % seq_len
    h = tl.arange(0, HEADS)[:, None]
    d = tl.arange(0, HALF)[None, :]
    mask = (h < heads) & (d < HALF)
    cos = tl.load(cos_ptr + position * HALF + d)
    sin = tl.load(sin_ptr + position * HALF + d)
    base = tl.program_id(0) * heads * 2 * HALF + h * 2 * HALF + d
    low = tl.load(x_ptr + base, mask=mask, other=0.0)
    high = tl.load(x_ptr + base + HALF, mask=mask, other=0.0)
    tl.store(out_ptr + base, low * cos - high * sin, mask=mask)
    tl.store(out_ptr + base + HALF, high * cos + low * sin, mask=mask)


def rotary_inputs(rng, batch=2, seq=7, heads=3, half=16):
    angle = rng.uniform(0, 6, (seq, half))
    return {
        "x_ptr": normal(rng, batch, seq, heads, 2 * half),
        "cos_ptr": np.cos(angle).astype(np.float32),
        "sin_ptr": np.sin(angle).astype(np.float32),
        "out_ptr": zeros(batch, seq, heads, 2 * half),
        "seq_len": seq,
        "heads": heads,
    }


def rotary_reference(a):
    x = f64(a["x_ptr"])
    cos, sin = f64(a["cos_ptr"])[:, None, :], f64(a["sin_ptr"])[:, None, :]
    low, high = np.split(x, 2, axis=-1)
    return {"out_ptr": np.concatenate([low * cos - high * sin, high * cos + low * sin], -1)}


@triton.jit
def seeded_dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


@triton.jit
def random_streams(out_ptr, ints_ptr, seed, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    a, b, c, d = tl.randint4x(seed, offsets)
    tl.store(ints_ptr + offsets, a)
    tl.store(ints_ptr + BLOCK + offsets, b)
    tl.store(ints_ptr + 2 * BLOCK + offsets, c)
    tl.store(ints_ptr + 3 * BLOCK + offsets, d)
    tl.store(ints_ptr + 4 * BLOCK + offsets, tl.randint(seed, offsets + BLOCK, n_rounds=7))
    tl.store(out_ptr + offsets, tl.rand(seed, offsets))
    tl.store(out_ptr + BLOCK + offsets, tl.randn(seed, offsets))


MASK32 = 0xFFFFFFFF


def philox(seed, counter, rounds=10):
    """Philox 4x32 in plain integers, for counters (c, 0, 0, 0)."""
    out = []
    for c in counter.tolist():
        c0, c1, c2, c3 = c & MASK32, 0, 0, 0
        k0, k1 = seed & MASK32, seed >> 32 & MASK32
        for _ in range(rounds):
            left, right = 0xCD9E8D57 * c2, 0xD2511F53 * c0
            c0, c1, c2, c3 = (left >> 32) ^ c1 ^ k0, left & MASK32, (right >> 32) ^ c3 ^ k1, right & MASK32
            k0, k1 = k0 + 0x9E3779B9 & MASK32, k1 + 0xBB67AE85 & MASK32
        out.append((c0, c1, c2, c3))
    return np.array(out, np.uint32).T


def to_uniform(bits):
    """[0, 1) from signed 32 bits as the language defines it: negative x counts as -x - 1."""
    signed = bits.view(np.int32).astype(np.int64)
    return np.where(signed < 0, -signed - 1, signed).astype(np.float64) * np.float32(4.6566127342e-10).astype(
        np.float64
    )


def random_reference(a):
    n = a["out_ptr"].shape[1]
    offsets = np.arange(n)
    bits = philox(a["seed"], offsets)
    u1 = np.maximum(to_uniform(bits[0]), 1e-7)
    normals = np.sqrt(-2 * np.log(u1)) * np.cos(6.283185307179586 * to_uniform(bits[1]))
    seven = philox(a["seed"], offsets + n, rounds=7)[0]
    return {"ints_ptr": np.concatenate([bits, seven[None]]), "out_ptr": np.stack([to_uniform(bits[0]), normals])}


def dropout_reference(a):
    x = f64(a["x_ptr"])
    keep = to_uniform(philox(a["seed"], np.arange(len(x)))[0]) > a["p"]
    return {"out_ptr": np.where(keep, x / (1 - a["p"]), 0)}


@triton.jit
def quantise_rows(x_ptr, q_ptr, scale_ptr, n_cols, BLOCK: tl.constexpr):
    """Symmetric int8 with one scale a row, rounding half away from zero."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    x = tl.load(x_ptr + row * n_cols + columns, mask=mask, other=0.0)
    scale = tl.max(tl.abs(x), axis=0) / 127.0
    y = x / scale
    y = tl.where(y >= 0, y + 0.5, y - 0.5).to(tl.int8)
    tl.store(q_ptr + row * n_cols + columns, y, mask=mask)
    tl.store(scale_ptr + row, scale)


def quantise_reference(a):
    x = a["x_ptr"]
    scale = np.abs(x).max(1, keepdims=True) / np.float32(127)
    y = x / scale
    return {
        "q_ptr": np.trunc(np.where(y >= 0, y + np.float32(0.5), y - np.float32(0.5))),
        "scale_ptr": f64(scale)[:, 0],
    }


@triton.jit
def unpack_int4(packed_ptr, scale_ptr, out_ptr, K: tl.constexpr, N: tl.constexpr, GROUP: tl.constexpr):
    """Eight 4-bit weights in each 32-bit word along K, with a scale for each group of rows."""
    k = tl.arange(0, K)
    n = tl.arange(0, N)
    words = tl.load(packed_ptr + (k // 8)[:, None] * N + n[None, :])
    values = (words >> ((k % 8) * 4)[:, None]) & 0xF
    scale = tl.load(scale_ptr + (k // GROUP)[:, None] * N + n[None, :])
    tl.store(out_ptr + k[:, None] * N + n[None, :], (values - 8).to(tl.float32) * scale)


def unpack_reference(a):
    words = a["packed_ptr"].astype(np.int64) & MASK32
    k = len(a["out_ptr"])
    values = (np.repeat(words, 8, 0) >> (np.arange(k) % 8 * 4)[:, None]) & 15
    return {"out_ptr": (values - 8) * np.repeat(f64(a["scale_ptr"]), k // len(a["scale_ptr"]), 0)}


CASES = [
    attention_case("flash_attention_64", np.float32, 2, 96, 64, False),
    attention_case("flash_attention_64_causal", np.float32, 2, 80, 64, True),
    attention_case("flash_attention_128", np.float16, 1, 64, 128, False, rtol=5e-3),
    attention_case("flash_attention_128_causal", BF16, 1, 64, 128, True, block=(64, 32), rtol=3e-2),
    Case("rotary", rotary, rotary_inputs, rotary_reference, grid=(14,), constexprs={"HALF": 16, "HEADS": 4}),
    Case(
        "seeded_dropout",
        seeded_dropout,
        lambda rng: {"x_ptr": normal(rng, 500), "out_ptr": zeros(500), "n": 500, "p": 0.25, "seed": 123},
        dropout_reference,
        grid=(4,),
        constexprs={"BLOCK": 128},
    ),
    Case(
        "random_streams",
        random_streams,
        lambda rng: {"out_ptr": zeros(2, 128), "ints_ptr": zeros(5, 128, dtype=np.uint32), "seed": 987654321},
        random_reference,
        constexprs={"BLOCK": 128},
        atol=1e-5,
    ),
    Case(
        "random_streams_long_seed",
        random_streams,
        lambda rng: {"out_ptr": zeros(2, 64), "ints_ptr": zeros(5, 64, dtype=np.uint32), "seed": 0x123456789ABCDEF},
        random_reference,
        constexprs={"BLOCK": 64},
        atol=1e-5,
    ),
    Case(
        "quantise_rows",
        quantise_rows,
        lambda rng: {
            "x_ptr": normal(rng, 4, 100),
            "q_ptr": zeros(4, 100, dtype=np.int8),
            "scale_ptr": zeros(4),
            "n_cols": 100,
        },
        quantise_reference,
        grid=(4,),
        constexprs={"BLOCK": 128},
    ),
    Case(
        "unpack_int4",
        unpack_int4,
        lambda rng: {
            "packed_ptr": integers(rng, -(2**31), 2**31, 8, 32),
            "scale_ptr": normal(rng, 4, 32),
            "out_ptr": zeros(64, 32),
        },
        unpack_reference,
        constexprs={"K": 64, "N": 32, "GROUP": 16},
    ),
]
