"""For entries of the instruction table that touch memory, or wait, programs that run each alone.

`cases(name, by_table)` gives them. With `by_table` every instruction is the table's own text, for the GPU; without,
those that only order others are the operations of lane programs that mean the same, for the simulator. Every loop has a
bound: what has not come after so many iterations is not waited for, and the results then differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from sim.kit import Case, Kit
from weft.ir.lane import Parameter, Value
from weft.targets.instruction import Array
from weft.targets.nvidia import INSTRUCTIONS
from weft.targets.nvidia.bulk import REDUCTIONS

__all__ = ["FAMILIES", "cases"]

ITERATIONS = 1 << 7
"""How often a program asks whether a phase has ended; each question may wait for some milliseconds."""
SHAPE = (40, 5, 4, 3, 2)
BOX = (32, 4, 2, 2, 1)
INSIDE = (16, 2, 0, 2, 0)
"""Elements of a tensor and of a box along each dimension, and where boxes begin that reach beyond the end."""

Make = Callable[[str, bool], Iterator[Case]]
FAMILIES: dict[str, tuple[tuple[str, ...], Make]] = {}
"""The entries of a family, and what makes its cases."""


def family(*prefixes: str, but: str | tuple[str, ...] = "wgmma") -> Callable[[Make], Make]:
    """Register what makes the cases of the entries whose names begin so, but for some."""

    def register(make: Make) -> Make:
        found = tuple(name for name in INSTRUCTIONS if name.startswith(prefixes) and not name.startswith(but))
        FAMILIES[make.__name__] = (found, make)
        return make

    return register


def cases(name: str, by_table: bool) -> Iterator[Case]:
    """The programs that run an entry, with fresh arguments."""
    for names, make in FAMILIES.values():
        if name in names:
            yield from make(name, by_table)


def words(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-(1 << 31), 1 << 31, count, np.int32, endpoint=False)


def lane_of(k: Kit) -> Value:
    return k.linear((0,), lane=(1, 2, 4, 8, 16))


def order(k: Kit, by_table: bool, name: str, operands: Sequence[Value], otherwise: Callable[[], Any]) -> None:
    """An instruction that orders others, or the operation that means the same."""
    if by_table:
        k.instruction(name, operands)
    else:
        otherwise()


# -- registers --------------------------------------------------------------------------------------------------------


@family("lop3")
def logic(name: str, by_table: bool) -> Iterator[Case]:
    for table in (0x00, 0x96, 0xE8, 0xCA, 0xFE, 0x17):
        k = Kit("a:i32*", "b:i32*", "c:i32*", "y:i32*")
        index = k.thread()
        given = [k.load("global", k.place(x, index), "i32") for x in "abc"]
        made = k.instruction(name, [*given, k.int(table)], [("i32", 1)]).result
        k.store("global", k.place("y", index), made)
        yield Case(k.program(), 1, {**{x: words(32, i) for i, x in enumerate("abc")}, "y": np.zeros(32, np.int32)})


@family("setmaxnreg")
def budgets(name: str, by_table: bool) -> Iterator[Case]:
    """Registers are given up and taken back; what the others hold is as it was."""
    k = Kit("x:i32*", "y:i32*", warps=4)
    index = k.thread((0, 128, 256, 384))
    x = k.load("global", k.place("x", index), "i32")
    k.instruction("setmaxnreg.dec", [k.int(40)])
    doubled = k.op("arith.addi", [x, x], "i32")
    k.instruction("setmaxnreg.inc", [k.int(64)])
    k.store("global", k.place("y", index), doubled)
    yield Case(replace(k.program(), registers=64), 2, {"x": words(512), "y": np.zeros(512, np.int32)})


@family("turn.")
def turns(name: str, by_table: bool) -> Iterator[Case]:
    """Two warp groups take turns; what each holds is as it was."""
    k = Kit("x:i32*", "y:i32*", warps=8)
    index = k.thread((0, 256, 512, 768))
    group = k.linear((0,), warp=(0, 0, 1))
    held = k.load("global", k.place("x", index), "i32")
    for step in ("begin", *("take", "pass") * 3, "end"):
        k.instruction(f"turn.{step}", [group])
        held = k.op("arith.addi", [held, k.int(1)], "i32")
    k.store("global", k.place("y", index), held)
    yield Case(k.program(), 2, {"x": words(1024), "y": np.zeros(1024, np.int32)})


# -- copies, barriers, fences -----------------------------------------------------------------------------------------


@family("cp.async.ca", "cp.async.cg", "cp.async.commit_group", "cp.async.wait_group")
def copies(name: str, by_table: bool) -> Iterator[Case]:
    """Each lane copies from 0 to all of its bytes; the rest is zero."""
    kind = name if name.startswith("cp.async.c") and name[-1].isdigit() else "cp.async.ca.8"
    width = int(kind.rpartition(".")[2])
    each = width // 4
    for seed in range(3):
        k = Kit("x:i32*", "sizes:i32*", "y:i32*")
        index = k.thread()
        to = k.add2(k.shared(32 * width), k.mul(index, width))
        size = k.load("global", k.place("sizes", index), "i32")
        k.instruction(kind, [to, k.place("x", k.mul(index, each)), size])
        order(k, by_table, "cp.async.commit_group", [], lambda: k.add("commit_async"))
        order(k, by_table, "cp.async.wait_group", [k.int(0)], lambda: k.add("wait_async", (), (), {"pending": 0}))
        k.store("global", k.place("y", k.mul(index, each)), k.load("shared", to, "i32", each), each)
        sizes = np.random.default_rng(seed).integers(0, width, 32, np.int32, endpoint=True)
        yield Case(k.program(), 1, {"x": words(32 * each), "sizes": sizes, "y": np.zeros(32 * each, np.int32)})


SCOPES = (("cta", "block"), ("gpu", "device"), ("sys", "system"))
ORDERED: dict[str, tuple[int, Callable[[Kit], Any]]] = {
    "bar.sync": (4, lambda k: k.barrier()),
    "bar.warp.sync": (1, lambda k: k.barrier("warp")),
    **{
        f"fence.acq_rel.{scope}": (1, lambda k, kind=kind: k.add("fence", (), (), {"kind": kind}))
        for scope, kind in SCOPES
    },
    **{
        f"fence.acquire.{scope}": (1, lambda k, kind=kind: k.add("fence", (), (), {"kind": f"acquire.{kind}"}))
        for scope, kind in SCOPES
    },
}


@family("bar.", "fence.acq_rel", "fence.acquire")
def barriers(name: str, by_table: bool) -> Iterator[Case]:
    """What one thread stores another loads, whose number has the other bits."""
    warps, otherwise = ORDERED[name]
    k = Kit("x:i32*", "y:i32*", warps=warps)
    index = k.thread()
    buffer = k.shared(128 * warps)
    k.store("shared", k.add2(buffer, k.mul(index, 4)), k.load("global", k.place("x", index), "i32"))
    numbers = [k.int(1), k.int(32 * warps)] if name == "bar.sync" else []
    order(k, by_table, name, numbers, lambda: otherwise(k))
    if name.startswith("fence"):
        k.barrier("warp")
    other = k.op("arith.xori", [index, k.int(32 * warps - 1)], "i32")
    k.store("global", k.place("y", index), k.load("shared", k.add2(buffer, k.mul(other, 4)), "i32"))
    yield Case(k.program(), 2, {"x": words(32 * warps), "y": np.zeros(32 * warps, np.int32)})


@family("barrier.cluster")
def clusters(name: str, by_table: bool) -> Iterator[Case]:
    """Two blocks read each other's memory between two barriers; an arrival that orders nothing else comes before."""
    k = Kit("x:i32*", "y:i32*")
    for step in (name, "barrier.cluster.wait") if ".made." in name else ():
        k.instruction(step, [])
    rank = k.linear((0,), block=(1,))
    index = k.linear((0,), lane=(1, 2, 4, 8, 16), block=(32,))
    place = k.add2(k.shared(128), k.mul(lane_of(k), 4))
    k.store("shared", place, k.load("global", k.place("x", index), "i32"))
    together(k)
    there = k.remote(place, k.op("arith.xori", [rank, k.int(1)], "i32"))
    k.store("global", k.place("y", index), k.load("cluster", there, "i32"))
    together(k)
    yield Case(replace(k.program(), blocks=2), 1, {"x": words(64), "y": np.zeros(64, np.int32)})


