"""Stores that go around the caches: which may, and when they do.

A line that is overwritten as a whole need not be read before, and one that nobody reads soon need not push out others:
a third of the traffic of a vector addition. Each of these is so of a launch that does:

    it writes more than the caches hold (`STREAM_BYTES`)             as far as the nest's own stores show
    each store is of a whole vector, and the next goes on from it     for long, or from the beginning of a line on
    nothing that is stored to is loaded                              x += y has x's lines in the cache already

The last is more than a matter of traffic. Two halves of a line that are stored around the cache wait in a buffer of the
processor's to be written together; a load of the line between them has half a line written, and the rest read from
memory again: an update in place of three arrays that are not aligned to lines took 80 times as long. What the kernel
loads is known by parameter; the same array may be given twice, so that addresses are compared as well.

Milliseconds of a copy of 64 MiB of float32 by tiles of rows, 16 KiB apart, on one thread of a Zen 3:

    bytes of a tile's row                     64   128   256   512   1024   4096
    around the cache, rows aligned to lines   66    46    20   2.6    2.3    2.3
    around the cache, rows that are not       77    56    16    12    7.7    4.3
    through the cache                         33    17     7   6.5    6.5    6.1

There a vector is half of a line. With AVX-512 it is a whole one: on a Sapphire Rapids, rows that begin at lines are
stored at 9 to 19 GB/s around the cache and at 3 to 10 through it, whatever their length; others at 0.7 GB/s where they
have 64 bytes, and faster than through it from 2 KiB on (benchmarks/cpu_runs.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import takewhile

from weft.backends.cpu.aliases import Aliases, root_of
from weft.backends.cpu.coords import row_major
from weft.backends.cpu.corners import substitute_live
from weft.backends.cpu.evaluate import Evaluator
from weft.backends.cpu.forms import vector_of
from weft.backends.cpu.nest import EFFECTS, Nest
from weft.backends.cpu.program import Block, FunctionProgram, Op, Value, element_bits
from weft.backends.cpu.questions import consecutive_run
from weft.backends.llvm.values import I64, Value as Reg, const

STREAM_BYTES = 24 << 20  # a launch that writes more than this writes around the cache
PIECE, LINE = 16, 64  # bytes of what the processor puts together to a line, and of a cache line
SHORT_RUN, LONG_RUN = 512, 2048  # bytes from which rows may go around the cache: whole lines, and lines begun or ended


class Streaming:
    """Answers for one kernel, `possible` on its processor; `aliases` knows whether its arrays may overlap."""

    def __init__(self, program: FunctionProgram, aliases: Aliases, turns: Callable[[], Reg], *, possible: bool) -> None:
        self._loaded = dict.fromkeys(root_of(pointer) for pointer in _read(program.blocks))
        self._turns = turns  # emits how often a launch runs the nest that is emitted now
        self.possible = possible and aliases.assumes_apart and None not in self._loaded
        """Whether any store of the kernel may: none where what is loaded may be in any array, or arrays overlap."""

    def stores(self, nest: Nest, masks: Set[Value]) -> tuple[dict[int, int], list[Reg]]:
        """The stores of a nest that may go around the caches, by id, with their alignment in bytes, and conditions for
        that; `masks` are those that hold everywhere.

        A cache line has to be written at once, in pieces of 16 bytes at least, which is how NumPy aligns large arrays.
        So the next iteration of the innermost loop must go on where one ends. Where all of the tile is such a run, the
        next tile goes on. Rows apart from each other are runs with ends: a line that is begun or ended there is half
        written, unless rows begin at lines; and short rows of lines that take several vectors are slow even so, where
        the kernel reads other memory in between.
        """
        stores: dict[int, int] = {}
        if nest.rows is not None or not self.possible:  # where a vector of a row lies is not known
            return stores, []
        conditions: list[Reg] = []
        written = 0
        arrays: dict[Value, None] = {}
        order = [*nest.unroll, *(b for run in nest.loop_runs([*nest.inner_bits, *nest.outer_bits]) for b in run)]
        for root in nest.roots:
            op = root.op
            if op is None or op.name != "tt.store" or (len(op.args) > 2 and op.args[2] not in masks):
                continue
            array = root_of(op.args[0])
            alignment = _alignment(nest, op, order)
            if array is None or array in self._loaded or not alignment:
                continue
            conditions.append(_is_aligned(nest, op, alignment))
            stores[id(op)] = min(alignment, nest.vector_bits // 8)
            arrays[array] = None
            written += element_bits(op.args[1].elem) // 8 << nest.count
        if not stores:
            return stores, []
        enough = nest.f.icmp("sge", self._turns(), const(I64, -(-STREAM_BYTES // written)))
        return stores, [enough, *conditions, *self._elsewhere(nest, arrays)]

    def _elsewhere(self, nest: Nest, stored: Iterable[Value]) -> Iterator[Reg]:
        """That arrays which are stored to are none of those that are loaded: one array may be two arguments.

        Only those of one element size can be without the launcher's choosing the variant for arrays that overlap.
        """
        for array in stored:
            for loaded in self._loaded:
                if loaded is not None and element_bits(loaded.pointee) == element_bits(array.pointee):
                    here, there = nest.env[array], nest.env[loaded]
                    assert isinstance(here, Reg) and isinstance(there, Reg)
                    yield nest.f.icmp("ne", here, there)


def _read(blocks: Sequence[Block]) -> Iterator[Value]:
    """The pointers of all that a kernel reads: loads, and atomic operations, which need a line as well."""
    for block in blocks:
        for op in block.ops:
            if op.name == "tt.load" or (op.name in EFFECTS and op.name != "tt.store"):
                yield op.args[0]
            for region in op.regions:
                yield from _read(region)


def _alignment(nest: Nest, op: Op, order: Sequence[int]) -> int:
    """How far a store must be aligned to go around the caches, in bytes; 0 where it cannot. `order` has the bits of the
    nest's points beyond those of a vector, those that change first first.
    """
    bits = element_bits(op.args[1].elem)
    count = len(nest.lane_bits)
    size = bits // 8 << count
    if size * 8 != nest.vector_bits or bits < 8:
        return 0
    coords = row_major(op.args[0].shape)
    run = consecutive_run(nest.analysis.steps(op.args[0], coords))
    if run[:count] != nest.lane_bits:
        return 0
    going_on = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(run[count:], order, strict=False))))
    alignment = PIECE
    if going_on < len(order):  # rows with gaps between them
        if size << going_on < SHORT_RUN and size < LINE:
            return 0
        alignment = PIECE if size << going_on >= LONG_RUN else LINE
    known = nest.analysis.pointer_align(op.args[0], coords, run[: count + going_on]) * (bits // 8)
    return alignment if known >= alignment else 0


def _is_aligned(nest: Nest, op: Op, alignment: int) -> Reg:
    """Whether the first address of a store is."""
    f = nest.f
    pointer = Evaluator(f, nest.env, ()).pointer(op.args[0], substitute_live(row_major(op.args[0].shape), -1))
    address = f.cast("ptrtoint", vector_of(f, pointer, 0), I64)
    return f.icmp("eq", f.and_(address, const(I64, alignment - 1)), const(I64, 0))
