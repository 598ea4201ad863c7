"""The fuzzer's part for GPUs, on one that is pretended: its launches are done by the interpreter, or wrongly."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from runtime.pretended_gpu import PretendedGPU, pretend
from weft.base import DeviceLost

from .compare import EVERY, difference, generate
from .elements import DTYPES, Array

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pages are protected with mprotect")
SEED = 11
Fault = Callable[[int, dict[str, Array]], None]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedGPU]:
    yield from pretend(monkeypatch)


def _array(address: int, elem: str, size: int) -> Array:
    dtype = DTYPES[elem]
    return np.frombuffer((ctypes.c_char * (size * dtype.itemsize)).from_address(address), dtype)


def _outcome(gpu: PretendedGPU, fault: Fault = lambda launch, memory: None) -> str:
    """What is found where launch number n of the kernel does what it should, and `fault` after it."""
    program = generate(SEED, EVERY["cuda"])

    def answer() -> int:
        addresses = gpu.launched[-1].values("Q" * len(program.arrays))
        memory = {a.name: _array(p, a.elem, program.elements(a)) for a, p in zip(program.arrays, addresses)}
        program.interpret(memory)
        fault(len(gpu.launched), memory)
        return 0

    gpu.launch_answers = answer
    return difference(program, EVERY["cuda"])


def test_a_kernel_that_does_what_it_should(gpu: PretendedGPU) -> None:
    assert _outcome(gpu) == ""
    assert len(gpu.launched) == 4  # twice on whole numbers, twice on others


def test_a_wrong_value(gpu: PretendedGPU) -> None:
    def fault(launch: int, memory: dict[str, Array]) -> None:
        list(memory.values())[-1][0] += 1

    assert "differs at 1 of" in _outcome(gpu, fault)


@pytest.mark.parametrize("launch,numbers", [(2, "whole numbers"), (4, "other numbers")])
def test_other_bits_the_second_time(gpu: PretendedGPU, launch: int, numbers: str) -> None:
    def fault(now: int, memory: dict[str, Array]) -> None:
        if now == launch:
            list(memory.values())[-1][1] += 1

    assert f"other bits the second time, on {numbers}, at 1 places, first 1" in _outcome(gpu, fault)


@pytest.mark.parametrize("distance", [-1, 1])
def test_an_element_outside_of_an_array(gpu: PretendedGPU, distance: int) -> None:
    def fault(launch: int, memory: dict[str, Array]) -> None:
        array = list(memory.values())[-1]
        address = array.__array_interface__["data"][0]
        at = address - 1 if distance < 0 else address + array.nbytes
        ctypes.memset(at, 0, 1)

    with pytest.raises(RuntimeError, match="byte .* was written"):
        _outcome(gpu, fault)


def test_a_lost_gpu(gpu: PretendedGPU) -> None:
    gpu.answers["cuCtxSynchronize"] = 700
    with pytest.raises(DeviceLost):
        _outcome(gpu)
