"""Whether what remarks say of a kernel is what its lane program does: `untrue(kernel)` lists where it is not.

accesses    every access of global memory at a line with remarks of accesses has a width that one of them tells
buffers     they reach up to the shared memory that the kernel asks for
barriers    those that the compiler put in are as many as there are remarks of them
products    matrix instructions are as many as told
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from weft.ir.lane import ELEMENT_BITS, LaneOp, LaneProgram
from weft.remarks import AccessWidth, Barrier, ProductBy, Remarks, RowAligned, SharedBuffer

__all__ = ["untrue"]


def _bytes_of(op: LaneOp) -> int | None:
    """How many bytes a lane accesses at a time in global memory; None for another operation."""
    if op.name == "copy_async":
        return int(op.attrs["bytes"])
    if op.name not in ("load", "store", "atomic") or op.attrs.get("space") != "global":
        return None
    value = op.result if op.name == "load" else op.operands[1]
    return max(8, ELEMENT_BITS[value.elem]) // 8 * int(op.attrs.get("vector", 1))


def untrue(program: LaneProgram, remarks: Remarks, *, parted: bool = False) -> Iterator[str]:
    """What remarks say that the program does not do; with `parted` it was written anew, part by part."""
    told: dict[object, set[int]] = defaultdict(set)
    for r in remarks.of(AccessWidth):
        told[r.span].add(r.bytes)
    rows = {r.span: r for r in remarks.of(RowAligned)}
    for op in program.body.walk():
        size = _bytes_of(op)
        if size is not None and op.span in told and op.span not in rows and size not in told[op.span]:
            yield f"{op.span}: {op.name} of {size} bytes, told are {sorted(told[op.span])}"
        if size is not None and op.span in rows and size > rows[op.span].bytes:
            yield f"{op.span}: {op.name} of {size} bytes, told is a row by {rows[op.span].bytes}"
    reach = max((b.offset + b.bytes for b in remarks.of(SharedBuffer)), default=0)
    if reach != program.shared_bytes:
        yield f"buffers up to {reach} bytes, the program has {program.shared_bytes}"
    if parted:
        return
    put_in = [op for op in program.body.walk() if op.name == "barrier" and op.attrs.get("inserted", True)]
    count = sum(b.times for b in remarks.of(Barrier))
    if len(put_in) != count:
        yield f"{len(put_in)} barriers, told are {count}"
    used = Counter(op.attrs["isa"] for op in program.body.walk() if op.name == "instruction")
    names: Counter[str] = Counter()
    for p in remarks.of(ProductBy):
        if p.instruction:
            names[p.instruction] += p.count * p.times
    for name, n in names.items():
        if used[name] != n:
            yield f"{used[name]} {name}, told are {n}"
