"""Keep rows in shared memory until reductions and the store need them (rows.py, row_parts.py).

    %x = weft.load_row ...              copy_async %own + 8192 k, %row + 8192 k where %whole.k       k = 0 ... 12
    %m = tt.reduce(%x) add              %last = load global ... where %whole                         k = 13 ... 15
    %d = %x - %m / 50257      becomes   if %mine { wait_async; store shared %own + 8192 k, the row's ends }
    %s = tt.reduce(%d * %d) add         for each run k: wait_async; load shared ...; %m.k = ...      barrier
    weft.store_row (%d / %s)            for each run k: load shared %own + 8192 k; %s.k = ...        barrier
                                        for each run k: load shared %own + 8192 k; store global ...

A thread of a block of 512 has 64 registers if two such blocks are to run on a multiprocessor, so that one computes
while the other waits for memory. A row of 65,536 elements of bf16 takes all of them. In shared memory it takes none,
neither while its copies are in flight nor afterwards, and each operation on it holds one run at a time. Each thread
has places of its own, 16 bytes at a time: thread t has the k-th vector at 16 (k * threads + t). So there are no bank
conflicts, and no thread waits for another. If shared memory has no room for whole rows of as many blocks as registers
allow, the rest is held in registers (of the 128 KB of such a row: three runs of 16, 12 words per thread).

If rows are stored as well, all of their runs wait there, with fewer threads on a multiprocessor if that is what it
takes: then the second reduction and the store are loops over runs (row_reductions.py, rows.py).

Done for rows that are reduced more than once, in large blocks and in clusters, whose blocks wait for each other: a
layer norm of 50,257 elements of bf16 by 4 warps, in clusters of eight blocks, takes 218 us on an H100 with eight blocks
on a multiprocessor at a time, and 247 with the four for which there are registers otherwise; by 32 warps 226 and 262.
Not done here: rows of small blocks alone, if registers have room for them (16,001 columns by 8 warps: 202 us instead of
188), of norms by one reduction (RMS norm by 32 warps: 202 instead of 188), and rows whose runs are not aligned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Protocol

from weft.base.remarks import InParts
from weft.ir.lane import Block, Value

from .context import Context
from .parked import as_words, of_words
from .row_runs import Ends, Runs
from .row_shifts import WORD_BYTES, Coming

MOST_HELD = 24
"""Words of rows, at most, that a thread holds in registers beside those in shared memory."""


def kept_parts(c: Context, rows: Sequence[tuple[int, int]], are_stored: bool) -> tuple[int, list[int]] | None:
    """How many blocks are to run at a time, and how many runs of each row wait in shared memory; None if they and what
    is left for registers have no room.

    Of each row: how many runs a thread has, and their bytes. If rows are stored, all of their runs wait there, so that
    loops can go over them, if only fewer blocks have the room for that.
    """
    machine, threads = c.machine, c.program.warps * c.program.lanes
    if not machine.async_copies:
        return None
    words = sum(runs * size for runs, size in rows) // WORD_BYTES
    if are_stored and (blocks := machine.blocks_with_rows(threads, words)):
        return blocks, [runs for runs, _ in rows]
    blocks = max(1, c.machine.enough_threads // threads)
    left = machine.room_for_rows(blocks) // threads
    held, kept = 0, list[int]()
    for runs, size in rows:
        kept.append(min(runs, left // size))
        left -= kept[-1] * size
        held += (runs - kept[-1]) * size // WORD_BYTES
    return (blocks, kept) if held <= MOST_HELD else None


class Row(Protocol):
    """A row that is loaded (`rows.Load`)."""

    elem: str
    runs: Runs
    parts: list[Runs]
    ends: Ends

    def load(self, runs: Runs) -> Coming:
        """Load some runs into registers."""

    def with_ends(self, runs: Runs, value: Value | None = None) -> Value:
        """The elements of some runs, the row's ends in those that are not whole."""


