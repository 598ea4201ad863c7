"""Find the loads of a loop that the copy engine can do: of which descriptor, which block, and in which layout.

    %v = tt.load (%base + (%row + 0..63)[:, None] * %stride + (%column + 0..127)[None, :]) {tt.described}

is block [%row, %column] of the descriptor among the kernel's arguments that begins at %base: the mark of
`rewrite_descriptors` says that its mask is the end of the tensor, and the form of the address (passes/affine.py) gives
the coordinates.

The kernel gets the descriptor a second time, as a tensor map, after its parts:

    tt.func @f(%base: !tt.ptr<f16>, %padding, %rows, %columns, %stride, %one, %map: !tt.tensordesc<tensor<64x128xf16>>)

Loads through pointers, and through descriptors that the kernel makes, are loads of a tensor's blocks too if
pointed_tensors.py finds the tensor. Its map comes after all other arguments, and `tt.made` says from which arguments
the launch computes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeGuard

from xdsl.dialects import scf
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft import ir
from weft.base.made_tensors import MadeTensor
from weft.ir import tt
from weft.ir.gpu import MemDescType, laid_tensor, memdesc, name_of
from weft.ir.gpu.ttg import LocalAllocOp, MemDescTransOp
from weft.ir.made_tensors import attribute_of
from weft.layouts import NVMMASharedLayout
from weft.machines import Machine

from ..affine import ONE, Form, Forms, NotAffine, Sum, is_outside
from ..buffered_tiles import buffer_layout, flipped, is_product_operand
from ..rewrite_descriptors import DESCRIBED, DESCRIPTOR
from .pointed_tensors import pointed_tensor

MADE = "tt.made"
"""The attribute of a tensor map among the arguments that names the tensor for which the launch makes it."""
MADE_TENSORS = "made_tensors"
"""The option by which loads through pointers stay as they are."""
NOT_MADE = "weft.no_made_tensors"
"""The attribute of a module with that option."""
WITHOUT_MAPS = (
    "loads through pointers stay in a kernel without tensor maps of what pointers describe (made_tensors=False, "
    "or a launch whose sizes and strides describe no tensor)"
)
"""A launch falls back to a kernel that is compiled with the option: whether it was asked for is not known here."""
ROWS = 8
"""After which a swizzle begins anew."""


@dataclass(frozen=True)
class BulkLoad:
    """A load that the copy engine can do."""

    load: tt.LoadOp
    base: BlockArgument
    """The argument of the kernel at which the tensor begins."""
    at: tuple[Sum, ...]
    """Where the block begins, rows and columns last."""
    layout: NVMMASharedLayout
    """The layout of the tile in shared memory."""
    tensor: MadeTensor | None = None
    """What its map is made for; None for a descriptor among the arguments."""
    transposed: bool = False
    """Whether the tile is the block transposed."""
    apart: int = 0
    """A power of two that divides the distance between rows in bytes, of a tensor for which a launch makes a map."""

    @property
    def block(self) -> tuple[int, int]:
        """Rows and columns of what is copied."""
        rows, columns = ir.shape_of(self.load.result.type)
        return (columns, rows) if self.transposed else (rows, columns)

    @property
    def bytes(self) -> int:
        """The size of the tile; in a cluster, of the part that one block has."""
        tile = self.load.result.type
        parts = 1 << sum(any(basis) for basis in self.layout.cga_layout)
        return prod(ir.shape_of(tile)) * ir.bit_width(ir.element_of(tile)) // 8 // parts

    @property
    def is_shared(self) -> bool:
        """Whether several blocks of a cluster have the same."""
        return not all(any(basis) for basis in self.layout.cga_layout)

    def memory(self, count: int = 0) -> MemDescType:
        """The type of the buffers, or of one."""
        whole = (count, *self.block) if count else self.block
        return memdesc(whole, ir.element_of(self.load.result.type), self.copied, mutable=True)

    @property
    def copied(self) -> NVMMASharedLayout:
        """The layout of what is copied."""
        layout = flipped(self.layout) if self.transposed else self.layout
        assert layout is not None
        return layout

    @property
    def described(self) -> tuple[tuple[int, ...], NVMMASharedLayout]:
        """The block of the tensor map and its layout, which have all dimensions."""
        more = len(self.at) - 2
        if not more:
            return self.block, self.copied
        layout = self.copied
        size = layout.swizzle_byte_width, layout.element_bitwidth, len(self.at)
        return (*(1,) * more, *self.block), NVMMASharedLayout(*size)

    def tile(self, b: ir.Builder, buffer: SSAValue) -> SSAValue:
        """The tile in a buffer, as its products want it."""
        if not self.transposed:
            return buffer
        type = memdesc(self.block[::-1], ir.element_of(self.load.result.type), self.layout, mutable=True)
        return b.create(MemDescTransOp, (buffer,), (type,), {"order": ir.i32_array((1, 0))}).result


def bulk_loads(loop: scf.ForOp, machine: Machine) -> Sequence[BulkLoad] | str:
    """How the copy engine can do all loads of a loop whose tiles products read as they are loaded; else why it cannot,
    in words."""
    loads = [op for op in loads_of_tensors(loop) if is_product_operand(op.result)]
    if not loads:
        return "no operand is multiplied as it is loaded (operands are computed from loaded tiles)"
    return tiles_in_bulk(loads, machine)


def loads_of_tensors(loop: scf.ForOp) -> list[tt.LoadOp]:
    """What an iteration loads, numbers apart."""
    return [op for op in loop.body.block.ops if isinstance(op, tt.LoadOp) and ir.is_tensor(op.ptr.type)]


def tiles_in_bulk(tiles: Sequence[tt.LoadOp], machine: Machine) -> Sequence[BulkLoad] | str:
    """How the copy engine can do loads of a loop, of operands and of what operands are computed from; else why it
    cannot do one of them, in words."""
    forms = Forms()
    found: list[BulkLoad] = []
    for op in tiles:
        bulk = _bulk_load(op, forms, machine)
        if isinstance(bulk, str):
            return bulk
        found.append(bulk)
    return found


def _bulk_load(op: tt.LoadOp, forms: Forms, machine: Machine) -> BulkLoad | str:
    is_operand = is_product_operand(op.result)
    if is_operand and not all(_goes_to_memory(use.operation) for use in op.result.uses):
        return "an operand has another use than its product"
    loop = op.parent_op()
    assert isinstance(loop, scf.ForOp)
    layout = buffer_layout(op.result, name_of(op.ptr.type), machine)
    try:
        form = forms.of(op.ptr) if DESCRIBED in op.attributes else None
        if form is not None and isinstance(form.base, BlockArgument) and _is_matrix(form.base, form):
            bulk = _through_descriptor(op, form.base, form, layout)
        else:
            bulk = _through_pointers(op, loop, layout)
    except NotAffine as why:
        return f"the addresses of an operand {why}"
    if isinstance(bulk, str):
        return bulk
    if is_operand and not all(_is_multiplied_so(use.operation, bulk.layout) for use in op.result.uses):
        return NO_SUCH_LAYOUT
    bounds = loop.operands[:3]  # in a loop over tiles, the other warp computes them too
    if not all(can_be_made(v, loop) for v in set(bounds).union(*(x.scalars for x in bulk.at))):
        return "the addresses of an operand depend on values that the loop loads or carries"
    if bulk.block[0] < ROWS:
        return f"an operand has fewer than {ROWS} rows, over which the copy engine swizzles"
    return bulk


def _is_matrix(base: BlockArgument, form: Form) -> bool:
    """Whether a tile is a block of a descriptor of rank 2 among the arguments, which begins at `base`."""
    return descriptor_of(base) is not None and form.steps == (Sum.scalar(_stride_of_rows(base)), ONE)


def _stride_of_rows(base: BlockArgument) -> SSAValue:
    """The stride of a descriptor of rank 2, whose parts are base, padding, two sizes, two strides."""
    return base.block.args[base.index + 4]


def _through_descriptor(op: tt.LoadOp, base: BlockArgument, form: Form, layout: object) -> BulkLoad | str:
    """A load through a descriptor of rank 2 that is an argument, which begins at `base`."""
    if not ir.int_value(op.attributes[DESCRIBED]):
        return "elements outside of an operand's tensor are not known to be 0 (padding)"
    rows, column = form.offset.split_by(_stride_of_rows(base))
    if not _is_copied(layout) or layout.transposed:
        return NO_SUCH_LAYOUT
    return BulkLoad(op, base, (rows, column), layout)


def _through_pointers(op: tt.LoadOp, loop: scf.ForOp, layout: object) -> BulkLoad | str:
    """A load through pointers, or through a descriptor that the kernel makes."""
    if is_forbidden(loop):
        return WITHOUT_MAPS
    pointed = pointed_tensor(op, loop)
    if not _is_copied(layout) or layout.transposed != pointed.transposed:
        return NO_SUCH_LAYOUT
    return BulkLoad(op, pointed.base, pointed.at, layout, pointed.tensor, pointed.transposed, pointed.apart)


def function_of(whole: scf.ForOp) -> tt.FuncOp | None:
    """The function that a loop stands in, as it is or in branches (all warps go the same way); None where a loop, whose
    iterations would begin with the same mbarriers, is around it."""
    at = whole.parent_op()
    while isinstance(at, scf.IfOp):
        at = at.parent_op()
    return at if isinstance(at, tt.FuncOp) else None


def is_forbidden(op: Operation) -> bool:
    """Whether the module that an operation is in has no tensors made of arguments."""
    at = op
    while (around := at.parent_op()) is not None:
        at = around
    return NOT_MADE in at.attributes


def _is_copied(layout: object) -> TypeGuard[NVMMASharedLayout]:
    """Whether the copy engine can put a tile into shared memory in a layout."""
    return isinstance(layout, NVMMASharedLayout) and bool(layout.swizzle_byte_width)


NO_SUCH_LAYOUT = "the copy engine cannot write an operand to shared memory in the layout that its product needs"


def can_be_made(value: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a scalar is there before a loop, or is computed of such and of the loop's counter alone; so of the loop
    over tiles that the loop may be in."""
    around = loop.parent_op()
    loops = (loop, around) if isinstance(around, scf.ForOp) else (loop,)
    if is_outside(value, loops[-1]) or any(value is x.body.block.args[0] for x in loops):
        return True
    op = value.owner
    if not isinstance(op, Operation) or op.parent not in [x.body.block for x in loops]:
        return False
    if op.regions or len(op.results) != 1:
        return False
    return op.name.startswith("arith.") and all(can_be_made(x, loop) for x in op.operands)


