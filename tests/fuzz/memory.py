"""Loads, stores and atomics: addresses of all kinds, masks of all kinds, arrays that are read and written.

Offsets are ordinary i32 (sometimes i64) tiles that stay inside the array, so that whatever is not masked off may be
touched; the arrays end at pages that may not. Some stores have several lanes with one address: on the CPU the last of
them stays. A GPU keeps any of them, so that kernels for it have none such (`Generator.apart`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .elements import DTYPES, EXACT, FLOATS, INTEGERS, NAMES, Array, is_float, is_int, limits
from .operations import is_tile, joined
from .program import Array1D, State
from .rounding import cast
from .scope import Generator, Impossible, Shape, Var

BOUND = 64  # of floats in arrays that are written


@dataclass
class Term:
    """One dimension's part of an offset."""

    text: str
    value: Array
    lo: int
    hi: int


def _aligned(n: int, axis: int, rank: int) -> tuple[str, tuple[int, ...]]:
    """An index range along one axis, as text after the range and as a NumPy shape."""
    if rank == 1:
        return "", (n,)
    index = ", ".join(":" if k == axis else "None" for k in range(rank))
    return f"[{index}]", tuple(n if k == axis else 1 for k in range(rank))


def _number(g: Generator, n: int) -> str:
    """A number in the text: itself, or a run-time argument with its value."""
    return g.scalar(n) if g.rng.random() < 0.3 and not g.literal else str(n)


def _term(g: Generator, n: int, axis: int, rank: int, stride: int, backward: bool) -> Term:
    ending, shape = _aligned(n, axis, rank)
    values = np.arange(n, dtype=np.int32).reshape(shape)
    text = f"tl.arange(0, {n}){ending}"
    if backward:
        text, values = f"({n - 1} - {text})", (n - 1 - values).astype(np.int32)
    if stride != 1:
        text = f"{text} * {_number(g, stride)}"
    if g.rng.random() < 0.05:
        text = f"({text}).to(tl.int64)"
    return Term(text, values * np.int32(stride), 0, (n - 1) * stride)


def offsets(g: Generator, shape: Shape, injective: bool, plain: bool = False) -> Var:
    """A tile of offsets that are not negative; all different if `injective`."""
    rng, rank = g.rng, len(shape)
    order = list(range(rank))[::-1]
    step = 1
    if not plain:
        if rng.random() < 0.4:
            rng.shuffle(order)
        step = rng.choice((1, 1, 1, 1, 2, 3))
    strides = [0] * rank
    for axis in order:
        strides[axis] = step
        step *= shape[axis]
        if not plain and rng.random() < 0.4:
            step += rng.choice((1, 2, 5, 8, 16))
    if not injective and rng.random() < 0.3:
        strides = [rng.choice((0, 1, 2, 3, s)) for s in strides]
    terms = [_term(g, n, k, rank, strides[k], not plain and rng.random() < 0.12) for k, n in enumerate(shape)]
    base = 0 if plain or rng.random() < 0.6 else rng.choice((1, 3, 4, 16, 33))
    text = " + ".join(t.text for t in terms)
    if base:
        text = f"{text} + {_number(g, base)}" if rng.random() < 0.5 else f"{_number(g, base)} + {text}"
    value = np.zeros(shape, np.int64) + base
    for t in terms:
        value = value + t.value
    lo, hi = base, base + sum(t.hi for t in terms)
    if not plain:
        text, value, lo, hi = _bent(g, text, value, lo, hi, injective)
    elem = "i64" if "int64" in text else "i32"
    if rng.random() < 0.1 and elem == "i32":
        text, elem = f"({text}).to(tl.int64)", "i64"
    fixed = np.ascontiguousarray(np.broadcast_to(value, shape)).astype(DTYPES[elem])
    return g.define(text, lambda s: fixed, shape, elem, int(fixed.min()), int(fixed.max()))


