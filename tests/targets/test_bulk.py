"""Bulk tensor copies: which elements a box has, and where they lie in shared memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from weft.layouts import NVMMASharedLayout
from weft.targets.nvidia import TensorMap


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_a_box_lies_as_the_shared_layout_says(swizzle: int, bits: int) -> None:
    columns = swizzle * 8 // bits
    box = TensorMap(0, bits // 8, (columns, 32), (swizzle,), (columns, 32), swizzle)
    layout = NVMMASharedLayout(swizzle, bits, 2).to_linear([32, columns])
    inputs = {d: np.arange(s) if d == "offset" else 0 for d, s in layout.in_dims.items()}
    place = layout.apply(inputs)
    want = np.zeros((32, columns), np.int64)
    want[place["dim0"], place["dim1"]] = np.arange(32 * columns) * (bits // 8)
    np.testing.assert_array_equal(box.offsets(), want)


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_elements_of_a_box(rank: int) -> None:
    rng = np.random.default_rng(rank)
    shape = (20, 5, 4, 3, 2)[:rank]
    box = (8, 3, 2, 2, 1)[:rank]
    strides = tuple(int(s) for s in np.cumprod([96, *shape[1:]])[: rank - 1])
    tensor = TensorMap(4096, 4, shape, strides, box)
    start = tuple(int(x) for x in rng.integers(-2, 3, rank))
    address, inside = tensor.elements(start)
    for index in itertools.product(*(range(b) for b in box)):
        where = [s + i for s, i in zip(start, index, strict=True)]
        want = 4096 + sum(w * s for w, s in zip(where, (4, *strides), strict=True))
        assert address[index[::-1]] == want
        assert inside[index[::-1]] == all(0 <= w < n for w, n in zip(where, shape, strict=True))
    assert tensor.bytes == 4 * int(np.prod(box)) and tensor.offsets().max() == tensor.bytes - 4


@pytest.mark.parametrize(
    "change,message",
    [
        ({"address": 8}, "multiple of 16"),
        ({"strides": (40,)}, "multiples of 16"),
        ({"box": (64, 512)}, "1 to 256"),
        ({"box": (6, 8)}, "rows must be"),
        ({"swizzle": 48}, "swizzle must be"),
        ({"swizzle": 64}, "wider than the swizzle"),
        ({"shape": (1,) * 6}, "1 to 5 dimensions"),
        ({"box": (64,)}, "differ in rank"),
    ],
)
def test_maps_that_the_driver_would_refuse(change: dict[str, object], message: str) -> None:
    good = {"address": 0, "element_bytes": 2, "shape": (100, 10), "strides": (208,), "box": (64, 8), "swizzle": 128}
    TensorMap(**good)
    with pytest.raises(ValueError, match=message):
        TensorMap(**{**good, **change})
