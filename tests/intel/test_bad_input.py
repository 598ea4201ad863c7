"""What a user is told of targets, options and devices that are not to be had, whole."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.backends.intel import opencl
from weft.base import LaunchError, NoDevice, OptionError, Unsupported


@weft.jit
def add_one(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@weft.jit
def halved(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).to(tl.float64) / 2)


ADD_ONE = weft.ASTSource(add_one, {"x": "*fp32", "n": "i32"}, {"BLOCK": 1024})
UNKNOWN = (
    "error: compiling is not supported on target xpu:pvd\n"
    "hint: did you mean xpu:pvc? targets that exist: cpu, "
)  # and so on


@pytest.mark.parametrize(
    ("target", "options", "kind", "text"),
    [
        ("xpu:pvd", {}, Unsupported, UNKNOWN),
        ("xpu:pvc", {"grf_mode": "512"}, LaunchError, "grf_mode must be one of default, 128, 256, auto, got '512'"),
        ("xpu:pvc", {"warp_size": 64}, OptionError, "warp_size must be 16 on xpu:pvc, got 64\nhint: 16"),
    ],
)
def test_targets_and_options(target: Any, options: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        weft.compile(ADD_ONE, target, options)
    whole = str(caught.value)
    assert whole == text or (text.endswith(", ") and whole.startswith(text))  # behind which targets are listed


def _device(name: str, **facts: Any) -> Any:
    """An OpenCL device that has all that is needed, but for what is said."""
    extensions = "cl_khr_fp64 " + " ".join(opencl.WANTED)
    has: dict[str, Any] = {"extensions": extensions, "il_version": "SPIR-V_1.4 ", "local_mem_size": 1 << 16}
    has |= {"max_work_group_size": 4096, "svm_capabilities": 0}
    return SimpleNamespace(name=name, **{**has, **facts})


def test_opencl_devices_without_spirv_or_subgroups(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = _device("pocl", il_version="", extensions="cl_khr_fp64"), _device("old", extensions=opencl.WANTED[0])
    monkeypatch.setattr(opencl, "_devices", lambda: devices)
    monkeypatch.setattr(opencl, "library", lambda: SimpleNamespace())
    opencl.chosen.cache_clear()
    with pytest.raises(NoDevice) as caught:
        opencl.chosen()
    assert str(caught.value) == (
        "there is no OpenCL device that takes SPIR-V with subgroups (pocl lacks cl_intel_subgroups, "
        "cl_intel_required_subgroup_size, SPIR-V; old lacks cl_intel_required_subgroup_size)\n"
        f"hint: {opencl.HINT}"
    )


def test_an_opencl_device_without_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    device = _device("some GPU", extensions=" ".join(opencl.WANTED))
    monkeypatch.setattr(opencl, "chosen", lambda: (device, None, None))
    monkeypatch.setattr(opencl, "library", lambda: SimpleNamespace())
    x = np.ones(64, np.float32)
    with pytest.raises(Unsupported) as caught, weft.target("opencl"):
        halved[(1,)](x, x.astype(np.float64), BLOCK=64)
    assert str(caught.value) == (
        "error: float64, with which `halved` computes, is not supported on target some GPU\n"
        "hint: compute in float32, or take the target cpu"
    )
