"""Find the layouts that a Gluon kernel left open.

    %0 = tt.make_range {...} : tensor<32xi32, #gluon.auto_encoding>
    %1 = tt.expand_dims %0 {axis = 1 : i32} : tensor<32xi32, #gluon.auto_encoding> -> tensor<32x1xi32, #gluon.auto...>
    %2 = gluon.set_auto_layout %1 : tensor<32x1xi32, #gluon.auto_encoding> -> tensor<32x1xi32, #blocked>
becomes
    %0 = tt.make_range {...} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %1 = tt.expand_dims %0 {axis = 1 : i32} : tensor<32xi32, #ttg.slice<...>> -> tensor<32x1xi32, #blocked>

An AutoLayout becomes what `set_auto_layout` says, and follows operations to where it is still open: forwards,
backwards, through loops and branches. A CoalescedLayout becomes, at each access to global memory, the blocked layout in
which lanes access consecutive addresses, with the widest vectors that contiguity, alignment and the number of threads
allow; from there it follows operations in the same way. So does an AutoLayout of which nothing says what it is.

What is chosen so at accesses was nobody's wish: `resolve_layouts` gives it to its caller, who may choose better
(`recoalesce`). What the author wrote stays, here and in all that follows.

Where two ways lead to two layouts, or none leads to a value, that is an error at its place: a conversion is for the
author of the kernel to write.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft import ir
from weft.analysis import AxisFacts
from weft.base import LayoutError, Note, each_once
from weft.base.remarks import NO_REMARKS, LayoutChosen, RemarkCollector
from weft.ir.gpu import LayoutAttr, laid_tensor, name_of, naming, threads_at, told_layout, ttg
from weft.layouts import AutoLayout, BlockedLayout, CoalescedLayout, DistributedLayout, SliceLayout

from .blocks_of_clusters import Clusters, divided, own_shape
from .recoalesce import layouts_of
from .removal import remove

VECTOR_BITS = 128
ACCESSES = (
    *(ir.tt.LoadOp, ir.tt.StoreOp, ir.tt.AtomicRMWOp, ir.tt.AtomicCASOp, ir.tt.AtomicLoadOp, ir.tt.AtomicStoreOp),
    ttg.AsyncCopyGlobalToLocalOp,
)

# Whose operands and results have other layouts than each other; a layout does not go through these by itself.
APART = (
    ttg.ConvertLayoutOp, ttg.SetAutoLayoutOp, ttg.LocalLoadOp, ttg.LocalStoreOp, ttg.LocalAllocOp, ir.tt.HistogramOp,
    ir.tt.DotOp, ir.tt.SplatOp, ir.tt.MakeRangeOp, ir.tt.GatherOp, ir.tt.CatOp,
)  # fmt: skip


def resolve_layouts(
    module: ModuleOp, remarks: RemarkCollector = NO_REMARKS
) -> list[tuple[Operation, list[LayoutAttr]]]:
    """Give every tile of a module a layout. Raises LayoutError where there is none, or more than one.

    What it gives are the functions, each with the layouts that the author of the kernel did not write.
    """
    chosen: list[tuple[Operation, list[LayoutAttr]]] = []
    for function in module.body.block.ops:
        if isinstance(function, ir.tt.FuncOp):
            written = set(layouts_of(function))
            _coalesced(function, remarks)
            _auto(function, remarks)
            chosen.append((function, [layout for layout in layouts_of(function) if layout not in written]))
    return chosen


# -- the two kinds -------------------------------------------------------------------------------------------------


class _Choice:
    """The accesses of a function to global memory, and for each the layout in which it is coalesced."""

    def __init__(self, function: Operation) -> None:
        self.accesses = [
            op for op in ir.walk(function) if isinstance(op, ACCESSES) and ir.is_tensor(op.operands[0].type)
        ]
        self._facts = AxisFacts()

    def layout(self, op: Operation) -> BlockedLayout:
        """That of one of the accesses, for the warps that run it: those of a partition may be fewer."""
        lanes, warps, blocks = threads_at(op)
        return coalesced_for(op, self.accesses, self._facts, warps, lanes, blocks or 1)


def _auto(function: Operation, remarks: RemarkCollector) -> None:
    if not any(_open(value, AutoLayout) for value in ir.values_in(function)):
        return
    inference, choice = _Inference(AutoLayout), _Choice(function)
    settings = ir.find(function, ttg.SetAutoLayoutOp)
    for op in settings:
        layout = name_of(op.result.type)
        assert isinstance(layout, DistributedLayout)
        inference.set(op.src, layout, op)
    inference.propagate()
    for access in choice.accesses:  # of which nobody has said anything
        if _open(access.operands[0], AutoLayout) and access.operands[0] not in inference.layouts:
            inference.set(access.operands[0], choice.layout(access), access)
            inference.propagate()
    inference.write(function)
    inference.tell(remarks)
    for op in settings:
        op.result.replace_all_uses_with(op.src)
        remove(op)


def _coalesced(function: Operation, remarks: RemarkCollector) -> None:
    if not any(_open(value, CoalescedLayout) for value in ir.values_in(function)):
        return
    inference, choice = _Inference(CoalescedLayout), _Choice(function)
    for op in choice.accesses:
        if _open(op.operands[0], CoalescedLayout):
            inference.set(op.operands[0], choice.layout(op), op)
    inference.propagate()
    inference.write(function)
    inference.tell(remarks)


def coalesced_for(
    op: Operation, accesses: Sequence[Operation], facts: AxisFacts, warps: int, lanes: int, blocks: int = 1
) -> BlockedLayout:
    """The blocked layout in which an access is coalesced; `accesses` are all of the function.

    The blocks of a cluster divide the slowest dimension first.
    """
    pointer = op.operands[0]
    shape = list(ir.shape_of(pointer.type))
    order = _order(pointer, facts)
    vector = _vector(pointer, order, facts)
    related = _connected(op)
    for address in (x.operands[0] for x in accesses if x is not op and x in related):
        if (
            list(ir.shape_of(address.type)) == shape and _order(address, facts) == order
        ):  # vectors of one size go together
            vector = max(vector, _vector(address, order, facts))
    division = Clusters(blocks).default(shape)
    own_part = own_shape(shape, division)
    vector = min(vector, own_part[order[0]], max(1, prod(own_part) // (lanes * warps)))
    if not isinstance(op, ir.tt.LoadOp):  # a store that is not aligned so far would be split again
        vector = min(vector, _vector(pointer, order, facts))
    return divided(_spread(own_part, order, vector, lanes, warps), division)


def _order(pointer: SSAValue, facts: AxisFacts) -> list[int]:
    axis_facts = facts.of(pointer)
    return sorted(range(len(ir.shape_of(pointer.type))), key=lambda d: (-axis_facts.contiguity[d], -d))


def _vector(pointer: SSAValue, order: Sequence[int], facts: AxisFacts) -> int:
    """The elements that one thread may access at once, as far as addresses are known."""
    axis_facts = facts.of(pointer)
    element = ir.element_of(pointer.type)
    assert ir.is_pointer(element)
    bits = max(8, ir.bit_width(element.pointee))  # type: ignore[attr-defined]
    run = min(axis_facts.contiguity[order[0]], ir.shape_of(pointer.type)[order[0]])
    return max(1, min(run, axis_facts.divisibility[order[0]] * 8 // bits, VECTOR_BITS // bits))


def _spread(shape: Sequence[int], order: Sequence[int], vector: int, lanes: int, warps: int) -> BlockedLayout:
    """Vectors along the first dimension of the order, then as many threads along each as it has room for."""
    rank = len(shape)
    sizes = [vector if d == order[0] else 1 for d in range(rank)]
    per_warp, per_block = [1] * rank, [1] * rank
    left_lanes, left_warps = lanes, warps
    for dim in order[:-1]:
        room = max(1, min(left_lanes * left_warps, shape[dim] // sizes[dim]))
        per_warp[dim] = min(room, left_lanes)
        per_block[dim] = max(1, min(room // per_warp[dim], left_warps))
        left_lanes //= per_warp[dim]
        left_warps //= per_block[dim]
    per_warp[order[-1]], per_block[order[-1]] = left_lanes, left_warps
    return BlockedLayout(sizes, per_warp, per_block, list(order))


def _connected(op: Operation) -> set[Operation]:
    """Operations that an operation has to do with through values, in either direction, loops and branches included."""
    connected, stack = set[Operation](), [op]
    for current in each_once(stack):
        connected.add(current)
        around = [v.owner for v in current.operands if isinstance(v.owner, Operation)]
        around += [use.operation for result in current.results for use in result.uses]
        for region in current.regions:
            around += [inner for block in region.blocks for inner in block.ops]
        parent = current.parent_op()
        if isinstance(parent, scf.ForOp | scf.WhileOp | scf.IfOp):
            around.append(parent)
        stack += around
    return connected


# -- following a layout --------------------------------------------------------------------------------------------


def _open(value: SSAValue, kind: type) -> bool:
    return ir.is_tensor(value.type) and isinstance(name_of(value.type), kind)


class _Inference:
    """Layouts found for values whose layout is open."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.layouts: dict[SSAValue, tuple[DistributedLayout, Operation]] = {}
        self.fresh: list[SSAValue] = []

    def set(self, value: SSAValue, layout: DistributedLayout, source: Operation) -> None:
        """A value has this layout, because of an operation. Raises LayoutError where it has another already."""
        if not _open(value, self.kind):
            return
        earlier = self.layouts.get(value)
        if earlier is None:
            self.layouts[value] = layout, source
            self.fresh.append(value)
        elif earlier[0] != layout and earlier[0].to_linear(ir.shape_of(value.type)) != layout.to_linear(
            ir.shape_of(value.type)
        ):
            raise _conflict(value, earlier, (layout, source))

    def tell(self, remarks: RemarkCollector) -> None:
        """Say which tiles have which layout, and the operation that it comes from."""
        groups: dict[tuple[str, str, Operation], list[SSAValue]] = {}
        for value, (layout, source) in self.layouts.items() if remarks else ():
            groups.setdefault((ir.tile_text(value.type), told_layout(layout), source), []).append(value)
        for (tile, text, source), values in groups.items():
            names = tuple(dict.fromkeys(v.name_hint for v in values if v.name_hint))
            remarks.add(LayoutChosen(ir.span_of_value(values[0]), tile, names, text, ir.site_of(source), ()))

    def propagate(self) -> None:
        """Follow all layouts to where they lead."""
        while self.fresh:
            value = self.fresh.pop(0)
            layout, source = self.layouts[value]
            for use in list(value.uses):
                self._forward(use.operation, use.index, layout, source)
            owner = value.owner
            if isinstance(owner, Operation):
                self._backward(owner, value, layout, source)
            elif isinstance(value, BlockArgument):
                self._argument(owner, value.index, layout, source)

    def _forward(self, op: Operation, index: int, layout: DistributedLayout, source: Operation) -> None:
        """A layout of an operand."""
        if isinstance(op, scf.YieldOp | scf.ConditionOp | ttg.WarpYieldOp):
            self._yielded(op, index, layout, source)
        elif isinstance(op, scf.ForOp):
            if index >= 3:
                self._carried(op, index - 3, layout, source)
        elif isinstance(op, scf.WhileOp):
            self.set(op.before_region.block.args[index], layout, source)
        elif isinstance(op, ir.tt.ReduceOp | ir.tt.ScanOp):
            for operand in op.operands:
                self.set(operand, layout, source)
            for value in op.results:
                if ir.is_tensor(value.type):  # else a number, of a tile of one dimension
                    scan = isinstance(op, ir.tt.ScanOp)
                    self.set(
                        value, layout if scan else SliceLayout(ir.int_value(op.properties["axis"]), layout), source
                    )
        elif isinstance(op, ir.tt.GatherOp):
            if index == 1:
                self.set(op.result, layout, source)
        elif not isinstance(op, APART):
            moved = _result_layout(op, layout)
            if moved is not None:
                for value in op.results:
                    if ir.is_tensor(value.type):
                        self.set(value, moved, source)
                self._operands_alike(op, op.operands[index], layout, source)

    def _operands_alike(self, op: Operation, value: SSAValue, layout: DistributedLayout, source: Operation) -> None:
        """Operands of an operation on elements lie alike."""
        for operand in op.operands:
            if ir.is_tensor(operand.type) and ir.shape_of(operand.type) == ir.shape_of(value.type):
                self.set(operand, layout, source)

    def _backward(self, op: Operation, value: SSAValue, layout: DistributedLayout, source: Operation) -> None:
        """A layout of a result."""
        if isinstance(op, scf.ForOp):
            self._carried(op, _position(op, value), layout, source)
        elif isinstance(op, scf.WhileOp):
            position = _position(op, value)
            self.set(op.after_region.block.args[position], layout, source)
            self._last(op.before_region.block, position + 1, layout, source)
        elif isinstance(op, scf.IfOp | ttg.WarpSpecializeOp):
            position = _position(op, value)
            regions = op.regions if isinstance(op, scf.IfOp) else op.regions[:1]
            for region in regions:
                self._last(region.block, position, layout, source)
        elif isinstance(op, ir.tt.ReduceOp):
            if isinstance(layout, SliceLayout) and layout.dim == ir.int_value(op.properties["axis"]):
                for operand in op.operands:
                    self.set(operand, layout.parent, source)
            for result in op.results:
                self.set(result, layout, source)
        elif isinstance(op, ir.tt.GatherOp):
            self.set(op.indices, layout, source)
        elif not isinstance(op, APART):
            moved = _source_layout(op, layout)
            if moved is not None:
                for operand in op.operands:
                    if ir.is_tensor(operand.type):
                        self.set(operand, moved, source)
                for result in op.results:
                    if ir.is_tensor(result.type):
                        self.set(result, layout, source)

    def _argument(self, block: object, index: int, layout: DistributedLayout, source: Operation) -> None:
        """A layout of an argument of a block."""
        assert isinstance(block, Block)
        parent = block.parent_op()
        if isinstance(parent, scf.ForOp) and index > 0:
            self._carried(parent, index - 1, layout, source)
        elif isinstance(parent, scf.WhileOp):
            if block is parent.before_region.block:
                self.set(parent.operands[index], layout, source)
                self._last(parent.after_region.block, index, layout, source)
            else:
                self.set(parent.results[index], layout, source)
                self._last(parent.before_region.block, index + 1, layout, source)

    def _carried(self, loop: scf.ForOp, position: int, layout: DistributedLayout, source: Operation) -> None:
        """What a loop carries lies alike before it, in it and after it."""
        self.set(loop.operands[3 + position], layout, source)
        self.set(loop.body.block.args[1 + position], layout, source)
        self.set(loop.results[position], layout, source)
        self._last(loop.body.block, position, layout, source)

    def _last(self, block: Block, position: int, layout: DistributedLayout, source: Operation) -> None:
        last = block.last_op
        if last is not None:
            self.set(last.operands[position], layout, source)

    def _yielded(self, op: Operation, index: int, layout: DistributedLayout, source: Operation) -> None:
        """A layout of what a block ends with."""
        parent = op.parent_op()
        if isinstance(op, scf.ConditionOp):
            if index > 0 and isinstance(parent, scf.WhileOp):
                self.set(parent.results[index - 1], layout, source)
                self.set(parent.after_region.block.args[index - 1], layout, source)
        elif isinstance(parent, scf.ForOp):
            self._carried(parent, index, layout, source)
        elif isinstance(parent, scf.WhileOp):
            self.set(parent.operands[index], layout, source)
            self.set(parent.before_region.block.args[index], layout, source)
        elif parent is not None:
            self.set(parent.results[index], layout, source)
            if isinstance(parent, scf.IfOp):
                for region in parent.regions:
                    self._last(region.block, index, layout, source)

    def write(self, function: Operation) -> None:
        """Put the layouts into the types. Raises LayoutError where one is missing."""
        for value in list(ir.values_in(function)):
            if not _open(value, self.kind):
                continue
            inferred = self.layouts.get(value)
            if inferred is None:
                raise _missing(value, self.kind)
            value._type = laid_tensor(ir.shape_of(value.type), ir.element_of(value.type), inferred[0])
            owner = value.owner
            if isinstance(owner, Operation) and owner.name == "arith.constant":
                old = owner.properties["value"]
                assert isinstance(old, DenseIntOrFPElementsAttr)
                owner.properties["value"] = DenseIntOrFPElementsAttr(value.type, old.data)  # type: ignore[arg-type]


