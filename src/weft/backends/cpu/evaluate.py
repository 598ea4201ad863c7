"""Pulling values: what a tile's elements are at the current point of a loop nest.

A nest iterates over the elements of a tile, some bits of the iteration index being vector lanes, some pinned by
unrolling, the rest loop variables. `Evaluator.eval(value, coords)` emits what is needed to have `value` at `coords` and
says how it looks across the lanes (see forms.py). It walks the program backwards: elementwise operations evaluate their
operands at the same place, shape operations only rewrite coordinates (see coords.py), splats fall back to scalars, and
leaves are index ranges, buffers and loads.

What was emitted is remembered for each loop level, so that what does not depend on an inner loop is emitted outside of
it (`enter`, `leave`; nest.py decides when). Reads of a value whose consecutive elements run along unrolled bits instead
of lanes are done as whole vectors and transposed in registers (`_transposed`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.backends.cpu import access, forms, row_ends
from weft.backends.cpu.affine_ops import AFFINE_OPS
from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import ZERO, Coords, constant_of, live_bits, pinned, pinned_bit, unpin
from weft.backends.cpu.elementwise import EMITTERS, const_of, llvm_type, memory_type
from weft.backends.cpu.forms import Affine, Form, Pointer, Split, Uniform, Varying, form_of, int_const, vector_of
from weft.backends.cpu.program import Op, Value
from weft.backends.cpu.questions import operands_at
from weft.backends.cpu.row_walk import Walk
from weft.backends.llvm.elementwise import Asked, meaning_of
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I1, I64, Value as Reg, const, const_lanes, vec
from weft.base import Unsupported


@dataclass
class LoopVar:
    """A loop of a nest: iteration bits first..first+width-1 are the bits of `var`."""

    var: Reg
    first: int
    width: int


class Evaluator:
    """Emits values at points of one nest; `env` holds scalars and buffers already made."""

    def __init__(self, f: Function, env: dict[Value, Reg | Buffer], lane_bits: Sequence[int]) -> None:
        self.f, self.env = f, env
        self.lane_bits = tuple(lane_bits)
        self.lanes = 1 << len(lane_bits) if lane_bits else 0
        self.loops: dict[int, LoopVar | Walk] = {}
        self.scopes: list[dict[tuple[object, ...], Form]] = [{}]
        self.full: set[Value] = set()  # masks known to hold everywhere in this version of the nest
        self.identities: set[Value] = set()  # remainders known to change nothing in this version of the nest
        self.aligned: Callable[[Op, Coords, Sequence[int]], bool] = lambda op, coords, lanes: False
        # The bits that stay within a row.
        self.inside_row: Callable[[Op, Coords, Sequence[int]], dict[int, int]] = lambda op, coords, lanes: {}
        self.row_length: Callable[[Op], int] = lambda op: 0  # of rows at whose ends vectors are split; else 0
        self.loop: Callable[[Op, Coords], None] | None = None  # emits a fused loop, and has its results known
        self.streaming: dict[int, int] = {}  # ids of stores that go around the cache in this version: their alignment
        self.zips: dict[
            int, tuple[int, ...]
        ] = {}  # id of a write -> unrolled bits whose copies interleave to consecutive elements
        self.zipped: dict[int, list[tuple[Pointer, Reg]]] = {}  # those copies of these writes that there are
        self.transposes: dict[
            int, tuple[int, ...]
        ] = {}  # id of a leaf value -> unrolled bits along which it is consecutive

    def at_points(self) -> Evaluator:
        """An evaluator of scalars, at points of the same loops."""
        points = Evaluator(self.f, self.env, ())
        points.loops = self.loops
        return points

    @property
    def walk(self) -> Walk | None:
        """The loop along rows, inside of one."""
        return next((loop for loop in self.loops.values() if isinstance(loop, Walk)), None)

    # -- loop levels ------------------------------------------------------------------------------------------------

    def enter(self) -> None:
        """Go into a loop: what is emitted from now on is forgotten when it ends."""
        self.scopes.append({})

    def leave(self) -> None:
        """Come out of a loop."""
        self.scopes.pop()

    def _known(self, key: tuple[object, ...]) -> Form | None:
        for scope in reversed(self.scopes):
            form = scope.get(key)
            if form is not None:
                return form
        return None

    # -- coordinates ------------------------------------------------------------------------------------------------

    def number(self, pieces: Sequence[tuple[int, int]]) -> Form:
        """The integer (i64) whose bit `weight` is the iteration bit `source`, for all (source, weight)."""
        key = ("number", tuple(pieces), self.lane_bits)
        number = self._known(key)
        if number is not None:
            return number
        f = self.f
        constant = 0
        lanes = [0] * max(1, self.lanes)
        base: Reg = const(I64, 0)
        todo = []
        for source, weight in pieces:
            if source < 0:
                constant += constant_of(source) << weight
            elif source in self.lane_bits:
                position = self.lane_bits.index(source)
                for lane in range(self.lanes):
                    lanes[lane] += (lane >> position & 1) << weight
            else:
                todo.append((source, weight))
        todo.sort()
        i = 0
        while i < len(todo):
            source, weight = todo[i]
            loop = self.loops[source]
            n = 1
            if isinstance(loop, Walk):  # all bits of the axis are here
                first = weight - loop.bits.index(source)
                place = f.bin("shl nuw nsw", loop.position, const(I64, first)) if first else loop.position
                base = forms.fold_add(f, base, place)
                todo = [*todo[:i], *((s, w) for s, w in todo[i:] if s not in loop.bits)]
                continue
            while (
                i + n < len(todo) and todo[i + n] == (source + n, weight + n) and source + n < loop.first + loop.width
            ):
                n += 1
            term = loop.var
            shift = source - loop.first
            if shift:
                term = f.lshr(term, const(I64, shift))
            if shift + n < loop.width:
                term = f.and_(term, const(I64, (1 << n) - 1))
            if weight:
                term = f.bin("shl nuw nsw", term, const(I64, weight))
            base = forms.fold_add(f, base, term)
            i += n
        base = forms.fold_add(f, base, const(I64, constant))
        form: Form = Affine(base, ((None, tuple(lanes)),)) if any(lanes) else Uniform(base)
        self.scopes[-1][key] = form
        return form

    # -- values -----------------------------------------------------------------------------------------------------

    def eval(self, value: Value, coords: Coords) -> Form:
        """`value` at `coords`."""
        if not value.is_tile:
            return Uniform(self.scalar(value))
        if value in self.full:
            return Uniform(const(I1, 1))
        key = (value, coords, self.lane_bits)
        kept = self._known(key)
        if kept is not None:
            return kept
        held_as = self.env.get(value)
        if isinstance(held_as, Buffer):
            form = self.read(value, held_as, coords)
        else:
            if value.op is None:
                raise RuntimeError(f"no value for {value!r}")
            form = self._op(value.op, value, coords)
        self.scopes[-1][key] = form
        return form

    def scalar(self, value: Value) -> Reg:
        """The register of a scalar that has been emitted."""
        reg = self.env.get(value)
        if not isinstance(reg, Reg):
            raise RuntimeError(f"no scalar for {value!r}")
        return reg

    def _op(self, op: Op, value: Value, coords: Coords) -> Form:
        shape_op = SHAPE_OPS.get(op.name)
        if shape_op is not None:
            return shape_op(self, op, value, coords)
        if op.name == "tt.load":
            return self.load(op, coords)
        if op.name == "scf.for" and self.loop is not None:
            self.loop(op, coords)
            form = self._known((value, coords, self.lane_bits))
            assert form is not None
            return form
        if op.name == "scf.if":
            return self._either(op, value, coords)
        if op.name in DIVISIONS:
            form = self._divided(op, value, coords)
            if form is not None:
                return form
        if op.name in ("arith.addf", "arith.subf"):
            self._factors_first(op, coords)
        return self.elementwise(op, [self.eval(a, coords) for a in op.args])

    def _factors_first(self, op: Op, coords: Coords) -> None:
        """Evaluate what the products of a sum are of, and what is added to them, before the products.

        LLVM makes a product and a sum one instruction only within a block, and a load under a mask may be several.
        """
        products = [a.op for a in op.args if a.op is not None and a.op.name == "arith.mulf" and a.is_tile]
        for product in products:
            if product.result not in self.env:
                for factor in product.args:
                    self.eval(factor, coords)
        for value in op.args:
            if value.op not in products:
                self.eval(value, coords)

    def _either(self, op: Op, value: Value, coords: Coords) -> Form:
        """What a branch in a fused loop gives: both sides are computed, unless it is known which is taken."""
        sides = [region[0].ops[-1].args[value.index] for region in op.regions]
        taken = self.scalar(op.args[0])
        if taken.name in ("true", "false"):
            return self.eval(sides[taken.name == "false"], coords)
        yes, no = (vector_of(self.f, self.eval(side, coords), self.lanes) for side in sides)
        return form_of(self.f.select(taken, yes, no))

    def scalar_op(self, op: Op) -> Reg:
        """What an operation on scalars gives."""
        if op.name == "arith.constant":
            return const_of(op.result.elem, op.attrs["value"])
        if op.name == "tt.addptr":
            pointer, offset = self.scalar(op.args[0]), self.scalar(op.args[1])
            return self.f.gep(memory_type(op.args[0].pointee), pointer, self.elementwise_offset(offset))
        if op.name == "tt.bitcast" and op.result.elem == "ptr":
            return self.scalar(op.args[0])
        if op.name not in EMITTERS and op.name not in AFFINE_OPS:
            raise Unsupported(f"the operation `{op.name}`", "cpu", span=op.span)
        form = self.elementwise(op, [Uniform(self.scalar(a)) for a in op.args])
        assert isinstance(form, Uniform)
        return form.value

    def _divided(self, op: Op, value: Value, coords: Coords) -> Form | None:
        """A remainder or quotient with the form of its dividend: one that does not wrap, or aligned runs of lanes."""
        if value in self.identities:
            return self.eval(op.args[0], coords)
        walk = self.walk
        if walk is not None and op in walk.divisions:
            coord = walk.coordinate(coords)
            if coord is None:
                return None
            return walk.divided(self.f, op, lambda: self.number([(s, i) for i, s in enumerate(coord)]))
        aligned = self.lanes and self.aligned(op, coords, self.lane_bits)
        length = self.row_length(op) if self.lanes and not aligned else 0
        if not aligned and not length:
            return None
        row = self.inside_row(op, coords, self.lane_bits) if aligned else {}
        first = tuple(tuple(ZERO if s in row else s for s in coord) for coord in coords)
        x, y = self.eval(op.args[0], first), self.eval(op.args[1], coords)
        if not isinstance(x, Affine) or not isinstance(y, Uniform) or x.constant_lanes is None:
            return None
        if max(x.constant_lanes) >= self.lanes or min(x.constant_lanes) < 0:
            return None
        if not aligned:
            return self._at_row_ends(op, x, (op.args[0], coords), length, int_const(y.value) or 0)
        if (int_const(y.value) or 0) > 0:  # and what is divided is not negative
            whole = self.f.bin("urem" if "rem" in op.name else "udiv", x.base, y.value)
        else:
            whole = EMITTERS[op.name](self.f, op, [x.base, y.value])
        if "rem" not in op.name:
            return Uniform(whole)
        place = forms.cast_int(self.f, "trunc", self.number(tuple(row.items())), whole.type) if row else None
        return Affine(forms.fold_add(self.f, whole, place.value) if isinstance(place, Uniform) else whole, x.terms)

    def under_rest(self, mask: Form | None, coords: Coords) -> Form | None:
        """A mask for what is accessed at a place: without the lanes that lie behind the end of a row."""
        walk = self.walk
        if walk is None or walk.rest is None or not self.lanes:
            return mask
        coord = walk.coordinate(coords)
        if coord is None or set(self.lane_bits).isdisjoint(coord):
            return mask
        start = sum(constant_of(s) << i for i, s in enumerate(coord) if s < 0)
        key = ("rest", start, self.lane_bits)
        rest = self._known(key)
        if rest is None:
            rest = self.scopes[-1][key] = walk.before_end(self.f, start, self.lanes)
        if mask is None or (isinstance(mask, Uniform) and mask.value.name == "true"):
            return rest
        return Varying(self.f.and_(vector_of(self.f, mask, self.lanes), vector_of(self.f, rest, self.lanes)))

    def _at_row_ends(self, op: Op, x: Affine, where: tuple[Value, Coords], length: int, divisor: int) -> Form:
        """A quotient or remainder of an index by the length of some rows, split where a row ends."""
        keys = [(part, *where, length, self.lane_bits) for part in ("row", "place")]
        row, place = (self._known(key) for key in keys)
        if not isinstance(row, Split) or not isinstance(place, Split):
            row, place = row_ends.row_and_place(self.f, x, length, self.lanes)
            self.scopes[-1].update(zip(keys, (row, place), strict=True))
        if "rem" in op.name:
            return row_ends.remainder(self.f, row, place, divisor // length, length)
        return row_ends.quotient(self.f, row, divisor // length)

    def elementwise(self, op: Op, args: list[Form]) -> Form:
        """An elementwise operation on operands already evaluated."""
        f = self.f
        sides = self._sides(op, args)
        if sides is not None:
            in_first, first, second = sides
            return Split(in_first, self.elementwise(op, first), self.elementwise(op, second))
        quick = AFFINE_OPS.get(op.name)
        if quick is not None:
            form = quick(f, op, args)
            if form is not None:
                return form
        if op.name == "arith.select" and isinstance(args[0], Uniform) and args[0].value.name in ("true", "false"):
            return args[1] if args[0].value.name == "true" else args[2]
        emit = EMITTERS.get(op.name)
        if emit is None:
            raise Unsupported(f"the operation `{op.name}`", "cpu", span=op.span)
        lanes = 0 if all(isinstance(a, Uniform) for a in args) else self.lanes
        return form_of(emit(f, op, [vector_of(f, a, lanes) for a in args]))

    def _sides(self, op: Op, args: list[Form]) -> tuple[Reg, list[Form], list[Form]] | None:
        """The operands before and after the end of a row, where an operation on either side is one on scalars."""
        in_first = next((a.in_first for a in args if isinstance(a, Split)), None)
        if in_first is None or op.result.elem[0] != "i" or any(isinstance(a, (Varying, Pointer)) for a in args):
            return None
        if op.name not in AFFINE_OPS and not all(row_ends.is_scalar(a) for a in args):
            return None
        split = [isinstance(a, Split) and a.in_first is in_first for a in args]
        first = [a.first if at and isinstance(a, Split) else a for a, at in zip(args, split, strict=True)]
        second = [a.second if at and isinstance(a, Split) else a for a, at in zip(args, split, strict=True)]
        return in_first, first, second

    def elementwise_offset(self, offset: Reg) -> Reg:
        """A scalar offset as i64."""
        return forms.cast_scalar(self.f, "sext", offset, I64)

    # -- leaves -----------------------------------------------------------------------------------------------------

    def buffer_pointer(self, buffer: Buffer, coords: Coords) -> Pointer:
        """Where in a buffer the element at `coords` is."""
        pieces = [
            (s, w)
            for coord, weights in zip(coords, buffer.weights, strict=True)
            for s, w in zip(coord, weights, strict=True)
        ]
        return Pointer(buffer.address, self.number(pieces), memory_type(buffer.elem))

    def read(self, value: Value, buffer: Buffer, coords: Coords) -> Form:
        """A buffer's elements at `coords`."""
        transposed = self._transposed(value, coords, lambda c: self._read_now(buffer, c))
        return transposed if transposed is not None else self._read_now(buffer, coords)

    def _read_now(self, buffer: Buffer, coords: Coords) -> Form:
        pointer = self.buffer_pointer(buffer, coords)
        mask = self.under_rest(None, coords)
        form = access.load_lanes(self.f, memory_type(buffer.elem), pointer, self.lanes, mask, None)
        return self._from_memory(form, buffer.elem)

    def _from_memory(self, form: Form, elem: str) -> Form:
        if elem != "i1":
            return form
        return forms.applied(self.f, form, self.lanes, lambda v: self.f.icmp("ne", v, const(v.type, 0)))

    def load(self, op: Op, coords: Coords) -> Form:
        """A `tt.load` through a tile of pointers."""
        transposed = self._transposed(op.result, coords, lambda c: self._load_now(op, c))
        return transposed if transposed is not None else self._load_now(op, coords)

    def _load_now(self, op: Op, coords: Coords) -> Form:
        pointer = self.pointer(op.args[0], coords)
        mask = self.eval(op.args[1], coords) if len(op.args) > 1 else None
        other = self.eval(op.args[2], coords) if len(op.args) > 2 else None
        elem = op.result.elem
        if not isinstance(pointer.offset, Uniform):
            mask = self.under_rest(mask, coords)
        if other is not None and elem == "i1":
            other = self._widen_bool(other)
        if not self.lanes:
            mask = None if mask is None else Uniform(vector_of(self.f, mask, 0))
            other = None if other is None else Uniform(vector_of(self.f, other, 0))
        if not op.is_volatile:
            form = access.load_lanes(self.f, memory_type(elem), pointer, self.lanes, mask, other)
            return self._from_memory(form, elem)
        self.f.fence()  # masked loads and gathers cannot be volatile themselves
        form = access.load_lanes(self.f, memory_type(elem), pointer, self.lanes, mask, other)
        self.f.fence()
        return self._from_memory(form, elem)

    def _widen_bool(self, form: Form) -> Form:
        return forms.applied(self.f, form, self.lanes, lambda v: self.f.cast("zext", v, v.type.with_elem("i8")))

    def pointer(self, value: Value, coords: Coords) -> Pointer:
        """A pointer value as base and offset."""
        form = self.eval(value, coords)
        elem = memory_type(value.pointee or "i8")
        if isinstance(form, Pointer):
            return form
        if isinstance(form, Uniform):
            return Pointer(form.value, Uniform(const(I64, 0)), elem)
        # Pointers that differ lane by lane: offsets in bytes from address zero.
        v = vector_of(self.f, form, self.lanes)
        offsets = self.f.cast("ptrtoint", v, vec("i64", self.lanes))
        return Pointer(Reg(vec("ptr", 0), "null"), Varying(offsets), vec("i8", 0))

    # -- transposition ----------------------------------------------------------------------------------------------

    def _transposed(self, value: Value, coords: Coords, read: Callable[[Coords], Form]) -> Form | None:
        """Read along unrolled bits and exchange rows with columns, for all copies of the body at once.

        With lanes l and unrolled bits u, a read at pinned u=k whose consecutive elements run along u becomes 2^|u|
        vector reads, one for each value of the lane bits, and log2 rounds of exchanging one register bit with one lane
        bit (the transposition networks of Zhou et al., Linear Layouts, section on register/lane conversion). The
        results for every k are remembered.
        """
        run = self.transposes.get(id(value))
        if run is None or len(run) != len(self.lane_bits):
            return None
        pins = {pinned_bit(s): constant_of(s) for coord in coords for s in coord if s <= -10}
        if not all(b in pins for b in run) or not set(self.lane_bits) <= live_bits(coords):
            return None
        lane_bits, f = self.lane_bits, self.f
        n = len(run)
        free = unpin(coords, run)
        rows: list[Reg] = []
        self.lane_bits = run
        try:
            for k in range(1 << n):
                fixed = {b: pinned(b, k >> i & 1) for i, b in enumerate(lane_bits)}
                at = tuple(tuple(fixed.get(s, s) for s in coord) for coord in free)
                rows.append(vector_of(f, read(at), self.lanes))
        finally:
            self.lane_bits = lane_bits
        for bit in range(n):
            step = 1 << bit
            for i in (i for i in range(len(rows)) if not i & step):
                rows[i], rows[i + step] = exchange(f, rows[i], rows[i + step], bit)
        wanted: Form | None = None
        for k, row in enumerate(rows):
            fixed = {b: pinned(b, k >> i & 1) for i, b in enumerate(run)}
            at = tuple(tuple(fixed.get(s, s) for s in coord) for coord in free)
            form = Varying(row)
            self.scopes[-1][(value, at, lane_bits)] = form
            if at == coords:
                wanted = form
        return wanted


