"""Copies from global memory to LDS: which lanes copy what, so that a wave writes one run of bytes.

The instruction has one address of LDS for a whole wave. Lane i writes its 4 or 16 bytes at that address + i * width, so
the 64 lanes fill 256 or 1024 consecutive bytes in the order of their numbers. Where they read is free: each lane has a
global address of its own. With 16 bytes a lane, and rows of 64 f16 that LDS has with the chunks of row r swapped by
r xor chunk,

    lane    0   1   2 ...  7   8   9  10 ...
    row     0   0   0      0   1   1   1         lanes 8 to 15 fill row 1 of LDS from left to right,
    chunk   0   1   2      7   1   0   3         and for that read its chunks 1, 0, 3, 2 ... of global memory

If an author's lanes hold the elements of such a run in another order, addresses and masks are exchanged within the wave
first. If they do not hold a run, no instruction can copy them, and the error says which layouts would do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from weft.base import LayoutError, Note, Unsupported
from weft.ir.gpu import MemDescType
from weft.ir.lane import Value
from weft.layouts import BlockedLayout, LinearLayout, SwizzledSharedLayout, f2
from weft.layouts.plan import plan_local_access
from weft.machines import MACHINES, Machine
from weft.machines.amd import GFX1250

from ..context import LOWERINGS, Context
from ..memory import access_order, hints_of, mask_of
from ..padding import Gaps, gaps_of, place
from ..shared import memory_of
from ..telling import tell_width
from ..unfit import named


@dataclass(frozen=True)
class Run:
    """What the copies of a wave write: `starts` for each copy, and the offsets in elements that bits of warps add;
    `registers`, `lanes` and `warps` are what is xored to a lane's number to get the lane that has the address."""

    starts: tuple[int, ...]
    others: tuple[int, ...]
    registers: tuple[int, ...]
    lanes: tuple[int, ...]
    warps: tuple[int, ...]

    @property
    def is_in_order(self) -> bool:
        """Whether every lane has its address already."""
        return not any(self.registers) and not any(self.warps) and list(self.lanes) == f2.identity(len(self.lanes))


def run_of(offsets: Sequence[int], lanes: Sequence[int], warps: Sequence[int], vector: int) -> Run | None:
    """How vectors of `vector` elements are copied; None where lanes do not fill one run of memory.

    `offsets` are those of the registers in the order of global memory, `lanes` and `warps` what their bits add.

    >>> run_of([0, 1], [2, 4], [8], 2)
    Run(starts=(0,), others=(8,), registers=(0,), lanes=(1, 2), warps=(0,))
    >>> run_of([0, 1, 10, 11], [4, 2], [16], 2)
    Run(starts=(0, 8), others=(16,), registers=(0, 2), lanes=(2, 1), warps=(0,))
    >>> run_of([0, 1], [2, 8], [4], 2) is None
    True
    """
    size = vector.bit_length() - 1
    whole = vector << len(lanes)
    groups = [offsets[i : i + vector] for i in range(0, len(offsets), vector)]
    if any(list(g) != list(range(g[0], g[0] + vector)) or g[0] % vector for g in groups):
        return None
    if any(x % vector or x >= whole for x in lanes) or any(x % vector for x in warps):
        return None
    held = f2.Echelon([x >> size for x in lanes])
    if f2.rank([x >> size for x in lanes]) < len(lanes):
        return None

    def lane_with(offset: int) -> int:
        number = held.coefficients((offset & whole - 1) >> size)
        assert number is not None
        return number

    starts = [g[0] for g in groups]
    return Run(
        tuple(x & ~(whole - 1) for x in starts),
        tuple(x & ~(whole - 1) for x in warps),
        tuple(map(lane_with, starts)),
        tuple(lane_with(vector << i) for i in range(len(lanes))),
        tuple(map(lane_with, warps)),
    )


