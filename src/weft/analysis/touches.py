"""What operations of a lane program do to shared memory, and which bytes each thread touches.

A footprint has, for each granule of memory, the first and the last thread that touches it. Two accesses meet where a
granule is touched by two different threads; whether those are always of one warp decides which barrier orders them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weft.ir.lane import ELEMENT_BITS, LaneOp, LaneProgram, Value
from weft.targets.instruction import OF_WARP
from weft.targets.table import effects_of, instruction

from .lane_numbers import Array, LaneNumbers

Places = dict[Value, frozenset[int]]


@dataclass(frozen=True)
class Touch:
    """One access: its address, the bytes that each register of it gives, and who does it.

    `how` is "read", "write" or "atomic"; atomic accesses need no barrier between them. With `later` it happens some
    time after it was issued, until something waits for it: nothing that comes after is ordered by a barrier alone.
    """

    address: Value
    width: int
    how: str
    mask: Value | None = None
    later: str = ""
    together: bool = False
    """Whether all lanes of a warp act as one."""
    release: bool = False
    """Whether it tells others that all of the block, or the partition, has done what came before."""
    each: bool = False
    """Whether it tells that of its own warp alone."""
    far: bool = False
    """Whether it may be in the memory of another block of the cluster."""


def touches_of(op: LaneOp) -> Sequence[Touch]:
    """The accesses of shared memory that an operation makes."""
    if op.name in ("load", "store", "atomic", "compare_and_swap"):
        if op.attrs["space"] == "global":
            return ()
        value = op.results[0] if op.name == "load" else op.operands[1]
        width = max(8, ELEMENT_BITS[value.elem]) // 8 * int(op.attrs.get("vector", 1))
        at = {"load": 1, "compare_and_swap": 3}.get(op.name, 2)
        mask = op.operands[at] if op.attrs.get("masked") and len(op.operands) > at else None
        how = {"load": "read", "store": "write"}.get(op.name, "atomic")
        return (Touch(op.operands[0], width, how, mask, far=op.attrs["space"] == "cluster"),)
    if op.name == "copy_async":
        return (Touch(op.operands[0], int(op.attrs["bytes"]), "write", later="copy"),)
    if op.name == "instruction" and effects_of(op.attrs["isa"]).reaches:
        return tuple(_of_instruction(op))
    return ()


def _of_instruction(op: LaneOp) -> Iterator[Touch]:
    entry = instruction(op.attrs["isa"])
    values = dict(zip((o.name for o in entry.operands), op.operands))
    for r in effects_of(entry.name).reaches:
        if r.far and not r.later and op.attrs.get("awaited"):
            continue  # the block that has the mbarrier waits at it before it ends
        mask = values["active"] if r.masked else None
        width, together = (op.attrs[OF_WARP], True) if OF_WARP in op.attrs and not r.release else (r.width, r.together)
        yield Touch(values[r.operand], width, r.how, mask, r.later, together, r.release, r.each, r.far)


MANY = 1 << 30
"""Groups that may be left, where it is not known how many."""


def waits_of(op: LaneOp) -> tuple[str, int] | None:
    """(the kind of accesses that happen later for which an operation waits, how many groups of them may be left)."""
    if op.name == "wait_async":
        return "copy", int(op.attrs["pending"])
    if op.name == "await":
        return str(op.attrs["kind"]), int(op.attrs["pending"])
    kind = effects_of(op.attrs["isa"]).waits if op.name == "instruction" else ""
    if not kind:
        return None
    producer = op.operands[0].op if op.operands else None
    known = producer is not None and producer.name == "constant"
    return kind, int(producer.attrs["value"]) if known and producer is not None else MANY


def _may_be_exact(touch: Touch) -> bool:
    """Whether its address says all of what it touches."""
    return not touch.far and (touch.later in ("", "copy") or (touch.later == "bulk" and touch.together))


def is_cluster_barrier(op: LaneOp, phase: str) -> bool:
    """Whether all blocks of the cluster "arrive" at a barrier here, or "wait" for the others, or both."""
    if op.name == "barrier":
        return bool(op.attrs["scope"] == "cluster")
    return op.name == "instruction" and effects_of(op.attrs["isa"]).meets == phase


def is_block_barrier(program: LaneProgram, op: LaneOp) -> bool:
    """Whether all warps of the block wait for each other here."""
    if op.name != "barrier" or op.attrs["scope"] == "warp":
        return False
    return "id" not in op.attrs or int(op.attrs.get("warps", program.warps)) >= program.warps


def _possible(numbers: LaneNumbers, mask: Value) -> Array | None:
    """Where a mask may hold: of a conjunction, where what is known of its sides does."""
    numbers_held = numbers[mask]
    if numbers_held is not None or mask.op is None or mask.op.name != "arith.andi":
        return numbers_held
    sides = [x for x in (_possible(numbers, v) for v in mask.op.operands) if x is not None]
    if not sides:
        return None
    return sides[0] if len(sides) == 1 else sides[0] & sides[1]


@dataclass(frozen=True, eq=False)
class Footprint:
    """Granules, in order; the first and the last thread that touches each; of an access that is known."""

    cells: Array
    first: Array
    last: Array
    lanes: int

    def overlaps(self, cells: Array) -> bool:
        """Whether any of these granules is touched."""
        return bool(len(_common(self.cells, cells)[0]))

    def after(self, earlier: Footprint) -> str:
        """Who must be waited for before this access, by one thread, may say that an earlier one is done."""
        if not len(earlier.cells):
            return ""
        threads = [int(x) for x in (self.first.min(), self.last.max())] if len(self.cells) else [0, 0]
        low, high = min(int(earlier.first.min()), threads[0]), max(int(earlier.last.max()), threads[1])
        if low == high:
            return ""
        return "warp" if low // self.lanes == high // self.lanes else "block"

    def meets(self, other: Footprint) -> str:
        """ "" if no granule is touched by two threads, one of each; "warp" if those are always of one warp; "block"."""
        if not len(self.cells) or not len(other.cells):
            return ""
        if self.cells[-1] < other.cells[0] or other.cells[-1] < self.cells[0]:
            return ""
        mine, others = _common(self.cells, other.cells)
        if not len(mine):
            return ""
        low = np.minimum(self.first[mine], other.first[others])
        high = np.maximum(self.last[mine], other.last[others])
        if (low == high).all():
            return ""
        return "warp" if (low // self.lanes == high // self.lanes).all() else "block"


def _common(a: Array, b: Array) -> tuple[Array, Array]:
    """Where what two ascending arrays have in common is in each of them."""
    if not len(a) or not len(b):
        return a[:0], b[:0]
    at = np.minimum(np.searchsorted(b, a), len(b) - 1)
    mine = np.flatnonzero(b[at] == a)
    return mine, at[mine]


def _together(ranges: Iterable[tuple[int, int]]) -> Array:
    """All numbers that are in one of some ranges, in order."""
    listed = list(ranges)
    covered = np.zeros(max((end for _, end in listed), default=0), bool)
    for begin, end in listed:
        covered[begin:end] = True
    return np.flatnonzero(covered)


LARGEST = 16
"""Bytes of the largest granule."""


class Footprints:
    """The footprints of a program whose buffers have been placed; equal ones are one object."""

    def __init__(self, program: LaneProgram, places: Places) -> None:
        self.program, self.places = program, places
        widths = [t.width for op in program.body.walk() for t in touches_of(op) if _may_be_exact(t)]
        offsets = [a.offset or 0 for a in program.shared]
        self.granule = min([LARGEST, *widths, *(o & -o for o in offsets if o)])
        self._footprints: dict[object, Footprint] = {}
        self._of_arrays: dict[tuple[int, int, int], tuple[Touch, Array, Array | None, Footprint]] = {}
        """The footprints of these very arrays, which are kept beside them: loops give the same ones again."""
        self._met: dict[tuple[Footprint, Footprint], str] = {}

    def of(self, touch: Touch, numbers: LaneNumbers) -> Footprint:
        """The footprint of an access, from what is known of its address and mask now."""
        address = numbers[touch.address] if _may_be_exact(touch) else None
        if address is None:
            return self.of_any(touch)
        mask = _possible(numbers, touch.mask) if touch.mask is not None else None
        arrays = id(touch), id(address), id(mask)
        known = self._of_arrays.get(arrays)
        if known is not None:
            return known[3]
        key = (address.tobytes(), address.shape, touch.width, touch.together)
        masked = (mask.tobytes(), mask.shape) if mask is not None else None
        footprint = self._kept((key, masked), lambda: self._exact(address, mask, touch))
        if touch.mask is None or mask is numbers[touch.mask]:  # else it was made here, and is not met again
            self._of_arrays[arrays] = touch, address, mask, footprint
        return footprint

    def exposed(self) -> Array:
        """The granules that other blocks of the cluster may touch."""
        far = [t for op in self.program.body.walk() for t in touches_of(op) if t.far]
        return _together(r for t in far for r in self._ranges(self.places.get(t.address, frozenset())))

    def of_any(self, touch: Touch) -> Footprint:
        """The footprint of an access whose address is not known."""
        places = self.places.get(touch.address, frozenset())
        return self._kept(("all", places), lambda: self._anywhere(places))

    def meet(self, a: Footprint, b: Footprint) -> str:
        """`a.meets(b)`, found once."""
        meets = self._met.get((a, b))
        if meets is None:
            meets = self._met[a, b] = a.meets(b)
        return meets

    def _kept(self, key: object, make: object) -> Footprint:
        kept = self._footprints.get(key)
        if kept is None:
            assert callable(make)
            kept = self._footprints[key] = make()
        return kept

    def _anywhere(self, places: frozenset[int]) -> Footprint:
        """Some bytes of some buffers, by any thread; of all of them where nothing is known."""
        cells = _together(self._ranges(places))
        threads = self.program.warps * self.program.lanes
        return Footprint(cells, np.zeros(len(cells), np.int64), np.full(len(cells), threads - 1), self.program.lanes)

    def _ranges(self, places: frozenset[int]) -> list[tuple[int, int]]:
        """The granules of some buffers, the first and the one after the last; of all of them where nothing is known."""
        chosen = [self.program.shared[i] for i in (places or range(len(self.program.shared)))]
        return [((a.offset or 0) // self.granule, -(-((a.offset or 0) + a.bytes) // self.granule)) for a in chosen]

    def _exact(self, address: Array, mask: Array | None, touch: Touch) -> Footprint:
        warps, lanes = self.program.warps, self.program.lanes
        shape = (warps, lanes, address.shape[2])
        each = max(1, touch.width // self.granule)
        cells = np.zeros((*shape, each), np.int64) + (address // self.granule)[..., None] + np.arange(each)
        thread = np.arange(warps * lanes).reshape(warps, lanes, 1, 1)
        first = np.zeros(cells.shape, np.int64) + (thread - thread % lanes if touch.together else thread)
        if mask is not None:
            chosen = np.broadcast_to(mask != 0, shape)
            cells, first = cells[chosen], first[chosen]
        cells, first = cells.ravel(), first.ravel()
        order = np.argsort(cells, kind="stable")
        cells, first = cells[order], first[order]
        last = first + (lanes - 1 if touch.together else 0)
        if not len(cells):
            return Footprint(cells, first, last, lanes)
        begins = np.ones(len(cells), bool)
        np.not_equal(cells[1:], cells[:-1], out=begins[1:])
        starts = np.flatnonzero(begins)
        return Footprint(cells[starts], np.minimum.reduceat(first, starts), np.maximum.reduceat(last, starts), lanes)
