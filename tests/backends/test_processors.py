"""The kernels of tests/kernels, compiled for older processors than the one at hand, in turn: the results stay right."""

from __future__ import annotations

import dataclasses
import platform
from typing import Any

import pytest

from kernels import load_cases
from kernels.running import run_case
from weft.compiler import host_cpu

X86 = platform.machine().lower() in ("x86_64", "amd64")
CASES = load_cases("weft")
PLAIN = {"cpu": "x86-64", "features": "+sse2,-sse4.1,-avx,-avx2,-fma,-f16c,-avx512f"}
AVX2 = {"cpu": "haswell", "features": "+avx,+avx2,+fma,+f16c,-avx512f"}
NARROW = {"vector_bits": 128}


def processors() -> list[dict[str, Any]]:
    """Options for others than this one, that this one can run."""
    if not X86:
        return [NARROW]
    return [PLAIN, AVX2, NARROW] if host_cpu().has("avx2") else [PLAIN]


@pytest.mark.parametrize("name", CASES)
def test_kernel_agrees_with_numpy(name: str) -> None:
    case, others = CASES[name], processors()
    options = others[list(CASES).index(name) % len(others)]
    run_case(dataclasses.replace(case, options={**case.options, **options}))
