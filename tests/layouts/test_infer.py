"""The rules for shape operations: the operation moves nothing, by brute force on all elements; and Triton's rules."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import numpy.typing as npt
import pytest

from weft.layouts import (
    BlockedLayout,
    LayoutError,
    LinearLayout,
    broadcast_source,
    expand_dims_result,
    expand_dims_source,
    fp4_to_fp_result,
    infer,
    join_result,
    join_source,
    reduce_result,
    reshape_result,
    split_result,
    trans_result,
)

from .random_layouts import invertible, permutation
from .stored import OWN, as_stored, lines, named

Array = npt.NDArray[np.int64]


def random_tile(rng: random.Random, rank: int | None = None, most: int = 8) -> LinearLayout:
    """A layout of a tile with copies; half of them distributed (bases are units), half any linear map."""
    log = rng.randrange(2, most)
    columns = permutation(rng, log) if rng.random() < 0.5 else invertible(rng, log)
    for _ in range(rng.randrange(3)):
        columns.insert(rng.randrange(len(columns) + 1), 0)
    cut = sorted(rng.randrange(len(columns) + 1) for _ in range(3))
    places = [columns[a:b] for a, b in zip([0, *cut], [*cut, len(columns)])]
    bases = {n: [(c,) for c in own] for n, own in zip(("register", "lane", "warp", "block"), places)}
    flat = LinearLayout.from_bases(bases, {"dim0": 1 << log})
    shape = [1] * (rank or rng.randrange(1, 4))
    for _ in range(log):
        shape[rng.randrange(len(shape))] *= 2
    return reshape_result(flat, shape)


def shape_of(layout: LinearLayout) -> list[int]:
    return list(layout.out_dims.values())


def held(layout: LinearLayout, tile: Array) -> Array:
    """What every place holds, indexed [other places, register]: the fragment of each thread."""
    names = list(layout.in_dims)
    grids = np.meshgrid(*(np.arange(layout.in_dims[n]) for n in reversed(names)), indexing="ij")
    where = layout.apply(dict(zip(reversed(names), grids)))
    values = tile[tuple(where[f"dim{d}"] for d in range(tile.ndim))]
    return values.reshape(-1, layout.in_dims["register"])


def numbered(shape: list[int]) -> Array:
    return np.arange(prod(shape)).reshape(shape)


def tiles(count: int = 60, rank: int | None = None) -> list[tuple[random.Random, LinearLayout]]:
    return [(rng := random.Random(seed), random_tile(rng, rank)) for seed in range(count)]


def test_trans_moves_nothing() -> None:
    for rng, source in tiles():
        order = list(range(len(shape_of(source))))
        rng.shuffle(order)
        result = trans_result(source, order)
        x = numbered(shape_of(source))
        assert (held(result, x.transpose(order)) == held(source, x)).all()
        assert trans_result(result, [order.index(d) for d in range(len(order))]) == source


def test_reshape_moves_nothing() -> None:
    for rng, source in tiles():
        shape = [1] * rng.randrange(1, 4)
        for _ in range(prod(shape_of(source)).bit_length() - 1):
            shape[rng.randrange(len(shape))] *= 2
        result = reshape_result(source, shape)
        x = numbered(shape_of(source))
        assert (held(result, x.reshape(shape)) == held(source, x)).all()
        assert reshape_result(result, shape_of(source)) == source


def test_expand_dims_moves_nothing() -> None:
    for rng, source in tiles():
        axis = rng.randrange(-len(shape_of(source)) - 1, len(shape_of(source)) + 1)
        result = expand_dims_result(source, axis)
        x = numbered(shape_of(source))
        assert (held(result, np.expand_dims(x, axis)) == held(source, x)).all()
        assert expand_dims_source(result, axis) == source


def test_join_and_split_move_nothing() -> None:
    for _, source in tiles():
        x = numbered(shape_of(source))
        y = x + 10_000
        result = join_result(source)
        both = held(result, np.stack([x, y], -1))
        assert (both[:, 0::2] == held(source, x)).all() and (both[:, 1::2] == held(source, y)).all()
        assert join_source(result) == source
        assert split_result(result) == source.remove_zero_bases("register")


def test_fp4_to_fp_moves_nothing() -> None:
    for rng, source in tiles():
        axis = rng.randrange(len(shape_of(source)))
        result = fp4_to_fp_result(source, axis)
        x = numbered(shape_of(source))
        unpacked = np.stack([2 * x, 2 * x + 1], axis + 1).reshape(shape_of(result))
        fragment = held(result, unpacked)
        assert (fragment[:, 0::2] == 2 * held(source, x)).all() and (fragment[:, 1::2] == 2 * held(source, x) + 1).all()


def test_split_of_any_register_bit() -> None:
    found = 0
    for rng, source in tiles(200, 2):
        log = prod(shape_of(source)).bit_length() - 1
        whole = reshape_result(source, [1 << log - 1, 2])
        registers = whole.bases["register"]
        x = numbered(shape_of(whole))
        if sum(basis[1] for own in whole.bases.values() for basis in own) > 1 or (0, 1) not in registers:
            with pytest.raises(LayoutError):
                split_result(whole)
            continue
        half = join_source(whole)  # the split with copies in registers kept
        assert split_result(whole) == half.remove_zero_bases("register")
        bit = 1 << registers.index((0, 1))
        fragment = held(whole, x)
        index = np.arange(fragment.shape[1])
        for which in (0, 1):
            assert (held(half, x[:, which]) == fragment[:, (index & bit > 0) == which]).all()
        found += 1
    assert found >= 20


def test_broadcast_moves_nothing() -> None:
    for rng, result in tiles():
        shape = [1 if rng.random() < 0.5 else size for size in shape_of(result)]
        source = broadcast_source(result, shape)
        x = numbered(shape)
        assert (held(result, np.broadcast_to(x, shape_of(result))) == held(source, x)).all()


def test_reduce_is_shared_where_its_elements_were() -> None:
    for rng, source in tiles(60, 3):
        axis = rng.randrange(3)
        result = reduce_result(source, axis)
        kept = [size for d, size in enumerate(shape_of(source)) if d != axis]
        rows = np.expand_dims(numbered(kept), axis)
        before = held(source, np.broadcast_to(rows, shape_of(source)))
        after = held(result, numbered(kept))
        # Each thread has a result for each row of which it had elements, and for no other.
        assert [set(r) for r in after.tolist()] == [set(r) for r in before.tolist()]


def test_bad_input() -> None:
    tile = BlockedLayout([1, 2], [4, 8], [2, 1], [1, 0]).to_linear([8, 16])
    for call, text in (
        (lambda: trans_result(tile, [0, 0]), "each of 2 dimensions once, got [0, 0]"),
        (lambda: trans_result(tile, [1]), "each of 2 dimensions once, got [1]"),
        (lambda: reshape_result(tile, [8, 8]), "has 128 elements, one of [8, 8] 64"),
        (lambda: expand_dims_result(tile, 3), "the axis must be from -3 to 2, got 3"),
        (lambda: expand_dims_source(tile, 0), "has size 1, the layout is for [8, 16]"),
        (lambda: broadcast_source(tile, [8]), "[8] cannot be broadcast to [8, 16]"),
        (lambda: split_result(tile), "has size 2, the layout is for [8, 16]"),
        (lambda: split_result(reshape_result(BlockedLayout([1], [8], [2], [0]).to_linear([16]), [8, 2])), "no bit of"),
        (lambda: reduce_result(tile, 2), "the axis must be from -2 to 1, got 2"),
        (lambda: reduce_result(tile.rename_outs({"dim0": "row"}), 0), "are dim0, dim1, ..., got row, dim1"),
    ):
        with pytest.raises(LayoutError) as caught:
            call()
        assert text in caught.value.message


def test_the_rules_are_tritons() -> None:
    cases = lines(OWN / "inference.jsonl")
    assert len(cases) == 200
    for case in cases:
        rule = getattr(infer, f"{case['operation']}_result")
        source = named(case["layout"]).to_linear(case["shape"])
        result = rule(source) if case["arguments"] is None else rule(source, case["arguments"])
        assert as_stored(result) == case["bases"], case
        assert [list(item) for item in result.out_dims.items()] == case["out_dims"], case
