"""Order the products of a loop's iteration, and the operations between them.

    %p = exp2 (%k * %q)                       begin %k * %q;  begin %v * %do
    %dv += %p * %do                           %p = exp2 ...;  begin %dv += %p * %do
    %dp = %v * %do                  becomes   %ds = ...;      begin %dk += %ds * %q
    %ds = %p * (%dp - %d)
    %dk += %ds * %q

Products that need no other product's result are begun first, and the others as soon as their operands are available.
Loads that need no product come before all products, which then run while the loads are in flight. All other operations
are placed where a product needs them, or at the end.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from weft.ir import tt, walk
from weft.ir.gpu import ttg
from weft.ir.gpu.products import SharedProductOp
from weft.ir.gpu.ttg import LocalAllocOp

from ..effects import shareable
from ..pipeline_loads import has_effects
from ..pointer_roots import root_of
from .specialized_loops import stored_in

VIEWS = (ttg.MemDescIndexOp, ttg.MemDescReinterpretOp, ttg.MemDescTransOp)


def order_products(loop: scf.ForOp) -> None:
    """Reorder the body of a loop, all of whose products stand in the body itself."""
    body = loop.body.block
    *ops, end = body.ops
    stored = stored_in(body)
    fixed = [op for op in ops if not _is_movable(op, stored)]
    needs = {op: _needed(op, ops, fixed) for op in ops}
    order = list(dict.fromkeys(_early_loads(ops, needs)))
    for product in _ranked([op for op in ops if isinstance(op, SharedProductOp)], needs):
        order += [op for op in ops if op in needs[product] and op not in order]
        order.append(product)
    placed = set(order)
    for op in (*order, *(op for op in ops if op not in placed)):
        op.detach()
        body.insert_op_before(op, end)


def _needed(op: Operation, ops: Sequence[Operation], fixed: Sequence[Operation]) -> set[Operation]:
    """All of a body's operations that must come before one; those that are fixed stay in their order."""
    inside, found = set(ops), set[Operation]()
    todo = [op]
    while todo:
        at = todo.pop()
        owners = {x.owner for inner in walk(at) for x in inner.operands}
        if at in fixed:
            owners |= set(fixed[: fixed.index(at)])
        for owner in owners:
            if isinstance(owner, Operation) and owner in inside and owner not in found and owner is not op:
                found.add(owner)
                todo.append(owner)
    return found


def _is_movable(op: Operation, stored: Set[SSAValue | None]) -> bool:
    """Whether an operation may come before others, in a loop that stores through some arguments."""
    if isinstance(op, tt.LoadOp):
        return not stored or not stored & {None, root_of(op.ptr)}
    return shareable(op) or isinstance(op, (SharedProductOp, LocalAllocOp, *VIEWS))


def _early_loads(ops: Sequence[Operation], needs: dict[Operation, set[Operation]]) -> list[Operation]:
    """Loads that need no product, with what they need, in order."""
    found: set[Operation] = set()
    for op in ops:
        before = needs[op]
        if isinstance(op, tt.LoadOp) and not any(isinstance(x, SharedProductOp) or has_effects(x) for x in before):
            found |= needs[op] | {op}
    return [op for op in ops if op in found]


def _ranked(products: Sequence[SharedProductOp], needs: dict[Operation, set[Operation]]) -> list[SharedProductOp]:
    """Products in the order in which what they need is there; of two, first the one that the iteration itself uses."""
    left, ranked = list(products), list[SharedProductOp]()
    while left:
        ready = [op for op in left if not any(other in needs[op] for other in left)]
        latest = {op: max((ranked.index(x) for x in ranked if x in needs[op]), default=-1) for op in ready}
        ranked.append(min(ready, key=lambda op: (latest[op], _is_only_carried(op))))
        left.remove(ranked[-1])
    return ranked


def _is_only_carried(op: SharedProductOp) -> bool:
    return all(isinstance(use.operation, scf.YieldOp) for use in op.d.uses)
