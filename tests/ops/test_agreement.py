"""Every row on corner values of every type: NumPy's meaning, the CPU's code and the GPU's text agree."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from weft.ops.rounding import Array
from weft.ops.row import FUNCTION, Row

from .texts import Kernel, kernels


def _apart(row: Row, target: str, got: Array, want: Array) -> Array:
    """Where results differ by more than docs/reference/math.md and docs/reference/semantics.md allow."""
    if got.dtype.kind in "biu":
        return np.asarray(got != want)
    a, b = got.astype(np.float64), want.astype(np.float64)
    same = (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)
    if "max" in row.name or "min" in row.name or row.name == "tt.clampf":
        same |= (a == 0) & (b == 0)
    info = ml_dtypes.finfo(got.dtype)
    one = np.maximum(np.abs(b) * float(info.eps), float(info.smallest_subnormal))
    ulps = 4 if row.cost == FUNCTION else 2 if target != "cpu" and row.name in ("arith.divf", "math.sqrt") else 0
    with np.errstate(all="ignore"):
        return ~(same | (np.abs(a - b) <= ulps * one))


QUICK = ("i1-i1", "i32", "i32-i32", "f16-f16", "f32", "f32-f32", "i1-f32-f32", "f32-f32-f32")
"""What the suite runs; all of it is a minute and a half: `pytest tests/ops -m "slow or not slow"`."""
RUNS = [
    pytest.param(
        kernel,
        target,
        id=f"{kernel.name}-{target}",
        marks=() if kernel.name in QUICK and target != "cuda:80" else pytest.mark.slow,
    )
    for kernel in kernels()
    for target in ("cpu", "sim:cuda:90", "cuda:80", "cuda:90")
]


@pytest.mark.parametrize(("kernel", "target"), RUNS)
@pytest.mark.thinned(2)
def test_all_targets_agree(kernel: Kernel, target: str) -> None:
    if kernel.name == "f64 angles" and target.startswith("cuda"):
        pytest.skip("the interpreter of PTX knows no calls: multiples of pi are taken from large numbers in one")
    problems = []
    for case, got, want in zip(kernel.cases, kernel.run(target), kernel.numpy(), strict=True):
        wrong = _apart(case.row, target, got, want)
        if target.startswith("cuda") and case.result != "f64" and case.row.name in ("math.sqrt", "math.rsqrt"):
            x = kernel.operands[0].astype(np.float64)  # taken for zero, as in Triton, where f32 has no normal number
            wrong &= (np.abs(x) >= 2.0**-126) | (x == 0)
        if target.startswith("cuda") and case.row.name == "arith.remf" and case.result in ("f32", "f64"):
            continue  # done in f64, whose fma the interpreter rounds twice
        if wrong.any():
            at = int(np.argmax(wrong))
            given = ", ".join(repr(x[at]) for x in kernel.operands)
            what = f"{case.row.name} {dict(case.attrs) or ''} to {case.result}: {wrong.sum()} differ"
            problems.append(f"{what}; of ({given}) {got[at]!r}, not {want[at]!r}")
    assert not problems, "\n" + "\n".join(problems)
