"""Loops, branches, early returns: bodies made of the same operations, with variables carried through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .elements import DTYPES, is_float, is_int, limits
from .memory import BOUND, MEMORY, choose_array, mask, offsets, place, reach, read, touch
from .operations import OPERATIONS
from .program import Branch, Loop, Returned, State, While
from .scope import Generator, Impossible, Var

MOST_ROUNDS = 6


def some(g: Generator, count: int, depth: int) -> None:
    """A few statements."""
    made = tried = 0
    while made < count and tried < 20 * count:
        tried += 1
        choices = [*(g.menu or (*OPERATIONS, *MEMORY))]
        if depth < 2:
            choices += [(lambda g: loop(g, depth), 4), (lambda g: branch(g, depth), 3), (lambda g: repeat(g, depth), 1)]
        if depth == 0:
            choices.append((leave, 1))
        operation = g.rng.choices([o for o, _ in choices], [w for _, w in choices])[0]
        if attempt(g, operation):
            made += 1


def attempt(g: Generator, operation: Callable[[Generator], None]) -> bool:
    """Try an operation; if it does not work out, nothing of it stays."""
    statements, variables = len(g.blocks[-1]), list(g.scopes[-1])
    try:
        operation(g)
        return True
    except Impossible:
        del g.blocks[-1][statements:]
        g.scopes[-1][:] = variables
        return False


def carried(g: Generator, most: int) -> list[Var]:
    """Variables that a region assigns anew, made ready: any value of the type, or within BOUND."""
    chosen: list[Var] = []
    for _ in range(g.rng.randrange(most + 1)):
        v = g.pick(lambda v: v.name.startswith("v") and all(v.name != c.name for c in chosen))
        start = ready(g, v)
        copy = g.define(  # a name of its own, so that the old one stays what it is
            f"{start.name} | False" if v.elem == "i1" else f"{start.name} + 0" + (".0" if is_float(v.elem) else ""),
            lambda s, start=start: s[start.name], start.shape, start.elem, start.lo, start.hi,
        )  # fmt: skip
        lo, hi = (-BOUND, BOUND) if is_float(v.elem) else limits(v.elem)
        chosen.append(g.rebound(copy, lo, hi))
    return chosen


def ready(g: Generator, v: Var) -> Var:
    return g.clamp(v, -BOUND, BOUND) if is_float(v.elem) else v


def assign(g: Generator, target: Var) -> None:
    """Give a carried variable a new value of its type and shape."""
    found = [v for v in g.visible() if v.elem == target.elem and v.shape == target.shape and v.name != target.name]
    recent = found[-6:]
    if not recent:
        raise Impossible("nothing to assign")
    source = ready(g, g.rng.choice(recent))

    def run(s: State) -> None:
        s.env[target.name] = s[source.name]

    g.line(f"{target.name} = {source.name}", run)


def body(
    g: Generator, into: list[Any], targets: list[Var], depth: int, rounds: int = 1, index: Var | None = None
) -> None:
    """Fill a region that assigns `targets`."""
    with g.block(into, rounds):
        if index is not None:
            g.scopes[-1].append(index)
        # What the targets' new values are made of: something that reads them, and whatever comes.
        for target in targets:
            attempt(g, lambda g, t=target: mix(g, t))
        some(g, g.rng.randrange(1, 5), depth + 1)
        order = list(targets)
        g.rng.shuffle(order)
        for target in order:
            attempt(g, lambda g, t=target: assign(g, t))


def mix(g: Generator, target: Var) -> None:
    """A new value from a carried one, perhaps turned around."""
    kind = g.rng.random() if g.menu is None else 1.0
    if len(target.shape) == 2 and target.shape[0] == target.shape[1] and kind < 0.3:
        g.define(
            f"tl.trans({target.name})",
            lambda s: s[target.name].T.copy(),
            target.shape,
            target.elem,
            target.lo,
            target.hi,
        )
        return
    if target.shape and kind < 0.45:
        g.define(
            f"tl.flip({target.name}, 0)",
            lambda s: np.flip(s[target.name], 0).copy(),
            target.shape,
            target.elem,
            target.lo,
            target.hi,
        )
        return
    if target.elem == "i1":
        g.define(f"~{target.name}", lambda s: ~s[target.name], target.shape, "i1", 0, 1)
        return
    other = [v for v in g.visible() if v.elem == target.elem and (v.shape == target.shape or v.shape == ())]
    y = g.clamp(g.rng.choice(other), -BOUND, BOUND) if is_float(target.elem) else g.rng.choice(other)
    g.define(f"{target.name} + {y.name}", lambda s: s[target.name] + s[y.name], target.shape, target.elem,
             target.lo + y.lo, target.hi + y.hi)  # fmt: skip


def bound_text(g: Generator, n: int) -> str:
    return g.scalar(n) if g.rng.random() < 0.6 else str(n)


def loop(g: Generator, depth: int) -> None:
    """`for`, with a trip count that is known or is not, and may be zero."""
    rng = g.rng
    if g.rounds > 12:
        raise Impossible("deep enough")
    step = rng.choice((1, 1, 1, 2, 3, -1))
    start = rng.choice((0, 0, 0, 1, 5, -2))
    trips = rng.choice((0, 1, 2, 3, 4, MOST_ROUNDS))
    stop = start + step * trips - (rng.choice((0, 1)) if step > 1 and trips else 0)
    if trips == 0 and rng.random() < 0.3:
        stop = start - 2 * step
    kind = rng.choice(("range", "range", "tl.range", "tl.static_range"))
    numbers = [start, stop] if step == 1 else [start, stop, step]
    text = bound_text if kind != "tl.static_range" else (lambda g, n: str(n))
    parts = [text(g, n) if k < 2 else str(n) for k, n in enumerate(numbers)]
    if kind == "tl.range" and rng.random() < 0.5:
        parts.append("num_stages=2")
    targets = carried(g, 3)
    span = range(start, stop, step)
    pointers = _walking_pointer(g, max(1, len(span))) if rng.random() < 0.4 else None
    name = g.fresh("i")
    inner: list[Any] = []
    index = Var(name, (), "i32", min([*span, 0]), max([*span, 0]))
    statement = Loop(name, f"{kind}({', '.join(parts)})", lambda s: span, inner)
    if kind == "tl.static_range":
        index = None  # type: ignore[assignment]
    body(g, inner, targets, depth, max(1, len(span)), index)
    if pointers is not None:
        front, back = pointers
        inner[:0] = front
        inner += back
    g.blocks[-1].append(statement)


def _walking_pointer(g: Generator, rounds: int) -> tuple[list[Any], list[Any]] | None:
    """Pointers that move with a loop: statements before it now, and those at the body's beginning and end."""
    array = choose_array(g, ("in", "inout"))
    shape = g.shape()
    off = offsets(g, shape, injective=False)
    step = g.rng.choice((1, 4, shape[-1], 16))
    where, index = place(g, array, off)
    touch(g, array, off.hi + 1 + step * rounds)
    p, k = g.fresh("p"), g.fresh("k")

    def begin(s: State) -> None:
        s.env[k] = np.asarray(0)

    g.line(f"{p} = {where}", begin)
    v = Var(g.fresh(), shape, array.elem, array.lo, array.hi)

    def fetch(s: State) -> None:
        s.env[v.name] = read(s, array, index(s) + int(s[k]) * step, None, 0)

    def advance(s: State) -> None:
        s.env[k] = s[k] + 1

    kept: list[Any] = []
    with g.block(kept):
        g.line(f"{v.name} = tl.load({p})", fetch)
        total = _accumulated(g, v)
        g.line(f"{p} += {step}", advance)
    front, back = kept[:-1], kept[-1:]
    del total
    return front, back


