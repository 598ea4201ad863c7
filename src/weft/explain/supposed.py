"""A program whose integers from memory are supposed to be random, so that addresses made of them can be counted.

    row = load index[i]                 row = hash of the address of index[i]
    load table[row * 4096 + lane]       load table[row * 4096 + lane]

What is read is not known, but mostly it does not matter: that a row's lanes are side by side follows from the program,
wherever the row is; and elements that are looked up one by one lie in a sector each, unless the index has an order.
How often a loop turns stays unknown: a random number of iterations would say nothing, and take long to follow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import replace
from typing import cast

from weft.analysis import origins, touches_of
from weft.ir.lane import ELEMENT_BITS, Block, Builder, LaneOp, LaneProgram, Value

from .arrays import arrays_of
from .findings import Facts
from .record import Explanation

__all__ = ["supposing"]

MIXED, KEPT, BITS = 0x9E3779B1, 11, 14
"""A multiplier, how many low bits of the product are dropped, and how many are kept: indices are below 2**14, so that
products with the length of a row do not wrap in 32 bits."""
POINTERS = 1 << 24
"""What numbers that are taken for addresses themselves are multiples of."""
SCALED = ("arith.muli", "arith.shli")


def supposing(program: LaneProgram, at_hand: Container[str] = ()) -> LaneProgram:
    """The program with loads of integers that addresses are made of replaced; itself, if it has none. Loads from arrays
    whose data is at hand stay."""
    facts = Facts(cast(Explanation, None), program)  # what values are made of follows from the program alone
    arrays = arrays_of(facts)
    accesses = [op for op in facts.ops if op.name in ("load", "store", "atomic", "copy_async")]
    wanted = _made_from(facts, [op.operands[1 if op.name == "copy_async" else 0] for op in accesses])
    indices = set()
    for op in facts.ops:
        if _is_integer(op) and op.result in wanted:
            names = arrays[op.span, "load"]
            if not names or not all(name in at_hand for name in names):
                indices.add(op.result)
    return replace(program, body=_block(program.body, program.body.uses(), indices)) if indices else program


def _made_from(facts: Facts, values: Sequence[Value]) -> set[Value]:
    """All values that some are made from, also by way of shared memory, where a tile changes its layout: what is loaded
    from a buffer is made from what is stored there."""
    assert facts.program is not None
    buffers = origins(facts.program)
    stored, loaded = defaultdict[int, list[Value]](list), defaultdict[Value, list[int]](list)
    for op in facts.ops:
        for touch in touches_of(op):
            for buffer in buffers.get(touch.address, ()):
                if touch.how != "read":
                    stored[buffer] += op.operands
                for result in op.results:
                    loaded[result].append(buffer)
    made: set[Value] = set()
    open_values = [*values]
    while open_values:
        further = facts.made_from(open_values.pop()) - made
        made |= further
        open_values += [v for value in further & loaded.keys() for buffer in loaded[value] for v in stored[buffer]]
    return made


def _is_integer(op: LaneOp) -> bool:
    """Whether an operation loads an integer that may be an index."""
    return op.name == "load" and op.attrs["space"] == "global" and op.result.elem in ("i16", "i32", "i64")


def _block(block: Block, uses: dict[Value, list[LaneOp]], indices: set[Value]) -> Block:
    ops: list[LaneOp] = []
    for op in block.ops:
        if any(result in indices for result in op.results):
            ops += _instead(op, not _is_scaled(op.result, uses))
        elif op.regions:
            ops.append(replace(op, regions=tuple(_block(region, uses, indices) for region in op.regions)))
        else:
            ops.append(op)
    return Block(block.arguments, ops)


def _instead(op: LaneOp, is_address: bool) -> list[LaneOp]:
    """Operations that give a load's result its value."""
    new = Block()
    build = Builder(new)
    build.span = op.span
    vector, size = int(op.attrs.get("vector", 1)), ELEMENT_BITS[op.result.elem] // 8
    address = op.operands[0]
    if vector > 1:
        address = build.rename(address, [i // vector for i in range(op.result.count)])
        steps = build.linear([i % vector * size for i in range(op.result.count)])
        address = build.op("arith.addi", [address, build.op("arith.extui", [steps], "i64")], "i64")
    value = build.op("arith.shrui", [address, build.constant("i64", (size - 1).bit_length())], "i64")
    value = build.op("arith.muli", [value, build.constant("i64", MIXED)], "i64")
    value = build.op("arith.shrui", [value, build.constant("i64", KEPT)], "i64")
    value = build.op("arith.andi", [value, build.constant("i64", (1 << BITS) - 1)], "i64")
    if is_address and op.result.elem == "i64":
        value = build.op("arith.muli", [value, build.constant("i64", POINTERS)], "i64")
    if op.result.elem != "i64":
        value = build.op("arith.trunci", [value], op.result.elem)
    last = new.ops[-1]
    last.results = op.results  # whoever uses what was loaded uses this
    return new.ops


def _is_scaled(value: Value, uses: dict[Value, list[LaneOp]]) -> bool:
    """Whether something is made of a value by multiplication, as an offset is of an index."""
    seen: set[Value] = set()
    open_values = [value]
    while open_values:
        now = open_values.pop()
        if now in seen:
            continue
        seen.add(now)
        for user in uses.get(now, []):
            if user.name in SCALED:
                return True
            if user.name.startswith("arith.") or user.name in ("rename", "join", "select", "shuffle"):
                open_values += user.results
    return False
