"""Questions about lazily evaluated tiles, answered without emitting anything.

What would be visited to have a value at some coordinates; which bits of the iteration index it depends on; how far an
address moves with each bit (its *steps*); what power of two divides it. The form of every access, and with it the
choice of lanes, follows from the steps:

    a_ptr + row * stride + column       steps {column bits: 1, 2, 4, ...; row bits: None, because the stride is not
    known}

Steps are about forms of addresses, and so have rules of their own; between which bounds an integer lies and what
divides it is asked of the table of operations (`ops/bounds.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.analysis import parts_first
from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import Coords, broadcast_coords, live_bits, reshaped, trans_coords
from weft.backends.cpu.program import Op, Value, element_bits
from weft.backends.llvm.values import Value as Reg
from weft.ops.bounds import MOST, Bounds, any_of, fitted, two_part
from weft.ops.table import ROWS, bounds_of


def operands_at(op: Op, value: Value, coords: Coords) -> list[tuple[Value, Coords]]:
    """The operands of a lazily evaluated operation and where they are needed to have `value` at `coords`."""
    name = op.name
    if name in ("arith.constant", "tt.make_range"):
        return []
    if name == "scf.for":
        return [(v, coords) for v in (*op.args[3:], *op.regions[0][0].ops[-1].args)]
    if name == "scf.if":
        return [(region[0].ops[-1].args[value.index], coords) for region in op.regions]
    if name == "tt.splat":
        return [(op.args[0], ())]
    if name == "tt.expand_dims":
        axis = op.attrs["axis"]
        return [(op.args[0], coords[:axis] + coords[axis + 1 :])]
    if name == "tt.broadcast":
        return [(op.args[0], broadcast_coords(op.args[0].shape, coords))]
    if name == "tt.reshape":
        return [(op.args[0], reshaped(coords, op.args[0].shape))]
    if name == "tt.trans":
        return [(op.args[0], trans_coords(op.attrs["order"], coords))]
    if name == "tt.join":
        return [(a, coords[:-1]) for a in op.args]
    if name == "tt.cat":
        return [(a, (coords[0][:-1], *coords[1:])) for a in op.args]
    if name == "tt.split":
        return [(op.args[0], (*coords, (-2 if value.index else -1,)))]
    return [(a, coords if a.is_tile else ()) for a in op.args]


Steps = dict[int, "int | None"]
Widened = tuple[Value, Coords, Steps, bool]  # an integer that moves by these steps, and whether it is signed
MOVES = ("tt.expand_dims", "tt.broadcast", "tt.reshape", "tt.trans", "tt.split")


class Analysis:
    """What a nest would touch, found without emitting anything."""

    def __init__(self, env: dict[Value, Reg | Buffer], known: dict[Value, Bounds] | None = None) -> None:
        self.env = env
        self.known = known or {}  # of parameters, as the launch promises it, and of counters of loops
        self._steps: dict[tuple[Value, Coords], Steps] = {}
        self._deps: dict[tuple[Value, Coords], frozenset[int]] = {}
        self._exact: dict[tuple[Value, Coords], tuple[Steps, dict[tuple[Value, Coords, bool], Steps]] | None] = {}
        self._aligns: dict[tuple[int, ...], dict[tuple[Value, Coords], Bounds]] = {}
        self._bounds: dict[Value, Bounds] = {}

    def walk(self, inputs: Iterable[tuple[Value, Coords]]) -> dict[tuple[Value, Coords], None]:
        """Every (tile, coords) that evaluation will visit, operands first."""
        order: dict[tuple[Value, Coords], None] = {}
        visiting: set[tuple[Value, Coords]] = set()
        stack = [(item, False) for item in reversed(list(inputs)) if item[0].is_tile]
        while stack:
            item, finished = stack.pop()
            if finished:
                order[item] = None
            elif item not in visiting:
                visiting.add(item)
                stack.append((item, True))
                value, coords = item
                if value not in self.env and value.op is not None:
                    stack += [(i, False) for i in operands_at(value.op, value, coords) if i[0].is_tile]
        return order

    def deps(self, value: Value, coords: Coords) -> frozenset[int]:
        """The iteration bits that a value really depends on."""
        if not value.is_tile:
            return frozenset()
        key = (value, coords)
        bits = self._deps.get(key)
        if bits is None:
            op = value.op
            if value in self.env or op is None or op.name == "tt.make_range":
                bits = frozenset(live_bits(coords))
            else:
                bits = frozenset().union(*(self.deps(v, c) for v, c in operands_at(op, value, coords)))
                if op.name == "tt.join":
                    bits |= live_bits(coords[-1:])
                elif op.name == "tt.cat":
                    bits |= live_bits(coords[:1])
            self._deps[key] = bits
        return bits

    def steps(self, value: Value, coords: Coords) -> Steps:
        """For each iteration bit, how far an integer or an address (in elements) moves with it: a number, or None if
        unknown.
        """
        if not value.is_tile:
            return {}
        key = (value, coords)
        steps = self._steps.get(key)
        if steps is None:
            steps = self._steps[key] = self._find_steps(value, coords)
        return steps

    def _find_steps(self, value: Value, coords: Coords) -> Steps:
        op = value.op
        if value in self.env or op is None:
            return dict.fromkeys(live_bits(coords))
        name = op.name
        if name == "tt.make_range":
            return {s: 1 << i for i, s in enumerate(coords[0]) if s >= 0}
        if name in ("tt.splat", "arith.constant"):
            return {}
        parts = [self.steps(v, c) for v, c in operands_at(op, value, coords)]
        if name in ("arith.addi", "tt.addptr"):
            return _sum(parts[0], parts[1], 1)
        if name == "arith.subi":
            return _sum(parts[0], parts[1], -1)
        if name == "arith.muli":
            for a, b in ((0, 1), (1, 0)):
                if not parts[b]:
                    factor = constant_int(op.args[b])
                    return {k: None if s is None or factor is None else s * factor for k, s in parts[a].items()}
        if name in REMAINDERS or name in QUOTIENTS:
            if parts[1]:
                return dict.fromkeys(self.deps(value, coords))
            (_, _), (divisor, at) = operands_at(op, value, coords)
            alignment = self.align(divisor, at, ())
            length = constant_int(op.args[1]) or 0
            if length >= SHORTEST_ROW:  # vectors lie within a row, or are split at its end: see row_ends.py
                alignment = max(alignment, min(64, 1 << length.bit_length() - 1))
            if name in QUOTIENTS:
                return {k: None for k, s in parts[0].items() if s is None or abs(s) >= alignment}
            # most likely a wrap around the end of an array, which few tiles reach: see versions.py
            if alignment == 1:
                return parts[0]
            return {k: s if s is not None and abs(s) < alignment else None for k, s in parts[0].items()}
        if name in (*CASTS, *MOVES, "tt.bitcast"):
            return parts[0]
        if name in ("tt.join", "tt.cat") or op.regions:
            return dict.fromkeys(self.deps(value, coords))
        if name == "tt.load":
            parts[1:2] = []  # masks hold for most vectors, and say nothing of what is loaded there
        return dict.fromkeys(bit for part in parts for bit in part)  # also of what is loaded: as its address does

    def exact_steps(self, value: Value, coords: Coords, needs: list[Widened]) -> Steps | None:
        """As `steps`, but true of every element, in the arithmetic of the value's own type; None where that is not
        known. What was widened on the way, and must not have wrapped for this to hold, is added to `needs`.
        """
        for item in parts_first((value, coords), self._exact, self._exact_parts):
            wide: dict[tuple[Value, Coords, bool], Steps] = {}
            steps = self._find_exact(*item, wide)
            self._exact[item] = None if steps is None else (steps, wide)
        exact = self._exact[value, coords]
        if exact is None:
            return None
        needs += [(v, c, s, signed) for (v, c, signed), s in exact[1].items()]
        return exact[0]

    def _exact_parts(self, item: tuple[Value, Coords]) -> list[tuple[Value, Coords]]:
        value, coords = item
        op = value.op
        if op is None or value in self.env or op.name not in EXACT or not self.deps(value, coords):
            return []
        return operands_at(op, value, coords)

    def _find_exact(self, value: Value, coords: Coords, wide: dict[tuple[Value, Coords, bool], Steps]) -> Steps | None:
        if not self.deps(value, coords):
            return {}
        op = value.op
        if op is None or value in self.env:
            return None
        name = op.name
        if name == "tt.make_range":
            return {s: 1 << i for i, s in enumerate(coords[0]) if s >= 0}
        if name not in EXACT:
            return None
        parts = operands_at(op, value, coords)

        def of(part: tuple[Value, Coords]) -> Steps | None:
            exact = self._exact[part]
            if exact is None:
                return None
            wide.update(exact[1])
            return exact[0]

        if name in ("arith.addi", "arith.subi"):
            first, second = of(parts[0]), of(parts[1])
            if first is None or second is None:
                return None
            return _wrapped(_sum(first, second, -1 if name == "arith.subi" else 1), value)
        if name in ("arith.muli", "arith.shli"):
            a, b = (1, 0) if name == "arith.muli" and constant_int(op.args[0]) is not None else (0, 1)
            factor, inner = constant_int(op.args[b]), of(parts[a])
            if name == "arith.shli":
                factor = 1 << factor if factor is not None and 0 <= factor < element_bits(value.elem) else None
            if inner is None or factor is None:
                return None
            return _wrapped({k: s * factor for k, s in inner.items() if s is not None}, value)
        inner = of(parts[0])
        if name == "arith.trunci" and inner is not None:
            return _wrapped(inner, value)
        if inner and name.startswith("arith.ext"):
            wide[(*parts[0], name == "arith.extsi")] = inner
        return inner

    def injective(self, value: Value, coords: Coords) -> bool:
        """Whether no two points have the same integer or address, as far as the program tells: a stride that is only
        known at run time is taken to keep rows apart.
        """
        if not self._linear(value, coords):
            return False
        steps = self.steps(value, coords)
        if set(steps) != live_bits(coords):
            return False
        reach = 0
        for step in sorted(abs(s) for s in steps.values() if s is not None):
            if step <= reach:
                return False
            reach += step
        return True

    def _linear(self, value: Value, coords: Coords) -> bool:
        """Whether a value is a sum of index ranges times scalars."""
        for v, c in self.walk([(value, coords)]):
            if not c or not live_bits(c):
                continue
            if v in self.env or v.op is None or v.op.name not in LINEAR:
                return False
            if v.op.name == "arith.muli" and all(self.steps(*o) for o in operands_at(v.op, v, c)):
                return False
        return True

    def align(self, value: Value, coords: Coords, lanes: Sequence[int]) -> int:
        """A power of two that divides an integer wherever the bits in `lanes` are zero."""
        aligns = self._aligns.setdefault(tuple(lanes), {})
        for item in parts_first((value, coords), aligns, self._align_parts):
            aligns[item] = self._find_align(item, lanes, aligns)
        return aligns[value, coords].multiple

    def _align_parts(self, item: tuple[Value, Coords]) -> list[tuple[Value, Coords]]:
        value, coords = item
        op = value.op
        if op is None or (value in self.env and value.is_tile) or not _is_computed(op):
            return []
        return operands_at(op, value, coords)

    def _find_align(
        self, item: tuple[Value, Coords], lanes: Sequence[int], aligns: dict[tuple[Value, Coords], Bounds]
    ) -> Bounds:
        value, coords = item
        op, bits = value.op, element_bits(value.elem)
        if op is None:
            return self.known.get(value) or any_of(bits)
        if op.name == "arith.constant":
            return _constant(op, bits)
        if value in self.env and value.is_tile:
            return any_of(bits)
        if op.name == "tt.make_range":
            moving = [1 << i for i, s in enumerate(coords[0]) if s not in lanes and s != -1]
            return any_of(bits, min([two_part(op.attrs.get("start", 0)), *moving]))
        return _made(op, [aligns[part] for part in self._align_parts(item)], bits)

    def pointer_align(self, value: Value, coords: Coords, lanes: Sequence[int]) -> int:
        """As `align`, for the offset of a pointer from the scalar pointer it was made of, in elements."""
        op = value.op
        if not value.is_tile:
            return MOST
        if op is None or value in self.env:
            return 1
        parts = operands_at(op, value, coords)
        if op.name == "tt.addptr":
            return min(self.pointer_align(*parts[0], lanes), self.align(*parts[1], lanes))
        if op.name in ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans"):
            return self.pointer_align(*parts[0], lanes)
        return 1

    def nonnegative(self, value: Value) -> bool:
        """Whether an integer is known not to be negative (arithmetic on indices is taken not to overflow)."""
        answers = self._bounds
        for v in parts_first(value, answers, lambda v: v.op.args if v.op is not None and _is_computed(v.op) else ()):
            answers[v] = self._find_bounds(v)
        return answers[value].low >= 0

    def _find_bounds(self, value: Value) -> Bounds:
        op, bits = value.op, element_bits(value.elem)
        if op is None:
            return self.known.get(value) or any_of(bits)
        if op.name == "arith.constant":
            return _constant(op, bits)
        if op.name in ("tt.make_range", "tt.get_program_id", "tt.get_num_programs"):
            return Bounds(0, any_of(bits).high)
        if op.name in ("arith.muli", "arith.shli") and any((constant_int(a) or 0) >= 1 << 24 for a in op.args):
            return any_of(bits)  # a hash rather than an index: it wraps
        if op.name in ("arith.addi", "arith.subi") and any(abs(constant_int(a) or 0) >= 1 << bits - 2 for a in op.args):
            return any_of(bits)  # nor is this one
        return _made(op, [self._bounds[a] for a in op.args] if _is_computed(op) else [], bits)


SHORTEST_ROW = 16
"""Elements of a row from which addresses are taken to go along it."""
SPREAD = ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans")


def _is_computed(op: Op) -> bool:
    """Whether what is known of an integer follows from its operands."""
    return op.name in SPREAD or (op.name in ROWS and ROWS[op.name].bounds is not None)


def _made(op: Op, operands: list[Bounds], bits: int) -> Bounds:
    """What is known of an integer from what is known of those that it is computed from, or is a copy of."""
    if not _is_computed(op):
        return any_of(bits)
    if op.name in SPREAD:
        return operands[0]
    return bounds_of(op.name, operands, bits, element_bits(op.args[0].elem), wrapping=False)


def _constant(op: Op, bits: int) -> Bounds:
    data = op.attrs["value"]
    return fitted(Bounds.exact(data), bits) if isinstance(data, int) else any_of(bits)


CASTS = ("arith.extsi", "arith.extui", "arith.trunci")
EXACT = frozenset(("arith.addi", "arith.subi", "arith.muli", "arith.shli", *CASTS, *MOVES))
"""Integers of which every step follows from those of their operands."""
LINEAR = frozenset(
    (*MOVES, "tt.make_range", "tt.splat", "tt.addptr", "arith.constant", "arith.addi", "arith.subi", "arith.muli",
     "arith.extsi", "arith.extui")
)  # fmt: skip
REMAINDERS = ("arith.remsi", "arith.remui")
QUOTIENTS = ("arith.divsi", "arith.divui")


def _wrapped(steps: Steps, value: Value) -> Steps:
    """Steps as numbers of the value's own type."""
    bits = element_bits(value.elem)
    half = 1 << (bits - 1)
    wrapped = {k: (s + half) % (1 << bits) - half for k, s in steps.items() if s is not None}
    return {k: s for k, s in wrapped.items() if s}


