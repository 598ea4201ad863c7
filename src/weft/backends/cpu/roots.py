"""What is done at each point of a nest: writing to a buffer, storing through pointers, atomics, printing and asserting.

Every root evaluates first and writes later (`prepare` gives the write), so that roots sharing a nest see memory as it
was.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.backends.cpu import access
from weft.backends.cpu.atomic_runs import COMBINE, Combine, bf16_sum, change_runs, run_length, swap
from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import Coords, constant_of, flat, pinned_bit, row_major
from weft.backends.cpu.elementwise import llvm_type, memory_type
from weft.backends.cpu.evaluate import Evaluator
from weft.backends.cpu.forms import Affine, Form, Pointer, Uniform, Varying, applied, form_of, vector_of
from weft.backends.cpu.program import Op, Value, element_bits
from weft.backends.llvm import casts
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I1, I64, Value as Reg, const, mangle, vec
from weft.ir import tt

At = Callable[[Coords], Coords]


def stored_form(ev: Evaluator, value: Value, form: Form) -> Form:
    """A value as it lies in memory: bools as bytes, pointers as numbers."""
    f = ev.f
    if value.elem == "i1":
        return applied(f, form, ev.lanes, lambda v: f.cast("zext", v, v.type.with_elem("i8")))
    return form_of(vector_of(f, form, ev.lanes)) if value.elem == "ptr" else form


class WriteRoot:
    """Write a value into a buffer; `keep` makes the buffer the value's own, to be read from then on.

    With `end`, an axis and a place along it (i64), nothing from there on has to be written.
    """

    def __init__(
        self,
        value: Value,
        buffer: Buffer,
        coords: Coords,
        shape: tuple[int, ...],
        keep: bool = True,
        end: tuple[int, Reg] | None = None,
    ) -> None:
        self.value, self.buffer, self.coords, self.shape, self.keep, self.end = value, buffer, coords, shape, keep, end
        self.op: Op | None = None

    def inputs(self) -> list[tuple[Value, Coords]]:
        return [(self.value, self.coords)]

    def accesses(self) -> list[tuple[Value | Buffer, Coords, int]]:
        return [(self.buffer, self.coords, element_bits(self.buffer.elem))]

    def prepare(self, ev: Evaluator, at: At) -> Callable[[], None]:
        coords = at(self.coords)
        form = self._converted(ev, stored_form(ev, self.value, ev.eval(self.value, coords)))
        pointer = ev.buffer_pointer(self.buffer, coords)
        bits = ev.zips.get(id(self))
        if bits is not None:
            return self._zipped(ev, bits, coords, pointer, vector_of(ev.f, form, ev.lanes))
        mask = ev.under_rest(None, coords)
        return lambda: access.store_lanes(ev.f, memory_type(self.buffer.elem), pointer, ev.lanes, form, mask)

    def _zipped(
        self, ev: Evaluator, bits: tuple[int, ...], coords: Coords, pointer: Pointer, here: Reg
    ) -> Callable[[], None]:
        """Write copies of the body whose elements alternate, two or four of them, as one vector."""
        values = {pinned_bit(s): constant_of(s) for coord in coords for s in coord if pinned_bit(s) is not None}
        number = sum(values[bit] << i for i, bit in enumerate(bits))
        copies = ev.zipped.setdefault(id(self), [])
        assert len(copies) == number
        copies.append((pointer, here))
        if number + 1 < 1 << len(bits):
            return lambda: None
        start = ev.zipped.pop(id(self))[0][0]
        vectors = [vector for _, vector in copies]
        while len(vectors) > 1:  # the first with the one half of all further on, ..., until all are one
            half = len(vectors) // 2
            lanes = vectors[0].type.lanes
            order = [k // 2 + (k % 2) * lanes for k in range(2 * lanes)]
            vectors = [ev.f.shuffle(vectors[i], vectors[i + half], order) for i in range(half)]
        both = Varying(vectors[0])
        total = vectors[0].type.lanes
        base = start.offset.base if isinstance(start.offset, Affine) else vector_of(ev.f, start.offset, 0)
        whole = Pointer(start.base, Affine(base, ((None, tuple(range(total))),)), start.elem)
        return lambda: access.store_lanes(ev.f, memory_type(self.buffer.elem), whole, total, both, None)

    def _converted(self, ev: Evaluator, form: Form) -> Form:
        """The value in the buffer's element type, where that is another (operands of a product are widened)."""
        source, target = self.value.elem, self.buffer.elem
        if source == target:
            return form

        def convert(v: Reg) -> Reg:
            if source[0] == "i":
                return ev.f.cast("sext", v, llvm_type(target, v.type.lanes))
            return casts.convert_float(ev.f, v, source, target)

        return applied(ev.f, form, ev.lanes, convert)


