"""Arrays on a GPU that is not the thread's: the launch goes there, and the thread keeps its own. Needs two GPUs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.backends.nvidia.driver import api
from weft.backends.nvidia.faults import check
from weft.compiler import devices


@pytest.fixture(autouse=True)
def two() -> Any:
    if devices.device_count() < 2:
        pytest.skip("one GPU")
    before = devices.current_device()
    yield
    before.make_current()


N = 4096


@weft.jit
def add_one(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@weft.jit
def add_one_boxes(x, out, M, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    source = tl.make_tensor_descriptor(x, [M, M], [M, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(out, [M, M], [M, 1], [BLOCK, BLOCK])
    at = [tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK]
    target.store(at, source.load(at) + 1)


def thread_gpu() -> int:
    return int(check(api().cuCtxGetDevice()))


@pytest.mark.parametrize("current", [0, 1])
def test_a_launch_goes_where_its_arrays_are(current: int) -> None:
    host = np.arange(N, dtype=np.float32)
    arrays = [(weft.cuda.to_device(host, device=i), weft.cuda.zeros(N, device=i)) for i in (0, 1)]
    devices.device(current).make_current()
    for index in (0, 1, 1, 0, 1):
        x, out = arrays[index]
        out.copy_from(np.zeros(N, np.float32))
        add_one[(4,)](x, out, N, BLOCK=1024)
        again = add_one.bind(out, x, N, BLOCK=1024, grid=(4,))
        again()
        assert thread_gpu() == current
        np.testing.assert_array_equal(out.numpy(), host + 1)
        np.testing.assert_array_equal(x.numpy(), host + 2)
        x.copy_from(host)
        assert thread_gpu() == current
    for x, out in arrays:
        kernel = add_one.warmup(x, out, N, BLOCK=1024, grid=(4,))
        kernel[(4,)](out, x, N)
        np.testing.assert_array_equal(x.numpy(), host + 2)
    del arrays, x, out
    assert thread_gpu() == current


def test_kernels_with_memory_of_their_own() -> None:
    host = np.arange(128 * 128, dtype=np.float32).reshape(128, 128)
    for index in (1, 0, 1):
        x, out = weft.cuda.to_device(host, device=index), weft.cuda.zeros((128, 128), device=index)
        add_one_boxes[(4, 4)](x, out, 128, BLOCK=32)
        np.testing.assert_array_equal(out.numpy(), host + 1)


def test_arrays_of_two_gpus_are_refused() -> None:
    x, out = weft.cuda.zeros(N, device=0), weft.cuda.zeros(N, device=1)
    with pytest.raises(
        weft.LaunchError, match="argument `x` is on GPU 0, argument `out` on GPU 1; a launch runs on one"
    ):
        add_one[(4,)](x, out, N, BLOCK=1024)


def test_tensors_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or torch.cuda.device_count() < 2:
        pytest.skip("PyTorch with two GPUs")
    for index in (1, 0, 1):
        x = torch.arange(N, dtype=torch.float32, device=f"cuda:{index}")
        out = torch.zeros_like(x)
        for _ in range(3):
            add_one[(4,)](x, out, N, BLOCK=1024)
        torch.cuda.synchronize(index)
        assert torch.equal(out, x + 1) and torch.cuda.current_device() == 0
        side = torch.cuda.Stream(device=index)
        with torch.cuda.stream(side):
            add_one[(4,)](out, x, N, BLOCK=1024)
        side.synchronize()
        assert torch.equal(x, out + 1)
