"""Products in real code of Intel's GPUs: as many matrix instructions as they need; small tiles spill no register."""

from __future__ import annotations

import pytest

from intel.ocloc import CASES, Case, counts_of, ocloc, spirv_of

FIT = [case for case in CASES if case.rows <= 64]
"""A warp has 16 x 32 at most. Some blocks of 32 warps need more than 128 registers (docs/explanation/intel.md)."""
pytestmark = pytest.mark.skipif(ocloc() is None, reason="ocloc, of Debian's package intel-opencl-icd, is not there")


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=() if c in (FIT[0], FIT[1]) else pytest.mark.slow) for c in CASES], ids=str
)
def test_products_are_as_many_dpas_as_they_need(case: Case) -> None:
    code = spirv_of(case)
    counts = counts_of(code)
    assert counts.dpas == case.needed
    if case in FIT:
        assert counts.spilled == 0
    else:
        assert counts_of(code, registers=256).spilled == 0
