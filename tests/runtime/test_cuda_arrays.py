"""Arrays of `weft.cuda`, on a GPU that is only pretended: what they are made of and what not, whose memory it is."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from weft.base import LaunchError, LaunchTypeError, OutOfResources

from .pretended_gpu import Array, PretendedGPU, pretend


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedGPU]:
    yield from pretend(monkeypatch)


@pytest.mark.parametrize(
    "host",
    [
        np.float32(3),
        np.array(5),
        2.5,
        [1, 2, 3],
        [[True], [False]],
        np.arange(10)[::-2],
        np.arange(12).reshape(3, 4).T,
        np.zeros((0, 4), np.float32),
        np.arange(4).astype(ml_dtypes.bfloat16),
        np.arange(4).astype(ml_dtypes.float8_e4m3fn),
        np.broadcast_to(np.float64(1), (2, 3)),
    ],
    ids=range(11),
)
def test_there_and_back(gpu: PretendedGPU, host: Any) -> None:
    x, wanted = weft.cuda.to_device(host), np.asarray(host)
    assert (x.shape, x.dtype, x.ndim, x.size) == (wanted.shape, wanted.dtype, wanted.ndim, wanted.size)
    for found in (x.numpy(), np.asarray(x), weft.cuda.to_device(x).numpy(), x.clone().numpy()):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "host,said",
    [
        ([None, 1], "elements of type object"),
        ("abc", "elements of type str"),
        (np.zeros(2, "M8[s]"), "elements of type datetime64"),
        (np.zeros(2, [("a", "i4")]), "elements of type void"),
        (np.zeros(2, np.complex64), "pass a view of the parts"),
        (np.zeros(2, ">f4"), "the byte order of another machine"),
    ],
)
def test_elements_that_kernels_cannot_have(gpu: PretendedGPU, host: Any, said: str) -> None:
    """Addresses of objects were copied to the GPU."""
    with pytest.raises(LaunchTypeError) as caught:
        weft.cuda.to_device(host)
    assert said in str(caught.value)
    assert not gpu._memory


def test_shapes_and_types(gpu: PretendedGPU) -> None:
    for shape, wanted in ((4, (4,)), ((2, np.int64(3)), (2, 3)), ([], ()), (np.int32(2), (2,))):
        assert weft.cuda.empty(shape).shape == wanted
    for wrong in (2.5, (2.5,), "ab", None):
        with pytest.raises(LaunchTypeError, match="the shape of an array on a GPU is an integer or several, got"):
            weft.cuda.empty(wrong)  # type: ignore[arg-type]
    with pytest.raises(LaunchError, match=r"the shape \(2, -1\) of an array on a GPU has a negative size"):
        weft.cuda.empty((2, -1))
    for kind, dtype in ((tl.float32, np.float32), ("torch.bfloat16", ml_dtypes.bfloat16), ("f8", np.float64)):
        assert weft.cuda.empty(2, kind).dtype == np.dtype(dtype)
    with pytest.raises(LaunchTypeError, match="elements of type nothing cannot be used"):
        weft.cuda.empty(2, "nothing")
    for size in (1 << 40, (1 << 40, 1 << 40)):
        with pytest.raises(OutOfResources, match="GPU memory"):
            weft.cuda.empty(size)  # type: ignore[arg-type]
    with pytest.raises(LaunchTypeError, match="a GPU is named by its number, from 0 to 0, got 'cuda:0'"):
        weft.cuda.empty(2, device="cuda:0")  # type: ignore[arg-type]
    with pytest.raises(LaunchError, match="there is no GPU 1: this process sees 1"):
        weft.cuda.empty(2, device=1)
    assert weft.cuda.empty_like(SimpleNamespace(shape=(3,), dtype="torch.float16")).dtype == np.float16
    with pytest.raises(LaunchTypeError, match="a list has no shape"):
        weft.cuda.empty_like([1, 2])


def test_every_copy_has_memory_of_its_own(gpu: PretendedGPU) -> None:
    """A copied array, or a pickled one, had the same memory, which was given back twice."""
    host = np.arange(8, dtype=np.float32)
    x = weft.cuda.to_device(host)
    for other in (copy.copy(x), copy.deepcopy([x])[0], pickle.loads(pickle.dumps(x)), x.clone()):
        assert other.address != x.address
        np.testing.assert_array_equal(other.numpy(), host)
        del other
    gc.collect()
    assert list(gpu._memory) == [x.address]
    np.testing.assert_array_equal(x.numpy(), host)
    with pytest.raises(ValueError, match="only by a copy"):
        np.asarray(x, copy=False)


def test_what_cannot_be_copied(gpu: PretendedGPU) -> None:
    x = weft.cuda.zeros(4)
    with pytest.raises(LaunchTypeError, match="a ndarray cannot be copied into weft.cuda.DeviceArray"):
        x.copy_(np.zeros(4, np.float32))  # type: ignore[arg-type]
    with pytest.raises(LaunchTypeError, match=r"a float64 array of shape \(4,\) cannot fill a float32 one"):
        x.copy_from(np.zeros(4))
    with pytest.raises(LaunchError, match="the Array is on GPU 0 already\nhint: kernels take it as it is"):
        weft.cuda.to_device(Array())


def test_tensors_of_pytorch(gpu: PretendedGPU) -> None:
    torch = pytest.importorskip("torch")
    for dtype in (torch.bfloat16, torch.float32):
        tensor = torch.arange(6, dtype=dtype).reshape(2, 3).T.requires_grad_()
        found = weft.cuda.to_device(tensor)
        np.testing.assert_array_equal(found.numpy().astype(np.float32), tensor.detach().float().numpy())
        assert weft.cuda.empty_like(tensor).dtype == found.dtype
