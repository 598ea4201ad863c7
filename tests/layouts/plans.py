"""Random conversions: executed on every element, and proved.

python tests/layouts/plans.py 0 1000000        # the long campaign: first seed, how many; all cores
"""

from __future__ import annotations

import functools
import random
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from layouts.random_layouts import invertible
from weft.layouts import (
    BlockedLayout,
    DistributedLayout,
    DotOperandLayout,
    LinearLayout,
    NVMMADistributedLayout,
    SliceLayout,
    f2,
)
from weft.layouts.plan import Plan, plan_conversion
from weft.layouts.plan.trip import Trip

TARGETS = ("cuda:75", "cuda:80", "cuda:90")
DIMS = ("register", "lane", "warp", "block")


def layout_of(columns: list[int], counts: dict[str, int], size: int) -> LinearLayout:
    """A layout whose dimensions take so many of these flattened bases each, registers the rest."""
    at = len(columns) - sum(counts.values())
    parts = {"register": columns[:at]}
    for dim, count in counts.items():
        parts[dim], at = columns[at : at + count], at + count
    bases = {d: [(c,) for c in cs] for d, cs in parts.items()}
    split = size // 2
    return LinearLayout.from_bases(bases, {"x": 1 << size}).reshape_outs(
        {"dim1": 1 << split, "dim0": 1 << size - split}
    )


def random_columns(rng: random.Random, size: int, hardware: int) -> list[int]:
    """Unit vectors in any order with copies among them: a distributed layout."""
    columns = [1 << i for i in range(size)] + [0] * (max(0, hardware - size) + rng.choice([0, 0, 0, 1, 2]))
    rng.shuffle(columns)
    return columns


def mma(rng: random.Random, columns: list[int]) -> list[int]:
    """Registers and lanes as a matrix instruction has them: a word of registers, lanes along rows and across."""
    units = [c for c in columns if c]
    if len(units) < 7:
        return columns
    first, lanes = units[0], units[1:6]
    rest = units[6:] + [0] * (len(columns) - len(units))
    rng.shuffle(rest)
    cut = len(rest) - rng.randrange(0, min(3, len(rest)) + 1)
    return [first, *rest[:cut], *lanes, *rest[cut:]]


def split_in_two(rng: random.Random, log: int) -> list[int]:
    """Two powers of two whose product is 2 ** log."""
    first = rng.randrange(log + 1)
    return [1 << first, 1 << log - first]


def named(rng: random.Random, warps_log: int) -> DistributedLayout:
    """A layout of the zoo for tiles of two dimensions."""
    kind = rng.randrange(5)
    warps = split_in_two(rng, warps_log)
    if kind >= 2:
        version, instruction = ([2, 0], [16, 8])
        if warps_log >= 2 and rng.random() < 0.4:
            version, instruction, warps = [3, 0], [16, 8 << rng.randrange(5), 16], [4, 1 << warps_log - 2]
        mma = NVMMADistributedLayout(version, warps, instruction)
        return mma if kind == 2 or version == [3, 0] else DotOperandLayout(kind - 3, mma, 1 << rng.randrange(1, 3))
    order = rng.choice([[0, 1], [1, 0]])
    return BlockedLayout(split_in_two(rng, rng.randrange(5)), split_in_two(rng, 5), warps, order)


def conversion_of_named(seed: int) -> tuple[LinearLayout, LinearLayout, int, str]:
    """Between layouts of the zoo, or slices of them."""
    rng = random.Random(seed)
    warps = rng.randrange(4)
    shape = [1 << rng.randrange(3, 8), 1 << rng.randrange(3, 8)]
    found = []
    flat = rng.random() < 0.3
    for _ in range(2):
        layout = named(rng, warps)
        if flat:
            found.append(SliceLayout(rng.randrange(2), layout).to_linear([shape[0]]))
        else:
            found.append(layout.to_linear(shape))
    return found[0], found[1], rng.choice([8, 16, 32, 64]), rng.choice(TARGETS)


@functools.cache
def random_conversion(seed: int) -> tuple[LinearLayout, LinearLayout, int, str]:
    """(source, destination, bits of an element, target)."""
    if seed % 4 == 3:
        return conversion_of_named(seed)
    rng = random.Random(seed)
    size = rng.randrange(5, 15)
    counts = {"lane": 5, "warp": rng.randrange(0, 4), "block": rng.choice([0, 0, 0, 0, 1, 2])}
    hardware = sum(counts.values())
    a, b = random_columns(rng, size, hardware), random_columns(rng, size, hardware)
    kind = rng.random()
    if kind < 0.15:
        a = mma(rng, a)
    elif kind < 0.25:
        b = mma(rng, b)
    elif kind < 0.4:  # any linear layouts at all
        m, n = invertible(rng, size), invertible(rng, size)
        a, b = f2.product(m, a), f2.product(n, b)
    src = layout_of(a, counts, size)
    if rng.random() < 0.35:  # within warps
        at = len(a) - counts["warp"] - counts["block"]
        inner = a[:at]
        rng.shuffle(inner)
        b = inner + a[at:]
    return src, layout_of(b, counts, size), rng.choice([1, 2, 4, 8, 8, 16, 16, 32, 64]), rng.choice(TARGETS)


def filled(layout: LinearLayout) -> np.ndarray:
    """The number of the element in each place, [block, warp, lane, register]."""
    shape = tuple(layout.in_dims[d] for d in reversed(DIMS))
    return layout.table().reshape(shape)


def verify(seed: int) -> Plan:
    """Plan, prove and execute one conversion; AssertionError where something is wrong."""
    src, dst, bits, target = random_conversion(seed)
    plan = plan_conversion(src, dst, tuple(src.out_dims.values()), bits, target)
    plan.check()
    assert np.array_equal(plan.run(filled(src)), filled(dst)), f"seed {seed}: wrong result"
    for stage in plan.stages:
        if isinstance(stage.how, Trip):
            assert stage.how.store.excess == 0 and stage.how.load.excess == 0, f"seed {seed}: bank conflicts"
    return plan


def verify_many(first: int, count: int) -> Counter[str]:
    """The kinds of plans of a range of seeds, all of which hold."""
    return Counter(verify(seed).kind for seed in range(first, first + count))


def main() -> None:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    begin, kinds = time.time(), Counter[str]()
    step = 2000
    with ProcessPoolExecutor() as pool:
        starts = range(first, first + count, step)
        for i, found in enumerate(pool.map(verify_many, starts, [step] * len(starts))):
            kinds += found
            done = (i + 1) * step
            if i % 10 == 9 or done >= count:
                print(f"{done} plans hold, {time.time() - begin:.0f} s: {dict(kinds)}", flush=True)


if __name__ == "__main__":
    main()