def together(k: Kit) -> None:
    for step in ("arrive", "wait"):
        k.instruction(f"barrier.cluster.{step}", [])


# -- mbarriers --------------------------------------------------------------------------------------------------------


def ended(k: Kit, barrier: Value, parity: int) -> Value:
    """Whether the phase of a parity ends within ITERATIONS questions, as i32."""

    def ask(_: Value, done: Value) -> list[Value]:
        now = k.instruction("mbarrier.try_wait.parity", [barrier, k.int(parity)], [("i32", 1)]).result
        return [k.op("arith.ori", [done, now], "i32")]

    def whole() -> list[Value]:
        return list(k.loop([k.int(0), k.int(ITERATIONS), k.int(1)], [k.int(0)], ask))

    first = k.instruction("mbarrier.try_wait.parity", [barrier, k.int(parity)], [("i32", 1)]).result
    found: Value = k.when(k.equal(first, 0), whole, lambda: [first], [("i32", 1)])[0]
    return found


def begun(k: Kit, count: int) -> Value:
    """An mbarrier for so many arrivals, seen by all and by the copy engine."""
    barrier = k.shared(128)
    k.instruction("mbarrier.init", [barrier, k.int(count)])
    if k.target.endswith("90"):
        k.instruction("fence.mbarrier_init", [])
        k.add("fence", (), (), {"kind": "async"})
    k.barrier("warp")
    return barrier


