"""Use up loaded registers a few at a time if that makes room for a second block on a multiprocessor.

    %a = load global, 32 registers             %a0 = load global, 4 registers
    %b = load global, 32 registers             %b0 = load global, 4 registers
    %s = mulf %a, %b                  becomes  %s0 = mulf %a0, %b0
    %t = addf %s[even], %s[odd]                %t0 = addf %s0[even], %s0[odd]
                                               %a1 = load global, 4 registers ...

An operation of the lane program is for all registers: all loads of an iteration come first, and most of what they give
is held until the last operation. That is good for memory, as long as other blocks compute meanwhile. Of 512 threads
with 91 registers each there is one block at a time, and while it computes nothing is loaded: a sum over two arrays took
284 us on an H200 so, where memory takes 251 us.

So where the words that are held at a time leave room for one block only, what lies between two effects (stores,
barriers, exchanges, branches) is divided into pieces, as many registers as a vector or an eighth of a tile has
(granules.py), and written depth first, if that makes room for a second block, or if not even one has registers enough:
a thread of 1,024 has 64 of them, held 111 words, and what was in local memory took as long as the rows (405 us). Loads
change places with each other and with arithmetic, never with effects; volatile ones are effects. Counted is what is
loaded, what is computed from it, and what a loop carries; addresses and masks are made where they are needed.

The threads of smaller blocks, beside which others always fit, are written depth first only if they would hold more than
a thread can have registers: of 1,152 words of a Welford reduction in 128 threads ptxas kept nearly all in memory (86 us
on an H200, and 37 us depth first).

Not done here: programs with matrix instructions, whose operands `sink_loads` orders; what is held across barriers by
blocks that are larger still, see `held`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from weft.base.remarks import InParts
from weft.ir.lane import ELEMENT_BITS, Block, Builder, LaneOp, LaneProgram, Value, is_elementwise

from .granules import granule_of

LEAST_THREADS = 256
"""The fewest threads of a block that may be alone: beside smaller ones, others fit if a thread has all registers."""
SPARE = 12
"""Registers of a thread that are to be left for what is not counted, if two blocks are to fit."""
SHORT = 8
"""The longest chain of operations before which another load comes first, so that a thread waits for memory once. Beside
a longer chain, mostly of sums, the load would be held for too long."""
ALIASES = ("rename", "join")
MOVABLE = ("constant", "program_id", "num_programs", "undefined", "linear", *ALIASES, "pack", "unpack", "permute")
"""Operations without effects and without regions, beside those on elements and loads."""
Piece = tuple[Value, int]
"""(a result, which of its granules)."""


def depth_first(program: LaneProgram) -> None:
    """Put what lies between two effects into another order, where that lets two blocks run at a time, or one at all."""
    if program.registers:
        return
    operations = list(program.body.walk())
    if any(op.name == "instruction" for op in operations):
        return
    uses = Counter(x for op in operations for x in op.operands)
    shown = {v.value for v in program.variables}
    for block in (program.body, *(region for op in operations for region in op.regions)):
        carried = block.arguments if block is not program.body else ()
        ops: list[LaneOp] = []
        for run in _runs(block):
            ops += _arranged(run, program, uses, shown, carried) if _is_movable(run[0]) else run
        block.ops[:] = ops


def is_crowded(words: int, program: LaneProgram) -> bool:
    """Whether registers for so many words of each thread leave no room for a second block."""
    return 2 * program.warps * program.lanes * words > program.machine.registers


def _words(elem: str, registers: int) -> int:
    """Registers of 32 bits; a condition is in a register of its own kind."""
    return 0 if elem == "i1" else -(-registers * ELEMENT_BITS[elem] // 32)


def _all_words(values: Iterable[Value]) -> int:
    return sum(_words(v.elem, v.count) for v in values)


def _is_movable(op: LaneOp) -> bool:
    """Whether an operation has no effects, or is a load of what nobody writes meanwhile."""
    if op.name == "load":
        return op.attrs["space"] == "global" and not op.attrs.get("volatile")
    return len(op.results) == 1 and (op.name in MOVABLE or is_elementwise(op.name))


def _runs(block: Block) -> Iterator[list[LaneOp]]:
    """The operations of a block: those without effects that follow each other, and the others one by one."""
    run: list[LaneOp] = []
    for op in block.ops:
        if _is_movable(op):
            run.append(op)
            continue
        if run:
            yield run
        yield [op]
        run = []
    if run:
        yield run


def _arranged(
    ops: list[LaneOp], program: LaneProgram, uses: Counter[Value], shown: set[Value], carried: Sequence[Value]
) -> list[LaneOp]:
    """The operations between two effects, depth first if they need it and it helps."""
    load = next((op for op in ops if op.name == "load"), None)
    if load is None or not is_crowded(_all_words(op.result for op in ops), program):
        return ops
    run = _Run(ops, uses)
    through = _all_words(carried) + min(_all_words(run.outside - set(carried)), SPARE)
    before = run.held(run.pieces) + through
    threads = program.warps * program.lanes
    registers = min(program.machine.thread_registers, program.machine.registers // threads)
    if not is_crowded(before, program) or (threads < LEAST_THREADS and before + SPARE <= registers):
        return ops
    order = min((run.depth_first(roots) for roots in run.roots), key=run.held)
    after = run.held(order) + through
    why = f"a thread would hold {before} words at a time, for one block, and holds {after}, for two"
    if threads < LEAST_THREADS or is_crowded(after + SPARE, program):
        if before + SPARE <= registers or after >= before:
            return ops
        why = f"a thread would hold {before} words at a time, and has {registers} registers; it holds {after}"
    program.remarks.add(InParts(load.span, "what is loaded from here on is used up some registers at a time", why))
    kept = [op for op in ops if op.result in run.left or op.result in shown]
    return run.written(run.depth_first([*order, *run.pieces_of(kept)]), kept)


class _Run:
    """Operations between two effects, in pieces."""

    def __init__(self, ops: Sequence[LaneOp], uses: Counter[Value]) -> None:
        self.granule: dict[Value, int] = {}
        uses_in_run = Counter(x for op in ops for x in op.operands)
        self.left = {op.result for op in ops if uses[op.result] > uses_in_run[op.result]}
        """What is used behind the run."""
        self.needs: dict[Piece, list[Piece]] = {}
        """The pieces from which each piece is computed, in the order in which they are written."""
        self.words: dict[Piece, int] = {}
        """What is loaded or computed from that, in words."""
        self.outside: set[Value] = set()
        """What is used from before the run."""
        ways: dict[Piece, int] = {}
        tiles: set[Value] = set()
        for op in ops:
            value = op.result
            is_load = op.name == "load"
            self.granule[value] = int(op.attrs["vector"]) if is_load else granule_of(op, self.granule)
            if is_load or tiles.intersection(op.operands):
                tiles.add(value)
            for piece in self.pieces_of([op] if op.name not in ALIASES else []):
                registers = self._registers(piece)
                origins = [self._origin(x, r) for x in op.operands for r in _needed(x, value.count, registers)]
                inside = dict.fromkeys((x, r // self.granule[x]) for x, r in origins if x in self.granule)
                self.outside.update(x for x, _ in origins if x not in self.granule and _is_held(x))
                ways[piece] = 1 + max((ways[x] for x in inside), default=0)
                is_short = ways[piece] <= SHORT
                self.needs[piece] = sorted(inside, key=lambda x: (not (is_short and _is_load(x)), -ways[x]))
                self.words[piece] = _words(value.elem, len(registers)) if value in tiles else 0
        self.pieces = list(self.needs)
        loads = [p for p in self.pieces if _maker(p[0]).name == "load"]
        left = self.pieces_of(op for op in ops if op.result in self.left)
        self.roots = [*left, *loads], [*sorted(left, key=lambda x: -ways[x]), *loads]
        """What is to be there in the end, in two orders. The longest chain comes first where one result of a reduction
        is computed from the parts of another: of mean, count and variance the variance, which uses each part of the
        mean at once."""

    def pieces_of(self, ops: Iterable[LaneOp]) -> list[Piece]:
        """The pieces of what operations give, under whatever name."""
        pieces: dict[Piece, None] = {}
        for op in ops:
            value = op.result
            if op.name not in ALIASES:
                pieces.update(((value, k), None) for k in range(-(-value.count // self.granule[value])))
                continue
            origins = (self._origin(value, r) for r in range(value.count))
            pieces.update(((x, r // self.granule[x]), None) for x, r in origins if x in self.granule)
        return list(pieces)

    def _registers(self, piece: Piece) -> range:
        value, k = piece
        return range(k * self.granule[value], min(value.count, (k + 1) * self.granule[value]))

    def _origin(self, value: Value, register: int) -> tuple[Value, int]:
        """A register under the name that it was made with."""
        while value in self.granule and (op := _maker(value)).name in ALIASES:
            if op.name == "rename":
                value, register = op.operands[0], op.attrs["table"][register]
            else:
                value, register = next(islice(((x, r) for x in op.operands for r in range(x.count)), register, None))
        return value, register

    def depth_first(self, roots: Iterable[Piece]) -> list[Piece]:
        """The roots, in their order, and what they are made of, each after what it needs, and that as late as can be.

        Of what a piece needs, loads beside a short chain come first, and then the longest chain: sums one after the
        other begin with the first.
        """
        done: dict[Piece, None] = {}
        stack = [(piece, iter(self.needs[piece])) for piece in reversed(list(roots))]
        while stack:
            piece, needs = stack[-1]
            missing = next((x for x in needs if x not in done), None) if piece not in done else None
            if missing is not None:
                stack.append((missing, iter(self.needs[missing])))
            else:
                done[piece] = None
                stack.pop()
        return list(done)

    def held(self, order: Sequence[Piece]) -> int:
        """The most words that are held at a time, of what is used in the run: a result may take an operand's place."""
        left = Counter(x for piece in order for x in self.needs[piece])
        now = most = 0
        for piece in order:
            for x in self.needs[piece]:
                left[x] -= 1
                now -= 0 if left[x] else self.words[x]
            if left[piece]:
                now += self.words[piece]
                most = max(most, now)
        return most

    def written(self, order: Sequence[Piece], kept: Sequence[LaneOp]) -> list[LaneOp]:
        """The pieces as operations, and then the values that are kept, under their names."""
        build, values, named = Builder(Block()), dict[Piece, Value](), {op.result for op in kept}
        for piece in order:
            op, registers = _maker(piece[0]), self._registers(piece)
            count, attrs, build.span = op.result.count, op.attrs, op.span
            operands = [self._gathered(build, values, x, _needed(x, count, registers)) for x in op.operands]
            if op.name == "linear":
                attrs = {**attrs, "registers": tuple(attrs["registers"][r] for r in registers)}
            made = build.add(op.name, operands, [(op.result.elem, len(registers))], attrs)
            if op.result in named and len(registers) == count:
                named.remove(op.result)
                op.result.op, made.results = made, (op.result,)
            values[piece] = made.result
        for op in kept:
            value, build.span = op.result, op.span
            if value not in named:
                continue
            gathered = self._gathered(build, values, value, range(value.count))
            value.op = build.add("rename", [gathered], (), {"table": tuple(range(value.count))})
            value.op.results = (value,)
        return build.block.ops

    def _gathered(self, build: Builder, values: dict[Piece, Value], x: Value, registers: Sequence[int]) -> Value:
        """Registers of a value, from the pieces where it has them."""
        places: list[tuple[Value, int]] = []
        for value, r in (self._origin(x, r) for r in registers):
            if value in self.granule:
                k, r = divmod(r, self.granule[value])
                value = values[value, k]
            places.append((value, r))
        return build.gather(places)


def _maker(value: Value) -> LaneOp:
    assert value.op is not None
    return value.op


def _is_load(piece: Piece) -> bool:
    return _maker(piece[0]).name == "load"


def _is_held(value: Value) -> bool:
    """Whether a value from before the run is in registers."""
    return value.op is None or value.op.name not in ("constant", "linear")


def _needed(x: Value, count: int, registers: Sequence[int]) -> Sequence[int]:
    """The registers of an operand that some of a result's are made of: as many, several for each, or one for several.

    >>> address, halves = Value("i64", 2), Value("f16", 16)
    >>> _needed(address, 8, range(4, 8)), _needed(halves, 8, range(2))
    ([1], [0, 1, 2, 3])
    """
    if x.count == count:
        return registers
    each = max(x.count, count) // min(x.count, count)
    if x.count > count:
        return [r * each + i for r in registers for i in range(each)]
    return list(dict.fromkeys(r // each for r in registers))
