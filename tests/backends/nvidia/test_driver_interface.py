"""`driver.active` and measuring, with a GPU that is only pretended: which driver answers, and what it says."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.backends.nvidia import driver as backend, events
from weft.compiler import GPUTarget, devices
from weft.compiler.nvidia import driver as vendor
from weft.runtime import autotuner, clock, driver as found, gpu_driver, streams, trials
from weft.runtime.testing import do_bench

DEVICE = backend.Device(
    0, "NVIDIA H200", 141 << 30, 1, 132, 9, 0, 227 << 10, 65536, 1024, 50 << 20, 1980000, 3201000, 6144
)


class FakeDriver:
    """The functions of cuda.bindings.driver that events and memory use; time goes on by a millisecond an event."""

    def __init__(self) -> None:
        self.now, self.calls = 0.0, list[Any]()

    def cuCtxGetCurrent(self) -> Any:
        return 0, 77

    def cuCtxSetCurrent(self, context: Any) -> Any:
        return (0,)

    def cuCtxSynchronize(self) -> Any:
        return (0,)

    def cuCtxGetDevice(self) -> Any:
        return 0, 0

    def cuMemAlloc(self, size: int) -> Any:
        return 0, 4096

    def cuMemFree(self, address: int) -> Any:
        return (0,)

    def cuMemsetD8Async(self, address: int, value: int, size: int, stream: int) -> Any:
        self.calls.append(("fill", size, stream))
        return (0,)

    def cuEventCreate(self, flags: int) -> Any:
        return 0, [0.0]

    def cuEventDestroy(self, event: Any) -> Any:
        return (0,)

    def cuEventRecord(self, event: Any, stream: int) -> Any:
        self.now += 1.0
        event[0] = self.now
        self.calls.append(("record", stream))
        return (0,)

    def cuEventQuery(self, event: Any) -> Any:
        return (600,)

    def cuEventElapsedTime(self, begin: Any, end: Any) -> Any:
        return 0, end[0] - begin[0]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """One GPU, which this thread has used; without PyTorch."""
    fake = FakeDriver()
    for module in (backend, events):
        monkeypatch.setattr(module, "api", lambda: fake)
    for module in (backend, events, devices, vendor):
        monkeypatch.setattr(module, "available", lambda: True)
    monkeypatch.setattr(backend, "bindings", lambda: SimpleNamespace())
    monkeypatch.setattr(backend, "device_count", lambda: 1)
    monkeypatch.setattr(backend, "device", lambda index: DEVICE)
    for module in (devices, vendor):
        monkeypatch.setattr(module, "device", lambda index: DEVICE)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", SimpleNamespace())
    for name in ("torch", "cupy"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(clock.GPUClock, "_flushed", {})
    return fake


def test_the_gpu_is_active_when_it_is_used(gpu: FakeDriver) -> None:
    active = found.active
    assert active.get_current_target() == GPUTarget("cuda", 90, 32)
    assert (active.get_current_device(), active.get_current_stream()) == (0, 0)
    assert repr(active) == "GPUDriver(NVIDIA H200)"
    facts = active.utils.get_device_properties(0)
    assert facts["multiprocessor_count"] == 132 and facts["warpSize"] == 32 and facts["max_shared_mem"] == 227 << 10
    interface = active.get_device_interface()
    assert interface.get_device_capability() == (9, 0) and interface.Event is devices.event
    assert active.get_benchmarker() is do_bench
    with weft.cuda.stream(5):
        assert active.get_current_stream() == 5


def test_a_target_decides(gpu: FakeDriver) -> None:
    with weft.target("cpu"):
        assert found.active.get_current_target().backend == "cpu"
    with weft.target("cuda:80"):
        assert found.active.get_current_target() == GPUTarget("cuda", 80, 32)
    with weft.target("sim:cuda:90"):
        assert found.active.get_current_target() == GPUTarget("cuda", 90, 32)
        assert repr(found.active) == "SimulatedDriver(sim:cuda:90)"
        assert found.active.get_device_interface().get_device_capability() == (9, 0)
        facts = found.active.utils.get_device_properties(0)
        assert facts["warpSize"] == 32 and facts["max_shared_mem"] == 227 << 10
    with weft.target("sim:cuda:80"):
        assert found.active.get_current_target() == GPUTarget("cuda", 80, 32)
        assert found.active.utils.get_device_properties(0)["max_shared_mem"] == 163 << 10


def test_without_a_gpu_it_is_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "available", lambda: False)
    monkeypatch.setattr(streams.sys, "modules", {**sys.modules, "cupy": SimpleNamespace()})
    assert found.active.get_current_target().backend == "cpu"
    assert not gpu_driver.GPUDriver.is_active()


def test_pytorch_says_whether_there_is_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a forked process, such as those that PyTorch compiles in, the driver cannot be asked."""
    monkeypatch.setattr(devices, "available", lambda: pytest.fail("the driver was asked"))
    monkeypatch.setattr(backend, "bindings", lambda: SimpleNamespace())
    interface = SimpleNamespace(is_available=lambda: True)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=interface))
    assert gpu_driver.GPUDriver.is_active()

    def missing() -> None:
        raise ImportError

    monkeypatch.setattr(backend, "bindings", missing)
    assert not gpu_driver.GPUDriver.is_active()


