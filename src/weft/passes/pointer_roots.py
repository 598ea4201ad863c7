"""The arguments of the kernel from which an address is computed.

%p = tt.addptr %x, %i           the root of %q is %x, also where a loop carries %q on
%q = tt.addptr %p, %j
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from weft.base import each_once
from weft.ir import is_pointer, is_tensor, tt

OF_FIRST = (
    *(tt.AddPtrOp, tt.SplatOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.TransOp, tt.BitcastOp),
    *(tt.SplitOp, tt.UnsplatOp, tt.GatherOp),
)
"""Operations whose result points to where their first operand does."""
OF_ALL = (tt.JoinOp, tt.CatOp)


def roots_of(address: SSAValue) -> list[BlockArgument]:
    """The arguments of the function that an address may be made of; none where it may come from anywhere else too."""
    roots: set[BlockArgument] = set()
    todo = [address]
    for value in each_once(todo):
        before = _before(value)
        if before is None:
            return []
        if isinstance(value, BlockArgument) and before == [value]:
            roots.add(value)
        todo += before
    return sorted(roots, key=lambda argument: argument.index)


def root_of(address: SSAValue) -> BlockArgument | None:
    """The one argument that an address is made of; None where there may be several, or where nobody knows."""
    roots = roots_of(address)
    return roots[0] if len(roots) == 1 else None


def _before(value: SSAValue) -> list[SSAValue] | None:
    """The values that an address may be made of: itself for an argument of the function, None where nobody knows."""
    owner = value.owner
    if isinstance(owner, Block):
        return _passed_to(value, owner)
    if isinstance(owner, OF_FIRST) or owner.name == "ttg.convert_layout":  # whose class a CPU does not load
        return [owner.operands[0]]
    if isinstance(owner, OF_ALL):
        return list(owner.operands)
    if isinstance(owner, arith.SelectOp):
        return list(owner.operands[1:])
    index = value.index  # type: ignore[attr-defined]
    if isinstance(owner, scf.ForOp):
        return [owner.operands[3 + index], _end_of(owner.regions[0]).operands[index]]
    if isinstance(owner, scf.IfOp):
        return [_end_of(region).operands[index] for region in owner.regions if region.blocks]
    if isinstance(owner, scf.WhileOp):
        return [_end_of(owner.regions[0]).operands[1 + index]]
    return None


def _passed_to(value: SSAValue, block: Block) -> list[SSAValue] | None:
    """What an argument of a block may be."""
    parent = block.parent_op()
    index = value.index  # type: ignore[attr-defined]
    if isinstance(parent, tt.FuncOp):
        is_argument = parent.body.blocks[0] is block and is_pointer(value.type) and not is_tensor(value.type)
        return [value] if is_argument else None
    if isinstance(parent, scf.ForOp) and index > 0:
        return [parent.operands[2 + index], _end_of(parent.regions[0]).operands[index - 1]]
    if isinstance(parent, scf.WhileOp):
        if block.parent is parent.regions[0]:
            return [parent.operands[index], _end_of(parent.regions[1]).operands[index]]
        return [_end_of(parent.regions[0]).operands[1 + index]]
    return None


def _end_of(region: Region) -> Operation:
    last = region.blocks[-1].last_op
    if last is None:
        raise ValueError("a region without an end")
    return last
