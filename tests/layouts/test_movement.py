"""Reductions, gathers and accesses to memory that is given, executed on random layouts against NumPy."""

from __future__ import annotations

import random

import numpy as np
import pytest

from weft.layouts import BlockedLayout, LayoutError, LinearLayout, SharedLinearLayout, SwizzledSharedLayout, f2
from weft.layouts.plan import plan_conversion, plan_gather, plan_local_access, plan_reduction, vector_width

from .plans import layout_of, random_columns
from .random_layouts import invertible


def random_layout(rng: random.Random, size: int, blocks: bool = False) -> LinearLayout:
    counts = {"lane": 5, "warp": rng.randrange(0, 3), "block": 0}
    columns = random_columns(rng, size, sum(counts.values()))
    if rng.random() < 0.2:
        columns = f2.product(invertible(rng, size), columns)
    return layout_of(columns, counts, size).transpose_outs(["dim0", "dim1"])


def held(layout: LinearLayout, tile: np.ndarray) -> np.ndarray:
    """A tile as the places of a layout hold it, [warp, lane, register]."""
    shape = tuple(layout.in_dims[d] for d in ("warp", "lane", "register"))
    coordinates = layout.reshape_outs({"x": tile.size}).table()[: np.prod(shape)].reshape(shape)
    sizes = list(layout.out_dims.values())
    index, rest = [], coordinates
    for s in sizes:
        index.append(rest % s)
        rest = rest // s
    return tile[tuple(index)]


@pytest.mark.parametrize("seed", range(300))
@pytest.mark.thinned(3)
def test_reductions(seed: int) -> None:
    rng = random.Random(seed)
    layout = random_layout(rng, rng.randrange(4, 12))
    shape = tuple(layout.out_dims.values())
    axis = rng.randrange(2)
    tile = np.random.default_rng(seed).integers(-1000, 1000, shape)
    plan = plan_reduction(layout, shape, axis, rng.choice([8, 16, 32, 64]))
    for combine in (np.add, np.maximum, np.bitwise_xor):
        found = plan.run(held(layout, tile), combine)
        expected = combine.reduce(tile, axis=axis)
        places = plan.result.table().reshape(
            tuple(plan.result.in_dims[d] for d in ("block", "warp", "lane", "register"))
        )
        assert np.array_equal(found, expected[places[0]])


def test_duplicates_are_gone_before_anything_moves() -> None:
    """Every lane and warp holds the same row: nothing crosses them, and nothing is counted twice."""
    zeros = [(0, 0)] * 5
    layout = LinearLayout.from_bases(
        {"register": [(0, 1), (0, 2), (1, 0)], "lane": zeros, "warp": zeros[:2], "block": []}, {"dim0": 2, "dim1": 4}
    )
    plan = plan_reduction(layout, (2, 4), 1, 32)
    assert plan.kind == "registers" and plan.cost.instructions == {"combine": 6}
    assert plan.run(held(layout, np.ones((2, 4), int))).max() == 4


@pytest.mark.parametrize("seed", range(200))
@pytest.mark.thinned(3)
def test_gathers(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.randrange(4, 11)
    src = random_layout(rng, size)
    shape = tuple(src.out_dims.values())
    axis = rng.randrange(2)
    idx = (
        src
        if rng.random() < 0.5
        else layout_of(
            random_columns(rng, size, 5 + src.in_log("warp")), {"lane": 5, "warp": src.in_log("warp"), "block": 0}, size
        ).transpose_outs(["dim0", "dim1"])
    )
    plan = plan_gather(src, idx, shape, shape, axis, rng.choice([8, 16, 32]))
    random_numbers = np.random.default_rng(seed)
    tile = random_numbers.integers(0, 1 << 30, shape)
    index = random_numbers.integers(0, shape[axis], shape)
    found = plan.run(held(src, tile), held(idx, index))
    assert np.array_equal(found, held(idx, np.take_along_axis(tile, index, axis)))


def test_gathers_of_both_kinds_and_what_they_cost() -> None:
    lanes = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)]
    within = LinearLayout.from_bases(
        {"register": [(0, 1)], "lane": lanes, "warp": [(0, 2)], "block": []}, {"dim0": 32, "dim1": 4}
    )
    plan = plan_gather(within, within, (32, 4), (32, 4), 0, 32)
    assert plan.kind == "shuffles" and plan.cost.instructions["shuffle"] == 2
    rows = BlockedLayout([1, 4], [32, 1], [4, 1], [1, 0])
    alone = plan_gather(rows, rows, (128, 4), (128, 4), 1, 8, "cuda:90")
    assert alone.kind == "registers" and alone.cost.instructions == {"permute": 1, "integer": 3}
    large = plan_gather(rows, rows, (128, 4), (128, 4), 1, 32, "cuda:90")
    assert large.kind == "registers" and large.cost.instructions == {"select": 12, "integer": 16}
    turned = plan_gather(rows, BlockedLayout([1, 4], [32, 1], [4, 1], [0, 1]), (128, 4), (128, 4), 0, 8)
    assert turned.kind == "shared"
    across = plan_gather(within, within, (32, 4), (32, 4), 1, 32)
    assert across.kind == "shared" and "a warp does not hold whole columns" in across.explain()
    with pytest.raises(LayoutError, match="they may differ along axis 0 only"):
        plan_gather(within, within, (32, 4), (32, 8), 0, 32)


