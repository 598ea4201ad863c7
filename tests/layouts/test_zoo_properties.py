"""What is true of every named layout, on random ones."""

from __future__ import annotations

import random
from functools import reduce
from operator import mul

from hypothesis import given, settings, strategies as st

import weft.layouts as wl
from weft.layouts import DotOperandLayout, SliceLayout, describe, reduce_result
from weft.layouts.zoo.parts import boxes, identity_nd

from .random_named import distributed, shared

seeds = st.integers(0, 1 << 32).map(random.Random)


def is_unit(basis: tuple[int, ...]) -> bool:
    moving = [c for c in basis if c]
    return len(moving) <= 1 and all(c & (c - 1) == 0 for c in moving)


@given(seeds)
def test_distributed_layouts_are_distributed(rng: random.Random) -> None:
    """Everything is held, and bases are units, each once, and zeros: definition 4.10 of the paper."""
    layout, sizes = distributed(rng)
    linear = layout.to_linear(sizes)
    assert list(linear.in_dims) == ["register", "lane", "warp", "block"]
    assert list(linear.out_dims.values()) == sizes and linear.is_surjective()
    bases = [basis for own in linear.bases.values() for basis in own]
    assert all(map(is_unit, bases))
    moving = [basis for basis in bases if any(basis)]
    assert len(moving) == len(set(moving)) == linear.total_out_log


@given(seeds)
def test_boxes_are_the_direct_sum_of_each(rng: random.Random) -> None:
    order = rng.sample(range(3), rng.randint(1, 3))
    order = [sorted(order).index(dim) for dim in order]
    parts = [(dim, [1 << rng.randrange(3) for _ in order]) for dim in ("register", "lane", "warp")]
    assert boxes(order, *parts) == reduce(mul, [identity_nd(dim, sizes, order) for dim, sizes in parts])


@given(seeds)
def test_shared_layouts_are_memory_layouts(rng: random.Random) -> None:
    """Every element has one place."""
    layout, sizes = shared(rng)
    linear = layout.to_linear(sizes)
    assert list(linear.in_dims) == ["offset", "block"] and list(linear.out_dims.values()) == sizes
    assert linear.is_invertible()


@given(seeds)
def test_text(rng: random.Random) -> None:
    for layout, _ in (distributed(rng), shared(rng)):
        assert eval(repr(layout), vars(wl)) == layout


@given(seeds)
def test_slices_are_reductions(rng: random.Random) -> None:
    """The layout of a reduction is the slice of the tile's, wherever a slice is defined."""
    layout, sizes = distributed(rng)
    if layout.rank == 1:
        return
    axis = rng.randrange(layout.rank)
    whole = [1 if d == axis else size for d, size in enumerate(sizes)]
    kept = [size for d, size in enumerate(sizes) if d != axis]
    assert SliceLayout(axis, layout).to_linear(kept) == reduce_result(layout.to_linear(whole), axis)


@given(seeds)
def test_warps_and_blocks_of_an_operand_are_those_of_the_result(rng: random.Random) -> None:
    layout, sizes = distributed(rng)
    while isinstance(layout, SliceLayout):
        layout, sizes = layout.parent, [*sizes[: layout.dim], 1, *sizes[layout.dim :]]
    if isinstance(layout, DotOperandLayout):
        operand, result = layout.to_linear(sizes).in_dims, layout.parent.to_linear(sizes).in_dims
        assert [operand[d] for d in ("lane", "warp", "block")] == [result[d] for d in ("lane", "warp", "block")]


@settings(max_examples=60)
@given(seeds)
def test_describe_then_rebuild(rng: random.Random) -> None:
    for layout, sizes in (distributed(rng), shared(rng)):
        linear = layout.to_linear(sizes)
        found = describe(linear)
        assert found is not None and found.to_linear(sizes) == linear
