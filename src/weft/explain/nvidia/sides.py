"""How often a warp takes each side of an `if` of the lane program, told for each line of the PTX.

    %8 = if %7 { .. } else { .. }     the 12th `if`: of 8,192 warps, 6,100 took `then` and 2,092 `else`
    $L__BB0_21:   // %else.12         so what follows in the PTX is executed by 0.26 of them

LLVM says at each block of the PTX which block of the LLVM IR it is, and the emitter calls those by the number of the
`if` (`Block.branches`), as the counter does that follows the lane program. What is executed of a nest is a product.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from weft.base import Span
from weft.explain.grouped import SIDE
from weft.ir.lane import Block

__all__ = ["shares"]

BLOCK = re.compile(r"(?:\$L__BB\S*:|// %bb\.\d+:)(?:\s+// %(\S+))?")
"""The beginning of a block, with its name in the LLVM IR if it has one."""


def shares(ptx: str, body: Block, places: Mapping[Span | None, Counter[str]]) -> list[float | None]:
    """By the line of the PTX, from 1: of the iterations of the innermost loop around it, or of the warps, the part that
    execute it. None where that is not known.

    >>> from weft.ir.lane import LaneOp
    >>> body = Block(ops=[LaneOp("if", regions=(Block(), Block()))])
    >>> shares("$L__BB0_1:  // %else.0", body, {None: Counter({"then:0_taken": 3, "else:0_taken": 1})})
    [None, 0.25]
    """
    counted = Counter[str]()
    for counts in places.values():
        counted.update({name: n for name, n in counts.items() if name.endswith(SIDE)})
    of_block: dict[str, float] = {}
    numbers, loops = body.branches(), body.loops()
    todo: list[tuple[Block, float | None]] = [(body, 1.0)]
    while todo:
        block, share = todo.pop()
        for op in block.ops:
            if op.name != "if":
                todo += [(region, 1.0) for region in op.regions]  # told by loops how often they turn
                if op in loops and share is not None:
                    of_block[f"done.{loops[op]}"] = share
                continue
            number = numbers[op]
            sides = {side: counted[f"{side}:{number}{SIDE}"] for side in ("then", "else")}
            came = sum(sides.values())
            if share is not None:
                of_block[f"join.{number}"] = share
            for i, (side, n) in enumerate(sides.items()):
                taken = share * n / came if came and share is not None else None
                if taken is not None:
                    of_block[f"{side}.{number}"] = taken
                if i < len(op.regions):
                    todo.append((op.regions[i], taken))
    found: list[float | None] = [None]
    now: float | None = None
    for line in ptx.split("\n"):
        if (begun := BLOCK.match(line)) is not None:
            now = of_block.get(begun[1] or "")
        found.append(now)
    return found
