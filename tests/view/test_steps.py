"""The steps of a plan, done one after the other, are the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest

from layouts.plans import filled, random_conversion
from weft.layouts import BlockedLayout
from weft.layouts.plan import Plan, plan_conversion
from weft.view import plan_steps

DIMS = ("register", "lane", "warp", "block")
RENAMES = (207, 287)
"""Seeds of conversions that only rename registers, of which there are few."""


def run_steps(plan: Plan) -> np.ndarray:
    """The steps executed on the numbers of the elements, place by place."""
    held = filled(plan.src)
    memory: dict[tuple[int, int], int] = {}
    for step in plan_steps(plan):
        if step.map is None:
            continue
        if step.kind == "store":
            memory = {}
            for place in np.ndindex(*held.shape):
                point = dict(zip(reversed(DIMS), place))
                if not any(point[d] & m for d, m in step.masks.items()):
                    at = step.map.apply({d: point[d] for d in step.map.in_dims})["offset"]
                    key = (point["block"], at)
                    assert key not in memory, "two elements at one offset"
                    memory[key] = int(held[place])
            continue
        sizes = [step.map.in_dims[d] for d in reversed(DIMS)]
        index = dict(zip(reversed(DIMS), np.indices(sizes)))
        source = step.map.apply({d: index[d] for d in step.map.in_dims})
        if step.kind == "load":
            flat = zip(np.ravel(source["block"]), np.ravel(source["offset"]))
            held = np.array([memory[int(b), int(o)] for b, o in flat]).reshape(sizes)
        else:
            held = held[tuple(source[d] for d in reversed(DIMS))]
    return held


@pytest.mark.parametrize("seeds", [(*range(60), *RENAMES), pytest.param(range(1000), marks=pytest.mark.slow)])
def test_steps_are_the_plan(seeds: Iterable[int]) -> None:
    kinds = Counter[str]()
    for seed in seeds:
        src, dst, bits, target = random_conversion(seed)
        if src.total_in_log > 11:
            continue
        plan = plan_conversion(src, dst, tuple(src.out_dims.values()), bits, target)
        assert np.array_equal(run_steps(plan), filled(plan.dst)), f"seed {seed}, {plan.kind}"
        kinds.update(step.kind for step in plan_steps(plan))
    seen = ("rename", "select", "shuffle", "pack", "unpack", "store", "barrier", "load")
    assert min(kinds[k] for k in seen) >= 2, kinds


def test_swaps_are_shown() -> None:
    rows = BlockedLayout([1, 8], [4, 8], [2, 1], [1, 0])
    columns = BlockedLayout([8, 1], [8, 4], [1, 2], [0, 1])
    plan = plan_conversion(rows, columns, (64, 64), 8)
    assert np.array_equal(run_steps(plan), filled(plan.dst))
    kinds = [step.kind for step in plan_steps(plan)]
    assert kinds == ["pack", "swap", "swap", "unpack", "store", "barrier", "load"]
