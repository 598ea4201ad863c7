"""How far along an axis a nest has to go, where the rest of the tile is padding that nothing looks at.

The extents of a tile are powers of two, and what a kernel works on seldom is. A row of 33 elements is a tile of 64:

    mask = r < 33                                    # r = tl.arange(0, 64)
    x = tl.load(p + r, mask, other=0.0)
    s = tl.sum(tl.where(mask, abs(x), 0.0))          # the elements from 33 on add nothing

So loops along that axis end at 33: four vectors of eight without masks, and one with a mask. An axis has such an end if
each root of the nest ignores what lies beyond a constant:

    a store             its mask says so
    a reduction         it reduces a selection of what lies before the end, and of a constant that may be combined in
                        as often as one likes (0 in a sum, anything in a maximum); its accumulators begin with that
    a write of a tile   all that read the tile ignore what lies beyond, in one of these ways

`find_extents` gives these ends; nest.py and reduce.py cut their loops by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import NamedTuple

from weft.backends.cpu.coords import Coords, constant_of, row_major
from weft.backends.cpu.elementwise import EMITTERS
from weft.backends.cpu.planned import Planned, Root
from weft.backends.cpu.program import Op, Value
from weft.backends.cpu.questions import MOVES, constant_int, operands_at
from weft.backends.cpu.roots import WriteRoot
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I64, Value as Reg, const

LESS, AT_MOST, MORE, AT_LEAST = (2, 6), (3, 7), (4, 8), (5, 9)  # predicates of comparisons, signed and unsigned
MOST_READERS = 24
CHOOSING = frozenset(("arith.cmpf", "arith.cmpi", "arith.ori", "arith.andi", "arith.xori", "arith.constant"))


class Extent(NamedTuple):
    """The end of an axis, before which a nest has to look at all elements."""

    bits: tuple[int, ...]
    """The bits of the axis, lowest first."""
    end: int


class Reached(NamedTuple):
    """Where axes end, as a program knows when it gets there (i64), and the masks that hold before."""

    ends: list[tuple[Extent, Reg]]
    inside: Set[Value]
    known: Reg
    """A bit: whether that is so; otherwise the ends are those of the tile, and no mask is known to hold."""

    def of_loop(self, bits: Sequence[int], shift: Callable[[Extent], int]) -> tuple[Extent, Reg] | None:
        """The axis that a loop over some bits goes along, and its end."""
        return next((e for e in self.ends if e[0].bits[shift(e[0]) :] == tuple(bits)), None)


def find_extents(roots: Sequence[Root], coords: Coords) -> list[Extent]:
    """The axes along which a nest of these roots may end before its tile does."""
    extents: list[Extent] = []
    for axis, bits in enumerate(coords):
        if len(bits) < 2:
            continue
        ends = [_end_of_root(root, bits, axis) for root in roots if not _is_hint(root)]
        if ends and None not in ends:
            end = max(e for e in ends if e is not None)
            if end < 1 << len(bits):
                extents.append(Extent(bits, end))
    return extents


def _is_hint(root: Root) -> bool:
    """Whether a root changes nothing: what it prefetches beyond an end is padding too."""
    return root.op is None and not isinstance(root, WriteRoot)


def _end_of_root(root: Root, bits: tuple[int, ...], axis: int) -> int | None:
    """Where an axis ends for a root; None if it has to look at all of it."""
    op = root.op
    if isinstance(root, WriteRoot):
        return _end_for_readers(root.value, root.coords.index(bits)) if root.keep and bits in root.coords else None
    assert op is not None
    if op.name == "tt.store":
        return end_of_mask(op.args[2], row_major(root.shape), bits) if len(op.args) > 2 else None
    if op.name == "tt.reduce" and op.attrs["axis"] == axis:
        padding = padding_of(op)
        return None if padding is None else padding[0]
    return None


def padding_of(op: Op) -> tuple[int, float | int] | None:
    """Where the elements of what is reduced end, and the constant that follows up to the end of the tile; None if that
    is not known, or may not be combined in as often as one likes.
    """
    chosen = op.args[0].op
    if len(op.args) != 1 or chosen is None or chosen.name != "arith.select" or not chosen.args[0].is_tile:
        return None
    axis = op.attrs["axis"]
    coords = row_major(chosen.result.shape)
    end = end_of_mask(chosen.args[0], coords, coords[axis])
    other = chosen.args[2].op
    while other is not None and other.name in ("tt.splat", "tt.broadcast"):
        other = other.args[0].op
    if end is None or other is None or other.name != "arith.constant":
        return None
    data = other.attrs["value"]
    if not isinstance(data, (int, float)) or end >= op.args[0].shape[axis] or end <= 0:
        return None
    return (end, data) if repeats(op, data) else None


def repeats(op: Op, data: float | int) -> bool:
    """Whether a constant combined with itself is that constant."""
    block = op.regions[0][0]
    ops, args = block.ops, set(block.args)
    last = ops[-1].args[0].op
    if last is None or last not in ops or op.args[0].elem[0] not in "if" or op.args[0].elem.startswith("f8"):
        return False
    if last.name == "arith.select":  # either of the two
        quiet = all(o.name in CHOOSING for o in ops if o is not last and o is not ops[-1])
        return quiet and set(last.args[1:]) == args
    if len(ops) != 2 or set(last.args) != args:
        return False
    if last.name in ("arith.addf", "arith.addi", "arith.xori"):
        return data == 0
    if last.name in ("arith.mulf", "arith.muli"):
        return data == 1
    return last.name in REPEATING and data == data


DIVIDING = frozenset(
    f"arith.{name}" for name in ("divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi")
)
REPEATING = frozenset(
    f"arith.{name}"
    for name in ("maximumf", "minimumf", "maxnumf", "minnumf", "maxsi", "minsi", "maxui", "minui", "andi", "ori")
)


def end_of_mask(mask: Value, coords: Coords, bits: tuple[int, ...]) -> int | None:
    """The place along an axis from which a mask holds nowhere; None if there is none."""
    ends = [end for _, end in comparisons(mask, coords, bits)]
    return min(ends) if ends else None


def comparisons(mask: Value, coords: Coords, bits: tuple[int, ...]) -> list[tuple[Value, int]]:
    """The comparisons of a place along an axis with a constant that a mask is a conjunction of, and what they hold
    below.
    """
    op = mask.op
    if op is None or not mask.is_tile:
        return []
    if op.name in MOVES[:4] or op.name == "arith.andi":
        return [c for part in operands_at(op, mask, coords) for c in comparisons(*part, bits)]
    if op.name != "arith.cmpi":
        return []
    predicate = op.attrs["predicate"]
    low, high = op.args if predicate in LESS + AT_MOST else reversed(op.args)
    end = constant_int(high)
    if predicate not in LESS + AT_MOST + MORE + AT_LEAST or end is None or end < 0 or not counts(low, coords, bits):
        return []
    return [(mask, end + (predicate in AT_MOST + AT_LEAST))]


def counts(value: Value, coords: Coords, bits: tuple[int, ...]) -> bool:
    """Whether an integer is the place along an axis."""
    op = value.op
    while op is not None and op.name in (*MOVES[:4], "arith.extsi", "arith.extui"):
        ((value, coords),) = operands_at(op, value, coords)
        op = value.op
    return op is not None and op.name == "tt.make_range" and not op.attrs.get("start", 0) and coords == (bits,)


def _end_for_readers(value: Value, axis: int) -> int | None:
    """The end beyond which nothing that reads a tile looks at it, along one of its axes."""
    ends: list[int] = []
    todo, seen = [value], {value}
    while todo:
        current = todo.pop()
        if current.elem == "ptr":
            return None
        coords = row_major(current.shape)
        for user in current.users:
            end: int | None = None
            if user.name == "arith.select" and user.args[0].is_tile and user.args[1] is current is not user.args[0]:
                end = end_of_mask(user.args[0], coords, coords[axis]) if user.args[2] is not current else None
            elif user.name == "tt.store" and len(user.args) > 2 and user.args[1] is current:
                end = end_of_mask(user.args[2], coords, coords[axis])
            if end is not None:
                ends.append(end)
                continue
            padding = padding_of(user) if user.name == "tt.reduce" and user.attrs["axis"] == axis else None
            if padding is not None:
                ends.append(padding[0])
                continue
            if len(user.results) != 1 or user.regions or user.result.shape != current.shape or not _by_elements(user):
                return None
            if user.result not in seen:
                seen.add(user.result)
                todo.append(user.result)
        if len(seen) > MOST_READERS:
            return None
    return max(ends, default=None)


def _by_elements(op: Op) -> bool:
    """Whether an operation makes numbers of those at the same place, and nothing else, whatever numbers they are: an
    integer may not be divided by what was never written.
    """
    return op.name in EMITTERS and op.name not in DIVIDING


class Ends:
    """The ends of the axes of one nest, and what of it is being emitted: all before them, or what is left.

    An axis whose bits are `walked` along rows has none.
    """

    def __init__(self, nest: Planned, walked: Sequence[int]) -> None:
        self.nest = nest
        self.extents = [] if nest.transposes or nest.zips else find_extents(nest.roots, nest.coords)
        self.extents = [e for e in self.extents if e.bits != tuple(walked)]
        if self.extents:
            runs = nest.loop_runs([*nest.inner_bits, *nest.outer_bits])
            self.extents = [e for e in self.extents if self._is_cut(e, runs)]
        self.limit = self._find_limit(walked)
        self.reached: Reached | None = None
        """Ends that are known at run time (store_ends.py), while loops up to them are emitted."""
        self.left: dict[tuple[int, ...], int] = {}
        """Of the axes of which what is left is emitted: how much."""

    def _find_limit(self, walked: Sequence[int]) -> tuple[Extent, Reg] | None:
        """The axis of a single write that has to go only to a place that is known at run time."""
        roots = [root for root in self.nest.roots if not _is_hint(root)]
        root = roots[0]
        if len(roots) > 1 or not isinstance(root, WriteRoot) or root.end is None:
            return None
        axis, end = root.end
        extent = Extent(root.coords[axis], 1 << len(root.coords[axis]))
        runs = self.nest.loop_runs([*self.nest.inner_bits, *self.nest.outer_bits])
        if self.extents or self.nest.transposes or self.nest.zips or walked or not self._is_cut(extent, runs):
            return None
        return extent, end

    def limit_of_loop(self, f: Function, bits: Sequence[int]) -> Reg | None:
        """How many iterations a loop over some bits has, where that is known at run time."""
        if self.limit is None or tuple(bits) != self.limit[0].bits[self.at_once(self.limit[0]) :]:
            return None
        extent, end = self.limit
        shift = self.at_once(extent)
        return f.lshr(f.add(end, const(I64, (1 << shift) - 1)), const(I64, shift))

    def _is_cut(self, extent: Extent, runs: Sequence[tuple[int, ...]]) -> bool:
        """Whether an axis has one loop, which counts groups of vectors in order."""
        rest = tuple(b for b in extent.bits if b not in self.nest.lane_bits and b not in self.nest.unroll)
        in_order = rest == extent.bits[self.at_once(extent) :]
        return in_order and (rest in runs or extent.bits == self.nest.reduce_bits)

    @property
    def bits(self) -> set[int]:
        """The bits of the axes that end early."""
        return {b for e in self.extents for b in e.bits}

    def at_once(self, extent: Extent) -> int:
        """How many bits of an axis are lanes or copies of the body."""
        return sum(b in self.nest.lane_bits or b in self.nest.unroll for b in extent.bits)

    def of_loop(self, bits: Sequence[int]) -> Extent | None:
        """The extent of the axis along which a loop over some bits counts."""
        return next((e for e in self.extents if tuple(bits) == e.bits[self.at_once(e) :]), None)

    def parts(self, extent: Extent) -> tuple[int, int]:
        """How many iterations the loop along an axis has in which all elements lie before the end, and how many
        elements are left.
        """
        return divmod(extent.end, 1 << self.at_once(extent))

    @contextmanager
    def rest(self, extent: Extent, left: int) -> Iterator[None]:
        """While what is left at the end of an axis is emitted."""
        self.left[extent.bits] = left
        yield
        del self.left[extent.bits]

    def hold(self) -> set[Value]:
        """The comparisons that hold before the ends, wherever the nest makes them."""
        answers: dict[Value, bool] = {}
        for value, coords in self.nest.visited if self.extents else ():
            if value.op is not None and value.op.name == "arith.cmpi" and value not in self.nest.env:
                ends = [(e, end) for e in self.extents for _, end in comparisons(value, coords, e.bits)]
                answers[value] = answers.get(value, True) and any(end >= e.end for e, end in ends)
        return {value for value, holds in answers.items() if holds}

    def reach(self, copy: dict[int, int]) -> tuple[bool, bool]:
        """Whether a copy of the body has any elements before the ends, and only such."""
        some = every = True
        for bits, left in self.left.items():
            first = sum(constant_of(copy[b]) << i for i, b in enumerate(bits) if b in copy)
            lanes = sum(1 << i for i, b in enumerate(bits) if b in self.nest.lane_bits)
            some, every = some and first < left, every and first + lanes < left
        return some, every
