"""Copies by the tensor data mover: each warp's part of a block, and the words of its descriptor.

    amdg.tensor_load of a block of 64 x 64, 4 warps: each of them a tile of 16 rows, from row 16 w of the block on

Warps divide the outermost dimension first, as in Triton 3.6.0. All values are uniform in a warp, so LLVM keeps them in
scalar registers. `targets/amd/tensors.py` says what the words mean.
"""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation, SSAValue

from weft.base import LayoutError, Unsupported
from weft.ir import int_value
from weft.ir.amd.tdm import TensorLoadOp, TensorStoreOp, TensorWaitOp
from weft.ir.lane import Value
from weft.layouts import LinearLayout
from weft.targets.amd import LOCAL_WAIT, TENSOR_WAIT
from weft.targets.table import has

from ..context import Context, Lowering
from ..padding import gaps_of, place
from ..shared import memory_of
from ..unfit import named

WORD = 4
"""Bytes that no two warps share."""
HIGH = -(1 << 31)
"""The kind of a descriptor, in the highest bits of word 3."""


def _copy(c: Context, op: Operation) -> None:
    """A load or a store of a block."""
    assert isinstance(op, TensorLoadOp | TensorStoreOp)
    loads = isinstance(op, TensorLoadOp)
    isa = "tensor_load_to_lds" if loads else "tensor_store_from_lds"
    if not has(c.machine, f"{isa}.2d"):
        raise Unsupported(f"the instruction {isa}", c.program.target, c.build.span, works_on=("hip:gfx1250",))
    copy = _Copy(c, op)
    to = copy.shared()
    words = [copy.acts(op.pred if isinstance(op, TensorLoadOp) else None), to, *copy.address()]
    place = copy.joined(words)
    inner, *outer = copy.words()
    barrier = () if copy.barrier is None else (copy.barrier,)
    arriving = ".arriving" * len(barrier)
    if c.program.warps == 1:  # with more of them there is a barrier, which waits for them
        c.build.instruction(LOCAL_WAIT, [c.number(0)])
    if copy.rank <= 2:
        c.build.instruction(f"{isa}.2d{arriving}", [to, place, inner, *barrier])
    else:
        c.build.instruction(f"{isa}.5d{arriving}", [to, place, inner, *outer, *barrier])