def ask(k: Kit, barrier: Value) -> list[Value]:
    """Whether the phases of parity 0 and 1 have ended."""
    k.barrier("warp")
    asked = "mbarrier.try_wait.parity"
    return [k.instruction(asked, [barrier, k.int(parity)], [("i32", 1)]).result for parity in (0, 1)]


def one(k: Kit, answers: Sequence[Value]) -> Value:
    """Lane 0, once it has the last two answers, one of which is always no.

    A question waits for some time whether the phase ends, while the lanes go on until they need what it answers: what
    arrives without having needed it may be what it waits for.
    """
    return k.equal(lane_of(k), k.op("arith.andi", list(answers[-2:]), "i32"))


PLAIN = ("mbarrier.arrive.once", "mbarrier.arrive.each")


TRIED = ("mbarrier.init", "fence.mbarrier_init", "mbarrier.inval", *PLAIN, "mbarrier.try_wait", "mbarrier.wait")


@family(*TRIED, but=("mbarrier.arrive.each.remote",))
def phases(name: str, by_table: bool) -> Iterator[Case]:
    """After each arrival the two parities are asked for; a phase that has ended is waited for."""
    k = Kit("y:i32*")
    barrier = begun(k, 2)
    answers: list[Value] = []
    for count in (2, 1):  # the second one where the first was
        if count == 1:
            again(k, barrier, one(k, answers))
        answers += ask(k, barrier)
        for _ in range(count):
            k.instruction(name if name in PLAIN else PLAIN[0], [barrier], active=one(k, answers))
            answers += ask(k, barrier)
        for wait in ("mbarrier.wait.parity", "mbarrier.wait.parity.awake", "mbarrier.wait.parity.cluster"):
            k.when(k.equal(answers[-2], 1), lambda wait=wait: k.instruction(wait, [barrier, k.int(0)]) and ())
    yield finished(k, answers)


def again(k: Kit, barrier: Value, active: Value) -> None:
    k.instruction("mbarrier.inval", [barrier], active=active)
    k.barrier("warp")
    k.instruction("mbarrier.init", [barrier, k.int(1)], active=active)
    k.barrier("warp")


def finished(k: Kit, answers: Sequence[Value]) -> Case:
    """Each lane stores what it was answered."""
    for i, value in enumerate(answers):
        k.store("global", k.place("y", k.add2(k.thread(), 32 * i)), value)
    return Case(k.program(), 1, {"y": np.full(32 * len(answers), -1, np.int32)})


