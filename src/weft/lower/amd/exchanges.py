"""Turn shuffles into AMD's instructions: the cheapest that the processor has for the lanes that each lane reads.

    %b = shuffle %a {kind=xor, masks=(4,)}
becomes
    %c = instruction %a {isa=dpp.row_half_mirror}           lane ^ 7
    %b = instruction %c {isa=dpp.quad_perm.3210}            lane ^ 3
on gfx942, and dpp.row_xmask.4 from gfx10 on. If the source lanes depend on the lane's number alone, as in scans, they
are known at compile time: then a DPP control, a pattern within rows, ds_swizzle or readlane may do. If all lanes read
lanes with a certain bit set (or clear), half of them read themselves, and the others a lane at a distance. In all other
cases, the instruction is ds_bpermute.

All of these move words of 32 bits: larger elements are divided, smaller ones widened, or moved two at a time if two go
to the same lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from weft.analysis.lane_numbers import LaneNumbers
from weft.ir.lane import ELEMENT_BITS, Block, Builder, LaneOp, LaneProgram, Value
from weft.machines import Machine
from weft.machines.amd import exchange
from weft.ops import ELEMENTS
from weft.targets.table import available, has

Source = tuple[int, ...]
"""For each lane the one that it reads."""

ROW = 16


def write_exchanges(program: LaneProgram) -> None:
    """Every shuffle of a program as instructions."""
    numbers = LaneNumbers(program, [op.operands[1] for op in program.body.walk() if _is_computed(op)])
    writer = _Writer(program, numbers)
    writer.block(program.body)
    program.variables = [replace(v, value=writer.renamed.get(v.value, v.value)) for v in program.variables]


def _is_computed(op: LaneOp) -> bool:
    return op.name == "shuffle" and op.attrs["kind"] == "idx"


@lru_cache(maxsize=16)
def _fixed(machine: Machine) -> dict[Source, str]:
    """The instructions that do one exchange and nothing else: of those that do the same, the cheapest."""
    entries = [entry for entry in available(machine) if "source" in entry.params]
    entries.sort(key=lambda entry: -entry.cost)
    return {tuple(entry.params["source"](machine.lanes).tolist()): entry.name for entry in entries}


class _Writer:
    """Writes the operations of a block anew, with instructions in place of shuffles."""

    def __init__(self, program: LaneProgram, numbers: LaneNumbers) -> None:
        self.machine, self.numbers, self.lanes = program.machine, numbers, program.machine.lanes
        self.build = Builder(Block())
        self.renamed: dict[Value, Value] = {}
        self.done: dict[tuple[Value, Source, Source], Value] = {}
        """What registers of a value have become by a way, in this block."""

    def block(self, block: Block) -> None:
        """One block and those in it."""
        outer, self.build.block = self.build.block, Block()
        done, self.done = self.done, {}
        for op in block.ops:
            self.numbers.evaluate(op)
            if self.renamed:
                op.operands = tuple(self.renamed.get(v, v) for v in op.operands)
            if op.name == "shuffle":
                self.build.span = op.span
                self.renamed[op.result] = self.shuffle(op)
                continue
            for region in op.regions:
                self.block(region)
            self.build.block.ops.append(op)
        block.ops, self.build.block, self.done = self.build.block.ops, outer, done

    # -- one shuffle --------------------------------------------------------------------------------------------------

    def shuffle(self, op: LaneOp) -> Value:
        """What a shuffle gives."""
        value = op.operands[0]
        if op.attrs["kind"] == "xor":
            masks = op.attrs["masks"] * (value.count if len(op.attrs["masks"]) == 1 else 1)
            ways: Sequence[Source | Value] = [tuple(x ^ m for x in range(self.lanes)) for m in masks]
        else:
            ways = self.computed(op.operands[1], max(value.count, op.result.count))
        if value.count < len(ways):
            value = self.build.rename(value, [0] * len(ways))
        groups: dict[Source | Value, list[int]] = {}
        for register, way in enumerate(ways):
            groups.setdefault(way, []).append(register)
        parts, order = [], []
        for way, registers in groups.items():
            parts.append(self.moved(value, registers, way))
            order += registers
        joined = parts[0]
        if len(parts) > 1:
            joined = self.build.add("join", parts, [(value.elem, value.count)]).result
        return self.build.rename(joined, [order.index(r) for r in range(len(order))])

    def computed(self, lane: Value, count: int) -> Sequence[Source | Value]:
        """The lanes that registers are read from where that is known; else the value, or its registers one by one."""
        known = self.numbers[lane]
        if known is not None and (known == known[:1]).all():
            wide = np.broadcast_to(known[0] % self.lanes, (self.lanes, count))
            ways = [tuple(wide[:, r].tolist()) for r in range(count)]
            if all(self.half(way) or self.names(way) != ("ds_bpermute",) for way in ways):
                return ways
        if lane.count == 1:
            return [lane] * count
        return [self.build.rename(lane, [r]) for r in range(count)]

    def moved(self, value: Value, registers: Sequence[int], way: Source | Value) -> Value:
        """Registers that all go the same way."""
        while value.op is not None and value.op.name == "rename":  # whose names may be others in other shuffles
            registers = [value.op.attrs["table"][r] for r in registers]
            value = self.renamed.get(value.op.operands[0], value.op.operands[0])
        if isinstance(way, Value):
            return self.through_words(self.build.rename(value, registers), way)
        if way == tuple(range(self.lanes)):
            return self.build.rename(value, registers)
        key = value, tuple(registers), way
        if key not in self.done:
            half = self.half(way)
            if half is None:
                self.done[key] = self.through_words(self.build.rename(value, registers), way)
            else:
                bit, is_set = half
                other = self.moved(value, registers, tuple(lane ^ bit for lane in range(self.lanes)))
                both = [other, self.build.rename(value, registers)]
                self.done[key] = self.build.select(self.has_bit(bit), *(both[::-1] if is_set else both))
        return self.done[key]

    def half(self, way: Source) -> tuple[int, bool] | None:
        """(a bit of the lane, whether it is set) where all lanes read those that have it so, and that is cheap."""
        bits = [1 << i for i in range(self.lanes.bit_length() - 1)]
        for bit in bits:
            cheap = self.machine.exchanges[bit] + self.machine.select < self.machine.shuffle
            for is_set in (True, False) if cheap and self.names(way) == ("ds_bpermute",) else ():
                if all(source == (lane | bit if is_set else lane & ~bit) for lane, source in enumerate(way)):
                    return bit, is_set
        return None

    def has_bit(self, bit: int) -> Value:
        """Whether a lane's number has a bit."""
        by_lane = tuple(int(1 << i == bit) for i in range(bit.bit_length()))
        return self.build.op("arith.trunci", [self.build.linear((0,), by_lane)], "i1")

    def through_words(self, value: Value, way: Source | Value) -> Value:
        """Registers of any size by words of 32 bits."""
        elem, bits = value.elem, ELEMENT_BITS[value.elem]
        if bits == 32:
            return self.words(value, way)
        whole = f"i{bits}"
        plain = self.build.op("arith.bitcast", [value], whole) if ELEMENTS[elem].is_float else value
        if bits == 64:
            words = self.build.add("unpack", [plain], [("i32", 2 * value.count)]).result
            back = self.build.add("pack", [self.words(words, way)], [(whole, value.count)]).result
        elif bits > 1 and value.count * bits % 32 == 0:
            words = self.build.add("pack", [plain], [("i32", value.count * bits // 32)]).result
            back = self.build.add("unpack", [self.words(words, way)], [(whole, value.count)]).result
        else:
            word = self.build.op("arith.extui", [plain], "i32")
            back = self.build.op("arith.trunci", [self.words(word, way)], whole)
        return self.build.op("arith.bitcast", [back], elem) if ELEMENTS[elem].is_float else back

    def words(self, value: Value, way: Source | Value) -> Value:
        """Words that all go the same way."""
        if isinstance(way, Value):
            two = self.build.constant("i32", 2)
            return self.crossbar(value, self.build.op("arith.shli", [way, two], "i32"))
        for name in self.names(way):
            value = self.step(name, value, way)
        return value

    def names(self, way: Source) -> Sequence[str]:
        """The instructions of an exchange, one after the other."""
        if all(source == lane ^ way[0] for lane, source in enumerate(way)):
            return exchange(self.machine.generation, way[0])
        if len({*way}) == 1:
            return ("readlane",)
        alone = _fixed(self.machine).get(way, "ds_bpermute")
        through_crossbar = alone.startswith("ds_")
        if through_crossbar and has(self.machine, "permlane16") and self.pattern(way) is not None:
            return ("permlane16" if way[0] < ROW else "permlanex16",)
        return (alone,)

    def step(self, name: str, value: Value, way: Source) -> Value:
        """One instruction of an exchange."""
        if name == "ds_bpermute":  # at a distance: others are computed by the program
            by_lane = tuple(4 << i for i in range(self.lanes.bit_length() - 1))
            return self.crossbar(value, self.build.linear((4 * way[0],), by_lane))
        if name == "readlane":
            return self.one(name, [value, self.build.constant("i32", way[0])])
        if name.startswith("permlane") and name.endswith("16"):
            places = self.pattern(way)
            assert places is not None
            halves = [sum(p << 4 * i for i, p in enumerate(places[at : at + 8])) for at in (0, 8)]
            words = [self.build.constant("i32", h - (h >> 31 << 32)) for h in halves]
            return self.one(name, [value, *words])
        if name.endswith(".swap"):
            return self.swapped(name, value)
        return self.one(name, [value])

    def pattern(self, way: Source) -> Source | None:
        """Which place of its row, or of the other one, each lane of a row reads; None where rows differ in that."""
        rows = [way[at : at + ROW] for at in range(0, len(way), ROW)]
        away = {(source >> 4) ^ row for row, part in enumerate(rows) for source in part}
        places = {tuple(source & 15 for source in part) for part in rows}
        return places.pop() if len(places) == 1 and len(away) == 1 and away <= {0, 1} else None

    def crossbar(self, value: Value, addresses: Value) -> Value:
        """From the lanes at these addresses, which are four times their numbers."""
        return self.one("ds_bpermute", [addresses, value])

    def one(self, name: str, operands: Sequence[Value]) -> Value:
        """An instruction whose result is like its largest operand."""
        value = max(operands, key=lambda v: v.count) if name != "ds_bpermute" else operands[1]
        return self.build.instruction(name, operands, [(value.elem, value.count)]).result

    def swapped(self, name: str, value: Value) -> Value:
        """Of a register with itself: lanes of odd groups want what came to the first, those of even ones the second."""
        op = self.build.instruction(name, [value, value], [(value.elem, value.count)] * 2)
        odd = self.has_bit(int(name.removeprefix("permlane").removesuffix(".swap")))
        return self.build.select(odd, op.results[0], op.results[1])