class Kept:
    """A row that waits in shared memory, the last of its runs in registers."""

    def __init__(self, c: Context, load: Row, kept: int, ends_in: Callable[[Runs, int], Value]) -> None:
        self.c, self.load, self.runs, self.parts, self.ends_in = c, load, load.runs, load.parts, ends_in
        self.is_there = False
        threads = c.program.warps * c.program.lanes
        self.vector = self.runs.vector * self.runs.size
        self.step = self.vector * threads
        """Bytes from a vector of a thread to its next one."""
        self.kept = kept
        words = [self.runs.run * self.runs.size // WORD_BYTES * n for n in (len(self.parts), len(self.parts) - kept)]
        why = f"a thread would hold {words[0]} words of it across a reduction, of which it holds {words[1]}"
        c.program.remarks.add(InParts(c.build.span, "a row waits in shared memory", why))
        buffer = c.allocate(kept * self.runs.run * self.runs.size * threads, "a row that is wanted again")
        lane = [self.vector << i for i in range(c.program.lanes.bit_length() - 1)]
        warp = [self.vector * c.program.lanes << i for i in range((c.program.warps - 1).bit_length())]
        self.own = c.plus(buffer, c.build.linear([0], lane, warp))
        for k, part in enumerate(self.parts[:kept]):
            c.build.copy_async(self._places(k), part.vectors(), self.vector, self._each(part, part.whole()))
            c.build.add("commit_async")
        self.waited = 0
        """Parts that have been waited for."""
        self.held = [load.load(part) for part in self.parts[kept:]]
        """The runs in registers; their elements, when all are there."""
        self.elements: Sequence[Value] = ()

    def begin_to(self, last: int) -> None:
        """Wait for parts, which are all on their way from the beginning."""
        last = min(last, self.kept - 1)
        if self.waited <= last:
            self.waited = last + 1
            self.c.build.add("wait_async", (), (), {"pending": self.kept - self.waited})

    def arrive(self) -> None:
        """Put the ends of the row, and what is there instead beyond them, where they belong. Only the warps that have
        any wait for all of the row here."""
        if self.is_there:
            return
        self.is_there = True
        c, parts = self.c, list(enumerate(self.parts))
        elements = [coming.elements() for coming in self.held]
        with c.inside(Block()) as taken:
            c.build.add("wait_async", (), (), {"pending": 0})
            for k, part in parts[: self.kept]:
                with c.inside(Block()) as ragged:
                    words, beyond = as_words(c.build, self.load.with_ends(part)), c.negated(part.whole())
                    c.build.store("shared", self._places(k), words, self.vector // WORD_BYTES, self._each(part, beyond))
                part.if_warp(self.ends_in(part, k), (), ragged, Block())
            held = zip(self.parts[self.kept :], elements, strict=True)
            c.build.add("yield", [self.load.with_ends(part, value) for part, value in held])
        with c.inside(Block()) as otherwise:
            c.build.add("yield", elements)
        kinds = [(x.elem, x.count) for x in elements]
        self.elements = self.runs.if_warp(self.load.ends.mine, kinds, taken, otherwise).results

    @property
    def is_untouched(self) -> bool:
        """Whether all of it is in shared memory, and has been waited for."""
        return self.is_there and self.kept == self.waited == len(self.parts)

    def later(self, number: Value, count: int, are_whole: bool) -> Kept:
        """The parts of an iteration of a loop over so many parts at a time. All of them are there."""
        later, c = copy(self), self.c
        later.runs = self.runs.later(number, count, are_whole)
        later.parts = later.runs.parts()
        step = self.runs.run // self.runs.vector * self.step * count
        later.kept = later.waited = count
        later.own = c.plus(self.own, c.build.op("arith.muli", [number, c.number(step)], "i32"))
        return later

    def end(self, k: int) -> Value:
        """The elements of a part."""
        if k >= self.kept:
            return self.elements[k - self.kept]
        words = self.c.build.load("shared", self._places(k), "i32", self.vector // WORD_BYTES)
        return of_words(self.c.build, words, self.load.elem)

    def _places(self, k: int) -> Value:
        """The addresses of the vectors of run k."""
        each = self.runs.run // self.runs.vector
        steps = [v * self.step for v in range(k * each, (k + 1) * each)]
        return self.c.build.op("arith.addi", [self.own, self.c.build.linear(steps)], "i32")

    def _each(self, part: Runs, condition: Value) -> Value:
        """A condition of a run for each of its vectors."""
        return part.each(condition, self.runs.run // self.runs.vector)
