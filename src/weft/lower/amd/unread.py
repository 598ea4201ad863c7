"""Leave out the last registers of wide loads from shared memory if nothing reads them.

    %a = load shared, 4 registers of each of two addresses
    ... of the second address the last register is not read
becomes
    %b = load shared, 4 registers of the first address
    %c = load shared, 2 registers of the second one
    %d = load shared, 1 register 8 bytes behind it

In a scan, each lane loads the totals of all warps, although no lane needs that of the last warp. LLVM drops unused
registers of wide loads, but does not drop the access.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.lane import ELEMENT_BITS, Block, Builder, LaneOp, LaneProgram, Value, is_elementwise

Read = dict[Value, set[int]]


def load_what_is_read(program: LaneProgram) -> None:
    """Narrow the loads of a program."""
    if not any(map(_is_wide, program.body.walk())):
        return
    read = _read(program)
    renamed: dict[Value, Value] = {}
    for block in (program.body, *(region for op in program.body.walk() for region in op.regions)):
        ops: list[LaneOp] = []
        for op in block.ops:
            if _is_wide(op) and (lengths := _lengths(op, read.get(op.result, set()))):
                build = Builder(Block())
                build.span = op.span
                renamed[op.result] = _narrowed(build, op, lengths)
                ops += build.block.ops
            else:
                ops.append(op)
        block.ops[:] = ops
    for op in program.body.walk() if renamed else ():
        op.operands = tuple([renamed.get(x, x) for x in op.operands])


def _is_wide(op: LaneOp) -> bool:
    if op.name != "load" or op.attrs["space"] != "shared" or op.attrs["vector"] < 2 or op.attrs.get("volatile"):
        return False
    return len(op.operands) == 1 and ELEMENT_BITS[op.result.elem] == 32


def _read(program: LaneProgram) -> Read:
    """Which registers of values are read, by what has effects or is read itself."""
    read: Read = {}
    for op in reversed(list(program.body.walk())):
        wanted = [read.get(r, set()) for r in op.results]
        is_lazy = len(op.results) == 1 and not op.regions and (op.name in ("rename", "join") or is_elementwise(op.name))
        first = 0
        for x in op.operands:
            registers = set(range(x.count))
            if op.name == "rename":
                registers = {op.attrs["table"][r] for r in wanted[0]}
            elif op.name == "join":
                registers = {r - first for r in wanted[0] if first <= r < first + x.count}
                first += x.count
            elif is_lazy and x.count == op.result.count:
                registers = wanted[0]
            elif is_lazy and not wanted[0]:
                registers = set()
            read.setdefault(x, set()).update(registers)
    return read


def _lengths(op: LaneOp, read: set[int]) -> list[int]:
    """How many registers of each address are loaded; none where all of them are, or nothing is read at all."""
    vector = op.attrs["vector"]
    starts = range(0, op.result.count, vector)
    lengths = [max((r + 1 - start for r in range(start, start + vector) if r in read), default=0) for start in starts]
    return lengths if 0 < sum(lengths) < op.result.count else []


def _narrowed(build: Builder, op: LaneOp, lengths: Sequence[int]) -> Value:
    """The registers that are read; in the place of others any of them."""
    address, vector, elem = op.operands[0], op.attrs["vector"], op.result.elem
    parts: list[Value] = []
    place: dict[int, int] = {}
    pieces: dict[tuple[int, int], list[int]] = {}
    for i, length in enumerate(lengths):
        at = 0
        while at < length:
            size = vector if length == vector else 1 << (length - at).bit_length() - 1
            pieces.setdefault((size, at), []).append(i)
            at += size
    for (size, at), groups in pieces.items():
        where = build.rename(address, groups)
        if at:
            where = build.op("arith.addi", [where, build.constant(address.elem, at * 4)], address.elem)
        for k, i in enumerate(groups):
            for r in range(size):
                place[i * vector + at + r] = sum(p.count for p in parts) + k * size + r
        attrs = {**op.attrs, "vector": size}
        parts.append(build.add("load", [where], [(elem, size * len(groups))], attrs).result)
    joined = build.add("join", parts, [(elem, sum(p.count for p in parts))]).result if len(parts) > 1 else parts[0]
    return build.rename(joined, [place.get(r, 0) for r in range(op.result.count)])
