"""Loops of three, four and five products: each begins as early as can be, and is awaited where its result is needed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from .gradients import Gradients
from .specialized import SCHEDULES, is_specialized

scheduled = pytest.mark.parametrize("options", SCHEDULES, ids=lambda o: f"{o.copies}-{o.order}{o.seed}")
slow = pytest.mark.slow
OF_KEYS = Gradients(n=64)
OF_QUERIES = Gradients(n=128, block=(64, 16), of="queries")
OF_ALL = Gradients(n=64, block=(64, 64), of="all")


def check(case: Gradients, options: Any = None, compared: bool = True) -> Any:
    """That it is divided, and right; and `compared` bit by bit with the loop that is not."""
    found, made = case.run(options=options)
    assert is_specialized(made)
    plain, other = case.run(stages=1) if compared else (found, None)
    assert other is None or not is_specialized(other)
    for i, (x, same, exact) in enumerate(zip(found, plain, case.exact(), strict=True)):
        if i < 2:  # the third is summed by atomics, in any order
            np.testing.assert_array_equal(x, same)
        np.testing.assert_allclose(x, exact, atol=0.03 * np.abs(exact).max())
    return made


def steps(made: Any) -> list[str]:
    """Products (by the types of their operands) and waits in the loop of the warps that multiply."""
    text = made.asm["ttgir"].split("default {")[1].split("partition0")[0].split("scf.for")[1].split("scf.yield")[0]
    found = re.findall(r"(warp_group_dot_wait|warp_group_dot) .*?(?:pendings = (\d)|isAsync)", text)
    return [f"wait {pending}" if "wait" in name else "begin" for name, pending in found]


def test_products_of_keys() -> None:
    made = check(OF_KEYS, SCHEDULES[3], compared=False)
    assert steps(made) == ["begin", "begin", "wait 1", "begin", "wait 1", "begin", "wait 1"]
    rows = [x for x in made.remarks.of("conversion") if "by shuffles" in str(x)]
    assert len(rows) == 2  # `most` and `sums`: no warp waits for another one


@slow
def test_products_of_queries() -> None:
    assert steps(check(OF_QUERIES, SCHEDULES[4])) == ["begin", "begin", "wait 1", "wait 0", "begin"]


@slow
def test_products_of_all() -> None:
    """The one that the iteration itself uses comes first; its left operand goes through shared memory. All warps meet
    before that is stored, and after it; the copy engine adds each warp's part of the result to memory."""
    made = check(OF_ALL)
    assert steps(made) == ["begin", "begin", "wait 1", "begin", "wait 1", "begin", "begin", "wait 1"]
    barriers = [x for x in made.remarks.of("barrier") if x.scope == "block" and "stmatrix" in str(x)]
    assert len(barriers) == 2
    assert "ttng.async_tma_reduce add" in made.asm["ttgir"] and "atomic_rmw" not in made.asm["ttgir"]


@slow
def test_operands_in_registers_are_free_before_results_take_more() -> None:
    """Results, sums and the operand of dk are 224 of 240 registers: dk is awaited before dp begins."""
    made = check(Gradients(n=256, block=(128, 128), head=64, of="all", warps=8), compared=False)
    assert steps(made)[:4] == ["begin", "wait 1", "begin", "wait 1"]
    assert steps(check(CASES["all, 8 warps"], compared=False))[:3] == ["begin", "begin", "wait 1"]


CASES = {
    "one step": Gradients(n=64, block=(64, 64)),
    "3 stages": Gradients(n=256, stages=3),
    "causal": Gradients(n=256, causal=True),
    "8 warps": Gradients(n=256, block=(32, 128), head=64, warps=8),
    "8 warps, causal": Gradients(n=256, block=(64, 128), head=64, warps=8, causal=True),
    "queries, 3 stages": Gradients(n=256, block=(64, 32), of="queries", stages=3),
    "all, 8 warps": Gradients(n=256, block=(64, 128), head=64, of="all", warps=8),
    "all, causal": Gradients(n=256, block=(64, 128), head=64, of="all", warps=8, causal=True, stages=3),
    "queries, 8 warps": Gradients(n=256, block=(128, 64), of="queries", warps=8, head=64),
}


@slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_cases(case: Gradients) -> None:
    check(case)


@slow
@scheduled
@pytest.mark.parametrize("case", [OF_KEYS, OF_QUERIES, OF_ALL], ids=lambda x: x.of)
def test_schedules(case: Gradients, options: Any) -> None:
    check(case, options)


@slow
def test_unasked() -> None:
    """Eight warps whose tiles take more than half of the registers."""
    assert is_specialized(Gradients(n=128, block=(64, 128), head=128, warps=8, asked=False).run()[1])
    assert not is_specialized(Gradients(n=128, block=(64, 64), head=64, warps=4, asked=False).run()[1])
