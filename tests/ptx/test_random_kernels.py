"""Random kernels of tests/fuzz, their PTX run by the interpreter on memory between guards, agree with NumPy.

Seeds are fixed. Between them they have loops, branches, reductions, scans, atomics, gathers, and arrays that overlap.
Half of them run one warp after the other.
"""

from __future__ import annotations

import sys

import pytest

from fuzz.arrays import memories
from fuzz.compare import Variant, generate, load_kernel

from .launching import TARGETS, launch
from .spaces import Unknown

HOW = Variant(apart=True, lanes=True)
SEEDS = 20


@pytest.mark.skipif(sys.platform == "win32", reason="pages are protected with mprotect")
@pytest.mark.parametrize(("seed", "target"), [(seed, TARGETS[seed % 2]) for seed in range(2 * SEEDS)])
@pytest.mark.thinned(2)
def test_emitted_kernel_agrees_with_numpy(seed: int, target: str, tmp_path: object) -> None:
    program = generate(seed, HOW)
    expected, _ = memories(program, guarded=False)
    program.interpret(expected)
    given, owners = memories(program, guarded=True)
    kernel = load_kernel(program, str(tmp_path))
    arguments = program.arguments({array.name: given[array.name] for array in program.arrays})
    values = {**arguments, **program.launch_values()}
    try:
        launch(kernel, (program.programs,), values, target, apart=seed % 4 > 1, **program.options())
    except Unknown as unknown:
        pytest.skip(f"the interpreter does not know {unknown}")
    what = program.compared(expected, given)
    assert not what, f"seed {seed}, {target}: {what}\n\n{program.source()}"
    del owners
