"""How many bytes an asynchronous copy reads if its mask may end within the elements that it copies at once.

    copy 16 bytes of f16 where k + 0..7 < K     ->     copy min(K - k, 8) * 2 bytes, of 16; what is left becomes zeros

So rows of any number of elements are copied 16 bytes at a time if they are aligned, as those of a descriptor are. The
number of bytes depends on the mask of that dimension alone, so copies with different masks along other dimensions (the
rows of a tile) share its computation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.ir import SSAValue

from weft.analysis import conjuncts, ends_in_runs
from weft.ir.lane import Value

from .context import Context
from .memory import access_order, mask_of
from .runs import alike


def copy_order(c: Context, pointer: SSAValue, mask: SSAValue | None, bits: int) -> tuple[list[int], int]:
    """(the registers to copy, in order and without copies; how many of them one copy takes, the last ones of which a
    mask may keep out)."""
    order, vector = access_order(c, pointer, mask, bits, in_registers=False)
    if mask is None or not c.machine.partial_copies:
        return order, vector
    longer = access_order(c, pointer, None, bits, in_registers=False)
    contiguity = c.facts.of(pointer).contiguity
    axes = [axis for axis, run in enumerate(contiguity) if run >= longer[1]]
    ends = longer[1] > vector and all(ends_in_runs(c.facts, mask, axis, longer[1]) for axis in axes)
    return longer if ends else (order, vector)


def copied(c: Context, mask: SSAValue, order: Sequence[int], vector: int, width: int) -> Value:
    """What says how much of each copy of so many registers is wanted: a mask, or the number of bytes."""
    firsts = order[::vector]

    def registers(part: SSAValue) -> list[tuple[int, ...]]:
        """The registers of each copy."""
        return [tuple(alike(c, [part], order[i : i + vector])) for i in range(0, len(order), vector)]

    if _is_constant(registers(mask)):
        return mask_of(c, mask, firsts)
    zero, size = c.build.constant("i32", 0), None
    for part in conjuncts(mask):
        runs = registers(part)
        if not _is_constant(runs):
            known = list(dict.fromkeys(runs))
            kept = [c.build.rename(c.whole(part), [run[k] for run in known]) for k in range(vector)]
            each = [c.build.select(x, c.build.constant("i32", width), zero) for x in kept]
            total = reduce(lambda a, b: c.build.op("arith.addi", [a, b], "i32"), each)
            bytes = c.build.rename(total, [known.index(run) for run in runs])
            size = bytes if size is None else c.build.op("arith.minsi", [size, bytes], "i32")
    assert size is not None, "some part of the mask ends within a copy"
    for part in conjuncts(mask):
        if _is_constant(registers(part)):
            size = c.build.select(mask_of(c, part, firsts), size, zero)
    return size


def _is_constant(runs: Sequence[Sequence[int]]) -> bool:
    """Whether the elements of each copy have one mask."""
    return all(len(set(run)) == 1 for run in runs)
