"""Control flow: while loops, dynamic ifs, early returns, nested loops, carried pointers, calls between kernels."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from .case import Case, f64, filled, integers, normal, uniform, zeros


@triton.jit
def collatz(n_ptr, steps_ptr, limit):
    """How many steps until 1: a while loop over a scalar with a condition that depends on the data."""
    pid = tl.program_id(0)
    value = tl.load(n_ptr + pid)
    steps = 0
    while (value != 1) & (steps < limit):
        if value % 2 == 0:
            value = value // 2
        else:
            value = 3 * value + 1
        steps += 1
    tl.store(steps_ptr + pid, steps)


def collatz_reference(a):
    counts = []
    for value in a["n_ptr"].tolist():
        steps = 0
        while value != 1 and steps < a["limit"]:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            steps += 1
        counts.append(steps)
    return {"steps_ptr": np.array(counts)}


@triton.jit
def dynamic_if(x_ptr, out_ptr, threshold, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    total = tl.sum(x, axis=0)
    if total > threshold:
        y = x * 2.0
        bias = 1.0
    elif total < -threshold:
        y = x * x
        bias = -1.0
    else:
        y = -x
        bias = 0.0
    tl.store(out_ptr + offsets, y + bias)


def dynamic_if_reference(a, block=32):
    x = f64(a["x_ptr"]).reshape(-1, block)
    total = x.sum(1, keepdims=True)
    high, low = total > a["threshold"], total < -a["threshold"]
    return {"out_ptr": np.where(high, 2 * x + 1, np.where(low, x * x - 1, -x)).ravel()}


@triton.jit
def early_return(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid * BLOCK >= n:
        return
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    if pid % 2 == 1:
        tl.store(out_ptr + offsets, -x, mask=offsets < n)
        return
    tl.store(out_ptr + offsets, x + 1.0, mask=offsets < n)


def early_return_reference(a, block=32):
    n = a["n"]
    out = f64(a["out_ptr"])
    x = f64(a["x_ptr"])
    odd = (np.arange(n) // block) % 2 == 1
    out[:n] = np.where(odd, -x[:n], x[:n] + 1)
    return {"out_ptr": out}


@triton.jit
def nested_loops(x_ptr, out_ptr, outer, inner, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    largest = tl.full([BLOCK], -1e30, dtype=tl.float32)
    for i in range(outer):
        part = tl.zeros([BLOCK], dtype=tl.float32)
        for j in range(0, inner, 2):
            x = tl.load(x_ptr + (i * inner + j) * BLOCK + offsets)
            part += x * (j + 1)
            if j > i:
                largest = tl.maximum(largest, x)
        total += part * 0.5
    tl.store(out_ptr + offsets, total)
    tl.store(out_ptr + BLOCK + offsets, largest)


def nested_reference(a):
    x = f64(a["x_ptr"])
    outer, inner, block = x.shape
    total, largest = np.zeros(block), np.full(block, -1e30)
    for i in range(outer):
        for j in range(0, inner, 2):
            total += 0.5 * x[i, j] * (j + 1)
            if j > i:
                largest = np.maximum(largest, x[i, j])
    return {"out_ptr": np.stack([total, largest])}


@triton.jit
def carried_pointers(x_ptr, out_ptr, rows, row_stride, column_stride, M: tl.constexpr, N: tl.constexpr):
    """A two-dimensional tile of pointers moved by a stride in each iteration."""
    pointers = x_ptr + tl.arange(0, M)[:, None] * row_stride + tl.arange(0, N)[None, :] * column_stride
    total = tl.zeros([M, N], dtype=tl.float32)
    for _ in range(0, rows, M):
        total += tl.load(pointers)
        pointers += M * row_stride
    tl.store(out_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], total)


@triton.jit
def scalar_step(value, by):
    if value > 10:
        return value - by
    return value + 2 * by


@triton.jit
def scale_and_shift(x, scale, shift=0.0):
    return x * scale + shift


@triton.jit
def minmax(x):
    return tl.min(x, axis=0), tl.max(x, axis=0)


@triton.jit
def calls(x_ptr, out_ptr, state_ptr, BLOCK: tl.constexpr):
    """Functions that return scalars, tiles and tuples, with defaults and early returns."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    low, high = minmax(x)
    y = scale_and_shift(x - low, 1.0 / (high - low))
    tl.store(out_ptr + offsets, scale_and_shift(y, 2.0, shift=-1.0))
    state = tl.load(state_ptr)
    state = scalar_step(state, 3)
    state = scalar_step(state, 4)
    tl.store(state_ptr, state)


