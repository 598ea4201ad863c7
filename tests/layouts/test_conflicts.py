"""Wavefronts of shared-memory accesses, against Triton's figures and against counting."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft.layouts import (
    BlockedLayout,
    LayoutError,
    LinearLayout,
    PaddedSharedLayout,
    SharedLinearLayout,
    SwizzledSharedLayout,
    bank_conflicts,
    count_wavefronts,
    shared_access,
    wavefronts,
)

from .random_layouts import invertible, permutation
from .stored import GOLDEN, OWN, lines, named


def check(path: Path, expected: int) -> None:
    cases = lines(path)
    assert len(cases) == expected
    for case in cases:
        registers, shared = named(case["register_layout"]), named(case["shared_layout"])
        shape, bits = case["shape"], case["element_bits"]
        assert bank_conflicts(registers, shared, shape, bits) == case["excess_wavefronts"], case


def test_own_data() -> None:
    check(OWN / "bank_conflicts.jsonl", 300)
    assert len({case["excess_wavefronts"] for case in lines(OWN / "bank_conflicts.jsonl")}) >= 5


def test_golden_data() -> None:
    if not GOLDEN.exists():
        pytest.skip("the golden data is not part of the repository")
    check(GOLDEN / "bank_conflicts.jsonl", 401)


def shaped(columns: list[int], counts: tuple[int, int, int], log: int) -> LinearLayout:
    names = ("register", "lane", "warp")
    flat = LinearLayout.from_bases({"x": [(c,) for c in columns]}, {"dim0": 1 << log}, require_surjective=False)
    return flat.reshape_ins(dict(zip(names, (1 << c for c in counts)))) * LinearLayout.zeros_1d(1, "block", "dim0")


def by_counting(registers: LinearLayout, shared: LinearLayout, bits: int, vector: int) -> set[int]:
    """The wavefronts of every access of every warp; the first registers are those of a vector."""
    access = shared_access(registers, shared, list(registers.out_dims.values()))
    found = set()
    lanes = np.arange(access.in_dims["lane"])
    for warp in range(access.in_dims["warp"]):
        for register in range(0, access.in_dims["register"], vector):
            starts = access.apply(register=register, lane=lanes, warp=warp, block=0)["offset"]
            for i in range(vector):
                assert (
                    access.apply(register=register + i, lane=lanes, warp=warp, block=0)["offset"] == starts + i
                ).all()
            found.add(count_wavefronts(starts * bits // 8, max(1, vector * bits // 8)))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_exact_for_any_linear_map(seed: int) -> None:
    """Vectors first in registers, then any map of what is left, with copies in lanes: every access takes as many."""
    rng = random.Random(seed)
    seen = set()
    for _ in range(25):
        bits = rng.choice([8, 16, 32, 64])
        log = rng.randrange(9, 12)
        vec = rng.randrange(0, {8: 4, 16: 3, 32: 2, 64: 1}[bits] + 1)
        outer = invertible(rng, log - vec)
        columns = [1 << i for i in range(vec)] + [c << vec for c in outer]
        for _ in range(rng.randrange(3)):
            columns.insert(rng.randrange(vec, len(columns) + 1), 0)
        lanes = 5
        registers = max(vec, rng.randrange(vec, len(columns) - lanes + 1))
        layout = shaped(columns, (registers, lanes, len(columns) - registers - lanes), log)
        shared = SharedLinearLayout([[1 << i] for i in range(log)])
        expected = by_counting(layout, shared.to_linear([1 << log]), bits, 1 << vec)
        assert len(expected) == 1
        assert wavefronts(layout, shared, [1 << log], bits, 1 << vec) in expected
        seen |= expected
    assert len(seen) >= 4


def test_the_widest_vector_is_found_in_any_order_of_registers() -> None:
    rng = random.Random(2)
    for _ in range(50):
        columns = permutation(rng, 10)
        layout = shaped(columns, (4, 5, 1), 10)
        shared = SharedLinearLayout([[1 << i] for i in range(10)])
        registers = set(layout.in_columns("register"))
        run = next(i for i in range(5) if 1 << i not in registers)
        moved = [c for c in columns if c not in registers]
        while run and any(c & (1 << run) - 1 for c in moved):
            run -= 1
        widest = 1 << min(run, 2)
        assert wavefronts(layout, shared, [1024], 32) == wavefronts(layout, shared, [1024], 32, widest)
        if widest < 4:
            with pytest.raises(LayoutError, match="a lane has only . in a row"):
                wavefronts(layout, shared, [1024], 32, 2 * widest)


def test_transposition_of_16_by_32_words_by_one_warp() -> None:
    """The published example: a column of a row-major tile is 16-way, xor the row 2-way, xor twice the row none."""
    write = BlockedLayout([1, 1], [1, 32], [1, 1], [1, 0])
    read = BlockedLayout([1, 1], [16, 2], [1, 1], [0, 1])
    for vec, expected in ((None, 16), (1, 2), (2, 1)):
        shared = SwizzledSharedLayout(vec or 1, 1, 16 if vec else 1, [1, 0])
        assert wavefronts(write, shared, [16, 32], 32) == 1
        assert wavefronts(read, shared, [16, 32], 32) == expected


def test_padding() -> None:
    columns = BlockedLayout([1, 1], [32, 1], [1, 1], [0, 1])
    plain = SwizzledSharedLayout(1, 1, 1, [1, 0])
    padded = PaddedSharedLayout.with_identity_for([[32, 1]], [32, 32], [1, 0])
    assert wavefronts(columns, plain, [32, 32], 32) == 32
    assert wavefronts(columns, padded, [32, 32], 32) == 1
    rows = BlockedLayout([1, 4], [4, 8], [1, 1], [1, 0])
    assert wavefronts(rows, PaddedSharedLayout.with_identity_for([[32, 4]], [32, 32], [1, 0]), [32, 32], 32) == 4
    assert wavefronts(rows, padded, [32, 32], 32) == wavefronts(rows, padded, [32, 32], 32, 1)
    with pytest.raises(LayoutError, match="a vector of 4 elements was requested, but a lane has only 1 in a row"):
        wavefronts(rows, padded, [32, 32], 32, 4)
    assert [bank_conflicts(columns, memory, [32, 32], 32) for memory in (plain, padded)] == [7, 0]
    for pairs, expected in (([[32, 2]], 0), ([[64, 1]], 1), ([[32, 4]], 0), ([[8, 4], [32, 1]], 0), ([[32, 32]], 7)):
        memory = PaddedSharedLayout.with_identity_for(pairs, [32, 32], [1, 0])
        assert bank_conflicts(columns, memory, [32, 32], 32) == expected, pairs


def test_bad_input() -> None:
    layout = BlockedLayout([1], [32], [1], [0])
    plain = SwizzledSharedLayout(1, 1, 1, [0])
    with pytest.raises(LayoutError, match="elements have 1, 2, 4, 8, 16, 32, 64 or 128 bits, got 12"):
        bank_conflicts(layout, plain, [32], 12)
    with pytest.raises(LayoutError, match=r"for a tile of shape \[32\], not \[64\]"):
        bank_conflicts(layout.to_linear([32]), plain, [64], 32)
    with pytest.raises(LayoutError, match="a vector of 3 elements"):
        wavefronts(layout, plain, [32], 32, 3)


def test_counting() -> None:
    assert count_wavefronts(np.arange(32) * 4, 4) == 1
    assert count_wavefronts(np.zeros(32, int), 4) == 1
    assert count_wavefronts(np.arange(32) * 8, 8) == 2
    assert count_wavefronts(np.arange(32) * 16, 16) == 4
    assert count_wavefronts(np.arange(32) * 128, 4) == 32
    assert count_wavefronts(np.arange(32), 1) == 1


@pytest.mark.parametrize("count", [bank_conflicts, wavefronts])
def test_layouts_in_the_wrong_place(count: Any) -> None:
    registers, shared = BlockedLayout([1, 2], [4, 8], [2, 2], [1, 0]), SwizzledSharedLayout(1, 1, 1, [1, 0])
    with pytest.raises(LayoutError, match="expected a layout in shared memory, with offsets, got BlockedLayout"):
        count(registers, registers, [16, 64], 16)
    with pytest.raises(LayoutError, match="expected a layout in registers, with lanes, got SwizzledSharedLayout"):
        count(shared, registers, [16, 64], 16)
    with pytest.raises(LayoutError, match="expected a layout in registers, with lanes, got offset, block"):
        count(shared.to_linear([16, 64]), shared, [16, 64], 16)
