"""Programs without a fault: the right results, no alarm, and the counter says what the simulator counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from weft.ir.lane import Value
from weft.sim import Options, count, run

from .kit import Case, Kit

CASES: dict[str, Callable[[], Case]] = {}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


def several(*values: object) -> Callable[[Callable[..., Case]], Callable[..., Case]]:
    """One case for each value."""

    def register(make: Callable[..., Case]) -> Callable[..., Case]:
        for value in values:
            CASES[f"{make.__name__}-{value}"] = lambda v=value: make(v)
        return make

    return register


RNG = np.random.default_rng(7)


def _values(n: int, dtype: object = np.float32) -> np.ndarray:
    return RNG.integers(-50, 50, n).astype(dtype)


# -- memory -----------------------------------------------------------------------------------------------------------


@several("f32", "f16", "bf16", "i8", "i64", "f64")
def copy(elem: str) -> Case:
    dtype = {
        "f32": np.float32,
        "f16": np.float16,
        "bf16": ml_dtypes.bfloat16,
        "i8": np.int8,
        "i64": np.int64,
        "f64": np.float64,
    }[elem]
    k = Kit(f"x:{elem}*", f"y:{elem}*", warps=2)
    index = k.thread()
    k.store("global", k.place("y", index), k.load("global", k.place("x", index), elem))
    x = _values(64, dtype)
    return Case(k.program(), 1, {"x": x, "y": np.zeros_like(x)}, {"y": x})


@several(1, 2, 4)
def vectors(width: int) -> Case:
    k = Kit("x:f32*", "y:f32*", warps=4)
    pid = k.add("program_id", (), [("i32", 1)], {"axis": 0}).result
    index = k.add2(k.thread([0, 128 * width], width), k.mul(pid, 256 * width))
    x = k.load("global", k.place("x", index), "f32", width)
    k.store("global", k.place("y", index), k.op("arith.addf", [x, x], "f32"), width)
    data = _values(3 * 256 * width)
    return Case(k.program(), 3, {"x": data, "y": np.zeros_like(data)}, {"y": data + data})


@several(0, 1, 31, 37, 64)
def masked_add(n: int) -> Case:
    k = Kit("x:f32*", "y:f32*", "z:f32*", "n:i32", warps=2)
    index = k.thread()
    mask = k.less(index, k.arg("n"))
    x, y = (k.load("global", k.place(a, index), "f32", mask=mask) for a in "xy")
    k.store("global", k.place("z", index), k.op("arith.addf", [x, y], "f32"), mask=mask)
    x, y, z = _values(n), _values(n), np.full(64, -1, np.float32)
    want = z.copy()
    want[:n] = x + y
    return Case(k.program(), 1, {"x": x, "y": y, "z": z, "n": n}, {"z": want})


@case
def other_where_masked() -> Case:
    k = Kit("x:i32*", "y:i32*")
    index = k.thread()
    x = k.load("global", k.place("x", index), "i32", mask=k.less(index, 20), other=k.int(7))
    k.store("global", k.place("y", index), x)
    x = _values(20, np.int32)
    return Case(k.program(), 1, {"x": x, "y": np.zeros(32, np.int32)}, {"y": np.append(x, [7] * 12)})


@case
def undefined_not_used() -> Case:
    """What the mask left out is selected away before it is stored."""
    k = Kit("x:i32*", "y:i32*")
    index = k.thread()
    mask = k.less(index, 20)
    x = k.select(mask, k.load("global", k.place("x", index), "i32", mask=mask), k.int(3))
    k.store("global", k.place("y", index), x)
    x = _values(20, np.int32)
    return Case(k.program(), 1, {"x": x, "y": np.zeros(32, np.int32)}, {"y": np.append(x, [3] * 12)})


@case
def one_array_twice() -> Case:
    """Overlapping views of one array."""
    k = Kit("x:i32*", "y:i32*")
    index = k.thread()
    k.store("global", k.place("y", index), k.load("global", k.place("x", index), "i32"))
    whole = np.arange(48, dtype=np.int32)
    want = np.append(whole[:16], whole[:32])
    return Case(k.program(), 1, {"x": whole[:32], "y": whole[16:]}, {"y": want[16:]})


@case
def grid_of_three() -> Case:
    k = Kit("x:i32*")
    ids = [k.add("program_id", (), [("i32", 1)], {"axis": a}).result for a in range(3)]
    sizes = [k.add("num_programs", (), [("i32", 1)], {"axis": a}).result for a in range(3)]
    number = k.add2(k.mul(k.add2(k.mul(ids[2], sizes[1]), ids[1]), sizes[0]), ids[0])
    lane = k.thread()
    k.store("global", k.place("x", k.add2(k.mul(number, 32), lane)), k.add2(k.mul(number, 100), lane))
    want = (np.arange(24)[:, None] * 100 + np.arange(32)).astype(np.int32).ravel()
    return Case(k.program(), (2, 3, 4), {"x": np.zeros(24 * 32, np.int32)}, {"x": want})


@case
def booleans_are_bytes() -> Case:
    k = Kit("x:i1*", "y:i1*")
    index = k.thread()
    x = k.load("global", k.place("x", index), "i1")
    k.store("global", k.place("y", index), k.op("arith.xori", [x, k.constant("i1", 1)], "i1"))
    x = np.arange(32) % 3 == 0
    return Case(k.program(), 1, {"x": x, "y": np.zeros(32, np.bool_)}, {"y": ~x})


# -- lanes ------------------------------------------------------------------------------------------------------------


@several("addf", "maxnumf")
def warp_reduction(name: str) -> Case:
    k = Kit("x:f32*", "y:f32*", warps=2)
    index = k.thread()
    x = k.load("global", k.place("x", index), "f32")
    for distance in (1, 2, 4, 8, 16):
        x = k.op(f"arith.{name}", [x, k.shuffle_xor(x, [distance])], "f32")
    k.store("global", k.place("y", index), x)
    data = _values(64)
    each = data.reshape(2, 32)
    total = each.sum(axis=1) if name == "addf" else each.max(axis=1)
    return Case(
        k.program(), 1, {"x": data, "y": np.zeros(64, np.float32)}, {"y": np.repeat(total, 32).astype(np.float32)}
    )


@several("f64", "i64")
def reverse_by_shuffle(elem: str) -> Case:
    k = Kit(f"x:{elem}*", f"y:{elem}*")
    index = k.thread()
    x = k.load("global", k.place("x", index), elem)
    source = k.op("arith.subi", [k.int(31), index], "i32")
    k.store("global", k.place("y", index), k.shuffle(x, source))
    x = _values(32, np.float64 if elem == "f64" else np.int64)
    return Case(k.program(), 1, {"x": x, "y": np.zeros_like(x)}, {"y": x[::-1]})


@case
def masks_of_registers() -> Case:
    k = Kit("x:i32*", "y:i32*")
    index = k.linear((0, 32, 64, 96), lane=(1, 2, 4, 8, 16))
    x = k.load("global", k.place("x", index), "i32")
    k.store("global", k.place("y", index), k.shuffle_xor(x, (0, 1, 2, 31)))
    x = _values(128, np.int32)
    want = np.concatenate([x[32 * r : 32 * r + 32][np.arange(32) ^ m] for r, m in enumerate((0, 1, 2, 31))])
    return Case(k.program(), 1, {"x": x, "y": np.zeros_like(x)}, {"y": want})


@case
def ballot() -> Case:
    k = Kit("x:i32*", "y:i32*", warps=2)
    index = k.thread()
    positive = k.op("arith.cmpi", [k.load("global", k.place("x", index), "i32"), k.int(0)], "i1", predicate="sgt")
    votes = k.add("ballot", [positive], [("i32", 1)]).result
    k.store("global", k.place("y", index), votes)
    x = _values(64, np.int32)
    bits = [sum(1 << i for i in range(32) if x[32 * w + i] > 0) for w in range(2)]
    return Case(
        k.program(), 1, {"x": x, "y": np.zeros_like(x)}, {"y": np.repeat(np.array(bits, np.uint32).view(np.int32), 32)}
    )


@case
def pack_rename_join_unpack() -> Case:
    k = Kit("x:f16*", "y:f16*")
    index = k.thread(step=4)
    x = k.load("global", k.place("x", index), "f16", 4)
    packed = k.add("pack", [k.rename(x, (1, 0, 3, 2))], [("i32", 2)]).result
    low, high = k.rename(packed, (0,)), k.rename(packed, (1,))
    joined = k.add("join", [high, low], [("i32", 2)]).result
    k.store("global", k.place("y", index), k.add("unpack", [joined], [("f16", 4)]).result, 4)
    x = _values(128, np.float16)
    return Case(k.program(), 1, {"x": x, "y": np.zeros_like(x)}, {"y": x.reshape(32, 4)[:, [3, 2, 1, 0]].ravel()})


# -- shared memory ----------------------------------------------------------------------------------------------------


@several("block", "warp")
def transpose(scope: str) -> Case:
    """32 x n through shared memory: rows in, columns out; within a warp its barrier is enough."""
    warps = 4 if scope == "block" else 1
    k = Kit("x:i32*", "y:i32*", warps=warps)
    n = 8 * warps
    index = k.thread(tuple(range(0, 32 * n, 32 * warps)))
    buffer = k.shared(32 * n * 4)
    k.store("shared", k.add2(buffer, k.mul(index, 4)), k.load("global", k.place("x", index), "i32"))
    k.barrier(scope)
    row = k.op("arith.remui", [index, k.int(32)], "i32")
    column = k.op("arith.divui", [index, k.int(32)], "i32")
    y = k.load("shared", k.add2(buffer, k.mul(k.add2(k.mul(row, n), column), 4)), "i32")
    k.store("global", k.place("y", index), y)
    x = _values(32 * n, np.int32)
    return Case(k.program(), 2, {"x": x, "y": np.zeros_like(x)}, {"y": x.reshape(32, n).T.ravel()})


@case
def own_value_without_barrier() -> Case:
    """A thread may read what it wrote."""
    k = Kit("x:i32*", warps=2)
    index = k.thread()
    place = k.add2(k.shared(256), k.mul(index, 4))
    k.store("shared", place, index)
    k.store("global", k.place("x", index), k.load("shared", place, "i32"))
    return Case(k.program(), 1, {"x": np.zeros(64, np.int32)}, {"x": np.arange(64)})


@case
def all_read_one() -> Case:
    k = Kit("x:i32*", warps=4)
    index = k.thread()
    buffer = k.shared(512)
    k.store("shared", k.add2(buffer, k.mul(index, 4)), index)
    k.barrier()
    total = k.load("shared", k.add2(buffer, 40), "i32")
    k.barrier()
    k.store("shared", k.add2(buffer, k.mul(index, 4)), total)
    k.barrier()
    k.store("global", k.place("x", index), k.load("shared", k.add2(buffer, 500), "i32"))
    return Case(k.program(), 3, {"x": np.zeros(128, np.int32)}, {"x": np.full(128, 10)})


@several(2, 4, 8)
def block_reduction(warps: int) -> Case:
    """Shuffles, then one word of each warp through shared memory."""
    k = Kit("x:i32*", "y:i32*", warps=warps)
    index = k.thread()
    x = k.load("global", k.place("x", index), "i32")
    for distance in (1, 2, 4, 8, 16):
        x = k.op("arith.addi", [x, k.shuffle_xor(x, [distance])], "i32")
    buffer = k.shared(4 * warps)
    warp = k.op("arith.divui", [index, k.int(32)], "i32")
    first = k.equal(k.linear((0,), lane=(1, 2, 4, 8, 16)), 0)
    k.store("shared", k.add2(buffer, k.mul(warp, 4)), x, mask=first)
    k.barrier()
    parts = k.load("shared", k.add2(buffer, k.linear(tuple(4 * i for i in range(warps)))), "i32")
    total = k.rename(parts, (0,))
    for i in range(1, warps):
        total = k.op("arith.addi", [total, k.rename(parts, (i,))], "i32")
    k.store("global", k.place("y", index), total)
    x = _values(32 * warps, np.int32)
    return Case(k.program(), 1, {"x": x, "y": np.zeros_like(x)}, {"y": np.full(32 * warps, x.sum(), np.int32)})


@case
def same_value_twice() -> Case:
    """Lanes that hold copies write them to one place."""
    k = Kit("x:i32*", warps=2)
    index = k.thread()
    half = k.linear((0,), lane=(0, 4, 8, 16, 32), warp=(64,))
    buffer = k.shared(128)
    k.store("shared", k.add2(buffer, half), half)
    k.barrier()
    k.store("global", k.place("x", index), k.load("shared", k.add2(buffer, half), "i32"))
    want = np.repeat(np.arange(32) * 4, 2)
    return Case(k.program(), 1, {"x": np.zeros(64, np.int32)}, {"x": want})


@case
def two_buffers_in_turn() -> Case:
    """Two buffers, so that one barrier each iteration is enough."""
    k = Kit("x:i32*", warps=4)
    index = k.thread()
    buffers = k.shared(1024)

    def body(i: Value, value: Value) -> list[Value]:
        half = k.mul(k.op("arith.andi", [i, k.int(1)], "i32"), 512)
        place = k.add2(buffers, half)
        k.store("shared", k.add2(place, k.mul(index, 4)), value)
        k.barrier()
        neighbour = k.op("arith.xori", [index, k.int(33)], "i32")
        return [k.add2(k.load("shared", k.add2(place, k.mul(neighbour, 4)), "i32"), 1)]

    (result,) = k.loop([k.int(0), k.int(6), k.int(1)], [index], body)
    k.store("global", k.place("x", index), result)
    return Case(k.program(), 2, {"x": np.zeros(128, np.int32)}, {"x": np.arange(128) + 6})


@several("add", "max", "umin", "xor", "exch")
def shared_atomics(kind: str) -> Case:
    k = Kit("x:i32*", warps=2)
    index = k.thread()
    buffer = k.shared(16)
    k.store("shared", buffer, k.int(5), mask=k.equal(index, 0))
    k.barrier()
    value = index if kind != "exch" else k.int(9)
    k.atomic("shared", kind, buffer, value)
    k.barrier()
    k.store("global", k.place("x", index), k.load("shared", buffer, "i32"))
    threads = np.arange(64)
    want = {"add": 5 + threads.sum(), "max": 63, "umin": 0, "xor": 5 ^ np.bitwise_xor.reduce(threads), "exch": 9}[kind]
    return Case(k.program(), 1, {"x": np.zeros(64, np.int32)}, {"x": np.full(64, want)})


# -- atomics of global memory -----------------------------------------------------------------------------------------


@several("i32", "i64", "f32", "f16")
def histogram(elem: str) -> Case:
    k = Kit("x:i32*", f"h:{elem}*", warps=2)
    pid = k.add("program_id", (), [("i32", 1)], {"axis": 0}).result
    index = k.add2(k.thread(), k.mul(pid, 64))
    bin_ = k.op("arith.andi", [k.load("global", k.place("x", index), "i32"), k.int(7)], "i32")
    k.atomic("global", "fadd" if elem[0] == "f" else "add", k.place("h", bin_), k.constant(elem, 1))
    x = _values(256, np.int32)
    dtype = {"i32": np.int32, "i64": np.int64, "f32": np.float32, "f16": np.float16}[elem]
    return Case(k.program(), 4, {"x": x, "h": np.zeros(8, dtype)}, {"h": np.bincount(x & 7, minlength=8).astype(dtype)})


@case
def every_thread_a_ticket() -> Case:
    k = Kit("n:i32*", "x:i32*", warps=4)
    old = k.atomic("global", "add", k.arg("n"), k.int(1))
    one = k.op("arith.muli", [old, k.int(0)], "i32")
    k.store("global", k.place("x", old), k.add2(one, 1))
    return Case(
        k.program(),
        2,
        {"n": np.zeros(1, np.int32), "x": np.zeros(256, np.int32)},
        {"n": np.array([256]), "x": np.ones(256)},
    )


@case
def compare_and_swap() -> Case:
    k = Kit("x:i32*", "y:i32*")
    index = k.thread()
    place = k.place("x", index)
    old = k.add("compare_and_swap", [place, k.int(1), k.int(5)], [("i32", 1)], {"space": "global"}).result
    k.store("global", k.place("y", index), old)
    x = (np.arange(32) % 3).astype(np.int32)
    return Case(k.program(), 1, {"x": x, "y": np.zeros(32, np.int32)}, {"x": np.where(x == 1, 5, x), "y": x.copy()})


# -- asynchronous copies ----------------------------------------------------------------------------------------------


@several(4, 8, 16)
def async_copy(size: int) -> Case:
    k = Kit("x:i32*", "y:i32*", warps=2)
    words = size // 4
    index = k.thread(step=words)
    buffer = k.shared(64 * size)
    place = k.add2(buffer, k.mul(index, 4))
    k.copy_async(place, k.place("x", index), size)
    k.add("commit_async")
    k.add("wait_async", attrs={"pending": 0})
    k.barrier()
    back = k.op("arith.subi", [k.int(63 * words), index], "i32")
    k.store("global", k.place("y", index), k.load("shared", k.add2(buffer, k.mul(back, 4)), "i32", words), words)
    x = _values(64 * words, np.int32)
    return Case(k.program(), 1, {"x": x, "y": np.zeros_like(x)}, {"y": x.reshape(64, words)[::-1].ravel()})


@case
def async_copy_masked_is_zero() -> Case:
    k = Kit("x:i32*", "y:i32*")
    index = k.thread()
    place = k.add2(k.shared(128), k.mul(index, 4))
    k.copy_async(place, k.place("x", index), 4, k.less(index, 20))
    k.add("commit_async")
    k.add("wait_async", attrs={"pending": 0})
    k.store("global", k.place("y", index), k.load("shared", place, "i32"))
    x = _values(20, np.int32)
    return Case(k.program(), 1, {"x": x, "y": np.ones(32, np.int32)}, {"y": np.append(x, np.zeros(12))})


@several(2, 3, 4)
def pipeline(stages: int) -> Case:
    """Sums 8 tiles, `stages` - 1 copies ahead."""
    tiles = 8
    k = Kit("x:i32*", "y:i32*", warps=4)
    index = k.thread()
    buffers = k.shared(512 * stages)

    def issue(tile: Value) -> None:
        slot = k.op("arith.remui", [tile, k.int(stages)], "i32")
        place = k.add2(buffers, k.add2(k.mul(slot, 512), k.mul(index, 4)))
        k.copy_async(place, k.place("x", k.add2(k.mul(tile, 128), index)), 4, k.less(tile, tiles))
        k.add("commit_async")

    for stage in range(stages - 1):
        issue(k.int(stage))

    def body(i: Value, total: Value) -> list[Value]:
        k.add("wait_async", attrs={"pending": stages - 2})
        k.barrier()
        slot = k.op("arith.remui", [i, k.int(stages)], "i32")
        other = k.op("arith.xori", [index, k.int(64)], "i32")
        value = k.load("shared", k.add2(buffers, k.add2(k.mul(slot, 512), k.mul(other, 4))), "i32")
        issue(k.add2(i, stages - 1))
        return [k.op("arith.addi", [total, value], "i32")]

    (total,) = k.loop([k.int(0), k.int(tiles), k.int(1)], [k.int(0)], body)
    k.store("global", k.place("y", index), total)
    x = _values(128 * tiles, np.int32)
    want = x.reshape(tiles, 128).sum(axis=0)[np.arange(128) ^ 64]
    return Case(k.program(), 1, {"x": x, "y": np.zeros(128, np.int32)}, {"y": want})


# -- control flow -----------------------------------------------------------------------------------------------------


@case
def loop_with_trips_of_data() -> Case:
    k = Kit("n:i32*", "y:i32*")
    pid = k.add("program_id", (), [("i32", 1)], {"axis": 0}).result
    trips = k.load("global", k.place("n", pid), "i32")
    (total,) = k.loop([k.int(0), trips, k.int(1)], [k.int(0)], lambda i, t: [k.add2(t, i)])
    k.store("global", k.place("y", pid), total)
    n = np.array([0, 5, 3, 5, 9, 1], np.int32)
    return Case(k.program(), 6, {"n": n, "y": np.zeros(6, np.int32)}, {"y": n * (n - 1) // 2})


@case
def while_with_trips_of_data() -> Case:
    """Steps of Collatz; blocks leave the loop at different times."""
    k = Kit("n:i32*", "y:i32*")
    pid = k.add("program_id", (), [("i32", 1)], {"axis": 0}).result
    start = k.load("global", k.place("n", pid), "i32")

    def before(value: Value, steps: Value) -> list[Value]:
        return [k.op("arith.cmpi", [value, k.int(1)], "i1", predicate="ne"), value, steps]

    def after(value: Value, steps: Value) -> list[Value]:
        odd = k.equal(k.op("arith.andi", [value, k.int(1)], "i32"), 1)
        half = k.op("arith.shrui", [value, k.int(1)], "i32")
        return [k.select(odd, k.add2(k.mul(value, 3), 1), half), k.add2(steps, 1)]

    _, steps = k.repeat([start, k.int(0)], before, after)
    k.store("global", k.place("y", pid), steps)
    n = np.arange(1, 13, dtype=np.int32)

    def collatz(v: int) -> int:
        return 0 if v == 1 else 1 + collatz(3 * v + 1 if v % 2 else v // 2)

    return Case(
        k.program(), 12, {"n": n, "y": np.zeros(12, np.int32)}, {"y": np.array([collatz(v) for v in range(1, 13)])}
    )


@several(0, 1, 2)
def if_by_program(where: int) -> Case:
    """A branch that blocks take differently, with values and with effects."""
    k = Kit("y:i32*", "z:i32*", warps=2)
    pid = k.add("program_id", (), [("i32", 1)], {"axis": 0}).result
    index = k.add2(k.mul(pid, 64), k.thread())

    def then() -> list[Value]:
        k.store("global", k.place("z", index), k.int(1))
        return [k.add2(index, 1000)]

    (value,) = k.when(k.equal(pid, where), then, lambda: [index], [("i32", 1)])
    k.store("global", k.place("y", index), value)
    n = np.arange(192)
    mine = n // 64 == where
    return Case(
        k.program(), 3, {"y": np.zeros(192, np.int32), "z": np.zeros(192, np.int32)}, {"y": n + 1000 * mine, "z": mine}
    )


@case
def if_by_warp() -> Case:
    """Warps of one block take different branches and meet again at a barrier."""
    k = Kit("y:i32*", warps=4)
    index = k.thread()
    warp = k.linear((0,), warp=(1, 2))
    buffer = k.shared(512)
    place = k.add2(buffer, k.mul(index, 4))
    k.when(k.less(warp, 1), lambda: k.store("shared", place, k.int(7)), lambda: k.store("shared", place, k.int(8)))
    k.barrier()
    other = k.op("arith.xori", [index, k.int(32)], "i32")
    k.store("global", k.place("y", index), k.load("shared", k.add2(buffer, k.mul(other, 4)), "i32"))
    return Case(k.program(), 2, {"y": np.zeros(128, np.int32)}, {"y": np.where(np.arange(128) // 32 == 1, 7, 8)})


@case
def return_early() -> Case:
    k = Kit("y:i32*")
    pid = k.add("program_id", (), [("i32", 1)], {"axis": 0}).result
    k.when(k.less(pid, 2), lambda: (k.add("return"), ())[1])
    k.store("global", k.place("y", pid), k.int(1))
    return Case(k.program(), 5, {"y": np.zeros(5, np.int32)}, {"y": np.array([0, 0, 1, 1, 1])})


@case
def spin_lock_between_programs() -> Case:
    """Each program waits until it is its turn, with atomics."""
    k = Kit("turn:i32*", "y:i32*")
    pid = k.add("program_id", (), [("i32", 1)], {"axis": 0}).result

    def before(value: Value) -> list[Value]:
        return [k.op("arith.cmpi", [value, pid], "i1", predicate="ne"), value]

    def again(_: Value) -> list[Value]:
        got = k.atomic("global", "add", k.arg("turn"), k.int(0), k.equal(k.thread(), 0))
        return [k.shuffle(got, k.int(0))]

    k.repeat([k.int(-1)], before, again)
    first = k.equal(k.thread(), 0)
    k.store("global", k.place("y", k.load("global", k.arg("turn"), "i32")), pid, mask=first)
    k.barrier()
    k.atomic("global", "add", k.arg("turn"), k.int(1), first)
    return Case(
        k.program(),
        6,
        {"turn": np.zeros(1, np.int32), "y": np.zeros(6, np.int32)},
        {"y": np.arange(6), "turn": np.array([6])},
    )


@case
def named_barriers() -> Case:
    """Producers and consumers: barrier 1 says that there is something, for all four warps."""
    k = Kit("y:i32*", warps=4)
    index = k.thread()
    warp = k.linear((0,), warp=(1, 2))
    buffer = k.shared(256)
    meet = {"scope": "block", "id": 1, "warps": 4, "inserted": False}

    def produce() -> list[Value]:
        k.store("shared", k.add2(buffer, k.mul(index, 4)), k.mul(index, 3))
        k.add("barrier", attrs=meet)
        return [k.int(0)]

    def consume() -> list[Value]:
        k.add("barrier", attrs=meet)
        return [k.load("shared", k.add2(buffer, k.mul(k.add2(index, -64), 4)), "i32")]

    (value,) = k.when(k.less(warp, 2), produce, consume, [("i32", 1)])
    k.store("global", k.place("y", index), value)
    n = np.arange(128)
    return Case(k.program(), 2, {"y": np.zeros(128, np.int32)}, {"y": np.where(n < 64, 0, 3 * (n - 64))})


@case
def mbarrier_producer_consumer() -> Case:
    """One warp fills a buffer iteration after iteration, another one reads it; full and empty barriers."""
    k = Kit("y:i32*", warps=2)
    lane = k.linear((0,), lane=(1, 2, 4, 8, 16))
    warp = k.linear((0,), warp=(1,))
    full, empty, buffer = k.shared(8), k.shared(8), k.shared(128)
    place = k.add2(buffer, k.mul(lane, 4))

    def init() -> None:
        for barrier in (full, empty):
            k.instruction("mbarrier.init", [barrier, k.int(1)])

    k.when(k.equal(warp, 0), init)
    k.barrier()
    bounds = [k.int(0), k.int(4), k.int(1)]

    def produce() -> list[Value]:
        def iteration(i: Value) -> list[Value]:
            parity = k.op("arith.xori", [k.op("arith.andi", [i, k.int(1)], "i32"), k.int(1)], "i32")
            k.instruction("mbarrier.wait.parity", [empty, parity])
            k.store("shared", place, k.add2(k.mul(i, 100), lane))
            k.barrier("warp")
            k.instruction("mbarrier.arrive", [full, k.int(1)])
            return []

        k.loop(bounds, [], iteration)
        return [k.int(0)]

    def consume() -> list[Value]:
        def iteration(i: Value, total: Value) -> list[Value]:
            k.instruction("mbarrier.wait.parity", [full, k.op("arith.andi", [i, k.int(1)], "i32")])
            opposite = k.add2(buffer, k.mul(k.op("arith.xori", [lane, k.int(31)], "i32"), 4))
            value = k.load("shared", opposite, "i32")
            k.barrier("warp")
            k.instruction("mbarrier.arrive", [empty, k.int(1)])
            return [k.op("arith.addi", [total, value], "i32")]

        return list(k.loop(bounds, [k.int(0)], iteration))

    (value,) = k.when(k.equal(warp, 0), produce, consume, [("i32", 1)])
    k.store("global", k.place("y", k.thread()), value)
    want = np.append(np.zeros(32), 600 + 4 * (31 - np.arange(32)))
    return Case(k.program(), 2, {"y": np.ones(64, np.int32)}, {"y": want})


# -- matrices ---------------------------------------------------------------------------------------------------------


@several("f16", "bf16")
def matrix_product(elem: str) -> Case:
    """16x8x16: ldmatrix for A, its transpose for B, one mma."""
    dtype = np.float16 if elem == "f16" else ml_dtypes.bfloat16
    k = Kit(f"a:{elem}*", f"b:{elem}*", "c:f32*")
    a_tile, b_tile = k.shared(512), k.shared(256)
    index = k.thread(step=8)
    k.store("shared", k.add2(a_tile, k.mul(index, 2)), k.load("global", k.place("a", index), elem, 8), 8)
    half = k.thread(step=4)
    k.store("shared", k.add2(b_tile, k.mul(half, 2)), k.load("global", k.place("b", half), elem, 4), 4)
    k.barrier("warp")
    rows = k.linear((0,), lane=(32, 64, 128, 256, 16))
    a = k.instruction("ldmatrix.x4", [k.add2(a_tile, rows)], [("i16", 8)]).results[0]
    b_rows = k.linear((0,), lane=(16, 32, 64, 128, 0))
    b = k.instruction("ldmatrix.trans.x2", [k.add2(b_tile, b_rows)], [("i16", 4)]).results[0]
    a, b = (k.op("arith.bitcast", [v], elem) for v in (a, b))
    zero = k.rename(k.constant("f32", 0), (0, 0, 0, 0))
    name = f"mma.sync.m16n8k16.f32.{elem}.{elem}.f32"
    c = k.instruction(name, [a, b, zero], [("f32", 4)]).results[0]
    place = k.linear((0, 64), lane=(2, 4, 8, 16, 32))
    k.store("global", k.place("c", place), c, 2)
    x, y = RNG.integers(-5, 5, (16, 16)).astype(dtype), RNG.integers(-5, 5, (16, 8)).astype(dtype)
    want = x.astype(np.float32) @ y.astype(np.float32)
    return Case(k.program(), 1, {"a": x, "b": y, "c": np.zeros((16, 8), np.float32)}, {"c": want})


@case
def stmatrix_turns_a_tile() -> Case:
    k = Kit("x:i16*", "y:i16*")
    tile = k.shared(512)
    fragment = k.linear((0, 1, 128, 129, 8, 9, 136, 137), lane=(2, 4, 16, 32, 64))
    x = k.load("global", k.place("x", fragment), "i16")
    rows = k.linear((0,), lane=(32, 64, 128, 16, 256))
    k.instruction("stmatrix.trans.x4", [k.add2(tile, rows), x])
    k.barrier("warp")
    index = k.thread(step=8)
    y = k.load("shared", k.add2(tile, k.mul(index, 2)), "i16", 8)
    k.store("global", k.place("y", index), y, 8)
    x = np.arange(256, dtype=np.int16).reshape(16, 16)
    return Case(k.program(), 1, {"x": x, "y": np.zeros_like(x)}, {"y": x.T})


ALL = [(copies, order) for copies in ("earliest", "latest") for order in ("forward", "backward", "random")]


@pytest.mark.parametrize("copies,order", ALL)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.thinned(3)
def test_clean(name: str, copies: str, order: str) -> None:
    made = CASES[name]()
    arguments = {n: v.copy() if isinstance(v, np.ndarray) and v.base is None else v for n, v in made.arguments.items()}
    report = run(made.program, made.grid, arguments, Options(copies=copies, order=order, seed=3))
    assert not report.errors
    for parameter, want in made.expected.items():
        np.testing.assert_array_equal(np.asarray(arguments[parameter]), want)


UNCOUNTABLE = ("loop_with_trips_of_data", "while_with_trips_of_data", "spin_lock_between_programs")


@pytest.mark.parametrize("name", [n for n in CASES if n not in UNCOUNTABLE])
@pytest.mark.thinned(3)
def test_counter_agrees(name: str) -> None:
    made = CASES[name]()
    ran = run(made.program, made.grid, made.arguments)
    scalars = {n: v for n, v in made.arguments.items() if not isinstance(v, np.ndarray)}
    counted = count(made.program, made.grid, scalars)
    if not counted.exact:
        assert name.startswith(("histogram", "every_thread_a_ticket")), "only data may keep the counter from knowing"
        assert counted.kinds == ran.kinds
        return
    assert counted.lines == ran.lines


def test_blocks_one_by_one_are_the_same() -> None:
    for name, make in CASES.items():
        if name == "spin_lock_between_programs":
            continue
        made = make()
        run(made.program, made.grid, made.arguments, Options(together=1))
        for parameter, want in made.expected.items():
            np.testing.assert_array_equal(made.arguments[parameter], want, err_msg=name)


def test_vector_add_is_fast() -> None:
    """1,024 programs of 1,024 elements."""
    k = Kit("x:f32*", "y:f32*", "z:f32*", "n:i32", warps=4)
    pid = k.add("program_id", (), [("i32", 1)], {"axis": 0}).result
    index = k.add2(k.thread([0, 512], 4), k.mul(pid, 1024))
    mask = k.less(index, k.arg("n"))
    x, y = (k.load("global", k.place(a, index), "f32", 4, mask) for a in "xy")
    k.store("global", k.place("z", index), k.op("arith.addf", [x, y], "f32"), 4, mask)
    n = 1 << 20
    x, y, z = RNG.random(n, np.float32), RNG.random(n, np.float32), np.zeros(n, np.float32)
    start = time.process_time()
    report = run(k.program(), 1024, {"x": x, "y": y, "z": z, "n": n})
    assert time.process_time() - start < 2
    np.testing.assert_array_equal(z, x + y)
    assert report["global_load_sectors"] == 2 * n // 8 and report["global_store_bytes"] == 4 * n


def test_blocks_of_a_cluster_wait_for_each_other() -> None:
    """Each block adds to the other's number after both have arrived."""
    k = Kit("x:i32*", "y:i32*", warps=2)
    block = k.linear((0,), warp=(), block=(1,))
    here = k.add2(k.mul(k.add("program_id", (), [("i32", 1)], {"axis": 0}).result, 2), block)
    there = k.op("arith.xori", [here, k.int(1)], "i32")
    k.store("global", k.place("x", here), k.mul(here, 10))
    k.instruction("barrier.cluster.arrive", [])
    k.instruction("barrier.cluster.wait", [])
    k.store("global", k.place("y", here), k.load("global", k.place("x", there), "i32"))
    program = replace(k.program(), blocks=2)
    for order in ("forward", "backward", "random"):
        x, y = np.zeros(8, np.int32), np.zeros(8, np.int32)
        run(program, 4, {"x": x, "y": y}, Options(order=order))
        np.testing.assert_array_equal(y, 10 * (np.arange(8) ^ 1))
