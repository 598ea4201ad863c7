"""Turn products into wgmma, the matrix instruction of four warps of sm_90, with operands in shared memory.

    %d = tt.dot %a, %b, %c : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
becomes
    %0 = ttg.local_alloc %a : (tensor<128x64xf16, #blocked>) -> !ttg.memdesc<128x64xf16, #shared, #smem>
    %1 = ttg.local_alloc %b : (tensor<64x128xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
    ttng.fence_async_shared {bCluster = false}
    %d = ttng.warp_group_dot %0, %1, %c : ... -> tensor<128x128xf32, #mma>

A left operand that another product computes stays in registers, unless the loop around the product does not change it:
see Note [operands that outlive an iteration]. Each operand keeps its order in memory, or has the order in which its
threads store it fastest, if the instruction can read that: 16-bit types in both orders, others only along the summed
dimension.

Not done here: asynchronous products (`isAsync`), copies by the copy engine.

Note [operands that outlive an iteration]

    %q = ldmatrix ...                        R120 = %q
    loop:                                    loop:
      wgmma %s, %q, %k         ptxas:          wgmma %s, R120, %k
      %p = cvt %s                              R120 = cvt %s                 %q is overwritten, but read again
      wgmma %o, %p, %v                         wgmma %o, R120, %v

ptxas (12.8 and 13.0) forgets that a later iteration reads the registers of a left operand which was computed before the
loop, and may reuse them: gradients of attention were wrong on an H100 although the PTX was right. This happens only
with some register allocations, most often if there is a wait for an mbarrier between products. So only operands that an
iteration itself computes are read from registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf

from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import Block, Operation, SSAValue

from weft.base import LayoutError
from weft.ir import bit_width, element_of, int_value, ints_of, shape_of, tt, type_text
from weft.ir.gpu import layout_of, memdesc
from weft.ir.gpu.ttg import LocalAllocOp
from weft.ir.nvidia.ttng import FenceAsyncSharedOp, WarpGroupDotOp
from weft.layouts import DistributedLayout, NVMMASharedLayout
from weft.layouts.plan import plan_local_access
from weft.machines import Machine
from weft.ops.table import ROWS
from weft.targets.table import available, products

from ..blocks_of_clusters import Bases
from ..effects import shareable
from ..vendor import AccessOf

OF_GROUPS = "wgmma"
GROUP = 4
"""Warps that multiply together."""
LEAST_COLUMNS = 8
"""The fewest columns of an instruction. If warp groups divide the columns of several products of one left operand, and
the right operands lie in memory column by column, each group has every other 8 columns. What a group has of all
products is then one matrix with a constant stride, which one instruction multiplies (side_by_side.py). If a group had
half of the columns of each product, the stride would not be constant."""
LOOPS = ("scf.for", "scf.while")


def contiguous_dim(value: SSAValue, access: AccessOf) -> int | None:
    """The dimension along which a tile came from memory; None for one that did not."""
    op = value.owner
    if not isinstance(op, Operation):
        return None
    if op.name == "tt.load":
        layout = access(op)
        return layout.order[0] if layout is not None else None
    if op.name == "tt.trans":
        inner = contiguous_dim(op.operands[0], access)
        return None if inner is None else ints_of(op.properties["order"]).index(inner)
    return contiguous_dim(op.operands[0], access) if op.name in ROWS and ROWS[op.name].arity == 1 else None


def warpgroup_layout(
    op: Operation, shape: Sequence[int], machine: Machine, warps: int, access: AccessOf
) -> DistributedLayout | str:
    """The result's layout where a product can be made of wgmma, else why it cannot: nothing is said of a machine that
    has none. `shape` is a block's part."""
    a, b, _ = op.operands
    depth = shape_of(a.type)[-1]
    left, right, total = (type_text(element_of(x.type)) for x in (a, b, op.results[0]))
    entries = products(machine, left, right, total, GROUP)
    if not entries:
        return f"it has no {left} times {right} summed in {total}" if has_groups(machine) else ""
    if len(shape) != 2:
        return "a product with a batch is several of them"
    if warps % GROUP:
        return f"it is for {GROUP} warps together, and num_warps is {warps}"
    precision = int_value(op.properties["inputPrecision"]) if "inputPrecision" in op.properties else None
    if left == "f32" and precision != tt.InputPrecision.TF32:
        return "it multiplies f32 in the precision of tf32, which input_precision does not allow"
    if bit_width(element_of(a.type)) != 16 and contiguous_dim(b, access) == 1 and _is_in_loop(b) and _as_loaded(b):
        # it would be transposed in each iteration: mma.sync takes bytes as they lie, in a third of the time. What is
        # widened is in registers anyway, and mma.sync holds all of it there: threads store it as wgmma reads it
        kind = "tf32" if left == "f32" else "8 bits"
        return f"it reads operands of {kind} along the summed dimension only, and the right one lies along the other"
    rows, columns = shape
    m, widest, k = entries[0].shape
    by_rows = min(warps, max(GROUP, rows // m * GROUP))
    by_columns = warps // by_rows
    n = min(widest, columns // by_columns)
    if by_columns > 1 and contiguous_dim(b, access) == 0 and _has_neighbours(op):
        n = min(n, LEAST_COLUMNS)
    entry = next((x for x in entries if x.shape[1] == n), None)
    if entry is None or rows % m or depth % k:
        return f"its rows are {m}, its columns 8 to {widest} and its depth {k}, the product is {rows}x{columns}x{depth}"
    layout: DistributedLayout = entry.params["named"]([by_rows, by_columns], machine)
    return layout


def _has_neighbours(op: Operation) -> bool:
    """Whether the same left operand has other products in this block."""
    alike = {use.operation for use in op.operands[0].uses if use.index == 0}
    return any(x is not op and x.name == op.name and x.parent is op.parent for x in alike)


@lru_cache(maxsize=64)
def has_groups(machine: Machine) -> bool:
    """Whether a machine has products of warp groups."""
    return any("multiplies" in entry.params and entry.params.get("warps", 1) == GROUP for entry in available(machine))


def _as_loaded(value: SSAValue) -> bool:
    """Whether the elements of a tile are as wide as in the memory that it came from."""
    op = value.owner
    while isinstance(op, Operation) and op.name != "tt.load" and op.operands:
        if bit_width(element_of(op.operands[0].type)) != bit_width(element_of(value.type)):
            return False
        op = op.operands[0].owner
    return True


def _is_in_loop(value: SSAValue) -> bool:
    """Whether a tile is made in a loop."""
    parent = value.owner.parent_op()
    while parent is not None and parent.name not in LOOPS:
        parent = parent.parent_op()
    return parent is not None


def left_is_made_anew(product: Operation) -> bool:
    """Whether each iteration of the innermost loop around a product makes its left operand anew: always where there is
    no loop. See Note [operands that outlive an iteration]."""
    loop = product.parent_op()
    while loop is not None and loop.name not in LOOPS:
        loop = loop.parent_op()
    return loop is None or _changes_in(loop, product.operands[0])


def _changes_in(loop: Operation, value: SSAValue) -> bool:
    """Whether a value may be another one in each iteration of a loop."""
    todo, seen = [value], set[SSAValue]()
    while todo:
        at = todo.pop()
        if at in seen or not loop.is_ancestor(at.owner):
            continue
        seen.add(at)
        if isinstance(at.owner, Block) or not shareable(at.owner):
            return True
        todo += at.owner.operands
    return False


def operand_forms(op: Operation, index: int, division: Bases, access: AccessOf) -> list[NVMMASharedLayout]:
    """How an operand may lie in shared memory: the first of those that its threads store best is taken."""
    value = op.operands[index]
    along, shape, bits = contiguous_dim(value, access), list(shape_of(value.type)), bit_width(element_of(value.type))
    rows, columns = (
        NVMMASharedLayout.get_default_for(shape, bits, transposed=first == 0, cga_layout=division) for first in (1, 0)
    )
    if bits != 16:
        return [rows if index == 0 else columns]
    if along is not None:
        return [rows if along == 1 else columns]
    return [rows, columns]  # carried by a loop, computed, or transposed since


def allocated(
    op: Operation, value: SSAValue, index: int, division: Bases, machine: Machine, access: AccessOf
) -> SSAValue:
    """An operand in shared memory, stored before the product; `division` is how the blocks of a cluster divide it."""
    shape, element = list(shape_of(value.type)), element_of(value.type)
    layouts = operand_forms(op, index, division, access)
    layout = min(layouts, key=lambda x: _cycles(value, x, machine)) if len(layouts) > 1 else layouts[0]
    allocation = LocalAllocOp.create(operands=[value], result_types=[memdesc(shape, element, layout, mutable=False)])
    allocation.location = op.location
    assert op.parent is not None
    op.parent.insert_op_before(allocation, op)
    return allocation.results[0]


def _cycles(value: SSAValue, layout: NVMMASharedLayout, machine: Machine) -> float:
    """The cycles of storing a tile in a layout."""
    source, bits = layout_of(value.type), bit_width(element_of(value.type))
    try:
        return plan_local_access(source, layout, list(shape_of(value.type)), bits, machine, store=True).cycles
    except LayoutError:
        return inf


def warpgroup_product(op: Operation, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
    """The product of such operands, in the place of the one that there was; its result."""
    kept = ("inputPrecision", "maxNumImpreciseAcc")
    properties = {k: op.properties[k] for k in kept if k in op.properties}
    dot = WarpGroupDotOp.create(operands=[a, b, c], result_types=[c.type], properties=properties)
    dot.location = op.location
    result = dot.results[0]
    result.name_hint = op.results[0].name_hint
    assert op.parent is not None
    fence = FenceAsyncSharedOp.create(properties={"bCluster": IntegerAttr(0, i1)})
    fence.location = op.location
    op.parent.insert_op_before(fence, op)  # what threads have stored, wgmma sees
    op.parent.insert_op_before(dot, op)
    op.results[0].replace_all_uses_with(result)
    op.detach()
    op.erase()
    return result
