"""Kernels compiled for AArch64 do under QEMU what they do here, bit for bit.

What decides the bits is how wide vectors are (in which order sums are added) and which instructions there are
(AVX-512 has mathematics of its own): so the code of here is for vectors of 128 bits and multiply-adds, as there.
`make aarch64-test` runs all kernels of tests/kernels, on both processors; a few run with every `make test`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from aarch64 import MISSING, Emulator
from fuzz.compare import AVX2
from kernels import load_cases
from kernels.case import Arguments, Case, copy_arguments
from kernels.running import for_weft
from weft.compiler import host_cpu
from weft.runtime import knobs

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not here: {MISSING}")

CASES = load_cases("weft")
PROCESSORS = ("neoverse-v1", "apple-m1")
QUICK = ("softmax", "axpy", "matmul_bf16_to_f32", "rotary")
HERE = {**AVX2, "vector_bits": 128}
X86 = host_cpu().is_x86 and host_cpu().has("avx2")


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(tmp_path_factory.mktemp("aarch64")) as emulator, knobs.cache.scope():
        knobs.cache.disabled = True
        yield emulator


def given(case: Case, before: Arguments) -> tuple[Arguments, dict[str, Any]]:
    """Copies of the arguments of a case, and they as a launch takes them."""
    after = copy_arguments(before)
    return after, {**{name: for_weft(value) for name, value in after.items()}, **case.constexprs}


def stored(arguments: Arguments) -> list[np.ndarray[Any, np.dtype[np.uint8]]]:
    """The bytes of the arrays among arguments."""
    arrays: list[Any] = []
    for value in arguments.values():
        arrays += value if isinstance(value, (tuple, list)) else [getattr(value, "array", value)]
    return [np.frombuffer(a.tobytes(), np.uint8) for a in arrays if isinstance(a, np.ndarray)]


def compare(emulator: Emulator, name: str, processor: str) -> None:
    """Run a case on both machines."""
    case = CASES[name]
    before = case.make_inputs()
    there, arguments = given(case, before)
    emulator.launch(case.kernel, case.grid, arguments, cpu=processor, **case.options)
    case.check(before, there)
    if X86:
        here, arguments = given(case, before)
        case.kernel[case.grid](**arguments, **case.options, **HERE)
        for a, b in zip(stored(here), stored(there), strict=True):
            np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("name", QUICK)
def test_kernels_do_the_same_as_here(emulator: Emulator, name: str) -> None:
    compare(emulator, name, PROCESSORS[QUICK.index(name) % 2])


@pytest.mark.slow
@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("name", CASES)
def test_every_kernel_does_the_same_as_here(emulator: Emulator, name: str, processor: str) -> None:
    compare(emulator, name, processor)
