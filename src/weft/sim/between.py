"""Races between programs: global memory that one writes and another reads or writes, which nothing orders.

    tl.store(total, tl.load(total) + x)     # by every program: programs 0 and 1 both read, then both write

Of each granule of the launch's arrays (the smallest access that there is) it is remembered which program wrote it last
and which ones read it. A write that changes something is a race if another program has read or written it; a read is
one if another program has written it. Several programs may write the same value, as nobody can tell.

Programs that order their accesses do so by atomics, or by waiting in a `while` loop. Kernels that have either are not
checked: what is ordered with what is not followed here.
"""

from __future__ import annotations

import numpy as np

from weft.base import Note
from weft.ir.lane import LaneProgram
from weft.targets.table import instruction

from .contexts import Access, AnyContext
from .memory import GlobalMemory, Segment
from .values import DTYPES, Array
from .vendor import meaning_of

MANY = -1
"""In the place of a reader: several programs."""
ORDERING = frozenset(("atomic", "compare_and_swap", "while"))
"""Operations by which programs may wait for each other; assembly that accesses memory is another."""
HINT = (
    "programs run in any order: let one program write each element, use tl.atomic_add and the like, or launch a second "
    "kernel that reads what the first wrote"
)


def can_check(program: LaneProgram) -> bool:
    """Whether nothing in a program can order its accesses with those of another."""
    vendor = meaning_of(program.machine)
    return not any(
        op.name in ORDERING or (op.name == "assembly" and vendor.touches_memory(op)) for op in program.body.walk()
    )


def _granule(program: LaneProgram) -> int:
    """Bytes of the smallest access."""
    widths = [16]
    for op in program.body.walk():
        if op.name in ("load", "store"):
            value = op.results[0] if op.name == "load" else op.operands[1]
            widths.append(DTYPES[value.elem].itemsize * int(op.attrs.get("vector", 1)))
        elif op.name == "copy_async":
            is_partial = len(op.operands) > 2 and op.operands[2].elem == "i32"
            widths.append(1 if is_partial else int(op.attrs["bytes"]))
        elif op.name == "instruction" and instruction(op.attrs["isa"]).touches in ("global", "copy", "bulk"):
            widths.append(1)
    return min(widths)


class Between:
    """Who has read and written each granule of the arrays; programs are counted from 1."""

    def __init__(self, memory: GlobalMemory, program: LaneProgram) -> None:
        self.memory = memory
        self.granule = _granule(program)
        self.writers: dict[int, Array] = {}
        self.readers: dict[int, Array] = {}
        self.places: dict[int, Array] = {}
        """By array: the program that wrote each granule last, who read it, and the number of the write."""
        self.ops: list[Access] = []

    def _of(self, segment: Segment) -> tuple[Array, Array, Array]:
        key = segment.start
        if key not in self.writers:
            for kept in (self.writers, self.readers, self.places):
                kept[key] = np.zeros(len(segment.data) // self.granule + 16, np.int32)
        return self.writers[key], self.readers[key], self.places[key]

    def read(self, access: Access, address: Array, program: Array) -> tuple[Array, Note | None]:
        """Which of the accesses [n] read what another program wrote, and where that was written."""
        racing, note = np.zeros(len(address), np.bool_), None
        for segment, where, at in self._split(address, access.width):
            writers, readers, places = self._of(segment)
            me = program[where][:, None]
            wrong = (writers[at] != 0) & (writers[at] != me)
            if wrong.any() and note is None:
                first = int(at[wrong][0])
                note = self._wrote(int(writers[first]), int(places[first]))
            racing[where] = wrong.any(axis=1)
            readers[at] = np.where((readers[at] == 0) | (readers[at] == me), me, MANY)
            readers[at[(readers[at] != me) & (readers[at] != MANY)]] = MANY  # several programs in this operation
        return racing, note

    def write(self, access: Access, address: Array, program: Array, data: Array) -> tuple[Array, Note | None]:
        """Which of the accesses [n] change what another program read or wrote; before they do so."""
        racing, note = np.zeros(len(address), np.bool_), None
        self.ops.append(access)
        for segment, where, at in self._split(address, access.width):
            writers, readers, places = self._of(segment)
            me, new = program[where][:, None], data[where]
            by_granule = (*at.shape, self.granule)
            now = self.memory.read(address[where], access.width)
            changes = (now != new).reshape(by_granule).any(axis=2)
            overwrites = changes & (writers[at] != 0) & (writers[at] != me)
            wrong = overwrites | (changes & (readers[at] != 0) & (readers[at] != me))
            if wrong.any() and note is None:
                first = int(at[wrong][0])
                other = int(readers[first])
                told = f"program {other - 1}" if other > 0 else "other programs"
                wrote = overwrites.any()
                note = self._wrote(int(writers[first]), int(places[first])) if wrote else Note(f"{told} read it")
            writers[at], places[at] = np.broadcast_to(me, at.shape), len(self.ops)
            both = writers[at] != me  # several programs write it in this operation
            if both.any():
                latest = np.zeros((len(writers), self.granule), np.uint8)
                latest[at] = new.reshape(by_granule)
                both &= (latest[at] != new.reshape(by_granule)).any(axis=2)
                if both.any() and note is None:
                    note = Note(f"program {int(writers[int(at[both][0])]) - 1} writes it here too")
            racing[where] = (wrong | both).any(axis=1)
        return racing, note

    def _split(self, address: Array, width: int) -> list[tuple[Segment, Array, Array]]:
        """By array: which accesses are to it, and the granules [n, width / granule] that they are to."""
        each = np.arange(width // self.granule)
        found = []
        for segment in self.memory.segments:
            where = np.flatnonzero((address >= segment.start) & (address < segment.end))
            if len(where):
                first = (address[where] - segment.start // 16 * 16) // self.granule
                found.append((segment, where, first[:, None] + each))
        return found

    def _wrote(self, program: int, place: int) -> Note:
        return Note(f"program {program - 1} wrote it", self.ops[place - 1].op.span)

    def programs(self, context: AnyContext, active: Array) -> Array:
        """The program of each active access, counted from 1."""
        blocks = context.warps[np.nonzero(active)[0]] // context.batch.program.warps
        numbers: Array = context.batch.program_number(blocks) + 1
        return numbers
