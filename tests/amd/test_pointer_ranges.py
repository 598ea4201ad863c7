"""Launches say of small arrays that they are small, and then every element is reached through a buffer descriptor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import knobs
from weft.compat.shim.backends.amd.compiler import HIPBackend
from weft.compiler import GPUTarget
from weft.compiler.amd import SMALL
from weft.runtime.extents import memory_bytes

from .fake_hip import FakeHip, pretend
from .rocm_torch import Torch, install


@weft.jit
def moved(x, out, end, down, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + end + (i - down)))


@pytest.mark.parametrize("target", ["sim:hip:gfx942", "sim:hip:gfx1201"])
def test_every_element_of_the_largest_array_is_reached_from_any_other(target: str) -> None:
    """A pointer is moved by what all threads have, to the end of the array, and threads go back from there."""
    array, out = np.empty(SMALL, np.uint8), np.zeros(64, np.uint8)  # hardly any of it becomes memory
    array[:64], array[-64:] = np.arange(64), np.arange(100, 164)
    with weft.target(target):
        for end, down, first in ((SMALL, SMALL, 0), (SMALL, 64, 100), (0, 0, 0), (0, 64 - SMALL, 100)):
            moved[(1,)](array, out, end, down, BLOCK=64)
            assert (out == np.arange(first, first + 64)).all(), (end, down)


@weft.jit
def chosen(pair, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(pair[0] + i, mask=i < n) + tl.load(pair[1] + i), mask=i < n)


def test_simulated_launches_say_what_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views are of their whole memory; parts of tuples are looked at one by one; a setting says that none is."""
    large, x, out = np.empty(SMALL + 4, np.uint8).view(np.float32), np.ones(64, np.float32), np.zeros(64, np.float32)
    large[:64] = 5

    def descriptors(*pair: Any, target: str = "sim:hip:gfx942") -> int:
        with weft.target(target):
            text = chosen[(1,)](pair, out, 64, BLOCK=64).asm["lane"]
        assert (out == sum(part[:64] for part in pair)).all()
        return text.count("arith.subi")

    assert descriptors(x, x) == descriptors(x[:], x) > descriptors(large[:64], x) > descriptors(large, large) > 0
    assert descriptors(x, x, target="sim:cuda:90") == 0
    monkeypatch.setattr(knobs.amd, "use_buffer_ops", False)
    assert descriptors(x, x) == 0


@pytest.fixture
def hip(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHip]:
    yield from pretend(monkeypatch)
    doubled.reset()


@pytest.fixture
def torch(hip: FakeHip, monkeypatch: pytest.MonkeyPatch) -> Torch:
    return install(monkeypatch, hip)


@weft.jit
def doubled(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def test_a_tensor_that_outgrows_2_gib_has_another_kernel(torch: Torch) -> None:
    x, out = torch.of(np.arange(64, dtype=np.float32)), torch.of(np.zeros(64, np.float32))
    loads: dict[int, set[str]] = {}
    for storage in (256, SMALL, SMALL + 1, 256, 1 << 40):
        x.storage = storage
        for _ in range(3):  # the general way, and the quickest ones
            made = doubled[(1,)](x, out, 64, BLOCK=64)
            loads.setdefault(storage, set()).add(made.asm["amdgcn"].partition("_load_dword v")[0].split()[-1])
    assert loads == {256: {"buffer"}, SMALL: {"buffer"}, SMALL + 1: {"global"}, 1 << 40: {"global"}}
    assert (torch.to_numpy(out) == 2 * np.arange(64)).all() and len(doubled.cache) == 2


class Elsewhere:
    """What another library has in a GPU's memory: two thirds of an array."""

    def __init__(self, array: Any) -> None:
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "shape": (array.size * 2 // 3,)}


def test_what_says_nothing_is_as_large_as_its_allocation(hip: FakeHip) -> None:
    array = weft.cuda.to_device(np.zeros(96, np.float32))
    assert memory_bytes(array) == 384 == memory_bytes(Elsewhere(array))
    beyond = Elsewhere(array)
    beyond.__cuda_array_interface__ |= {"shape": (1000,)}  # an allocation that is followed by another
    assert memory_bytes(beyond) is None
    beyond.__cuda_array_interface__ |= {"data": (1 << 50, False)}
    assert memory_bytes(beyond) is None
    made = doubled[(1,)](Elsewhere(array), array, 64, BLOCK=64)
    assert "buffer_load" in made.asm["amdgcn"]


class Said:
    """An array that says how far it reaches, as libraries tell Triton."""

    def __init__(self, size: int) -> None:
        self.size = size

    def data_ptr(self) -> int:
        return 1 << 40

    def ptr_range(self) -> int:
        return self.size


def test_tools_are_told_as_by_triton() -> None:
    backend = HIPBackend(GPUTarget("hip", "gfx942", 64))
    assert backend.get_tensor_specialization(Said(SMALL), align=True) == "DS"
    assert backend.get_tensor_specialization(Said(SMALL)) == "S"
    assert backend.get_tensor_specialization(Said(1 << 31), align=True) == "D"
    assert backend.parse_attr("DS") == [["tt.divisibility", 16], ["tt.pointer_range", 32]]
    assert backend.parse_attr("D") == [["tt.divisibility", 16]]
    assert backend.parse_options({}).num_stages == 2 and backend.parse_options({"num_stages": 4}).num_stages == 4
