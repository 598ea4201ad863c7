"""Carry one scalar instead of a tile that every iteration moves by the same amount.

    %r = scf.for %i = %lo to %hi step %st iter_args(%p = %init) -> (tensor<64x!tt.ptr<f32>>) {
      ...
      %step = tt.splat %s : i32 -> tensor<64xi32>
      %next = tt.addptr %p, %step
      scf.yield %next
    }
becomes
    %r0 = scf.for %i = %lo to %hi step %st iter_args(%c = 0) -> (i64) {
      %moved = tt.splat %c : i64 -> tensor<64xi64>
      %p = tt.addptr %init, %moved
      ...
      %wide = arith.extsi %s : i32 to i64
      %next = arith.addi %c, %wide
      scf.yield %next
    }
    %r = tt.addptr %init, splat(%r0)

so that addresses stay expressions of indices, and their form (consecutive, uniform) stays visible. Integer tiles moved
by a splat are treated alike. Not done here: tiles moved by different amounts at different places (they are carried as
they are).
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from weft.ir import Builder, element_of, find, i64, is_int, is_pointer, is_tensor, like, tt

from .fold import int_of


def scalarize_carried(module: ModuleOp, *, pointers: bool = True) -> None:
    """Rewrite every `scf.for` of the module, inner loops last; without `pointers` only what carries integers."""
    for op in find(module, scf.ForOp):
        for index, argument in enumerate(op.iter_args):
            if pointers or not is_pointer(element_of(argument.type)):
                _scalarize(op, index)


def _uniform(value: SSAValue, b: Builder) -> SSAValue | None:
    """The scalar of which `value` is the splat (a constant tile counts), or None."""
    owner = value.owner
    if isinstance(owner, tt.SplatOp):
        return owner.operands[0]
    number = int_of(value)
    if number is not None:
        return b.constant(number, element_of(value.type))
    if isinstance(owner, (tt.BroadcastOp, tt.ExpandDimsOp)):
        return _uniform(owner.operands[0], b)
    if isinstance(owner, arith.MuliOp):
        left, right = _uniform(owner.operands[0], b), _uniform(owner.operands[1], b)
        if left is not None and right is not None:
            return b.create(arith.MuliOp, (left, right), (left.type,)).result
    return None


def _increments(value: SSAValue, arg: BlockArgument) -> list[SSAValue] | None:
    """The tiles added to `arg` to make `value`, or None if it is not such a sum."""
    added: list[SSAValue] = []
    while value is not arg:
        owner = value.owner
        if not isinstance(owner, Operation) or owner.parent is not arg.block:
            return None
        if isinstance(owner, tt.AddPtrOp):
            added.append(owner.operands[1])
            value = owner.operands[0]
        elif isinstance(owner, arith.AddiOp):
            left, right = owner.operands
            if _leads_to(left, arg):
                added.append(right)
                value = left
            else:
                added.append(left)
                value = right
        else:
            return None
    return added


def _leads_to(value: SSAValue, arg: BlockArgument) -> bool:
    while isinstance(value, OpResult) and isinstance(value.op, (arith.AddiOp, tt.AddPtrOp)):
        value = value.op.operands[0]
    return value is arg


def _scalarize(loop: scf.ForOp, index: int) -> None:
    body: Block = loop.body.block
    arg = body.args[index + 1]
    if not is_tensor(arg.type):
        return
    elem = element_of(arg.type)
    pointer = is_pointer(elem)
    if not pointer and not (is_int(elem) and elem.name == "integer_type"):
        return
    end = body.last_op
    if end is None:
        return
    added = _increments(end.operands[index], arg)
    if not added:
        return
    inside = Builder.before(end)
    scalars = [_uniform(a, inside) for a in added]
    if any(s is None for s in scalars):
        return
    counter_type = i64 if pointer else elem
    init = loop.iter_args[index]
    tile_type = arg.type
    offsets_type = like(tile_type, counter_type)
    before = Builder.before(loop)
    zero = before.constant(0, counter_type)

    def moved(b: Builder, counter: SSAValue) -> SSAValue:
        offsets = b.create(tt.SplatOp, (counter,), (offsets_type,)).results[0]
        op_class: type[Operation] = tt.AddPtrOp if pointer else arith.AddiOp
        return b.create(op_class, (init, offsets), (tile_type,)).results[0]

    first = body.first_op
    assert first is not None
    counter = Rewriter.replace_value_with_new_type(arg, counter_type)
    start = Builder.before(first)
    splat = start.create(tt.SplatOp, (counter,), (offsets_type,))
    op_class: type[Operation] = tt.AddPtrOp if pointer else arith.AddiOp
    tile = start.create(op_class, (init, splat.results[0]), (tile_type,)).results[0]
    counter.replace_uses_with_if(tile, lambda use: use.operation is not splat)
    inside = Builder.before(end)
    total: SSAValue = counter
    for s in scalars:
        assert s is not None
        wide = s
        if pointer and s.type != i64:
            wide = inside.create(arith.ExtSIOp, (s,), (i64,)).result
        total = inside.create(arith.AddiOp, (total, wide), (counter_type,)).result
    end.operands[index] = total
    loop.operands[3 + index] = zero
    result = Rewriter.replace_value_with_new_type(loop.results[index], counter_type)
    if any(True for _ in result.uses):
        after = Builder.after(loop)
        final = moved(after, result)
        producer = final.owner
        assert isinstance(producer, Operation)
        result.replace_uses_with_if(final, lambda use: use.operation is not producer.operands[1].owner)
