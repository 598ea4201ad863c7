"""What is tested on GPUs, on AMD's through a HIP library that is only pretended: the kernels of the suite, compiled to
code objects and launched with the arguments that those want; and how launches behave.

pytest tests/amd/test_hip_suite.py -m "slow or not slow"      # all of it; otherwise a part, another one for each GPU
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from gpu import test_kernels as kernels, test_launching as launching, test_two_gpus as two
from gpu.anywhere import LAUNCHES, launched

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


SLOW = pytest.param(launching.test_autotuning_restores_arrays_of_the_gpu, marks=pytest.mark.slow)


@pytest.mark.parametrize("test", (*LAUNCHES, SLOW), ids=lambda test: test.__name__.removeprefix("test_"))
def test_launches(monkeypatch: pytest.MonkeyPatch, test: Any) -> None:
    launched(test, lambda count: pretend(monkeypatch, *(MI300X,) * count))


@pytest.mark.parametrize("current", (0, 1))
def test_a_launch_goes_where_its_arrays_are(monkeypatch: pytest.MonkeyPatch, current: int) -> None:
    for hip in pretend(monkeypatch, MI300X, MI300X):
        monkeypatch.setattr(two, "thread_gpu", lambda hip=hip: hip.current)
        two.add_one.reset()
        two.test_a_launch_goes_where_its_arrays_are(current)
        two.add_one.reset()