class OperationRoot:
    """What roots have in common that do one operation at each point, on its operands from `first` on."""

    def __init__(self, op: Op, first: int = 0) -> None:
        self.op: Op = op
        self.of, self.shape = op.args[first:], op.args[first].shape
        self.coords = row_major(self.shape)

    def inputs(self) -> list[tuple[Value, Coords]]:
        return [(a, self.coords) for a in self.of]

    def accesses(self) -> list[tuple[Value | Buffer, Coords, int]]:
        return []


class StoreRoot(OperationRoot):
    """`tt.store` through a tile of pointers."""

    def accesses(self) -> list[tuple[Value | Buffer, Coords, int]]:
        return [(self.op.args[0], self.coords, element_bits(self.op.args[1].elem))]

    def prepare(self, ev: Evaluator, at: At) -> Callable[[], None]:
        coords = at(self.coords)
        value = self.op.args[1]
        form = stored_form(ev, value, ev.eval(value, coords))
        pointer = ev.pointer(self.op.args[0], coords)
        mask = ev.eval(self.op.args[2], coords) if len(self.op.args) > 2 else None
        if mask is not None and not ev.lanes:
            mask = Uniform(vector_of(ev.f, mask, 0))
        mask = ev.under_rest(mask, coords)
        streaming = ev.streaming.get(id(self.op), 0)
        return lambda: access.store_lanes(ev.f, memory_type(value.elem), pointer, ev.lanes, form, mask, streaming)


class AtomicRoot(OperationRoot):
    """`tt.atomic_rmw` and its kind: neighbours together where that can be, else one lane after the other."""

    def __init__(self, op: Op, result: Buffer | None) -> None:
        super().__init__(op)
        self.result = result
        self.together = 1
        """How many lanes are changed by one instruction, where memory is aligned for it."""

    def prepare(self, ev: Evaluator, at: At) -> Callable[[], None]:
        coords = at(self.coords)
        op, f = self.op, ev.f
        pointer = ev.pointer(op.args[0], coords)
        rest = [ev.eval(a, coords) for a in op.args[1:]]
        lanes = ev.lanes
        addresses = vector_of(f, pointer, lanes)
        if lanes and not addresses.type.lanes:
            addresses = f.splat(addresses, lanes)
        values = [vector_of(f, r, lanes) for r in rest]
        slot = None if self.result is None else ev.buffer_pointer(self.result, coords)
        type = llvm_type(_element(op))
        combine = _combination(op)
        if lanes and slot is None and combine is not None:
            self.together = run_length(f, pointer, type, lanes)

        def write() -> None:
            if self.together > 1 and combine is not None:
                mask = values[1] if len(values) > 1 and values[1].name != "splat (i1 true)" else None
                change_runs(f, combine, _order(op), pointer, (values[0], mask), self.together, one)
                return
            olds: list[Reg] = []
            for lane in range(max(1, lanes)):
                address = f.extract(addresses, lane) if lanes else addresses
                olds.append(atomic(f, op, address, [f.extract(v, lane) if lanes else v for v in values]))
            if slot is not None:
                form: Form
                if lanes:
                    whole = Reg(type.with_lanes(lanes), "poison")
                    for lane, old in enumerate(olds):
                        whole = f.insert(whole, old, lane)
                    form = Varying(whole)
                else:
                    form = Uniform(olds[0])
                access.store_lanes(f, type, slot, lanes, form, None)

        def one(address: Reg, lane: Reg) -> None:
            atomic(f, op, address, [f.extract(v, lane) for v in values])

        return write


ORDERS = {1: "monotonic", 2: "acquire", 3: "release", 4: "acq_rel"}
"""LLVM's memory orders by the numbers of `tt.MemSemantic`."""


def atomic(f: Function, op: Op, address: Reg, args: list[Reg]) -> Reg:
    """One element's atomic; args are (value[, mask]), of a load ([mask]), or (compare, value). Gives the old value, 0
    where masked off."""
    type = llvm_type(_element(op))
    if op.name == "tt.atomic_cas":
        return _compare_and_swap(f, op, address, args)
    values = 0 if op.name == "tt.atomic_load" else 1
    mask = args[values] if len(args) > values else None

    def change() -> list[Reg]:
        order = f"{_order(op)}, align {max(1, type.bits // 8)}"
        if op.name == "tt.atomic_load":
            return [f.emit(type, f"load atomic {type}, {address} {order}")]
        if op.name == "tt.atomic_store":
            f.do(f"store atomic {args[0]}, {address} {order}")
            return [args[0]]
        return [_read_modify_write(f, op, address, args[0])]

    if mask is None or mask.name == "true":
        return change()[0]
    return f.if_else(mask, change, lambda: [const(type, 0)])[0]


