"""Random programs on shared memory: with the barriers put in there is no race, and no buffer loses what it has.

A program has buffers of several sizes, accesses by linear functions of lane and warp (with masks, and slots that go
round), loops, branches and asynchronous copies. What it computes must be what it computes if every buffer has bytes of
its own and there is a barrier before every access.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

import weft.lower.barriers
from sim.kit import Kit
from weft.analysis import Hazards
from weft.ir.lane import Block, LaneOp, LaneProgram, Value
from weft.lower.barriers import insert_barriers, is_ordered
from weft.lower.placement import place
from weft.sim import Options, run

WARPS = 4
WORDS = 32 * WARPS


class Random:
    """One random program; the same seed makes the same one again."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.k = Kit("x:i32*", "out:i32*", "n:i32", warps=WARPS)
        self.total = self.k.int(0)
        self.buffers: list[tuple[Value, int]] = []

    def program(self) -> LaneProgram:
        """The sum of all that was read is the result."""
        for _ in range(self.rng.randint(3, 7)):
            self.step(2, None)
        index = self.k.thread()
        self.k.store("global", self.k.place("out", index), self.k.rename(self.total, (0,)))
        return self.k.program()

    def step(self, depth: int, index: Value | None) -> None:
        kinds: list[Callable[[int, Value | None], None]] = [self.exchange, self.exchange, self.again, self.copy]
        if depth:
            kinds += [self.loop, self.branch]
        self.rng.choice(kinds)(depth, index)

    def buffer(self, index: Value | None) -> tuple[Value, int]:
        """A new buffer that is written as a whole; its slots, if it has several."""
        slots = self.rng.choice((1, 1, 2, 3))
        base = self.k.shared(4 * WORDS * slots)
        for slot in range(slots):
            place = self.k.add2(self.k.add2(base, 4 * WORDS * slot), self.bijection())
            self.k.store("shared", place, self.k.add2(self.total, slot))
        return base, slots

    def bijection(self) -> Value:
        """A place of its own for each thread: a permutation of the bits of lane and warp, and a constant."""
        bits = [4 << i for i in range(WORDS.bit_length() - 1)]
        if self.rng.random() < 0.5:
            self.rng.shuffle(bits)
        fixed = self.rng.choice((0, 4 * self.rng.randrange(WORDS)))
        return self.k.linear((fixed,), lane=tuple(bits[:5]), warp=tuple(bits[5:]))

    def slot(self, base: Value, slots: int, index: Value | None) -> Value:
        """One of the slots: a constant one, or the one whose iteration it is."""
        if slots == 1:
            return base
        number = self.k.int(self.rng.randrange(slots))
        if index is not None and self.rng.random() < 0.7:
            number = self.k.op("arith.remsi", [self.k.add2(index, self.rng.randrange(3)), self.k.int(slots)], "i32")
        return self.k.add2(base, self.k.mul(number, 4 * WORDS))

    def read(self, base: Value, slots: int, index: Value | None) -> None:
        place = self.k.add2(self.slot(base, slots, index), self.bijection())
        value = self.k.load("shared", place, "i32")
        mixed = self.k.op("arith.muli", [self.total, self.k.int(3)], "i32")
        self.total = self.k.op("arith.addi", [mixed, value], "i32")

    def exchange(self, depth: int, index: Value | None) -> None:
        """A new buffer: written, then read."""
        base, slots = self.buffer(index)
        self.buffers.append((base, slots))
        for _ in range(self.rng.randint(1, 3)):
            self.read(base, slots, index)

    def again(self, depth: int, index: Value | None) -> None:
        """A buffer that is there already is read, or written and read."""
        if not self.buffers:
            self.exchange(depth, index)
            return
        base, slots = self.rng.choice(self.buffers)
        if self.rng.random() < 0.6:
            mask = None
            if self.rng.random() < 0.4:
                mask = self.k.equal(self.k.linear((0,), warp=(1, 2)), self.rng.randrange(WARPS))
            self.k.store("shared", self.k.add2(self.slot(base, slots, index), self.bijection()), self.total, mask=mask)
        self.read(base, slots, index)

    def copy(self, depth: int, index: Value | None) -> None:
        """An asynchronous copy into a buffer, awaited before it is read; other things happen meanwhile."""
        base, slots = self.buffer(index)
        place = self.slot(base, slots, index)
        self.k.copy_async(self.k.add2(place, self.bijection()), self.k.place("x", self.k.thread()), 4)
        self.k.add("commit_async")
        if depth and self.rng.random() < 0.5:
            self.step(0, index)
        self.k.add("wait_async", attrs={"pending": 0})
        if self.rng.random() < 0.7:  # otherwise nobody wants it, and it must not land on others
            self.read(base, slots, index)

    def inside(self, depth: int, index: Value | None) -> None:
        known = len(self.buffers)
        for _ in range(self.rng.randint(1, 3)):
            self.step(depth - 1, index)
        del self.buffers[known:]

    def loop(self, depth: int, index: Value | None) -> None:
        def iteration(i: Value, total: Value) -> list[Value]:
            self.total = total
            self.inside(depth, i)
            return [self.total]

        k = self.k
        upper = self.rng.choice((k.arg("n"), k.int(self.rng.randint(0, 4))))
        (self.total,) = k.loop([k.int(0), upper, k.int(1)], [self.total], iteration)

    def branch(self, depth: int, index: Value | None) -> None:
        before = self.total

        def then() -> list[Value]:
            self.inside(depth, index)
            return [self.total]

        def other() -> list[Value]:
            self.total = before
            if self.rng.random() < 0.5:
                self.inside(depth, index)
            return [self.total]

        condition = self.k.less(index if index is not None else self.k.arg("n"), self.rng.randint(0, 3))
        (self.total,) = self.k.when(condition, then, other, [("i32", 1)])