FAR = ("mbarrier.arrive.remote", "mbarrier.arrive.expect_tx.remote", "mbarrier.arrive.each.remote")


@family("mbarrier.arrive", "mbarrier.expect_tx", but=(*PLAIN, *FAR))
def arrivals(name: str, by_table: bool) -> Iterator[Case]:
    """Arrivals by numbers, and bytes that do not come: the phase does not end."""
    k = Kit("y:i32*")
    barrier = begun(k, 5)
    answers: list[Value] = []
    active = k.equal(lane_of(k), 0)
    for step in (3, 2, -1, 4):
        if step > 0:
            k.instruction("mbarrier.arrive", [barrier, k.int(step)], active=active)
        elif name == "mbarrier.expect_tx":
            k.instruction(name, [barrier, k.int(16)], active=active)
        else:
            k.instruction("mbarrier.arrive.expect_tx", [barrier, k.int(16)], active=active)
        answers += ask(k, barrier)
        active = one(k, answers)
    yield finished(k, answers)


@family(*FAR)
def arrivals_at_others(name: str, by_table: bool) -> Iterator[Case]:
    """Each of two blocks arrives twice at the mbarrier of the other."""
    k = Kit("z:i32*")
    barrier = begun(k, 2)
    together(k)
    there = k.remote(barrier, k.op("arith.xori", [k.linear((0,), block=(1,)), k.int(1)], "i32"))
    for _ in range(2):
        k.instruction(name, [there, *([k.int(1 if name == FAR[0] else 0)] if name != FAR[2] else [])])
    k.store("global", k.place("z", thread_of_two_blocks(k)), ended(k, barrier, 0))
    together(k)
    yield Case(replace(k.program(), blocks=2), 1, {"z": np.zeros(64, np.int32)})


def thread_of_two_blocks(k: Kit) -> Value:
    return k.linear((0,), lane=(1, 2, 4, 8, 16), block=(32,))


@family("st.async")
def sent(name: str, by_table: bool) -> Iterator[Case]:
    """Each of two blocks sends words to the memory of the other, where they are counted."""
    words_each = INSTRUCTIONS[name].operands[1].count
    k = Kit("x:i32*", "y:i32*", "z:i32*")
    index = k.mul(thread_of_two_blocks(k), words_each)
    buffer = k.shared(128 * words_each)
    barrier = begun(k, 1)
    k.instruction("mbarrier.arrive.expect_tx", [barrier, k.int(128 * words_each)])
    together(k)
    other = k.op("arith.xori", [k.linear((0,), block=(1,)), k.int(1)], "i32")
    place = k.add2(buffer, k.mul(lane_of(k), 4 * words_each))
    value = k.load("global", k.place("x", index), "i32", words_each)
    k.instruction(name, [k.remote(place, other), value, k.remote(barrier, other)], active=k.constant("i1", 1))
    done = ended(k, barrier, 0)
    k.store("global", k.place("z", thread_of_two_blocks(k)), done)

    def read() -> tuple[()]:
        k.store("global", k.place("y", index), k.load("shared", place, "i32", words_each), words_each)
        return ()

    k.when(k.equal(done, 1), read)
    together(k)
    count = 64 * words_each
    zeros = {"y": np.zeros(count, np.int32), "z": np.zeros(64, np.int32)}
    yield Case(replace(k.program(), blocks=2), 1, {"x": words(count), **zeros})


@family("prefetch.")
def asked_for(name: str, by_table: bool) -> Iterator[Case]:
    """What is asked for is there afterwards as it was before."""
    k = Kit("x:i32*", "y:i32*")
    k.instruction(name, [k.arg("x"), k.int(128)], active=k.equal(lane_of(k), 0))
    k.store("global", k.place("y", k.thread()), k.load("global", k.place("x", k.thread()), "i32"))
    yield Case(k.program(), 1, {"x": words(32), "y": np.zeros(32, np.int32)})


