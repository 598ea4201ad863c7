"""The counter says of every test kernel what the simulator counts; where data decide, it says so."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.simulated import NAMES, Simulated, simulated
from weft.sim import Report, Uncountable, count

DATA = {
    "atomic_histogram": "bins", "conditional_store": "masks", "float_atomics": "places", "float_atomics_f64": "places",
    "gather_rows": "rows", "gathers": "places", "histograms": "bins", "scatter": "places",
    "descriptor_gather": "rows",
}  # fmt: skip
"""Kernels that access places that their data give; what is given."""
BRANCHES = ("dynamic_if", "spin_lock", "while_tile", "calls", "collatz", "cross_entropy", "tickets", "early_return")
"""Kernels whose data decide which way they go."""


def counted(kernel: Simulated) -> Report:
    arguments = kernel.chosen(kernel.case.make_inputs())
    scalars = {n: v for n, v in arguments.items() if not isinstance(v, np.ndarray)}
    return count(kernel.program, kernel.case.grid, scalars)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(3)
def test_counter_agrees(name: str) -> None:
    kernel = simulated(name)
    if kernel is None:
        pytest.skip("it has no lowering")
    try:
        found = counted(kernel)
    except Uncountable:
        assert kernel.case.name in BRANCHES
        return
    ran, _ = kernel.run()
    if found.exact:
        assert found.lines == ran.lines
        return
    assert kernel.case.name in DATA
    assert found.kinds == ran.kinds
    for place, line in ran.lines.items():
        assert all(found.lines[place][counter] <= n for counter, n in line.items())


def test_for_most_kernels_everything_is_known() -> None:
    kernels = {name: k for name in NAMES if (k := simulated(name)) is not None}
    known = [k for k in kernels.values() if k.case.name not in (*DATA, *BRANCHES)]
    assert len(known) >= 150
