"""Kernels launched on views of tensors and on descriptors of them: after the first calls nothing is looked at twice."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
import weft.runtime.gluon
from weft import gluon
from weft.backends.nvidia import tensormaps
from weft.base import LaunchError
from weft.gluon import language as gl
from weft.gluon.language.nvidia.hopper import fence_async_shared, tma
from weft.runtime import gpu as launching, gpu_compiled

from .pretended_gpu import Array, PretendedGPU, Tensor, pretend

A, B = 1 << 40, 1 << 41


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedGPU]:
    yield from pretend(monkeypatch)


@dataclass(frozen=True)
class Device:
    index: int = 0
    type: str = "cuda"


class View:
    """A tensor in other clothes, as libraries make them to launch on: what is not there, launches do not need."""

    def __init__(self, address: int, device: int = 0, dtype: Any = np.float32) -> None:
        self.dtype, self.device, self._address = np.dtype(dtype), Device(device), address

    def data_ptr(self) -> int:
        return self._address


class Matrix(Tensor):
    """A tensor of 64 x 32."""

    shape = (64, 32)

    def stride(self) -> tuple[int, int]:
        return 32, 1


Matrix.__module__, Matrix.__name__ = "torch", "Tensor"


def described(address: int, device: int = 0, block: int = 16, dtype: Any = np.float32, padding: str = "zero") -> Any:
    tensor = Matrix(address, dtype, 64 * 32, device)
    return weft.TensorDescriptor.from_tensor(tensor, [block, 16], padding)


def scaled() -> Any:
    @weft.jit
    def kernel(x, out, n, factor, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)

    return kernel


def doubled() -> Any:
    @weft.jit
    def kernel(x, y, n):
        y.store([n, 0], x.load([n, 0]) * 2)

    return kernel


def test_views_are_looked_at_once(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = scaled()
    for _ in range(3):
        kernel[(1,)](View(A), View(B), 1000, 1.5, BLOCK=64)
    monkeypatch.setattr(launching.Binding, "_handler_for", None)
    kernel[(2,)](View(A + 64), View(B), 1000, 2.5, BLOCK=64)
    assert gpu.launched[-1].values("QQif") == (A + 64, B, 1000, 2.5)


def test_what_views_are_decides_the_code(gpu: PretendedGPU) -> None:
    kernel = scaled()
    kinds = [{}, {"address": A + 4}, {"dtype": np.int32}]
    found = [kernel[(1,)](View(**{"address": A, **given}), View(B), 1000, 1.5, BLOCK=64).hash for given in kinds * 3]
    assert found == found[:3] * 3
    assert len(set(found)) == 3


def test_views_on_two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    for gpu in pretend(monkeypatch, count=2):
        kernel = scaled()
        for index in (0, 0, 0, 1, 1, 0):
            kernel[(1,)](View(A, index), View(B, index), 64, 1.0, BLOCK=64)
        with pytest.raises(LaunchError, match="argument `x` is on GPU 0, argument `out` on GPU 1"):
            kernel[(1,)](View(A), View(B, 1), 64, 1.0, BLOCK=64)
        assert [call.gpu for call in gpu.launched] == [0, 0, 0, 1, 1, 0]


class Pointer:
    """An address and a type, and not a word about where that is."""

    def __init__(self, address: int, dtype: Any = np.float32) -> None:
        self.dtype, self._address = np.dtype(dtype), address

    def data_ptr(self) -> int:
        return self._address


def test_the_driver_is_asked_where_a_pointer_points_to(monkeypatch: pytest.MonkeyPatch) -> None:
    for gpu in pretend(monkeypatch, count=2, addresses={A: 1, B: 1, A + 64: 0}):
        kernel = scaled()
        for _ in range(3):
            kernel[(1,)](Pointer(A), Pointer(B), 1000, 1.5, BLOCK=64)
            assert gpu.launched[-1].values("QQif") == (A, B, 1000, 1.5) and gpu.launched[-1].gpu == 1
        with pytest.raises(LaunchError, match="argument `x` is on GPU 0, argument `out` on GPU 1"):
            kernel[(1,)](Pointer(A + 64), Pointer(B), 1000, 1.5, BLOCK=64)
        x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
        scaled()[(1,)](Pointer(x.ctypes.data), Pointer(out.ctypes.data), 64, 2.0, BLOCK=64)
        assert (out == 2).all() and len(gpu.launched) == 3, "memory of the host, that the driver does not know"
        with pytest.raises(LaunchError, match="argument `out`: a .*Pointer lives in host memory"):
            kernel[(1,)](Pointer(A), Pointer(out.ctypes.data), 64, 2.0, BLOCK=64)


def test_descriptors_are_looked_at_once(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = doubled()
    for _ in range(3):
        kernel[(1,)](described(A), described(B), 16)
    monkeypatch.setattr(launching.Binding, "_handler_for", None)
    kernel[(4,)](described(A + 64), described(B), 32)
    shape = 0, 64, 32, 32, 1
    assert gpu.launched[-1].values("Qqqqqq" * 2 + "i") == (A + 64, *shape, B, *shape, 32)


def filled() -> Any:
    @gluon.jit
    def kernel(desc: Any, rows: gl.constexpr) -> None:
        memory = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout)
        memory.store(gl.zeros([64, 32], desc.dtype, rows))
        fence_async_shared()
        tma.async_store(desc, [0, 0], memory)
        tma.store_wait(0)

    return kernel


def test_descriptors_for_the_copy_engine(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their maps are made of what they describe now."""
    monkeypatch.setattr(tensormaps, "encoded", lambda made: struct.pack("<q120x", made.address))
    rows, memory = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0]), gl.NVMMASharedLayout(64, 16, rank=2)

    def of(address: int) -> Any:
        tensor = Matrix(address, np.float16, 64 * 32)
        return weft.runtime.gluon.TensorDescriptor.from_tensor(tensor, [64, 32], memory)

    kernel = filled()
    for _ in range(3):
        compiled = kernel[(1,)](of(A), rows)
    compiled[(1,)](of(A))
    monkeypatch.setattr(launching.Binding, "_handler_for", None)
    monkeypatch.setattr(gpu_compiled, "_bound", None)
    kernel[(1,)](of(A + 64), rows)
    compiled[(1,)](of(B))
    assert [call.values("qqqqq") for call in gpu.launched[2:]] == [
        (address, 64, 32, 32, 1) for address in (A, A, A + 64, B)
    ]


def test_what_descriptors_are_decides_the_code(gpu: PretendedGPU) -> None:
    kernel = doubled()
    kinds: list[dict[str, Any]] = [{}, {"block": 32}, {"dtype": np.float16}, {"padding": "nan"}]
    found = [
        kernel[(1,)](described(A, **given), described(B, block=given.get("block", 16)), 16).hash for given in kinds * 3
    ]
    assert found == found[:4] * 3
    assert len(set(found)) == 4


def test_descriptors_on_two_gpus_and_of_other_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    for gpu in pretend(monkeypatch, count=2):
        kernel = doubled()
        for index in (0, 0, 0, 1, 1, 0):
            kernel[(1,)](described(A, index), described(B, index), 16)
        other = weft.TensorDescriptor(Array(A, size=64 * 32), [64, 32], [32, 1], [16, 16])
        kernel[(1,)](other, described(B), 16)
        assert [call.gpu for call in gpu.launched] == [0, 0, 0, 1, 1, 0, 0]
        assert gpu.launched[-1].values("Q") == (A,)
        with pytest.raises(LaunchError, match="argument `x` is on GPU 0, argument `y` on GPU 1"):
            kernel[(1,)](described(A), described(B, 1), 16)
