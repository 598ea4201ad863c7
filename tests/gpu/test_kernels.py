"""Every kernel of tests/kernels on the GPU, against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from kernels import load_cases
from kernels.case import copy_arguments

from .arrays import View, on_device

CASES = load_cases("weft")
NOT_HERE = {"sum_lists": "its arrays hold addresses of the host"}


@pytest.mark.parametrize("name", CASES)
def test_kernel_agrees_with_numpy(name: str) -> None:
    if name in NOT_HERE:
        pytest.skip(NOT_HERE[name])
    case = CASES[name]
    before = case.make_inputs()
    after = copy_arguments(before)
    views: list[View] = []
    arguments = {key: on_device(value, views) for key, value in after.items()}
    case.kernel[case.grid](**arguments, **case.constexprs, **case.options)
    for view in views:
        view.back()
    case.check(before, after)


@weft.jit
def _double(x, out, n, BLOCK: weft.language.constexpr):  # type: ignore[no-untyped-def]
    tl = weft.language
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


def test_launches_go_where_the_arrays_are() -> None:
    host = np.arange(1000, dtype=np.float32)
    x, out = weft.cuda.to_device(host), weft.cuda.empty(1000)
    for _ in range(2):
        _double[(4,)](x, out, 1000, BLOCK=256)
        np.testing.assert_array_equal(out.numpy(), 2 * host)
        back = np.zeros_like(host)
        _double[(4,)](host, back, 1000, BLOCK=256)
        np.testing.assert_array_equal(back, 2 * host)


def test_a_host_array_among_those_of_a_gpu_is_named() -> None:
    x = weft.cuda.to_device(np.zeros(16, np.float32))
    with pytest.raises(weft.LaunchError, match="argument `out`.*lives in host memory"):
        _double[(1,)](x, np.zeros(16, np.float32), 16, BLOCK=16)


def test_a_frozen_launch() -> None:
    x, out = weft.cuda.to_device(np.ones(64, np.float32)), weft.cuda.zeros(64)
    again = _double.bind(x, out, 64, BLOCK=64, grid=(1,))
    again()
    np.testing.assert_array_equal(out.numpy(), 2)


def test_a_grid_of_nothing_launches_nothing() -> None:
    x, out = weft.cuda.to_device(np.ones(64, np.float32)), weft.cuda.zeros(64)
    _double[(0,)](x, out, 64, BLOCK=64)
    np.testing.assert_array_equal(out.numpy(), 0)


def test_too_much_shared_memory_is_said_before_the_launch() -> None:
    from weft.backends.nvidia.loaded_kernel import LoadedKernel

    with pytest.raises(weft.OutOfResources, match="shared memory, Required: 1000000"):
        LoadedKernel(b"", {"name": "big", "shared": 1000000, "num_warps": 4})


def test_there_is_no_such_gpu() -> None:
    with pytest.raises(weft.LaunchError, match="there is no GPU 99: this process sees"):
        weft.cuda.to_device(np.zeros(4), device=99)
