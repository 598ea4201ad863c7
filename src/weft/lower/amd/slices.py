"""Keep LLVM's scheduler within slices of products.

    %a0, %b0 = load shared                     %a0, %b0 = load shared
    %d0 = wmma %a0, %b0, %zero                 instruction {isa=slice}
    %a1, %b1 = load shared                     %d0 = wmma %a0, %b0, %zero
    %d1 = wmma %a1, %b1, %d0       becomes     %a1, %b1 = load shared
    %p = math.exp2 %d1                         instruction {isa=slice}
    %e0 = wmma %p, %c0, %o                     %d1 = wmma %a1, %b1, %d0
                                               instruction {isa=slice}
                                               %p = math.exp2 %d1
                                               instruction {isa=slice}
                                               %e0 = wmma %p, %c0, %o

The products of a slice do not need each other's results. Nothing is scheduled across the beginning of a slice, or the
end of a chain of slices; the operands of the next slice are still loaded while one is multiplied. In attention, a lane
holds two accumulators, operands, and what is loaded ahead. The scheduler, which considers a whole iteration, begins so
much early that registers run out: 15 are spilled on gfx1201, and none with slices. Elsewhere it does well without, and
gets slices (`slice.narrow`) only if a kernel has turned out to take too many registers.

This is done on RDNA, where a lane has 256 registers in all. On CDNA it is done only if operands are widened between
their loads and the products (`widen_in_parts.py`), because LLVM would begin all of these at once: a product of fp8 on
gfx90a then takes 126 registers instead of 199.
"""

from __future__ import annotations

from weft.ir.lane import ELEMENT_BITS, Block, Builder, LaneOp, LaneProgram, Value

from .used_up import is_product

RDNA = 0x1000


def keep_slices(program: LaneProgram) -> None:
    """Mark where slices begin, in all loops that have several."""
    always = program.machine.generation >= RDNA
    for op in program.body.walk():
        if op.name == "for" and (always or _are_widened(op.regions[0])):
            _in_block(op.regions[0], always)


def _are_widened(block: Block) -> bool:
    """Whether operands of products are made of elements of 8 bits between them (`widen_in_parts.py`)."""
    makers = (value.op for op in block.ops if is_product(op) for value in op.operands)
    wide = (op for op in makers if op is not None and op.name == "arith.extf")
    return any(ELEMENT_BITS[op.operands[0].elem] == 8 for op in wide)


def _in_block(block: Block, narrow: bool) -> None:
    made: dict[Value, int] = {}
    """Of what comes of products, the last slice that it needs."""
    slices: list[list[int]] = []
    is_fed = False  # whether a product takes what has become of others' results
    for i, op in enumerate(block.ops):
        needed = max((made.get(x, -1) for x in op.operands), default=-1)
        if is_product(op):
            is_fed = is_fed or any(x in made for x in op.operands[:2])
            if needed == len(slices) - 1:
                slices.append([])
            slices[-1].append(i)
            needed = len(slices) - 1
        if needed >= 0:
            made.update(dict.fromkeys(op.results, needed))
    if len(slices) < 2:
        return
    before = {places[0] for places in slices} | {places[-1] + 1 for places in _ends(block, slices)}
    ops: list[LaneOp] = []
    build = Builder(Block())
    for i, op in enumerate(block.ops):
        if i in before:
            build.span = op.span
            ops.append(build.add("instruction", (), (), {"isa": "slice" if is_fed or not narrow else "slice.narrow"}))
        ops.append(op)
    block.ops[:] = ops


def _ends(block: Block, slices: list[list[int]]) -> list[list[int]]:
    """The slices to whose results no product of the next one adds."""
    ends = []
    for places, after in zip(slices, [*slices[1:], []], strict=True):
        results = {x for i in places for x in block.ops[i].results}
        if not any(x in results for i in after for x in block.ops[i].operands[2:]):
            ends.append(places)
    return ends
