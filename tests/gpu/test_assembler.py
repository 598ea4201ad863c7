"""What ptxas is known to assemble wrongly is right as Weft writes it; and random PTX, for a few seconds."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl
from assembler.known import KNOWN
from assembler.programs import generate
from assembler.run import Worker, inputs
from weft.runtime import gpu_arrays as cuda

AT_EVERY_LEVEL = {"lower bits of a floating-point number, stored"}
"""Faults that -O0 has too: `lower_bits` compares these with NumPy."""


@pytest.fixture(scope="module")
def worker() -> Worker:
    return Worker(raw=False)


@pytest.mark.parametrize("name", KNOWN)
def test_known_faults_are_avoided(worker: Worker, name: str) -> None:
    for seed in range(4):
        worker.card.give(inputs(seed))
        assert worker.different(KNOWN[name], mended=name in AT_EVERY_LEVEL) == []


@weft.jit
def lower_bits(x, out, N: tl.constexpr, WHOLE: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, (tl.load(x + i) + 1).to(WHOLE, bitcast=True).to(out.dtype.element_ty))


@pytest.mark.parametrize(
    ("kind", "whole", "part"),
    [
        ("f4", "i4", "i1"),
        ("f4", "i4", "i2"),
        ("f2", "i2", "i1"),
        ("f8", "i8", "i1"),
        ("f8", "i8", "i2"),
        ("f8", "i8", "i4"),
    ],
)
def test_lower_bits_of_floats_are_stored(kind: str, whole: str, part: str) -> None:
    for size in (128, 1024):
        x = (np.arange(size) / 7 - 5).astype(kind)
        out = cuda.to_device(np.zeros(size, part))
        lower_bits[(1,)](cuda.to_device(x), out, size, {"i2": tl.int16, "i4": tl.int32, "i8": tl.int64}[whole])
        np.testing.assert_array_equal(out.numpy(), (x + x.dtype.type(1)).view(whole).astype(part))


@weft.jit
def signs_in_pairs(x, y, a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    left = tl.join(-tl.load(x + i), tl.load(y + i))
    right = tl.join(tl.load(a + i), tl.load(b + i))
    tl.store(out + i[:, None] * 2 + tl.arange(0, 2)[None, :], left * right)


def test_signs_of_halves_in_pairs_are_kept() -> None:
    x, y, a, b = (np.random.default_rng(k).integers(1, 9, 1024).astype(np.float16) for k in range(4))
    out = cuda.to_device(np.zeros((1024, 2), np.float16))
    signs_in_pairs[(1,)](*(cuda.to_device(v) for v in (x, y, a, b)), out, 1024)
    np.testing.assert_array_equal(out.numpy(), np.stack([-x * a, y * b], 1))


def test_random_programs(worker: Worker) -> None:
    for batch in range(3):
        worker.card.give(inputs(batch))
        programs = [generate(batch * 100 + i) for i in range(100)]
        assert [programs[i].text("k") for i in worker.different(programs)] == []
