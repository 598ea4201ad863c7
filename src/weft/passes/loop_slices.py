"""The operations of a loop's body that compute given values, and a copy of them for a later iteration.

    s = slice_of(loop, [%p])          # the operations of the body that %p is made of, and the carried values it needs
    s.clone(builder, index, states)   # %p of an iteration with that index and those carried values

A slice may contain operations without effects, and loads of single elements or of rows of them (pages or rows that are
looked up). In the copy, these loads are masked off if there is no such iteration. Values that depend on any other
operation have no slice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft.ir import Builder, i1, i32, i64, is_tensor, like, segments, shape_of, splat_value, tt

from .effects import shareable


@dataclass(frozen=True)
class Slice:
    """Operations of a loop's body, in order, and which of its carried values they need in turn."""

    body: Block
    ops: tuple[Operation, ...]
    carried: tuple[int, ...]

    @property
    def lookups(self) -> tuple[tt.LoadOp, ...]:
        """The loads among the operations."""
        return tuple(op for op in self.ops if isinstance(op, tt.LoadOp))

    def clone(
        self,
        b: Builder,
        index: SSAValue,
        states: Mapping[int, SSAValue],
        exists: SSAValue | None = None,
        early: Builder | None = None,
    ) -> tuple[dict[SSAValue, SSAValue], dict[int, SSAValue]]:
        """(what each value of the slice is in an iteration, the carried values of the iteration after it).

        With lookups it has to be said whether the iteration `exists`; they, and what they need, come where `early`
        is.
        """
        clones: dict[SSAValue, SSAValue] = {self.body.args[0]: index}
        for i in self.carried:
            clones[self.body.args[i + 1]] = states[i]
        first = self._needed(self.lookups) if early is not None else ()
        for op in self.ops:
            at = early if early is not None and op in first else b
            operands = [clones.get(x, x) for x in op.operands]
            if isinstance(op, tt.LoadOp) and exists is not None:
                clone: Operation = masked_load(at, op, operands, exists)
            else:
                clone = op.clone()
                clone.operands = operands
                at.insert(clone)
            clone.location = op.location
            for old, new in zip(op.results, clone.results, strict=True):
                new.name_hint = old.name_hint
                clones[old] = new
        end = self.body.last_op
        assert end is not None
        return clones, {i: clones.get(end.operands[i], end.operands[i]) for i in self.carried}

    def _needed(self, wanted: Sequence[Operation]) -> set[Operation]:
        """Operations of the slice, and those that they are computed from."""
        needed = set(wanted)
        for op in reversed(self.ops):
            if any(use.operation in needed for r in op.results for use in r.uses):
                needed.add(op)
        return needed


def masked_load(b: Builder, op: tt.LoadOp, operands: Sequence[SSAValue], exists: SSAValue) -> Operation:
    """A load, of nothing where the iteration is not there."""
    pointer, *others = operands
    active = exists
    if is_tensor(pointer.type):
        active = b.create(tt.SplatOp, (exists,), (like(pointer.type, i1),)).results[0]
    if op.mask is not None:
        active = b.create(arith.AndIOp, (active, others[0]), (active.type,)).result
    rest = others[1:]
    sizes = {"operandSegmentSizes": segments(1, 1, len(rest))}
    return b.create(tt.LoadOp, (pointer, active, *rest), (op.result.type,), {**op.properties, **sizes})


def is_lookup(op: Operation) -> TypeGuard[tt.LoadOp]:
    """Whether an operation loads a number, or a row of them, as anybody may at any time."""
    if not isinstance(op, tt.LoadOp) or (is_tensor(op.result.type) and len(shape_of(op.result.type)) > 1):
        return False
    volatile = op.properties.get("isVolatile")
    return volatile is None or not splat_value(volatile)


def _is_moved(op: Operation) -> bool:
    """Whether a tile that is not a row is moved."""
    return op.name == "ttg.convert_layout" and len(shape_of(op.results[0].type)) > 1


def slice_of(loop: scf.ForOp, values: Sequence[SSAValue]) -> Slice | None:
    """What values of a loop's body, and the carried values among it, are computed from; None where not by copying."""
    body = loop.body.block
    end = body.last_op
    assert end is not None
    ops: set[Operation] = set()
    carried: set[int] = set()
    todo = list(values)
    while todo:
        value = todo.pop()
        if isinstance(value, BlockArgument):
            if value.block is body and value.index and value.index - 1 not in carried:
                carried.add(value.index - 1)
                todo.append(end.operands[value.index - 1])
            continue
        op = value.owner
        assert isinstance(op, Operation)
        if op in ops or not loop.is_ancestor(op):
            continue
        if op.parent is not body or not (shareable(op) or is_lookup(op)) or _is_moved(op):
            return None
        ops.add(op)
        todo += op.operands
    return Slice(body, tuple(op for op in body.ops if op in ops), tuple(sorted(carried)))


def is_there(loop: scf.ForOp, b: Builder, iteration: int) -> SSAValue:
    """i1: whether the loop has so many iterations after its first, or in the loop after this one."""
    lower, upper, step = loop.operands[:3]
    if b.block is not loop.body.block:
        lower, upper, step = (_widened(b, x) for x in (lower, upper, step))
        return b.cmpi("slt", b.binary(arith.AddiOp, lower, _ahead(b, step, iteration)) if iteration else lower, upper)
    # In the loop the index is compared with where the last such iteration begins, which is computed in front of it.
    before = Builder.before(loop)
    wide = _widened(before, upper)
    end = before.binary(arith.SubiOp, wide, _ahead(before, _widened(before, step), iteration))
    index = loop.body.block.args[0]
    if index.type == i32:
        end = before.binary(arith.MaxSIOp, end, before.constant(-(1 << 31), i64))
        end = before.create(arith.TruncIOp, (end,), (i32,)).result
    return b.cmpi("slt", index, end)


def _widened(b: Builder, number: SSAValue) -> SSAValue:
    """An i32 as i64: an iteration ahead may be too far for it."""
    return b.create(arith.ExtSIOp, (number,), (i64,)).result if number.type == i32 else number


def _ahead(b: Builder, step: SSAValue, iteration: int) -> SSAValue:
    """How far so many iterations are."""
    return b.binary(arith.MuliOp, step, b.constant(iteration, step.type))