def calls_reference(a):
    x = f64(a["x_ptr"])
    state = int(a["state_ptr"][0])
    for by in (3, 4):
        state = state - by if state > 10 else state + 2 * by
    return {"out_ptr": 2 * (x - x.min()) / (x.max() - x.min()) - 1, "state_ptr": np.array([state])}


@triton.jit
def static_loop(x_ptr, out_ptr, N: tl.constexpr, DEGREE: tl.constexpr, SIGNED: tl.constexpr):
    """Compile-time unrolling, folding and branches."""
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    y = tl.zeros([N], tl.float32)
    for k in tl.static_range(DEGREE, -1, -1):
        y = y * x + (k + 1)
    if SIGNED:
        y = -y
    tl.static_assert(DEGREE < 10, "too high a degree")
    tl.store(out_ptr + offsets, y)


@triton.jit
def countdown(out_ptr, start, stop):
    """A loop that runs downwards, and one that does not run at all."""
    total = 0
    for i in range(start, stop, -1):
        total = total * 3 + i
    for _ in range(stop, stop):
        total += 1000
    tl.store(out_ptr, total)


def countdown_reference(a):
    total = 0
    for i in range(a["start"], a["stop"], -1):
        total = total * 3 + i
    return {"out_ptr": np.array([total])}


