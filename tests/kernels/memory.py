"""Moving data: strided and transposed copies, atomics, gathers through pointers, order of stores and loads."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from .case import BF16, Case, Descriptor, f64, filled, integers, normal, zeros


@triton.jit
def transpose_copy(src_ptr, dst_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    tile = tl.load(src_ptr + m[:, None] * N + n[None, :], mask=(m[:, None] < M) & (n[None, :] < N))
    tl.store(dst_ptr + n[:, None] * M + m[None, :], tile.T, mask=(n[:, None] < N) & (m[None, :] < M))


@triton.jit
def atomic_histogram(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    bins = tl.load(x_ptr + offsets, mask=mask, other=0)
    tl.atomic_add(bins_ptr + bins, 1, mask=mask)


@triton.jit
def every_atomic(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """One word for each kind; all programs and all elements of a tile meet there."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0)
    same = tl.zeros([BLOCK], tl.int32)
    tl.atomic_add(out_ptr + same, x, mask=mask)
    tl.atomic_max(out_ptr + 1 + same, x, mask=mask)
    tl.atomic_min(out_ptr + 2 + same, x, mask=mask)
    tl.atomic_and(out_ptr + 3 + same, x, mask=mask)
    tl.atomic_or(out_ptr + 4 + same, x, mask=mask, sem="relaxed")
    tl.atomic_xor(out_ptr + 5 + same, x, mask=mask, scope="sys")
    tl.atomic_add(out_ptr + 6, tl.sum(x, axis=0))


def every_atomic_reference(a):
    x = a["x_ptr"]
    before = a["out_ptr"].astype(x.dtype)
    return {
        "out_ptr": np.array(
            [
                before[0] + x.sum(dtype=x.dtype),
                max(before[1], x.max()),
                min(before[2], x.min()),
                before[3] & np.bitwise_and.reduce(x),
                before[4] | np.bitwise_or.reduce(x),
                before[5] ^ np.bitwise_xor.reduce(x),
                before[6] + x.sum(dtype=x.dtype),
            ],
            dtype=x.dtype,
        )
    }


@triton.jit
def float_atomics(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.atomic_add(out_ptr + tl.arange(0, BLOCK) % 4, x)
    tl.atomic_max(out_ptr + 4 + tl.arange(0, BLOCK) % 4, x)
    tl.atomic_min(out_ptr + 8 + tl.arange(0, BLOCK) % 4, x)


def float_atomics_reference(a):
    x = f64(a["x_ptr"]).reshape(-1, 4)
    before = f64(a["out_ptr"])
    return {
        "out_ptr": np.stack([before[0] + x.sum(0), np.maximum(before[1], x.max(0)), np.minimum(before[2], x.min(0))])
    }


@triton.jit
def half_atomic_add(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + offsets))


@triton.jit
def tickets(ticket_ptr, order_ptr, last_ptr):
    """Every program takes a number; the values returned by the atomics are used."""
    pid = tl.program_id(0)
    ticket = tl.atomic_add(ticket_ptr, 1)
    tl.store(order_ptr + ticket, 1)
    if ticket == tl.num_programs(0) - 1:
        tl.store(last_ptr, tl.atomic_xchg(ticket_ptr, 0))
    tl.atomic_max(last_ptr + 1, pid)


