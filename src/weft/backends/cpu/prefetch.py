"""Fetching what comes next while this is computed: the next iteration's tiles, the next program's.

A product inside a loop loads tiles whose addresses move with the loop. Packing them first would wait for memory, line
after line; so the register blocks of the product each issue a few prefetches for the lines that the next iteration will
load. The addresses are the same expressions, evaluated with the loop's carried scalars one step ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.analysis import parts_first
from weft.backends.cpu.affine_ops import AFFINE_OPS
from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import Coords, log2, pinned, row_major
from weft.backends.cpu.elementwise import EMITTERS, const_of, memory_type
from weft.backends.cpu.evaluate import Evaluator, LoopVar
from weft.backends.cpu.forms import Uniform, vector_of
from weft.backends.cpu.program import Op, Value, element_bits
from weft.backends.cpu.questions import consecutive_run
from weft.backends.cpu.schedule import Scheduler
from weft.backends.cpu.telling import tile_text
from weft.backends.llvm.values import I32, I64, PTR, VOID, Value as Reg, const
from weft.base.remarks import Prefetched

LINE = 64  # bytes
MOST = 5  # log2 of the lines that one register block may prefetch for one load
MOST_LINES = 9  # log2 of the lines of a tile: a larger one has rows so long that the processor itself fetches ahead

Between = Callable[[Reg], None]


@dataclass
class Tile:
    """A load to be prefetched, the coordinates of its pointers, and the bits that count lines."""

    load: Op
    coords: Coords
    lines: list[int]


def find(s: Scheduler, op: Op, operands: Sequence[Value]) -> list[Tile]:
    """The loads that feed these operands and move with the loop around `op`. To be asked before the operands are
    packed.
    """
    if not s.loops or s.loops[-1].block is not op.block:
        return []
    analysis = s.analysis()
    tiles = []
    for operand in operands:
        for value, coords in analysis.walk([(operand, row_major(operand.shape))]):
            load = value.op
            if (
                load is None
                or load.name != "tt.load"
                or value in s.env
                or load.block is not op.block
                or not value.is_tile
            ):
                continue
            steps = analysis.steps(load.args[0], coords)
            width = log2(max(1, LINE * 8 // element_bits(value.elem)))
            within = consecutive_run(steps)[:width]
            bits = [b for coord in coords for b in coord if b >= 0]
            tiles.append(Tile(load, coords, sorted(b for b in bits if b not in within)))
    return tiles


def ahead(s: Scheduler, value: Value, env: dict[Value, Reg | Buffer]) -> Reg | None:
    """A scalar of the loop body, computed now from what is known, if it is plain arithmetic."""
    computed: dict[Value, Reg | None] = {}

    def found(v: Value) -> Reg | None:
        register = dict.get(env, v)
        return register if isinstance(register, Reg) else None

    def parts(v: Value) -> list[Value]:
        return v.op.args if found(v) is None and v.op is not None and _is_plain(v.op) else []

    order = parts_first(value, computed, parts)
    possible: dict[Value, bool] = {}
    for v in order:
        plain = found(v) is not None or (v.op is not None and _is_plain(v.op))
        possible[v] = plain and all(possible[a] for a in parts(v))
    if not possible[value]:
        return None
    for v in order:
        computed[v] = found(v) or _computed(s, v, computed, env)
    return computed[value]


def _is_plain(op: Op) -> bool:
    is_emitted = op.name in EMITTERS or op.name in AFFINE_OPS or op.name in ("arith.constant", "tt.addptr")
    return is_emitted and not op.regions


def _computed(
    s: Scheduler, value: Value, computed: dict[Value, Reg | None], env: dict[Value, Reg | Buffer]
) -> Reg | None:
    op = value.op
    assert op is not None
    if op.name == "arith.constant":
        return const_of(value.elem, op.attrs["value"])
    args = [computed[a] for a in op.args]
    scalars = [Uniform(reg) for reg in args if reg is not None]
    if len(scalars) < len(args):
        return None
    ev = Evaluator(s.f, env, ())
    if op.name == "tt.addptr":
        offset = ev.elementwise_offset(scalars[1].value)
        return s.f.gep(memory_type(op.args[0].pointee), scalars[0].value, offset)
    form = ev.elementwise(op, list(scalars))
    return form.value if isinstance(form, Uniform) else None


def between(s: Scheduler, tiles: list[Tile], blocks: int) -> Between | None:
    """What a register block, given its number of `blocks`, does to fetch its share of the tiles."""
    if not tiles:
        return None
    loop = s.loops[-1]
    following: dict[Value, Reg | Buffer] = dict(s.env)
    for arg, yielded in loop.carried:
        if not arg.is_tile:
            reg = ahead(s, yielded, s.env)
            if reg is None:
                return None
            following[arg] = reg
    following[loop.iv] = loop.next_iv
    # What was computed from this iteration's scalars must be computed again from the next one's.
    for value in _computed_in(loop.block, following):
        del following[value]
    env = _Lazily(s, following)
    width = log2(blocks)
    few = [t for t in tiles if len(t.lines) <= min(MOST_LINES, width + MOST)]
    tiles = [t for t in few if _computable(s, env, t.load.args[0], t.coords)]
    for t in tiles if s.remarks else ():
        why = "while an iteration multiplies, it fetches the cache lines that the next one loads"
        s.remarks.add(Prefetched(t.load.span, tile_text(t.load.result), why))

    def emit(block: Reg) -> None:
        f = s.f
        f.module.declare("llvm.prefetch.p0", VOID, [PTR, I32, I32, I32])
        for tile in tiles:
            unrolled = tile.lines[: max(0, len(tile.lines) - width)]
            ev = Evaluator(f, env, ())
            _bind(ev, block, tile.lines[len(unrolled) :])
            for k in range(1 << len(unrolled)):
                fixed = {b: pinned(b, k >> i & 1) for i, b in enumerate(unrolled)}
                bound = {b: fixed.get(b, b if b in ev.loops else -1) for coord in tile.coords for b in coord if b >= 0}
                at = tuple(tuple(bound.get(b, b) for b in coord) for coord in tile.coords)
                address = vector_of(f, ev.pointer(tile.load.args[0], at), 0)
                f.do(f"call void @llvm.prefetch.p0({address}, i32 0, i32 2, i32 1)")

    return emit


def _bind(ev: Evaluator, block: Reg, bits: list[int]) -> None:
    """Make iteration bits the bits of the block number, in order."""
    f = ev.f
    start = 0
    while start < len(bits):
        n = 1
        while start + n < len(bits) and bits[start + n] == bits[start] + n:
            n += 1
        var = f.and_(f.lshr(block, const(I64, start)), const(I64, (1 << n) - 1))
        loop = LoopVar(var, bits[start], n)
        for b in bits[start : start + n]:
            ev.loops[b] = loop
        start += n


def _computed_in(block: object, env: dict[Value, Reg | Buffer]) -> list[Value]:
    return [v for v, have in env.items() if isinstance(have, Reg) and v.op is not None and v.block is block]


class NextProgramRoot:
    """At each point of a nest that only computes, fetch what the next program will load at that point.

    Programs of the grid that follow each other run one after the other on a core, most of the time.
    """

    def __init__(self, pointers: Value, env: _Lazily) -> None:
        self.pointers, self.env = pointers, env
        self.shape = pointers.shape
        self.coords = row_major(self.shape)
        self.op: Op | None = None

    def inputs(self) -> list[tuple[Value, Coords]]:
        return []

    def accesses(self) -> list[tuple[Value | Buffer, Coords, int]]:
        return []

    def prepare(self, ev: Evaluator, at: Callable[[Coords], Coords]) -> Callable[[], None]:
        first = dict.fromkeys(ev.lane_bits, -1)
        coords = tuple(tuple(first.get(b, b) for b in coord) for coord in at(self.coords))
        ahead_of_us = Evaluator(ev.f, self.env, ())
        ahead_of_us.loops = ev.loops
        address = vector_of(ev.f, ahead_of_us.pointer(self.pointers, coords), 0)
        ev.f.module.declare("llvm.prefetch.p0", VOID, [PTR, I32, I32, I32])
        return lambda: ev.f.do(f"call void @llvm.prefetch.p0({address}, i32 0, i32 2, i32 1)")


def _computable(s: Scheduler, env: _Lazily, pointers: Value, coords: Coords) -> bool:
    """Whether future addresses are plain arithmetic of what is known now: nothing loaded, nothing in a buffer."""
    for value, _ in s.analysis().walk([(pointers, coords)]):
        if value.op is None or value in s.env or value.op.name == "tt.load":
            return False
        if any(env.get(a) is None for a in value.op.args if not a.is_tile):
            return False
    return True


def next_program(s: Scheduler, pointers: Value) -> NextProgramRoot | None:
    """The prefetch of a load by the next program, if its addresses are arithmetic of the program's number."""
    values: dict[Value, Reg | Buffer] = {}
    moves = False
    for value, have in s.env.items():
        op = value.op
        if op is None and not value.is_tile:
            values[value] = have
        elif op is not None and op.name in ("tt.get_program_id", "tt.get_num_programs") and isinstance(have, Reg):
            first = op.name == "tt.get_program_id" and op.attrs["axis"] in (0, "x")
            values[value] = s.f.add(have, const(have.type, 1)) if first else have
            moves = moves or first
    env = _Lazily(s, values)
    if not moves or not _computable(s, env, pointers, row_major(pointers.shape)):
        return None
    return NextProgramRoot(pointers, env)


class _Lazily(dict[Value, "Reg | Buffer"]):
    """The scalars of the next iteration, computed when they are asked for."""

    def __init__(self, s: Scheduler, values: dict[Value, Reg | Buffer]) -> None:
        super().__init__(values)
        self.s = s

    def get(self, key: Value, default: object = None) -> Reg | Buffer | None:  # type: ignore[override]
        have = super().get(key)
        if have is not None or key.is_tile:
            return have
        reg = ahead(self.s, key, self)
        if reg is not None:
            self[key] = reg
        return reg