@triton.jit
def while_tile(x_ptr, out_ptr, count_ptr, BLOCK: tl.constexpr):
    """Newton's square root on a whole tile until the largest error is small."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    root = x
    error = tl.max(tl.abs(root * root - x), axis=0)
    rounds = 0
    while error > 1e-3:
        root = 0.5 * (root + x / root)
        error = tl.max(tl.abs(root * root - x), axis=0)
        rounds += 1
    tl.store(out_ptr + offsets, root)
    tl.store(count_ptr, rounds < 12)


@triton.jit
def conditional_store(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    tl.store(out_ptr + offsets, x * x, mask=(offsets < n) & (x % 2 == 0))
    if tl.program_id(0) == tl.num_programs(0) - 1:
        tl.store(out_ptr + n, tl.num_programs(0))


def conditional_store_reference(a, block=64):
    x = a["x_ptr"]
    out = a["out_ptr"].copy()
    out[: a["n"]] = np.where(x % 2 == 0, x * x, out[: a["n"]])
    out[a["n"]] = -(-a["n"] // block)
    return {"out_ptr": out}


@triton.jit
def grid_3d(out_ptr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny = tl.num_programs(0), tl.num_programs(1)
    tl.store(out_ptr + (z * ny + y) * nx + x, x + 10 * y + 100 * z + 1000 * tl.num_programs(2))


def grid_3d_reference(a):
    z, y, x = np.indices(a["out_ptr"].shape)
    return {"out_ptr": x + 10 * y + 100 * z + 1000 * a["out_ptr"].shape[0]}


@triton.jit
def persistent(x_ptr, out_ptr, tiles, BLOCK: tl.constexpr):
    """Fewer programs than tiles: each takes every num_programs-th tile."""
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        offsets = tile * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) + tile)


@triton.jit
def unrolled_rows(x_ptr, out_ptr, first, end, step, BLOCK: tl.constexpr):
    """Three iterations at a time, and those that are left; what one carries depends on the one before."""
    i = tl.arange(0, BLOCK)
    value = tl.zeros((BLOCK,), tl.float32)
    count = 0
    for row in tl.range(first, end, step, loop_unroll_factor=3):
        value = value * 0.5 + tl.load(x_ptr + row * BLOCK + i) * row
        count += 1
    tl.store(out_ptr + i, value + count)


def unrolled_reference(a, block=32):
    x, value = f64(a["x_ptr"]).reshape(-1, block), np.zeros(block)
    rows = range(a["first"], a["end"], a["step"])
    for row in rows:
        value = value * 0.5 + x[row] * row
    return {"out_ptr": value + len(rows)}


CASES = [
    *(
        Case(
            f"unrolled_rows_{first}_{end}_{step}",
            unrolled_rows,
            lambda rng, first=first, end=end, step=step: {
                "x_ptr": normal(rng, 16, 32),
                "out_ptr": zeros(32),
                "first": first,
                "end": end,
                "step": step,
            },
            unrolled_reference,
            constexprs={"BLOCK": 32},
            atol=1e-4,
        )
        for first, end, step in ((0, 0, 1), (1, 15, 2), (0, 12, 1), (3, 5, 1), (7, 2, 1))
    ),
    Case(
        "collatz",
        collatz,
        lambda rng: {
            "n_ptr": np.array([1, 2, 3, 7, 27, 97], np.int32),
            "steps_ptr": zeros(6, dtype=np.int32),
            "limit": 1000,
        },
        collatz_reference,
        grid=(6,),
    ),
    Case(
        "dynamic_if",
        dynamic_if,
        lambda rng: {"x_ptr": normal(rng, 256, scale=2), "out_ptr": zeros(256), "threshold": 4.0},
        dynamic_if_reference,
        grid=(8,),
        constexprs={"BLOCK": 32},
    ),
    Case(
        "early_return",
        early_return,
        lambda rng: {"x_ptr": normal(rng, 256), "out_ptr": filled(256, value=5), "n": 150},
        early_return_reference,
        grid=(8,),
        constexprs={"BLOCK": 32},
    ),
    Case(
        "nested_loops",
        nested_loops,
        lambda rng: {"x_ptr": normal(rng, 5, 6, 64), "out_ptr": zeros(2, 64), "outer": 5, "inner": 6},
        nested_reference,
        constexprs={"BLOCK": 64},
        atol=1e-5,
    ),
    Case(
        "carried_pointers",
        carried_pointers,
        lambda rng: {
            "x_ptr": normal(rng, 64, 32),
            "out_ptr": zeros(16, 32),
            "rows": 64,
            "row_stride": 32,
            "column_stride": 1,
        },
        lambda a: {"out_ptr": f64(a["x_ptr"]).reshape(4, 16, 32).sum(0)},
        constexprs={"M": 16, "N": 32},
    ),
    Case(
        "carried_pointers_transposed",
        carried_pointers,
        lambda rng: {
            "x_ptr": normal(rng, 32, 64),
            "out_ptr": zeros(16, 32),
            "rows": 64,
            "row_stride": 1,
            "column_stride": 64,
        },
        lambda a: {"out_ptr": f64(a["x_ptr"]).T.reshape(4, 16, 32).sum(0)},
        constexprs={"M": 16, "N": 32},
    ),
    Case(
        "calls",
        calls,
        lambda rng: {"x_ptr": normal(rng, 128), "out_ptr": zeros(128), "state_ptr": np.array([5], np.int32)},
        calls_reference,
        constexprs={"BLOCK": 128},
        atol=1e-5,
    ),
    Case(
        "static_loop",
        static_loop,
        lambda rng: {"x_ptr": uniform(rng, 64), "out_ptr": zeros(64)},
        lambda a: {"out_ptr": -sum((k + 1) * f64(a["x_ptr"]) ** k for k in range(5))},
        constexprs={"N": 64, "DEGREE": 4, "SIGNED": True},
    ),
    Case(
        "countdown",
        countdown,
        lambda rng: {"out_ptr": zeros(1, dtype=np.int32), "start": 9, "stop": -3},
        countdown_reference,
    ),
    Case(
        "while_tile",
        while_tile,
        lambda rng: {
            "x_ptr": uniform(rng, 64, low=0.5, high=50),
            "out_ptr": zeros(64),
            "count_ptr": zeros(1, dtype=np.int32),
        },
        lambda a: {"out_ptr": np.sqrt(f64(a["x_ptr"])), "count_ptr": np.array([1])},
        constexprs={"BLOCK": 64},
        rtol=1e-3,
    ),
    Case(
        "conditional_store",
        conditional_store,
        lambda rng: {"x_ptr": integers(rng, 0, 100, 200), "out_ptr": np.full(201, -1, np.int32), "n": 200},
        conditional_store_reference,
        grid=(4,),
        constexprs={"BLOCK": 64},
    ),
    Case(
        "grid_3d", grid_3d, lambda rng: {"out_ptr": zeros(4, 3, 5, dtype=np.int32)}, grid_3d_reference, grid=(5, 3, 4)
    ),
    Case(
        "persistent",
        persistent,
        lambda rng: {"x_ptr": normal(rng, 11, 64), "out_ptr": zeros(11, 64), "tiles": 11},
        lambda a: {"out_ptr": f64(a["x_ptr"]) + np.arange(11)[:, None]},
        grid=(3,),
        constexprs={"BLOCK": 64},
    ),
]