@triton.jit
def spin_lock(x_ptr, lock_ptr, total_ptr, BLOCK: tl.constexpr):
    """A critical section by compare-and-swap, as split reductions use it."""
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    total = tl.load(total_ptr + tl.arange(0, BLOCK))
    tl.store(total_ptr + tl.arange(0, BLOCK), total + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def gather_rows(table_ptr, index_ptr, out_ptr, n_rows, n_cols, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Embedding look-up: rows named by an index tile, 64-bit offsets, rows out of range read as zero."""
    i = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    j = tl.arange(0, BLOCK_N)
    index = tl.load(index_ptr + i).to(tl.int64)
    valid = (index >= 0) & (index < n_rows)
    rows = tl.load(
        table_ptr + index[:, None] * n_cols + j[None, :], mask=valid[:, None] & (j[None, :] < n_cols), other=0.0
    )
    tl.store(out_ptr + i[:, None].to(tl.int64) * n_cols + j[None, :], rows, mask=j[None, :] < n_cols)


def gather_rows_reference(a):
    table, index = f64(a["table_ptr"]), a["index_ptr"]
    valid = (index >= 0) & (index < a["n_rows"])
    return {"out_ptr": np.where(valid[:, None], table[np.where(valid, index, 0)], 0)}


@triton.jit
def scatter(src_ptr, index_ptr, dst_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    index = tl.load(index_ptr + offsets, mask=mask, other=0)
    tl.store(dst_ptr + index, tl.load(src_ptr + offsets, mask=mask), mask=mask)


def scatter_reference(a):
    dst = f64(a["dst_ptr"])
    dst[a["index_ptr"]] = a["src_ptr"]
    return {"dst_ptr": dst}


@triton.jit
def choose_pointer(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    """Pointers are values: chosen with `where`, compared through integers, chosen by a dynamic if."""
    offsets = tl.arange(0, BLOCK)
    pointers = tl.where(offsets % 3 == 0, x_ptr + offsets, y_ptr + offsets)
    tl.store(out_ptr + offsets, tl.load(pointers))
    if tl.program_id(0) == 0:
        base = x_ptr
    else:
        base = y_ptr
    tl.store(out_ptr + BLOCK + offsets, tl.load(base + offsets))
    distance = (x_ptr + offsets).to(tl.int64) - x_ptr.to(tl.int64)
    tl.store(out_ptr + 2 * BLOCK + offsets, distance.to(tl.float32))


def choose_pointer_reference(a):
    x, y = f64(a["x_ptr"]), f64(a["y_ptr"])
    offsets = np.arange(len(x))
    return {"out_ptr": np.stack([np.where(offsets % 3 == 0, x, y), x, offsets * 4.0])}


@triton.jit
def sum_lists(addresses_ptr, lengths_ptr, out_ptr, BLOCK: tl.constexpr):
    """Arrays of different lengths, known by their addresses only: a pointer made from a loaded 64-bit integer."""
    pid = tl.program_id(0)
    base = tl.load(addresses_ptr + pid).to(tl.pointer_type(tl.float32))
    length = tl.load(lengths_ptr + pid)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, length, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(base + offsets, mask=offsets < length, other=0.0)
    tl.store(out_ptr + pid, tl.sum(total, axis=0))


def sum_lists_inputs(rng):
    data = normal(rng, 3, 300)
    lengths = np.array([300, 17, 130], np.int32)
    addresses = data.ctypes.data + np.arange(3, dtype=np.int64) * 1200
    # `data` rides along inside `addresses` so that its memory outlives the launch.
    keep = addresses.view(KeepAlive)
    keep.owner = data
    return {"addresses_ptr": keep, "lengths_ptr": lengths, "out_ptr": zeros(3)}


class KeepAlive(np.ndarray):
    """An array that holds on to the arrays whose addresses it contains, also when copied."""

    owner = None

    def __array_finalize__(self, other):
        self.owner = getattr(other, "owner", None)


def sum_lists_reference(a):
    data = f64(a["addresses_ptr"].owner)
    return {"out_ptr": np.array([row[:n].sum() for row, n in zip(data, a["lengths_ptr"], strict=True)])}


@triton.jit
def store_then_load(x_ptr, scratch_ptr, out_ptr, BLOCK: tl.constexpr):
    """What a program stores it can load again, here shifted by one element and with a barrier between."""
    offsets = tl.arange(0, BLOCK)
    base = scratch_ptr + tl.program_id(0) * BLOCK
    tl.store(base + offsets, tl.load(x_ptr + offsets) * 2)
    tl.debug_barrier()
    shifted = tl.load(base + (offsets + 1) % BLOCK)
    tl.debug_barrier()
    tl.store(base + offsets, shifted + 1)
    tl.debug_barrier()
    tl.store(out_ptr + tl.program_id(0) * BLOCK + offsets, tl.load(base + BLOCK - 1 - offsets))


def store_then_load_reference(a, programs=2):
    shifted = np.roll(2 * f64(a["x_ptr"]), -1) + 1
    return {"out_ptr": np.stack([shifted[::-1]] * programs)}


@triton.jit
def in_place(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(x_ptr + offsets, tl.flip(x) if n is None else x * x + 1, mask=offsets < n)


@triton.jit
def strided_slice(x_ptr, out_ptr, step, start, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    forward = tl.load(x_ptr + start + offsets * step, mask=mask, other=-1)
    backward = tl.load(x_ptr + start + (n - 1 - offsets) * step, mask=mask, other=-1)
    tl.store(out_ptr + offsets, forward)
    tl.store(out_ptr + BLOCK + offsets, backward)


def strided_slice_reference(a):
    block = a["out_ptr"].shape[1]
    picked = a["x_ptr"][a["start"] :: a["step"]][: a["n"]]
    fill = np.full(block - a["n"], -1)
    return {"out_ptr": np.stack([np.concatenate([picked, fill]), np.concatenate([picked[::-1], fill])])}


@triton.jit
def block_pointer_copy(src_ptr, dst_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, PADDING: tl.constexpr):
    """Reads a window that hangs over all edges, and keeps what the padding gave."""
    src = tl.make_block_ptr(src_ptr, (M, N), (N, 1), (-2, -1), (BLOCK_M, BLOCK_N), (1, 0))
    tile = tl.load(src, boundary_check=(0, 1), padding_option=PADDING)
    dst = tl.make_block_ptr(dst_ptr, (BLOCK_N, BLOCK_M), (1, BLOCK_N), (0, 0), (BLOCK_N, BLOCK_M), (0, 1))
    tl.store(dst, tile.T)


def block_pointer_copy_reference(a, padding):
    x = f64(a["src_ptr"])
    out = np.full(a["dst_ptr"].shape, padding)
    out[2 : 2 + x.shape[0], 1 : 1 + x.shape[1]] = x[: out.shape[0] - 2, : out.shape[1] - 1]
    return {"dst_ptr": out}


@triton.jit
def descriptor_window(src_desc, dst_desc, row, column):
    tile = src_desc.load([row, column])
    dst_desc.store([0, 0], tile * 2)


def descriptor_window_reference(a):
    src = f64(a["src_desc"].array)
    out = np.zeros((16, 16))
    window = src[a["row"] : a["row"] + 16, a["column"] : a["column"] + 16]
    out[: window.shape[0], : window.shape[1]] = 2 * window
    return {"dst_desc": out[:10, :12]}


@triton.jit
def descriptor_reduce(src_ptr, desc, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    desc.atomic_add([0, 0], tl.load(src_ptr + tl.program_id(0) * BLOCK * BLOCK + offsets))


@triton.jit
def cache_hints(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Hints change nothing in the result."""
    start = tl.multiple_of(tl.program_id(0) * BLOCK, 16)
    offsets = tl.max_contiguous(tl.multiple_of(start + tl.arange(0, BLOCK), BLOCK), BLOCK)
    tl.assume(n > 0)
    x = tl.load(x_ptr + offsets, mask=offsets < n, cache_modifier=".cg")
    y = tl.load(x_ptr + offsets, mask=offsets < n, other=1.0, eviction_policy="evict_first")
    z = tl.load(x_ptr + offsets, mask=offsets < n, other=1.0, volatile=True)
    tl.store(out_ptr + offsets, x + y, mask=offsets < n, cache_modifier=".cs")
    tl.store(out_ptr + offsets, x + z, mask=offsets < n, eviction_policy="evict_last")


@triton.jit
def scalar_memory(x_ptr, out_ptr, n):
    """Scalars loaded, combined and stored one by one."""
    best = tl.load(x_ptr)
    where = 0
    for i in range(1, n):
        x = tl.load(x_ptr + i)
        if x > best:
            best = x
            where = i
    tl.store(out_ptr, best)
    tl.store(out_ptr + 1, where.to(tl.float32))


def atomics_case(name, dtype, low, high):
    start = [
        0,
        np.iinfo(dtype).min,
        np.iinfo(dtype).max,
        -1 if np.dtype(dtype).kind == "i" else np.iinfo(dtype).max,
        0,
        5,
        1,
    ]
    return Case(
        name,
        every_atomic,
        lambda rng: {"x_ptr": integers(rng, low, high, 300, dtype=dtype), "out_ptr": np.array(start, dtype), "n": 300},
        every_atomic_reference,
        grid=(5,),
        constexprs={"BLOCK": 64},
        tags=("atomic",),
    )


def float_atomics_case(name, dtype, rtol):
    def inputs(rng):
        out = zeros(3, 4, dtype=dtype)
        out[1], out[2] = -np.inf, np.inf
        return {"x_ptr": normal(rng, 256, dtype=dtype), "out_ptr": out}

    return Case(
        name,
        float_atomics,
        inputs,
        float_atomics_reference,
        grid=(4,),
        constexprs={"BLOCK": 64},
        rtol=rtol,
        atol=rtol,
        tags=("atomic",),
    )


CASES = [
    Case(
        "transpose_copy",
        transpose_copy,
        lambda rng: {"src_ptr": normal(rng, 50, 70), "dst_ptr": zeros(70, 50), "M": 50, "N": 70},
        lambda a: {"dst_ptr": f64(a["src_ptr"]).T},
        grid=(4, 3),
        constexprs={"BLOCK_M": 16, "BLOCK_N": 32},
    ),
    Case(
        "transpose_copy_f16",
        transpose_copy,
        lambda rng: {
            "src_ptr": normal(rng, 64, 128, dtype=np.float16),
            "dst_ptr": zeros(128, 64, dtype=np.float16),
            "M": 64,
            "N": 128,
        },
        lambda a: {"dst_ptr": f64(a["src_ptr"]).T},
        grid=(2, 2),
        constexprs={"BLOCK_M": 32, "BLOCK_N": 64},
        rtol=0,
        atol=0,
    ),
    Case(
        "atomic_histogram",
        atomic_histogram,
        lambda rng: {"x_ptr": integers(rng, 0, 10, 1000), "bins_ptr": zeros(10, dtype=np.int32), "n": 1000},
        lambda a: {"bins_ptr": np.bincount(a["x_ptr"], minlength=10)},
        grid=(8,),
        constexprs={"BLOCK": 128},
        tags=("atomic",),
    ),
    atomics_case("every_atomic_int32", np.int32, -1000, 1000),
    atomics_case("every_atomic_uint32", np.uint32, 0, 2**30),
    atomics_case("every_atomic_int64", np.int64, -(2**50), 2**50),
    atomics_case("every_atomic_uint64", np.uint64, 0, 2**60),
    float_atomics_case("float_atomics", np.float32, 1e-5),
    float_atomics_case("float_atomics_f64", np.float64, 1e-12),
    *(
        Case(
            f"half_atomic_add_{np.dtype(dtype).name}",
            half_atomic_add,
            lambda rng, dtype=dtype: {
                "x_ptr": integers(rng, -8, 8, 4, 32).astype(dtype),
                "out_ptr": zeros(32, dtype=dtype),
            },
            lambda a: {"out_ptr": f64(a["x_ptr"]).sum(0)},
            grid=(4,),
            constexprs={"BLOCK": 32},
            tags=("atomic",),
        )
        for dtype in (np.float16, BF16)
    ),
    Case(
        "tickets",
        tickets,
        lambda rng: {
            "ticket_ptr": zeros(1, dtype=np.int32),
            "order_ptr": zeros(12, dtype=np.int32),
            "last_ptr": zeros(2, dtype=np.int32),
        },
        lambda a: {"ticket_ptr": np.array([0]), "order_ptr": np.ones(12), "last_ptr": np.array([12, 11])},
        grid=(12,),
        tags=("atomic",),
    ),
    Case(
        "spin_lock",
        spin_lock,
        lambda rng: {
            "x_ptr": integers(rng, -9, 9, 16, 64).astype(np.float32),
            "lock_ptr": zeros(1, dtype=np.int32),
            "total_ptr": zeros(64),
        },
        lambda a: {"total_ptr": f64(a["x_ptr"]).sum(0), "lock_ptr": np.array([0])},
        grid=(16,),
        constexprs={"BLOCK": 64},
        tags=("atomic",),
    ),
    Case(
        "gather_rows",
        gather_rows,
        lambda rng: {
            "table_ptr": normal(rng, 20, 30),
            "index_ptr": integers(rng, -3, 23, 32, dtype=np.int64),
            "out_ptr": filled(32, 30, value=9),
            "n_rows": 20,
            "n_cols": 30,
        },
        gather_rows_reference,
        grid=(2,),
        constexprs={"BLOCK_M": 16, "BLOCK_N": 32},
    ),
    Case(
        "scatter",
        scatter,
        lambda rng: {
            "src_ptr": normal(rng, 200),
            "index_ptr": rng.permutation(300)[:200].astype(np.int32),
            "dst_ptr": filled(300, value=4),
            "n": 200,
        },
        scatter_reference,
        grid=(4,),
        constexprs={"BLOCK": 64},
    ),
    Case(
        "choose_pointer",
        choose_pointer,
        lambda rng: {"x_ptr": normal(rng, 64), "y_ptr": normal(rng, 64), "out_ptr": zeros(3, 64)},
        choose_pointer_reference,
        constexprs={"BLOCK": 64},
    ),
    Case("sum_lists", sum_lists, sum_lists_inputs, sum_lists_reference, grid=(3,), constexprs={"BLOCK": 64}, atol=1e-5),
    Case(
        "store_then_load",
        store_then_load,
        lambda rng: {"x_ptr": normal(rng, 128), "scratch_ptr": zeros(2, 128), "out_ptr": zeros(2, 128)},
        store_then_load_reference,
        grid=(2,),
        constexprs={"BLOCK": 128},
    ),
    Case(
        "in_place",
        in_place,
        lambda rng: {"x_ptr": normal(rng, 200), "n": 200},
        lambda a: {"x_ptr": f64(a["x_ptr"]) ** 2 + 1},
        grid=(4,),
        constexprs={"BLOCK": 64},
    ),
    Case(
        "strided_slice",
        strided_slice,
        lambda rng: {
            "x_ptr": integers(rng, 0, 1000, 200),
            "out_ptr": zeros(2, 64, dtype=np.int32),
            "step": 3,
            "start": 5,
            "n": 50,
        },
        strided_slice_reference,
        constexprs={"BLOCK": 64},
    ),
    *(
        Case(
            f"block_pointer_copy_{padding}",
            block_pointer_copy,
            lambda rng: {"src_ptr": normal(rng, 20, 10), "dst_ptr": zeros(32, 16), "M": 20, "N": 10},
            lambda a, value=value: block_pointer_copy_reference(a, value),
            constexprs={"BLOCK_M": 32, "BLOCK_N": 16, "PADDING": padding},
        )
        for padding, value in (("zero", 0.0), ("nan", np.nan))
    ),
    Case(
        "descriptor_window",
        descriptor_window,
        lambda rng: {
            "src_desc": Descriptor(normal(rng, 40, 36), (16, 16)),
            "dst_desc": Descriptor(zeros(10, 12), (16, 16)),
            "row": 30,
            "column": 24,
        },
        descriptor_window_reference,
        tags=("descriptor",),
    ),
    Case(
        "descriptor_reduce",
        descriptor_reduce,
        lambda rng: {"src_ptr": normal(rng, 5, 16, 16), "desc": Descriptor(zeros(12, 16), (16, 16))},
        lambda a: {"desc": f64(a["src_ptr"]).sum(0)[:12]},
        grid=(5,),
        constexprs={"BLOCK": 16},
        atol=1e-5,
        tags=("descriptor", "atomic"),
    ),
    Case(
        "cache_hints",
        cache_hints,
        lambda rng: {"x_ptr": normal(rng, 200), "out_ptr": zeros(200), "n": 200},
        lambda a: {"out_ptr": 2 * f64(a["x_ptr"])},
        grid=(2,),
        constexprs={"BLOCK": 128},
    ),
    Case(
        "scalar_memory",
        scalar_memory,
        lambda rng: {"x_ptr": normal(rng, 50), "out_ptr": zeros(2), "n": 50},
        lambda a: {"out_ptr": np.array([a["x_ptr"].max(), a["x_ptr"].argmax()])},
    ),
]
