"""Shape operations: reshape, permute, join, split, broadcast, flip, gather, histogram, in two and three dimensions."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from .case import Case, f64, integers, normal, zeros


@triton.jit
def tile_2d(pointer, M: tl.constexpr, N: tl.constexpr):
    return pointer + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]


@triton.jit
def reshape_permute(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, A * B * C))
    y = tl.permute(tl.reshape(x, (A, B, C)), (2, 0, 1))
    tl.store(out_ptr + tl.arange(0, A * B * C), tl.ravel(y) * 2)
    z = tl.trans(x.reshape(A, B * C)).reshape(B, C, A)
    offsets = (
        tl.arange(0, B)[:, None, None] * (C * A) + tl.arange(0, C)[None, :, None] * A + tl.arange(0, A)[None, None, :]
    )
    tl.store(out_ptr + A * B * C + offsets, z)


def reshape_permute_reference(a):
    x = f64(a["x_ptr"])
    shape = a["shape"]
    return {"out_ptr": np.stack([2 * x.reshape(shape).transpose(2, 0, 1).ravel(), x.reshape(shape[0], -1).T.ravel()])}


@triton.jit
def join_split(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets)
    tl.store(tile_2d(out_ptr, N, 2), tl.join(x, y))
    tl.store(out_ptr + 2 * N + tl.arange(0, 2 * N), tl.interleave(y, x))
    even, odd = tl.split(tl.reshape(x, (N // 2, 2)))
    tl.store(out_ptr + 4 * N + tl.arange(0, N // 2), even - odd)
    tl.store(out_ptr + 4 * N + N // 2 + tl.arange(0, N // 2), even * odd)


def join_split_reference(a):
    x, y = f64(a["x_ptr"]), f64(a["y_ptr"])
    rows = [np.stack([x, y], 1).ravel(), np.stack([y, x], 1).ravel(), x[::2] - x[1::2], x[::2] * x[1::2]]
    return {"out_ptr": np.concatenate(rows)}


@triton.jit
def broadcasts(x_ptr, y_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M))
    y = tl.load(y_ptr + tl.arange(0, N))
    a, b = tl.broadcast(x[:, None], y[None, :])
    tl.store(tile_2d(out_ptr, M, N), a - b)
    c = tl.broadcast_to(tl.expand_dims(x, 1), (M, N)) * y
    tl.store(tile_2d(out_ptr + M * N, M, N), c)
    tl.store(tile_2d(out_ptr + 2 * M * N, M, N), tl.full((M, N), 3, tl.float32) + tl.zeros_like(c) + x[:, None])


def broadcasts_reference(a):
    x, y = f64(a["x_ptr"])[:, None], f64(a["y_ptr"])[None, :]
    return {"out_ptr": np.stack([x - y, x * y, 3 + x + 0 * y])}


@triton.jit
def flips(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(tile_2d(x_ptr, M, N))
    tl.store(tile_2d(out_ptr, M, N), tl.flip(x, 1))
    tl.store(tile_2d(out_ptr + M * N, M, N), tl.flip(x, 0))


@triton.jit
def gathers(x_ptr, row_ptr, column_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(tile_2d(x_ptr, M, N))
    tl.store(tile_2d(out_ptr, M, N), tl.gather(x, tl.load(tile_2d(row_ptr, M, N)), 0))
    tl.store(tile_2d(out_ptr + M * N, M, N), tl.gather(x, tl.load(tile_2d(column_ptr, M, N)), 1))


@triton.jit
def histograms(x_ptr, out_ptr, n, N: tl.constexpr, BINS: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    tl.store(out_ptr + tl.arange(0, BINS), tl.histogram(x, BINS, mask=offsets < n))
    tl.store(out_ptr + BINS + tl.arange(0, BINS), tl.histogram(x, BINS))


def histograms_reference(a):
    x, bins = a["x_ptr"], a["out_ptr"].shape[1]
    masked = np.bincount(x[: a["n"]], minlength=bins)
    everything = masked.copy()
    everything[0] += len(x) - a["n"]
    return {"out_ptr": np.stack([masked, everything])}


@triton.jit
def volume(x_ptr, out_ptr, sums_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    """A three-dimensional tile: loaded, reduced along the middle axis, normalised and stored transposed."""
    i = tl.arange(0, A)[:, None, None]
    j = tl.arange(0, B)[None, :, None]
    k = tl.arange(0, C)[None, None, :]
    x = tl.load(x_ptr + (i * B + j) * C + k)
    total = tl.sum(x, axis=1, keep_dims=True)
    tl.store(sums_ptr + i * C + k, total)
    y = tl.permute(x - total / B, (0, 2, 1))
    i2 = tl.arange(0, A)[:, None, None]
    k2 = tl.arange(0, C)[None, :, None]
    j2 = tl.arange(0, B)[None, None, :]
    tl.store(out_ptr + (i2 * C + k2) * B + j2, y)


def volume_reference(a):
    x = f64(a["x_ptr"])
    total = x.sum(1, keepdims=True)
    return {"sums_ptr": total, "out_ptr": (x - x.mean(1, keepdims=True)).transpose(0, 2, 1)}


@triton.jit
def hadamard(x_ptr, out_ptr, N: tl.constexpr, STEPS: tl.constexpr):
    """The fast Walsh-Hadamard transform by reshape, split and join alone."""
    x = tl.load(x_ptr + tl.arange(0, N))
    for _ in tl.static_range(STEPS):
        low, high = tl.split(tl.permute(tl.reshape(x, (2, N // 2)), (1, 0)))
        x = tl.reshape(tl.join(low + high, low - high), (N,))
    tl.store(out_ptr + tl.arange(0, N), x)


def hadamard_reference(a):
    x = f64(a["x_ptr"])
    n = len(x)
    bits = np.array([[bin(i & j).count("1") for j in range(n)] for i in range(n)])
    return {"out_ptr": (-1.0) ** bits @ x}


@triton.jit
def swizzle(out_ptr, size_i, size_j, GROUP: tl.constexpr):
    i, j = tl.swizzle2d(tl.program_id(0), tl.program_id(1), size_i, size_j, GROUP)
    tl.store(out_ptr + i * size_j + j, tl.program_id(0) * size_j + tl.program_id(1))


def swizzle_reference(a, group=2):
    out = a["out_ptr"].copy()
    for i in range(a["size_i"]):
        for j in range(a["size_j"]):
            linear = i * a["size_j"] + j
            first = linear // (group * a["size_j"]) * group
            rows = min(a["size_i"] - first, group)
            within = linear % (group * a["size_j"])
            out[first + within % rows, within // rows] = linear
    return {"out_ptr": out}


@triton.jit
def concatenate(x_ptr, y_ptr, sum_ptr, N: tl.constexpr):
    """`cat` promises no order, so only an order-free question is asked."""
    offsets = tl.arange(0, N)
    both = tl.cat(tl.load(x_ptr + offsets), tl.load(y_ptr + offsets), can_reorder=True)
    tl.store(sum_ptr, tl.sum(both * both, axis=0))
    tl.store(sum_ptr + 1, tl.max(both, axis=0))


@triton.jit
def pair(a, b):
    return a * 2 + b, b - a


@triton.jit
def absolute_or_square(x):
    if x < 0:
        return -x
    return x * x


@triton.jit
def mapped(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets)
    first, second = tl.map_elementwise(pair, x, y)
    tl.store(out_ptr + offsets, first)
    tl.store(out_ptr + N + offsets, second)
    tl.store(out_ptr + 2 * N + offsets, tl.map_elementwise(absolute_or_square, x))


def mapped_reference(a):
    x, y = a["x_ptr"], a["y_ptr"]
    return {"out_ptr": np.stack([2 * x + y, y - x, np.where(x < 0, -x, x * x)])}


def two(n, rows, **extra):
    return lambda rng: {"x_ptr": normal(rng, n), "y_ptr": normal(rng, n), "out_ptr": zeros(*rows), **extra}


CASES = [
    *(
        Case(
            f"reshape_permute_{'x'.join(map(str, shape))}",
            reshape_permute,
            lambda rng, n=int(np.prod(shape)): {"x_ptr": normal(rng, n), "out_ptr": zeros(2, n)},
            lambda a, shape=shape: reshape_permute_reference({**a, "shape": shape}),
            constexprs=dict(zip("ABC", shape, strict=True)),
        )
        for shape in ((4, 8, 16), (2, 1, 2), (32, 4, 2))
    ),
    Case("join_split", join_split, two(64, (320,)), join_split_reference, constexprs={"N": 64}),
    Case(
        "broadcasts",
        broadcasts,
        lambda rng: {"x_ptr": normal(rng, 8), "y_ptr": normal(rng, 32), "out_ptr": zeros(3, 8, 32)},
        broadcasts_reference,
        constexprs={"M": 8, "N": 32},
    ),
    Case(
        "flips",
        flips,
        lambda rng: {"x_ptr": normal(rng, 8, 32), "out_ptr": zeros(2, 8, 32)},
        lambda a: {"out_ptr": np.stack([f64(a["x_ptr"])[:, ::-1], f64(a["x_ptr"])[::-1]])},
        constexprs={"M": 8, "N": 32},
    ),
    Case(
        "gathers",
        gathers,
        lambda rng: {
            "x_ptr": normal(rng, 16, 32),
            "row_ptr": integers(rng, 0, 16, 16, 32),
            "column_ptr": integers(rng, 0, 32, 16, 32),
            "out_ptr": zeros(2, 16, 32),
        },
        lambda a: {
            "out_ptr": np.stack(
                [
                    np.take_along_axis(f64(a["x_ptr"]), a["row_ptr"], 0),
                    np.take_along_axis(f64(a["x_ptr"]), a["column_ptr"], 1),
                ]
            )
        },
        constexprs={"M": 16, "N": 32},
    ),
    Case(
        "histograms",
        histograms,
        lambda rng: {
            "x_ptr": np.where(np.arange(512) < 400, integers(rng, 0, 16, 512), 0).astype(np.int32),
            "out_ptr": zeros(2, 16, dtype=np.int32),
            "n": 400,
        },
        histograms_reference,
        constexprs={"N": 512, "BINS": 16},
    ),
    Case(
        "volume",
        volume,
        lambda rng: {"x_ptr": normal(rng, 4, 8, 16), "out_ptr": zeros(4, 16, 8), "sums_ptr": zeros(4, 1, 16)},
        volume_reference,
        constexprs={"A": 4, "B": 8, "C": 16},
        atol=1e-5,
    ),
    Case(
        "hadamard",
        hadamard,
        lambda rng: {"x_ptr": normal(rng, 64), "out_ptr": zeros(64)},
        hadamard_reference,
        constexprs={"N": 64, "STEPS": 6},
        atol=1e-4,
    ),
    Case(
        "swizzle",
        swizzle,
        lambda rng: {"out_ptr": zeros(5, 7, dtype=np.int32), "size_i": 5, "size_j": 7},
        swizzle_reference,
        grid=(5, 7),
        constexprs={"GROUP": 2},
    ),
    Case(
        "concatenate",
        concatenate,
        lambda rng: {"x_ptr": normal(rng, 64), "y_ptr": normal(rng, 64), "sum_ptr": zeros(2)},
        lambda a: {
            "sum_ptr": np.array(
                [(f64(a["x_ptr"]) ** 2).sum() + (f64(a["y_ptr"]) ** 2).sum(), max(a["x_ptr"].max(), a["y_ptr"].max())]
            )
        },
        constexprs={"N": 64},
        atol=1e-4,
    ),
    Case(
        "mapped",
        mapped,
        lambda rng: {
            "x_ptr": integers(rng, -50, 50, 128),
            "y_ptr": integers(rng, -50, 50, 128),
            "out_ptr": zeros(3, 128, dtype=np.int32),
        },
        mapped_reference,
        constexprs={"N": 128},
    ),
]
