"""Whole launches for Intel's GPUs through a loader of Level Zero that is only pretended: compiled to SPIR-V, built,
given their arguments one by one, and run in the simulator on the memory that the arguments point to.

pytest tests/intel/test_level_zero_launches.py -m "slow or not slow"      # the kernels of the suite too
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from amd.test_hip_launches import add, check_arguments_of_every_kind, counted, described, product, scalars
from amd.test_messages import positive
from gpu import test_kernels as kernels
from gpu.anywhere import LAUNCHES, launched
from weft import gluon
from weft.base import DeviceAssertionError, LaunchError, NoDevice, OutOfResources, Unsupported
from weft.compiler import GPUTarget
from weft.gluon import language as gl
from weft.runtime import driver
from weft.testing import do_bench

from .fake_level_zero import ARC_A770, ARC_B580, MAX_1550, FakeLevelZero, forget, pretend
from .xpu_torch import install

rng = np.random.default_rng(3)
OF = 80
"""One kernel of the suite of so many is run each time."""


@pytest.fixture
def ze(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLevelZero]:
    yield from pretend(monkeypatch)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """GPU 0 is another one in the next test."""
    used = add, scalars, product, described, counted, doubles, positive
    for kernel in used:
        kernel.reset()
    yield
    for kernel in used:
        kernel.reset()


@weft.jit
def doubles(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).to(tl.float64) * 2)


def test_a_launch_on_arrays_of_the_gpu(ze: FakeLevelZero) -> None:
    x, y = (rng.normal(size=1000).astype(np.float32) for _ in range(2))
    a, b, out = weft.cuda.to_device(x), weft.cuda.to_device(y), weft.cuda.zeros(1000)
    for _ in range(3):
        made = add[(4,)](a, b, out, 1000, 2.5, BLOCK=256)
    assert np.allclose(out.numpy(), x + np.float32(2.5) * y)
    assert [done.grid for done in ze.launched] == [(4, 1, 1)] * 3 and ze.launched[-1].threads == 64
    assert ze.called.count("zeModuleCreate") == 1
    assert str(made.metadata.target) == "xpu:pvc"
    assert (made.n_regs, made.n_spills, made.n_max_threads) == (128, 0, 1024)
    add[(0,)](a, b, out, 0, 2.5, BLOCK=256)
    assert len(ze.launched) == 3
    out.zero_()
    made[(4, 1, 1)](a, b, out, 1000, 1.0, 256)  # compiled, by itself
    assert np.allclose(out.numpy(), x + y) and (out.clone().numpy() == out.numpy()).all()


def test_arguments_of_every_kind_reach_the_kernel(ze: FakeLevelZero) -> None:
    check_arguments_of_every_kind()


def test_an_assertion_that_does_not_hold_is_raised_by_the_launch(ze: FakeLevelZero) -> None:
    x = weft.cuda.to_device(np.array([3, 2, 7, 9, 1, -2, 3, 4], np.int32))
    with pytest.raises(DeviceAssertionError, match="x is positive") as error:
        positive[(2,)](x, BLOCK=4, debug=True)
    assert (error.value.program, error.value.kernel) == ((1, 0, 0), "positive")
    assert "tl.device_assert(" in (error.value.source_line or "")
    before = len(ze.called)
    positive[(1,)](weft.cuda.to_device(np.ones(4, np.int32)), BLOCK=4, debug=True)  # the record begins anew
    assert "zeCommandListAppendMemoryFill" in ze.called[before:]
    before = len(ze.called)
    positive[(1,)](weft.cuda.to_device(np.ones(4, np.int32)), BLOCK=4)  # asserts nothing: nothing waits
    assert "zeCommandListAppendMemoryFill" not in ze.called[before:]


def test_descriptors_and_atomics(ze: FakeLevelZero) -> None:
    x = rng.normal(size=(40, 48)).astype(np.float32)
    a, out = weft.cuda.to_device(x), weft.cuda.zeros((40, 48))
    described[(2, 2)](weft.TensorDescriptor(a, [40, 48], [48, 1], [32, 32]), out, 40, 48, BLOCK=32)
    assert (out.numpy() == 2 * x).all()
    numbers = rng.integers(0, 100, 300).astype(np.int32)
    bins = weft.cuda.zeros(8, np.int32)
    counted[(3,)](bins, weft.cuda.to_device(numbers), 300, BLOCK=128, num_warps=2)
    assert (bins.numpy() == np.bincount(numbers % 8, minlength=8)).all()


@pytest.mark.parametrize("external", (True, False))
def test_tensors_of_pytorch_are_in_the_order_of_their_queue(
    ze: FakeLevelZero, monkeypatch: pytest.MonkeyPatch, external: bool
) -> None:
    """The queue is waited for before a launch, the launch before it returns."""
    torch = install(monkeypatch, external=external)
    x, y = rng.normal(size=300).astype(np.float32), np.ones(300, np.float32)
    a, b, out = torch.of(x), torch.of(y), torch.of(np.zeros(300, np.float32))
    asked = ("stream", torch.queues[0], 0) if external else ("device", 0, 0)
    for launches in range(1, 4):
        before = len(ze.called)
        made = add[(3,)](a, b, out, 300, 0.5, BLOCK=128)
        assert torch.waited == [asked] * launches
        calls = ze.called[before:]
        assert calls[-1] == "zeEventHostSynchronize" and "zeCommandListAppendLaunchKernel" in calls
    assert np.allclose(torch.to_numpy(out), x + 0.5)
    made[(3,)](a, b, out, 300, 0.5, stream=torch.queues[0])
    assert len(torch.waited) == 4 and len(ze.launched) == 4
    active = driver.active
    assert active.get_current_target() == GPUTarget("xpu", "pvc", 16) and repr(active) == f"GPUDriver({MAX_1550.name})"
    assert active.get_current_stream() == torch.queues[0] and active.get_device_interface() is torch.xpu
    assert vars(active.get_active_torch_device()) == {"type": "xpu", "index": 0}
    assert do_bench(lambda: add[(3,)](a, b, out, 300, 0.5, BLOCK=128), warmup=0, rep=1) > 0


def test_the_gpu_of_a_thread_is_pytorchs(monkeypatch: pytest.MonkeyPatch) -> None:
    for ze in pretend(monkeypatch, MAX_1550, MAX_1550):
        torch = install(monkeypatch, 2)
        torch.xpu.set_device(1)
        assert driver.active.get_current_device() == 1
        a = torch.of(np.ones(64, np.float32), 0)
        add[(1,)](a, a, a, 64, 1.0, BLOCK=64, num_warps=1)
        assert ze.launched[-1].gpu == 0 and torch.waited == [("stream", torch.queues[0], 0)] and torch.current == 1
        b = torch.of(np.ones(64, np.float32), 1)
        add[(1,)](b, b, b, 64, 1.0, BLOCK=64, num_warps=1)
        assert ze.launched[-1].gpu == 1 and torch.waited[-1] == ("stream", torch.queues[1], 1)
        with pytest.raises(LaunchError, match="argument `x` is on GPU 1, argument `y` on GPU 0; a launch runs on one"):
            add[(1,)](b, a, a, 64, 1.0, BLOCK=64, num_warps=1)


def test_a_host_array_is_refused(ze: FakeLevelZero) -> None:
    x, host = weft.cuda.zeros(64), np.zeros(64, np.float32)
    for launch in (
        lambda: add[(1,)](x, host, x, 64, 1.0, BLOCK=64),
        lambda: add.warmup(x, x, x, 64, 1.0, BLOCK=64, grid=(1,))[(1,)](x, host, x, 64, 1.0, 64),
    ):
        with pytest.raises(LaunchError) as error:
            launch()
        assert str(error.value).partition("\n")[0].endswith(
            "argument `y`: a numpy.ndarray lives in host memory, but the kernel runs on a GPU"
        )
    with pytest.raises(LaunchError, match="argument `x`: a numpy.ndarray lives in host memory"):
        with weft.target("xpu:pvc"):
            add[(1,)](host, host, host, 64, 1.0, BLOCK=64)
    assert not ze.launched


@gluon.jit
def large(x, out, N: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [16], [4], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    i = gl.arange(0, N, layout)
    first = gl.allocate_shared_memory(gl.float32, [N], shared, gl.load(x + i))
    second = gl.allocate_shared_memory(gl.float32, [N], shared, gl.load(x + N - 1 - i))
    gl.store(out + i, first.load(layout) + second.load(layout))


def test_too_much_local_memory_is_itemised(ze: FakeLevelZero) -> None:
    x = weft.cuda.zeros(16384)
    ze.gpus = (replace(MAX_1550, shared_bytes=32 << 10),)  # less than others of its kind have
    forget()
    with pytest.raises(OutOfResources, match="shared memory, Required: 65536, Hardware limit: 32768") as error:
        large[(1,)](x, x, N=8192)
    assert [line.partition(":")[0] for line in error.value.details] == ["  shared 0", "  shared 1"]
    assert not ze.launched and "zeModuleCreate" not in ze.called
    large.reset()


def test_a_gpu_without_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    for ze in pretend(monkeypatch, ARC_A770):
        x, out = weft.cuda.zeros(64), weft.cuda.zeros(64, np.float64)
        with pytest.raises(Unsupported) as error:
            doubles[(1,)](x, out, BLOCK=64)
        assert str(error.value) == (
            "error: float64, with which `doubles` computes, is not supported on target Intel(R) Arc(TM) A770 Graphics\n"
            "hint: compute in float32, or take the target cpu"
        )
        assert "zeModuleCreate" not in ze.called
        add[(1,)](x, x, x, 64, 1.0, BLOCK=64, num_warps=1)
        assert ze.launched[-1].threads == 8


def test_registers_are_an_option(ze: FakeLevelZero) -> None:
    x = weft.cuda.zeros(64)
    for mode in ("256", "128", "auto", "default"):
        made = add[(1,)](x, x, x, 64, 1.0, BLOCK=64, num_warps=1, grf_mode=mode)
        assert made.n_regs == (256 if mode == "256" else 128)
    assert len({thing.flags for thing in ze.made.values() if hasattr(thing, "flags")}) == 4
    with pytest.raises(LaunchError) as error:
        add[(1,)](x, x, x, 64, 1.0, BLOCK=64, grf_mode="512")
    assert str(error.value) == "grf_mode must be one of default, 128, 256, auto, got '512'"


def test_two_gpus_of_two_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    for ze in pretend(monkeypatch, MAX_1550, ARC_B580):
        for index in (0, 1, 0):
            x = weft.cuda.to_device(np.arange(64, dtype=np.float32), index)
            made = add[(1,)](x, x, x, 64, 1.0, BLOCK=64, num_warps=1)
            assert (x.numpy() == 2 * np.arange(64)).all() and ze.launched[-1].gpu == index
            assert str(made.metadata.target) == ("xpu:pvc", "xpu:bmg")[index]
        with pytest.raises(Unsupported) as error:
            with weft.target("xpu:pvc"):
                add[(1,)](*[weft.cuda.zeros(64, device=1)] * 3, 64, 1.0, BLOCK=64, num_warps=1)
        assert str(error.value) == (
            "error: running code for xpu:pvc is not supported on target xpu:bmg\n"
            "hint: the Intel(R) Arc(TM) B580 Graphics takes target xpu:bmg"
        )
        del x


def test_the_driver_as_libraries_ask_for_it(ze: FakeLevelZero) -> None:
    with weft.target("xpu:pvc"):
        active = driver.active
        facts, interface = active.utils.get_device_properties(0), active.get_device_interface()
        assert (facts["max_shared_mem"], facts["multiprocessor_count"], facts["warpSize"]) == (128 << 10, 64, 16)
        assert interface.get_device_capability() == (12, 60) and interface.device_count() == 1
        x = weft.cuda.zeros(4)
        assert do_bench(lambda: x.zero_(), warmup=0, rep=1) > 0
    made = add.warmup(*[weft.cuda.zeros(64)] * 3, 64, 1.0, BLOCK=64, grid=(1,))
    library, address, registers, spilled, most = active.utils.load_binary("add", made.asm["spirv"], 0, 0)
    assert address in ze.made and (registers, spilled, most) == (128, 0, 1024) and library


def test_no_level_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    for ze in pretend(monkeypatch):
        ze.gpus = ()
        with pytest.raises(NoDevice, match="finds no driver of an Intel GPU"), weft.target("xpu:pvc"):
            add[(1,)](np.zeros(4), np.zeros(4), np.zeros(4), 4, 1.0, BLOCK=64)


def _cases() -> Iterator[Any]:
    for name in kernels.CASES:
        part = zlib.crc32(f"{name} launched on xpu".encode()) % OF == 0
        if name not in kernels.NOT_HERE:
            yield pytest.param(name, marks=() if part else pytest.mark.slow)


@pytest.mark.parametrize("name", list(_cases()))
def test_kernels_are_launched(ze: FakeLevelZero, name: str) -> None:
    kernels.CASES[name].kernel.reset()
    kernels.test_kernel_agrees_with_numpy(name)
    assert ze.launched or 0 in kernels.CASES[name].grid
    kernels.CASES[name].kernel.reset()


@pytest.mark.parametrize("test", LAUNCHES, ids=lambda test: test.__name__.removeprefix("test_"))
def test_launches(monkeypatch: pytest.MonkeyPatch, test: Any) -> None:
    launched(test, lambda count: pretend(monkeypatch, *(MAX_1550,) * count))