@pytest.mark.parametrize("seed", range(200))
@pytest.mark.thinned(3)
def test_local_access(seed: int) -> None:
    """Store and load through a random invertible memory layout; the instruction's registers are really consecutive."""
    rng = random.Random(seed)
    size = rng.randrange(5, 12)
    layout = random_layout(rng, size)
    shape = tuple(layout.out_dims.values())
    columns = rng.choice([invertible(rng, size), [1 << i for i in range(size)]])
    memory = LinearLayout.from_bases({"offset": [(c,) for c in columns]}, {"x": 1 << size}).reshape_outs(
        layout.out_dims
    )
    bits = rng.choice([8, 16, 32, 64])
    tile = np.random.default_rng(seed).integers(0, 1 << 30, shape)
    space = np.full((1, 1 << size), -1)
    plan_local_access(layout, memory, shape, bits, "cuda:90", store=True).store(held(layout, tile)[None], space)
    load = plan_local_access(layout, memory, shape, bits, "cuda:90")
    assert np.array_equal(load.load(space)[0], held(layout, tile))
    access = load.access
    if access.instruction == "shared":
        offsets = load.place.in_columns("register")
        kept = [c for i, c in enumerate(offsets) if not load.copies[0] >> i & 1]
        made = [f2.multiply(kept, r) for r in access.registers]
        assert made[: access.vector] == [1 << i for i in range(access.vector)]
        assert f2.rank(access.registers) == len(kept)


def test_vector_width_goes_on_in_the_next_dimension() -> None:
    """Tall tiles: the fastest dimension alone would give one element (Zhou et al., table 3)."""
    for columns in (1, 2, 4, 8, 16):
        rest = columns.bit_length() - 1
        per_lane = 4
        units = [(0, 1 << i) for i in range(rest)] + [(1 << i, 0) for i in range(9)]
        bases = {
            "register": units[:per_lane] + units[per_lane + 7 :],
            "lane": units[per_lane : per_lane + 5],
            "warp": units[per_lane + 5 : per_lane + 7],
            "block": [],
        }
        layout = LinearLayout.from_bases(bases, {"dim0": 512, "dim1": columns})
        assert vector_width(layout, (512, columns), 8) == 16
        assert vector_width(layout, (512, columns), 16) == 8
        first = min(16, 1 << per_lane - rest)  # rows that a lane holds, if the first dimension were the fastest
        assert vector_width(layout, (512, columns), 8, order=[0, 1]) == first


def test_vector_width_against_trying() -> None:
    rng = random.Random(0)
    for _ in range(200):
        layout = random_layout(rng, rng.randrange(4, 9))
        shape = tuple(layout.out_dims.values())
        flat = layout.transpose_outs(["dim1", "dim0"]).flatten_outs()
        table = flat.table().reshape(-1, flat.in_dims["register"])
        most = 1
        for n in (2, 4, 8, 16):
            rows = [sorted(set(row)) for row in table.tolist()]
            runs = [row[i : i + n] for row in rows for i in range(0, len(row), n)]
            if all(run == list(range(run[0], run[0] + n)) and run[0] % n == 0 for run in runs):
                most = n
        assert vector_width(layout, shape, 8) == most


def test_a_conversion_to_shared_memory_is_a_store_and_back_a_load() -> None:
    """What is stored by one layout is read by another: the tile, whatever the memory's layout."""
    rng = random.Random(22)
    for _ in range(30):
        size = rng.randrange(5, 10)
        source, result = random_layout(rng, size), random_layout(rng, size).transpose_outs(["dim0", "dim1"])
        if source.out_dims != result.out_dims:
            continue
        shape = tuple(source.out_dims.values())
        bases = LinearLayout({"offset": [(c,) for c in invertible(rng, size)]}, {"x": 1 << size}).reshape_outs(
            dict(reversed(source.out_dims.items()))
        )
        memory = SharedLinearLayout([list(b[::-1]) for b in bases.bases["offset"]])
        store = plan_conversion(source, memory, shape, 32, "cuda:90")
        load = plan_conversion(memory, result, shape, 32, "cuda:90")
        assert (store.is_store, load.is_store) == (True, False)
        assert store == plan_local_access(source, memory, shape, 32, "cuda:90", store=True)
        tile = np.arange(1 << size).reshape(shape)
        kept = np.full((1, 1 << size), -1)
        store.store(held(source, tile)[None], kept)
        assert (load.load(kept)[0] == held(result, tile)).all() and sorted(kept[0]) == list(range(1 << size))
    plain = SwizzledSharedLayout(1, 1, 1, [1, 0])
    with pytest.raises(LayoutError, match="are both in shared memory"):
        plan_conversion(plain, plain, (32, 32), 32)  # type: ignore[call-overload]
    linear = plain.to_linear([32, 32])
    with pytest.raises(LayoutError, match="plan_local_access plans a store of a tile"):
        plan_conversion(linear, linear, (32, 32), 32)
