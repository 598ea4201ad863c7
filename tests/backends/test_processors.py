"""Older processors than the one at hand: the kernels of tests/kernels are compiled for them in turn, with stores around
the cache on some, and the results stay right.
"""

from __future__ import annotations

import dataclasses
import platform
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from fuzz.compare import AVX, AVX2, SSE2, SSE42, Variant
from kernels import load_cases
from kernels.running import run_case
from one_in import one_in
from weft.compiler import host_cpu

X86 = platform.machine().lower() in ("x86_64", "amd64")
CASES = load_cases("weft")
NARROW = {"vector_bits": 128}
NO_FMA = {"sse2": SSE2, "sse4.2": SSE42, "avx": AVX}


def processors() -> list[Variant]:
    """Others than this one, that this one can run."""
    if not X86:
        return [Variant(NARROW, streams=True)]
    old = [Variant(SSE2), Variant(SSE42, streams=True), Variant(NARROW)]
    return [*old, Variant(AVX2, streams=True), Variant(AVX)] if host_cpu().has("avx2") else old


@pytest.mark.parametrize("name", one_in(3, CASES))
def test_kernel_agrees_with_numpy(name: str) -> None:
    case, others = CASES[name], processors()
    variant = others[list(CASES).index(name) % len(others)]
    with variant.applied() as options:
        run_case(dataclasses.replace(case, options={**case.options, **options}))


@weft.jit
def fused(out, x, y, z, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.fma(tl.load(x + i), tl.load(y + i), tl.load(z + i)))


@pytest.mark.skipif(not X86 or not host_cpu().has("avx2"), reason="for x86-64")
@pytest.mark.parametrize("processor", NO_FMA)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fma_rounds_once_where_there_is_no_instruction(dtype: Any, processor: str) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=256).astype(dtype), rng.normal(size=256).astype(dtype)
    z = (-(x * y) * (1 + rng.integers(-2, 3, 256) * np.finfo(dtype).eps)).astype(dtype)  # most of the sum cancels
    out = np.zeros(256, dtype)
    fused[(1,)](out, x, y, z, BLOCK=256, **NO_FMA[processor])
    for a, b, c, got in zip(x, y, z, out, strict=True):
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        assert got == dtype(float(exact))  # of what is left a double holds every bit, or is what is wanted


@pytest.mark.skipif(not X86 or not host_cpu().has("avx2"), reason="for x86-64")
@pytest.mark.parametrize("processor", NO_FMA)
def test_code_for_a_processor_has_its_instructions_only(processor: str) -> None:
    values = [np.ones(256, np.float32) for _ in range(4)]
    text = fused[(1,)](*values, BLOCK=256, **NO_FMA[processor]).asm["asm"]
    assert "vfmadd" not in text and ("ymm" in text) <= (processor == "avx") and "zmm" not in text
