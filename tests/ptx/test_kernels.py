"""Every kernel of tests/kernels, its PTX for both kinds of GPU run by the interpreter, agrees with NumPy."""

from __future__ import annotations

import pytest

from kernels import load_cases
from kernels.case import copy_arguments
from kernels.running import for_weft

from .launching import TARGETS, launch
from .spaces import Unknown

CASES = load_cases("weft")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_emitted_kernel_agrees_with_numpy(name: str, target: str) -> None:
    case = CASES[name]
    before = case.make_inputs()
    after = copy_arguments(before)
    owners = [value.owner for value in after.values() if getattr(value, "owner", None) is not None]
    values = {key: for_weft(value) for key, value in after.items()}
    try:
        launch(case.kernel, case.grid, {**values, **case.constexprs}, target, owners, **case.options)
    except Unknown as unknown:
        pytest.skip(f"the interpreter does not know {unknown}")
    case.check(before, after)
