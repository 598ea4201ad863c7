"""Remove operations that repeat earlier ones, and those whose results are not used.

    %a = linear ...                    %a = linear ...
    %b = shuffle %x, xor 4             %b = shuffle %x, xor 4
    %c = linear ...           becomes  %d = minsi %b, %a
    %d = minsi %b, %c
    %e = shuffle %x, xor 4             %f = maxsi %b, %a
    %f = maxsi %e, %c

Of an operation that is repeated the first stands for the others, in its own block and in those inside; so the two
shuffles of a compare-and-exchange are one. LLVM would find the arithmetic, but not what it does not see into.
"""

from __future__ import annotations

from collections.abc import Hashable

from weft.ir.lane import Block, LaneOp, LaneProgram, Value, is_elementwise
from weft.targets.table import instruction

PURE = (
    "constant", "program_id", "num_programs", "linear", "rename", "join", "pack", "unpack", "permute",
    "shuffle", "ballot", "shared", "scratch", "remote",
)  # fmt: skip
Known = dict[Hashable, LaneOp]


def share(program: LaneProgram) -> None:
    """Rewrite a program, before buffers are placed."""
    _share(program.body, {}, {})
    _drop(program)


def _is_pure(op: LaneOp) -> bool:
    if op.name == "instruction":
        return instruction(op.attrs["isa"]).touches == ""
    return op.name in PURE or is_elementwise(op.name)


def _key(op: LaneOp) -> Hashable:
    attrs = tuple([(k, repr(v) if isinstance(v, float) else v) for k, v in sorted(op.attrs.items())])
    results = tuple([(r.elem, r.count) for r in op.results])
    return op.name, tuple(map(id, op.operands)), attrs, results


def _share(block: Block, available: Known, instead: dict[Value, Value]) -> None:
    """Leave out what is known; what the block adds to that is not known behind it."""
    kept, added = [], []
    for op in block.ops:
        if not instead.keys().isdisjoint(op.operands):
            op.operands = tuple(instead.get(x, x) for x in op.operands)
        if _is_pure(op):
            key = _key(op)
            same = available.get(key)
            if same is not None:
                instead |= dict(zip(op.results, same.results, strict=True))
                continue
            available[key] = op
            added.append(key)
        kept.append(op)
        for region in op.regions:  # a partition has its own values, and its own numbers of warps
            _share(region, {} if op.name == "partitions" else available, instead)
    block.ops[:] = kept
    for key in added:
        del available[key]


def _drop(program: LaneProgram) -> None:
    """Leave out what nothing uses, the last operation first."""
    used: dict[Value, int] = {}
    for op in program.body.walk():
        for x in op.operands:
            used[x] = used.get(x, 0) + 1

    def sweep(block: Block) -> None:
        kept = []
        for op in reversed(block.ops):
            if _is_pure(op) and not any(used.get(r, 0) for r in op.results):
                for x in op.operands:
                    used[x] -= 1
                continue
            for region in reversed(op.regions):
                sweep(region)
            kept.append(op)
        block.ops[:] = kept[::-1]

    sweep(program.body)
