"""Until when the values of a kernel are needed, by the numbers of its operations.

A value that a lazy operation reads is needed as long as what that operation gives: it is emitted where that is read.
Within a loop or a branch a value from outside of it is needed until its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.backends.cpu.program import Block, FunctionProgram, Op, Value


def last_uses(program: FunctionProgram, lazy: Callable[[Op], bool]) -> dict[Value, int]:
    """For each value the index of the last operation that may read it, directly or through lazy ones."""
    last: dict[Value, int] = {}

    def visit(blocks: Sequence[Block]) -> None:  # users first
        for block in reversed(blocks):
            for op in reversed(block.ops):
                for result in op.results:
                    last[result] = _last_use(program, lazy, last, result)
                for region in op.regions:
                    visit(region)
            for argument in block.args:
                last[argument] = _last_use(program, lazy, last, argument)

    visit(program.blocks)
    return last


def _last_use(program: FunctionProgram, lazy: Callable[[Op], bool], last: dict[Value, int], value: Value) -> int:
    """The last use of a value, where those of all that is computed of it are known."""
    latest = 0
    for user in value.users:
        latest = max(latest, _end(program, user, value.block))
        reader: Op | None = user
        while reader is not None:  # a loop that is lazy reads what its body does
            if lazy(reader):
                for result in reader.results:
                    latest = max(latest, _end_of_index(program, result.block, value.block, last.get(result, 0)))
            reader = reader.block.parent if reader.block is not value.block else None
    return latest


def _end(program: FunctionProgram, op: Op, home: Block | None) -> int:
    """The end of the operation in block `home` that contains `op`."""
    while op.block is not home:
        if op.block.parent is None:
            return program.count
        op = op.block.parent
    return op.last


def _end_of_index(program: FunctionProgram, block: Block | None, home: Block | None, index: int) -> int:
    """The end, in block `home`, of what contains the operation of a number in `block`."""
    while block is not home and block is not None:
        if block.parent is None:
            return program.count
        index = max(index, block.parent.last)
        block = block.parent.block
    return index
