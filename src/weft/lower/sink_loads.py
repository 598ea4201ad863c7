"""Load operands of products when they are needed, a few registers at a time.

    %a = load shared, 64 registers              %a0 = load shared, 8 registers
    %b = load shared, 64 registers              %b0 = load shared, 4 registers
    %d = mma %a[0:8], %b[0:4], %c      becomes  %d = mma %a0, %b0, %c
    %e = mma %a[0:8], %b[4:8], %d               %b1 = load shared, 4 registers
    ...                                         %e = mma %a0, %b1, %d

So that not all of them are held at the same time beside the accumulators. In a loop, operands that go through shared
memory one after the other are all stored before one barrier; elsewhere they share bytes. A load moves over what neither
waits nor writes its buffer. This comes before buffers are placed and barriers inserted, which depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.base.remarks import LoadsSpread, RemarkCollector
from weft.ir.lane import Block, Builder, LaneOp, LaneProgram, Value
from weft.targets.table import instruction

LEAST = 16
"""Registers (of elements) of a load that is worth it."""
OF_SLICES = ("arith.extf", "arith.extsi", "arith.muli")
"""What single multiplications begin with, if it is not one that adds."""


def sink_loads(program: LaneProgram) -> None:
    """Split and move the loads of shared memory whose values are multiplied."""
    uses = program.body.uses()
    loops = [r for op in program.body.walk() if op.name in ("for", "while") for r in op.regions]
    others = [r for op in program.body.walk() if op.name not in ("for", "while") for r in op.regions]
    for block in (program.body, *others):
        _in_block(block, uses, False, program.remarks)
    for block in loops:
        _in_block(block, uses, True, program.remarks)


@dataclass
class _Load:
    """A load that can be split: so many registers for each address."""

    op: LaneOp
    each: int

    def part(self, build: Builder, groups: Sequence[int]) -> Value:
        """A load of some of the addresses."""
        address = self.op.operands[0]
        chosen = build.add("rename", [address], [(address.elem, len(groups))], {"table": tuple(groups)}).result
        results = [(self.op.result.elem, len(groups) * self.each)]
        return build.add(self.op.name, [chosen], results, dict(self.op.attrs)).result


def _splittable(op: LaneOp) -> _Load | None:
    if len(op.operands) != 1 or len(op.results) != 1 or op.operands[0].count == 1 or op.result.count < LEAST:
        return None
    is_load = op.name == "load" and op.attrs["space"] == "shared"
    is_matrix = op.name == "instruction" and instruction(op.attrs["isa"]).is_shared_load
    return _Load(op, op.result.count // op.operands[0].count) if is_load or is_matrix else None


def _buffers(value: Value) -> frozenset[int] | None:
    """The buffers that an address may lie in; None where that is not known.

    What is added to where a buffer begins is how far in it, whatever it was computed from.
    """
    op = value.op
    if op is None:
        return None
    if op.name == "shared":
        return frozenset([int(op.attrs["allocation"])])
    if op.name in ("linear", "constant"):
        return frozenset()
    if op.name not in ("arith.addi", "arith.xori", "rename"):
        return None
    of_operands = [_buffers(x) for x in op.operands]
    buffers: frozenset[int] = frozenset().union(*(x for x in of_operands if x is not None))
    return buffers if buffers or None not in of_operands else None


def _is_wall(op: LaneOp, buffers: frozenset[int] | None) -> bool:
    """Whether a load of these buffers must not move over an operation."""
    if op.name == "store":
        written = _buffers(op.operands[0]) if op.attrs["space"] == "shared" else frozenset()
        return written is None or buffers is None or bool(written & buffers)
    if op.regions or op.name in ("atomic", "compare_and_swap", "copy_async", "wait_async", "barrier", "fence"):
        return True
    if op.name == "instruction":
        entry = instruction(op.attrs["isa"])
        if entry.stores and entry.touches == "shared":
            written = _buffers(op.operands[0])
            return written is None or buffers is None or bool(written & buffers)
        return entry.stores or entry.touches in ("sync", "barrier", "copy", "global")
    return op.name in ("await", "yield", "condition", "return")


def _in_block(block: Block, uses: dict[Value, list[LaneOp]], in_loop: bool, remarks: RemarkCollector) -> None:
    place = {op: i for i, op in enumerate(block.ops)}
    before: dict[int, list[LaneOp]] = {}
    gone: set[LaneOp] = set()
    for op in block.ops:
        load = _splittable(op)
        wanted = _products(op.result, uses) if load is not None else None
        if load is None or not wanted:
            continue
        if any(p not in place for p, _, _ in wanted):
            continue
        last, buffers = max(place[p] for p, _, _ in wanted), _buffers(op.operands[0])
        if any(_is_wall(x, buffers if in_loop else None) for x in block.ops[place[op] + 1 : last]):
            continue
        gone |= {op, *_renames(op.result, uses)}
        if remarks:
            why = f"its {op.result.count} registers are loaded in parts, each before the first product that needs it"
            remarks.add(LoadsSpread(op.span, "an operand in shared memory", why))
        _split(load, wanted, place, before)
    if gone:
        block.ops[:] = [x for i, op in enumerate(block.ops) for x in (*before.get(i, ()), op) if x not in gone]


def _renames(value: Value, uses: dict[Value, list[LaneOp]]) -> Iterator[LaneOp]:
    for op in uses.get(value, ()):
        if op.name in ("rename", "unpack", "pack"):
            yield op
            yield from _renames(op.result, uses)


def _multiplies(op: LaneOp, loaded: int) -> bool:
    """Whether an operation is a product, or one of a slice of what was loaded: each lane multiplies it by itself."""
    if op.name == "instruction":
        entry = instruction(op.attrs["isa"])
        return not entry.touches and bool(entry.products)
    return op.name == "math.fma" or (op.name in OF_SLICES and op.operands[0].count < loaded)


def _products(value: Value, uses: dict[Value, list[LaneOp]]) -> list[tuple[LaneOp, int, list[int]]] | None:
    """The (product, operand, which registers) of all uses; None where something else uses the value too."""
    products: list[tuple[LaneOp, int, list[int]]] = []
    todo = [(value, list(range(value.count)))]
    while todo:
        current, registers = todo.pop()
        for op in dict.fromkeys(uses.get(current, ())):
            if op.name == "rename":
                todo.append((op.result, [registers[k] for k in op.attrs["table"]]))
            elif _multiplies(op, value.count):
                products += [(op, i, registers) for i, x in enumerate(op.operands) if x is current]
            else:
                return None
    return products


def _split(
    load: _Load, wanted: list[tuple[LaneOp, int, list[int]]], place: dict[LaneOp, int], before: dict[int, list[LaneOp]]
) -> None:
    """A load before each product of what no product before it needed."""
    home: dict[int, tuple[Value, int]] = {}
    for product, operand, registers in sorted(wanted, key=lambda w: (place[w[0]], w[1])):
        build = Builder(Block())
        build.span = load.op.span
        new = sorted({r // load.each for r in registers} - home.keys())
        if new:
            loads = load.part(build, new)
            home |= {g: (loads, i * load.each) for i, g in enumerate(new)}
        parts = list(dict.fromkeys(home[r // load.each][0] for r in registers))
        start = {part: sum(p.count for p in parts[:i]) for i, part in enumerate(parts)}
        table = []
        for r in registers:
            part, at = home[r // load.each]
            table.append(start[part] + at + r % load.each)
        value = parts[0]
        if len(parts) > 1:
            value = build.add("join", parts, [(value.elem, sum(p.count for p in parts))]).result
        value = build.add("rename", [value], [(value.elem, len(table))], {"table": tuple(table)}).result
        product.operands = (*product.operands[:operand], value, *product.operands[operand + 1 :])
        before.setdefault(place[product], []).extend(build.block.ops)
