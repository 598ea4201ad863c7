"""Tensor maps beside the parts of descriptors, as a launch is given them, without a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
from weft.backends.nvidia import tensormaps
from weft.base import LaunchError
from weft.runtime import gpu
from weft.runtime.launch import make_fire
from weft.targets.nvidia import map_of, map_of_parts

LEAVES = [
    ((0,), "tensordesc<fp16[64,64]>"),
    ((1,), "*fp32"),
    ((2,), "tensordesc<bf16[64,64]>"),
    ((3,), "tensordesc<fp16[64,64]>"),
]
NAMES = ["a", "x", "b", "c"]
ONE = ["f16", [64, 64], 128, [64, 64]]
OTHER = ["f16", [32, 64], 64, [64, 32]]


def parts(address: int, rows: int = 100, columns: int = 256) -> tuple[int, ...]:
    return (address, 0, rows, columns, columns, 1)


@pytest.fixture
def slots(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a launch of a kernel with such maps would be given: codes, and slots."""
    monkeypatch.setattr(tensormaps, "encoded", lambda tmap: tmap)
    monkeypatch.setattr(gpu.devices, "map_maker", tensormaps.map_maker, raising=False)

    def given(maps: list[list[Any]]) -> tuple[str, list[Any]]:
        kernel = SimpleNamespace(metadata=SimpleNamespace(tensor_maps=maps, checked=[]))
        seen: list[Any] = []

        def launcher(codes: str) -> Any:
            seen.append(codes)
            return lambda *slots: seen.append(slots[3:])

        made = gpu.map_makers(kernel, LEAVES, NAMES)
        make_fire(kernel, LEAVES, 4, launcher, made)(1, 1, 1, parts(4096), 7, parts(8192), parts(16384, 64, 64))
        return seen[0], list(seen[1])

    return given


def test_no_maps(slots: Any) -> None:
    codes, found = slots([])
    assert codes == "Qqqqqq" + "Q" + "Qqqqqq" * 2
    assert found == [*parts(4096), 7, *parts(8192), *parts(16384, 64, 64)]


def test_one_of_three_has_a_map(slots: Any) -> None:
    codes, found = slots([[*ONE, 1]])
    assert codes == "Qqqqqq" + "Q" + "Qqqqqq128s" + "Qqqqqq"
    tmap = map_of_parts(parts(8192), "f16", (64, 64), 128)
    assert found == [*parts(4096), 7, *parts(8192), tmap, *parts(16384, 64, 64)]


def test_two_maps_of_one_descriptor(slots: Any) -> None:
    """In the order of the parameters, whatever the descriptors."""
    codes, found = slots([[*OTHER, 0], [*ONE, 2], [*OTHER, 2]])
    assert codes == "Qqqqqq128s" + "Q" + "Qqqqqq" + "Qqqqqq128s128s"
    last = parts(16384, 64, 64)
    first, *two = (
        map_of_parts(parts(4096), "f16", (32, 64), 64),
        map_of_parts(last, "f16", (64, 64), 128),
        map_of_parts(last, "f16", (32, 64), 64),
    )
    assert found == [*parts(4096), first, 7, *parts(8192), *last, *two]


def test_a_tensor_that_has_no_map_is_named(slots: Any) -> None:
    with pytest.raises(LaunchError, match="`b` makes no tensor map"):
        slots([["f16", [64, 512], 128, [64, 64], 1]])


@pytest.mark.parametrize(
    ("dtype", "pointee"), [(np.float16, "f16"), (ml_dtypes.bfloat16, "bf16"), (np.float32, "f32"), (np.uint8, "u8")]
)
@pytest.mark.parametrize("shape", [(64, 64), (100, 128), (1, 16)])
def test_parts_and_descriptor_have_the_same_map(dtype: Any, pointee: str, shape: tuple[int, int]) -> None:
    described = weft.TensorDescriptor.from_tensor(np.zeros((*shape[:1], 2 * shape[1]), dtype)[:, : shape[1]], [8, 16])
    address, box = 65536, (16, 8)
    by_parts = (address, 0, *described.shape, *described.strides)
    if pointee == "u8":
        pointee = "i8"
    assert map_of_parts(by_parts, pointee, box, 16) == map_of(described, address, pointee, box, 16, (8, 16))


def test_a_kernel_says_which_maps_it_takes() -> None:
    """The number of the descriptor is last; operands of the loop have one, what is stored has none."""
    from hopper.specialized import product

    a, b = (np.zeros((64, 256), np.float16) for _ in range(2))
    sides = (weft.TensorDescriptor.from_tensor(x, [64, 64]) for x in (a, b))
    more = {"BM": 64, "BN": 64, "BK": 64, "TRANS": True, "WS": True}
    made = product.warmup(
        *sides, np.zeros((64, 64), np.float32), 64, 256, **more, grid=(1,), target="cuda:90", num_stages=2
    )
    assert [(kind, number) for kind, _, _, _, number in made.metadata.tensor_maps] == [("f16", 0), ("f16", 1)]
