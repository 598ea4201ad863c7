"""Hold one address in LDS through a loop of products, and compute those that differ by an exclusive or from it.

    %a = linear {registers=(0, 16, 32, 48, 1024), ...}      %a = linear {registers=(0,), ...}
    for:                                                    for:
      store %a, %x                                            %t = instruction %a {isa=held.narrow}
      products                              becomes           %b = arith.xori %t, (0, 16, 32, 48, 0)
                                                              %c = arith.addi %b, (0, 0, 0, 0, 1024)
                                                              store %c, %x
                                                              products

Operands lie in LDS in an order that avoids bank conflicts: the number of a row flips bits of the place within it. The
constant that an access adds to its address cannot flip bits, so a lane has up to eight registers of addresses for a
store, which differ in three bits. LLVM hoists them out of the loop and holds all of them through all products. One of
them is enough, with an instruction for each of the others.

This is done if a kernel takes too many registers (`held.narrow`); otherwise LLVM gets the original code.
"""

from __future__ import annotations

from weft.ir.lane import Block, Builder, LaneOp, LaneProgram, Value

from ..behind_loops import plus, reached
from .slices import RDNA
from .used_up import is_product

NEAR = 3
"""So many addresses are held as one."""


def compute_near_addresses(program: LaneProgram) -> None:
    """In the loops with products of a program for RDNA, where a lane has 256 registers for all."""
    if program.machine.generation < RDNA:
        return
    for op in program.body.walk():
        if op.name == "for" and any(map(is_product, op.regions[0].ops)):
            _in_block(op.regions[0])


def _in_block(block: Block) -> None:
    near = {source for op in block.ops if _is_local(op) and _is_near(source := _source(op.operands[0]))}
    anew: dict[Value, Value] = {}
    ops: list[LaneOp] = []
    for op in block.ops:
        inner = [op, *(x for region in op.regions for x in region.walk())]
        build = Builder(Block())
        build.span = op.span
        for value in dict.fromkeys(y for x in inner for y in x.operands if y in near and y not in anew):
            anew[value] = _computed(build, value)
        for x in inner:
            x.operands = tuple([anew.get(y, y) for y in x.operands])
        ops += [*build.block.ops, op]
    block.ops[:] = ops


def _is_local(op: LaneOp) -> bool:
    return op.name in ("load", "store") and op.attrs["space"] == "shared"


def _source(address: Value) -> Value:
    """The value that some registers of which are an address."""
    while address.op is not None and address.op.name == "rename":
        address = address.op.operands[0]
    return address


def _parts(address: Value) -> tuple[LaneOp, Value] | None:
    """The linear function of the thread's number and the place of a buffer, whose sum an address is."""
    if address.op is None or address.op.name != "arith.addi":
        return None
    linear, buffer = (x.op for x in address.op.operands)
    if linear is None or linear.name != "linear" or any(linear.attrs["block"]) or linear.attrs.get("uniform"):
        return None
    return None if buffer is None or buffer.name != "shared" else (linear, buffer.result)


def _is_near(address: Value) -> bool:
    """Whether addresses differ in bits that lanes or warps have, too, so that no access can add what they differ by."""
    parts = _parts(address)
    if parts is None:
        return False
    linear = parts[0]
    bits = reached((*linear.attrs["lane"], *linear.attrs["warp"]))
    return len({r & bits for r in linear.attrs["registers"]}) >= NEAR


def _computed(build: Builder, address: Value) -> Value:
    """All registers of an address, from one."""
    parts = _parts(address)
    assert parts is not None
    linear, buffer = parts
    lane, warp, registers = (linear.attrs[name] for name in ("lane", "warp", "registers"))
    held = build.instruction("held.narrow", [build.linear((0,), lane, warp)], [("i32", 1)]).result
    return build.op("arith.addi", [plus(build, held, registers, (*lane, *warp)), buffer], "i32")