def exchange(f: Function, a: Reg, b: Reg, bit: int) -> tuple[Reg, Reg]:
    """Exchange bit `bit` of the lane number with the number, 0 or 1, of two vectors."""
    lanes, step = a.type.lanes, 1 << bit
    low = [lane if not lane & step else lanes + lane - step for lane in range(lanes)]
    high = [lane + step if not lane & step else lanes + lane for lane in range(lanes)]
    return f.shuffle(a, b, low), f.shuffle(a, b, high)


# -- operations on shapes, leaves and pointers -------------------------------------------------------------------------

DIVISIONS = frozenset({"arith.remsi", "arith.remui", "arith.divsi", "arith.divui"})

ShapeOp = Callable[[Evaluator, Op, Value, Coords], Form]


def _moved(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Form:
    """What an operation that only moves elements gives: an element of its operand."""
    ((source, at),) = operands_at(op, value, coords)
    return ev.eval(source, at)


def _nothing(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Form:
    """A value that is never looked at."""
    return Uniform(const(llvm_type(value.elem), 0))


def _constant(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Form:
    data = op.attrs["value"]
    if isinstance(data, list):
        raise Unsupported("a constant tile whose elements differ", "cpu", span=op.span)
    return Uniform(const_of(value.elem, data))


def _make_range(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Form:
    number = ev.number([(s, i) for i, s in enumerate(coords[0])])
    narrow = forms.cast_int(ev.f, "trunc", number, llvm_type(value.elem))
    assert narrow is not None
    start = op.attrs.get("start", 0)
    shifted = forms.add(ev.f, narrow, Uniform(const(llvm_type(value.elem), start)))
    assert shifted is not None
    return shifted


def _pick(ev: Evaluator, a: Value, b: Value, source: int, rest: Coords) -> Form:
    """`a` where the bit is 0, `b` where it is 1."""
    if source < 0:
        return ev.eval(b if constant_of(source) else a, rest)
    f = ev.f
    x, y = ev.eval(a, rest), ev.eval(b, rest)
    if source in ev.lane_bits:
        position = ev.lane_bits.index(source)
        mask = const_lanes(vec("i1", ev.lanes), [lane >> position & 1 for lane in range(ev.lanes)])
        return Varying(f.select(mask, vector_of(f, y, ev.lanes), vector_of(f, x, ev.lanes)))
    bit = ev.number([(source, 0)])
    assert isinstance(bit, Uniform)
    cond = f.cast("trunc", bit.value, I1)
    if isinstance(x, Uniform) and isinstance(y, Uniform):
        return Uniform(f.select(cond, y.value, x.value))
    return Varying(f.select(cond, vector_of(f, y, ev.lanes), vector_of(f, x, ev.lanes)))


def _join(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Form:
    return _pick(ev, op.args[0], op.args[1], coords[-1][0], coords[:-1])


def _cat(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Form:
    return _pick(ev, op.args[0], op.args[1], coords[0][-1], (coords[0][:-1], *coords[1:]))


def _half_of_product(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Form:
    """One of the results of a product in twice the bits."""
    name = f"arith.mulh{op.name[9:11]}" if value.index else "arith.muli"
    emit, asked = meaning_of(name), Asked(name, (value.elem,) * 2, value.elem)
    assert emit is not None
    args = [ev.eval(a, coords) for a in op.args]
    lanes = 0 if all(isinstance(a, Uniform) for a in args) else ev.lanes
    return form_of(emit(ev.f, asked, [vector_of(ev.f, a, lanes) for a in args]))


def _addptr(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Form:
    f = ev.f
    pointer = ev.pointer(op.args[0], coords)
    offset = ev.eval(op.args[1], coords)
    elem = memory_type(value.pointee)
    if pointer.elem != elem:  # offsets in bytes: scale
        wide = _wide(f, offset, ev.lanes)
        size = max(1, elem.bits // 8)
        scaled = forms.mul(f, wide, Uniform(const(I64, size)))
        if scaled is None:
            v = vector_of(f, wide, ev.lanes)
            scaled = Varying(f.mul(v, const(v.type, size)))
        offset = scaled
    return Pointer(pointer.base, add_offsets(f, pointer.offset, offset, ev.lanes), pointer.elem)


def _wide(f: Function, form: Form, lanes: int) -> Form:
    if isinstance(form, Split):
        return form.map(lambda side: _wide(f, side, lanes))
    if isinstance(form, (Uniform, Affine)):
        wide = forms.cast_int(f, "sext", form, I64)
        if wide is not None:
            return wide
    v = vector_of(f, form, lanes)
    return Varying(f.cast("sext", v, vec("i64", lanes))) if v.type.bits < 64 else Varying(v)


def add_offsets(f: Function, a: Form, b: Form, lanes: int) -> Form:
    """The sum of two element offsets, as i64 unless one is zero (32-bit vectors of offsets make cheaper gathers)."""
    if isinstance(a, Uniform) and int_const(a.value) == 0 and isinstance(b, Varying):
        return b
    x, y = _wide(f, a, lanes), _wide(f, b, lanes)
    for split, other in ((x, y), (y, x)):
        if isinstance(split, Split) and isinstance(other, (Uniform, Affine)):
            return split.map(lambda side: add_offsets(f, side, other, lanes))
    if isinstance(x, Split) and isinstance(y, Split) and x.in_first is y.in_first:
        return Split(x.in_first, add_offsets(f, x.first, y.first, lanes), add_offsets(f, x.second, y.second, lanes))
    total = forms.add(f, x, y)
    if total is not None:
        return total
    return Varying(f.add(vector_of(f, x, lanes), vector_of(f, y, lanes)))


def _pointer_cast(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Form:
    source = op.args[0]
    if value.elem != "ptr" or source.elem != "ptr":
        return ev.elementwise(op, [ev.eval(source, coords)])
    pointer = ev.pointer(source, coords)
    elem = memory_type(value.pointee)
    if elem.bits == pointer.elem.bits:
        return Pointer(pointer.base, pointer.offset, elem)
    if isinstance(pointer.offset, Uniform):
        return Uniform(ev.f.gep(pointer.elem, pointer.base, pointer.offset.value))
    return Varying(vector_of(ev.f, pointer, ev.lanes))


SHAPE_OPS: dict[str, ShapeOp] = {
    **dict.fromkeys(("tt.splat", "tt.expand_dims", "tt.broadcast", "tt.reshape", "tt.trans", "tt.split"), _moved),
    "arith.constant": _constant,
    "ub.poison": _nothing,
    "tt.make_range": _make_range,
    "tt.join": _join,
    "tt.cat": _cat,
    "arith.mului_extended": _half_of_product,
    "arith.mulsi_extended": _half_of_product,
    "tt.addptr": _addptr,
    "tt.bitcast": _pointer_cast,
}
