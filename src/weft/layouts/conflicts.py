"""How many wavefronts an access of a warp to shared memory takes, and how many of them bank conflicts cost.

Shared memory has 32 banks of words of 4 bytes. In one wavefront every bank delivers one word, to all lanes that want
it. A warp whose lanes access more than a word each is served in phases, of as many consecutive lanes as 128 bytes are
for.

Two measures, equal wherever the lanes' addresses have no copies and words are not shared:

- `wavefronts` is exact: see banks.py, which the planner uses too.
- `bank_conflicts` is the figure that Triton reports, from the intersection of two spaces: that of the lanes and that of
  the elements which lie in one bank (Zhou et al., Linear Layouts, arXiv 2505.23819v5, lemma 9.4).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.base import LayoutError
from weft.machines import DEFAULT

from . import f2
from .arguments import bits_of, linear_of, same_names, shape_of
from .banks import count_wavefronts, passes
from .linear import LinearLayout
from .zoo import DistributedLayout, PaddedSharedLayout, SharedLayout

__all__ = ["bank_conflicts", "count_wavefronts", "shared_access", "wavefronts"]

BANKS, WORD_BITS = DEFAULT.banks, 8 * DEFAULT.bank_bytes
WIDEST_BITS = 8 * DEFAULT.vector_bytes


def _linear(layout: DistributedLayout | SharedLayout | LinearLayout, shape: Sequence[int]) -> LinearLayout:
    """The layout as a linear map; a linear one must be of this shape."""
    linear, sizes = linear_of(layout, shape, "the layout"), shape_of(shape, "the shape")
    if tuple(linear.out_dims.values()) != sizes:
        raise LayoutError(f"the layout is for a tile of shape {list(linear.out_dims.values())}, not {list(sizes)}")
    return linear


def _pair(
    register_layout: DistributedLayout | LinearLayout, shared_layout: SharedLayout | LinearLayout, shape: Sequence[int]
) -> tuple[LinearLayout, LinearLayout]:
    """The layout in registers and the one in shared memory, as linear maps."""
    registers, memory = _linear(register_layout, shape), _linear(shared_layout, shape)
    for linear, layout, wanted in ((registers, register_layout, "register"), (memory, shared_layout, "offset")):
        if not linear.has_in(wanted):
            where = "in registers, with lanes" if wanted == "register" else "in shared memory, with offsets"
            shown = ", ".join(linear.in_dims) if isinstance(layout, LinearLayout) else f"{layout!r}"
            raise LayoutError(
                f"expected a layout {where}, got {shown}", hint="the layout in registers comes first, then the other"
            )
    return same_names(registers, memory)


def shared_access(
    register_layout: DistributedLayout | LinearLayout, shared_layout: SharedLayout | LinearLayout, shape: Sequence[int]
) -> LinearLayout:
    """From (register, lane, warp, block) to the (offset, block) at which the element lies; copies are not stored twice.

    >>> from weft.layouts import BlockedLayout, SwizzledSharedLayout
    >>> rows = BlockedLayout([1, 4], [4, 8], [1, 1], [1, 0])
    >>> shared_access(rows, SwizzledSharedLayout(1, 1, 1, [1, 0]), [4, 32]).bases["lane"]
    ((4, 0), (8, 0), (16, 0), (32, 0), (64, 0))
    """
    registers, memory = _pair(register_layout, shared_layout, shape)
    return registers.invert_and_compose(memory)


def _vectorised(access: LinearLayout, element_bits: int) -> tuple[list[int], int]:
    """(the registers without copies, those that one instruction moves first; the number of elements it moves)."""
    offset = access.sublayout(access.in_dims, ["offset"])
    columns = offset.in_columns("register")
    distinct = [i for i, c in enumerate(access.sublayout(["register"], access.out_dims).columns) if c]
    others = [c for d in access.in_dims if d != "register" for c in offset.in_columns(d)]
    size = 1
    first: list[int] = []
    while size * 2 * element_bits <= WIDEST_BITS:
        wanted = next((i for i in distinct if columns[i] == size), None)
        if wanted is None:
            break
        first.append(wanted)
        size *= 2
    # No other bit may move within the vector; a narrower one is looked for until none does.
    while size > 1:
        rest = [columns[i] for i in distinct if i not in first] + others
        if not any(c & (size - 1) for c in rest):
            break
        first.pop()
        size //= 2
    return [*first, *(i for i in distinct if i not in first)], size


def bank_conflicts(
    register_layout: DistributedLayout | LinearLayout,
    shared_layout: SharedLayout | LinearLayout,
    shape: Sequence[int],
    element_bits: int,
) -> int:
    """The wavefronts beyond the unavoidable ones, in each phase of an access, as Triton's `bank_conflicts` counts.

    With padding, where Triton has no figure, they are counted: those of the worst access, on the average of its phases.

    >>> from weft.layouts import BlockedLayout, SwizzledSharedLayout
    >>> columns = BlockedLayout([8, 1], [8, 4], [1, 4], [0, 1])
    >>> bank_conflicts(columns, SwizzledSharedLayout(1, 1, 1, [1, 0]), [64, 64], 16)
    7
    >>> bank_conflicts(columns, SwizzledSharedLayout(1, 8, 8, [1, 0]), [64, 64], 16)
    3
    """
    bits = bits_of(element_bits)
    tile, memory = _pair(register_layout, shared_layout, shape)
    order, vector = _vectorised(tile.invert_and_compose(memory), bits)
    if isinstance(shared_layout, PaddedSharedLayout):
        size = _uncut(shared_layout, vector)
        least = max(1, size * bits // WORD_BITS)
        return -(-_worst(tile.invert_and_compose(memory), shared_layout, order, size, bits) // least) - 1
    in_one_vector = vector.bit_length() - 1
    banked = max(0, (BANKS * WORD_BITS // (vector * bits)).bit_length() - 1)
    elements = memory.columns
    same_bank = elements[min(len(elements), in_one_vector + banked) :]
    lanes = tile.transpose_outs(list(memory.out_dims)).in_columns("lane")
    phases = max(1, vector * bits // WORD_BITS).bit_length() - 1
    return (1 << len(f2.intersection(same_bank, lanes[: max(0, len(lanes) - phases)]))) - 1


def wavefronts(
    register_layout: DistributedLayout | LinearLayout,
    shared_layout: SharedLayout | LinearLayout,
    shape: Sequence[int],
    element_bits: int,
    vector: int | None = None,
) -> int:
    """The wavefronts of one access of a warp, exactly: 1 is the least, 2 or 4 if lanes access 8 or 16 bytes each.

    `vector` is the number of elements that a lane accesses; by default as many as are consecutive, up to 16 bytes. With
    padding, accesses differ; then it is the most that one of them takes.

    >>> from weft.layouts import BlockedLayout, SwizzledSharedLayout
    >>> rows, columns = (BlockedLayout([1, 1], t, [1, 1], [1, 0]) for t in ([2, 16], [32, 1]))
    >>> [wavefronts(columns, SwizzledSharedLayout(1, 1, m, [1, 0]), [32, 16], 32) for m in (1, 8, 16)]
    [16, 4, 2]
    """
    bits = bits_of(element_bits)
    access = shared_access(register_layout, shared_layout, shape)
    order, consecutive = _vectorised(access, bits)
    if isinstance(shared_layout, PaddedSharedLayout):
        consecutive = _uncut(shared_layout, consecutive)
    size = consecutive if vector is None else vector
    if size not in (1, 2, 4, 8, 16, 32, 64, 128) or size > consecutive:
        raise LayoutError(
            f"wavefronts: a vector of {vector} elements was requested, but a lane has only {consecutive} in a row",
            hint="vector must be a power of two, up to that",
        )
    if isinstance(shared_layout, PaddedSharedLayout):
        return _worst(access, shared_layout, order, size, bits)
    lanes = access.sublayout(["lane"], ["offset"]).columns
    return passes(lanes, bits.bit_length() - 1, size.bit_length() - 1)[0]


def _uncut(shared: PaddedSharedLayout, vector: int) -> int:
    """The largest vector that no padding cuts, so that all start at a multiple of their size."""
    return min(vector, *(size for pair in shared.interval_padding_pairs for size in pair))


def _worst(access: LinearLayout, shared: PaddedSharedLayout, order: Sequence[int], size: int, bits: int) -> int:
    """The most wavefronts that any access of any warp takes, by counting."""
    first = size.bit_length() - 1
    lanes = np.arange(access.in_dims["lane"])
    most = 1
    for warp in range(access.in_dims.get("warp", 1)):
        for index in range(1 << len(order) - first):
            register = sum(1 << bit for i, bit in enumerate(order[first:]) if index >> i & 1)
            fixed = {"register": register, "warp": warp}
            place = {d: lanes if d == "lane" else np.array(fixed.get(d, 0)) for d in access.in_dims}
            offsets = access.apply(place)["offset"]
            most = max(most, count_wavefronts(shared.address(offsets) * bits // 8, size * bits // 8))
    return most
