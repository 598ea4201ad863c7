"""Bulk tensor copies: which elements a box has, and where they lie in shared memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from weft.layouts import NVMMASharedLayout
from weft.targets.nvidia import TensorMap, decode, encode, instruction

from .test_nvidia import Bytes


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


def test_a_box_with_steps() -> None:
    tensor = TensorMap(0, 4, (64, 64), (256,), (8, 6), 16, steps=(1, 4))
    assert tensor.counts == (8, 2) and tensor.bytes == 64
    address, inside = tensor.elements((60, 62))
    assert address[1, 2] == (62 + 4) * 256 + (60 + 2) * 4
    np.testing.assert_array_equal(inside, [[True] * 4 + [False] * 4, [False] * 8])


def test_a_map_that_the_device_makes() -> None:
    """All fields, one instruction each, then a warp copies it to global memory."""
    want = TensorMap(0x1230, 2, (100, 10, 7), (208, 4096), (64, 8, 2), 128, (1, 2, 1), True, "bf16")
    memory, active = Bytes(), np.zeros((1, 32, 1), np.bool_)
    active[0, 0] = True

    def spread(value: int, dtype: type = np.int32) -> np.ndarray:
        return np.full((1, 32, 1), value, dtype)

    def replace(field: str, *values: int, dtype: type = np.int32) -> None:
        operands = [spread(256), *(spread(v) for v in values[:-1]), spread(values[-1], dtype), active]
        assert instruction(f"tensormap.replace.{field}").run(*operands, memory=memory) == ()

    replace("global_address", want.address, dtype=np.int64)
    replace("rank", 2)
    for i in range(3):
        replace("global_dim", i, want.shape[i])
        replace("box_dim", i, want.box[i])
        replace("element_stride", i, want.steps[i])
    for i in range(2):
        replace("global_stride", i, want.strides[i], dtype=np.int64)
    for field, value in (("elemtype", 10), ("interleave_layout", 0), ("swizzle_mode", 3), ("fill_mode", 1)):
        replace(field, value)
    publish = instruction("tensormap.publish")
    publish.run(spread(512, np.int64), spread(256), np.ones((1, 32, 1), np.bool_), memory=memory)
    raw = memory.spaces["global"][512:640].tobytes()
    assert decode(raw) == want and raw == encode(want)
    assert not memory.spaces["global"][:512].any()


@pytest.mark.parametrize("at,value,message", [(0, 0, "zero"), (104, 9, "no tensor map"), (116, 7, "no tensor map")])
def test_bytes_that_are_no_map(at: int, value: int, message: str) -> None:
    raw = bytearray(128)
    raw[at] = value
    with pytest.raises(ValueError, match=message):
        decode(bytes(raw))
