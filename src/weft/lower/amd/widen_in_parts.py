"""Widen an operand that is loaded from shared memory separately for each product.

    %a = load shared, 128 registers of f8          %a = load shared
    %w = arith.extf %a : f16                       %a0 = rename %a [0, 1, 2, 3]
    %w0 = rename %w [0, 1, 2, 3]                   %w0 = arith.extf %a0
    %d = mfma %w0, ...                    becomes  %d = mfma %w0, ...
    %w1 = rename %w [4, 5, 6, 7]                   %a1 = rename %a [4, 5, 6, 7]
    %e = mfma %w1, ...                             %w1 = arith.extf %a1
                                                   %e = mfma %w1, ...

The loads are then divided too (`lower/sink_loads.py`), each before the first product that needs it. Otherwise, a lane
would hold a whole operand, 64 registers of f16 for 64 x 128.
"""

from __future__ import annotations

from weft.ir.lane import ELEMENT_BITS, Block, Builder, LaneOp, LaneProgram, Value

from .used_up import is_product

LEAST = 16
"""Registers (of elements) of a tile that is worth it."""


def widen_in_parts(program: LaneProgram) -> None:
    """In all loops of a program."""
    uses = program.body.uses()
    for op in program.body.walk():
        if op.name == "for":
            _in_block(op.regions[0], uses)


def _in_block(block: Block, uses: dict[Value, list[LaneOp]]) -> None:
    wide = {op: parts for op in block.ops if (parts := _parts(op, block, uses))}
    if not wide:
        return
    of_part = {part: op for op, parts in wide.items() for part in parts}
    made: dict[tuple[LaneOp, tuple[int, ...]], Value] = {}
    renamed: dict[Value, Value] = {}
    ops: list[LaneOp] = []
    for op in block.ops:
        if op in wide:
            continue
        if op in of_part:
            key = of_part[op], tuple(op.attrs["table"])
            if key not in made:
                build = Builder(Block())
                build.span = key[0].span
                narrow = build.rename(key[0].operands[0], key[1])
                made[key] = build.op(key[0].name, [narrow], op.result.elem, **key[0].attrs)
                ops += build.block.ops
            renamed[op.result] = made[key]
            continue
        op.operands = tuple(renamed.get(x, x) for x in op.operands)
        ops.append(op)
    block.ops[:] = ops


def _parts(op: LaneOp, block: Block, uses: dict[Value, list[LaneOp]]) -> list[LaneOp]:
    """The operations that take registers of a widened tile for products; none where that is not all there is to it."""
    if op.name != "arith.extf" or ELEMENT_BITS[op.operands[0].elem] != 8 or op.result.count < LEAST:
        return []
    source = op.operands[0].op
    while source is not None and source.name == "rename":
        source = source.operands[0].op
    if source is None or source.name != "load" or source.attrs["space"] != "shared":
        return []
    parts = uses.get(op.result, [])
    inside = set(block.ops)
    are_parts = all(
        x.name == "rename" and x in inside and len(x.attrs["table"]) < op.result.count
        and all(is_product(user) for user in uses.get(x.result, [])) for x in parts
    )  # fmt: skip
    return parts if are_parts else []
