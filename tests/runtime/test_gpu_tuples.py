"""Tuples among the arguments of launches on a GPU: arrays, numbers, descriptors and tuples in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.base import LaunchError

from .pretended_gpu import Array, PretendedGPU, Tensor, pretend


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedGPU]:
    yield from pretend(monkeypatch)


class Pair(NamedTuple):
    data: Any
    scale: Any


def scaled() -> Any:
    @weft.jit
    def kernel(out, pairs, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        total = tl.zeros((BLOCK,), tl.float32)
        for k in tl.static_range(len(pairs)):
            total += tl.load(pairs[k].data + i, mask=i < n) * pairs[k].scale
        tl.store(out + i, total, mask=i < n)

    return kernel


@pytest.mark.parametrize("kind", [Array, Tensor])
def test_what_the_driver_is_handed(gpu: PretendedGPU, kind: Any) -> None:
    kernel = scaled()
    for _ in range(3):
        kernel[(2,)](kind(1 << 40), (Pair(kind(1 << 41), 0.5), Pair(kind(1 << 42), 7)), 64, BLOCK=64)
    assert len(gpu.launched) == 3
    for call in gpu.launched:
        assert call.values("QQfQqq")[:4] == (1 << 40, 1 << 41, 0.5, 1 << 42)


def test_what_is_in_a_tuple_is_in_the_key(gpu: PretendedGPU) -> None:
    """Other types and alignments are other kernels; another address is not."""

    @weft.jit
    def kernel(out, inputs):
        tl.store(out, tl.load(inputs[0]).to(tl.float32) + inputs[1])

    out = Array(1 << 40)
    given = [(Array(1 << 41), 3), (Array(1 << 42), 3), (Array((1 << 41) + 4), 3), (Array(1 << 41, np.float16), 3)]
    for inputs in given:
        kernel[(1,)](out, inputs)
        kernel[(1,)](out, inputs)
    assert [call.values("QQq")[1] for call in gpu.launched[::2]] == [
        x.__cuda_array_interface__["data"][0] for x, _ in given
    ]
    compiled = kernel.cache
    assert len(compiled) == 3
    kernel[(1,)](out, (Array(1 << 41), 1))  # the number is 1: a constant
    assert len(compiled) == 4


def test_an_array_of_the_host_in_a_tuple(gpu: PretendedGPU) -> None:
    kernel = scaled()
    for inputs in ((Pair(np.zeros(4, np.float32), 1.0),), (Pair(Array(), 1.0), Pair(np.zeros(4, np.float32), 1.0))):
        with pytest.raises(LaunchError, match="argument `pairs`: a numpy.ndarray lives in host memory"):
            kernel[(1,)](Array(), inputs, 4, BLOCK=4)
    kernel[(1,)](Array(), (Pair(Array(), 1.0),), 4, BLOCK=4)
    with pytest.raises(LaunchError, match="argument `pairs`: a numpy.ndarray lives in host memory"):
        kernel[(1,)](Array(), (Pair(np.zeros(4, np.float32), 1.0),), 4, BLOCK=4)


def test_tuples_without_arrays(gpu: PretendedGPU) -> None:
    @weft.jit
    def kernel(out, sizes):
        tl.store(out, sizes[0] + sizes[1][0])

    for _ in range(2):
        kernel[(1,)](Array(1 << 40, np.int32), (5, (6, None)))
        assert gpu.launched[-1].values("Qii") == (1 << 40, 5, 6)
    for sizes in ([7, [8]], (7, [8])):
        with pytest.raises(LaunchError, match="argument `sizes`: failed to specialize argument of type list"):
            kernel[(1,)](Array(1 << 40, np.int32), sizes)
