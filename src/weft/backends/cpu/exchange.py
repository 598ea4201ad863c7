"""The emission of networks (see networks.py): blocks of vectors in registers, as many steps at a time as they allow.

A block is 2^(r + l) elements: r bits of the position tell its vectors apart, the *register bits*, and l bits the lanes
of each. A step at a register bit is one operation on whole vectors, without a permutation. A step at a bit that lies in
the lanes first changes places with a register bit, by one permutation of two vectors for each vector:

    lanes (0 1), registers (2)        a = 0 1 2 3      b = 4 5 6 7
    bit 0 against bit 2               a = 0 4 2 6      b = 1 5 3 7      lanes (2 1), registers (0)

and nothing is changed back: the emitter keeps account of which bit lies where. The register bit that goes is the one
that is needed last (Belady, 1966). Where a step is at a bit that is neither in lanes nor in registers, the block is
stored in its place, and another pass over the tile begins, with the register bits that are needed next; so the order of
the tile in memory changes from pass to pass, too. A sort of 1,024 floats by AVX-512 takes four passes for 55 steps.

Where the block has no register bit left, each of its vectors is split into two halves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

import numpy as np

from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import Coords, flat, log2, pinned, row_major, substitute
from weft.backends.cpu.elementwise import EMITTERS, llvm_type
from weft.backends.cpu.evaluate import Evaluator, LoopVar
from weft.backends.cpu.forms import vector_of, wrap
from weft.backends.cpu.networks import NETWORK, Keep, Network, Pointwise, Step
from weft.backends.cpu.program import Op, Value, element_bits
from weft.backends.cpu.reduce import emit_region
from weft.backends.cpu.row_walk import Walk
from weft.backends.cpu.schedule import Scheduler, anchor
from weft.backends.cpu.telling import tell_loop
from weft.backends.llvm.values import I64, Value as Reg, const, const_lanes
from weft.ops.dtypes import DTYPES
from weft.ops.table import ELEMENTWISE, compute

Array: TypeAlias = np.ndarray[Any, Any]

LONGEST_TABLE = 1 << 16  # elements of an operand that is computed for every position when the kernel is compiled


@anchor(NETWORK)
def _network(s: Scheduler, op: Op) -> None:
    network: Network = op.attrs["network"]
    s.prepare(op.args[1:])
    s.require([a for a in op.args if not a.is_tile])
    made_here = network.source not in s.env and network.source.users == [op]
    source = s.materialise(network.source, row_major(network.source.shape), "exchanges take it from memory")
    result = s.allocate(op.result)
    work = source if made_here else s.temporary(network.source.shape, network.source.elem)
    passes = _Passes(s, network, source, work, result)
    tell_loop(s.remarks, op, network.source, 1 << passes.width, len(network.source.shape) - 1)
    passes.emit()
    s.env[op.result] = result
    if made_here:  # it has been written over
        del s.env[network.source]


class _Passes:
    """The passes of one network."""

    def __init__(self, s: Scheduler, network: Network, source: Buffer, work: Buffer, result: Buffer) -> None:
        self.s, self.f, self.network = s, s.f, network
        self.steps = network.steps
        self.at = 0
        self.tables: dict[Value, Table | None] = {}
        self.loops: dict[int, LoopVar | Walk] = {}
        self.live = list(range(log2(network.source.numel)))
        self.elem = network.source.elem
        self.source, self.work, self.result = source, work, result
        bits = element_bits(self.elem)
        most = max(0, len(self.live) - 2)  # two register bits, so that there is something to exchange lanes with
        self.width = min(log2(max(1, s.vector_bits // bits)), most)
        self.room = 4 if s.context.cpu.vector_registers >= 32 else 3
        self.place = {bit: bit for bit in self.live}
        """Of each bit of the position the bit of the offset in memory."""
        self.lanes = self.live[: self.width]
        self.registers: list[int] = []
        self.vectors: list[Reg] = []

    # -- planning ---------------------------------------------------------------------------------------------------

    def _needed(self) -> Iterator[int]:
        """The bits that are needed from now on, in order; at the end those that the result has in its lanes."""
        for step in self.steps[self.at :]:
            if not isinstance(step, Pointwise):
                yield step.bit
        yield from self._last_lanes()

    def _last_lanes(self) -> list[int]:
        """The bits that vectors of the result run along."""
        return list(flat(self.network.coords)[: len(self.lanes)])

    def _choose(self) -> list[int]:
        """The register bits of the next pass: what is needed first, and then what is not needed at all."""
        chosen: list[int] = []
        needed = dict.fromkeys(self._needed())
        free = [bit for bit in self.live if bit not in self.lanes and bit not in needed]
        for bit in [*needed, *free]:
            if bit in self.live and bit not in self.lanes and bit not in chosen and len(chosen) < self.room:
                chosen.append(bit)
        return sorted(chosen, key=lambda bit: self.place[bit])

    # -- passes -----------------------------------------------------------------------------------------------------

    def emit(self) -> None:
        """All passes; the last one writes the result."""
        done = False
        while not done:
            self.f.cut()
            self.registers = self._choose()
            with self._around():
                self._load()
                while self.at < len(self.steps) and self._step(self.steps[self.at]):
                    self.at += 1
                done = self.at == len(self.steps) and self._in_order()
                if done:
                    self._store(self.result, {bit: k for k, bit in enumerate(flat(self.network.coords))})
                else:
                    self._store(self.work, self._places_kept())
            self.source = self.work

    @contextmanager
    def _around(self) -> Iterator[None]:
        """Loops over the bits that are neither lanes nor registers, those of the highest places outermost."""
        rest = sorted(set(self.live) - set(self.lanes) - set(self.registers), key=lambda bit: self.place[bit])
        runs: list[list[int]] = []
        for bit in rest:
            if runs and bit == runs[-1][-1] + 1 and self.place[bit] == self.place[bit - 1] + 1:
                runs[-1].append(bit)
            else:
                runs.append([bit])
        self.loops = {}
        with ExitStack() as stack:
            for run in reversed(runs):
                loop = self.f.loop(const(I64, 0), const(I64, 1 << len(run)), const(I64, 1), at_least_once=True)
                var = LoopVar(stack.enter_context(loop), run[0], len(run))
                self.loops.update(dict.fromkeys(run, var))
            yield

    def _addresses(self, buffer: Buffer, places: dict[int, int]) -> list[Reg]:
        """Where each vector of the block lies."""
        f, type = self.f, llvm_type(self.elem)
        base = vector_of(f, self._evaluator().number([(bit, places[bit]) for bit in self.loops]), 0)
        start = f.gep(type, buffer.address, base)
        result = []
        for k in range(1 << len(self.registers)):
            offset = sum(1 << places[bit] for j, bit in enumerate(self.registers) if k >> j & 1)
            result.append(f.gep(type, start, const(I64, offset)) if offset else start)
        return result

    def _load(self) -> None:
        f, type = self.f, llvm_type(self.elem, 1 << len(self.lanes) if self.lanes else 0)
        self.vectors = [f.load(type, p, max(1, type.bits // 8)) for p in self._addresses(self.source, self.place)]
        self.axes = [self.place[bit] for bit in self.registers]

    def _store(self, buffer: Buffer, places: dict[int, int]) -> None:
        self.place = places
        for vector, address in zip(self.vectors, self._addresses(buffer, places), strict=True):
            self.f.store(vector, address, max(1, vector.type.bits // 8))

    def _places_kept(self) -> dict[int, int]:
        """The block goes back to where it was: what has changed is which bit lies where."""
        places = {bit: self.place[bit] for bit in self.loops if bit in self.live}
        places.update({bit: k for k, bit in enumerate(self.lanes)})
        places.update(zip(self.registers, self.axes, strict=True))
        return places

    # -- steps ------------------------------------------------------------------------------------------------------

    def _step(self, step: Step) -> bool:
        """Do a step, if the block has what it takes."""
        if isinstance(step, Pointwise):
            self.vectors = [self._pointwise(step, k) for k in range(len(self.vectors))]
            self.elem = step.op.result.elem
            return True
        if not self._have(step.bit):
            return False
        axis = self.registers.index(step.bit)
        if isinstance(step, Keep):
            self.vectors = [self._combined(step.op, a, b) for a, b in self._pairs(axis)]
            self.live.remove(step.bit)
            del self.registers[axis], self.axes[axis]
            return True
        for k in range(len(self.vectors)):
            if not k >> axis & 1:
                a, b = self.vectors[k], self.vectors[k | 1 << axis]
                self.vectors[k] = self._combined(step.low, a, b)
                self.vectors[k | 1 << axis] = self._combined(step.high, a, b)
        return True

    def _pairs(self, axis: int) -> list[tuple[Reg, Reg]]:
        """The vectors that differ in a register bit only."""
        indices = range(len(self.vectors))
        return [(self.vectors[k], self.vectors[k | 1 << axis]) for k in indices if not k >> axis & 1]

    def _combined(self, op: Op, a: Reg, b: Reg) -> Reg:
        return emit_region(self.f, op.regions[0][0], [a, b], self.s.env)[0]

    def _have(self, bit: int) -> bool:
        """Have a bit among those of the registers, if it is in the block and that is the way to go on."""
        if bit in self.registers:
            return True
        if bit not in self.lanes:
            return False
        if self.registers:
            self._change_places(self.lanes.index(bit), self._last_needed())
        elif self.loops:
            return False  # with other registers there is more to do at once
        else:
            self._split(self.lanes.index(bit))
        return True

    def _last_needed(self) -> int:
        """The axis of the register bit that is needed later than all others."""
        order = {bit: -k for k, bit in reversed(list(enumerate(self._needed())))}
        return min(range(len(self.registers)), key=lambda axis: order.get(self.registers[axis], -len(self.steps) - 99))

    def _change_places(self, position: int, axis: int) -> None:
        """Let a bit of the lanes and one of the registers change places."""
        low, high, lanes = exchange_masks(len(self.lanes), position, element_bits(self.elem))
        for k in range(len(self.vectors)):
            if not k >> axis & 1:
                a, b = self.vectors[k], self.vectors[k | 1 << axis]
                self.vectors[k] = self.f.shuffle(a, b, low)
                self.vectors[k | 1 << axis] = self.f.shuffle(a, b, high)
        goes = self.registers[axis]
        self.registers[axis] = self.lanes[position]
        self.lanes = [goes if k is None else self.lanes[k] for k in lanes]

    def _split(self, position: int) -> None:
        """Make two vectors of each, one for either value of a bit of the lanes."""
        count, bit = 1 << len(self.lanes), self.lanes.pop(position)
        halves = [[lane for lane in range(count) if lane >> position & 1 == value] for value in (0, 1)]
        self.vectors = [
            self.f.shuffle(v, None, half) if self.lanes else self.f.extract(v, half[0])
            for half in halves
            for v in self.vectors
        ]
        self.registers.append(bit)
        self.axes.append(len(self.lanes))  # the place in memory that the highest lane bit had
        self.width = len(self.lanes)

    def _in_order(self) -> bool:
        """Have the lanes of the result in the lanes, in its order; false where that takes another pass."""
        wanted = self._last_lanes()
        for bit in wanted:
            if bit in self.registers:
                position = next(k for k, b in enumerate(self.lanes) if b not in wanted)
                self._change_places(position, self.registers.index(bit))
        if not set(wanted) <= set(self.lanes):
            return False
        if self.lanes != wanted:
            positions = [self.lanes.index(bit) for bit in wanted]
            lanes = [sum((lane >> k & 1) << p for k, p in enumerate(positions)) for lane in range(1 << len(wanted))]
            self.vectors = [self.f.shuffle(v, None, lanes) for v in self.vectors]
            self.lanes = wanted
        return True

    # -- elementwise operations -------------------------------------------------------------------------------------

    def _evaluator(self) -> Evaluator:
        ev = Evaluator(self.f, self.s.env, tuple(self.lanes))
        ev.loops = self.loops
        return ev

    def _pointwise(self, step: Pointwise, k: int) -> Reg:
        """An elementwise operation on one vector of the block."""
        ev = self._evaluator()
        pins = {bit: pinned(bit, k >> j & 1) for j, bit in enumerate(self.registers)}
        args = []
        for a in step.op.args:
            if a is step.chain:
                args.append(self.vectors[k])
                continue
            known = self._known(a, step.coords, pins)
            if known is None:
                known = vector_of(self.f, ev.eval(a, substitute(step.coords, pins)), ev.lanes)
            args.append(known)
        return EMITTERS[step.op.name](self.f, step.op, args)

    def _known(self, value: Value, coords: Coords, pins: dict[int, int]) -> Reg | None:
        """The constant that an operand is in a vector of the block, where only the position decides."""
        if value not in self.tables:
            elements = table_of(value)
            self.tables[value] = None if elements is None else Table(elements)
        table = self.tables[value]
        bits = [] if table is None else [flat(coords)[axis] for axis in table.axes]
        if table is None or any(bit in self.loops for bit in bits):
            return None
        numbers = table.values[tuple(-pins[bit] & 1 if bit in pins else slice(None) for bit in bits)]
        left = [bit for bit in bits if bit not in pins]
        numbers = numbers.transpose([left.index(bit) for bit in reversed(self.lanes) if bit in left])
        numbers = numbers.reshape([2 if bit in left else 1 for bit in reversed(self.lanes)])
        type = llvm_type(value.elem, 1 << len(self.lanes) if self.lanes else 0)
        if numbers.size == 1:
            return const(type, wrap(int(numbers.reshape(-1)[0]), type.bits))
        spread = np.broadcast_to(numbers, (2,) * len(self.lanes)).reshape(-1)
        return const_lanes(type, [wrap(int(n), type.bits) for n in spread])


class Table:
    """The elements of a tile, by those bits of the position on which they depend."""

    def __init__(self, values: Array) -> None:
        count = log2(values.size)
        values = values.reshape((2,) * count)
        axes = list(reversed(range(count)))
        for place in reversed(range(count)):
            first = values.take(0, place)
            if np.array_equal(first, values.take(1, place)):
                values = first
                del axes[place]
        self.values, self.axes = values, axes


def table_of(value: Value) -> Array | None:
    """An integer tile whose elements depend on their positions only, computed here; None if there is more to it."""
    op = value.op
    if op is None or value.numel > LONGEST_TABLE or value.elem[0] != "i":
        return None
    if op.name == "tt.make_range":
        return np.arange(op.attrs.get("start", 0), op.attrs["end"]).astype(DTYPES[value.elem])
    if op.name == "arith.constant":
        data = op.attrs["value"]
        return None if isinstance(data, list) else np.full(value.shape, data, DTYPES[value.elem])
    if op.name not in ELEMENTWISE and op.name not in ("tt.broadcast", "tt.expand_dims", "tt.reshape"):
        return None
    operands: list[Array] = []
    for a in op.args:
        table = table_of(a)
        if table is None:
            return None
        operands.append(table)
    if op.name in ELEMENTWISE:
        return np.asarray(compute(op.name, operands, value.elem, op.attrs))
    return np.broadcast_to(operands[0], value.shape) if op.name == "tt.broadcast" else operands[0].reshape(value.shape)


def exchange_masks(lane_bits: int, position: int, bits: int) -> tuple[list[int], list[int], list[int | None]]:
    """How two vectors exchange a bit of the lanes for the bit that tells them apart: the lanes of the new first and
    second vector, and for each bit of the new lanes the one that it was, None for what comes in.

    Where one instruction takes every other piece of both vectors, the bits above move down by one.

    >>> exchange_masks(2, 1, 32)
    ([0, 1, 4, 5], [2, 3, 6, 7], [0, None])
    >>> exchange_masks(2, 0, 32)
    ([0, 2, 4, 6], [1, 3, 5, 7], [1, None])
    """
    count, step = 1 << lane_bits, 1 << position
    piece = bits << position
    if position + 1 < lane_bits and (piece == 32 or (piece == 128 and bits << lane_bits == 512)):
        low = []
        for lane in range(count):
            inside, at, second = lane & (step - 1), lane >> position & 1, lane >> position + 1 & 1
            low.append((lane & ~(4 * step - 1)) + inside + 2 * step * at + count * second)
        moved: list[int | None] = [*range(position), position + 1, None, *range(position + 2, lane_bits)]
        return low, [lane + step for lane in low], moved
    low = [lane if not lane & step else count + lane - step for lane in range(count)]
    return low, [lane + step for lane in low], [*range(position), None, *range(position + 1, lane_bits)]