def _sum(a: Steps, b: Steps, sign: int) -> Steps:
    result = dict(a)
    for bit, step in b.items():
        have = result.get(bit, 0)
        result[bit] = None if step is None or have is None else have + sign * step
    return {k: s for k, s in result.items() if s != 0}


def constant_int(value: Value) -> int | None:
    """The integer that a (splat) value is known to be."""
    op = value.op
    while op is not None and op.name in ("tt.splat", "tt.broadcast", "tt.expand_dims", "arith.extsi"):
        op = op.args[0].op
    if op is not None and op.name == "arith.constant" and isinstance(op.attrs["value"], int):
        return op.attrs["value"]
    return None


def buffer_steps(buffer: Buffer, coords: Coords) -> Steps:
    """As `Analysis.steps` for a buffer's address."""
    return {
        s: 1 << w
        for coord, weights in zip(coords, buffer.weights, strict=True)
        for s, w in zip(coord, weights, strict=True)
        if s >= 0
    }


def consecutive_run(steps: Steps) -> tuple[int, ...]:
    """The bits along which an address is consecutive, in order."""
    by_step = {step: bit for bit, step in steps.items() if step is not None and step > 0}
    run = []
    step = 1
    while step in by_step:
        run.append(by_step[step])
        step *= 2
    return tuple(run)