def with_barriers_everywhere(program: LaneProgram) -> LaneProgram:
    """Each buffer for itself, a barrier before every operation on shared memory and after every wait."""

    def walk(block: Block) -> None:
        made = []
        for op in block.ops:
            for region in op.regions:
                walk(region)
            if op.attrs.get("space") == "shared" or op.name in ("copy_async", "wait_async"):
                made.append(LaneOp("barrier", attrs={"scope": "block", "inserted": True}))
            made.append(op)
            if op.name == "wait_async":
                made.append(LaneOp("barrier", attrs={"scope": "block", "inserted": True}))
        block.ops[:] = made

    walk(program.body)
    return program


def results(program: LaneProgram, n: int, options: Options) -> np.ndarray:
    out = np.zeros(WORDS, np.int32)
    run(program, 1, {"x": np.arange(WORDS, dtype=np.int32), "out": out, "n": n}, options)
    return out


def check(seed: int) -> None:
    plain = with_barriers_everywhere(Random(seed).program())
    program = Random(seed).program()
    whole = program.shared_bytes
    place(program)
    assert program.shared_bytes <= whole
    insert_barriers(program)
    assert is_ordered(program)
    for n in (0, 1, 3):
        wanted = results(plain, n, Options())
        for options in (Options(), Options(copies="earliest", order="backward")):
            np.testing.assert_array_equal(results(program, n, options), wanted)


@pytest.mark.parametrize("first", range(20, 60, 10))
def test_random_programs(first: int) -> None:
    for seed in range(first, first + 10):
        check(seed)


class WholeWalks(Hazards):
    """Takes a barrier out and walks through all of the program again."""

    def are_none_without(self, barrier: LaneOp, block: Block, top: LaneOp) -> bool:
        index = block.ops.index(barrier)
        del block.ops[index]
        if not self.are_none():
            block.ops.insert(index, barrier)
            return False
        return True


def test_barriers_are_those_that_whole_walks_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    def barriers(seed: int) -> list[tuple[str, str | None]]:
        program = Random(seed).program()
        place(program)
        insert_barriers(program)
        return [(op.name, op.attrs.get("scope")) for op in program.body.walk()]

    seeds = range(5)
    found = [barriers(seed) for seed in seeds]
    monkeypatch.setattr(weft.lower.barriers, "Hazards", WholeWalks)
    monkeypatch.setattr(weft.lower.barriers, "_is_alone", lambda *_: False)
    assert found == [barriers(seed) for seed in seeds]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 100))
def test_many_random_programs(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed)
