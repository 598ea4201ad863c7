"""Memory that an array is a part of, and kernels that are compiled for arrays whose memory is small."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.compiler import devices
from weft.runtime import reinterpret
from weft.runtime.extents import is_within, memory_bytes
from weft.runtime.specialize import signature_of, specialize
from weft.runtime.tensors import MockTensor

from .pretended_gpu import Array, PretendedGPU, Tensor, pretend

WHOLE = np.zeros((100, 8), np.float32)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (WHOLE, 3200),
        (WHOLE[10:20, ::-2], 3200),
        (WHOLE[3:].view(np.int16), 3200),
        (np.lib.stride_tricks.as_strided(WHOLE[5:], (2, 2), (4, 4)), 3200),
        (np.broadcast_to(WHOLE[0], (50, 8)), 3200),
        (np.frombuffer(bytearray(100), np.uint8)[7:9], 100),
        (reinterpret(WHOLE[1:], tl.int32), 3200),
        (MockTensor("fp32"), 0),
    ],
)
def test_the_memory_of_a_view(array: Any, expected: int) -> None:
    assert memory_bytes(array) == expected
    assert is_within(array, expected) and not is_within(array, expected - 1)


def test_a_tensor_is_a_part_of_its_storage() -> None:
    tensor = Tensor(size=10)
    assert memory_bytes(tensor) == 40
    tensor.storage = 1 << 33
    assert memory_bytes(tensor) == 1 << 33


class Unknown:
    """An array that does not say what it is a part of."""

    __array_interface__ = WHOLE[:5].__array_interface__


def test_what_says_nothing_is_not_small() -> None:
    assert memory_bytes(Unknown()) is None and not is_within(Unknown(), 1 << 62)
    assert specialize(Unknown(), small=1 << 40)[1] in ("", "D")


def test_what_is_said_of_small_arrays() -> None:
    aligned = np.zeros(64, np.float32)
    base = -aligned.ctypes.data % 16 // 4
    array = aligned[base : base + 8]
    assert specialize(array, small=256) == ("*fp32", "DS") and specialize(array[1:], small=256) == ("*fp32", "S")
    assert specialize(array, small=255) == ("*fp32", "D") == specialize(array)
    assert specialize(array, small=256, specialize_value=False) == ("*fp32", None)
    assert specialize(array, small=256, align=False) == ("*fp32", "S")
    both = specialize((array, 32, array[1:]), small=256)
    assert both == (("*fp32", "i32", "*fp32"), ("DS", "D", "S"))
    attributes = signature_of(["x"], [both], [(array, 32, array[1:])])[2]
    small, divided = ["tt.pointer_range", 32], ["tt.divisibility", 16]
    assert attributes == {(0, 0): [divided, small], (0, 1): [divided], (0, 2): [small]}


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedGPU]:
    """One whose kernels are compiled for arrays of up to a mebibyte."""
    monkeypatch.setattr(type(devices.backend()), "small_arrays", 1 << 20)
    yield from pretend(monkeypatch)


def kernel() -> Any:
    @weft.jit
    def fill(x, y, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + i, tl.load(y + i, mask=i < n), mask=i < n)

    return fill


def facts_of(compiled: Any) -> list[str]:
    """Which parameters are said to be small."""
    return [str(path[0]) for path, facts in compiled.src.attrs.items() if ["tt.pointer_range", 32] in facts]


def test_an_array_that_has_grown_has_another_kernel(gpu: PretendedGPU) -> None:
    fill = kernel()
    x, y = Tensor(1 << 40), Tensor(1 << 41)
    for size, small in ((64, ["0", "1"]), (1 << 18, ["0", "1"]), ((1 << 18) + 1, ["0"]), (64, ["0", "1"])):
        y.storage = 4 * size
        for _ in range(4):  # the first time, those with a launcher of its own, and the quickest way
            assert facts_of(fill[(1,)](x, y, 64, BLOCK=128)) == small
        assert "_w_last" in fill._on_gpu().quickest.__globals__
    assert len(gpu.launched) == 16 and len(fill.cache) == 2
    frozen = fill.bind(x, y, 64, grid=(1,), BLOCK=128)
    frozen()
    assert len(fill.cache) == 2


def test_other_arrays_are_asked_too(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of other libraries lie in an allocation, whose size the driver knows; their own are known."""
    fill = kernel()
    ours, other = weft.cuda.empty(1 << 19, np.float32), Array(1 << 41)
    for _ in range(3):
        assert facts_of(fill[(1,)](ours, other, 64, BLOCK=128)) == []
    sizes = {1 << 41: 1 << 20}
    monkeypatch.setattr(devices.driver(), "allocation_bytes", sizes.get, raising=False)
    for _ in range(3):
        assert facts_of(fill[(1,)](ours, other, 64, BLOCK=128)) == ["1"]
        assert facts_of(fill[(1,)](weft.cuda.empty(9, np.float32), other, 64, BLOCK=128)) == ["0", "1"]


def test_a_parameter_that_is_not_specialised_says_nothing(gpu: PretendedGPU) -> None:
    fill = weft.jit(kernel().fn, do_not_specialize=["y"], do_not_specialize_on_alignment=["x"])
    x, y = Tensor(1 << 40), Tensor(1 << 41)
    for y.storage in (256, 1 << 30):
        for _ in range(3):
            assert facts_of(fill[(1,)](x, y, 64, BLOCK=128)) == ["0"]
    assert len(fill.cache) == 1


def test_a_hook_is_told_and_preloading_finds_it_again(gpu: PretendedGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, Any]] = []
    fill = kernel()
    monkeypatch.setattr(weft.knobs.runtime, "jit_cache_hook", lambda **facts: told.append(facts))
    made = fill[(1,)](Tensor(1 << 40), Tensor(1 << 41), 64, BLOCK=128)
    monkeypatch.setattr(weft.knobs.runtime, "jit_cache_hook", None)
    assert facts_of(SimpleNamespace(src=SimpleNamespace(attrs=told[0]["compile"]["configs"][0]))) == ["0", "1"]
    assert fill.preload(told[0]["compile"]["specialization_data"]).hash == made.hash
