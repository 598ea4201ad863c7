"""Loads of rows and columns: small tiles, loaded as they are spread over large ones.

    %b = tt.load %p : 64 elements, consecutive
    %v = tt.broadcast (tt.expand_dims %b {axis = 0}) : 128x64
    %s = arith.addf %acc, %v

Loaded by one warp with the longest vectors, %b would have to go to all the others through shared memory. Loaded in the
layout of %s without its rows, each warp loads its own 64 elements, from the cache, and nothing is moved: that is cheap
as long as it takes few instructions of a thread (`SMALL_LOADS`). A row that can be copied iterations ahead has the
layout that copies want instead, with 4 bytes in a row or more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.ir import Operation, SSAValue

from weft.analysis import AxisFacts
from weft.ir import bit_width, element_of, int_value, is_pointer, shape_of
from weft.layouts import DistributedLayout, SliceLayout
from weft.layouts.plan import vector_width

from .blocks_of_clusters import Clusters
from .blocks_of_threads import blocked_for
from .buffered_tiles import is_multiplied
from .natural_layouts import AnyLayout
from .tile_groups import TOGETHER

SMALL_LOADS = 4
"""Instructions of a thread, at most, for a small load that every warp does for itself."""


class RowLoads:
    """The rows and columns that one function loads; `known` gives the layout of another tile, as far as it is known."""

    def __init__(
        self,
        facts: AxisFacts,
        clusters: Clusters,
        threads: tuple[int, int],
        ahead: bool,
        layout_of_tile: Callable[[SSAValue], AnyLayout | None],
    ) -> None:
        self.facts, self.clusters, self.ahead, self.known = facts, clusters, ahead, layout_of_tile
        self.lanes, self.warps = threads
        self.layouts: dict[Operation, DistributedLayout] = {}
        """Of those that are loaded as they are spread, or are copied."""

    def layout_of(self, op: Operation, default: DistributedLayout) -> DistributedLayout | None:
        """The layout of a row or column that is loaded: so that it can be copied ahead, or as it is spread."""
        layout = self._spread(op)
        layout = self._copied(op, layout or default) or layout
        if layout is not None:
            self.layouts[op] = layout
        return layout

    def _spread(self, op: Operation) -> DistributedLayout | None:
        """The layout in which a row or column that is loaded is spread over a tile, if few instructions load it so."""
        for use in op.results[0].uses:
            view = use.operation
            if view.name not in ("tt.expand_dims", "tt.broadcast"):
                continue
            for parent in self._around(view.results[0]):
                is_slice = view.name == "tt.expand_dims"
                layout = SliceLayout(int_value(view.properties["axis"]), parent) if is_slice else parent
                if self._accesses_of(op, layout) <= SMALL_LOADS:
                    return layout
        return None

    def _copied(self, op: Operation, spread: DistributedLayout) -> DistributedLayout | None:
        """A layout in which a row or column of narrow elements can be copied iterations ahead; None where it need not
        have one, or cannot.

        Such copies take 4 bytes of a thread or more (pipeline_loads.py); as it is spread, a thread may have 2.
        """
        loop, pointer = op.parent_op(), op.operands[0]
        shape, bits = shape_of(pointer.type), bit_width(element_of(op.results[0].type))
        along = _longest(op)
        if not self.ahead or loop is None or loop.name != "scf.for" or bits not in (8, 16) or self.clusters.of(pointer):
            return None
        if self._run_of(op, spread) * bits >= 32 or not is_multiplied(op.results[0]):
            return None
        if "tt.num_stages" in loop.attributes and int_value(loop.attributes["tt.num_stages"]) < 2:
            return None
        axis_facts = self.facts.of(pointer)
        run = min(axis_facts.contiguity[along], axis_facts.divisibility[along] * 8 // bits, 128 // bits, shape[along])
        for mask in op.operands[1:2]:
            run = min(run, self.facts.of(mask).constancy[along])
        if run * bits < 32:
            return None
        order = [along, *(d for d in reversed(range(len(shape))) if d != along)]
        box = [run if d == along else 1 for d in range(len(shape))]
        return blocked_for(shape, order, box, self.lanes, self.warps)

    def _around(self, view: SSAValue) -> Iterator[DistributedLayout]:
        """Layouts of the tiles that a view is combined with element by element."""
        for use in view.uses:
            op = use.operation
            if op.name == "tt.broadcast":
                yield from self._around(op.results[0])
            elif op.name in TOGETHER:
                layout = self.known(op.results[0]) if len(op.results) == 1 else None
                if isinstance(layout, DistributedLayout):
                    yield layout

    def first_around(self, view: SSAValue) -> DistributedLayout | None:
        return next(self._around(view), None)

    def _accesses_of(self, op: Operation, layout: DistributedLayout) -> int:
        """How many instructions of a thread load a row or column in a layout."""
        shape, along = shape_of(op.operands[0].type), _longest(op)
        linear = layout.to_linear(list(shape))
        kept = linear.in_dims["register"] >> linear.free_variable_masks()["register"].bit_count()
        axis_facts = self.facts.of(op.operands[0])
        return 1 if axis_facts.constancy[along] >= shape[along] else kept // max(1, self._run_of(op, layout))

    def _run_of(self, op: Operation, layout: DistributedLayout) -> int:
        """How many elements of a row or column one instruction of a thread loads in a layout."""
        pointer, along = op.operands[0], _longest(op)
        shape, element = shape_of(pointer.type), element_of(pointer.type)
        bits = max(8, bit_width(element.pointee)) if is_pointer(element) else 64  # type: ignore[attr-defined]
        axis_facts = self.facts.of(pointer)
        order = [along, *(d for d in range(len(shape)) if d != along)]
        width = vector_width(layout.to_linear(list(shape)), shape, bits, order)
        return min(width, axis_facts.contiguity[along], axis_facts.divisibility[along] * 8 // bits)


def _longest(op: Operation) -> int:
    """The dimension of an access of a row or column."""
    shape = shape_of(op.operands[0].type)
    return max(range(len(shape)), key=lambda d: shape[d])
