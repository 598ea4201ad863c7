"""End a program at once if one condition masks off all of its stores, and drop that condition from its masks.

    %there = arith.cmpi slt, %row, %c1000 : tensor<1x1xi1>          one row a program
    %wide = tt.broadcast %there
    %mask = arith.andi %column_mask, %wide
    %x = tt.load %from, %mask
    tt.store %to, %x, %mask
becomes
    weft.end_unless %there
    %x = tt.load %from, %column_mask
    tt.store %to, %x, %column_mask

Inductor masks rows by their number although it starts no program for a row that does not exist. The compiler does not
know that, so each element costs a predicate for its access, a zero that replaces what is not loaded, and a select of
the loop-carried value.

The condition is one number, the same for all threads, and computed from arguments and program ids alone. Every
operation with an effect must be masked by it: a store or an atomic by its mask, an assertion because it then holds.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from weft import ir
from weft.base.remarks import NO_REMARKS, IdleProgram, RemarkCollector
from weft.ir import Builder, CheckOp, EndUnlessOp, span_of, tt, walk

from .effects import droppable, shareable
from .fold import constant_of

SHAPES = (tt.BroadcastOp, tt.SplatOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.UnsplatOp)
HARMLESS = (
    *("tt.return", "scf.yield", "scf.condition", "tt.reduce.return", "tt.scan.return"),
    *("llvm.intr.assume", "gpu.barrier"),
)
"""What stands in a program that does nothing."""


def end_idle_programs(module: ModuleOp, remarks: RemarkCollector = NO_REMARKS) -> None:
    """Rewrite the functions of a module."""
    for function in module.body.block.ops:
        if isinstance(function, tt.FuncOp) and len(function.regions[0].blocks) == 1:
            block = function.regions[0].block
            for condition in _masking_all(block):
                if _is_of_program(condition, block):
                    _end_unless(condition, remarks)


def _masking_all(block: Block) -> list[SSAValue]:
    """The numbers without which no operation of a function has an effect."""
    common: dict[SSAValue, None] | None = None
    for op in walk(block):
        if op.regions or op.name in HARMLESS or droppable(op):
            continue
        needed = _needed(op)
        common = needed if common is None else {value: None for value in common if value in needed}
        if not common:
            return []
    return list(common or ())


def _needed(op: Operation) -> dict[SSAValue, None]:
    """The numbers that are true wherever an operation has an effect."""
    if isinstance(op, tt.StoreOp | tt.AtomicRMWOp) and op.mask is not None:
        return dict.fromkeys(_conjuncts(op.mask))
    if isinstance(op, tt.AssertOp) or (isinstance(op, CheckOp) and op.operands):
        return dict.fromkeys(_conjuncts(op.operands[0], negated=True))
    return {}


def _conjuncts(value: SSAValue, negated: bool = False) -> list[SSAValue]:
    """The numbers that are all true if any element of a mask is; of a `negated` one, if any element is false."""
    if not negated and ir.numel_of(value.type) == 1 and not isinstance(value.owner, (arith.AndIOp, *SHAPES)):
        return [value]
    op = value.owner
    if isinstance(op, SHAPES):
        return _conjuncts(op.operands[0], negated)
    if isinstance(op, arith.OrIOp if negated else arith.AndIOp):
        return [each for operand in op.operands for each in _conjuncts(operand, negated)]
    if isinstance(op, arith.XOrIOp):
        for operand, other in (op.operands, reversed(op.operands)):
            if constant_of(other) in (-1, True):
                return _conjuncts(operand, not negated)
    return []


def _is_of_program(value: SSAValue, body: Block) -> bool:
    """Whether it is computed before anything has an effect, from what is known when a program starts."""
    pending, seen = [value], set()
    while pending:
        op = pending.pop().owner
        if isinstance(op, Block):
            if op is not body:
                return False
        elif op not in seen:
            if op.parent is not body or not (shareable(op) or isinstance(op, tt.GetProgramIdOp)):
                return False
            seen.add(op)
            pending += op.operands
    return not isinstance(value.owner, Block) and constant_of(value) is None


def _end_unless(condition: SSAValue, remarks: RemarkCollector) -> None:
    owner = condition.owner
    assert isinstance(owner, Operation)
    why = "a program for which it is false stores nothing, and ends at once"
    remarks.add(IdleProgram(span_of(owner), "the mask", why))
    b = Builder.after(owner)
    true = b.constant(True, condition.type)
    condition.replace_all_uses_with(true)
    number = b.value(tt.UnsplatOp, (condition,), ir.i1) if ir.is_tensor(condition.type) else condition
    b.create(EndUnlessOp, (number,), ())
