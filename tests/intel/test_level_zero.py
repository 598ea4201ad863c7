"""Intel's `Driver` on a loader of Level Zero that is only pretended (see `fake_level_zero`): devices, memory, events,
launches, and what is said where something is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import weft
from amd.test_hip_launches import add
from weft.backends.gpu import libraries
from weft.backends.intel import level_zero, loader
from weft.base import DeviceLost, LaunchError, NoDevice, OutOfResources, Unsupported
from weft.compiler.intel import driver

from .fake_level_zero import ARC_A770, ARC_B580, GPU, GRAPHICS, MAX_1550, FakeLevelZero, forget, pretend


@pytest.fixture
def ze(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLevelZero]:
    yield from pretend(monkeypatch)


TYPES = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "alpha": "fp32"}
CODE: bytes = weft.compile(weft.ASTSource(add, TYPES, {"BLOCK": 64}), "xpu:pvc").asm["spirv"]
FACTS = {"name": "add", "shared": 0, "num_warps": 4, "warp_size": 16, "params": list(TYPES.values())}


def stream() -> int:
    return 0


def test_a_device_is_what_the_driver_says_of_it(ze: FakeLevelZero) -> None:
    gpu = driver.current_device()
    assert (gpu.index, gpu.name, gpu.number, gpu.target) == (0, MAX_1550.name, 0x0BD5, "xpu:pvc")
    assert (gpu.release, gpu.capability, gpu.major, gpu.minor) == (1260, 1260, 12, 60)
    assert (gpu.shared_bytes, gpu.max_threads, gpu.lanes, gpu.multiprocessors) == (128 << 10, 1024, (16, 32), 64)
    assert (gpu.memory_bytes, gpu.l2_bytes, gpu.bus_bits) == (1 << 30, 4 << 20, 8192)
    assert (gpu.clock_khz, gpu.memory_clock_khz, gpu.registers) == (1600000, 3200000, 8 * 8 * 128 * 16)
    assert driver.device_count() == 1 and driver.available() and driver.memory_kinds == ("xpu", "oneapi")
    assert driver.found() == {
        "Intel GPUs": "Intel(R) Data Center GPU Max 1550, 1 GiB, 0x0bd5",
        "Level Zero": "Level Zero, libze_loader.so.1",
    }


def test_a_driver_that_does_not_say_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in pretend(monkeypatch, MAX_1550, ARC_A770, ARC_B580, knows_releases=False):
        assert [driver.device(i).target for i in range(3)] == ["xpu:pvc", "xpu:dg2", "xpu:bmg"]


def test_graphics_of_a_processor_count_where_there_is_no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """As PyTorch counts them."""
    for _ in pretend(monkeypatch, GRAPHICS, ARC_B580):
        assert driver.device_count() == 1 and driver.device(0).name == ARC_B580.name
    for _ in pretend(monkeypatch, GRAPHICS):
        assert driver.device(0).name == GRAPHICS.name
        with pytest.raises(Unsupported) as error:
            print(driver.device(0).target)
        assert str(error.value) == (
            "error: compiling is not supported on target xpu:7d55\n"
            "hint: the Intel(R) Graphics is of release 12.71; of Intel's GPUs xpu:dg2, xpu:pvc, xpu:bmg, xpu:lnl, "
            "xpu:ptl are compiled for; or use the target cpu"
        )


def test_memory_is_copied_filled_and_given_back(ze: FakeLevelZero) -> None:
    gpu, x = driver.current_device(), np.arange(100, dtype=np.int32)
    a, b = driver.allocate(400, gpu), driver.allocate(0, gpu)
    driver.to_device(a, x.ctypes.data, 400, gpu)
    c = driver.allocate(400, gpu)
    driver.copy(c, a, 400, gpu)
    driver.fill(c + 4, 8, gpu, 0, 255)
    y = np.zeros_like(x)
    driver.to_host(y.ctypes.data, c, 400, gpu)
    x[1:3] = -1
    assert (x == y).all()
    assert driver.gpu_of_address(a + 399) == 0 and driver.gpu_of_address(x.ctypes.data) is None
    for address in (a, b, c):
        driver.free(address, gpu)
    assert driver.gpu_of_address(a) is None and not any(m.live for m in ze.memory.values())


def test_memory_that_is_not_there(ze: FakeLevelZero) -> None:
    gpu = driver.current_device()
    with pytest.raises(OutOfResources, match="GPU memory, Required: 2147483648, Hardware limit: 1073741824"):
        driver.allocate(1 << 31, gpu)
    held = driver.allocate(1 << 29, gpu)
    with pytest.raises(OutOfResources, match="GPU memory"):
        driver.allocate(3 << 28, gpu)
    driver.free(held, gpu)
    with pytest.raises(LaunchError, match=r"^a call of Level Zero failed: ZE_RESULT_ERROR_INVALID_ARGUMENT$"):
        driver.free(held, gpu)
    assert ze.problems.pop().endswith("was not allocated, or has been given back")


def test_events_measure_and_wait(ze: FakeLevelZero) -> None:
    begin, end = driver.event(), driver.event()
    begin.record()
    assert not end.query()
    end.record()
    end.synchronize()
    assert begin.query() and begin.elapsed_time(end) == 1.0
    pools = sum(isinstance(thing, dict) for thing in ze.made.values())
    del begin, end
    assert sum(isinstance(thing, dict) for thing in ze.made.values()) == pools - 2
    untimed = driver.event(enable_timing=False)
    untimed.record()
    with pytest.raises(LaunchError, match="a call of Level Zero failed: NOT_READY"):
        untimed.elapsed_time(untimed)


def test_a_launch_hands_on_its_parameters(ze: FakeLevelZero) -> None:
    gpu = driver.current_device()
    a = driver.allocate(64, gpu)
    loaded = driver.load(CODE, FACTS)
    assert (loaded.registers, loaded.local_bytes, loaded.max_threads, loaded.threads) == (128, 0, 1024, 64)
    launch = driver.on(gpu, loaded.launcher("QQQqf4x", stream))
    launch(5, 6, 7, a, a + 16, a, -2, 1.5)
    launch(0, 1, 1, a, a, a, 0, 0.0)  # a grid without programs
    (done,) = ze.launched
    assert (done.name, done.grid, done.threads, done.gpu) == ("add", (5, 6, 7), 64, 0)
    assert done.values == (a, a + 16, a, 0xFFFFFFFE, 0x3FC00000)
    driver.on(gpu, loaded.frozen("QQQqf4x", stream, (3, 1, 1), (a, a, a, 1, 0.0)))()
    assert ze.launched[-1].grid == (3, 1, 1) and ze.launched[-1].values == (a, a, a, 1, 0)
    gpu.synchronize()
    waits = ze.called.count("zeEventHostSynchronize")
    gpu.synchronize()  # there is nothing to wait for
    assert ze.called.count("zeEventHostSynchronize") == waits


def test_each_gpu_has_code_and_a_queue_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for ze in pretend(monkeypatch, MAX_1550, MAX_1550):
        first, second = driver.device(0), driver.device(1)
        with driver.entered(second):
            assert driver.current_device() == second
        loaded = driver.load(CODE, FACTS)
        launches = [driver.on(gpu, loaded.launcher("QQQqf4x", stream)) for gpu in (first, second)]
        for launch in launches:
            launch(4, 1, 1, 0, 0, 0, 0, 0.0)
        assert [done.gpu for done in ze.launched] == [0, 1] and driver.current_device() == first
        second.make_current()
        address = driver.allocate(16, first)
        assert driver.gpu_of_address(address) == 0 and driver.current_device() == second
        driver.free(address, first)
        with pytest.raises(LaunchError, match="there is no GPU 2: this process sees 2"):
            driver.device(2)


def test_what_the_driver_does_not_build(ze: FakeLevelZero) -> None:
    with pytest.raises(LaunchError) as error:
        driver.load(b"no SPIR-V", FACTS)
    assert str(error.value) == (
        "the driver of the Intel(R) Data Center GPU Max 1550 does not build `add`: "
        "ZE_RESULT_ERROR_MODULE_BUILD_FAILURE:\nerror: undefined reference to `f()'\n"
        "hint: a newer driver may know the extensions of SPIR-V that it has: kernel.metadata.extensions"
    )
    with pytest.raises(LaunchError) as error:
        driver.load(CODE, {**FACTS, "name": "other"})
    assert str(error.value) == (
        "the launch of other failed: ZE_RESULT_ERROR_INVALID_KERNEL_NAME\nhint: the module has no such kernel"
    )
    ze.answers["zeKernelSetGroupSize"] = 0x78000013
    with pytest.raises(LaunchError) as error:
        driver.load(CODE, FACTS)
    assert str(error.value) == (
        "the launch of add failed: ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION\n"
        "hint: a block has another number of threads than was compiled for"
    )


def test_an_argument_that_is_none(ze: FakeLevelZero) -> None:
    loaded = driver.load(CODE, FACTS)
    with pytest.raises(LaunchError, match="2 parameters were given for `add`, which takes 5"):
        loaded.launcher("QQ", stream)
    launch = loaded.launcher("QQQqf4x", stream)
    ze.answers["zeKernelSetArgumentValue"] = 0x78000004
    with pytest.raises(LaunchError) as error:
        launch(1, 1, 1, 4096, 0, 0, 0, 0.0)
    assert str(error.value) == (
        "the launch of add failed: ZE_RESULT_ERROR_INVALID_ARGUMENT\n"
        "hint: an address is in no memory that a GPU of Intel's was given: an array of the host, or memory that was "
        "given back"
    )
    assert not ze.launched


def test_too_many_threads_and_too_much_local_memory(ze: FakeLevelZero) -> None:
    with pytest.raises(OutOfResources) as error:
        driver.load(CODE, {**FACTS, "num_warps": 128})
    assert str(error.value) == (
        "out of resource: threads, Required: 2048, Hardware limit: 1024.\n"
        "  threads of a block     2048 (128 warps of 16), of at most 1024\n"
        "hint: num_warps=64"
    )
    with pytest.raises(OutOfResources) as error:
        driver.load(CODE, {**FACTS, "num_warps": 64, "grf_mode": "256"})
    assert str(error.value) == (
        "out of resource: threads, Required: 1024, Hardware limit: 512.\n"
        "  threads of a block     1024 (64 warps of 16), of at most 512, as grf_mode='256' halves them\n"
        "hint: num_warps=32"
    )
    with pytest.raises(OutOfResources) as error:
        driver.load(CODE, {**FACTS, "shared": 140000})
    assert str(error.value) == (
        "out of resource: shared memory, Required: 140000, Hardware limit: 131072.\n"
        "hint: smaller blocks or fewer num_stages; a block of the Intel(R) Data Center GPU Max 1550 has 131072 bytes"
    )
    assert "zeModuleCreate" not in ze.called


def test_code_for_another_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in pretend(monkeypatch, ARC_B580):
        with pytest.raises(Unsupported) as error:
            driver.load(CODE, {**FACTS, "target": "xpu:pvc"})
        assert str(error.value) == (
            "error: running code for xpu:pvc is not supported on target xpu:bmg\n"
            "hint: the Intel(R) Arc(TM) B580 Graphics takes target xpu:bmg"
        )
        with pytest.raises(Unsupported) as error:
            driver.load(CODE, {**FACTS, "warp_size": 8})
        assert str(error.value) == (
            "error: a subgroup of 8 lanes is not supported on target Intel(R) Arc(TM) B580 Graphics\n"
            "hint: its subgroups have 16, 32"
        )


LARGE = "-ze-opt-large-register-file"


@pytest.mark.parametrize(
    ("mode", "warps", "spilled", "flags", "large"),
    (
        (None, 4, {"": 0}, [""], False),
        (None, 4, {"": 512, LARGE: 0}, ["", LARGE], True),
        (None, 4, {"": 512, LARGE: 600}, ["", LARGE], False),
        (None, 64, {"": 512}, [""], False),  # a block that would not fit then
        ("128", 4, {"-cl-intel-128-GRF-per-thread": 512}, ["-cl-intel-128-GRF-per-thread"], False),
        ("256", 4, {LARGE: 0}, [LARGE], True),
        ("auto", 4, {"-cl-intel-enable-auto-large-GRF-mode": 0}, ["-cl-intel-enable-auto-large-GRF-mode"], False),
    ),
)
def test_more_registers_where_there_are_too_few(
    monkeypatch: pytest.MonkeyPatch,
    mode: str | None,
    warps: int,
    spilled: dict[str, int],
    flags: list[str],
    large: bool,
) -> None:
    built: list[str] = []

    def spills(given: str) -> int:
        built.append(given)
        return spilled[given]

    for ze in pretend(monkeypatch, spills=spills):
        loaded = driver.load(CODE, {**FACTS, "num_warps": warps, **({"grf_mode": mode} if mode else {})})
        assert built == flags
        assert (loaded.registers, loaded.max_threads) == ((256, 512) if large else (128, 1024))
        assert loaded.spills == loaded.local_bytes == spilled[flags[-1] if large or len(flags) == 1 else ""]
        assert len([thing for thing in ze.made.values() if type(thing).__name__ == "Built"]) == 1


def test_a_fault_of_a_kernel_loses_the_gpu(ze: FakeLevelZero) -> None:
    driver.load(CODE, FACTS).launcher("QQQqf4x", stream)(4, 1, 1, 0, 0, 0, 0, 0.0)
    ze.answers["zeEventHostSynchronize"] = 0x70000001
    with pytest.raises(DeviceLost) as error:
        driver.current_device().synchronize()
    assert error.value.recent[0] == ("add", (4, 1, 1)) and "sim:xpu:pvc" in str(error.value)
    ze.answers.clear()


def _missing(name: str) -> None:
    raise OSError(f"{name}: cannot open")


def test_no_loader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(loader, "NAMES", ("libze_loader.so.1", "libze_loader.so"))
    monkeypatch.setattr(loader, "folders", lambda: [tmp_path / "lib"])
    monkeypatch.setattr(libraries, "ctypes", SimpleNamespace(CDLL=_missing))
    forget()
    assert not driver.available() and not driver.installed()
    with pytest.raises(NoDevice) as error:
        driver.current_device()
    assert str(error.value) == (
        "Level Zero's loader was not found: no libze_loader.so.1 or libze_loader.so in "
        f"{tmp_path}/lib, nor where the system looks\n"
        "hint: install libze1 and libze-intel-gpu1 (Debian 12: intel-opencl-icd), or Intel's driver; "
        "without a GPU use the target cpu, or sim:xpu:pvc to simulate one"
    )
    assert driver.found() == {"Intel GPUs": "none", "Level Zero": f"none: {error.value.message}"}
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libze_loader.so.1").touch()
    forget()
    with pytest.raises(NoDevice, match=r"^Level Zero's loader does not load: .*/lib/libze_loader.so.1: cannot open\n"):
        driver.device_count()
    forget()


def test_nothing_is_called_when_zeinit_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader ends the process then."""
    for ze in pretend(monkeypatch):
        ze.gpus = ()
        monkeypatch.setattr(level_zero.glob, "glob", lambda pattern: [])
        for _ in range(3):
            with pytest.raises(NoDevice) as error:
                driver.current_device()
            assert not driver.available() and not driver.installed() and not driver.in_use()
        assert str(error.value) == (
            "Level Zero (libze_loader.so.1) finds no driver of an Intel GPU: ZE_RESULT_ERROR_UNINITIALIZED\n"
            "hint: there is no /dev/dri/renderD*: the kernel driver i915 or xe is not loaded, or a container was not "
            "given it; without a GPU use the target cpu, or sim:xpu:pvc to simulate one"
        )
        assert ze.called == ["zeInit"]
        monkeypatch.setattr(level_zero.glob, "glob", lambda pattern: ["/dev/dri/renderD128"])
        monkeypatch.setattr(level_zero.os, "access", lambda path, how: False)
        forget()
        with pytest.raises(NoDevice, match="hint: this user may not open /dev/dri/renderD128: usually the group"):
            driver.current_device()


def test_a_loader_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    for ze in pretend(monkeypatch):
        del ze._functions["zeEventQueryKernelTimestamp"]
        with pytest.raises(NoDevice) as error:
            driver.device_count()
        assert str(error.value) == (
            "Level Zero's loader libze_loader.so.1 has no function zeEventQueryKernelTimestamp\n"
            "hint: install a newer Level Zero: 1.8 or later"
        )


def test_devices_of_others_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in pretend(monkeypatch, GPU("some other", 1, (1, 1), vendor=0x1002)):
        with pytest.raises(NoDevice, match="Level Zero's drivers have no Intel GPU"):
            driver.current_device()