def lower_copy(c: Context, op: Operation) -> None:
    """`ttg.async_copy_global_to_local` as `copy_async`, in the order of lanes."""
    machine = c.machine
    if not machine.async_copies:
        feature = "a copy from global to shared memory, by buffer_load or global_load with lds,"
        raise Unsupported(feature, machine.name, c.build.span, works_on=_processors())
    if machine.generation >= GFX1250:  # each lane's bytes go where it says
        LOWERINGS[op.name](c, op)
        return
    pointer, target = op.operands[:2]
    mask = op.operands[2] if len(op.operands) > 2 else None
    type, memory, width = memory_of(target)
    gaps, layout = gaps_of(type, width), c.layout(pointer)
    order, together = access_order(c, pointer, mask, 8 * width, in_registers=False)
    begin = c.offset_of(target) // width
    found = _widest(layout, memory, order, begin, together, width, gaps, machine)
    vector = found[0] if found is not None else 1
    tell_width(c, "copy", op, pointer, mask, 8 * width, vector, buffered=vector < together)
    if found is None:
        raise _unfit(c, op, together)
    run = found[1]
    lanes = [(vector * width) << i for i in range(layout.in_log("lane"))]
    starts = [x * width for x in run.starts]
    to = c.plus(place(c, starts, [lanes, [x * width for x in run.others], []], gaps), c[target])
    firsts = order[::vector]
    operands = [to, _exchanged(c, c.build.rename(c.whole(pointer), firsts), run)]
    if mask is not None:
        operands.append(_exchanged(c, mask_of(c, mask, firsts), run))
    hints = {"bytes": vector * width, "masked": mask is not None, **hints_of(op)}
    c.build.add("copy_async", operands, (), hints)
    c[op.results[0]] = c.number(0)