def _result_layout(op: Operation, layout: DistributedLayout) -> DistributedLayout | None:
    """The layout of the results, from that of the operands; None where the operation does not say."""
    shape = ir.shape_of(op.operands[0].type)
    if isinstance(op, ir.tt.ExpandDimsOp):
        axis = ir.int_value(op.properties["axis"])
        return layout.parent if isinstance(layout, SliceLayout) and layout.dim == axis else None
    if isinstance(op, ir.tt.TransOp):
        return naming.transposed(layout, shape, ir.ints_of(op.properties["order"]))
    if isinstance(op, ir.tt.ReshapeOp):
        return naming.reshaped(layout, shape, ir.shape_of(op.result.type))
    if isinstance(op, ir.tt.JoinOp):
        return naming.joined(layout, shape)
    if isinstance(op, ir.tt.SplitOp):
        return naming.split(layout, shape)
    if isinstance(op, ttg.Fp4ToFpOp):
        return naming.unpacked(layout, shape, ir.int_value(op.properties["axis"]))
    return layout


def _source_layout(op: Operation, layout: DistributedLayout) -> DistributedLayout | None:
    """The layout of the operands, from that of the results; None where the operation does not say."""
    if isinstance(op, ir.tt.ExpandDimsOp):
        return SliceLayout(ir.int_value(op.properties["axis"]), layout)
    if isinstance(op, ir.tt.TransOp):
        order = list(ir.ints_of(op.properties["order"]))
        return naming.transposed(layout, ir.shape_of(op.result.type), [order.index(d) for d in range(len(order))])
    if isinstance(op, ir.tt.ReshapeOp):
        return naming.reshaped(layout, ir.shape_of(op.result.type), ir.shape_of(op.operands[0].type))
    if isinstance(op, ir.tt.JoinOp):
        return naming.split(layout, ir.shape_of(op.result.type))
    if isinstance(op, ir.tt.SplitOp):
        return naming.joined(layout, ir.shape_of(op.results[0].type))
    if isinstance(op, ttg.Fp4ToFpOp):
        return None
    return layout


