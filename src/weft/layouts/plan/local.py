"""A register layout against memory that is given: shared memory with its own layout, and global memory.

`plan_local_access` finds the widest instruction for a tile in shared memory; `vector_width` how many elements one lane
can load from global memory at once, whatever dimensions they lie along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.base import LayoutError
from weft.machines import DEFAULT, Machine, machine_of

from .. import f2
from ..arguments import axis_of, bits_of, linear_of, same_names
from ..linear import LinearLayout
from ..zoo import PaddedSharedLayout, with_gaps
from .access import Access, Offsets, best_access
from .conversion import DIMS, Layout, normalised

__all__ = ["LocalAccess", "plan_local_access", "vector_width"]


@dataclass(frozen=True)
class LocalAccess:
    """How a tile in registers is stored to, or loaded from, shared memory of a given layout.

    >>> from weft.layouts import BlockedLayout, SwizzledSharedLayout, plan_local_access
    >>> rows = BlockedLayout([1, 4], [4, 8], [1, 1], [1, 0])
    >>> access = plan_local_access(rows, SwizzledSharedLayout(1, 1, 1, [1, 0]), (32, 32), 32, "cuda:90")
    >>> access.machine.name
    'cuda:90'
    """

    place: LinearLayout
    """(register, lane, warp, block) -> offset in elements, block."""
    access: Access
    machine: Machine
    copies: tuple[int, ...]
    """For each input dimension of `place`, the bits that hold copies: they are not stored."""
    gaps: tuple[tuple[int, int], ...] = ()
    """After every so many elements of memory so many more are left out; the offsets of `place` do not count them."""
    is_store: bool = False
    """Whether it was planned as a store, or as a load; the two have different instructions to choose from."""

    @property
    def cycles(self) -> float:
        """What it costs each warp."""
        return self.access.cost(self.machine)

    @property
    def instruction(self) -> str:
        """Its name: st.shared, ld.shared, or a matrix instruction."""
        name = self.access.instruction
        return name if name != "shared" else "st.shared" if self.is_store else "ld.shared"

    def to_dict(self) -> dict[str, Any]:
        """As plain data: what a warp does, and what it costs."""
        access = self.access
        return {
            "kind": "store" if self.is_store else "load",
            "target": self.machine.name,
            "instruction": self.instruction,
            "vector": 1 << access.vector,
            "instructions": access.count,
            "wavefronts": access.wavefronts,
            "least": access.ideal,
            "cycles": self.cycles,
        }

    def explain(self) -> str:
        """What is done, in words."""
        access = self.access
        return "\n".join(
            [
                f"{self.instruction}: {self.cycles:.0f} cycles a warp",
                f"    {access.count:>4} instructions of {1 << access.vector} elements of each lane",
                f"    {access.wavefronts:>4} wavefronts each, {access.ideal} at least",
            ]
        )

    def load(self, memory: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The tile [block, warp, lane, register] from memory [block, offset]."""
        block, offset = self._where()
        return np.asarray(memory)[block, offset]

    def store(self, values: npt.NDArray[Any], memory: npt.NDArray[Any]) -> None:
        """Write a tile [block, warp, lane, register] to memory [block, offset]; of copies one is written."""
        block, offset = self._where()
        index = np.indices(block.shape)[::-1]  # register, lane, warp, block
        once = np.ones(block.shape, bool)
        for at, mask in zip(index, self.copies, strict=True):
            once &= at & mask == 0
        memory[block[once], offset[once]] = values[once]

    def _where(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        shape = tuple(self.place.in_dims[d] for d in reversed(DIMS))
        flat = self.place.table().reshape(shape)
        log = self.place.out_log("offset")
        return flat >> log, np.asarray(with_gaps(flat & (1 << log) - 1, self.gaps), np.int64)


def plan_local_access(
    registers: LinearLayout | Layout,
    shared: LinearLayout | Layout,
    shape: Sequence[int],
    element_bits: int,
    target: Machine | str = DEFAULT,
    *,
    store: bool = False,
    gaps: Sequence[Sequence[int]] = (),
) -> LocalAccess:
    """The widest instruction that divides a register layout in a shared layout, after registers were renamed.

    `gaps` are (interval, padding) pairs for a shared layout that is given as its linear part. LayoutError where the
    shared layout does not hold the tile.

    >>> from weft.layouts import BlockedLayout, SwizzledSharedLayout, plan_local_access
    >>> rows = BlockedLayout([1, 4], [4, 8], [1, 1], [1, 0])
    >>> access = plan_local_access(rows, SwizzledSharedLayout(1, 1, 1, [1, 0]), (32, 32), 32, "cuda:90")
    >>> access.copies
    (0, 0, 0, 0)
    """
    if isinstance(shared, PaddedSharedLayout):
        gaps = shared.interval_padding_pairs
    source = normalised(registers, shape, "register")
    memory = linear_of(shared, shape, "the shared layout")
    if not memory.has_in("offset"):
        raise LayoutError(f"a shared layout maps offset and block to the tile, got {', '.join(memory.in_dims)}")
    if not memory.has_in("block"):
        memory = memory * LinearLayout.zeros_1d(1, "block", next(iter(memory.out_dims)))
    source, memory = same_names(source, memory)
    pairs = tuple((int(interval), int(padding)) for interval, padding in gaps)
    return _local(source, memory, bits_of(element_bits), machine_of(target), store, pairs)


@lru_cache(maxsize=1024)
def _local(
    source: LinearLayout,
    memory: LinearLayout,
    bits: int,
    machine: Machine,
    store: bool,
    gaps: tuple[tuple[int, int], ...],
) -> LocalAccess:
    place = source.invert_and_compose(memory, prefer=("block",)).transpose_outs(["offset", "block"])
    log = place.out_log("offset")
    low = (1 << log) - 1
    copies = source.free_variable_masks()
    columns = {d: [c & low for c in place.in_columns(d)] for d in DIMS}
    kept = [c for i, c in enumerate(columns["register"]) if not copies["register"] >> i & 1]
    offsets = Offsets(tuple(kept), tuple(columns["lane"]), (*columns["warp"], *columns["block"]), gaps)
    access = best_access(offsets, max(0, bits.bit_length() - 4), machine, store=store)
    return LocalAccess(place, access, machine, tuple(copies[d] for d in DIMS), gaps, store)


def shape_order(order: Sequence[int], rank: int) -> list[int]:
    """The dimensions of a tile in an order, each once."""
    axes = [axis_of(d, rank, "each of order") for d in order] if isinstance(order, (list, tuple)) else []
    if sorted(axes) != list(range(rank)):
        raise LayoutError(f"order must have each of the dimensions 0 to {rank - 1} once, got {order!r}")
    return axes


def vector_width(
    layout: LinearLayout | Layout,
    shape: Sequence[int],
    element_bits: int,
    order: Sequence[int] | None = None,
    most_bits: int = 128,
) -> int:
    """Elements that one lane can access at once in dense global memory, after registers were renamed.

    `order` lists the dimensions of the tile from the fastest on in memory, the last one first if it is not given; the
    tile is taken to be whole in memory along all but the last of them. Registers count along any dimension: where the
    fastest one is small, a vector goes on in the next. Zhou et al., section 5.1 and table 3.

    >>> tall = LinearLayout.from_bases(
    ...     {"register": [(1, 0), (0, 1)], "lane": [(2, 0), (4, 0)]}, {"dim0": 8, "dim1": 2}
    ... )
    >>> vector_width(tall, (8, 2), 16)
    4
    """
    linear = normalised(layout, shape, "register")
    dims = list(linear.out_dims)
    bits = bits_of(element_bits)
    fastest = shape_order(order, len(dims)) if order is not None else list(range(len(dims)))[::-1]
    if bits_of(most_bits) < bits:
        raise LayoutError(f"most_bits is {most_bits}, less than an element of {bits} bits")
    wanted = [dims[i] for i in fastest]
    flat = linear.transpose_outs(wanted).flatten_outs()
    registers, others = flat.in_columns("register"), 0
    for dim in ("lane", "warp", "block"):
        for column in flat.in_columns(dim):
            others |= column
    rows = f2.Echelon(registers)
    width = 0
    while (bits << width + 1) <= most_bits and 1 << width in rows and not others >> width & 1:
        width += 1
    return 1 << width