class _Copy:
    """One copy; lists by dimension have the innermost first."""

    def __init__(self, c: Context, op: TensorLoadOp | TensorStoreOp) -> None:
        self.c, self.op, self.rank = c, op, len(op.shape)
        type, memory, self.width = memory_of(op.memory)
        self.gaps, self.block = gaps_of(type, self.width), list(memory.out_dims.values())[::-1]
        c.only_own(op.memory, "a copy by the tensor data mover to or from")
        _check_rows(op, memory, c)
        self.divide(c.program.warps)
        self.check_gaps()
        self.at = [self.from_warp(d, c[x]) for d, x in enumerate(reversed(op.offsets))]
        self.strides = [c[x] for x in reversed(op.strides)]
        at = op.mbarrier if isinstance(op, TensorLoadOp) else None
        self.barrier = None if at is None else c[at]

    def divide(self, warps: int) -> None:
        """Which part each warp has, of a word or more: the steps of its number's bits along each dimension; the rest of
        the warps have none."""
        self.tile, self.bits = list(self.block), (warps - 1).bit_length()
        self.steps = [[0] * self.bits for _ in self.block]
        bit = 0
        for d in reversed(range(self.rank)):
            parts = 0
            least = 1 if d else max(1, WORD // self.width)
            while bit + parts < self.bits and self.tile[d] > least:
                self.tile[d] //= 2
                parts += 1
            for i in range(parts):
                self.steps[d][bit + i] = self.tile[d] << i
            bit += parts
        self.idle = (1 << self.bits) - (1 << bit)
        """The bits of warps that have nothing to do."""

    def check_gaps(self) -> None:
        """One kind of gap, as the descriptor can say it, and each warp's part begins behind one."""
        if not self.gaps:
            return
        interval, padding = self.gaps[0]
        fits = len(self.gaps) == 1 and 8 <= interval <= 1024 and not padding % 4 and padding <= 512
        parts_fit = self.tile == self.block or not prod(self.tile) * self.width % interval
        if not (fits and parts_fit):
            raise LayoutError(
                "the tensor data mover leaves one kind of gap, after 8 to 1024 bytes, a power of two, of 4 to 512 "
                f"bytes, a multiple of 4, and each warp's part must be a multiple of that: {named(self.op.memory)}",
                self.c.build.span,
            )

    def from_warp(self, dimension: int, offset: Value) -> Value:
        """Where a warp's part begins, along one dimension."""
        steps = self.steps[dimension]
        return self.c.plus(offset, self.c.build.linear((0,), warp=tuple(steps))) if any(steps) else offset

    # -- the words -----------------------------------------------------------------------------------------------------

    def acts(self, pred: SSAValue | None) -> Value:
        """Whether the copy takes place, as 0 or 1."""
        c = self.c
        conditions = [] if pred is None or c.is_true(pred) else [c[pred]]
        if self.idle:
            conditions.append(c.is_zero(c.index("warp", self.idle)))
        condition = c.all_of(conditions)
        return c.number(1) if condition is None else c.build.op("arith.extui", [condition], "i32")

    def shared(self) -> Value:
        """Where the part begins in local memory."""
        c, rows = self.c, [prod(self.block[:d]) for d in range(self.rank)]
        places = [sum(steps[i] * row for steps, row in zip(self.steps, rows, strict=True)) for i in range(self.bits)]
        begin = c.offset_of(self.op.memory)
        warps = [x * self.width for x in places]
        return c.plus(place(c, [0], [(), warps, ()], self.gaps, begin), c[self.op.memory])

    def address(self) -> tuple[Value, Value]:
        """Words 2 and 3 of group 0."""
        c, total = self.c, None
        for at, stride in zip(self.at, self.strides, strict=True):
            term = c.build.op("arith.muli", [c.build.op("arith.extsi", [at], "i64"), stride], "i64")
            total = term if total is None else c.build.op("arith.addi", [total, term], "i64")
        assert total is not None
        bytes = c.build.op("arith.muli", [total, c.number(self.width, "i64")], "i64")
        where = c.build.op("arith.addi", [c[self.op.base], bytes], "i64")
        high = c.build.op("arith.ori", [self.high(where), c.number(HIGH)], "i32")
        return self.low(where), high

    def words(self) -> tuple[Value, Value, Value]:
        """Groups 1, 2 and 3."""
        c, zero = self.c, self.c.number(0)
        sizes = [self.left(d, x) for d, x in enumerate(reversed(self.op.shape))]
        tile, strides = list(self.tile), list(self.strides)
        for _ in range(5 - self.rank):
            sizes.append(c.number(1))
            tile.append(1 if self.rank > 2 else 0)
            strides.append(c.number(0, "i64"))
        low, high = [self.low(x) for x in strides], [self.high(x) for x in strides]
        second = [
            c.number(self.kind()),
            self.upper(zero if self.barrier is None else self.eighth(self.barrier), sizes[0]),
            self.upper(self.behind(sizes[0]), sizes[1]),
            self.upper(self.behind(sizes[1]), c.number(tile[0])),
            c.number(tile[1] | tile[2] << 16),
            low[1],
            self.upper(self.lower(high[1]), low[2]),
            self.upper(self.behind(low[2]), high[2]),
        ]
        third = [sizes[2], sizes[3], low[3], self.upper(self.lower(high[3]), c.number(tile[3]))]
        last = self.upper(self.behind(sizes[4]), c.number(tile[4]))
        fourth = [low[4], self.upper(self.lower(high[4]), sizes[4]), last, zero]
        return self.joined(second), self.joined(third), self.joined(fourth)

    def kind(self) -> int:
        """Word 0 of group 1: the size of elements, gaps, whether it arrives at a barrier."""
        word = (self.width.bit_length() - 1) << 16 | (self.barrier is not None) << 18
        if self.gaps:
            interval, padding = self.gaps[0]
            word |= 1 << 20 | (interval // 4).bit_length() - 2 << 22 | (padding // 4 - 1) << 25
        return word

    def left(self, dimension: int, size: SSAValue) -> Value:
        """How much of the tensor there is from the tile on."""
        c = self.c
        rest = c.build.op("arith.subi", [c[size], self.at[dimension]], "i32")
        return c.build.op("arith.maxsi", [rest, c.number(0)], "i32")

    # -- parts of words ------------------------------------------------------------------------------------------------

    def joined(self, words: list[Value]) -> Value:
        return self.c.build.add("join", words, [("i32", len(words))]).result

    def low(self, value: Value) -> Value:
        return self.c.build.op("arith.trunci", [value], "i32")

    def high(self, value: Value) -> Value:
        up = self.c.build.op("arith.shrui", [value, self.c.number(32, "i64")], "i64")
        return self.c.build.op("arith.trunci", [up], "i32")

    def eighth(self, address: Value) -> Value:
        """An address in units of 8 bytes, as a lower half."""
        return self.lower(self.c.build.op("arith.shrui", [address, self.c.number(3)], "i32"))

    def behind(self, word: Value) -> Value:
        """The upper half of a word, as the lower one."""
        return self.c.build.op("arith.shrui", [word, self.c.number(16)], "i32")

    def lower(self, word: Value) -> Value:
        return self.c.build.op("arith.andi", [word, self.c.number(0xFFFF)], "i32")

    def upper(self, low: Value, word: Value) -> Value:
        """A lower half, and the lower half of another word as the upper one."""
        up = self.c.build.op("arith.shli", [word, self.c.number(16)], "i32")
        return self.c.build.op("arith.ori", [low, up], "i32")


def _check_rows(op: TensorLoadOp | TensorStoreOp, memory: LinearLayout, c: Context) -> None:
    """The block must lie row by row."""
    bases: list[tuple[int, ...]] = []
    sizes = list(memory.out_dims.values())
    for d in reversed(range(len(sizes))):
        bases += [tuple(1 << i if x == d else 0 for x in range(len(sizes))) for i in range(sizes[d].bit_length() - 1)]
    if list(memory.bases["offset"]) != bases:
        raise LayoutError(
            "the tensor data mover copies blocks that lie row by row in shared memory, the last dimension innermost, "
            f"but this one has the layout {named(op.memory)}",
            c.build.span,
            hint="gl.SwizzledSharedLayout(1, 1, 1, [1, 0]), with an order from the last dimension to the first",
        )


def _wait(c: Context, op: Operation) -> None:
    """Of the own wave."""
    assert isinstance(op, TensorWaitOp)
    if not has(c.machine, TENSOR_WAIT):
        raise Unsupported(f"the instruction {TENSOR_WAIT}", c.program.target, c.build.span, works_on=("hip:gfx1250",))
    c.build.instruction(TENSOR_WAIT, [c.number(int_value(op.num))])


TENSOR_LOWERINGS: dict[str, Lowering] = {
    TensorLoadOp.name: _copy,
    TensorStoreOp.name: _copy,
    TensorWaitOp.name: _wait,
}