def _accumulated(g: Generator, v: Var) -> None:
    """Let what was loaded be seen: stored to a place of its own."""
    array = g.array(v.elem, "out", *limits(v.elem))
    off = offsets(g, v.shape, injective=True, plain=True)
    where, index = place(g, array, off)
    touch(g, array, off.hi + 1)

    def run(s: State) -> None:
        s.memory[array.name][index(s)] = s[v.name]

    g.line(f"tl.store({where}, {v.name})", run)


def repeat(g: Generator, depth: int) -> None:
    """`while`, counting down."""
    if g.rounds > 12:
        raise Impossible("deep enough")
    rounds = g.rng.choice((0, 1, 3))
    counter = g.define(
        f"tl.cast({bound_text(g, rounds)}, tl.int32)", lambda s: np.asarray(rounds, np.int32), (), "i32", 0, rounds
    )
    g.forget(counter.name)
    targets = carried(g, 2)
    inner: list[Any] = []

    def down(s: State) -> None:
        s.env[counter.name] = (s[counter.name] - np.int32(1)).astype(np.int32)

    body(g, inner, targets, depth, max(1, rounds))
    with g.block(inner):
        g.line(f"{counter.name} -= 1", down)
    g.blocks[-1].append(While(f"{counter.name} > 0", lambda s: bool(s[counter.name] > 0), inner))


def condition(g: Generator) -> tuple[str, Callable[[State], bool]]:
    """A scalar condition: of a variable, of the program's number, or known when compiling."""
    kind = g.rng.random()
    if kind < 0.25:
        k = g.rng.randrange(3)
        return f"pid == {k}", lambda s: s.pid == k
    if kind < 0.45:
        name = f"C{len(g.program.constants)}"
        value = g.rng.randrange(2)
        g.program.constants[name] = value
        return f"{name} == 1", lambda s: value == 1
    v = g.pick(lambda v: v.shape == () and (v.elem == "i1" or is_int(v.elem)))
    if v.elem == "i1":
        return v.name, lambda s: bool(s[v.name])
    n = g.rng.choice((0, 1, 5))
    zero = DTYPES[v.elem].type(n)
    return f"{v.name} > {n}", lambda s: bool(s[v.name] > zero)


def branch(g: Generator, depth: int) -> None:
    targets = carried(g, 3)
    text, test = condition(g)
    then: list[Any] = []
    other: list[Any] = []
    body(g, then, targets, depth)
    if g.rng.random() < 0.6:
        body(g, other, targets, depth)
    g.blocks[-1].append(Branch(text, test, then, other))


def leave(g: Generator) -> None:
    """`if ...: return`"""
    if g.rng.random() < 0.5 or len(g.program.body) < 6:
        raise Impossible("not yet")
    text, test = condition(g)

    def run(s: State) -> None:
        raise Returned

    inner: list[Any] = []
    with g.block(inner):
        g.line("return", run)
    g.blocks[-1].append(Branch(text, test, inner, []))


__all__ = ["some", "mask", "reach"]
_ = is_int
