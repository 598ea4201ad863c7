"""Which named layout a linear layout is.

Parameters of blocked, sliced and swizzled layouts are read off the bases; matrix instructions are few, so that all with
the same lanes are tried. Whatever is found has been compared: its `to_linear` is the layout.

    >>> from weft.layouts import BlockedLayout, NVMMADistributedLayout
    >>> describe(BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]).to_linear([64, 64]))
    BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    >>> describe(NVMMADistributedLayout([2, 0], [2, 2], [16, 8]).to_linear([64, 64]))
    NVMMADistributedLayout([2, 0], [2, 2], [16, 8])

Different named layouts can be one map, and one layout can be written with different parameters; `descriptions` lists a
layout of each family, `describe` gives the first, families being in order from the general to the special.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import permutations, product
from typing import TypeAlias

from weft.base import LayoutError

from . import zoo
from .linear import LinearLayout
from .zoo.parts import dim_names

__all__ = ["describe", "descriptions"]

Basis = tuple[int, ...]
Bases = dict[str, tuple[Basis, ...]]
Shape = tuple[int, ...]


def describe(layout: LinearLayout) -> zoo.Layout | None:
    """A named layout whose `to_linear`, for this layout's shape, is this layout; None if there is none.

    Layouts of registers with no other name are a DistributedLinearLayout, those of shared memory a SharedLinearLayout,
    if they are such layouts at all.

    >>> from weft.layouts import BlockedLayout, describe
    >>> describe(BlockedLayout([4], [32], [1], [0]).to_linear([128]))
    BlockedLayout([4], [32], [1], [0])
    """
    if not isinstance(layout, LinearLayout):
        raise LayoutError(f"describe needs a LinearLayout, got {layout!r}", hint="a named layout has to_linear(shape)")
    first = _first(layout)
    return first[0] if first else None


def descriptions(layout: LinearLayout) -> list[zoo.Layout]:
    """A named layout of each family of which this layout is one: blocked, sliced, each kind of instruction, ...

    >>> from weft.layouts import BlockedLayout, descriptions
    >>> [type(layout).__name__ for layout in descriptions(BlockedLayout([4], [32], [1], [0]).to_linear([128]))]
    ['BlockedLayout', 'SliceLayout', 'DistributedLinearLayout']
    """
    by_types: dict[tuple[type, ...], zoo.Layout] = {}
    for search in _searches(layout):
        first = next(search, None)
        if first is not None:
            by_types.setdefault(_family(first), first)
    return list(by_types.values())


def _family(layout: zoo.Layout) -> tuple[type, ...]:
    """The classes of a layout and its parents."""
    if isinstance(layout, (zoo.SliceLayout, zoo.DotOperandLayout)):
        return type(layout), *_family(layout.parent)
    return (type(layout),)


@lru_cache(maxsize=1024)
def _first(layout: LinearLayout) -> tuple[zoo.Layout, ...]:
    for search in _searches(layout):
        match = next(search, None)
        if match is not None:
            return (match,)
    return ()


def _searches(layout: LinearLayout) -> Iterator[Iterator[zoo.Layout]]:
    """For each family that is possible, those of its layouts that are this one."""
    ins, outs = list(layout.in_dims), list(layout.out_dims)
    if outs != dim_names(len(outs)) or not outs:
        return
    if ins == ["register", "lane", "warp", "block"]:
        families: Sequence[Callable[[LinearLayout], Iterator[zoo.Layout]]] = REGISTERS
    elif ins == ["offset", "block"]:
        families = SHARED
    elif ins == ["row", "col"] and len(outs) == 2:
        families = TENSOR_MEMORY
    else:
        return
    shape = tuple(layout.out_dims.values())
    for family in families:
        yield (candidate for candidate in family(layout) if _is(candidate, layout, shape))


def _is(candidate: zoo.Layout, layout: LinearLayout, shape: Shape) -> bool:
    try:
        return candidate.rank == len(shape) and candidate.to_linear(shape) == layout
    except LayoutError:  # it does not fit the shape
        return False


# -- what all families of registers need -------------------------------------------------------------------------------


def _cluster(bases: Bases, shape: Shape) -> tuple[tuple[Basis, ...], Shape] | None:
    """(cga_layout, shape of one block's part), or None where blocks do not split the tile in parts side by side."""
    sizes = list(shape)
    for basis in bases["block"]:
        if sum(map(bool, basis)) > 1:
            return None
        sizes = [size // 2 if c else size for size, c in zip(sizes, basis, strict=True)]
    if not all(sizes):
        return None
    cga = tuple(tuple(c // size for c, size in zip(basis, sizes, strict=True)) for basis in bases["block"])
    return cga, tuple(sizes)


def _inserted(bases: Bases, at: int) -> Bases:
    """The bases with one more coordinate, 0."""
    return {name: tuple((*b[:at], 0, *b[at:]) for b in columns) for name, columns in bases.items()}


def _splits(log: int, rank: int) -> Iterator[Shape]:
    """All ways of writing 2 ** log as a product of `rank` powers of two, the first factor largest first."""
    if rank == 1:
        yield (1 << log,)
        return
    for first in range(log, -1, -1):
        for rest in _splits(log - first, rank - 1):
            yield (1 << first, *rest)


# -- blocked layouts and slices of them --------------------------------------------------------------------------------


def _blocked(layout: LinearLayout) -> Iterator[zoo.Layout]:
    yield from _blocked_of(layout.bases, tuple(layout.out_dims.values()))


def _blocked_of(bases: Bases, shape: Shape) -> Iterator[zoo.BlockedLayout]:
    """Blocked layouts that may have these bases, for every order of dimensions."""
    cluster = _cluster(bases, shape)
    if cluster is None:
        return
    cga, own = cluster
    rank = len(shape)
    for order in permutations(reversed(range(rank))):
        reached = [1] * rank
        sizes = []
        for name in ("register", "lane", "warp"):
            counts, left = _counts(bases[name], order, reached, own)
            if left and name != "register":
                break
            sizes.append(counts)
        else:
            yield zoo.BlockedLayout(sizes[0], sizes[1], sizes[2], order, cga)


def _counts(bases: Sequence[Basis], order: Sequence[int], reached: list[int], shape: Shape) -> tuple[list[int], int]:
    """(how far places move along each dimension, counted in this order; the number of bases that are left).

    `reached` is how far others have moved, and is moved on. Once a dimension is covered, zeros count as moves along it.
    """
    counts = [1] * len(order)
    at = 0
    for dim in order:
        while at < len(bases):
            basis = bases[at]
            forward = all(c == (reached[dim] if d == dim else 0) for d, c in enumerate(basis))
            if forward and reached[dim] < shape[dim]:
                reached[dim] *= 2
            elif any(basis) or reached[dim] < shape[dim]:
                break
            counts[dim] *= 2
            at += 1
    return counts, len(bases) - at


def _slices(layout: LinearLayout) -> Iterator[zoo.Layout]:
    """Slices of blocked layouts, and slices of slices."""
    bases, shape = layout.bases, tuple(layout.out_dims.values())
    for at in range(len(shape) + 1):
        larger = (*shape[:at], 1, *shape[at:])
        for parent in _blocked_of(_inserted(bases, at), larger):
            yield zoo.SliceLayout(at, parent)
    if len(shape) > 2:
        return
    for first in range(len(shape) + 1):
        larger = (*shape[:first], 1, *shape[first:])
        for second in range(first, len(larger) + 1):
            widest = (*larger[:second], 1, *larger[second:])
            for parent in _blocked_of(_inserted(_inserted(bases, first), second), widest):
                yield zoo.SliceLayout(first, zoo.SliceLayout(second, parent))


# -- matrix instructions -----------------------------------------------------------------------------------------------


Builds: TypeAlias = Iterator[Callable[[Shape, Shape], zoo.DistributedLayout]]
"""For each instruction, a function from the warps and the tiles of a warp to the layout."""


def _instructions(make: Callable[[int, int], Builds], tiled: bool) -> Callable[[LinearLayout], Iterator[zoo.Layout]]:
    """The search for a family: the instructions with these lanes, with every arrangement of warps.

    With `tiled`, several tiles of one instruction side by side in each warp.
    """

    def search(layout: LinearLayout) -> Iterator[zoo.Layout]:
        yield from _arranged(make, layout.bases, tuple(layout.out_dims.values()), tiled)

    return search


def _arranged(
    make: Callable[[int, int], Builds], bases: Bases, shape: Shape, tiled: bool = False
) -> Iterator[zoo.DistributedLayout]:
    cluster, rank = _cluster(bases, shape), len(shape)
    if cluster is None or rank not in (2, 3):
        return
    lanes, warps = bases["lane"], len(bases["warp"])
    unit = (1,) * rank
    seen = set()
    for build in make(rank, len(lanes)):
        try:
            probe = _with_cluster(build(unit, unit), cluster[0])
            if probe.to_linear(shape).bases["lane"] != lanes:
                continue
        except LayoutError:
            continue
        more = (t for total in range(1, 5) for t in _splits(total, rank) if t[: rank - 2] == unit[: rank - 2])
        for tiles in more if tiled else (unit,):
            for arrangement in _splits(warps, rank):
                candidate = _with_cluster(build(arrangement, tiles), cluster[0])
                if candidate not in seen:
                    seen.add(candidate)
                    yield candidate


def _with_cluster(layout: zoo.DistributedLayout, cga: tuple[Basis, ...]) -> zoo.DistributedLayout:
    """The same layout for a cluster."""
    if not cga:
        return layout
    if isinstance(layout, zoo.DotOperandLayout):
        return zoo.DotOperandLayout(layout.operand_index, _with_cluster(layout.parent, cga), layout.k_width)
    if isinstance(layout, zoo.NVMMADistributedLayout):
        return zoo.NVMMADistributedLayout(layout.version, layout.warps_per_cta, layout.instr_shape, cga)
    if isinstance(layout, zoo.AMDMFMALayout):
        return zoo.AMDMFMALayout(
            layout.version,
            layout.instr_shape,
            layout.transposed,
            layout.warps_per_cta,
            layout.element_bitwidth,
            layout.tiles_per_warp,
            cga,
        )
    if isinstance(layout, zoo.AMDWMMALayout):
        return zoo.AMDWMMALayout(
            layout.version, layout.transposed, layout.warps_per_cta, layout.instr_shape, layout.tiles_per_warp, cga
        )
    raise LayoutError(f"{layout!r} has no clusters")


def _operand(
    parent: Callable[[Shape, Shape], zoo.DistributedLayout], index: int, k_width: int
) -> Callable[[Shape, Shape], zoo.DistributedLayout]:
    return lambda warps, tiles: zoo.DotOperandLayout(index, parent(warps, tiles), k_width)


def _mma(version: int, columns: int) -> Callable[[int], Callable[[Shape, Shape], zoo.DistributedLayout]]:
    def of_rank(rank: int) -> Callable[[Shape, Shape], zoo.DistributedLayout]:
        shape = (*(1,) * (rank - 2), 16, 8) if version == 2 else (16, columns, 16)
        return lambda warps, tiles: zoo.NVMMADistributedLayout((version, 0), warps, shape)

    return of_rank


def _mma_sync(rank: int, lanes: int) -> Builds:
    if lanes == 5:
        yield _mma(2, 8)(rank)


def _mma_sync_operands(rank: int, lanes: int) -> Builds:
    if lanes == 5:
        for index, k_width in product((0, 1), (1, 2, 4, 8, 16, 32)):
            yield _operand(_mma(2, 8)(rank), index, k_width)


def _wgmma(rank: int, lanes: int) -> Builds:
    if lanes == 5 and rank == 2:
        for columns in (256, 128, 64, 32, 16, 8):
            yield _mma(3, columns)(rank)


def _wgmma_operands(rank: int, lanes: int) -> Builds:
    if lanes == 5 and rank == 2:
        for k_width in (1, 2, 4, 8, 16, 32):
            yield _operand(_mma(3, 64)(rank), 0, k_width)


MFMA_TILES = ((32, 32), (16, 16), (64, 4), (4, 64))
MFMA_DEPTH = {32: 8, 16: 16, 64: 4, 4: 4}


def _mfma_of(m: int, n: int, transposed: bool, bits: int) -> Callable[[Shape, Shape], zoo.DistributedLayout]:
    shape = (m, n, MFMA_DEPTH[m])
    return lambda warps, tiles: zoo.AMDMFMALayout(3, shape, transposed, warps, bits, tiles)


def _mfma(rank: int, lanes: int) -> Builds:
    if lanes == 6:
        for (m, n), transposed, bits in product(MFMA_TILES, (True, False), (32, 64)):
            if transposed or m != 64:
                yield _mfma_of(m, n, transposed, bits)


def _mfma_operands(rank: int, lanes: int) -> Builds:
    if lanes == 6:
        for (m, n), index, k_width in product(MFMA_TILES, (0, 1), (1, 2, 4, 8, 16, 32)):
            yield _operand(_mfma_of(m, n, True, 32), index, k_width)


def _wmma_of(version: int, depth: int, transposed: bool) -> Callable[[Shape, Shape], zoo.DistributedLayout]:
    return lambda warps, tiles: zoo.AMDWMMALayout(version, transposed, warps, (16, 16, depth), tiles)


def _wmma(rank: int, lanes: int) -> Builds:
    if lanes == 5:
        for version, transposed in product((2, 1), (True, False)):
            yield _wmma_of(version, 16, transposed)


def _wmma_operands(rank: int, lanes: int) -> Builds:
    if lanes == 5:
        options = [(2, d, k) for d in (16, 32) for k in (4, 8, 16)]
        options += [(3, d, k) for d in (4, 32, 64, 128) for k in (2, 8, 16)] + [(1, 16, k) for k in (8, 16)]
        for (version, depth, k_width), index in product(options, (0, 1)):
            yield _operand(_wmma_of(version, depth, True), index, k_width)


def _dpas_of(count: int, ops: int, cluster: Shape, threads: int) -> Callable[[Shape, Shape], zoo.DistributedLayout]:
    return lambda warps, tiles: zoo.IntelDPASLayout(count, 8, 16, ops, warps, cluster, threads)


def _dpas(rank: int, lanes: int) -> Builds:
    if lanes in (4, 5):
        clusters = [c for total in range(4) for c in _splits(total, rank) if c[: rank - 2] == (1,) * (rank - 2)]
        for count, cluster in product((8, 4, 2, 1), clusters):
            yield _dpas_of(count, 2, cluster, 1 << lanes)


def _dpas_operands(rank: int, lanes: int) -> Builds:
    if lanes in (4, 5):
        clusters = [c for total in range(4) for c in _splits(total, rank) if c[: rank - 2] == (1,) * (rank - 2)]
        for ops, index, count, cluster in product((2, 4, 1, 8), (0, 1), (8, 4, 2, 1), clusters):
            if cluster[rank - 1 - index] == 1 and (index == 0 or count == 8):  # what does not show in this operand
                yield _operand(_dpas_of(count, ops, cluster, 1 << lanes), index, ops if index else max(1, ops // 2))


INSTRUCTIONS = (
    _mma_sync,
    _wgmma,
    _mma_sync_operands,
    _wgmma_operands,
    _mfma,
    _wmma,
    _mfma_operands,
    _wmma_operands,
    _dpas,
    _dpas_operands,
)

TILED = (_mfma, _wmma, _mfma_operands, _wmma_operands)
"""Those with tiles_per_warp."""


def _instruction_slices(layout: LinearLayout) -> Iterator[zoo.Layout]:
    bases, shape = layout.bases, tuple(layout.out_dims.values())
    searches = [*((make, False) for make in INSTRUCTIONS), *((make, True) for make in TILED)]
    for make, tiled in searches:
        for at in range(len(shape) + 1):
            larger = (*shape[:at], 1, *shape[at:])
            for parent in _arranged(make, _inserted(bases, at), larger, tiled):
                yield zoo.SliceLayout(at, parent)


def _explicit_registers(layout: LinearLayout) -> Iterator[zoo.Layout]:
    try:
        bases, shape = layout.bases, tuple(layout.out_dims.values())
        yield zoo.DistributedLinearLayout(bases["register"], bases["lane"], bases["warp"], bases["block"], shape)
    except LayoutError:  # a basis moves in two dimensions, or not everything is reached
        return


# -- shared and tensor memory ------------------------------------------------------------------------------------------


def _swizzled(layout: LinearLayout) -> Iterator[zoo.Layout]:
    bases, shape = layout.bases, tuple(layout.out_dims.values())
    cluster = _cluster(bases, shape)
    if cluster is None:
        return
    cga, rank = cluster[0], len(shape)
    for order in permutations(reversed(range(rank))):
        if rank == 1:
            yield zoo.SwizzledSharedLayout(1, 1, 1, order, cga)
            return
        column, row = order[:2]
        phases = [(b[row], b[column]) for b in bases["offset"] if b[row]]
        swizzled = [(r, c) for r, c in phases if c]
        if not swizzled:
            yield zoo.SwizzledSharedLayout(1, 1, 1, order, cga)
        elif all(x & (x - 1) == 0 for x in swizzled[0]):
            # Phases may go on beyond the columns, where they show no more.
            for extra in range(3):
                yield zoo.SwizzledSharedLayout(swizzled[0][1], swizzled[0][0], 1 << len(swizzled) + extra, order, cga)


def _nvmma_shared(layout: LinearLayout) -> Iterator[zoo.Layout]:
    shape = tuple(layout.out_dims.values())
    cluster = _cluster(layout.bases, shape)
    rank = len(shape)
    if cluster is None or rank > 5:
        return
    widths = (128, 64, 32, 0) if rank > 1 else (0,)
    for width, bits, transposed, padded in product(widths, (16, 8, 32, 64), (False, True), (False, True)):
        yield zoo.NVMMASharedLayout(width, bits, rank, transposed, padded, cluster[0])


def _explicit_shared(layout: LinearLayout) -> Iterator[zoo.Layout]:
    try:
        yield zoo.SharedLinearLayout(layout.bases["offset"], layout.bases["block"])
    except LayoutError:  # not everything is reached
        return


def _tensor_memory(layout: LinearLayout) -> Iterator[zoo.Layout]:
    columns = layout.out_log("dim1")
    splits = [(1, 1), *((a, b) for a, b in product((1, 2, 4), (1, 2, 4)) if (a, b) != (1, 1))]
    for split, pair in product(splits, (False, True)):
        for rows, log, stride in product((128, 64), range(min(columns, 9), -1, -1), (1, 2, 4)):
            yield zoo.TensorMemoryLayout((rows, 1 << log), stride, split if split != (1, 1) else None, pair)


def _tensor_memory_scales(layout: LinearLayout) -> Iterator[zoo.Layout]:
    for split in product((1, 2, 4), (1, 2, 4)):
        yield zoo.TensorMemoryScalesLayout(split if split != (1, 1) else None)


REGISTERS = (
    _blocked,
    *(_instructions(make, tiled=False) for make in INSTRUCTIONS),
    _slices,
    *(_instructions(make, tiled=True) for make in TILED),
    _instruction_slices,
    _explicit_registers,
)
SHARED = (_swizzled, _nvmma_shared, _explicit_shared)
TENSOR_MEMORY = (_tensor_memory, _tensor_memory_scales)
