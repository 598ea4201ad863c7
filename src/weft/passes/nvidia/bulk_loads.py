"""Loads of a loop that the copy engine can do: which descriptor, which block of it, and how the block lies in memory.

    %v = tt.load (%base + (%row + 0..63)[:, None] * %stride + (%column + 0..127)[None, :]) {tt.described}

is block [%row, %column] of the descriptor among the kernel's arguments that begins at %base: `rewrite_descriptors` says
that its mask is where the tensor ends, and the form of the address (passes/affine.py) says the coordinates.

The kernel is given the descriptor once more, as a tensor map, after its parts:

    tt.func @f(%base: !tt.ptr<f16>, %padding, %rows, %columns, %stride, %one, %map: !tt.tensordesc<tensor<64x128xf16>>)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft import ir
from weft.ir import tt
from weft.ir.gpu import MemDescType, laid_tensor, memdesc, name_of
from weft.ir.gpu.ttg import LocalAllocOp
from weft.layouts import NVMMASharedLayout
from weft.machines import Machine

from ..affine import ONE, Forms, NotAffine, Sum, is_outside
from ..buffered_tiles import buffer_layout, is_product_operand
from ..rewrite_descriptors import DESCRIBED, DESCRIPTOR

ROWS = 8
"""After which a swizzle begins anew."""


@dataclass(frozen=True)
class BulkLoad:
    """A load that the copy engine can do."""

    load: tt.LoadOp
    base: BlockArgument
    """The argument of the kernel at which the tensor begins."""
    row: Sum
    column: Sum
    layout: NVMMASharedLayout

    @property
    def bytes(self) -> int:
        """Of a block."""
        return prod(ir.shape_of(self.load.result.type)) * ir.bit_width(ir.element_of(self.load.result.type)) // 8

    def memory(self, count: int = 0) -> MemDescType:
        """The type of the buffers, or of one."""
        shape = ir.shape_of(self.load.result.type)
        whole = (count, *shape) if count else shape
        return memdesc(whole, ir.element_of(self.load.result.type), self.layout, mutable=True)


def bulk_loads(loop: scf.ForOp, machine: Machine) -> Sequence[BulkLoad] | str:
    """How the copy engine can do all loads of a loop for its products; else why it cannot, in words."""
    forms = Forms()
    found: list[BulkLoad] = []
    for op in loop.body.block.ops:
        if isinstance(op, tt.LoadOp) and ir.is_tensor(op.ptr.type) and is_product_operand(op.result):
            bulk = _bulk_load(op, forms, machine)
            if isinstance(bulk, str):
                return bulk
            found.append(bulk)
    return found or "it loads no operand of a product"


def _bulk_load(op: tt.LoadOp, forms: Forms, machine: Machine) -> BulkLoad | str:
    if DESCRIBED not in op.attributes:
        return "an operand is loaded by pointers, and copies by the copy engine need a descriptor that is an argument"
    if not ir.int_value(op.attributes[DESCRIBED]):
        return "what lies outside of an operand is not known to be 0 (padding)"
    if not all(_goes_to_memory(use.operation) for use in op.result.uses):
        return "an operand is used beside its product too"
    try:
        form = forms.of(op.ptr)
    except NotAffine as why:
        return f"the addresses of an operand {why}"
    base = form.base
    if not isinstance(base, BlockArgument) or len(form.steps) != 2 or _number_of(base) is None:
        return "an operand is loaded through a descriptor that is no argument of the kernel"
    stride = base.block.args[base.index + 4]
    if form.steps != (Sum.scalar(stride), ONE):
        return "the addresses of an operand are no block of its descriptor"
    rows, column = form.offset.split_by(stride)
    loop = op.parent_op()
    assert isinstance(loop, scf.ForOp)
    if not all(can_be_made(v, loop) for v in rows.scalars | column.scalars):
        return "the addresses of an operand depend on what the loop loads or carries"
    layout = buffer_layout(op.result, name_of(op.ptr.type), machine)
    if not isinstance(layout, NVMMASharedLayout) or layout.transposed or not layout.swizzle_byte_width:
        return "the copy engine cannot put an operand into shared memory as its product wants it"
    if ir.shape_of(op.result.type)[0] < ROWS:
        return f"an operand has less than {ROWS} rows, over which the copy engine swizzles"
    return BulkLoad(op, base, rows, column, layout)


def can_be_made(value: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a scalar is there before a loop, or is computed of such and of the loop's counter alone."""
    if is_outside(value, loop) or value is loop.body.block.args[0]:
        return True
    op = value.owner
    if not isinstance(op, Operation) or op.parent is not loop.body.block or op.regions or len(op.results) != 1:
        return False
    return op.name.startswith("arith.") and all(can_be_made(x, loop) for x in op.operands)


def _goes_to_memory(op: Operation) -> bool:
    """Whether an operation stores a loaded tile for products, as it is or transposed."""
    if isinstance(op, tt.TransOp):
        return all(isinstance(use.operation, LocalAllocOp) for use in op.results[0].uses)
    return isinstance(op, LocalAllocOp)


def _number_of(base: BlockArgument) -> int | None:
    """Which of the kernel's descriptors begins at an argument."""
    function = base.block.parent_op()
    attrs = function.properties.get("arg_attrs") if isinstance(function, tt.FuncOp) else None
    if not isinstance(attrs, ArrayAttr) or DESCRIPTOR not in attrs.data[base.index].data:
        return None
    return ir.int_value(attrs.data[base.index].data[DESCRIPTOR])


def map_of(bulk: BulkLoad) -> SSAValue:
    """The argument that is the tensor map for a load's blocks; made, where the kernel has none for them yet."""
    entry, element = bulk.base.block, ir.element_of(bulk.load.result.type)
    function = entry.parent_op()
    assert isinstance(function, tt.FuncOp)
    type = ir.TensorDescType(laid_tensor(ir.shape_of(bulk.load.result.type), element, bulk.layout))
    place = bulk.base.index + 6
    while place < len(entry.args) and isinstance(entry.args[place].type, ir.TensorDescType):
        if entry.args[place].type == type:
            return entry.args[place]
        place += 1
    argument = entry.insert_arg(type, place)
    argument.name_hint = bulk.base.name_hint
    argument.location = bulk.base.location
    attrs = function.properties.get("arg_attrs")
    if isinstance(attrs, ArrayAttr):
        of = DictionaryAttr({DESCRIPTOR: attrs.data[bulk.base.index].data[DESCRIPTOR]})
        function.properties["arg_attrs"] = ArrayAttr([*attrs.data[:place], of, *attrs.data[place:]])
    outputs = tuple(function.function_type.outputs.data)
    function.properties["function_type"] = ir.function_type(tuple(a.type for a in entry.args), outputs)
    return argument
