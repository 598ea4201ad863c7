"""Which argument of the kernel an address is made of.

%p = tt.addptr %x, %i           root_of(%q) is %x, also where a loop carries %q on
%q = tt.addptr %p, %j
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import BlockArgument, Operation, SSAValue

__all__ = ["root_of"]

PASSED_ON = (
    *("tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.bitcast", "tt.trans", "tt.reshape"),
    "ttg.convert_layout",
)


def root_of(address: SSAValue) -> SSAValue | None:
    """The argument of the kernel; None where there may be several, or it is loaded or made of a number."""
    roots: set[SSAValue] = set()
    seen: set[SSAValue] = set()
    todo = [address]
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        before = _before(value)
        if before is None:
            return None
        todo += before
        if not before:
            roots.add(value)
    return roots.pop() if len(roots) == 1 else None


def _before(value: SSAValue) -> Sequence[SSAValue] | None:
    """What an address may be made of; nothing for an argument of a function, None where that is not known."""
    if isinstance(value, BlockArgument):
        return _carried(value)
    op = value.owner
    assert isinstance(op, Operation)
    if op.name in PASSED_ON:
        return op.operands[:1]
    if op.name == "arith.select":
        return op.operands[1:]
    index = list(op.results).index(value)  # type: ignore[arg-type]
    if op.name == "scf.for":
        return [op.regions[0].blocks[0].args[index + 1]]
    if op.name == "scf.if":
        ends = [r.blocks[0].last_op for r in op.regions if r.blocks]
        return [e.operands[index] for e in ends if e is not None]
    return None


def _carried(value: BlockArgument) -> Sequence[SSAValue] | None:
    parent = value.block.parent_op()
    if parent is None or parent.name == "tt.func":
        return []
    end = value.block.last_op
    if parent.name != "scf.for" or not value.index or end is None:
        return None
    return [parent.operands[value.index + 2], end.operands[value.index - 1]]