def test_pytorch_says_which_stream(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = SimpleNamespace(cuda_stream=1234)
    interface = SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, current_stream=lambda device: stream
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=interface))
    assert found.active.get_current_stream() == 1234
    assert found.active.get_device_interface() is interface


def test_do_bench_measures_by_events_in_the_current_stream(gpu: FakeDriver) -> None:
    calls = []
    with weft.cuda.stream(7):
        times = do_bench(lambda: calls.append(1), warmup=0, rep=1, return_mode="all")
    assert len(times) >= 3 and set(times) == {1.0}
    assert {call[-1] for call in gpu.calls} == {7}
    fills = [call for call in gpu.calls if call[0] == "fill"]
    assert fills[0][1] == 256 << 20 and 2 * len(fills) == len([c for c in gpu.calls if c[0] == "record"])


def test_peaks_of_the_gpu(gpu: FakeDriver) -> None:
    assert weft.testing.get_dram_gbps() == pytest.approx(4916.7, abs=0.1)
    assert weft.testing.get_max_tensorcore_tflops("float16") == pytest.approx(1070.5, abs=0.1)
    assert weft.testing.get_max_tensorcore_tflops("float8_e5m2") == pytest.approx(2141.0, abs=0.1)
    assert weft.testing.get_max_simd_tflops("float32", 1000000) == pytest.approx(33.8, abs=0.1)
    with weft.testing.set_gpu_clock() as (tflops, gbps):
        assert tflops > 1000 and gbps > 4000


def test_arrays_are_filled_and_copied_in_stream_order(gpu: FakeDriver) -> None:
    with weft.cuda.stream(3):
        weft.cuda.empty(10, np.float32).zero_()
    assert gpu.calls == [("fill", 40, 3)]
    with pytest.raises(weft.LaunchError, match=r"DeviceArray\(\(4,\), .*\) cannot be copied into .*\(5,\)"):
        weft.cuda.empty(5).copy_(weft.cuda.empty(4))


def test_an_event_that_is_not_over(gpu: FakeDriver) -> None:
    assert devices.event().query() is False


@weft.jit
def _fill(x, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(x + tl.arange(0, BLOCK), 1.0)


@pytest.mark.parametrize("there,measured", [(True, 3), (False, 1)])
def test_num_warps_is_code_of_its_own_on_a_gpu(there: bool, measured: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU these three make the same code, so that one is measured; on a GPU each is."""
    calls = []

    def bench(call: Any, quantiles: Any) -> list[float]:
        calls.append(call())
        return [1.0, 1.0, 1.0]

    monkeypatch.setattr(trials, "may_be_on_gpu", lambda value: there)
    monkeypatch.setattr(trials, "on_gpu", lambda value: hasattr(value, "dtype"))
    monkeypatch.setattr(trials, "do_bench", bench)
    monkeypatch.setattr(autotuner.Autotuner, "_race", lambda self, call, compiled: bench(call, None))
    configs = [weft.Config({"BLOCK": 64}, num_warps=warps) for warps in (1, 4, 8)]
    tuned = weft.autotune(configs, key=[])(_fill)
    tuned[(1,)](x=np.zeros(64, np.float32))
    assert len(calls) == measured