def stored_offsets(g: Generator, shape: Shape) -> Var:
    """Offsets for a store: mostly all different; where some are equal the last value stays (GPUs leave it open)."""
    g.literal = g.rng.random() < 0.15 and not g.apart  # strides at run time are taken to keep rows apart
    try:
        return offsets(g, shape, injective=not g.literal)
    finally:
        g.literal = False


def _bent(g: Generator, text: str, value: Array, lo: int, hi: int, injective: bool) -> tuple[str, Array, int, int]:
    """Perhaps a wrap, a division, or a permutation of the offsets."""
    rng = g.rng
    kind = rng.random()
    if kind < 0.1:
        n = rng.choice((hi + 1, hi + 7, 1 << hi.bit_length()))
        if not injective:
            n = max(1, rng.choice((n, hi // 2, hi // 3 + 1, 16, 7)))
        return f"({text}) % {_number(g, n)}", value % n, 0, n - 1
    if kind < 0.15 and not injective:
        n = rng.choice((2, 3, 4, 8))
        return f"({text}) // {_number(g, n)}", value // n, lo // n, hi // n
    if kind < 0.2:
        n = rng.choice((1, 3, 5, 8))
        return f"({text}) ^ {n}", value ^ n, 0, (1 << max(hi, n).bit_length()) - 1
    if kind < 0.25:
        top = 1 << hi.bit_length()
        odd = rng.choice((3, 5, 7, 11))
        return f"(({text}) * {odd}) & {top - 1}", (value * odd) & (top - 1), 0, top - 1
    return text, value, lo, hi


def found_offsets(g: Generator, shape: Shape | None) -> Var:
    """Offsets that come out of data."""
    x = g.pick(lambda v: is_int(v.elem) and v.elem in ("i32", "i64", "i16") and (shape is None or v.shape == shape))
    n = g.rng.choice((1, 7, 15, 63, 255))
    return g.define(f"{x.name} & {n}", lambda s: s[x.name] & DTYPES[x.elem].type(n), x.shape, x.elem, 0, n)


@dataclass
class Mask:
    """A mask, the bound of the offsets where it holds, and its text."""

    text: str
    value: Callable[[State], Array]
    below: int | None


def mask(g: Generator, off: Var) -> Mask | None:
    """Perhaps a mask for a tile of offsets."""
    rng = g.rng
    kind = rng.random()
    if kind < 0.35:
        return None
    if kind < 0.65:
        n = rng.choice((off.hi + 1, off.hi + 5, (off.lo + off.hi) // 2, off.hi, off.hi // 3, off.lo, 0, 1))
        n = max(n, 0)
        name = _number(g, n)
        form = rng.choice((f"{off.name} < {name}", f"{name} > {off.name}", f"{off.name} <= {name} - 1"))
        return Mask(form, lambda s: s[off.name] < n, n)
    if kind < 0.8 and is_tile(off):
        parts, tests = [], []
        for axis, n in enumerate(off.shape):
            ending, shape = _aligned(n, axis, len(off.shape))
            limit = rng.choice((n, n - 1, n // 2, 1, n + 3))
            index = np.arange(n).reshape(shape)
            if rng.random() < 0.2:
                parts.append(f"(tl.arange(0, {n}){ending} >= {limit // 2})")
                tests.append(index >= limit // 2)
            else:
                parts.append(f"(tl.arange(0, {n}){ending} < {_number(g, limit)})")
                tests.append(index < limit)
        whole = np.ones(off.shape, bool)
        for t in tests:
            whole = whole & t
        return Mask(" & ".join(parts), lambda s: whole, None)
    if kind < 0.85:
        n, k = rng.choice((2, 3, 7)), rng.choice((1, 2))
        return Mask(f"({off.name} % {n}) < {k}", lambda s: s[off.name] % n < k, None)
    m = g.pick(
        lambda v: (
            v.elem == "i1"
            and (v.shape == () or (len(v.shape) == len(off.shape) and joined(v.shape, off.shape) == off.shape))
        )
    )
    return Mask(m.name, lambda s: np.broadcast_to(s[m.name], off.shape), None)


def reach(off: Var, m: Mask | None) -> int:
    """How many elements an access needs."""
    return max(1, off.hi + 1 if m is None or m.below is None else min(off.hi + 1, m.below))


def place(g: Generator, array: Array1D, off: Var) -> tuple[str, Callable[[State], Array]]:
    """The address of an access, in text and as indices; makes room for it is the caller's."""
    if array.kind in ("out", "inout"):
        text = f"{array.name} + pid * {array.stride_name} + {off.name}"
        return text, lambda s: s[off.name].astype(np.int64) + s.pid * s.values[array.stride_name]
    return f"{array.name} + {off.name}", lambda s: s[off.name].astype(np.int64)


def choose_array(g: Generator, kinds: tuple[str, ...], elem: str | None = None) -> Array1D:
    """An array of one of these kinds: an old one or a new one."""
    rng = g.rng
    have = [
        a for a in g.program.arrays
        if a.kind in kinds and (elem is None or a.elem == elem) and (not is_float(a.elem) or a.special == g.special)
    ]  # fmt: skip
    if have and rng.random() < 0.6:
        return rng.choice(have)
    if len(g.program.arrays) > 9:
        if not have:
            raise Impossible("enough arrays")
        return rng.choice(have)
    kind = rng.choice(kinds)
    chosen = elem or rng.choice(FLOATS if g.special else ("i32", "f32", "i1", *INTEGERS, *FLOATS))
    if kind == "in":
        if is_int(chosen) and rng.random() < 0.5:
            lo, hi = limits(chosen)
            return g.array(chosen, kind, max(lo, -20), min(hi, 100))
        return g.array(chosen, kind)
    if is_float(chosen):
        return g.array(chosen, kind, -BOUND, BOUND)
    return g.array(chosen, kind)


def touch(g: Generator, array: Array1D, count: int) -> None:
    array.size = max(array.size, count)


def access_shape(g: Generator) -> Shape:
    tiles = [v.shape for v in g.visible() if is_tile(v) and v.numel <= g.max_numel]
    return g.rng.choice(tiles) if tiles and g.rng.random() < 0.6 else g.shape()


def load(g: Generator) -> None:
    array = choose_array(g, ("in", "in", "inout"))
    shape = access_shape(g) if g.rng.random() < 0.92 else ()
    if g.rng.random() < 0.12:
        off = found_offsets(g, None)
    elif shape == ():
        k = g.rng.randrange(40)
        off = g.define(f"tl.cast({_number(g, k)}, tl.int32)", lambda s: np.asarray(k, np.int32), (), "i32", k, k)
    else:
        off = offsets(g, shape, injective=False)
    m = mask(g, off)
    where, index = place(g, array, off)
    touch(g, array, reach(off, m))
    dtype = DTYPES[array.elem]
    least, most = array.lo, array.hi
    text, other = where, None
    if m is not None:
        text += f", mask={m.text}"
        least, most = min(least, 0), max(most, 0)
        if g.rng.random() < 0.6:
            lo, hi = limits(array.elem)
            n = g.rng.choice((0, 1, 3, max(lo, -7), min(hi, 100)))
            text += f", other={n}.0" if is_float(array.elem) else f", other={bool(n) if array.elem == 'i1' else n}"
            other = n
            least, most = min(least, n), max(most, n)

    def run(s: State) -> Array:
        return read(s, array, index(s), None if m is None else m.value(s), dtype.type(other or 0))

    g.define(f"tl.load({text})", run, off.shape, array.elem, least, most)


def read(s: State, array: Array1D, index: Array, active: Array | None, other: object) -> Array:
    memory = s.memory[array.name]
    if active is None:
        check(index, memory, array)
        return np.asarray(memory[index])
    active = np.broadcast_to(active, index.shape)
    check(index[active], memory, array)
    result = np.full(index.shape, other, memory.dtype)
    result[active] = memory[index[active]]
    return result


def write(s: State, array: Array1D, index: Array, active: Array | None, value: Array) -> None:
    memory = s.memory[array.name]
    value = np.broadcast_to(value, index.shape)
    if active is None:
        check(index, memory, array)
        memory[index] = value
        return
    active = np.broadcast_to(active, index.shape)
    check(index[active], memory, array)
    memory[index[active]] = value[active]  # the last one of equal places, as in NumPy


def check(index: Array, memory: Array, array: Array1D) -> None:
    if index.size and (index.min() < 0 or index.max() >= len(memory)):
        raise AssertionError(f"{array.name}: {index.min()}..{index.max()} of {len(memory)}: a fault of the fuzzer")


def fitting(g: Generator, v: Var, array: Array1D) -> Var:
    """A value as an array holds it."""
    if is_float(array.elem) and (v.lo < array.lo or v.hi > array.hi):
        lo, hi = limits(v.elem)
        v = g.clamp(v, max(lo, array.lo), min(hi, array.hi))
    elif is_float(v.elem) and array.elem != "i1":
        lo, hi = limits(array.elem)
        v = g.clamp(v, max(lo, limits(v.elem)[0]), min(hi, limits(v.elem)[1]))
    if array.elem == "i1" and v.elem != "i1":
        given = v
        return g.define(f"{given.name} > 0", lambda s: s[given.name] > 0, given.shape, "i1", 0, 1)
    if (v.elem == "i1" and array.elem != "i1") or g.rng.random() < 0.7:
        return g.converted(v, array.elem)
    return v  # converted by the store


def store(g: Generator) -> None:
    v = g.pick(lambda v: v.numel <= g.max_numel)
    same = v.elem if g.rng.random() < 0.7 else None
    array = choose_array(g, ("inout", "inout", "out"), same)
    v = fitting(g, v, array)
    if v.shape == ():
        n = g.rng.randrange(40)
        off = g.define(f"tl.cast({n}, tl.int32)", lambda s: np.asarray(n, np.int32), (), "i32", n, n)
    else:
        off = stored_offsets(g, v.shape)
    m = mask(g, off)
    where, index = place(g, array, off)
    touch(g, array, reach(off, m))

    def run(s: State) -> None:
        write(s, array, index(s), None if m is None else m.value(s), cast(s[v.name], array.elem))

    g.line(f"tl.store({where}, {v.name}{f', mask={m.text}' if m else ''})", run)


def update(g: Generator) -> None:
    """Load and store at one place with an operation between: what is updated in place."""
    array = choose_array(g, ("inout",))
    if array.elem == "i1":
        raise Impossible("numbers only")
    off = stored_offsets(g, access_shape(g))
    m = mask(g, off)
    where, index = place(g, array, off)
    touch(g, array, reach(off, m))
    pointers = g.fresh("p")
    g.line(f"{pointers} = {where}", lambda s: None)
    ending = f", mask={m.text}" if m else ""
    active = (lambda s: None) if m is None else m.value
    x = g.define(
        f"tl.load({pointers}{ending})",
        lambda s: read(s, array, index(s), active(s), DTYPES[array.elem].type(0)),
        off.shape, array.elem, min(0, array.lo), max(0, array.hi),
    )  # fmt: skip
    y = g.define(f"{x.name} + 1", lambda s: s[x.name] + DTYPES[array.elem].type(1), x.shape, x.elem, x.lo + 1, x.hi + 1)
    if is_float(array.elem):
        y = g.clamp(y, array.lo, array.hi)
    g.line(
        f"tl.store({pointers}, {y.name}{ending})",
        lambda s: write(s, array, index(s), active(s), s[y.name]),
    )


ATOMICS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def atomic(g: Generator) -> None:
    """An atomic on memory that all programs share; its results are not looked at."""
    rng = g.rng
    elem = rng.choice(("i32", "i64", "u32", "f32"))
    op = rng.choice(list(ATOMICS)) if elem != "f32" else "add"
    v = g.pick(lambda v: v.elem == elem or (elem == "f32" and v.elem in ("i8", "i32")))
    array = g.array(elem, "atomic", *((-1000, 1000) if elem == "f32" else limits(elem)))
    if elem == "f32":
        most = EXACT["f32"] // (v.numel * g.program.programs * g.rounds) - 1000
        v = g.converted(g.clamp(v, max(limits(v.elem)[0], -8), 8), "f32")
        if most < 8:
            raise Impossible("too many to add exactly")
    off = offsets(g, v.shape, injective=False) if v.shape else found_offsets(g, ())
    m = mask(g, off)
    touch(g, array, reach(off, m))
    where, index = place(g, array, off)
    function = ATOMICS[op]

    def run(s: State) -> None:
        at = np.broadcast_to(index(s), v.shape)
        check_active = np.broadcast_to(m.value(s), v.shape) if m else np.ones(v.shape, bool)
        check(at[check_active], s.memory[array.name], array)
        function.at(s.memory[array.name], at[check_active], s[v.name][check_active])  # type: ignore[attr-defined]

    g.line(f"tl.atomic_{op}({where}, {v.name}{f', mask={m.text}' if m else ''})", run)


def exchange(g: Generator) -> None:
    """An atomic whose result is looked at, on places of the program's own."""
    rng = g.rng
    elem = rng.choice(("i32", "i64", "u32", "f32"))
    op = rng.choice([*ATOMICS, "xchg", "cas"]) if elem != "f32" else rng.choice(("add", "xchg"))
    array = choose_array(g, ("inout",), elem)
    v = g.pick(lambda v: v.elem == elem)
    if elem == "f32":
        if op == "add":
            raise Impossible("bounds")
        v = g.clamp(v, array.lo, array.hi)
    off = stored_offsets(g, v.shape) if v.shape else g.define(
        "tl.cast(3, tl.int32)", lambda s: np.asarray(3, np.int32), (), "i32", 3, 3
    )  # fmt: skip
    m = mask(g, off) if op != "cas" else None
    touch(g, array, reach(off, m))
    where, index = place(g, array, off)
    lo, hi = (array.lo, array.hi) if m is None else (min(0, array.lo), max(0, array.hi))

    def run(s: State) -> Array:
        at = index(s)
        active = np.broadcast_to(m.value(s), at.shape) if m else np.ones(at.shape, bool)
        memory, value = s.memory[array.name], np.broadcast_to(s[v.name], at.shape)
        check(at[active], memory, array)
        old = np.zeros(at.shape, DTYPES[elem])
        for k in np.ndindex(at.shape):  # one lane after the other
            if active[k]:
                old[k] = memory[at[k]]
                if op == "xchg" or (op == "cas" and old[k] == 0):
                    memory[at[k]] = value[k]
                elif op != "cas":
                    memory[at[k]] = ATOMICS[op](old[k], value[k])
        return old

    if op == "cas":
        zero = f"tl.full({list(v.shape)}, 0, {NAMES[elem]})" if v.shape else f"tl.cast(0, {NAMES[elem]})"
        text = f"tl.atomic_cas({where}, {zero}, {v.name})"
    else:
        text = f"tl.atomic_{op}({where}, {v.name}{f', mask={m.text}' if m else ''})"
    g.define(text, run, v.shape, elem, lo, hi)


def keep(g: Generator, v: Var) -> None:
    """Store a variable so that it is looked at in the end."""
    array = g.array(v.elem, "out", *limits(v.elem))
    off = offsets(g, v.shape, injective=True, plain=True) if v.shape else g.define(
        "tl.cast(0, tl.int32)", lambda s: np.asarray(0, np.int32), (), "i32", 0, 0
    )  # fmt: skip
    where, index = place(g, array, off)
    touch(g, array, off.hi + 1)
    g.line(f"tl.store({where}, {v.name})", lambda s: write(s, array, index(s), None, s[v.name]))


MEMORY = [(load, 22), (store, 8), (update, 4), (atomic, 2), (exchange, 2)]
