"""Kernels for a GPU that are launched by themselves: `compiled[grid](...)`, as launchers of libraries do it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.base import LaunchError, LaunchOverflowError, LaunchTypeError
from weft.runtime import gpu_compiled
from weft.runtime.streams import stream_of

from .pretended_gpu import Array, PretendedGPU, Tensor, pretend

A, B = 1 << 40, 1 << 41


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedGPU]:
    yield from pretend(monkeypatch)


def compiled() -> Any:
    """A kernel that has not been loaded yet."""

    @weft.jit
    def scaled(x, out, n, factor, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)

    return scaled.warmup(Tensor(A), Tensor(B), 1000, 1.5, BLOCK=64, grid=(1,))


@pytest.mark.parametrize("kind", [Tensor, Array])
@pytest.mark.parametrize("constants", [(), (64,)])
def test_what_the_driver_is_handed(gpu: PretendedGPU, kind: Any, constants: tuple[int, ...]) -> None:
    kernel = compiled()
    for k in range(3):
        kernel[(4, 5)](kind(A + 256 * k), kind(B), 1000 + k, 2.5 + k, *constants)
    assert [(call.grid, call.values("QQif")) for call in gpu.launched] == [
        ((4, 5, 1), (A + 256 * k, B, 1000 + k, 2.5 + k)) for k in range(3)
    ]


def test_later_launches_look_at_nothing_twice(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = compiled()
    kernel[(4,)](Tensor(A), Tensor(B), 1000, 1.5)
    for name in ("device_of", "bind", "plain_value", "grid_of"):
        monkeypatch.setattr(gpu_compiled, name, None)
    kernel[(4,)](Tensor(B), Tensor(A), 7, 0.5)
    kernel.run(3, 2, 1, 99, None, None, None, None, None, Tensor(A), Tensor(B), 8, 0.5)
    assert [call.stream for call in gpu.launched] == [0, 0, 99]
    assert gpu.launched[-1].grid == (3, 2, 1)


class View:
    """A tensor in other clothes, as libraries make them to launch on: what is not there, launches do not need."""

    def __init__(self, address: int, device: int = 0) -> None:
        self.dtype, self.device, self._address = (
            np.dtype(np.float32),
            SimpleNamespace(type="cuda", index=device),
            address,
        )

    def data_ptr(self) -> int:
        return self._address


def reinterpreted(address: int) -> Any:
    tensor: Any = Tensor(address, np.int32)
    tensor.shape = (64,)
    return weft.reinterpret(tensor, tl.float32)


NUMBERS = [(1000, 2), (np.int64(1000), np.float32(2)), (1000, np.float64(2)), (np.int32(1000), 2.0)]


@pytest.mark.parametrize("kind", [View, reinterpreted])
@pytest.mark.parametrize("numbers", NUMBERS, ids=str)
def test_views_and_other_numbers_are_looked_at_once(
    gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch, kind: Any, numbers: tuple[Any, Any]
) -> None:
    kernel = compiled()
    kernel[(4,)](kind(A), kind(B), *numbers)
    for name in ("device_of", "bind", "plain_value", "grid_of"):
        monkeypatch.setattr(gpu_compiled, name, None)
    kernel[(4,)](kind(A + 64), kind(B), *numbers)
    assert [call.values("QQif") for call in gpu.launched] == [(A, B, 1000, 2.0), (A + 64, B, 1000, 2.0)]


class Matrix(Tensor):
    """A tensor of 64 x 32."""

    shape = (64, 32)

    def stride(self) -> tuple[int, int]:
        return 32, 1


Matrix.__module__ = "torch"


def described(address: int, device: int = 0) -> Any:
    return weft.TensorDescriptor.from_tensor(Matrix(address, size=64 * 32, device=device), [16, 16])


def doubled() -> Any:
    @weft.jit
    def twice(x, y, n):
        y.store([n, 0], x.load([n, 0]) * 2)

    return twice.warmup(described(A), described(B), 16, grid=(1,))


def test_descriptors_are_looked_at_once(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = doubled()
    kernel[(4,)](described(A), described(B), 16)
    for name in ("device_of", "bind", "plain_value", "grid_of", "_way"):
        monkeypatch.setattr(gpu_compiled, name, None)
    kernel[(4,)](described(A + 64), described(B), 32)
    shape = 0, 64, 32, 32, 1
    wanted = [(A, *shape, B, *shape, 16), (A + 64, *shape, B, *shape, 32)]
    assert [call.values("Qqqqqq" * 2 + "i") for call in gpu.launched] == wanted


def test_descriptors_of_other_arrays_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    for gpu in pretend(monkeypatch, count=2):
        kernel = doubled()
        for index in (0, 1, 0):
            kernel[(4,)](described(A, index), described(B, index), 16)
        with pytest.raises(LaunchError, match="argument `x` is on GPU 0, argument `y` on GPU 1"):
            kernel[(4,)](described(A), described(B, 1), 16)
        other = weft.TensorDescriptor(Array(A, size=64 * 32), [64, 32], [32, 1], [16, 16])
        kernel[(4,)](other, described(B), 16)
        assert [call.gpu for call in gpu.launched] == [0, 1, 0, 0]
        assert gpu.launched[-1].values("Q") == (A,)


def test_what_is_no_way_is_not_written_again(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays that only tell by a protocol where they are have no quick way: that is found out once."""
    kernel, asked = compiled(), list[Any]()
    way = gpu_compiled._way
    monkeypatch.setattr(gpu_compiled, "_way", lambda *given: asked.append(given) or way(*given))
    for _ in range(3):
        kernel[(4,)](Array(A), Array(B), 1000, 1.5)
    assert len(asked) == 1 and len(gpu.launched) == 3