@family("cluster_barrier.")
def partitions_of_a_cluster(name: str, by_table: bool) -> Iterator[Case]:
    """Two blocks read each other's memory between two barriers of a part of each, which is all of it here."""
    k = Kit("x:i32*", "y:i32*")
    rank, index = k.linear((0,), block=(1,)), thread_of_two_blocks(k)
    place = k.add2(k.shared(128), k.mul(lane_of(k), 4))
    barrier = k.shared(8)
    attrs = {"scope": "cluster", "id": 0, "warps": 1, "at": 128, "inserted": False}
    order(k, by_table, "cluster_barrier.make", [barrier, k.int(2)], lambda: None)
    together(k)
    k.store("shared", place, k.load("global", k.place("x", index), "i32"))
    for step in range(2):
        passed = [barrier, rank, lane_of(k), k.int(2)]
        k.barrier("warp")
        order(k, by_table, "cluster_barrier.pass", passed, lambda: k.add("barrier", (), (), attrs))
        k.barrier("warp")
        if not step:
            there = k.remote(place, k.op("arith.xori", [rank, k.int(1)], "i32"))
            k.store("global", k.place("y", index), k.load("cluster", there, "i32"))
    yield Case(replace(k.program(), blocks=2), 1, {"x": words(64), "y": np.zeros(64, np.int32)})


@family("mbarrier.copies")
def copied(name: str, by_table: bool) -> Iterator[Case]:
    """All lanes arrive when their copies are done: counted in advance, or beside the one that is."""
    noinc = name.endswith("noinc")
    k = Kit("x:i32*", "y:i32*", "z:i32*")
    index = k.thread()
    to = k.add2(k.shared(512), k.mul(index, 16))
    barrier = begun(k, 32 if noinc else 1)
    k.copy_async(to, k.place("x", k.mul(index, 4)), 16)
    k.instruction(name, [barrier])
    if not noinc:
        k.barrier("warp")
        k.instruction("mbarrier.arrive.once", [barrier])
    done = ended(k, barrier, 0)
    k.store("global", k.place("z", index), done)
    other = k.add2(to, k.mul(k.add2(k.op("arith.xori", [index, k.int(31)], "i32"), k.mul(index, -1)), 16))
    value = k.when(k.equal(done, 1), lambda: [k.load("shared", other, "i32", 4)], lambda: [nothing(k, 4)], [("i32", 4)])
    k.store("global", k.place("y", k.mul(index, 4)), value[0], 4)
    zeros = {"y": np.zeros(128, np.int32), "z": np.zeros(32, np.int32)}
    yield Case(k.program(), 1, {"x": words(128), **zeros})


def nothing(k: Kit, count: int) -> Value:
    zero = k.int(0)
    return k.add("join", [zero] * count, [("i32", count)]).result


# -- bulk copies ------------------------------------------------------------------------------------------------------


def tensor(rank: int, seed: int, dtype: Any = np.int32) -> SimpleNamespace:
    """A tensor of `rank` dimensions, the outermost first, as a launch takes it."""
    shape = SHAPE[:rank][::-1]
    base = np.zeros(int(np.prod(shape)) + 128, dtype)
    skip = -base.ctypes.data % 128 // base.itemsize
    view = base[skip : skip + int(np.prod(shape))]
    view[...] = np.random.default_rng(seed).integers(-99, 100, view.size).astype(np.int32).astype(dtype)
    strides = tuple(int(np.prod(shape[i + 1 :])) for i in range(rank))
    return SimpleNamespace(base=view, shape=shape, strides=strides, block_shape=BOX[:rank][::-1])


def boxes(rank: int, pointee: str, *parameters: str) -> tuple[Kit, Value, list[Value], int]:
    """(kit, the map's address, coordinates, bytes of a box) for a map `t` of boxes of BOX."""
    k = Kit("t:i64", *parameters)
    box = BOX[:rank]
    k.parameters[0] = Parameter("t", "tensormap", pointee, box, 16, box[::-1])
    return k, k.arg("t"), [k.int(at) for at in INSIDE[:rank]], 4 * int(np.prod(box))


