"""Every kernel of tests/kernels, its PTX for both kinds of GPU run by the interpreter, agrees with NumPy."""

from __future__ import annotations

import pytest

from kernels import load_cases
from kernels.case import copy_arguments
from kernels.running import for_weft
from one_in import one_in

from .launching import TARGETS, launch
from .spaces import Unknown

CASES = load_cases("weft")
APART = "cuda:80"
"""For which warps run one after the other, so that a missing barrier shows; for the other they run together."""
LONG = {"matmul_f32", "matmul_f32_wide", "batched_matmul", "flash_attention_64", "flash_attention_64_causal"}
"""Too long warp by warp: together only."""
RUNS = [(name, target) for target in TARGETS for name in CASES if target != APART or name not in LONG]


@pytest.mark.parametrize(("name", "target"), one_in(3, RUNS))
@pytest.mark.thinned(3)
def test_emitted_kernel_agrees_with_numpy(name: str, target: str) -> None:
    case = CASES[name]
    before = case.make_inputs()
    after = copy_arguments(before)
    owners = [value.owner for value in after.values() if getattr(value, "owner", None) is not None]
    values = {key: for_weft(value) for key, value in after.items()}
    try:
        launch(case.kernel, case.grid, {**values, **case.constexprs}, target, owners, target == APART, **case.options)
    except Unknown as unknown:
        pytest.skip(f"the interpreter does not know {unknown}")
    case.check(before, after)
