"""Tensor maps beside the parts of descriptors, as a launch is given them, without a GPU."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
from weft.backends.nvidia import tensormaps
from weft.base import LaunchError
from weft.base.made_tensors import MadeTensor
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


# -- maps of tensors that no argument describes -----------------------------------------------------------------------


def sizes(*numbers: int) -> tuple[tuple[tuple[int, tuple[int, ...]], ...], ...]:
    return tuple(((1, (n,)),) for n in numbers)


MATRIX = MadeTensor(6, (), sizes(7, 8), (*sizes(9), ((1, ()),)), ((7, 1),))
"""Of a pointer, two sizes and a stride behind a descriptor, whose parts are six parameters."""
KINDS = ["tensordesc<fp16[64,64]>", "*fp16", "i32", "i32", "i32"]


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What launches a kernel that takes a map of MATRIX; the slots of each launch, and what was compiled instead."""
    encoded: list[Any] = []

    def encode(tmap: Any) -> Any:
        encoded.append(tmap)
        return tmap

    monkeypatch.setattr(tensormaps, "encoded", encode)
    monkeypatch.setattr(gpu.devices, "map_maker", tensormaps.map_maker, raising=False)
    seen: list[Any] = []
    compiled: list[Any] = []

    def kernel(name: str, made_maps: Any) -> Any:
        metadata = SimpleNamespace(tensor_maps=[], made_maps=made_maps, checked=[], target="cuda:90")
        return SimpleNamespace(name=name, metadata=metadata, src="source", given_options={"num_warps": 8})

    def compile(src: Any, target: Any, options: Any) -> Any:
        compiled.append((src, target, options))
        return kernel("plain", [])

    monkeypatch.setattr(gpu.compiling, "compile", compile)

    def launcher(made: Any) -> Any:
        return lambda codes: lambda *slots: seen.append((made.name, codes, slots[3:]))

    leaves = [((i,), kind) for i, kind in enumerate(KINDS)]
    first = kernel("with maps", [["a", "f16", [64, 64], 128, MATRIX.plain()]])
    fire = gpu.fire_on_gpu(first, leaves, range(5), ["d", "a", "m", "n", "stride"], launcher)
    return fire, seen, encoded, compiled


def test_a_map_is_made_of_several_arguments_and_kept(launched: Any) -> None:
    fire, seen, encoded, compiled = launched
    for _ in range(3):
        fire(1, 1, 1, parts(4096), 8192, 100, 72, 80)
    fire(1, 1, 1, parts(4096), 8192, 100, 72, 128)
    tmap = map_of_parts((8192, 0, 100, 72, 80, 1), "f16", (64, 64), 128)
    assert seen[0] == seen[2] == ("with maps", "QqqqqqQqqq128s", (*parts(4096), 8192, 100, 72, 80, tmap))
    assert seen[3][2][-1].strides == (256,)
    assert len(encoded) == 2 and not compiled


@pytest.mark.parametrize("numbers", [(8192, 0, 72, 80), (8192, 100, 0, 80), (8200, 100, 72, 80), (8192, 100, 72, 81)])
def test_without_a_map_the_kernel_is_another(launched: Any, numbers: tuple[int, ...]) -> None:
    """No rows, no columns, an address or a stride that is no multiple of 16 bytes: loads by threads."""
    fire, seen, encoded, compiled = launched
    for _ in range(2):
        fire(1, 1, 1, parts(4096), *numbers)
    assert seen == [("plain", "QqqqqqQqqq", (*parts(4096), *numbers))] * 2
    assert compiled == [("source", "cuda:90", {"num_warps": 8, "made_tensors": False})] and not encoded
    fire(1, 1, 1, parts(4096), 8192, 100, 72, 80)
    assert seen[-1][0] == "with maps"


def test_maps_are_not_kept_forever(launched: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.runtime.made_maps.KEPT", 4)
    fire, _, encoded, _ = launched
    for i in range(10):
        fire(1, 1, 1, parts(4096), 8192 + 16 * i, 100, 72, 80)
    assert len(encoded) == 10


def test_a_kernel_says_of_which_arguments_it_wants_maps() -> None:
    from hopper.pointed import masked

    a = np.zeros((64, 256), np.float16)
    more = {"BM": 64, "BN": 64, "BK": 64}
    args = (a, a, np.zeros((64, 64), np.float32), 72, 80, 256, 256, 1, 256, 1, 72, 1)
    made = masked.warmup(*args, **more, grid=(1,), target="cuda:90", num_stages=2)
    left, right = made.metadata.made_maps
    assert not made.metadata.tensor_maps and left[:4] == ["a.1", "f16", [64, 64], 128]
    values = [4096, 8192, 0, 72, 80, 256, 512, 256, 72]  # without the strides that are 1
    assert MadeTensor.of_plain(left[4]).parts(values) == (4096, 0, 72, 256, 512, 1)
    assert MadeTensor.of_plain(right[4]).parts(values) == (8192, 0, 256, 80, 256, 1)


# -- what the driver is given -----------------------------------------------------------------------------------------


def test_the_driver_is_given_a_map_as_it_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """cuTensorMapEncodeTiled, by a function in its place with the same arguments."""
    seen: list[Any] = []
    status = [0]
    pointers = [ctypes.c_void_p] * 5

    @ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, *pointers, *[ctypes.c_int] * 4
    )  # fmt: skip
    def encode(to: int, kind: int, rank: int, address: int, *rest: Any) -> int:
        sizes = (ctypes.c_uint64 * rank).from_address(rest[0])[:]
        strides = (ctypes.c_uint64 * (rank - 1)).from_address(rest[1])[:]
        box, steps = ((ctypes.c_uint32 * rank).from_address(x)[:] for x in rest[2:4])
        seen.append((to % 64, kind, rank, address, sizes, strides, box, steps, rest[4:]))
        ctypes.memset(to, 7, 128)
        return status[0]

    driver = SimpleNamespace(
        cuGetProcAddress=lambda name, version, flags: (0, ctypes.cast(encode, ctypes.c_void_p).value, 0),
        CUresult=int,
        cuGetErrorName=lambda status: (0, b"CUDA_ERROR_INVALID_VALUE"),
        cuGetErrorString=lambda status: (0, b"invalid argument"),
    )
    monkeypatch.setattr(tensormaps, "api", lambda: driver)
    monkeypatch.setattr("weft.backends.nvidia.faults.bindings", lambda: driver)
    tensormaps._encode_tiled.cache_clear()
    try:
        made = tensormaps.encoded(map_of_parts((1 << 46, 0, 7, 100, 72, 6400, 80, 1), "bf16", (64, 32, 1), 128))
        assert made == b"\7" * 128
        assert seen == [(0, 9, 3, 1 << 46, [72, 100, 7], [160, 12800], [64, 32, 1], [1, 1, 1], (0, 3, 2, 0))]
        status[0] = 1
        with pytest.raises(LaunchError, match="a tensor map failed: CUDA_ERROR_INVALID_VALUE"):
            tensormaps.encoded(map_of_parts((1 << 46, 0, 7, 72, 80, 1), "f16", (64, 4), 128))
    finally:
        tensormaps._encode_tiled.cache_clear()
