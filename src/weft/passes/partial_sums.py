"""Add the parts of loop-carried sums within lanes, and across lanes once, after the loop.

    %s = scf.for ... iter_args(%a = %init) -> (tensor<32xf32>) {
      %r = "tt.reduce"(%x) <{axis = 1}> add : (tensor<32x64xf32>) -> tensor<32xf32>
      %b = arith.addf %a, %r
      scf.yield %b
    }
becomes
    %p = scf.for ... iter_args(%a = %zero) -> (tensor<32x16xf32>) {
      %y = tt.reshape %x : tensor<32x64xf32> -> tensor<32x16x4xf32>
      %r = "tt.reduce"(%y) <{axis = 2}> add           four neighbours, which one lane has
      %b = arith.addf %a, %r
      scf.yield %b
    }
    %r2 = "tt.reduce"(%p) <{axis = 1}> add
    %s = arith.addf %init, %r2

A reduction across the lanes of a warp takes five exchanges, across warps shared memory and a barrier: once, and not in
each iteration. Triton does this too (`optimize-thread-locality`).  Minima and maxima likewise.

Sums of floats of less than 32 bits stay: parts may be much larger than the sums of rows, and overflow or lose what
these keep.
"""

from __future__ import annotations

from math import inf, nan, prod

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from weft import ir
from weft.analysis import AxisFacts
from weft.base import each_once
from weft.base.remarks import NO_REMARKS, RemarkCollector, SumInParts
from weft.ir.gpu import encoding_of

from .removal import remove

NEIGHBOURS = 4
"""Elements that one lane has side by side: what a load of 16 bytes gives, and a multiple of it for smaller types."""

MOST_CARRIED = 16
"""Registers of a lane for the parts of one sum."""

MOST_IN_ALL = 64
"""Registers of a lane for the parts of all sums of a loop; sums beyond them stay."""

LEAST_BITS = 32
"""The fewest bits of floats whose sums may be taken in another order."""

_FLOATS: dict[type[Operation], float] = {
    arith.AddfOp: -0.0, arith.MaxnumfOp: nan, arith.MaximumfOp: -inf, arith.MinnumfOp: nan, arith.MinimumfOp: inf,
}  # fmt: skip
"""What changes nothing, sums of -0.0 and extrema of NaN alone included: what passes over NaN has NaN to begin with."""
_INTEGERS: tuple[type[Operation], ...] = (arith.AddiOp, arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp)


def partial_sums(root: Operation, threads: int, *, reorder: bool = True, remarks: RemarkCollector = NO_REMARKS) -> bool:
    """Rewrite the loops inside `root`, of a kernel whose blocks have so many threads. Gives whether there was any.

    Without `reorder`, floats are added in the order of the text.
    """
    changed = False
    for loop in ir.find(root, scf.ForOp):
        left = MOST_IN_ALL
        for index in range(len(loop.results)):
            left -= _rewrite(loop, index, threads, left, reorder, remarks)
        changed |= left < MOST_IN_ALL
    return changed