def _position(op: Operation, value: SSAValue) -> int:
    """Which result of an operation a value is."""
    return next(i for i, result in enumerate(op.results) if result is value)


# -- errors --------------------------------------------------------------------------------------------------------


def _made(value: SSAValue) -> Operation | None:
    """The operation that makes a value; of an argument, the one that it belongs to."""
    owner = value.owner
    return owner if isinstance(owner, Operation) else owner.parent_op()


def _conflict(
    value: SSAValue, first: tuple[DistributedLayout, Operation], other: tuple[DistributedLayout, Operation]
) -> LayoutError:
    producer = _made(value)
    return LayoutError(
        f"a tensor of shape {list(ir.shape_of(value.type))} is to have two layouts, {first[0]!r} and {other[0]!r}",
        ir.span_of(producer) if producer is not None else None,
        notes=[
            Note("the first because of this", ir.span_of(first[1])),
            Note("the second because of this", ir.span_of(other[1])),
        ],
        hint="convert it for one of its uses: gl.convert_layout(x, layout)",
    )


def _missing(value: SSAValue, kind: type) -> LayoutError:
    producer = _made(value)
    name = kind.__name__
    article = "an" if kind is AutoLayout else "a"
    hint = "gl.set_auto_layout(x, layout) says it, for x and for what it is computed with"
    if kind is CoalescedLayout:
        hint = "a CoalescedLayout is found from loads and stores; a tensor that meets none needs a layout of its own"
    return LayoutError(
        f"the layout of a tensor of shape {list(ir.shape_of(value.type))} cannot be inferred: "
        f"it is in {article} {name}, and nothing says which layout that is",
        ir.span_of(producer) if producer is not None else None,
        hint=hint,
    )
