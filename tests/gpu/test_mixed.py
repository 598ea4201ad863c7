"""Mixed-precision products on the GPU: all 784 cases, and every pair of types in the Triton language."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from backends.nvidia.mixed import CASES, LANGUAGE_CASES, Mixed, mixed_dot, mixed_mma

from .arrays import View


def _check(kernel: Any, case: Mixed, constants: dict[str, Any]) -> None:
    a, b, c = case.operands()
    views = [View(x) for x in (a, b, c)]
    kernel[(1,)](*views, **constants, num_warps=4)
    weft.cuda.synchronize()
    views[2].back()
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_all(case: Mixed) -> None:
    _check(mixed_mma, case, case.constants())


@pytest.mark.parametrize("case", LANGUAGE_CASES, ids=str)
def test_all_of_the_language(case: Mixed) -> None:
    m, n, k = case.shape
    _check(mixed_dot, case, {"M": m, "N": n, "K": k, **case.types()})