def _goes_to_memory(op: Operation) -> bool:
    """Whether an operation stores a loaded tile for products, as it is or transposed."""
    if isinstance(op, tt.TransOp):
        return all(isinstance(use.operation, LocalAllocOp) for use in op.results[0].uses)
    return isinstance(op, LocalAllocOp)


def _is_multiplied_so(op: Operation, layout: NVMMASharedLayout) -> bool:
    """Whether products read a loaded tile in the layout that it is loaded in, where an operation stores it for them."""
    if isinstance(op, tt.TransOp):
        turned = flipped(layout)
        return turned is not None and all(_is_multiplied_so(use.operation, turned) for use in op.results[0].uses)
    type = op.results[0].type
    return isinstance(op, LocalAllocOp) and isinstance(type, MemDescType) and type.data.layout.named == layout


def descriptor_of(base: BlockArgument) -> int | None:
    """Which of the kernel's descriptors begins at an argument."""
    function = base.block.parent_op()
    attrs = function.properties.get("arg_attrs") if isinstance(function, tt.FuncOp) else None
    if not isinstance(attrs, ArrayAttr) or DESCRIPTOR not in attrs.data[base.index].data:
        return None
    return ir.int_value(attrs.data[base.index].data[DESCRIPTOR])


def map_of(bulk: BulkLoad) -> SSAValue:
    """The argument that is the tensor map for a load's blocks; made, where the kernel has none for them yet."""
    shape, layout = bulk.described
    type = ir.TensorDescType(laid_tensor(shape, ir.element_of(bulk.load.result.type), layout))
    return map_for(bulk.base, type, bulk.tensor)