def test_tuples_of_numbers_are_looked_at_once(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    @weft.jit
    def placed(out, strides, value):
        tl.store(out + strides[0] * 2 + strides[1], value[0])

    kernel = placed.warmup(Tensor(A), (64, 2), (1.5,), grid=(1,))
    kernel[(1,)](Tensor(A), (64, 2), (1.5,))
    monkeypatch.setattr(gpu_compiled, "plain_value", None)
    kernel[(1,)](Tensor(A), (96, 3), (2.5,))
    assert [call.values("Qiif") for call in gpu.launched] == [(A, 64, 2, 1.5), (A, 96, 3, 2.5)]
    for strides in ((64.0, 2), (64, 2, 1), (1 << 34, 2)):
        with pytest.raises(TypeError, match="NoneType|one of 3"):  # what is not the same is looked at
            kernel[(1,)](Tensor(A), strides, (2.5,))


@pytest.mark.parametrize(("kind", "fits", "not_so"), [("i64", -5, 1 << 63), ("u64", 1 << 63, -1), ("i8", 255, 256)])
def test_integers_beyond_their_type(gpu: PretendedGPU, kind: str, fits: int, not_so: int) -> None:
    @weft.jit
    def fill(out, n):
        tl.store(out, n)

    kernel = weft.compile(weft.ASTSource(fill, {"out": "*i64", "n": kind}, {}), "cuda:90")
    for _ in range(3):
        kernel[(1,)](Tensor(A, np.int64), fits)
        with pytest.raises(LaunchOverflowError, match=f"argument `n` is {not_so}, which does not fit its type {kind}"):
            kernel[(1,)](Tensor(A, np.int64), not_so)
    assert len(gpu.launched) == 3


def placed() -> Any:
    @weft.jit
    def placed(outs, value):
        tl.store(outs[0] + outs[1][0], value[0])
        tl.store(outs[0] + 1, value[1])

    return placed


@pytest.mark.parametrize("kind", [Tensor, Array])
def test_arrays_in_tuples(gpu: PretendedGPU, kind: Any) -> None:
    kernel = placed().warmup((kind(A), (64,)), (1.5, 2), grid=(1,))
    for k in range(3):
        kernel[(1,)]((kind(A + 64 * k), (k,)), [2.5, 3])
    assert [call.values("Qifi") for call in gpu.launched] == [(A + 64 * k, k, 2.5, 3) for k in range(3)]
    with pytest.raises(LaunchError, match="argument `outs`: a numpy.ndarray lives in host memory"):
        kernel[(1,)]((np.zeros(4, np.float32), (1,)), (2.5, 3))


def test_tuples_in_the_stream_of_their_arrays(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    def stream_of(arrays: Any, index: int) -> Any:
        found = 77 if any(isinstance(array, Tensor) for array in arrays) else 0
        return lambda: found

    monkeypatch.setattr(gpu_compiled, "stream_of", stream_of)
    kernel = placed().warmup((Tensor(A), (64,)), (1.5, 2), grid=(1,))
    for kind in (Array, Tensor, Array):
        kernel[(1,)]((kind(A), (64,)), (2.5, 3))
    assert [call.stream for call in gpu.launched] == [0, 77, 0]


@pytest.mark.parametrize("target", ["cpu", "cuda:90"])
@pytest.mark.parametrize(
    ("outs", "value", "said"),
    [
        ((5, (1,)), (1.5, 2), "argument `outs` was compiled as .*, so it must be an array, got a (int|NoneType)"),
        (("x",), (1.5, 2), "argument `outs` was compiled as a tuple of 2, got one of 1"),
        (("x", 1), (1.5, 2), "argument `outs` was compiled as a tuple of 1, got a int"),
        (("x", (1,)), ("a", 2), "argument `value` was compiled as fp32, so it must be a number, got a str"),
        (("x", (1,)), None, "argument `value` was compiled as a tuple of 2, got a NoneType"),
    ],
)
def test_tuples_that_do_not_fit(gpu: PretendedGPU, target: str, outs: Any, value: Any, said: str) -> None:
    array = np.zeros(99, np.float32) if target == "cpu" else Tensor(A)
    if outs[0] == 5 and target != "cpu":  # an address, there
        outs = (None, (1,))
    with weft.target(target):
        kernel = placed().warmup((array, (64,)), (1.5, 2), grid=(1,))
        with pytest.raises(LaunchTypeError, match=said):
            kernel[(1,)](tuple(array if part == "x" else part for part in outs), value)


def test_truths_are_handed_on(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    @weft.jit
    def chosen(out, which):
        tl.store(out, tl.where(which, 2.0, 1.0))

    kernel = chosen.warmup(Tensor(A), True, grid=(1,))
    kernel[(1,)](Tensor(A), True)
    monkeypatch.setattr(gpu_compiled, "plain_value", None)
    kernel[(1,)](Tensor(A), False)
    assert [call.values("Qq")[1] & 1 for call in gpu.launched] == [1, 0]


def test_a_view_on_another_gpu_is_told_from_one_on_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    for gpu in pretend(monkeypatch, count=2):
        kernel = compiled()
        for index in (0, 1, 1, 0):
            kernel[(1,)](View(A, index), View(B, index), 64, 1.0)
        with pytest.raises(LaunchError, match="argument `x` is on GPU 0, argument `out` on GPU 1"):
            kernel[(1,)](View(A), View(B, 1), 64, 1.0)
        assert [call.gpu for call in gpu.launched] == [0, 1, 1, 0]


def test_a_view_of_a_tensor_goes_to_the_stream_of_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    current = SimpleNamespace(_C=SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 70 + device))
    monkeypatch.setitem(sys.modules, "torch", current)
    element = type("dtype", (), {"__module__": "torch"})()
    described = View(A)
    described.dtype = element
    assert stream_of([described], 1)() == 71
    assert stream_of([SimpleNamespace(dtype=tl.float8e5, base=Tensor(A))], 2)() == 72
    assert stream_of([View(A)], 1)() == stream_of([Array(A)], 1)() == 0


def test_the_stream_of_one_launch_is_not_that_of_the_next(gpu: PretendedGPU) -> None:
    kernel = compiled()
    for stream in (None, 7, None):
        kernel[(1,)](Tensor(A), Tensor(B), 64, 1.0, stream=stream)
    assert [call.stream for call in gpu.launched] == [0, 7, 0]


def test_other_classes_come_as_they_did(gpu: PretendedGPU) -> None:
    """What the quick way does not know, or refuses, is said as before; and it is taken again afterwards."""
    kernel = compiled()
    kernel[(1,)](Tensor(A), Tensor(B), 64, 1.0)
    with pytest.raises(LaunchOverflowError, match="argument `n` is 17179869184, which does not fit its type i32"):
        kernel[(1,)](Tensor(A), Tensor(B), 1 << 34, 1.0)
    with pytest.raises(LaunchTypeError, match="argument `n` was compiled as i32, so it must be an integer, got a str"):
        kernel[(1,)](Tensor(A), Tensor(B), "n", 1.0)
    with pytest.raises(LaunchError, match="grid size 70000 on axis 1 exceeds 65535"):
        kernel[(1, 70000)](Tensor(A), Tensor(B), 64, 1.0)
    with pytest.raises(LaunchError, match="argument `x` is on GPU 0, argument `out` on GPU 1"):
        kernel[(1,)](Tensor(A), Tensor(B, device=1), 64, 1.0)
    kernel[(1,)](Tensor(A), Tensor(B), True, 1)
    kernel[(1,)](Tensor(A), Tensor(B), 64, 1.0)
    assert [call.values("QQif")[2:] for call in gpu.launched] == [(64, 1.0), (1, 1.0), (64, 1.0)]


def test_each_gpu_has_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    for gpu in pretend(monkeypatch, count=2):
        kernel = compiled()
        for index in (0, 1, 1, 0):
            kernel[(1,)](Tensor(A, device=index), Tensor(B, device=index), 64, 1.0)
        assert [call.gpu for call in gpu.launched] == [0, 1, 1, 0]


def test_integers_are_addresses(gpu: PretendedGPU) -> None:
    """As in Triton, whose launchers take them for tensors: x.data_ptr()."""
    kernel = compiled()
    for _ in range(2):
        kernel[(1,)](A, Tensor(B), 64, 1.0)
    assert [call.values("QQif") for call in gpu.launched] == [(A, B, 64, 1.0)] * 2
    with pytest.raises(
        LaunchTypeError, match="argument `x` was compiled as \\*fp32, so it must be an array, got a int"
    ):
        kernel[(1,)](-1, Tensor(B), 64, 1.0)
