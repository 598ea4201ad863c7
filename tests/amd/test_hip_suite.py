"""What is tested on GPUs, on AMD's through a HIP library that is only pretended: the kernels of the suite, compiled to
code objects and launched with the arguments that those want; and how launches behave.

pytest tests/amd/test_hip_suite.py -m "slow or not slow"      # all of it; otherwise a part, another one for each GPU
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import pytest

import weft
from gpu import test_kernels as kernels, test_launching as launching, test_two_gpus as two

from .fake_hip import MI300X, RX_9070, pretend

GPUS = {"gfx942": MI300X, "gfx1201": RX_9070}
OF = 80
"""One kernel of so many is in the part for each GPU."""


def _cases() -> Iterator[Any]:
    for target in GPUS:
        for name in kernels.CASES:
            part = zlib.crc32(f"{name} launched on {target}".encode()) % OF == 0
            if name not in kernels.NOT_HERE:
                yield pytest.param(name, target, marks=() if part else pytest.mark.slow)


@pytest.mark.parametrize(("name", "target"), list(_cases()))
def test_kernels_are_launched(monkeypatch: pytest.MonkeyPatch, name: str, target: str) -> None:
    for hip in pretend(monkeypatch, GPUS[target]):
        kernels.CASES[name].kernel.reset()
        kernels.test_kernel_agrees_with_numpy(name)
        assert hip.launched or 0 in kernels.CASES[name].grid
        kernels.CASES[name].kernel.reset()


LAUNCHES = (
    kernels.test_launches_go_where_the_arrays_are,
    kernels.test_a_host_array_among_those_of_a_gpu_is_named,
    kernels.test_a_frozen_launch,
    kernels.test_a_grid_of_nothing_launches_nothing,
    kernels.test_there_is_no_such_gpu,
    launching.test_a_grid_beyond_the_limits,
    pytest.param(launching.test_autotuning_restores_arrays_of_the_gpu, marks=pytest.mark.slow),
    two.test_kernels_with_memory_of_their_own,
    two.test_arrays_of_two_gpus_are_refused,
)
"""Tests of launches that say nothing of a vendor."""


@pytest.mark.parametrize("test", LAUNCHES, ids=lambda test: test.__name__.removeprefix("test_"))
def test_launches(monkeypatch: pytest.MonkeyPatch, test: Any) -> None:
    used = [value for value in test.__globals__.values() if isinstance(value, weft.JITFunction)]
    for _ in pretend(monkeypatch, *(MI300X,) * (2 if test.__module__.endswith("two_gpus") else 1)):
        for kernel in used:
            kernel.reset()
        test()
        for kernel in used:
            kernel.reset()


@pytest.mark.parametrize("current", (0, 1))
def test_a_launch_goes_where_its_arrays_are(monkeypatch: pytest.MonkeyPatch, current: int) -> None:
    for hip in pretend(monkeypatch, MI300X, MI300X):
        monkeypatch.setattr(two, "thread_gpu", lambda hip=hip: hip.current)
        two.add_one.reset()
        two.test_a_launch_goes_where_its_arrays_are(current)
        two.add_one.reset()