def map_for(base: BlockArgument, type: ir.TensorDescType, tensor: MadeTensor | None = None) -> SSAValue:
    """The argument that is a tensor map of this type, of the descriptor whose first part is `base`, or of a tensor that
    begins there; made, where the kernel has none yet."""
    entry = base.block
    function = entry.parent_op()
    assert isinstance(function, tt.FuncOp)
    attrs = function.properties.get("arg_attrs")
    known = list(attrs.data) if isinstance(attrs, ArrayAttr) else [ir.empty_dict() for _ in entry.args]
    if tensor is not None:
        of = DictionaryAttr({MADE: attribute_of(tensor)})
        place = next((i for i, x in enumerate(known) if x == of and entry.args[i].type == type), len(known))
    else:
        of = DictionaryAttr({DESCRIPTOR: known[base.index].data[DESCRIPTOR]})
        place = base.index + 2 + 2 * len(ir.shape_of(type.block_type))
        while place < len(known) and known[place] == of and entry.args[place].type != type:
            place += 1
    if place < len(known) and known[place] == of and entry.args[place].type == type:
        return entry.args[place]
    argument = entry.insert_arg(type, place)
    argument.name_hint = base.name_hint
    argument.location = base.location
    function.properties["arg_attrs"] = ArrayAttr([*known[:place], of, *known[place:]])
    outputs = tuple(function.function_type.outputs.data)
    function.properties["function_type"] = ir.function_type(tuple(a.type for a in entry.args), outputs)
    return argument