def _combination(op: Op) -> Combine | None:
    """What an atomic operation that changes memory puts there."""
    if op.name != "tt.atomic_rmw":
        return None
    kind = _kind(op)
    return bf16_sum if kind == "fadd" and _element(op) == "bf16" else COMBINE.get(kind)


def _element(op: Op) -> str:
    """The type of what is in memory."""
    return op.result.elem if op.results else op.args[1].elem


def _order(op: Op) -> str:
    return ORDERS[op.attrs.get("sem", 4)]


def _kind(op: Op) -> str:
    """What LLVM calls the kind of an `atomicrmw`."""
    return tt.RMWOp(op.attrs["atomic_rmw_op"]).name.lower()


def _read_modify_write(f: Function, op: Op, address: Reg, value: Reg) -> Reg:
    if op.args[1].elem == "bf16":  # bits: widen, add and round in a compare-exchange loop
        return swap(f, bf16_sum, _order(op), address, value, None)
    return f.emit(
        value.type, f"atomicrmw {_kind(op)} {address}, {value} {_order(op)}, align {max(1, value.type.bits // 8)}"
    )


def _compare_and_swap(f: Function, op: Op, address: Reg, args: list[Reg]) -> Reg:
    compare, value = args
    original = compare.type
    if original.is_float:
        ints = vec(f"i{original.bits}", 0)
        compare, value = f.bitcast(compare, ints), f.bitcast(value, ints)
    type = compare.type
    pair_type = vec(f"{{ {type}, i1 }}", 0)
    order = _order(op)
    failure = "acquire" if order in ("acq_rel", "acquire") else "monotonic"
    pair = f.emit(pair_type, f"cmpxchg {address}, {compare}, {value} {order} {failure}, align {type.bits // 8}")
    return f.bitcast(f.emit(type, f"extractvalue {pair_type} {pair.name}, 0"), original)


class AssertRoot(OperationRoot):
    """`tt.assert`: where the condition fails (and the mask, if any, holds), report through the state's error slot."""

    def __init__(self, op: Op, report: Callable[[Reg], None]) -> None:
        super().__init__(op)
        self.report = report

    def prepare(self, ev: Evaluator, at: At) -> Callable[[], None]:
        f, coords = ev.f, at(self.coords)
        forms = [ev.eval(a, coords) for a in self.op.args]
        lanes = ev.lanes if any(not isinstance(form, Uniform) for form in forms) else 0
        args = [vector_of(f, form, lanes) for form in forms]
        failed = f.xor(args[0], const(args[0].type, 1))
        if len(args) > 1:
            failed = f.and_(failed, args[1])
        if lanes:
            rest = ev.under_rest(None, coords)  # what lies behind the end of a row is not asked about
            if rest is not None:
                failed = f.and_(failed, vector_of(f, rest, lanes))
            failed = f.call(f"llvm.vector.reduce.or.v{lanes}i1", I1, [failed])
        return lambda: self.report(failed)


class CheckRoot(OperationRoot):
    """`weft.check`: where the condition fails, report the first place, in row-major order, and the values there."""

    def __init__(self, op: Op, report: Callable[[Reg, list[Reg]], None]) -> None:
        super().__init__(op)
        self.report = report

    def prepare(self, ev: Evaluator, at: At) -> Callable[[], None]:
        f, lanes = ev.f, ev.lanes
        coords = at(self.coords)
        forms = [ev.eval(a, coords) for a in self.op.args]
        places = vector_of(f, ev.number([(source, weight) for weight, source in enumerate(flat(coords))]), lanes)
        if lanes and all(isinstance(form, Uniform) for form in forms):
            lanes, places = 0, f.extract(places, 0)
        holds, *values = (vector_of(f, form, lanes) for form in forms)
        broken = f.xor(holds, const(holds.type, 1))
        if not lanes:
            return lambda: f.when(broken, lambda: self.report(places, values))
        rest = ev.under_rest(None, coords)  # what lies behind the end of a row is not asked about
        if rest is not None:
            broken = f.and_(broken, vector_of(f, rest, lanes))

        def tell() -> None:
            far = const(places.type, (1 << 63) - 1)
            first = f.intrinsic("vector.reduce.umin", I64, [f.select(broken, places, far)], mangle(places.type))
            there = f.and_(broken, f.icmp("eq", places, f.splat(first, lanes)))
            none = const(places.type, 0)
            numbers = [f.intrinsic("vector.reduce.or", I64, [f.select(there, v, none)], mangle(v.type)) for v in values]
            self.report(first, numbers)

        any_broken = f.call(f"llvm.vector.reduce.or.v{lanes}i1", I1, [broken])
        return lambda: f.when(any_broken, tell)
