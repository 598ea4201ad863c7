"""Recompute addresses after a loop of products instead of holding them in registers through it.

    %a = linear ...                                              %a = linear ...
    %q = load %a                                                 %q = load %a
    for: products                                                for: products
    store %a, %acc                              becomes          %t = %thread, hidden
                                                                 %b = %a's arithmetic of %t
                                                                 store %b, %acc

In the loop, the accumulator, the operands and what is loaded ahead take all registers. A store after the loop has up to
eight addresses, and masks. All of them are computed from the thread's number, scalars and constants. LLVM would find
that the addresses after the loop equal those before it and hold them, so the number is hidden from it.

The vendor chooses the loops: AMD's code does it in all, NVIDIA's where registers are short
(nvidia/short_of_registers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir.lane import ELEMENT_BITS, Block, Builder, LaneOp, LaneProgram, Value, is_elementwise
from weft.ops import ELEMENTS
from weft.targets.table import instruction

ALIKE = ("constant", "program_id", "num_programs", "shared")
"""Operations whose results are the same in all lanes."""


Hide = Callable[[Builder, Value], Value]
"""What gives a number as one of which no compiler knows that it is the same."""


def compute_behind_loops(program: LaneProgram, hide: Hide, pays: Callable[[LaneOp], bool] = lambda _: True) -> None:
    """In all blocks of a program, behind the last of the loops with products for which it `pays`."""
    for block in (program.body, *(region for op in program.body.walk() for region in op.regions)):
        loops = [i for i, op in enumerate(block.ops) if op.name in ("for", "while") and _multiplies(op) and pays(op)]
        if loops:
            _Behind(program, block, loops[-1], hide).rewrite()


def _multiplies(op: LaneOp) -> bool:
    inner = (x for region in op.regions for x in region.walk() if x.name == "instruction")
    return any(instruction(x.attrs["isa"]).products for x in inner)


class _Behind:
    """What stands behind a loop of a block."""

    def __init__(self, program: LaneProgram, block: Block, loop: int, hide: Hide) -> None:
        self.program, self.block, self.loop, self.hide = program, block, loop, hide
        self.before = {*block.ops[:loop], *(op for op in block.ops[loop + 1 :] if op.name == "linear")}
        """What may be computed again. Linear functions of the thread's number that stand behind the loop are, too: LLVM
        finds parts of them before it."""
        inner = [x for region in block.ops[loop].regions for x in region.walk()]
        self.there = {x for op in (block.ops[loop], *inner) for x in op.operands}
        """What the loop uses: it is held anyway."""
        self.build = Builder(Block())
        self.anew: dict[Value, Value | None] = {}
        self.thread: Value | None = None

    def rewrite(self) -> None:
        """Put operations in front of those that want their results, and let these use them."""
        after = self.block.ops[self.loop + 1 :]
        ops: list[LaneOp] = []
        for op in after:
            inside = [op, *(x for region in op.regions for x in region.walk())]
            self.build = Builder(Block())
            self.build.span = op.span
            for x in inside:
                x.operands = tuple([self.made(v) or v for v in x.operands])
            ops += [*self.build.block.ops, op]
        self.block.ops[self.loop + 1 :] = ops

    def made(self, value: Value) -> Value | None:
        """A value computed again; itself where that would not change it, None where it cannot be."""
        if value in self.anew:
            return self.anew[value]
        todo = [value]
        while todo:  # without recursion: chains may be long
            x = todo[-1]
            op = x.op
            waiting = [] if self.is_leaf(x) or op is None else [y for y in op.operands if y not in self.anew]
            if waiting:
                todo += waiting
                continue
            todo.pop()
            if x not in self.anew:
                self.anew[x] = self.again(x)
        return self.anew[value]

    def is_leaf(self, value: Value) -> bool:
        """Whether a value stays as it is, or cannot be computed again."""
        op = value.op
        if op is None or op not in self.before or value in self.there or op.name in ALIKE:
            return True
        return not (op.name in ("linear", "rename", "join") or (is_elementwise(op.name) and _is_integer(value)))

    def again(self, value: Value) -> Value | None:
        """A value whose operands have been looked at."""
        op = value.op
        if op is None or op not in self.before or value in self.there or op.name in ALIKE:
            return value
        if self.is_leaf(value):
            return None
        if op.name == "linear":
            return self.linear(op)
        operands = [self.anew[x] for x in op.operands]
        if None in operands:
            return None
        if operands == list(op.operands):
            return value
        given = [x for x in operands if x is not None]
        return self.build.add(op.name, given, [(value.elem, value.count)], dict(op.attrs)).result

    def linear(self, op: LaneOp) -> Value:
        """The addresses, computed from the hidden copy of the thread's number."""
        lanes, build = self.program.lanes.bit_length() - 1, self.build
        lane = op.attrs["lane"]
        bases = (*lane, *[0] * (lanes - len(lane)), *op.attrs["warp"])
        if not any(bases) or op.attrs.get("uniform") or any(op.attrs["block"]):
            return op.result
        masks: dict[int, int] = {}
        for i, base in enumerate(bases):
            for o in range(base.bit_length()):
                if base >> o & 1:
                    masks[o - i] = masks.get(o - i, 0) | 1 << i
        moving: Value | None = None
        for distance, mask in sorted(masks.items()):
            term = build.op("arith.andi", [self.number(), build.constant("i32", mask)], "i32")
            if distance:
                by = build.constant("i32", abs(distance))
                term = build.op("arith.shli" if distance > 0 else "arith.shrui", [term, by], "i32")
            moving = term if moving is None else build.op("arith.xori", [moving, term], "i32")
        assert moving is not None
        return plus(build, moving, op.attrs["registers"], bases)

    def number(self) -> Value:
        """The thread's number in its block."""
        if self.thread is None:
            lanes = tuple(1 << i for i in range(self.program.lanes.bit_length() - 1))
            warps = tuple(self.program.lanes << i for i in range(self.program.warps.bit_length() - 1))
            thread = self.build.linear((0,), lanes, warps)
            self.thread = self.hide(self.build, thread)
        return self.thread


def reached(bases: Sequence[int]) -> int:
    """The bits that some of the bases have."""
    bits = 0
    for base in bases:
        bits |= base
    return bits


def plus(build: Builder, moving: Value, registers: Sequence[int], bases: Sequence[int]) -> Value:
    """What lanes have with what registers have, of which bits that no lane has are added."""
    theirs = reached(bases)
    for name, bits in (("arith.xori", theirs), ("arith.addi", ~theirs)):
        parts = [r & bits for r in registers]
        if any(parts):
            moving = build.op(name, [moving, build.linear(parts)], "i32")
    if moving.count < len(registers):
        moving = build.rename(moving, [0] * len(registers))
    return moving


def _is_integer(value: Value) -> bool:
    return not ELEMENTS[value.elem].is_float and ELEMENT_BITS[value.elem] <= 64
