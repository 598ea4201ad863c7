"""What a loop's turn computes some values from, and the same for a turn that is yet to come.

    s = slice_of(loop, [%p])          # the operations of the body that %p is made of, and the carried values it needs
    s.clone(builder, index, states)   # %p of a turn with that index and those carried values

Only operations without effects are followed; a slice with any other is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft.ir import Builder

from .effects import shareable

__all__ = ["Slice", "slice_of"]


@dataclass(frozen=True)
class Slice:
    """Operations of a loop's body, in order, and which of its carried values they need in turn."""

    body: Block
    ops: tuple[Operation, ...]
    carried: tuple[int, ...]

    def clone(
        self, b: Builder, index: SSAValue, states: Mapping[int, SSAValue]
    ) -> tuple[dict[SSAValue, SSAValue], dict[int, SSAValue]]:
        """(what each value of the slice is in a turn, the carried values of the turn after it)."""
        found: dict[SSAValue, SSAValue] = {self.body.args[0]: index}
        for i in self.carried:
            found[self.body.args[i + 1]] = states[i]
        for op in self.ops:
            made = op.clone()
            made.operands = [found.get(x, x) for x in op.operands]
            made.location = op.location
            for old, new in zip(op.results, made.results, strict=True):
                new.name_hint = old.name_hint
                found[old] = new
            b.insert(made)
        end = self.body.last_op
        assert end is not None
        return found, {i: found.get(end.operands[i], end.operands[i]) for i in self.carried}


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
        if op.parent is not body or not shareable(op) or op.name == "ttg.convert_layout":
            return None
        ops.add(op)
        todo += op.operands
    return Slice(body, tuple(op for op in body.ops if op in ops), tuple(sorted(carried)))
