"""Loops that store up to where masks end the axes of a tile, in the version for tiles that are not wholly inside.

    mask = (r[:, None] < m) & (i[None, :] < n)      # 16 rows, tiles of 256 columns, n = 129
    tl.store(out + r[:, None] * n + i[None, :], x + b, mask)

Nobody stores what lies beyond, so the loop over rows ends at row `m`, and that over vectors of eight columns behind the
sixteenth; these are without masks, and a last one, with a mask, has the column that is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft.backends.cpu.corners import Conditions
from weft.backends.cpu.evaluate import Evaluator
from weft.backends.cpu.extents import Extent, Reached
from weft.backends.cpu.mask_bounds import Bound, Emission, bounds_of, end_of, keys_of
from weft.backends.cpu.nest import Nest
from weft.backends.cpu.program import Value
from weft.backends.cpu.roots import StoreRoot
from weft.backends.cpu.versions import LEAST_POINTS, MAX_TWICE, cuts_every_tile, mask_conditions


class StoreEnds(NamedTuple):
    """Which axes of a nest end at run time."""

    axes: list[tuple[Extent, list[Bound]]]
    inside: set[Value]
    """The masks that hold at all points before the ends."""

    def emit(self, s: Emission) -> Reached:
        """The ends, where a nest begins."""
        conditions = Conditions(Evaluator(s.f, s.env, ()))
        for condition in dict.fromkeys(c for _, bounds in self.axes for bound in bounds for c in bound.orders):
            conditions.add(condition)
        return Reached([(e, end_of(s, bounds, e.end)) for e, bounds in self.axes], self.inside, conditions.all())


def store_ends(s: Emission, nest: Nest) -> StoreEnds | None:
    """Where a nest of stores under masks may end; None where masks say something else besides, or ends do not cut its
    loops.
    """
    stores = [root.op for root in nest.roots if isinstance(root, StoreRoot)]
    hints = [root for root in nest.roots if root.op is None and not root.accesses()]
    if not stores or len(stores) + len(hints) < len(nest.roots) or any(len(op.args) < 3 for op in stores):
        return None
    moved = [*nest.inner_bits, *nest.outer_bits]
    if nest.unroll or nest.transposes or nest.zips or nest.rows is not None or nest.ends.extents:
        return None
    if len(nest.visited) > MAX_TWICE or 1 << len(moved) < LEAST_POINTS or _stores_what_took_longer(nest):
        return None
    if not _often_cuts(nest, [op.args[2] for op in stores]):
        return None
    found = [bounds_of(s, op.args[2]) for op in stores]
    keys = [[keys_of(bounds) for bounds in bound.axes] for bound in found]
    if not all(bound.complete for bound in found) or any(k != keys[0] for k in keys):
        return None
    runs = nest.loop_runs(moved)
    axes: list[tuple[Extent, list[Bound]]] = []
    for bits, bounds in zip(nest.coords, found[0].axes, strict=True):
        lanes = sum(b in nest.lane_bits for b in bits)
        if bounds and (bits[:lanes] != nest.lane_bits[:lanes] or bits[lanes:] not in runs):
            return None
        if bounds:
            axes.append((Extent(bits, 1 << len(bits)), bounds))
    if not nest.lane_bits or not any(extent.bits[: len(nest.lane_bits)] == nest.lane_bits for extent, _ in axes):
        return None  # where indices wrap around, masks are made along the axis of the lanes
    inside = {mask for mask in mask_conditions(nest, selections=True) if _is_inside(s, nest, mask, axes)}
    return StoreEnds(axes, inside | {op.args[2] for op in stores})


def _often_cuts(nest: Nest, masks: Sequence[Value]) -> bool:
    """Whether tiles are often not wholly inside of masks: of two axes or more, or where all programs have the same."""
    return len(nest.shape) > 1 or any(cuts_every_tile(mask) for mask in masks)


def _stores_what_took_longer(nest: Nest) -> bool:
    """Whether a nest stores what a loop or a product gave, of which that is a small part."""
    made = [value.op.name for value, _ in nest.visited if value.op is not None and value.is_tile and value in nest.env]
    return "scf.for" in made or "tt.dot" in made


def _is_inside(s: Emission, nest: Nest, mask: Value, axes: Sequence[tuple[Extent, list[Bound]]]) -> bool:
    """Whether a mask holds before the ends, wherever the nest asks for it."""
    bounds = bounds_of(s, mask)
    known = {extent.bits: keys_of(found) for extent, found in axes}
    return bounds.complete and all(
        not some or keys_of(some) <= known.get(bits, set())
        for value, coords in nest.visited
        if value is mask
        for bits, some in zip(coords, bounds.axes, strict=True)
    )