def coordinates(k: Kit, at: Sequence[Value]) -> Value:
    return k.add("join", list(at), [("i32", len(at))]).result if len(at) > 1 else at[0]


def loaded(
    k: Kit, load: str, at: Value, map: Value, size: int, announce: str, ranks: int = 0, offsets: Sequence[Value] = ()
) -> None:
    """Load a box, wait for it no longer than ITERATIONS, and store its words to y; z says whether it came."""
    buffer = k.shared(size)
    k.allocations[-1].alignment = 128
    separate = announce == "mbarrier.expect_tx"
    barrier = begun(k, 1)
    k.instruction(announce, [barrier, k.int(size)])
    if separate:
        k.instruction("mbarrier.arrive.once", [barrier])
    more = [k.constant("i16", ranks)] if ranks else []
    k.instruction(load, [buffer, map, at, barrier, *offsets, *more])
    done = ended(k, barrier, 0)
    k.store("global", k.place("z", k.thread()), done)
    each = size // 128

    def read() -> tuple[()]:
        index = k.thread(tuple(range(0, 32 * each, 32)))
        k.store("global", k.place("y", index), k.load("shared", k.add2(buffer, k.mul(index, 4)), "i32"))
        return ()

    k.when(k.equal(done, 1), read)


def outputs(size: int) -> dict[str, Array]:
    return {"y": np.zeros(size // 4, np.int32), "z": np.zeros(32, np.int32)}


LOADS = tuple(f"cp.async.bulk.tensor.{rank}d.load" for rank in range(1, 6))


@family(*(f"{load}.im2col" for load in LOADS[2:]))
def loads_of_images(name: str, by_table: bool) -> Iterator[Case]:
    """Pixels that begin outside of the image, and channels that end outside of it, at a place of a filter."""
    rank = int(name.split(".")[4][0])
    pixels, channels = 16, 32
    images = tensor(rank, 5)
    images.block_shape = (pixels, channels)
    images.pixel_box_lower_corner, images.pixel_box_upper_corner = [-1] * (rank - 2), [0] * (rank - 2)
    k = Kit("t:i64", "y:i32*", "z:i32*")
    k.parameters[0] = Parameter("t", "tensormap", "i32", (channels, pixels), 16, (pixels, channels))
    at = coordinates(k, [k.int(16), *[k.int(-1)] * (rank - 2), k.int(0)])
    places = [k.constant("i16", 1 + i) for i in range(rank - 2)]
    offsets = k.add("join", places, [("i16", rank - 2)]).result if rank > 3 else places[0]
    size, announce = 4 * pixels * channels, "mbarrier.arrive.expect_tx"
    loaded(k, name, at, k.arg("t"), size, announce, 1 if name.endswith("multicast") else 0, [offsets])
    yield Case(k.program(), 1, {"t": images, **outputs(size)})


@family(*LOADS, but=tuple(f"{load}.im2col" for load in LOADS))
def bulk_loads(name: str, by_table: bool) -> Iterator[Case]:
    """A box that reaches beyond the end of the tensor; to the one block that there is, by its rank."""
    rank = int(name.split(".")[4][0])
    for announce in ("mbarrier.arrive.expect_tx", "mbarrier.expect_tx"):
        k, map, at, size = boxes(rank, "i32", "y:i32*", "z:i32*")
        loaded(k, name, coordinates(k, at), map, size, announce, 1 if name.endswith("multicast") else 0)
        yield Case(k.program(), 1, {"t": tensor(rank, 5), **outputs(size)})


def stored(name: str, by_table: bool, wait: str, pointee: str, dtype: Any) -> Case:
    """A box of words from x, stored or combined with what is there; fences are the table's."""
    rank = int(name.split(".")[4][0])
    k, map, at, _ = boxes(rank, pointee, "x:i32*")
    values = np.random.default_rng(6).integers(0, 50, int(np.prod(BOX[:rank]))).astype(dtype)
    x = values.view(np.int32)
    buffer = k.shared(values.nbytes)
    k.allocations[-1].alignment = 128
    index = k.thread(tuple(range(0, x.size, 32)))
    k.store("shared", k.add2(buffer, k.mul(index, 4)), k.load("global", k.place("x", index), "i32"))
    for fence, kind in (("fence.proxy.async", "async"), ("fence.proxy.async.cluster", "async.cluster")):
        order(k, by_table, fence, [], lambda kind=kind: k.add("fence", (), (), {"kind": kind}))
    k.barrier("warp")
    k.instruction(name, [map, coordinates(k, at), buffer])
    for last in (wait, "cp.async.bulk.wait_group"):  # after one for the reading alone one for the writing
        k.instruction("cp.async.bulk.commit_group", [])
        k.instruction(last, [k.int(0)])
    return Case(k.program(), 1, {"t": tensor(rank, 7, dtype), "x": x})


@family(
    "cp.async.bulk.commit_group", "cp.async.bulk.wait_group", "fence.proxy.async",
    *(f"cp.async.bulk.tensor.{rank}d.store" for rank in range(1, 6)),
)  # fmt: skip
def bulk_stores(name: str, by_table: bool) -> Iterator[Case]:
    store = name if name.endswith("store") else "cp.async.bulk.tensor.2d.store"
    waits = ("cp.async.bulk.wait_group", "cp.async.bulk.wait_group.read")
    for wait in (name,) if name in waits else waits:
        yield stored(store, by_table, wait, "i32", np.int32)


@family(*(f"cp.async.bulk.tensor.{rank}d.reduce.{kind}" for rank in range(1, 6) for kind in REDUCTIONS))
def bulk_reductions(name: str, by_table: bool) -> Iterator[Case]:
    """Of whole numbers, inc and dec of unsigned ones; sums also of floats, of which a warp stores whole words."""
    types: list[tuple[str, Any]] = [("u32", np.uint32)]
    if not name.endswith(("inc", "dec")):
        types.append(("i32", np.int32))
    if name.endswith("add"):
        types.append(("f32", np.float32))
        types += [] if ".1d." in name else [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)]
    for pointee, dtype in types:
        yield stored(name, by_table, "cp.async.bulk.wait_group", pointee, dtype)


@family("tensormap.")
def device_maps(name: str, by_table: bool) -> Iterator[Case]:
    """A map of five dimensions, field by field, published, acquired, and a box loaded by it."""
    rank = 5
    k = Kit("x:i32*", "map:i64*", "y:i32*", "z:i32*")
    box, shape = BOX[:rank], SHAPE[:rank]
    base = k.shared(128)
    k.allocations[-1].alignment = 128
    k.store("shared", k.add2(base, k.mul(lane_of(k), 4)), k.int(0))
    k.barrier("warp")

    def put(field: str, *values: Value) -> None:
        k.instruction(f"tensormap.replace.{field}", [base, *values])

    put("global_address", k.arg("x"))
    put("rank", k.int(rank - 1))
    for i in range(rank):
        put("global_dim", k.int(i), k.int(shape[i]))
        put("box_dim", k.int(i), k.int(box[i]))
        put("element_stride", k.int(i), k.int(1))
    for i in range(rank - 1):
        put("global_stride", k.int(i), k.constant("i64", 4 * int(np.prod(shape[: i + 1]))))
    for field, value in (("elemtype", 3), ("interleave_layout", 0), ("swizzle_mode", 0), ("fill_mode", 0)):
        put(field, k.int(value))
    k.barrier("warp")
    k.instruction("tensormap.publish", [k.arg("map"), base], active=k.constant("i1", 1))
    k.barrier("warp")
    k.instruction("tensormap.acquire", [k.arg("map")])
    k.instruction("tensormap.prefetch", [k.arg("map")], active=k.equal(lane_of(k), 0))
    at = coordinates(k, [k.int(i) for i in INSIDE[:rank]])
    size = 4 * int(np.prod(box))
    loaded(k, "cp.async.bulk.tensor.5d.load", at, k.arg("map"), size, "mbarrier.arrive.expect_tx")
    yield Case(k.program(), 1, {"x": tensor(rank, 8).base, "map": np.zeros(16, np.int64), **outputs(size)})
