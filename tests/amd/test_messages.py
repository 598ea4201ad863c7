"""What kernels print and assert on AMD's GPUs: a launch reads it from memory, which a pretended library has written."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.backends.amd import messages
from weft.base import DeviceAssertionError, LaunchError
from weft.compiler import compile as compile_here

from .container import problems
from .fake_hip import RX_9070, FakeHip, pretend
from .suite import PROCESSORS
from .waits import check


@pytest.fixture
def hip(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHip]:
    yield from pretend(monkeypatch, RX_9070, RX_9070)


@weft.jit
def shown(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=0)
    tl.device_print("100% of x", value)
    tl.device_print("hex", value.to(tl.int64), hex=True)
    tl.device_print("double", value * 0.5)
    tl.store(x + i, value + 1, mask=i < n)


@weft.jit
def positive(x, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.device_assert(tl.load(x + i) > 0, "x is positive")
    tl.store(x + i, 0)


def lines_of(program: int, at: int, values: list[int]) -> list[str]:
    head = [f"pid ({program}, 0, 0) idx ({at + i})" for i in range(4)]
    first = [f"{h} 100% of x: {v}" for h, v in zip(head, values, strict=True)]
    second = [f"{h} hex: 0x{v & 2**64 - 1:016x}" for h, v in zip(head, values, strict=True)]
    return [*first, *second, *(f"{h} double: {v * 0.5:f}" for h, v in zip(head, values, strict=True))]


def test_a_launch_prints_what_the_kernel_printed(hip: FakeHip, capsys: pytest.CaptureFixture[str]) -> None:
    x = weft.cuda.to_device(np.array([3, -2, 7, 9, 1, 2, 3, 4], np.int32))
    shown[(2,)](x, 8, BLOCK=4)
    printed = capsys.readouterr().out.splitlines()
    expected = [*lines_of(0, 0, [3, -2, 7, 9]), *lines_of(1, 0, [1, 2, 3, 4])]
    assert sorted(printed) == sorted(expected)
    assert [line for line in printed if "(0, 0, 0)" in line and "100%" in line] == lines_of(0, 0, [3, -2, 7, 9])[:4]
    shown[(1,)](x, 8, BLOCK=4)  # the memory begins anew
    assert capsys.readouterr().out.splitlines() == lines_of(0, 0, [4, -1, 8, 10])
    assert np.array_equal(x.numpy(), [5, 0, 9, 11, 2, 3, 4, 5])


def test_every_gpu_has_memory_of_its_own(hip: FakeHip, capsys: pytest.CaptureFixture[str]) -> None:
    for index in range(2):
        shown[(1,)](weft.cuda.to_device(np.arange(4, dtype=np.int32), device=index), 4, BLOCK=4)
        assert len(capsys.readouterr().out.splitlines()) == 12
    assert [launched.gpu for launched in hip.launched] == [0, 1]


def test_what_there_is_no_room_for_is_counted(
    hip: FakeHip, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "CAPACITY", 4096)
    x = weft.cuda.to_device(np.zeros(256, np.int32))
    shown[(1,)](x, 256, BLOCK=256)
    printed = capsys.readouterr().out.splitlines()
    lost = 256 * 3 - (len(printed) - 1)
    assert printed[-1] == f"shown: {lost} lines more were printed, for which 4096 bytes have no room"
    assert 100 < len(printed) < 200


def test_an_assertion_that_does_not_hold_is_raised_by_the_launch(hip: FakeHip) -> None:
    x = weft.cuda.to_device(np.array([3, 2, 7, 9, 1, -2, 3, 4], np.int32))
    with pytest.raises(DeviceAssertionError) as error:
        positive[(2,)](x, BLOCK=4, debug=True)
    assert "x is positive" in error.value.message
    assert error.value.program == (1, 0, 0)
    assert error.value.kernel == "positive"
    assert "tl.device_assert(" in (error.value.source_line or "")
    positive[(1,)](x, BLOCK=4, debug=True)  # the GPU works on


def test_a_launch_that_waits_is_not_captured(hip: FakeHip) -> None:
    x = weft.cuda.to_device(np.ones(4, np.int32))
    hip.answers["hipStreamSynchronize"] = 900
    with pytest.raises(LaunchError, match="positive prints or asserts, so that a launch waits for its end"):
        weft.jit(positive.fn)[(1,)](x, BLOCK=4, debug=True)


def test_kernels_that_say_nothing_have_no_memory(hip: FakeHip) -> None:
    positive[(1,)](weft.cuda.to_device(np.ones(4, np.int32)), BLOCK=4)
    assert not hip.variables
    assert "hipStreamSynchronize" not in hip.called


@pytest.mark.parametrize("processor", PROCESSORS[::3])
def test_code_objects(processor: str) -> None:
    for kernel, signature, options in (
        (shown, {"x": "*i32", "n": "i32"}, {}),
        (positive, {"x": "*i32"}, {"debug": True}),
    ):
        made: Any = compile_here(weft.ASTSource(kernel, signature, {"BLOCK": 256}), f"hip:{processor}", options)
        assert problems(made.asm["hsaco"], processor) == []
        assert not check(made.asm["amdgcn"])
        assert "weft_messages" in made.asm["amdgcn"]


def test_records_are_read_to_their_end() -> None:
    known = [["a %d\n", "i"], ["b %f %u%%\n", "dI"]]
    records = struct.pack("<Ii", 0, -1) + struct.pack("<IdI", 1, 0.25, 7)
    assert list(messages.lines(known, records)) == ["a -1\n", "b 0.250000 7%\n"]
    assert list(messages.lines(known, b"")) == []
    assert ctypes.sizeof(ctypes.c_uint64) * 4 == messages.RECORDS
