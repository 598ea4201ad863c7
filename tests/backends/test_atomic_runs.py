"""Atomic operations on neighbours, several elements at a time (backends/cpu/atomic_runs.py)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl

RNG = np.random.default_rng(0)
N = 64


@weft.jit
def changes(memory, x, hold, KIND: tl.constexpr, MASKED: tl.constexpr, N: tl.constexpr):
    place = tl.arange(0, N)
    value = tl.load(x + tl.program_id(0) * N + place)
    mask = tl.load(hold + tl.program_id(0) * N + place) != 0 if MASKED else None
    KIND(memory + place, value, mask)


KINDS: dict[str, tuple[Any, Any]] = {
    "add": (tl.atomic_add, np.add),
    "max": (tl.atomic_max, np.maximum),
    "min": (tl.atomic_min, np.minimum),
    "and": (tl.atomic_and, np.bitwise_and),
    "or": (tl.atomic_or, np.bitwise_or),
    "xor": (tl.atomic_xor, np.bitwise_xor),
}
FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
CASES = [
    *((kind, dtype) for kind in KINDS for dtype in (np.int32, np.uint32)),
    ("add", np.int64),
    ("max", np.uint64),
    *(("add", dtype) for dtype in FLOATS),
    ("max", np.float32),
]


@pytest.mark.parametrize("kind, dtype", CASES, ids=lambda x: x if isinstance(x, str) else np.dtype(x).name)
@pytest.mark.thinned(2)
def test_kinds(kind: str, dtype: Any) -> None:
    """Many programs change the same places, under a mask and without, at addresses aligned and not."""
    function, meaning = KINDS[kind]
    programs = 8
    for masked, first in ((True, 0), (False, 0), (True, 1)):
        memory = RNG.integers(0, 100, N + 3).astype(dtype)
        x = RNG.integers(0, 9, (programs, N)).astype(dtype)
        hold = RNG.integers(0, 2, (programs, N)).astype(np.int8)
        hold[0, 8:24] = 0  # whole runs that nobody changes
        want = memory.copy()
        part = want[first : first + N]
        for p in range(programs):
            changed = meaning(part, x[p]).astype(dtype)
            part[:] = np.where(hold[p] != 0, changed, part) if masked else changed
        changes[(programs,)](memory[first:], x, hold, function, masked, N)
        assert memory.tobytes() == want.tobytes()


@weft.jit
def exchanged(memory, x, N: tl.constexpr):
    tl.atomic_xchg(memory + tl.arange(0, N), tl.load(x + tl.arange(0, N)))


def test_exchange() -> None:
    memory, x = np.zeros(N, np.float32), RNG.standard_normal(N).astype(np.float32)
    exchanged[(1,)](memory, x, N)
    np.testing.assert_array_equal(memory, x)


@weft.jit
def counted(memory, N: tl.constexpr, TIMES: tl.constexpr):
    for _ in range(TIMES):
        tl.atomic_add(memory + tl.arange(0, N), tl.full([N], 1.0, tl.float32))
        tl.atomic_add(memory + 5, 1.0)


def test_no_change_is_lost() -> None:
    """All threads of the machine at the same places, sixteen elements and one of them in turns."""
    memory = np.zeros(16, np.float32)
    counted[(400,)](memory, 16, 50)
    want = np.full(16, 20000, np.float32)
    want[5] *= 2
    np.testing.assert_array_equal(memory, want)


def test_it_is_told() -> None:
    kernel = counted.warmup(np.zeros(16, np.float32), 16, 1, grid=(1,), target="cpu")
    told = [str(r) for r in kernel.remarks if r.kind == "vector access"]
    assert len(told) == 1
    assert " at a time, as they are neighbours" in told[0]