def _widest(
    layout: LinearLayout,
    memory: LinearLayout,
    order: Sequence[int],
    begin: int,
    together: int,
    width: int,
    gaps: Gaps,
    machine: Machine,
) -> tuple[int, Run] | None:
    """The most elements of a lane that the machine copies at once, and how; None where it can copy none so."""
    shape = tuple(layout.out_dims.values())
    pairs = [(interval // width, padding // width) for interval, padding in gaps]
    try:
        offsets = plan_local_access(layout, memory, shape, 8 * width, machine, store=True, gaps=pairs).place
    except LayoutError:
        return None
    log = offsets.out_log("offset")
    columns = {d: [x & (1 << log) - 1 for x in offsets.in_columns(d)] for d in ("register", "lane", "warp")}
    registers = [f2.multiply(columns["register"], r) ^ begin for r in order]
    for size in sorted(machine.async_copies, reverse=True):
        vector = size // width
        is_cut = any(interval % (size * machine.lanes) or padding % size for interval, padding in gaps)
        if vector and vector <= together and not is_cut:
            run = run_of(registers, columns["lane"], columns["warp"], vector)
            if run is not None:
                return vector, run
    return None


def _exchanged(c: Context, value: Value, run: Run) -> Value:
    """Addresses or masks in the lanes that copy. Of an address that all lanes have but for a distance, the distance."""
    if run.is_in_order:
        return value
    if value.elem == "i1":
        return c.build.op("arith.trunci", [_exchanged(c, c.build.op("arith.extui", [value], "i32"), run)], "i1")
    table, source = list(range(value.count)), value
    while source.op is not None and source.op.name == "rename":
        table, source = [source.op.attrs["table"][i] for i in table], source.op.operands[0]
    if source.op is not None and source.op.name == "arith.addi" and value.elem == "i64":
        base, far = source.op.operands
        if base.count == 1 and far.op is not None and far.op.name == "arith.extui":
            distance = c.build.rename(far.op.operands[0], table if far.count > 1 else [0] * len(table))
            return c.build.op(
                "arith.addi", [base, c.build.op("arith.extui", [_exchanged(c, distance, run)], "i64")], "i64"
            )
    lanes = c.build.linear(run.registers, run.lanes, run.warps)
    return c.build.shuffle(value, lanes)


# -- what does not fit -----------------------------------------------------------------------------------------------


def _processors() -> list[str]:
    """Those of this vendor that have such copies."""
    return [m.name for m in MACHINES.values() if m.vendor == "amd" and m.async_copies]


def _unfit(c: Context, op: Operation, together: int) -> Unsupported:
    """The error for layouts, and for addresses that are not known to lie in a row."""
    pointer, target = op.operands[:2]
    machine = c.machine
    width = memory_of(target)[2]
    sizes = " or ".join(map(str, machine.async_copies))
    least = max(1, machine.async_copies[0] // width)
    size = max(x for x in machine.async_copies if x <= max(together * width, 4))
    feature = (
        f"a copy to shared memory of which a wave's lanes do not fill one run: each copies {sizes} bytes, and "
        f"lane i writes behind lane i - 1,"
    )
    notes = [Note(f"addresses: {named(pointer)}\nshared memory: {named(target)}")]
    if together < least:
        facts = c.facts.of(pointer)
        notes.append(
            Note(
                f"of each lane elements of {width} bytes are known to lie side by side in global memory: {together}; "
                f"addresses run on for {max(facts.contiguity)}, the first a multiple of {max(facts.divisibility)} bytes"
            )
        )
        hint = (
            f"give each thread {least} or more elements in a row, at addresses and under masks of sizes and strides "
            "that 16 divides (gl.multiple_of(x, 16) says it of numbers)"
        )
    else:
        hint = _what_would_do(c, pointer, target, size)
    return Unsupported(feature, c.program.target, c.build.span, notes=notes, hint=hint)


def _what_would_do(c: Context, pointer: SSAValue, target: SSAValue, size: int) -> str:
    """A layout of addresses that fits the memory, else one of memory that fits the addresses, else both."""
    machine, type = c.machine, target.type
    assert isinstance(type, MemDescType)
    _, memory, width = memory_of(target)
    gaps, shape = gaps_of(type, width), list(memory.out_dims.values())
    begin = c.offset_of(target) // width
    layout = c.layout(pointer)
    contiguity = c.facts.of(pointer).contiguity
    dims = sorted(range(len(shape)), key=lambda d: (-contiguity[d], -d))
    sizes = [n for n in sorted(machine.async_copies, reverse=True) if n <= size]
    blocked = [_lanes_in_a_row(shape, dims, max(1, n // width), machine.lanes, c.program.warps) for n in sizes]

    def fits(addresses: LinearLayout, memory: LinearLayout, gaps: Gaps, begin: int) -> bool:
        registers = f2.span([1 << i for i in range(addresses.in_log("register"))])
        return _widest(addresses, memory, registers, begin, size // width, width, gaps, machine) is not None

    for candidate in blocked:
        if fits(candidate.to_linear(shape), memory, gaps, begin):
            return f"give addresses and masks the layout gl.{candidate!r}"
    plain = SwizzledSharedLayout(1, 1, 1, dims)
    if fits(layout, plain.to_linear(shape), (), 0):
        gap = [[size * machine.lanes // width, max(1, size // width)]]
        padded = f"gl.PaddedSharedLayout.with_identity_for({gap}, {shape}, {dims})"
        return f"allocate the memory with gl.{plain!r}, or with gaps behind whole runs, {padded}"
    return f"allocate the memory with gl.{plain!r}, and give addresses and masks gl.{blocked[0]!r}"


def _lanes_in_a_row(shape: Sequence[int], order: Sequence[int], vector: int, lanes: int, warps: int) -> BlockedLayout:
    """Vectors along the first dimension, then lanes, then warps."""
    each, wave, block = ([1] * len(shape) for _ in range(3))
    each[order[0]] = min(vector, shape[order[0]])
    for left, parts in ((lanes, wave), (warps, block)):
        for d in order:
            take = min(left, max(1, shape[d] // (each[d] * wave[d] * block[d])))
            parts[d], left = parts[d] * take, left // take
        parts[order[-1]] *= left
    return BlockedLayout(each, wave, block, list(order))
