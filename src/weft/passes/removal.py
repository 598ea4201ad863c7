"""Remove operations from their block, and put others in their place."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, Operation, SSAValue


def remove(op: Operation) -> None:
    """Take an operation out of its block and drop it; nothing that stays may use its results."""
    op.detach()
    op.erase(safe_erase=False)


def remade(op: Operation, operands: Sequence[SSAValue], types: Sequence[Attribute]) -> Operation:
    """The same operation of other operands and types of results, in no block yet; it takes the regions over."""
    return type(op).create(
        operands=operands,
        result_types=types,
        properties=op.properties,
        attributes=op.attributes,
        location=op.location,
        regions=[op.detach_region(region) for region in list(op.regions)],
    )


def put_in_place(op: Operation, block: Block | None, values: Sequence[SSAValue] = ()) -> None:
    """Put the operations of a block of `op` where it is, and what the block yields where its results were; without a
    block, `values`.
    """
    parent = op.parent
    assert parent is not None
    for inner in list(block.ops) if block is not None else ():
        if isinstance(inner, scf.YieldOp):
            values = list(inner.operands)
        else:
            inner.detach()
            parent.insert_op_before(inner, op)
    for old, new in zip(op.results, values, strict=True):
        old.replace_all_uses_with(new)
    remove(op)
