"""AMD's `Driver` on a HIP library that is only pretended (see `fake_hip`): devices, memory, events, launches."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from weft.backends.amd import hip as functions, library
from weft.backends.gpu import libraries
from weft.base import DeviceLost, LaunchError, NoDevice, OutOfResources, Unsupported
from weft.compiler.amd import driver

from .containers import Kernel, Parameter, written
from .fake_hip import GPU, MI300X, PROTOTYPES, TYPES, FakeHip, forget, pretend, prototypes


@pytest.fixture
def hip(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHip]:
    yield from pretend(monkeypatch)


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHip]:
    yield from pretend(monkeypatch, MI300X, MI300X)


POINTERS = (Parameter(0, 8, True), Parameter(8, 8, True), Parameter(16, 4), Parameter(24, 8), Parameter(32, 1))
ADD = Kernel("add", 256, parameters=POINTERS)
FACTS = {"name": "add", "shared": 0, "num_warps": 4}


def stream() -> int:
    return 0


def test_a_device_is_what_the_library_says_of_it(hip: FakeHip) -> None:
    gpu = driver.current_device()
    assert (gpu.index, gpu.name, gpu.processor, gpu.target) == (0, "AMD Instinct MI300X", "gfx942", "hip:gfx942")
    assert gpu.full_processor == "gfx942:sramecc+:xnack-"
    assert gpu.capability == 0x942 and (gpu.major, gpu.minor) == (9, 4)
    assert (gpu.lanes, gpu.shared_bytes, gpu.registers, gpu.max_threads) == (64, 64 << 10, 65536, 1024)
    assert (gpu.multiprocessors, gpu.l2_bytes, gpu.memory_bytes) == (304, 4 << 20, 1 << 30)
    assert (gpu.clock_khz, gpu.memory_clock_khz, gpu.bus_bits) == (2100000, 1300000, 8192)
    assert driver.device_count() == 1 and driver.available() and driver.memory_kinds == ("cuda", "rocm")
    assert driver.found() == {
        "AMD GPUs": "AMD Instinct MI300X, 1 GiB, hip:gfx942:sramecc+:xnack-", "HIP": "HIP 7.1.25424, libamdhip64.so",
    }  # fmt: skip


def test_a_device_without_a_row_is_named_with_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in pretend(monkeypatch, GPU("AMD Radeon RX 7800 XT", "gfx1101", 32), GPU("AMD Instinct MI50", "gfx906", 64)):
        with pytest.raises(Unsupported) as error:
            print(driver.device(0).target)
        assert str(error.value) == (
            "error: compiling is not supported on target hip:gfx1101\n"
            "hint: the AMD Radeon RX 7800 XT is a gfx1101; code of AMD is for one processor alone; the nearest that "
            "are compiled for are hip:gfx1100 and hip:gfx1151; HSA_OVERRIDE_GFX_VERSION=11.0.0 has the driver take it "
            "for hip:gfx1100; or use the target cpu"
        )
        with pytest.raises(Unsupported, match="MI50 is a gfx906; .* the nearest that is compiled for is hip:gfx90a; "):
            print(driver.device(1).target)


def test_memory_is_copied_filled_and_given_back(hip: FakeHip) -> None:
    gpu, x = driver.current_device(), np.arange(100, dtype=np.int32)
    a, b = driver.allocate(400, gpu), driver.allocate(0, gpu)
    driver.to_device(a, x.ctypes.data, 400, gpu)
    c = driver.allocate(400, gpu)
    driver.copy(c, a, 400, gpu, hip.stream())
    driver.fill(c + 4, 8, gpu, 0, 255)
    y = np.zeros_like(x)
    driver.to_host(y.ctypes.data, c, 400, gpu)
    x[1:3] = -1
    assert (x == y).all()
    assert driver.gpu_of_address(a + 399) == 0 and driver.gpu_of_address(x.ctypes.data) is None
    assert hip.last == 0  # PyTorch asks for it after each of its kernels
    for address in (a, b, c):
        driver.free(address, gpu)
    assert driver.gpu_of_address(a) is None and not any(m.live for m in hip.memory.values())


def test_memory_that_is_not_there(hip: FakeHip) -> None:
    gpu = driver.current_device()
    with pytest.raises(OutOfResources, match="GPU memory, Required: 2147483648, Hardware limit: 1073741824"):
        driver.allocate(1 << 31, gpu)
    held = driver.allocate(1 << 29, gpu)
    with pytest.raises(OutOfResources, match="GPU memory, Required: 805306368, Hardware limit: 536870912"):
        driver.allocate(3 << 28, gpu)
    driver.free(held, gpu)
    assert hip.last == 0
    with pytest.raises(LaunchError, match=r"^a call of the HIP library failed: hipErrorInvalidValue"):
        driver.free(held, gpu)
    assert hip.problems.pop().endswith("was not allocated, or has been given back")


def test_events_measure_and_wait(hip: FakeHip) -> None:
    begin, end = driver.event(), driver.event()
    begin.record(hip.stream())
    end.record(SimpleNamespace(cuda_stream=0))
    assert begin.query() and begin.elapsed_time(end) == 1.0
    end.synchronize()
    hip.answers["hipEventQuery"] = 600
    assert not end.query() and hip.last == 0
    untimed = driver.event(enable_timing=False)
    untimed.record()
    with pytest.raises(LaunchError, match="hipErrorInvalidHandle"):
        begin.elapsed_time(untimed)
    hip.problems.clear()
    del begin, end, untimed
    assert not hip.events


def test_a_launch_hands_on_its_parameters(hip: FakeHip) -> None:
    gpu, at = driver.current_device(), hip.stream()
    a = driver.allocate(64, gpu)
    loaded = driver.load(written("gfx942", ADD), FACTS)
    assert (loaded.registers, loaded.local_bytes, loaded.max_threads, loaded.threads) == (32, 0, 256, 256)
    launch = driver.on(gpu, loaded.launcher("QQf4xdq", lambda: at))
    launch(5, 6, 7, a, a + 16, 1.5, -2.0, 1)
    launch(0, 1, 1, a, a, 0.0, 0.0, 0)  # a grid without programs
    (done,) = hip.launched
    assert (done.name, done.grid, done.threads, done.shared, done.stream) == ("add", (5, 6, 7), 256, 0, at)
    assert done.values == (a, a + 16, 0x3FC00000, 0xC000000000000000, 1) and not done.cooperative
    driver.on(gpu, loaded.frozen("QQf4xdq", stream, (3, 1, 1), (a, a, 0.0, 1.0, 0)))()
    assert hip.launched[-1].grid == (3, 1, 1) and hip.launched[-1].values == (a, a, 0, 0x3FF0000000000000, 0)


def test_a_cooperative_launch_has_all_programs_at_once(hip: FakeHip) -> None:
    gpu = driver.current_device()
    loaded = driver.load(written("gfx942", Kernel("wait", 64)), {**FACTS, "name": "wait", "num_warps": 1,
                                                                 "launch_cooperative_grid": True})  # fmt: skip
    launch = driver.on(gpu, loaded.launcher("", stream))
    launch(608, 1, 1)
    assert hip.launched[-1].cooperative
    with pytest.raises(LaunchError) as error:
        launch(609, 1, 1)
    assert str(error.value).startswith("the grid of wait is too large for a cooperative launch: hipErrorCooperative")
    loaded.frozen("", stream, (2, 1, 1), ())()
    assert hip.launched[-1].grid == (2, 1, 1) and hip.launched[-1].cooperative


def test_local_memory_is_asked_for_where_the_code_object_has_not_fixed_it(hip: FakeHip) -> None:
    for fixed, asked in ((0, 5000), (5000, 0), (4096, 904)):
        kernel = Kernel("add", 256, shared=fixed)
        driver.load(written("gfx942", kernel), {**FACTS, "shared": 5000}).launcher("", stream)(1, 1, 1)
        assert hip.launched[-1].shared == asked


def test_each_gpu_has_code_of_its_own(two: FakeHip) -> None:
    first, second = driver.device(0), driver.device(1)
    loaded = driver.load(written("gfx942", Kernel("add", 256)), FACTS)
    assert loaded.gpu == first
    launches = [driver.on(gpu, loaded.launcher("", stream)) for gpu in (first, second)]
    launches += [driver.on(gpu, loaded.frozen("", stream, (9, 1, 1), ())) for gpu in (first, second)]
    for launch in launches[:2]:
        launch(4, 1, 1)
    for launch in launches[2:]:
        launch()
    assert [done.gpu for done in two.launched] == [0, 1, 0, 1] and driver.current_device() == first
    second.make_current()
    launches[0](1, 1, 1)
    assert two.launched[-1].gpu == 0 and driver.current_device() == second
    address = driver.allocate(16, first)
    assert driver.gpu_of_address(address) == 0 and driver.current_device() == second
    driver.free(address, first)
    first.synchronize()
    with pytest.raises(LaunchError, match="there is no GPU 2: this process sees 2"):
        driver.device(2)
    first.make_current()


def test_code_for_another_processor_is_refused(hip: FakeHip) -> None:
    with pytest.raises(Unsupported) as error:
        driver.load(written("gfx90a", ADD), FACTS)
    assert str(error.value) == (
        "error: running code for hip:gfx90a is not supported on target hip:gfx942:sramecc+:xnack-\n"
        "hint: the AMD Instinct MI300X takes target hip:gfx942"
    )
    with pytest.raises(Unsupported, match="takes target hip:gfx942, compiled without xnack\\+$"):
        driver.load(written("gfx942:sramecc+:xnack+", ADD), FACTS)
    assert driver.load(written("gfx942:sramecc+", ADD), FACTS).address
    assert "hipModuleLoadData" in hip.called


def test_an_image_that_does_not_load(hip: FakeHip) -> None:
    with pytest.raises(LaunchError) as error:
        driver.load(b"no code object", FACTS)
    assert str(error.value) == (
        "the HIP library cannot load the machine code of add, which is for no processor that it names, on the AMD "
        "Instinct MI300X (gfx942:sramecc+:xnack-): hipErrorInvalidImage (hipErrorInvalidImage)\n"
        "hint: install a newer ROCm"
    )
    with pytest.raises(LaunchError, match="the launch of other failed: hipErrorNotFound"):
        driver.load(written("gfx942", ADD), {**FACTS, "name": "other"})


def test_too_many_threads_and_too_much_local_memory(hip: FakeHip) -> None:
    with pytest.raises(OutOfResources) as error:
        driver.load(written("gfx942", ADD), {**FACTS, "num_warps": 32})
    assert str(error.value) == (
        "out of resource: threads, Required: 2048, Hardware limit: 1024.\n"
        "  threads of a block     2048 (32 warps of 64), of at most 1024\n"
        "hint: num_warps=16"
    )
    with pytest.raises(OutOfResources, match="threads, Required: 512, Hardware limit: 256"):
        driver.load(written("gfx942", ADD), {**FACTS, "num_warps": 8})
    with pytest.raises(OutOfResources) as error:
        driver.load(written("gfx942", ADD), {**FACTS, "shared": 70000})
    assert str(error.value) == (
        "out of resource: shared memory, Required: 70000, Hardware limit: 65536.\n"
        "hint: smaller blocks or fewer num_stages; a block of the AMD Instinct MI300X has 65536 bytes"
    )
    assert hip.called.count("hipModuleLaunchKernel") == 0


def test_a_grid_that_has_too_many_threads(hip: FakeHip) -> None:
    launch = driver.load(written("gfx942", Kernel("add", 256)), FACTS).launcher("", stream)
    launch(16777215, 1, 1)
    with pytest.raises(LaunchError) as error:
        launch(16777216, 1, 1)
    assert str(error.value) == (
        "grid size 16777216 on axis 0 exceeds 16777215, the most with 256 threads a program\n"
        "hint: put some of it on another axis, or launch with a smaller num_warps"
    )
    assert hip.last == 0


@pytest.mark.parametrize("status", (700, 719))
def test_a_fault_of_a_kernel_loses_the_gpu(hip: FakeHip, status: int) -> None:
    driver.load(written("gfx942", Kernel("add", 256)), FACTS).launcher("", stream)(4, 1, 1)
    hip.answers["hipDeviceSynchronize"] = status
    with pytest.raises(DeviceLost) as error:
        driver.current_device().synchronize()
    assert error.value.recent[0] == ("add", (4, 1, 1)) and "sim:hip:gfx942" in str(error.value)
    assert "AMD_SERIALIZE_KERNEL=3" in str(error.value) and "CUDA" not in str(error.value)


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    (
        (2, OutOfResources, "out of resource: GPU memory."),
        (701, LaunchError, "the launch of add failed: hipErrorLaunchOutOfResources"),
        (400, LaunchError, "belongs to another GPU"),
        (900, LaunchError, "launch it once before the capture begins"),
    ),
)
def test_statuses_of_a_launch(hip: FakeHip, status: int, kind: type[Exception], text: str) -> None:
    launch = driver.load(written("gfx942", Kernel("add", 256)), FACTS).launcher("", stream)
    hip.answers["hipModuleLaunchKernel"] = status
    with pytest.raises(kind) as error:
        launch(1, 1, 1)
    assert text in str(error.value) and hip.last == 0


def _missing(name: str) -> None:
    raise OSError(f"{name}: cannot open")


def test_no_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(library, "folders", lambda: [tmp_path / "lib", Path("/opt/rocm/lib")])
    monkeypatch.setattr(library, "loaded", lambda: None)
    monkeypatch.setattr(library, "NAMES", ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6"))
    monkeypatch.delenv(library.NAMED, raising=False)
    monkeypatch.setattr(libraries, "ctypes", SimpleNamespace(CDLL=_missing))
    forget()
    assert not driver.available() and not driver.installed()
    with pytest.raises(NoDevice) as error:
        driver.current_device()
    assert str(error.value) == (
        "AMD's HIP library was not found: no libamdhip64.so, libamdhip64.so.7 or libamdhip64.so.6 in "
        f"{tmp_path}/lib, /opt/rocm/lib, nor where the system looks\n"
        "hint: install ROCm, or PyTorch for ROCm; ROCM_PATH names another place; "
        "without a GPU use the target cpu, or sim:hip:gfx942 to simulate one"
    )
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libamdhip64.so").touch()
    assert driver.installed()
    with pytest.raises(NoDevice, match=r"^AMD's HIP library does not load: .*/lib/libamdhip64.so: cannot open\n"):
        driver.device_count()


def test_the_copy_that_is_loaded_already_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.write_text(
        "7f00-7f01 r-xp 00000000 08:01 11 /usr/lib/libc.so.6\n"
        "7f02-7f03 r-xp 00000000 08:01 12                      /venv/my torch/lib/libamdhip64.so\n"
    )
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libamdhip64.so.7").touch()
    monkeypatch.setattr(library, "_MAPS", str(maps))
    monkeypatch.setenv(library.NAMED, "/mine/libamdhip64.so")
    monkeypatch.setattr(library, "folders", lambda: [tmp_path / "lib"])
    assert list(library._candidates())[:3] == [
        "/venv/my torch/lib/libamdhip64.so", "/mine/libamdhip64.so", f"{tmp_path}/lib/libamdhip64.so.7",
    ]  # fmt: skip
    monkeypatch.undo()
    monkeypatch.setenv("ROCM_PATH", "/my/rocm")
    assert Path("/my/rocm/lib") in library.folders()


def test_a_library_that_is_too_old_or_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for hip in pretend(monkeypatch, version=50731920):
        with pytest.raises(NoDevice, match=r"^the HIP library libamdhip64.so is of ROCm 5.7; 6.0 or newer is needed\n"):
            driver.device_count()
    for hip in pretend(monkeypatch):
        hip.gpus = ()
        monkeypatch.setattr(functions.os.path, "exists", lambda path: False)
        with pytest.raises(NoDevice) as error:
            driver.current_device()
        assert str(error.value) == (
            "the HIP library sees no AMD GPU: hipErrorNoDevice (hipErrorNoDevice)\n"
            "hint: there is no /dev/kfd: the kernel driver amdgpu is not loaded, or a container was not given it; "
            "without a GPU use the target cpu, or sim:hip:gfx942 to simulate one"
        )
        assert not driver.available()
    for hip in pretend(monkeypatch):
        del hip._functions["hipMemsetD8Async"]
        with pytest.raises(NoDevice, match="the HIP library libamdhip64.so has no function hipMemsetD8Async"):
            driver.device_count()


def test_the_types_of_arguments_are_those_of_the_header(hip: FakeHip) -> None:
    """As the fake has them, which were written from the header apart from those that are called by."""
    kinds = {ctypes.c_ubyte: 1, ctypes.c_int: 4, ctypes.c_uint: 4, ctypes.c_size_t: 8, ctypes.c_void_p: 8}
    theirs = {name: [kinds[t] for t in types] for name, types in prototypes(PROTOTYPES, TYPES)}
    ours = {name: [ctypes.sizeof(t) for t in types] for name, types in functions.FUNCTIONS.items()}
    assert ours == theirs
