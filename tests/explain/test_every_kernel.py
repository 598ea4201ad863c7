"""Every kernel of the tests is explained: nothing fails, what is said to be exact is what the counter says of all
programs, and an explanation comes back from JSON as it was."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from kernels.simulated import NAMES, Simulated, simulated
from weft.explain import Explanation, Launch, explanation
from weft.sim import Uncountable, count


def explained(kernel: Simulated) -> Explanation:
    arguments = kernel.chosen(kernel.case.make_inputs())
    scalars = {n: v for n, v in arguments.items() if not isinstance(v, np.ndarray)}
    sizes = {n: v.nbytes for n, v in arguments.items() if isinstance(v, np.ndarray)}
    x, y, z = (*_grid(kernel), 1, 1)[:3]
    launch = Launch(kernel.case.name, kernel.program.target, None, (x, y, z), {}, {}, scalars, sizes)
    return explanation(launch, kernel.program.remarks.collected(), kernel.program)


def _grid(kernel: Simulated) -> tuple[int, ...]:
    grid = kernel.case.grid
    return (grid,) if isinstance(grid, int) else tuple(grid)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_explained(name: str) -> None:
    kernel = simulated(name)
    if kernel is None:
        pytest.skip("it has no lowering")
    e = explained(kernel)
    assert str(e) and e.to_html() and Explanation.from_json(e.to_json()) == e
    assert e.time is None or e.time.low <= e.time.microseconds <= e.time.high
    arguments = kernel.chosen(kernel.case.make_inputs())
    scalars = {n: v for n, v in arguments.items() if not isinstance(v, np.ndarray)}
    try:
        whole = count(kernel.program, kernel.case.grid, scalars)
    except Uncountable:
        assert not e.counts.exact and e.counts.note
        return
    if e.counts.exact:
        assert Counter(e.counts.total) == Counter({n: c for n, c in whole.total.items() if c})
