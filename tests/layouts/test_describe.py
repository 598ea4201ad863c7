"""Names of linear layouts: what is found is the layout, and what has a name is found."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from weft.layouts import (
    AMDMFMALayout,
    AMDWMMALayout,
    BlockedLayout,
    DistributedLinearLayout,
    DotOperandLayout,
    IntelDPASLayout,
    Layout,
    LinearLayout,
    NVMMADistributedLayout,
    NVMMASharedLayout,
    SharedLinearLayout,
    SliceLayout,
    SwizzledSharedLayout,
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
    describe,
    descriptions,
)

from .random_layouts import layout as random_layout
from .stored import GOLDEN, OWN, lines, named

EXPLICIT = (DistributedLinearLayout, SharedLinearLayout)


def round_trips(path: Path, step: int) -> None:
    """Every stored layout is found under a name again, and the name makes the same layout."""
    for case in lines(path)[::step]:
        layout = named(case["layout"])
        linear = layout.to_linear(case["shape"])
        found = describe(linear)
        assert found is not None and found.to_linear(case["shape"]) == linear, case
        assert isinstance(found, EXPLICIT) <= isinstance(layout, EXPLICIT), case


def test_own_data() -> None:
    round_trips(OWN / "zoo.jsonl", 4)


def test_golden_data() -> None:
    if not GOLDEN.exists():
        pytest.skip("the golden data is not part of the repository")
    round_trips(GOLDEN / "layouts.jsonl", 5)


MMA = NVMMADistributedLayout([2, 0], [2, 2], [16, 8])
MFMA = AMDMFMALayout(3, [32, 32, 8], True, [2, 2])
WMMA = AMDWMMALayout(2, True, [2, 2])
DPAS = IntelDPASLayout(8, 8, 16, 2, [2, 2], [2, 2], 16)


@pytest.mark.parametrize(
    ("layout", "shape"),
    [
        (BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]), [64, 64]),
        (BlockedLayout([2, 4], [8, 4], [2, 2], [0, 1], [[1, 0], [0, 1]]), [128, 128]),
        (SliceLayout(1, BlockedLayout([1, 4], [8, 4], [2, 2], [1, 0])), [64]),
        (SliceLayout(0, BlockedLayout([1, 4], [8, 4], [2, 2], [1, 0], [[1, 0]])), [64]),
        (MMA, [64, 64]),
        (NVMMADistributedLayout([2, 0], [2, 2], [16, 8], [[0, 1]]), [64, 64]),
        (NVMMADistributedLayout([2, 0], [2, 1, 2], [1, 16, 8]), [4, 32, 32]),
        (NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16]), [128, 128]),
        (DotOperandLayout(0, MMA, 4), [64, 64]),
        (DotOperandLayout(1, MMA, 2), [64, 64]),
        (DotOperandLayout(0, MMA, 32), [64, 128]),
        (MFMA, [128, 128]),
        (AMDMFMALayout(3, [32, 32, 8], True, [2, 2], tiles_per_warp=[2, 2]), [256, 256]),
        (DotOperandLayout(1, MFMA, 4), [64, 128]),
        (WMMA, [64, 64]),
        (AMDWMMALayout(1, False, [2, 2]), [64, 64]),
        (DotOperandLayout(0, WMMA, 8), [64, 64]),
        (DotOperandLayout(1, AMDWMMALayout(3, True, [2, 2], [16, 16, 32]), 8), [64, 64]),
        (SwizzledSharedLayout(8, 1, 8, [1, 0]), [64, 64]),
        (SwizzledSharedLayout(4, 2, 4, [0, 1], [[1, 0]]), [64, 64]),
        (NVMMASharedLayout(128, 16), [64, 128]),
        (NVMMASharedLayout(64, 8, transposed=True), [128, 64]),
        (TensorMemoryLayout((128, 64), 1), [128, 64]),
        (TensorMemoryLayout((64, 64), 2), [128, 64]),
        (TensorMemoryLayout((64, 64), 1, (2, 1), True), [128, 128]),
        (TensorMemoryScalesLayout(), [128, 8]),
    ],
    ids=repr,
)
def test_finds_the_very_layout(layout: Layout, shape: list[int]) -> None:
    found = describe(layout.to_linear(shape))
    assert type(found) is type(layout)
    assert found.to_linear(shape) == layout.to_linear(shape)
    if isinstance(layout, (BlockedLayout, SwizzledSharedLayout)) or layout in (MMA, MFMA, WMMA):
        assert found == layout or isinstance(layout, AMDMFMALayout)
    assert found in descriptions(layout.to_linear(shape))


def test_one_map_of_several_families() -> None:
    linear = NVMMASharedLayout(128, 16).to_linear([64, 64])
    kinds = [type(found) for found in descriptions(linear)]
    assert kinds == [SwizzledSharedLayout, NVMMASharedLayout, SharedLinearLayout]
    linear = DPAS.to_linear([64, 64])
    assert IntelDPASLayout in [type(found) for found in descriptions(linear)]
    assert all(found.to_linear([64, 64]) == linear for found in descriptions(linear))
    operand = DotOperandLayout(1, DPAS, 2).to_linear([64, 64])
    assert any(isinstance(f, DotOperandLayout) and isinstance(f.parent, IntelDPASLayout) for f in descriptions(operand))


def test_anything_else_is_explicit() -> None:
    """Bases that move in several dimensions too."""
    explicit = 0
    for seed in range(40):
        rng = random.Random(seed)
        columns = [1 << i for i in range(6)]
        rng.shuffle(columns)
        if rng.random() < 0.5:
            columns[0] ^= columns[1]
        base = random_layout(rng, columns, 6, ("register", "lane", "warp"), ("dim0", "dim1"))
        layout = base * LinearLayout.zeros_1d(1, "block", "dim0")
        found = describe(layout)
        assert found is not None and found.to_linear(list(layout.out_dims.values())) == layout
        explicit += isinstance(found, DistributedLinearLayout)
    assert explicit >= 5
    assert describe(LinearLayout.identity_1d(4, "x", "dim0")) is None
    assert describe(LinearLayout.identity_1d(4, "register", "y")) is None
    assert describe(LinearLayout.empty()) is None
    shared = SharedLinearLayout([[1, 1], [0, 1], [2, 0]])
    assert describe(shared.to_linear([4, 2])) == shared
