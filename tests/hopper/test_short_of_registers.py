"""What loops of several products do about registers: what begins early where there are many, what is held where few."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from .gradients import Gradients
from .specialized import SCHEDULES

OF_TWO = Gradients(n=256, asked=False, block=(128, 64), head=64, programs=1)
"""Dk and dv with 128 rows of queries, two blocks of which have room."""


def made(of: str) -> Any:
    """A kernel of gradients with heads of 64, three blocks of which have room; its result is right."""
    return checked(Gradients(n=64, asked=False, block=(64, 64), head=64, stages=3, of=of))


def checked(case: Gradients, options: Any = None) -> Any:
    """A kernel of gradients, whose result is right."""
    found, kernel = case.run(options=options)
    rows = case.programs * case.block[1] or case.n
    for x, exact in zip(found, case.exact(), strict=True):
        np.testing.assert_allclose(x[:rows], exact[:rows], atol=0.03 * np.abs(exact).max())
    return kernel


def steps(kernel: Any) -> list[str]:
    """Products, waits for them, and the exponentials, in the loop."""
    found = re.findall(r"(warp_group_dot_wait .*?pendings = \d|warp_group_dot |math.exp2)", body_of(kernel))
    return [x.split()[0] if "wait" not in x else f"wait {x[-1]}" for x in found]


def body_of(kernel: Any) -> str:
    text = kernel.asm["ttgir"]
    return str(text[text.index("scf.for") : text.index("scf.yield")])


def test_addresses_behind_a_loop_are_computed_there() -> None:
    """Sums and scores of dk and dv are 128 of 168 registers: no address is held for the stores behind the loop."""
    ops = made("keys").program.body.ops
    (zero,) = (i for i, op in enumerate(ops) if op.name == "zero")
    loop = next(i for i, op in enumerate(ops) if op.name == "for")
    assert zero > loop
    before = {r for op in ops[:loop] for r in op.results}
    stores = [op for op in ops[loop:] if op.name == "store" and op.attrs["space"] == "global"]
    assert stores and not any(op.operands[0] in before for op in stores)


def test_a_loop_of_fewer_tiles_leaves_addresses_alone() -> None:
    """96 of 168."""
    assert not any(op.name == "zero" for op in made("queries").program.body.walk())


def test_products_that_need_only_what_is_loaded_begin_together() -> None:
    body = body_of(made("queries"))
    first, second, third = (i for i in range(len(body)) if body.startswith("ttng.warp_group_dot ", i))
    before, wait, _ = (i for i in range(len(body)) if body.startswith("ttng.warp_group_dot_wait", i))
    assert first < second < before < body.index("ttng.barrier_expect") < wait < body.index("math.exp2") < third
    for at, pending in ((before, 2), (wait, 1)):  # dq of the iteration before is awaited, then the scores
        assert f"pendings = {pending}" in body[at : body.index("\n", at)]


def test_they_begin_one_by_one_where_results_would_not_fit() -> None:
    """But dv goes on until the iteration ends."""
    product = "warp_group_dot"
    assert steps(made("keys")) == [product, "wait 1", "wait 0", "math.exp2", *[product] * 3, "wait 1"]


def test_two_blocks_with_room_begin_products_together() -> None:
    """The previous iteration's dk is awaited while both products are in flight; dv is awaited together with dp."""
    product = "warp_group_dot"
    of_two = [product, product, "wait 2", "wait 1", "math.exp2", product, "wait 0", product]
    assert steps(checked(OF_TWO)) == of_two


@pytest.mark.slow
@pytest.mark.parametrize("options", SCHEDULES, ids=lambda o: f"{o.copies}-{o.order}{o.seed}")
@pytest.mark.parametrize("case", [OF_TWO, Gradients(n=192, asked=False, block=(64, 64), head=64, stages=3)])
def test_no_schedule_finds_a_race(case: Gradients, options: Any) -> None:
    checked(case, options)


def test_a_barrier_in_front_of_an_arrival_is_for_what_was_read() -> None:
    """The mbarrier whose bytes are announced is no memory that products have read before."""
    told = [str(remark.message) for remark in made("queries").remarks if remark.kind == "barrier"]
    (text,) = (x for x in told if "mbarrier.arrive.expect_tx" in x)
    assert text.endswith("in shared memory for a tile of 64x64xbf16")
