"""GPUs of AMD and NVIDIA in one process: which are meant, arrays that belong to the others, what is loaded for whom."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from runtime import pretended_gpu
from weft.base import LaunchError, LaunchTypeError
from weft.compat.shim import backends as shim
from weft.compiler import backends, devices
from weft.runtime import clock, driver

from .fake_hip import FakeHip, pretend
from .rocm_torch import Tensor, install


@weft.jit
def twice(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i))


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHip]:
    """An H200 and an MI300X."""
    for hip in pretend(monkeypatch):
        monkeypatch.setattr(backends, "SIGNS", {"nvidia": ("cuda", "/"), "amd": ("hip", "/")})
        for _ in pretended_gpu.pretend(monkeypatch):
            yield hip
            twice.reset()


def test_the_vendor_is_that_of_pytorch_else_the_first(both: FakeHip, monkeypatch: pytest.MonkeyPatch) -> None:
    def target() -> str:
        return str(backends.first_backend().driver.current_device().target)

    assert target() == "cuda:90"
    install(monkeypatch, both)
    assert target() == "hip:gfx942" and str(driver.active.get_current_target()) == "hip:gfx942"
    install(monkeypatch, both, cuda="13.0")
    assert target() == "cuda:90"
    monkeypatch.setattr(backends, "SIGNS", {"nvidia": ("cuda", "/no such file"), "amd": ("hip", "/")})
    assert target() == "hip:gfx942"  # the usual PyTorch on a machine with AMD's GPU
    monkeypatch.setattr(backends, "SIGNS", {"nvidia": ("cuda", ""), "amd": ("hip", "")})
    assert target() == "cuda:90"
    install(monkeypatch, both)
    assert target() == "hip:gfx942"  # Windows, where there are no such files


def test_triton_has_a_driver_for_each_vendor(both: FakeHip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.compiler.nvidia.driver.installed", lambda: True)
    drivers = {vendor: shim.backends[vendor].driver for vendor in ("nvidia", "amd")}
    for version, active in (({}, "amd"), ({"cuda": "13.0"}, "nvidia")):
        install(monkeypatch, both, **version)
        assert [vendor for vendor, its in drivers.items() if its.is_active()] == [active]


def test_time_is_measured_on_both(both: FakeHip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.compiler.nvidia.driver.fill", lambda *_: None)
    for target in ("hip:gfx942", "cuda:90"):
        with weft.target(target):
            clock.GPUClock().clear_cache()
    assert {str(array.driver).partition(" from")[0] for array in clock.GPUClock._flushed.values()} == {
        f"<module 'weft.compiler.{vendor}.driver'" for vendor in ("amd", "nvidia")
    }


def test_arrays_stay_with_their_vendor(both: FakeHip) -> None:
    numbers = np.arange(64, dtype=np.float32)
    with weft.target("hip:gfx942"):
        amd = weft.cuda.to_device(numbers)
        twice[(1,)](amd, BLOCK=64, num_warps=1)
    nvidia = weft.cuda.to_device(numbers)
    assert (amd.numpy() == 2 * numbers).all() and (amd.clone().numpy() == 2 * numbers).all()
    twice[(1,)](nvidia, BLOCK=64, num_warps=1)
    with pytest.raises(LaunchError) as error:
        twice[(1,)](amd, BLOCK=64, num_warps=1)
    assert str(error.value) == (
        "argument `x`: a weft.DeviceArray is in the memory of a GPU of AMD's, but this launch is for one of NVIDIA's\n"
        "hint: copy it to the host first: x.cpu() in PyTorch, x.get() in CuPy, numpy.asarray(x) elsewhere; "
        "or launch for that GPU, with weft.target(...)"
    )
    with weft.target("hip:gfx942"):
        twice[(1,)](amd, BLOCK=64, num_warps=1)
        with pytest.raises(LaunchError, match="of a GPU of NVIDIA's, but this launch is for one of AMD's"):
            twice[(1,)](nvidia, BLOCK=64, num_warps=1)
    with pytest.raises(LaunchTypeError, match="cannot be copied into"):
        nvidia.copy_(amd)


def test_a_compiled_kernel_runs_on_its_own_vendors_gpu(both: FakeHip) -> None:
    made = weft.compile(weft.ASTSource(twice, {"x": "*fp32"}, {"BLOCK": 64}), "hip:gfx942", {"num_warps": 1})
    numbers = np.arange(64, dtype=np.float32)
    with weft.target("hip:gfx942"):
        amd = weft.cuda.to_device(numbers)
    for _ in range(3):
        made[(1,)](amd, 64)
    assert (amd.numpy() == 8 * numbers).all() and len(both.launched) == 3
    with pytest.raises(LaunchError, match="of a GPU of NVIDIA's, but this launch is for one of AMD's"):
        made[(1,)](weft.cuda.to_device(numbers), 64)


def test_tensors_of_a_pytorch_for_the_other_vendor(both: FakeHip, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, both)
    x = Tensor(4096, np.float32, 64)
    with pytest.raises(LaunchError) as error, weft.target("cuda:90"):
        twice[(1,)](x, BLOCK=64)
    where = "is in the memory of a GPU of AMD's, but this launch is for one of NVIDIA's"
    assert str(error.value).startswith(f"argument `x`: Tensor on {x.device} {where}\n")
    install(monkeypatch, both, cuda="13.0")
    with pytest.raises(LaunchError, match="of a GPU of NVIDIA's, but this launch is for one of AMD's"):
        with weft.target("hip:gfx942"):
            twice[(1,)](x, BLOCK=64)
    assert not both.launched


class OfDLPack:
    """An array that says by DLPack in which memory it is."""

    def __init__(self, kind: int) -> None:
        self.kind = kind

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0

    def __dlpack__(self, **_: object) -> None:
        raise AssertionError("its memory was asked for")


def test_arrays_by_dlpack(both: FakeHip, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LaunchError, match="of a GPU of AMD's, but this launch is for one of NVIDIA's"):
        twice[(1,)](OfDLPack(10), BLOCK=64)
    with pytest.raises(LaunchError, match="lives in metal memory"):
        twice[(1,)](OfDLPack(8), BLOCK=64)


class OfCuPy:
    """An array of a CuPy that is built for one vendor."""

    def __init__(self, array: Any) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__


OfCuPy.__module__ = "cupy"


@pytest.mark.parametrize("is_hip", [True, False])
def test_arrays_of_a_cupy_for_the_other_vendor(both: FakeHip, monkeypatch: pytest.MonkeyPatch, is_hip: bool) -> None:
    own, other = ("hip:gfx942", "cuda:90") if is_hip else ("cuda:90", "hip:gfx942")
    stream = SimpleNamespace(ptr=0)
    cuda = SimpleNamespace(runtime=SimpleNamespace(is_hip=is_hip), get_current_stream=lambda: stream)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    with weft.target(own):
        array = weft.cuda.to_device(np.arange(64, dtype=np.float32))
        twice[(1,)](OfCuPy(array), BLOCK=64, num_warps=1)
    whose, launched = ("AMD", "NVIDIA") if is_hip else ("NVIDIA", "AMD")
    with pytest.raises(LaunchError) as error, weft.target(other):
        twice[(1,)](OfCuPy(array), BLOCK=64, num_warps=1)
    assert str(error.value) == (
        f"argument `x`: a cupy.OfCuPy is in the memory of a GPU of {whose}'s, "
        f"but this launch is for one of {launched}'s\n"
        "hint: copy it to the host first: x.cpu() in PyTorch, x.get() in CuPy, numpy.asarray(x) elsewhere; "
        "or launch for that GPU, with weft.target(...)"
    )


def test_what_is_found_is_said_of_both(both: FakeHip) -> None:
    found = devices.found()
    assert "H200" in found["GPUs"] and "MI300X" in found["AMD GPUs"] and found["HIP"].startswith("HIP 7.1")


def test_nothing_of_amd_is_loaded_for_others() -> None:
    """Neither for launches on the CPU nor where NVIDIA's GPUs are asked for."""
    code = """if True:
        import sys, numpy, weft
        from weft.compiler import backends
        backends.SIGNS = {"nvidia": ("cuda", "/"), "amd": ("hip", "/no such file")}
        weft.cuda.is_available(), weft.runtime.driver.active
        weft.compiler.as_target("cuda:90")
        print(*sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "weft.compiler.nvidia" in done.stdout.split()
    assert not [m for m in done.stdout.split() if m.startswith("weft.") and ".amd" in m and m != "weft.machines.amd"]
