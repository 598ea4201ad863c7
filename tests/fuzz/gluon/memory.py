"""Shared memory: buffers that are stored to and loaded from through views, and copies that go on meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..elements import DTYPES, NAMES, Array, bits, is_float, is_int, limits
from ..memory import BOUND, choose_array, mask, offsets, place, reach, read, touch
from ..operations import is_tile
from ..program import State
from ..scope import Impossible, Shape
from . import layouts
from .scope import GluonGenerator, Memory

View = Callable[[Array], Array]


def allocate(g: GluonGenerator) -> None:
    """A buffer for a tile, which it holds from the start; or several, all of which hold it."""
    x = g.pick(is_tile)
    if is_float(x.elem) and (x.lo < -BOUND or x.hi > BOUND):
        x = g.clamp(x, -BOUND, BOUND)
    layout = g.named(layouts.shared(g.rng, x.shape, bits(x.elem) if x.elem != "i1" else 8))
    buffers = g.rng.choice((0, 0, 1, 2, 3))
    shape = (buffers, *x.shape) if buffers else x.shape
    lo, hi = (-BOUND, BOUND) if is_float(x.elem) else limits(x.elem)
    memory = Memory(g.fresh("s"), shape, x.elem, lo, hi, bool(buffers), "Padded" not in g.program.layouts[layout])
    head = f"{memory.name} = gl.allocate_shared_memory({NAMES[x.elem]}, {list(memory.shape)}, {layout}"
    if not buffers and g.rng.random() < 0.5:
        text = f"{head}, {x.name})"
    elif not buffers:
        text = f"{head})\n{memory.name}.store({x.name})"
    else:
        text = "\n".join([f"{head})", *(f"{memory.name}.index({k}).store({x.name})" for k in range(buffers))])

    def run(s: State) -> None:
        s.env[memory.name] = np.ascontiguousarray(np.broadcast_to(s[x.name], memory.shape)).copy()

    g.put(text, run)
    g.memories[-1].append(memory)


def _choose(g: GluonGenerator, wanted: Callable[[Memory], bool] = lambda m: True) -> Memory:
    found = [m for scope in g.memories for m in scope if wanted(m)]
    if not found:
        raise Impossible("no memory")
    return g.rng.choice(found)


def _buffer(g: GluonGenerator, memory: Memory) -> tuple[str, Callable[[State, Array], Array], Shape]:
    """One buffer of several: the same each time, or one that a number at run time chooses."""
    if not memory.buffers:
        return memory.name, lambda s, a: a, memory.shape
    count, shape = memory.shape[0], memory.shape[1:]
    numbers = [v for v in g.visible() if v.shape == () and v.elem == "i32" and v.lo >= 0]
    if numbers and g.rng.random() < 0.7:
        n = g.rng.choice(numbers)
        return f"{memory.name}.index({n.name} % {count})", lambda s, a: a[int(s[n.name]) % count], shape
    k = g.rng.randrange(count)
    return f"{memory.name}.index({k})", lambda s, a: a[k], shape


def view(g: GluonGenerator, memory: Memory) -> tuple[str, Callable[[State, Array], Array], Shape]:
    """Memory looked at another way: reshaped, a part of it, turned. The array it gives is a view too."""
    text, buffer, shape = _buffer(g, memory)
    steps: list[View] = []
    if memory.smooth and g.rng.random() < 0.25:
        cut = _halves(g, shape)
        text, shape = f"{text}.reshape({list(cut)})", cut
        steps.append(lambda a: a.reshape(cut))
    for _ in range(g.rng.choice((0, 0, 1, 2))):
        if len(shape) > 1 and g.rng.random() < 0.5:
            order = list(range(len(shape)))
            g.rng.shuffle(order)
            text, shape = f"{text}.permute({order})", tuple(shape[o] for o in order)
            steps.append(lambda a, order=tuple(order): a.transpose(order))  # type: ignore[misc]
        else:
            dim = g.rng.randrange(len(shape))
            length = 1 << g.rng.randrange(shape[dim].bit_length())
            start = length * g.rng.randrange(shape[dim] // length)
            text = f"{text}.slice({start}, {length}, {dim})"
            shape = (*shape[:dim], length, *shape[dim + 1 :])
            part = (slice(None),) * dim + (slice(start, start + length),)
            steps.append(lambda a, part=part: a[part])  # type: ignore[misc]

    def seen(s: State, a: Array) -> Array:
        a = buffer(s, a)
        for step in steps:
            a = step(a)
        return a

    return text, seen, shape


def _halves(g: GluonGenerator, shape: Shape) -> Shape:
    """One dimension in two, or all in one."""
    dim = g.rng.randrange(len(shape))
    if shape[dim] < 4 or g.rng.random() < 0.3 or len(shape) > 2:
        return (int(np.prod(shape)),)
    n = 1 << g.rng.randrange(1, shape[dim].bit_length() - 1)
    return (*shape[:dim], n, shape[dim] // n, *shape[dim + 1 :])


def load(g: GluonGenerator) -> None:
    memory = _choose(g)
    text, seen, shape = view(g, memory)
    layout = g.layout(shape)
    g.made(
        f"{text}.load({layout})", lambda s: seen(s, s[memory.name]).copy(), shape,
        memory.elem, memory.lo, memory.hi, layout,
    )  # fmt: skip


def store(g: GluonGenerator) -> None:
    memory = _choose(g)
    text, seen, shape = view(g, memory)
    x = g.pick(lambda v: v.shape == shape)
    if x.elem != memory.elem:
        if "i1" in (x.elem, memory.elem):
            raise Impossible("no number")
        if is_float(x.elem) and is_int(memory.elem):
            x = g.clamp(x, max(-BOUND, limits(memory.elem)[0], limits(x.elem)[0]), min(BOUND, limits(memory.elem)[1]))
        x = g.converted(x, memory.elem)
    x = g.clamp(x, memory.lo, memory.hi) if is_float(x.elem) else x

    def run(s: State) -> None:
        seen(s, s[memory.name])[...] = s[x.name]

    g.put(f"{text}.store({x.name})", run)


def reinterpret(g: GluonGenerator) -> None:
    """The bytes of a buffer of one dimension as elements of another width, where all lie one after the other."""
    x = g.pick(lambda v: len(v.shape) == 1 and is_int(v.elem) and v.numel >= 16)
    elem = g.rng.choice(("i8", "i16", "i32", "u32", "i64"))
    size = x.numel * bits(x.elem) // bits(elem)
    plain = g.named("gl.SwizzledSharedLayout(1, 1, 1, [0])")
    name, layout = g.fresh("s"), g.layout((size,))
    text = (
        f"{name} = gl.allocate_shared_memory({NAMES[x.elem]}, [{x.numel}], {plain}, {x.name})\n"
        f"{name}._reinterpret({NAMES[elem]}, [{size}], {plain}).load({layout})"
    )
    g.made(
        text, lambda s: np.ascontiguousarray(s[x.name]).view(DTYPES[elem]).copy(), (size,),
        elem, *limits(elem), layout,
    )  # fmt: skip


def copy(g: GluonGenerator) -> None:
    """Copies by cp.async of elements of four bytes and more, perhaps two groups of them, waited for in turn."""
    groups = g.rng.choice((1, 1, 2))
    elem = g.rng.choice(("i32", "f32", "u32", "i64"))
    array = choose_array(g, ("in",), elem)
    shape = g.shape()
    off = offsets(g, shape, injective=False)
    m = mask(g, off)
    where, index = place(g, array, off)
    shift = g.rng.choice((0, 1, 4, 16)) if groups == 2 else 0
    touch(g, array, reach(off, m) + shift)
    own = g.laid[off.name]
    layout, shared = g.layout(shape), g.named(layouts.shared(g.rng, shape, bits(elem)))
    ending = f", mask={g.met(f'({m.text}) & ({off.name} >= 0)', shape)[0]}" if m else ""
    if m is not None and g.met(m.text, shape)[1] not in ("", own):
        raise Impossible("the mask is elsewhere")
    name = g.fresh("s")
    lines = [f"{name} = gl.allocate_shared_memory({NAMES[elem]}, [{groups}, {', '.join(map(str, shape))}], {shared})"]
    for k in range(groups):
        moved = f" + {shift}" if k else ""
        lines.append(f"async_copy.async_copy_global_to_shared({name}.index({k}), {where}{moved}{ending})")
        lines.append("async_copy.commit_group()")
    texts = []
    for k in range(groups):
        lines.append(f"async_copy.wait_group({groups - 1 - k})")
        texts.append(f"{name}.index({k}).load({layout})")
        if k < groups - 1:
            lines.append(f"{name}_{k} = {texts.pop()}")
            texts.append(f"{name}_{k}")

    def run(s: State) -> Array:
        active = None if m is None else m.value(s)
        parts = [read(s, array, index(s) + (shift if k else 0), active, 0) for k in range(groups)]
        return parts[0] if groups == 1 else np.minimum(*parts)

    last = texts[0] if groups == 1 else f"gl.minimum({texts[0]}, {texts[1]})"
    lo, hi = (array.lo, array.hi) if m is None else (min(0, array.lo), max(0, array.hi))
    g.made("\n".join([*lines, last]), run, shape, elem, lo, hi, layout)


def barrier(g: GluonGenerator) -> None:
    g.put("gl.thread_barrier()", lambda s: None)


MEMORY: list[tuple[Any, int]] = [
    (allocate, 8), (load, 9), (store, 7), (reinterpret, 2), (copy, 4), (barrier, 1),
]  # fmt: skip
