"""What is known of numbers without running a kernel is so: random programs of 32 bits, compared with NumPy everywhere.

The same for what has wrapped: where it is marked, and the exact number.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.ir import Block, SSAValue

from weft.analysis.samples import Samples, some_places
from weft.ir import Builder, i32

Exact = np.ndarray[Any, np.dtype[np.int64]]
LINEAR: dict[str, tuple[Any, Any]] = {
    "add": (arith.AddiOp, np.add),
    "sub": (arith.SubiOp, np.subtract),
    "mul": (arith.MuliOp, np.multiply),
}
OTHER: dict[str, tuple[Any, Any]] = {
    "and": (arith.AndIOp, np.bitwise_and),
    "or": (arith.OrIOp, np.bitwise_or),
    "xor": (arith.XOrIOp, np.bitwise_xor),
    "min": (arith.MinSIOp, np.minimum),
    "max": (arith.MaxSIOp, np.maximum),
    "rem": (arith.RemSIOp, np.fmod),
    "div": (arith.DivSIOp, lambda a, b: np.trunc(a / b).astype(np.int64)),
}
INTERESTING = (0, 1, -1, 3, 16, 1000, 4194304, 1 << 30, -(1 << 31), (1 << 31) - 1)


def wrapped(exact: Exact) -> Exact:
    return exact.astype(np.uint64).astype(np.uint32).astype(np.int32).astype(np.int64)


def fits(exact: Exact) -> Exact:
    return np.asarray(exact == wrapped(exact))


def step(rng: random.Random, b: Builder, made: list[tuple[SSAValue, Exact, Exact]]) -> None:
    """Add one operation to a program: the value, its numbers, and where it or what it is linear in has wrapped."""
    value, numbers, bad = rng.choice(made)
    kind = rng.randrange(10)
    if numbers.ndim == 0:
        shape = rng.choice([(16,), (8, 16)])
        made.append((b.splat(value, shape), np.broadcast_to(numbers, shape), np.broadcast_to(bad, shape)))
    elif kind == 0 and numbers.ndim == 1:
        axis = rng.randrange(2)
        made.append((b.expand_dims(value, axis), np.expand_dims(numbers, axis), np.expand_dims(bad, axis)))
    elif kind == 1 and numbers.ndim == 2 and numbers.shape[0] == 1:
        shape = (8, numbers.shape[1])
        made.append((b.broadcast(value, shape), np.broadcast_to(numbers, shape), np.broadcast_to(bad, shape)))
    else:
        other, there, also = rng.choice([m for m in made if m[1].shape == numbers.shape])
        name = rng.choice([*LINEAR, *LINEAR, *OTHER])
        if name in LINEAR:
            op, meaning = LINEAR[name]
            exact = meaning(numbers, there)
            made.append((b.binary(op, value, other), wrapped(exact), bad | also | ~fits(exact)))
        elif name not in ("rem", "div") or (there > 0).all():
            op, meaning = OTHER[name]
            made.append((b.binary(op, value, other), wrapped(meaning(numbers, there)), np.zeros(numbers.shape, bool)))


def program(seed: int) -> list[tuple[SSAValue, Exact, Exact]]:
    rng = random.Random(seed)
    b = Builder(Block())
    made: list[tuple[SSAValue, Exact, Exact]] = []
    for start, size in ((0, 16), (8, 16), (0, 8)):
        made.append((b.make_range(start, start + size), np.arange(start, start + size), np.zeros(size, bool)))
    for number in rng.sample(INTERESTING, 4):
        made.append((b.constant(number, i32), np.asarray(number), np.asarray(False)))
    for _ in range(30):
        step(rng, b, made)
    return made


@pytest.mark.parametrize("places", [range, some_places])
def test_numbers_and_wraps_are_what_numpy_says(places: Any) -> None:
    wraps = 0
    for seed in range(100):
        samples = Samples(places)
        for value, numbers, bad in program(seed):
            known = samples.of(value)
            at = np.ix_(*(list(places(n)) for n in numbers.shape))
            assert known.numbers is not None
            np.testing.assert_array_equal(known.numbers, numbers[at], str(seed))
            for wrap in known.wraps:
                assert not (wrap.where & ~bad[at]).any(), seed
                assert not fits(wrap.exact[wrap.where]).any(), seed
            wraps += bool(known.wraps)
    assert wraps > 80
