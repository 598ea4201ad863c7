"""Products in real code of Intel's GPUs: as many matrix instructions as they need; small tiles spill no register."""

from __future__ import annotations

import pytest

from intel.ocloc import CASES, Case, counts_of, ocloc, spirv_of

SMALL = [case for case in CASES if case.rows == 32]
"""A warp's part is 16 x 16: larger ones spill some registers where operands come from shared memory (docs/intel.md)."""
pytestmark = pytest.mark.skipif(ocloc() is None, reason="ocloc, of Debian's package intel-opencl-icd, is not there")


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=() if c in SMALL[:1] else pytest.mark.slow) for c in CASES], ids=str
)
def test_products_are_as_many_dpas_as_they_need(case: Case) -> None:
    counts = counts_of(spirv_of(case))
    assert counts.dpas == case.needed
    if case in SMALL:
        assert counts.spilled == 0
