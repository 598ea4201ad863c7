"""Execute several programs in each block, one after the other, if starting a block takes longer than a program.

    cross entropy of rows of 1,024 bf16, by one warp, on an H200:
        starting a block        158 cycles of its multiprocessor, whatever the block does
        2,144 bytes             130 cycles, at the rate of DRAM
        instructions            73 cycles

With a block for each of 131,072 rows, a multiprocessor has room for 32 blocks but runs only 14 at a time, and the
kernel reaches 0.77 of the speed of a copy. With up to 4 rows for each block it reaches 0.92, and softmax of rows of 256
bf16 reaches 0.84 instead of 0.41. Persistent blocks, which divide all rows among themselves, are slower (0.91 and 0.80,
by loops written by hand): blocks are not equally fast, and starting some of them late evens that out. If starting
blocks is not the bottleneck, a loop loses 2 to 3 %. A launch always starts at least as many blocks as run at a time,
if there are as many programs (`blocks_along_x`).

The programs of a grid may run in any order, so two may run one after the other in one block. This changes only the
time, unless programs wait for each other or do something once per block: such programs are left as they are.
"""

from __future__ import annotations

from weft.base.remarks import ProgramsInTurn
from weft.ir.lane import ELEMENT_BITS, Block, LaneOp, LaneProgram, Value, is_elementwise

__all__ = ["execute_in_turn"]

PROGRAMS = 4
"""Programs of a block; with 2 cross entropy of rows of 512 is 8 % slower, with 8 softmax of rows of 256 f32 is 3 %."""
FUNCTIONS, FUNCTION = ("math.", "libdevice.", "arith.div", "arith.rem"), 4
"""Operations that are several instructions, and about how many; an exponential is 3, a logarithm 5."""
FREE = frozenset(
    (
        *("constant", "linear", "rename", "join", "undefined", "zero", "keep", "program_id", "num_programs", "shared"),
        *("yield", "return"),
    )
)
"""Operations that are no instructions, or that are done before the first program."""
OF_A_PROGRAM = FREE | {"select", "pack", "unpack", "permute", "shuffle", "ballot", "for", "if"}
"""Operations that do the same wherever a program runs, beside those on elements."""


def execute_in_turn(program: LaneProgram) -> None:
    """Let blocks execute several programs, where that is predicted to save time."""
    start = program.machine.block_start
    if not start or program.blocks > 1 or program.scratch or not any(map(_is_number, program.body.walk())):
        return
    work = _Work(program)
    if not work.is_known or work.cycles >= start:
        return
    other = next((op for op in program.body.walk() if not _is_of_program(op)), None)
    program.programs_each = PROGRAMS if other is None else 1
    span = next((op.span for op in program.body.walk() if op.span is not None), None)
    if other is None:
        what, why = f"each block executes up to {PROGRAMS} programs, one after the other", ""
    else:
        what, span = "each block executes one program", other.span or span
        why = f", but it is not known that programs with `{other.name}` may follow each other in a block"
    if span is not None:
        why = f"starting a block takes {start:.0f} cycles of its multiprocessor, a program {work.cycles:.0f}{why}"
        program.remarks.add(ProgramsInTurn(span, what, why))


def _is_number(op: LaneOp) -> bool:
    """Whether an operation gives the number of the program along x. A kernel without one has one program, or few."""
    return op.name == "program_id" and op.attrs["axis"] == 0


def _is_of_program(op: LaneOp) -> bool:
    """Whether an operation does the same, whichever block its program runs in, and waits for no other program."""
    if op.name in ("load", "store"):
        is_plain = not op.attrs.get("volatile") and op.attrs.get("cache") != "cv"
        return is_plain and op.attrs["space"] in ("global", "shared")
    if op.name == "barrier":
        return op.attrs["scope"] in ("warp", "block")
    return op.name in OF_A_PROGRAM or is_elementwise(op.name)


class _Work:
    """The time that a program takes on its multiprocessor, as far as it is known without the values of arguments."""

    def __init__(self, program: LaneProgram) -> None:
        self.program, self.is_known = program, True
        self.bytes = self.slots = 0.0
        self._of_thread: set[Value] = set()
        """Values that may differ between the threads of a block."""
        self._of_program: set[Value] = set()
        """Values that may differ between programs: what has other addresses is in a cache."""
        self._block(program.body, 1)

    @property
    def cycles(self) -> float:
        """The longer of the time for memory and the time for instructions."""
        machine, warps = self.program.machine, self.program.warps
        return max(self.bytes / machine.streamed_bytes, self.slots * warps / machine.schedulers)

    def _block(self, block: Block, times: int) -> None:
        for op in block.ops:
            self._op(op, times)
            if op.name == "for":
                turns = _iterations(op)
                self.is_known = self.is_known and turns is not None
                for values in (self._of_thread, self._of_program):
                    values.update(op.regions[0].arguments, op.results)
                self._block(op.regions[0], times * (turns or 1))
            else:
                self.is_known = self.is_known and op.name != "while"
                for region in op.regions:
                    self._block(region, times)

    def _op(self, op: LaneOp, times: int) -> None:
        is_of_thread = op.name == "linear" and any((*op.attrs["lane"], *op.attrs["warp"]))
        if is_of_thread or op.regions or op.name == "elect" or not self._of_thread.isdisjoint(op.operands):
            self._of_thread.update(op.results)
        if op.name == "program_id" or op.regions or not self._of_program.isdisjoint(op.operands):
            self._of_program.update(op.results)
        if op.name in FREE:
            return
        count = max((x.count for x in (*op.operands, *op.results)), default=1)
        if op.name in ("load", "store"):
            value = op.results[0] if op.name == "load" else op.operands[1]
            count = value.count // op.attrs.get("vector", 1)
            if op.attrs["space"] == "global" and op.operands[0] in self._of_program:
                self.bytes += times * self._moved(op.operands[0], value)
        self.slots += times * count * (FUNCTION if op.name.startswith(FUNCTIONS) else 1)

    def _moved(self, address: Value, value: Value) -> float:
        """Bytes of global memory that an access of a block moves."""
        if address not in self._of_thread:
            return self.program.machine.sector_bytes
        return value.count * max(1, ELEMENT_BITS[value.elem] // 8) * self.program.lanes * self.program.warps


def _iterations(op: LaneOp) -> int | None:
    """The number of a loop's iterations; None if it is not known."""
    bounds = [int(v.op.attrs["value"]) for v in op.operands[:3] if v.op is not None and v.op.name == "constant"]
    if len(bounds) < 3:
        return None
    lower, upper, step = bounds
    return max(0, -(-(upper - lower) // step)) if step > 0 else None
