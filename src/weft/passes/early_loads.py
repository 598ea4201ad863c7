"""Load numbers before the first reduction of a kernel, together with the tile, instead of after the last reduction.

    %x = tt.load %row                                %x = tt.load %row
    %m = tt.reduce max %x                            %label = tt.load %labels
    %s = tt.reduce sum (exp (%x - %m))      becomes  %right = tt.load (%row + %label)
    %label = tt.load %labels                         %m = tt.reduce max %x
    %right = tt.load (%row + %label)                 ...

A reduction waits for other warps, so neither LLVM nor the assembler moves a load over it. As written, the program waits
for memory three times in a row: for its row, for the label, and for the element that the label selects. Right after the
load of the row, these loads cost nothing.

Rows of weights that are aligned differently from the rows that they multiply (`align_rows`) are loaded before the last
reduction, so that the first of their elements are in flight during it.

The pass moves loads of single numbers and of such rows, and the computation of their addresses, over operations that
neither write memory nor wait for anything but the threads of the program. It moves nothing over a store, an atomic
operation, an assertion, a loop or a branch.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from weft import ir
from weft.ir.gpu.rows import LoadRowOp

from .effects import droppable, shareable


def early_loads(module: ModuleOp) -> None:
    """Move the loads of numbers in the bodies of a module's functions; loops keep theirs."""
    for block in _bodies(module):
        first = next((op for op in block.ops if op.name == "tt.reduce"), None)
        _move(block, first, lambda op: op.name == "tt.load" and not ir.is_tensor(op.results[0].type))


def early_rows(module: ModuleOp) -> None:
    """Move the loads of rows that lie otherwise, of functions whose rows are aligned."""
    for block in _bodies(module):
        last = next((op for op in reversed(list(block.ops)) if op.name == "tt.reduce"), None)
        _move(block, last, lambda op: isinstance(op, LoadRowOp) and "aligned" not in op.properties)


def _bodies(module: ModuleOp) -> list[Block]:
    functions = [op for op in module.body.block.ops if op.name == "tt.func"]
    return [function.regions[0].blocks[0] for function in functions if function.regions[0].blocks]


def _move(block: Block, before: Operation | None, is_moved: Callable[[Operation], bool]) -> None:
    """Move some loads behind a reduction before it."""
    behind: list[Operation] = []
    op = before
    while op is not None and _may_be_crossed(op):
        behind.append(op)
        op = op.next_op
    late = set(behind)
    for load in behind:
        if before is not None and is_moved(load):
            for moved in _with_operands(load, late):
                late.discard(moved)
                moved.detach()
                block.insert_op_before(moved, before)


def _may_be_crossed(op: Operation) -> bool:
    return shareable(op) or isinstance(op, LoadRowOp) or (op.name in ("tt.load", "tt.reduce") and droppable(op))


def _with_operands(load: Operation, late: set[Operation]) -> list[Operation]:
    """A load and what it is computed of among the operations behind the reduction, in order; nothing where that needs
    a tile."""
    chosen: dict[Operation, None] = {}

    def choose(op: Operation) -> bool:
        if op not in late or op in chosen:
            return True
        if any(ir.is_tensor(x.type) for x in (*op.operands, *(op.results if op is not load else ()))):
            return False
        for operand in op.operands:
            if isinstance(operand.owner, Operation) and not choose(operand.owner):
                return False
        chosen[op] = None
        return True

    return list(chosen) if choose(load) else []
