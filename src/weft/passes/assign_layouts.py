"""A layout for every tile: plain, correct, to be improved by passes that come after.

Every tile is in the blocked layout of its shape, so that operations on one shape agree. Where an operation wants
another, a conversion stands before or after it:

    loads, stores, atomics    a blocked layout whose vectors run along consecutive addresses
    products                  operands and accumulator as the matrix instruction has them, or for multiply-and-add
    operations on shapes      the layout that makes them move nothing (weft.layouts.infer)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, ModuleOp, StringAttr, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.analysis import AxisFacts
from weft.ir import bit_width, element_of, int_value, ints_of, is_pointer, is_tensor, shape_of
from weft.ir.gpu import laid_tensor, layout_of
from weft.ir.gpu.ttg import ConvertLayoutOp
from weft.layouts import (
    BlockedLayout,
    DistributedLayout,
    DotOperandLayout,
    Layout,
    LinearLayout,
    NVMMADistributedLayout,
    SliceLayout,
    infer,
)

__all__ = ["assign_layouts", "blocked_for"]

VECTOR_BITS = 128
MMA_DEPTH = {"f16": 16, "bf16": 16, "i8": 32}


def blocked_for(shape: Sequence[int], order: Sequence[int], vector: int, lanes: int, warps: int) -> BlockedLayout:
    """A blocked layout of a tile: vectors along the first dimension of the order, then lanes, then warps.

    >>> blocked_for([64, 128], [1, 0], 4, 32, 4)
    BlockedLayout([1, 4], [1, 32], [4, 1], [1, 0])
    """
    rank = len(shape)
    per_thread, per_warp, per_block = [1] * rank, [1] * rank, [1] * rank
    first = order[0]
    per_thread[first] = max(1, min(vector, shape[first], prod(shape) // (lanes * warps) or 1))
    for left, parts in ((lanes, per_warp), (warps, per_block)):
        for dim in order:
            room = max(1, shape[dim] // (per_thread[dim] * per_warp[dim] * per_block[dim]))
            take = min(left, room)
            parts[dim] *= take
            left //= take
        parts[order[-1]] *= left
    return BlockedLayout(per_thread, per_warp, per_block, list(order))


class _Assigner:
    def __init__(self, target: str, warps: int, lanes: int) -> None:
        self.target, self.warps, self.lanes = target, warps, lanes
        self.facts = AxisFacts()
        self.known: dict[int, tuple[SSAValue, Layout]] = {}

    def default(self, shape: Sequence[int]) -> BlockedLayout:
        """The layout of all tiles of a shape."""
        return blocked_for(shape, list(reversed(range(len(shape)))), 4, self.lanes, self.warps)

    # -- access -----------------------------------------------------------------------------------------------------

    def access(self, pointer: SSAValue) -> BlockedLayout:
        """The layout in which a tile of addresses is accessed."""
        shape = list(shape_of(pointer.type))
        facts = self.facts.of(pointer)
        order = sorted(range(len(shape)), key=lambda d: (-min(facts.contiguity[d], shape[d]), -d))
        element = element_of(pointer.type)
        bits = 64 if not is_pointer(element) else max(8, bit_width(element.pointee))  # type: ignore[attr-defined]
        run = min(facts.contiguity[order[0]], facts.divisibility[order[0]] * 8 // bits, VECTOR_BITS // bits)
        return blocked_for(shape, order, max(1, run), self.lanes, self.warps)

    # -- walking ----------------------------------------------------------------------------------------------------

    def plan(self, block: Block) -> None:
        """Look at every access while types are plain."""
        for op in block.walk():
            if op.name in ("tt.load", "tt.store", "tt.atomic_rmw", "tt.atomic_cas") and is_tensor(op.operands[0].type):
                self.known[id(op)] = (op.operands[0], self.access(op.operands[0]))

    def block(self, block: Block) -> None:
        """Give layouts to arguments and results of a block, operation by operation."""
        for argument in block.args:
            self.set(argument, None)
        for op in list(block.ops):
            for region in op.regions:
                for inner in region.blocks:
                    if op.name in ("tt.reduce", "tt.scan", "tt.map_elementwise"):
                        continue  # scalars
                    self.block(inner)
            self.op(op)

    def set(self, value: SSAValue, layout: Layout | LinearLayout | None) -> None:
        """The type of a value with a layout, that of its shape if none is given."""
        if is_tensor(value.type):
            shape = list(shape_of(value.type))
            wanted = layout if layout is not None else self.default(shape)
            value._type = laid_tensor(shape, element_of(value.type), wanted)

    def op(self, op: Operation) -> None:
        """Give layouts to the results of an operation, with conversions around it where it wants others."""
        if id(op) in self.known:
            layout = self.known[id(op)][1]
            self.operands(op, [layout] * len(op.operands))
            self.results(op, layout)
        elif op.name == "tt.dot":
            self.dot(op)
        elif op.name == "tt.split":
            natural = self.default(list(shape_of(op.results[0].type)))
            joined = infer.join_result(natural.to_linear(list(shape_of(op.results[0].type))))
            self.operands(op, [joined])
            self.results(op, natural)
        elif op.name == "tt.broadcast":
            whole = self.default(list(shape_of(op.results[0].type)))
            self.operands(op, [whole])  # each thread has what it repeats
            self.results(op, whole)
        elif op.name == "tt.expand_dims":
            whole = self.default(list(shape_of(op.results[0].type)))
            self.operands(op, [SliceLayout(int_value(op.properties["axis"]), whole)])
            self.results(op, whole)
        elif op.name == "arith.constant":
            self.constant(op)
        else:
            self.results(op, self.natural(op))

    def operands(self, op: Operation, layouts: Sequence[Layout | LinearLayout | None]) -> None:
        """Operands converted to layouts."""
        for i, (operand, layout) in enumerate(zip(op.operands, layouts, strict=True)):
            if layout is None or not is_tensor(operand.type):
                continue
            wanted = laid_tensor(list(shape_of(operand.type)), element_of(operand.type), layout)
            if wanted != operand.type:
                made = ConvertLayoutOp.create(operands=[operand], result_types=[wanted])
                made.location = op.location
                assert op.parent is not None
                op.parent.insert_op_before(made, op)
                op.operands[i] = made.results[0]

    def results(self, op: Operation, natural: Layout | LinearLayout | None) -> None:
        """Results in a layout, converted to that of their shape for whoever uses them."""
        for result in op.results:
            if not is_tensor(result.type):
                continue
            self.set(result, natural)
            plain = laid_tensor(
                list(shape_of(result.type)), element_of(result.type), self.default(list(shape_of(result.type)))
            )
            if natural is None or layout_of(result.type) == layout_of(plain):
                result._type = plain
                continue
            made = ConvertLayoutOp.create(operands=[result], result_types=[plain])
            made.location = op.location
            assert op.parent is not None
            result.replace_uses_with_if(made.results[0], lambda use, made=made: use.operation is not made)  # type: ignore[misc]
            op.parent.insert_op_after(made, op)

    def constant(self, op: Operation) -> None:
        """A constant's number has the type too."""
        self.results(op, None)
        value = op.properties["value"] if "value" in op.properties else op.attributes["value"]
        if isinstance(value, DenseIntOrFPElementsAttr):
            typed = DenseIntOrFPElementsAttr(op.results[0].type, value.data)  # type: ignore[arg-type]
            (op.properties if "value" in op.properties else op.attributes)["value"] = typed

    def natural(self, op: Operation) -> LinearLayout | None:
        """The layout in which an operation on shapes gives its result without moving anything."""
        if op.name == "tt.trans":
            return infer.trans_result(layout_of(op.operands[0].type), ints_of(op.properties["order"]))
        if op.name == "tt.reshape":
            return infer.reshape_result(layout_of(op.operands[0].type), list(shape_of(op.results[0].type)))
        if op.name == "tt.reduce" and is_tensor(op.results[0].type):
            return infer.reduce_result(layout_of(op.operands[0].type), int_value(op.properties["axis"]))
        if op.name == "tt.join":
            return infer.join_result(layout_of(op.operands[0].type))
        return None

    # -- products ---------------------------------------------------------------------------------------------------

    def dot(self, op: Operation) -> None:
        """Operands and accumulator as the instruction wants them."""
        shape = list(shape_of(op.results[0].type))
        element = str(element_of(op.operands[0].type))
        depth = shape_of(op.operands[0].type)[1]
        parent: DistributedLayout = self.default(shape)
        width = 0
        if len(shape) == 2 and depth >= MMA_DEPTH.get(element, 1 << 30) and shape[0] >= 16 and shape[1] >= 8:
            rows = min(self.warps, max(1, shape[0] // 16))
            parent = NVMMADistributedLayout([2, 0], [rows, self.warps // rows], [16, 8])
            width = 32 // bit_width(element_of(op.operands[0].type))
        left, right = DotOperandLayout(0, parent, width), DotOperandLayout(1, parent, width)
        self.operands(op, [left, right, parent])
        self.results(op, parent)


def assign_layouts(module: ModuleOp, target: str, warps: int = 4, lanes: int = 32) -> ModuleOp:
    """Layouts for all tiles of a module of tile IR, which becomes layout IR for a target."""
    for function in module.body.block.ops:
        if function.name == "tt.func":
            for block in function.regions[0].blocks:
                assigner = _Assigner(target, warps, lanes)
                assigner.plan(block)
                assigner.block(block)
    attributes: dict[str, Attribute] = {
        "ttg.num-ctas": IntegerAttr(1, i32),
        "ttg.num-warps": IntegerAttr(warps, i32),
        "ttg.target": StringAttr(target),
        "ttg.threads-per-warp": IntegerAttr(lanes, i32),
    }
    module.attributes.update(attributes)
    return module
