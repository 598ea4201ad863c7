"""Launches on a GPU in native code of kernels that take tensor maps: of descriptors, and of pointers and sizes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft
from hopper.pointed import masked
from hopper.specialized import product
from weft import TensorDescriptor
from weft.backends.nvidia import tensormaps
from weft.base import LaunchError
from weft.runtime import gpu as launching, parameters, prepared

from .pretended_gpu import PretendedGPU, Tensor, pretend


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedGPU]:
    if not prepared.supported():
        pytest.skip("launches are not prepared on this Python")
    monkeypatch.setattr(prepared, "AFTER", 1)
    monkeypatch.setattr(tensormaps, "encoded", _encoded)
    yield from pretend(monkeypatch)


def _encoded(tmap: Any) -> bytes:
    """A map whose first bytes tell others from it."""
    return struct.pack("<q120x", hash(tmap))


OF_PRODUCT = {"BM": 64, "BN": 64, "BK": 64, "TRANS": True, "WS": True, "num_stages": 2}


def _described(address: int, rows: int, columns: int) -> TensorDescriptor:
    return TensorDescriptor(Tensor(address, np.float16), [rows, columns], [columns, 1], [64, 64])


def _arguments(a: int = 1 << 40, k: int = 256) -> tuple[Any, ...]:
    return _described(a, 64, k), _described(1 << 41, 64, k), Tensor(1 << 42), 64, k


class Both:
    """A kernel that is launched natively, and the same one that Python launches."""

    def __init__(self, gpu: PretendedGPU, native: Any, other: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gpu, self.native, self.other = gpu, native, other
        with monkeypatch.context() as patch:
            patch.setattr(launching, "supported", lambda: False)
            other._on_gpu()

    def prepare(self, *args: Any, **kwargs: Any) -> None:
        for _ in range(3):
            self.other[(1,)](*args, **kwargs)
        self.gpu.parameters = len(self.gpu.launched[-1].copies)
        for _ in range(3):
            self.native[(1,)](*args, **kwargs)
        assert self.gpu.native, "the launch was not prepared"

    def are_alike(self, *args: Any, **kwargs: Any) -> bool:
        """Launch both, natively and not, and compare what the driver was handed."""
        before, (native, other) = self.gpu.native, (self.native, self.other)
        native[(2, 3)](*args, **kwargs)
        other[(2, 3)](*args, **kwargs)
        assert self.gpu.native == before + 1
        a, b = self.gpu.launched[-2:]
        return (a.copies, a.grid, a.block, a.shared) == (b.copies, b.grid, b.block, b.shared)


def test_descriptors(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    both = Both(gpu, weft.jit(product.fn), weft.jit(product.fn), monkeypatch)
    both.prepare(*_arguments(), **OF_PRODUCT)
    assert gpu.parameters == 6 + 1 + 6 + 1 + 3, "each descriptor has a map behind its slots"
    for a, k in ((1 << 43, 256), (1 << 40, 512), ((1 << 40) + 64, 512)):
        assert both.are_alike(*_arguments(a, k), **OF_PRODUCT)
    first, second = (gpu.launched[-k].copies for k in (1, 3))
    assert [i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b] == [0, 6], "address and map of `a`"


def test_a_descriptor_without_a_map_is_refused_as_in_python(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    both = Both(gpu, weft.jit(product.fn), weft.jit(product.fn), monkeypatch)
    both.prepare(*_arguments(), **OF_PRODUCT)
    wrong = _arguments()
    wrong[1].strides[0] = 1 << 45
    errors = []
    for kernel in (both.native, both.other):
        with pytest.raises(LaunchError) as caught:
            kernel[(1,)](*wrong, **OF_PRODUCT)
        assert {entry.frame.f_globals["__name__"] for entry in caught.traceback} == {__name__}
        errors.append(str(caught.value))
    assert errors[0] == errors[1] and "stride" in errors[0]
    assert both.are_alike(*_arguments(), **OF_PRODUCT)


def test_maps_of_pointers_and_sizes(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no map for some values, Python launches the kernel that needs none."""
    native, other = weft.jit(masked.fn), weft.jit(masked.fn)
    both, options = Both(gpu, native, other, monkeypatch), {"BM": 64, "BN": 64, "BK": 64, "num_stages": 2}

    def arguments(at: int, m: int, n: int) -> tuple[Any, ...]:
        a, b = Tensor(at, np.float16, 1 << 20), Tensor(1 << 41, np.float16, 1 << 20)
        return a, b, Tensor(1 << 42, np.float32, 1 << 20), m, n, 256, 256, 1, 256, 1, 72, 1

    both.prepare(*arguments(1 << 40, 72, 80), **options)
    assert native.warmup(*arguments(1 << 40, 72, 80), **options, grid=(1,)).metadata.made_maps
    for at, m, n in (((1 << 40) + 4096, 72, 80), (1 << 40, 88, 48), (1 << 40, 88, 48)):
        assert both.are_alike(*arguments(at, m, n), **options)
    before, launched = gpu.native, len(gpu.launched)
    for kernel in (native, other):
        for _ in range(2):
            kernel[(4, 5)](*arguments(1 << 40, -8, 80), **options)
    assert gpu.native == before and len(gpu.launched) == launched + 4
    first, *rest = gpu.launched[launched:]
    assert all((call.copies, call.grid) == (first.copies, first.grid) for call in rest)
    assert len(first.copies) == gpu.parameters - 2
    assert both.are_alike(*arguments(1 << 40, 72, 80), **options)


def test_maps_are_not_kept_forever(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameters, "KEPT", 4)
    tables: list[Any] = []
    looked_up = parameters.Maps
    monkeypatch.setattr(parameters, "Maps", lambda table, *more: tables.append(table) or looked_up(table, *more))
    both = Both(gpu, weft.jit(product.fn), weft.jit(product.fn), monkeypatch)
    both.prepare(*_arguments(), **OF_PRODUCT)
    for k in range(10):
        assert both.are_alike(*_arguments((1 << 40) + 512 * k), **OF_PRODUCT)
    assert tables and all(len(table) <= 4 for table in tables)
