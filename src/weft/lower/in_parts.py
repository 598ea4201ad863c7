"""Rewrite a program so that it computes each value a few registers at a time, and holds less at once (held.py).

    %x = load global, 64 registers         %x0 = load global, 8 registers
    %y = extf %x                           %y0 = extf %x0
    %a = maxf %y[even], %y[odd]   becomes  %a0 = maxf %y0[even], %y0[odd]
    ...                                    ...
    store shared, %m                       %x1 = load global, 8 registers ...

Elementwise operations are lazy: they are written when an operation that is not lazy needs their registers, and only for
those registers. So the operands of a sum are written depth first, and the store of a tile becomes several, each right
after the values that it stores. Loads are written ahead of their uses, so that the program waits for memory once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from weft.base import each_once
from weft.base.remarks import InParts
from weft.ir.lane import ELEMENT_BITS, Block, Builder, LaneOp, LaneProgram, Value, is_elementwise

from .granules import WIDE
from .held import Plan, held_words, plan
from .parked import Parked, as_words, of_words
from .past_l1 import leave_l1
from .unloaded import between, is_dear, load_of, of_other, other_of, tile_of

ON_THE_WAY = 32
"""Words that a thread asks for at a time, where it has registers for them."""
LEAST_ON_THE_WAY = 8
"""And where it has few."""
FLOATS = ("f32", "f16", "bf16")
DEEPEST = 200
"""Operations one after the other, at most, that are written for one that wants the last."""
Place = tuple[Value, int, int]
"""(a value of the new program, which of its registers, in which part it was written)."""


def hold_less(program: LaneProgram) -> None:
    """Rewrite a program, or the iterations of its loops, where it holds more across a barrier than it has registers;
    buffers and barriers are placed."""
    for body in (program.body, *(region for op in program.body.ops if op.name == "for" for region in op.regions)):
        part = replace(program, body=body)
        chosen = plan(part)
        if chosen is None or _depth(part, chosen) > DEEPEST:
            continue
        done = f"{chosen.again} values are made again behind barriers"
        done += f", {chosen.words} words of each thread wait in shared memory" if chosen.words else ""
        why = f"a thread has room for {chosen.spare[0]} words of them across a barrier; {done}"
        program.remarks.add(InParts(None, "tiles are computed some registers at a time", why))
        _Writer(part, chosen).write()
        program.at_a_time = chosen.blocks
        if body is program.body and 2 * program.shared_bytes * chosen.blocks > program.machine.shared_bytes:
            leave_l1(program)


def _depth(program: LaneProgram, plan: Plan) -> int:
    depth: dict[Value, int] = {}
    for op in program.body.walk():
        for value in op.results:
            depth[value] = 1 + max((depth.get(x, 0) for x in op.operands if x in plan.lazy), default=0)
    return max(depth.values(), default=0)


class _Writer:
    """The new program so far."""

    def __init__(self, program: LaneProgram, plan: Plan) -> None:
        self.program, self.plan = program, plan
        self.build = Builder(Block())
        self.scopes: list[dict[tuple[Value, int], Place]] = [{}]
        """Where the registers of lazy values are, in this region and those around it."""
        self.before: set[tuple[Value, int]] = set()
        """What was written in parts before."""
        self.slots: dict[tuple[Value, int], int] = {}
        """The place of a parked register: words behind the first."""
        self.part = 0
        self.zero: Value | None = None
        """The hidden zero of this part, which makes operands new to compilers."""
        self.halves: tuple[Value, ...] = ()
        """The shift for the lower halves of words, and the mask of their upper halves, in this part."""
        self.parked: Parked | None = None
        self.open: list[Value] = []
        """Sums of parts of tiles that have not been used yet."""
        self.seen = 0
        """How many operations of the program `open` is up to date with."""
        self.pending: list[LaneOp] = []
        """Loads of tiles that have not been written as a whole."""

    def write(self) -> None:
        """Write all of it."""
        program, ops = self.program, self.program.body.ops
        if self.plan.words:
            self.parked = Parked(self.build, program, self.plan.words)
        for op in ops:
            self.build.span = op.span
            if op.name == "barrier" and op.attrs["scope"] == "block":
                self._wall(op)
            elif op.results and op.results[0] in self.plan.lazy:
                if op.name == "load":
                    self.pending.append(op)
            elif op.name == "store" and op.attrs["space"] == "global" and op.operands[1].count >= WIDE:
                self._force_loads(op)
                self._store(op)
            else:
                if op.regions or (op.name == "store" and op.attrs["space"] == "global"):
                    self._force_loads(op)
                self._as_it_is(op)
        before = {v for op in ops for v in op.results}
        ops[:] = self.build.block.ops
        gone = before.difference(v for op in ops for v in op.results)
        program.variables[:] = [v for v in program.variables if v.value not in gone]

    # -- what is not lazy ---------------------------------------------------------------------------------------------

    def _as_it_is(self, op: LaneOp) -> None:
        """An operation, its operands as they are now; of branches, their regions in the same way."""
        op.operands = tuple(self.whole(x) for x in op.operands)
        for value in self._from_outside(op.regions):
            if value.count < WIDE:
                self.whole(value)
        for region in op.regions:
            inner, outer = Block(region.arguments), self.build.block
            self.build.block = inner
            self.scopes.append({})
            for inner_op in region.ops:
                self.build.span = inner_op.span
                if not (inner_op.results and inner_op.results[0] in self.plan.lazy):
                    self._as_it_is(inner_op)
            self.scopes.pop()
            self.build.block = outer
            region.ops[:] = inner.ops
        self.build.block.ops.append(op)

    def _store(self, op: LaneOp) -> None:
        """A tile that is stored, some vectors at a time."""
        address, value, *mask = op.operands
        vector, granule = int(op.attrs["vector"]), self.plan.lazy.get(value, 1)
        step = max(1, granule // vector)
        parts = [range(k, min(k + step, address.count)) for k in range(0, address.count, step)]
        ahead = _Ahead(self, value)
        if ahead.loads:
            parts.sort(key=lambda part: ahead.is_parked(part[0] * vector))
        for k, part in enumerate(parts):
            registers = [r * vector + i for r in part for i in range(vector)]
            ahead.ask([r * vector + i for later in parts[k:] for r in later for i in range(vector)], k)
            operands = [self.get(address, part), self.get(value, registers)]
            operands += [self.whole(m) if m.count == 1 else self.get(m, part) for m in mask]
            self.build.add("store", operands, (), dict(op.attrs))

    def _wall(self, op: LaneOp) -> None:
        """A barrier: what is wanted behind it is computed, and what is not held is forgotten."""
        self._force_loads(None)
        live = self.plan.live[self.part]
        for value in reversed(live):  # sums before what they are of, so that this is used up as it comes
            granule = self.plan.lazy[value]
            for k in range(0, value.count, granule):
                if (value, k) not in self.slots:
                    self.get(value, range(k, min(value.count, k + granule)))
        lives = set(live)
        now = self.scopes[0]
        self.before |= now.keys()
        self.scopes[0] = {key: x for key, x in now.items() if key[0] in lives and key not in self.slots}
        self.build.block.ops.append(op)
        self.part += 1
        if self.plan.again:
            self.build.span = op.span
            self.zero, self.halves = self.build.add("zero", (), [("i32", 1)]).result, ()

    def _force_loads(self, op: LaneOp | None) -> None:
        """Write the loads that come before an operation that may write what they read."""
        written = _argument(op.operands[0]) if op is not None and op.name == "store" else None
        for load in list(self.pending):
            read = _argument(load.operands[0])
            if written is None or read is None or read is written:
                self.whole(load.result)
                self.pending.remove(load)

    # -- what is lazy -------------------------------------------------------------------------------------------------

    def whole(self, value: Value) -> Value:
        """All registers of a value."""
        return self.get(value, range(value.count))

    def get(self, value: Value, registers: Sequence[int]) -> Value:
        """Some registers of a value, written now if they are not there."""
        if value not in self.plan.lazy:
            return self.build.rename(value, list(registers))
        self.ensure(value, registers)
        return self._gathered([self._place(value, r) for r in registers])

    def _place(self, value: Value, register: int) -> Place:
        if value not in self.plan.lazy:
            return value, register, self.part
        return next(scope[value, register] for scope in reversed(self.scopes) if (value, register) in scope)

    def _is_there(self, value: Value, register: int) -> bool:
        return any((value, register) in scope for scope in self.scopes)

    def _gathered(self, places: Sequence[Place]) -> Value:
        """Registers of several values as one."""
        return self.build.gather([(v, r) for v, r, _ in places])

    def ensure(self, value: Value, registers: Iterable[int]) -> None:
        """Have some registers of a value be there, with those that are computed together with them."""
        granule = self.plan.lazy[value]
        groups = dict.fromkeys(r // granule for r in registers)
        wanted = [r for g in groups for r in range(g * granule, min(value.count, (g + 1) * granule))]
        missing = [r for r in wanted if not self._is_there(value, r)]
        if not missing:
            return
        parked = [r for r in missing if (value, r) in self.slots and (value, r) in self.before]
        if parked:
            self._unpark(value, parked)
            missing = [r for r in missing if not self._is_there(value, r)]
        if missing:
            self._make(value, missing)

    def _note(self, value: Value, registers: Sequence[int], part: Value) -> None:
        """Remember where registers are; park those that are to be parked."""
        scope = self.scopes[-1]
        for i, r in enumerate(registers):
            scope[value, r] = (part, i, self.part)
        if self._is_to_park(value, registers):
            self._park(value, registers, part)

    def _is_to_park(self, value: Value, registers: Sequence[int]) -> bool:
        """Once: not what is read back, and what every thread has."""
        return value in self.plan.parked and len(self.scopes) == 1 and (value, registers[0]) not in self.before

    def _make(self, value: Value, registers: list[int]) -> None:
        """Write what computes some registers."""
        op, b = value.op, self.build
        assert op is not None
        span, b.span = b.span, op.span
        if op.name in ("rename", "join"):
            self._alias(op, value, registers)
        elif op.name == "load":
            self._load(op, registers)
        elif op.regions:
            self._note(value, registers, self._branch(op, registers))
        elif op.name == "linear":
            attrs = {**op.attrs, "registers": tuple(op.attrs["registers"][r] for r in registers)}
            self._note(value, registers, b.add("linear", (), [("i32", len(registers))], attrs).result)
        elif op.name in ("pack", "unpack"):
            few = op.operands[0].count < value.count
            each = max(value.count, op.operands[0].count) // min(value.count, op.operands[0].count)
            if few:
                words = list(dict.fromkeys(r // each for r in registers))
                registers = [w * each + i for w in words for i in range(each)]
                source = self._source(op.operands[0], words, value, registers)
            else:
                source = self._source(
                    op.operands[0], [r * each + i for r in registers for i in range(each)], value, registers
                )
            self._note(value, registers, b.add(op.name, [source], [(value.elem, len(registers))], op.attrs).result)
        elif op.name == "arith.extf" and (again := self._words_again(op.operands[0], value, registers)) is not None:
            self._note(value, registers, self._widened(again))
        elif len(self.scopes) == 1 and is_dear(op) and (tile := tile_of(value, self.plan.lazy)) is not None:
            self._note(value, registers, self._guarded(op, registers, tile))
        else:
            attrs = op.attrs
            if op.name == "shuffle" and attrs["kind"] == "xor" and len(attrs["masks"]) == value.count:
                attrs = {**attrs, "masks": tuple(attrs["masks"][r] for r in registers)}
            given_all = [
                self._source(x, registers, value, registers) if x.count == value.count else self.whole(x)
                for x in op.operands
            ]
            part = b.add(op.name, given_all, [(value.elem, len(registers))], attrs).result
            self._note(value, registers, part)
        b.span = span

    def _guarded(self, op: LaneOp, registers: list[int], tile: Value) -> Value:
        """Registers that are computed only by warps that have loaded any of what they are made of."""
        load, b, value = load_of(tile), self.build, op.results[0]
        other = other_of(load) if load is not None else None
        assert load is not None and other is not None and tile.op is not None
        wanted = set(self.plan.live[self.part]) if self.part < len(self.plan.live) else set()
        for needed in (tile, *between(value, self.plan.lazy, wanted)):
            self.ensure(needed, registers)
        mask, vector = load.operands[1], int(load.attrs["vector"])
        accesses = dict.fromkeys(r // vector for r in registers)
        masks = [mask] if mask.count == 1 else [self.get(mask, [k]) for k in accesses]
        if tile.op.regions:
            masks.append(self.whole(tile.op.operands[0]))
        any_mask = masks[0]
        for more in masks[1:]:
            any_mask = b.op("arith.ori", [any_mask, more], "i1")
        condition = b.holds_somewhere(any_mask, self.program.lanes)
        self._pin()
        outer, taken, otherwise = b.block, Block(), Block()
        b.block = taken
        self.scopes.append({})
        b.add("yield", [self.get(value, registers)])
        b.block, self.scopes[-1] = otherwise, {}
        wholes = {x: self.whole(x) for x in self._scalars_of(value, tile)} | {tile: self.whole(other)}
        b.add("yield", [b.rename(of_other(b, value, wholes), [0] * len(registers))])
        self.scopes.pop()
        b.block = outer
        return b.add("if", [condition], [(value.elem, len(registers))], {"of_warp": True}, [taken, otherwise]).result

    def _scalars_of(self, value: Value, tile: Value) -> list[Value]:
        """What is the same for all registers, of all that something is computed from, beside a tile."""
        scalars, todo = list[Value](), [value]
        for source in each_once(todo):
            if source is tile:
                continue
            if source.op is None or source not in self.plan.lazy or source.count == 1:
                scalars.append(source)
            else:
                todo += source.op.operands
        return scalars

    def _alias(self, op: LaneOp, value: Value, registers: list[int]) -> None:
        """Registers that are those of others."""
        if op.name == "rename":
            source = op.operands[0]
            where = [(source, op.attrs["table"][r]) for r in registers]
        else:
            every = [(x, i) for x in op.operands for i in range(x.count)]
            where = [every[r] for r in registers]
        for source in dict.fromkeys(x for x, _ in where):
            if source in self.plan.lazy:
                self.ensure(source, [i for x, i in where if x is source])
        places = [self._place(source, i) for source, i in where]
        self.scopes[-1].update({(value, r): place for r, place in zip(registers, places, strict=True)})
        if self._is_to_park(value, registers):
            self._park(value, registers, self._gathered(places))

    def _source(self, x: Value, registers: Sequence[int], value: Value, parts_made: Sequence[int]) -> Value:
        """What something is computed from: in a form that is new to compilers, if it is computed again."""
        part = self.get(x, registers)
        if self.zero is None or not self._is_again(x, registers, value, parts_made[0]):
            return part
        words = self.build.op("arith.xori", [as_words(self.build, part), self.zero], "i32")
        return of_words(self.build, words, x.elem)

    def _is_again(self, x: Value, registers: Sequence[int], value: Value, register: int) -> bool:
        """Whether a register of something is computed again, of what was there in a part before."""
        if x not in self.plan.lazy or (value, register) not in self.before:
            return False
        return ELEMENT_BITS[x.elem] in (16, 32) and any(self._place(x, r)[2] != self.part for r in registers)

    def _words_again(self, x: Value, value: Value, registers: list[int]) -> Value | None:
        """Halves of bf16 of which something is computed again, two in a word; None of others."""
        if x.elem != "bf16" or value.elem != "f32" or len(registers) % 2 or len(self.scopes) > 1:
            return None
        part = self.get(x, registers)
        is_again = self.zero is not None and self._is_again(x, registers, value, registers[0])
        return as_words(self.build, part) if is_again else None

    def _widened(self, words: Value) -> Value:
        """Halves of bf16 as f32, by one instruction each that compilers do not take for the one of the part before: it
        is the distance and the mask that are new to them, not the word."""
        b = self.build
        if not self.halves and self.zero is not None:
            numbers = (b.constant("i32", number) for number in (16, -(1 << 16)))
            self.halves = tuple(b.op("arith.xori", [self.zero, number], "i32") for number in numbers)
        distance, mask = self.halves
        halves = (b.op("arith.shli", [words, distance], "i32"), b.op("arith.andi", [words, mask], "i32"))
        return b.op("arith.bitcast", [b.gather([(x, k) for k in range(words.count) for x in halves])], "f32")

    def _load(self, op: LaneOp, registers: list[int]) -> None:
        """What is wanted of a tile in memory, and what will be wanted next."""
        value, vector, granule = op.results[0], int(op.attrs["vector"]), self.plan.lazy[op.results[0]]
        words = min(ON_THE_WAY, max(self.plan.spare[self.part], LEAST_ON_THE_WAY))
        ahead = max(1, words * 32 // (granule * ELEMENT_BITS[value.elem]))
        groups = list(dict.fromkeys(r // granule for r in registers))
        groups += [g for g in range(groups[-1] + 1, groups[-1] + ahead) if g * granule < value.count]
        for g in groups:
            part = list(range(g * granule, min(value.count, (g + 1) * granule)))
            if self._is_there(value, part[0]):
                continue
            places = list(dict.fromkeys(r // vector for r in part))
            operands = [
                self.whole(x) if x.count == 1 else self.get(x, part if x.count == value.count else places)
                for x in op.operands
            ]
            loaded = self.build.add("load", operands, [(value.elem, len(part))], dict(op.attrs)).result
            self._note(value, part, loaded)

    def _branch(self, op: LaneOp, registers: list[int]) -> Value:
        """Some registers of what a branch gives."""
        value = op.results[0]
        for x in self._from_outside(op.regions):
            self.get(x, registers if x.count == value.count else range(x.count))
        condition, blocks = self.whole(op.operands[0]), []
        self._pin()
        outer = self.build.block
        for region in op.regions:
            self.build.block = Block()
            self.scopes.append({})
            yielded = self.get(region.ops[-1].operands[0], registers)
            self.build.add("yield", [yielded])
            self.scopes.pop()
            blocks.append(self.build.block)
            self.build.block = outer
        return self.build.add("if", [condition], [(value.elem, len(registers))], op.attrs, blocks).result

    def _pin(self) -> None:
        """Before a branch: have what is summed up be summed up, as LLVM does such things behind all branches, and holds
        all of what is to be summed up until then."""
        if len(self.scopes) > 1:
            return
        ops = self.build.block.ops
        used = {x for op in ops[self.seen :] for x in op.operands}
        floats = [x for op in ops[self.seen :] if is_elementwise(op.name) for x in op.results]
        self.open = [x for x in (*self.open, *floats) if x not in used and x.count < WIDE and x.elem in FLOATS]
        self.seen = len(ops)
        if self.open:
            self.build.add("keep", self.open)

    def _from_outside(self, regions: Sequence[Block]) -> list[Value]:
        """The lazy values of regions around that are used in these."""
        inside = {v for region in regions for op in region.walk() for v in op.results}
        used = dict.fromkeys(x for region in regions for op in region.walk() for x in op.operands)
        return [x for x in used if x in self.plan.lazy and x not in inside]

    # -- parking ------------------------------------------------------------------------------------------------------

    def _park(self, value: Value, registers: Sequence[int], part: Value) -> None:
        """Put those registers into shared memory that are to be there."""
        each, first = 32 // ELEMENT_BITS[value.elem], self.plan.places[value]
        parked = [i for i, r in enumerate(registers) if r < self.plan.parked[value] * each]
        if not parked or self.parked is None:
            return
        if value in self.plan.instead:
            self.ensure(self.plan.instead[value], [registers[i] for i in parked])
        for i in parked:
            self.slots[value, registers[i]] = first + registers[i] // each
        places = [self.slots[value, registers[i]] for i in parked[::each]]
        self.parked.store(places, as_words(self.build, self.build.rename(part, parked)))

    def _unpark(self, value: Value, registers: list[int]) -> None:
        assert self.parked is not None
        places = [self.slots[value, r] for r in registers[:: 32 // ELEMENT_BITS[value.elem]]]
        self._note(value, registers, of_words(self.build, self.parked.load(places), value.elem))


class _Ahead:
    """What is loaded for a store behind the last barrier: each part of it as early as there are registers for it.

    Weights are asked for some words at a time, and each time they come from L2. What is stored of the row leaves its
    registers to the weights of what is stored two or three parts later, so that they are on their way meanwhile: layer
    norms of 65,536 elements of bf16 by 16 warps take 150 us on an H200, and 154 without this. Done where two blocks run
    at a time.
    """

    def __init__(self, writer: _Writer, value: Value) -> None:
        self.writer, plan = writer, writer.plan
        self.loads: list[Value] = []
        self.live: list[Value] = []
        """What the stored tile is computed from: values loaded now, and values held across the last barrier."""
        if writer.part < len(plan.live) or not plan.live or plan.blocks < 2:
            return
        todo = [value]
        for source in each_once(todo):
            if source.count != value.count or source not in plan.lazy or source.op is None:
                continue
            if source in plan.live[-1]:
                self.live.append(source)
            elif source.op.name == "load":
                self.loads.append(source)
            elif not source.op.regions:
                todo += source.op.operands

    def is_parked(self, register: int) -> bool:
        """Whether a register of the row waits in shared memory: to store it leaves no register."""
        return any((value, register) in self.writer.slots for value in self.live)

    def ask(self, registers: Sequence[int], stored: int) -> None:
        """Load for some registers, the first of which are wanted now, when so many parts have been stored."""
        if not self.loads:
            return
        plan = self.writer.plan
        each = max(plan.lazy[x] for x in self.loads)
        words = sum(held_words(x, each) for x in self.loads)
        held = sum(held_words(x) - plan.parked.get(x, 0) for x in self.live)
        left = plan.spare[-1] + min(held, stored * sum(held_words(x, each) for x in self.live))
        groups = list(dict.fromkeys(r // each for r in registers))
        for g in groups[: max(1, left // words)]:
            for load in self.loads:
                self.writer.ensure(load, [g * each])


def _argument(address: Value) -> Value | None:
    """The pointer of the kernel's that an address is computed from."""
    todo, arguments = [address], set[Value]()
    for value in each_once(todo):
        if value.elem != "i64":
            continue
        if value.op is None:
            arguments.add(value)
        elif value.op.name in ("arith.addi", "rename"):
            todo += value.op.operands
    return arguments.pop() if len(arguments) == 1 else None
