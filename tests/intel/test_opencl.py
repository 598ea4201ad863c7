"""SPIR-V run by an OpenCL device that is found, such as Intel's runtime for the host's processor.

pytest tests/intel/test_opencl.py -m "slow or not slow"      # all kernels of the suite; otherwise some
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from kernels import load_cases
from kernels.running import run_case
from weft.backends.intel import opencl
from weft.base import LaunchError, LaunchTypeError, NoDevice
from weft.runtime.views import dtype_of

CASES = load_cases("weft")
SOME = ("vector_add", "softmax", "running_sums", "half_atomic_add_bfloat16")


def _missing() -> str:
    """Why there is no device; "" where there is one."""
    if importlib.util.find_spec("pyopencl") is None:
        return "pyopencl is not installed"
    try:
        opencl.chosen()
    except NoDevice as error:
        return error.message
    return ""


needs_device = pytest.mark.skipif(bool(_missing()), reason=_missing() or "there is one")


@weft.jit
def double(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) * 2, i < n)


@weft.jit
def half_of_sum(x, out, factor, BLOCK: tl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, BLOCK)), 0) * factor)


def _cases() -> Iterator[Any]:
    for name in CASES:
        yield pytest.param(name, marks=() if name in SOME else pytest.mark.slow)


@needs_device
@pytest.mark.parametrize("name", list(_cases()))
def test_kernels_agree_with_numpy(name: str) -> None:
    with weft.target("opencl"):
        run_case(CASES[name])


@needs_device
@pytest.mark.parametrize("elem", ["float32", "bfloat16", "int8", "int64"])
def test_arrays_are_changed_in_place(elem: str) -> None:
    x = np.arange(1000).astype(elem if elem != "bfloat16" else np.float32)
    x = x if elem != "bfloat16" else x.astype(dtype_of("bf16"))
    out = np.zeros_like(x)
    with weft.target("opencl"):
        double[(8,)](x[3:], out[3:], 900, BLOCK=128)
    assert np.array_equal(out[3:903], x[3:903] * 2) and not out[903:].any() and not out[:3].any()


@needs_device
def test_arrays_are_copied_to_a_device_that_does_not_reach_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl, "SYSTEM", 0)
    whole = np.arange(2000, dtype=np.float32)
    with weft.target("opencl"):
        double[(8,)](whole[1000:], whole, 1000, BLOCK=128)  # two parts of one array, which are in one copy
    assert np.array_equal(whole, np.r_[2 * np.arange(1000, 2000), np.arange(1000, 2000)].astype(np.float32))


@needs_device
def test_numbers_are_of_the_kernels_types() -> None:
    x, out = np.ones(64, np.float32), np.zeros(1, np.float32)
    with weft.target("opencl"):
        half_of_sum[(1,)](x, out, 0.5, BLOCK=64)
        assert out[0] == 32
        half_of_sum[(1,)](x, out, 3, BLOCK=64)
    assert out[0] == 192


@needs_device
def test_a_compiled_kernel_is_launched_by_its_grid() -> None:
    source = weft.ASTSource(double, {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 128})
    kernel = weft.compile(source, target="opencl")
    for n in (1, 1000, 4097):
        x, out = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
        kernel[(-(-n // 128),)](x, out, n)
        assert np.array_equal(out, 2 * x)
    with pytest.raises(LaunchTypeError, match="2 arguments were given, the kernel takes 3"):
        kernel[(1,)](x, out)
    out.flags.writeable = False
    with pytest.raises(LaunchError, match="`out`"):
        kernel[(1,)](x, out, 8)


@needs_device
def test_an_empty_grid_does_nothing_and_a_read_only_array_is_refused() -> None:
    x = np.ones(8, np.float32)
    out = np.zeros(8, np.float32)
    with weft.target("opencl"):
        double[(0,)](x, out, 8, BLOCK=8)
        assert not out.any()
        out.flags.writeable = False
        with pytest.raises(LaunchError, match="out"):
            double[(1,)](x, out, 8, BLOCK=8)


def test_without_pyopencl_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    opencl.library.cache_clear()
    monkeypatch.setattr(opencl, "load", absent)
    with pytest.raises(NoDevice, match="pyopencl, by which OpenCL is reached, is not installed") as caught:
        opencl.library()
    assert "pip install 'weft[opencl]'" in str(caught.value)


@weft.jit
def says(x, n, BLOCK: tl.constexpr):
    tl.device_print("100% of x:", tl.load(x + tl.arange(0, BLOCK)))
    tl.device_print("n =", n, tl.program_id(0).to(tl.int64) << 33)


@needs_device
def test_lines_are_printed(capfd: pytest.CaptureFixture[str]) -> None:
    x = np.array([0.5, 1.5], np.float32)
    with weft.target("opencl"):
        says[(2,)](x, -7, BLOCK=2, num_warps=1)
    ctypes.CDLL(None).fflush(None)
    expected = [f"pid ({p}, 0, 0) idx ({i}) 100% of x: {i}.500000" for p in (0, 1) for i in (0, 1)]
    for p in (0, 1):
        expected += [f"pid ({p}, 0, 0) idx () n =: (operand {i}) {v}" for i, v in enumerate((-7, p << 33))]
    assert sorted(capfd.readouterr().out.splitlines()) == sorted(expected)