def _rewrite(loop: scf.ForOp, index: int, threads: int, left: int, reorder: bool, remarks: RemarkCollector) -> int:
    """Rewrite one sum, if it takes no more than the registers that are left; how many it takes."""
    carried = loop.body.block.args[index + 1]
    reduction = _reduction(loop, carried, index)
    if reduction is None:
        return 0
    added, reduced = reduction
    if isinstance(added, arith.AddfOp) and not reorder:
        return 0
    if encoding_of(reduced.srcs[0].type) is not None:  # whoever has said the layouts has said this too
        return 0
    shape, parts = _parts(ir.shape_of(reduced.srcs[0].type), threads, _neighbours(reduced.srcs[0]))
    taken = max(1, prod(shape) // threads) * max(1, ir.bit_width(ir.element_of(carried.type)) // 32)
    if parts is None or taken > left:
        return 0
    why = "each lane adds up its own part, and lanes are combined once, after the loop"
    remarks.add(SumInParts(ir.span_of(added), ir.tile_text(carried.type), why, (ir.site_of(reduced),)))
    element = ir.element_of(carried.type)
    partial_type = ir.tensor_of(shape, element)
    init = loop.operands[3 + index]
    loop.operands[3 + index] = ir.Builder.before(loop).constant(_neutral(type(added), element), partial_type)
    new = Rewriter.replace_value_with_new_type(carried, partial_type)
    inside = ir.Builder.before(reduced)
    value = reduced.srcs[0]
    if parts > 1:
        wide = inside.create(ir.tt.ReshapeOp, (value,), (ir.tensor_of((*shape, parts), element),)).result
        value = _again(inside, reduced, wide, partial_type)
    total = ir.Builder.before(added).binary(type(added), new, value)
    yielded = loop.body.block.last_op
    assert yielded is not None
    yielded.operands[index] = total
    result = Rewriter.replace_value_with_new_type(loop.results[index], partial_type)
    after = ir.Builder.after(loop)
    last = _again(after, reduced, result, init.type)
    final = after.binary(type(added), init, last)
    result.replace_uses_with_if(final, lambda use: use.operation is not last.owner)
    remove(added)
    remove(reduced)
    return taken


def _reduction(loop: scf.ForOp, carried: BlockArgument, index: int) -> tuple[Operation, ir.tt.ReduceOp] | None:
    """What adds a reduction to a carried value, and that reduction, if nothing else looks at either."""
    yielded = loop.body.block.last_op
    if yielded is None:
        return None
    result = yielded.operands[index]
    added = result.owner
    if type(added) not in _FLOATS and type(added) not in _INTEGERS:
        return None
    assert isinstance(added, Operation)
    if isinstance(added, arith.AddfOp) and ir.bit_width(ir.element_of(carried.type)) < LEAST_BITS:
        return None
    if added.parent is not carried.block or carried not in added.operands or not _used_once(result, carried):
        return None
    other = next((x for x in added.operands if x is not carried), None)
    reduced = other.owner if isinstance(other, OpResult) else None
    if (
        not isinstance(reduced, ir.tt.ReduceOp)
        or reduced.parent is not carried.block
        or not _used_once(reduced.result[0])
    ):
        return None
    source = reduced.srcs[0]
    last = len(ir.shape_of(source.type)) - 1
    if len(reduced.srcs) != 1 or ir.int_value(reduced.axis) != last or not _combines_by(reduced, type(added)):
        return None
    return added, reduced


def _neighbours(source: SSAValue) -> int:
    """How many elements of a row one lane has side by side: as a load gives them, one where rows begin at any address;
    0 of a product, which has them in pairs.
    """
    waiting, block = [source], source.owner.parent if isinstance(source.owner, Operation) else None
    facts, runs = AxisFacts(), []
    for value in each_once(waiting):
        op = value.owner
        if not isinstance(op, Operation) or op.parent is not block:
            continue
        if isinstance(op, (ir.tt.DotOp, ir.tt.DotScaledOp)):
            return 0
        if isinstance(op, ir.tt.LoadOp):
            run, size = facts.of(op.ptr), ir.bit_width(ir.element_of(op.result.type)) // 8 or 1
            runs.append(min(run.contiguity[-1], run.divisibility[-1] // size))
        else:
            waiting += op.operands
    return NEIGHBOURS if max(runs, default=NEIGHBOURS) >= NEIGHBOURS else 1


def _used_once(*values: SSAValue) -> bool:
    return all(len(list(value.uses)) == 1 for value in values)


def _combines_by(reduced: ir.tt.ReduceOp, kind: type[Operation]) -> bool:
    block = reduced.combineOp.block
    body = list(block.ops)
    return (
        len(body) == 2
        and type(body[0]) is kind
        and {*body[0].operands} == {*block.args}
        and tuple(body[1].operands) == (body[0].results[0],)
    )


def _parts(shape: tuple[int, ...], threads: int, neighbours: int) -> tuple[tuple[int, ...], int | None]:
    """The shape of the parts, and how many neighbours make one; None where the registers do not suffice."""
    each = prod(shape) // threads
    parts = max(1, min(neighbours, each, shape[-1] // 2))
    if neighbours == 0 or shape[-1] < 4 or each // parts > MOST_CARRIED:
        return shape, None
    return (*shape[:-1], shape[-1] // parts), parts


def _neutral(kind: type[Operation], element: Attribute) -> float | int:
    """What changes nothing."""
    if kind in _FLOATS:
        return _FLOATS[kind]
    bits = ir.bit_width(element)
    limits: dict[type[Operation], int] = {
        arith.MaxSIOp: -(1 << (bits - 1)), arith.MinSIOp: (1 << (bits - 1)) - 1, arith.MinUIOp: -1,
    }  # fmt: skip
    return limits.get(kind, 0)


def _again(b: ir.Builder, reduced: ir.tt.ReduceOp, source: SSAValue, result: Attribute) -> SSAValue:
    """The same reduction of another tile along its last dimension."""
    axis = ir.int_attr(len(ir.shape_of(source.type)) - 1)
    region = reduced.combineOp.clone()
    return b.create(ir.tt.ReduceOp, (source,), (result,), {"axis": axis}, {}, (region,)).result[0]
