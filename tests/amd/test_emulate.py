"""What running a code object in an emulator needs, without the emulator: arguments, registers, what is missing."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from . import emulated, meanings
from .code_object import CodeObject
from .emulate import Emulator, Missing, dispatch_packet, kernarg, user_registers
from .kernels import SMALL, compiled


@pytest.fixture(scope="module")
def code() -> CodeObject:
    """The kernel that adds, for gfx942."""
    case = SMALL["add"]
    return CodeObject(compiled(case, case.arguments(np.random.default_rng(0)), "hip:gfx942").asm["hsaco"])


def test_arguments_lie_where_the_metadata_says(code: CodeObject) -> None:
    (kernel,) = code.kernels.values()
    arrays = [np.zeros(4, np.int32) for _ in range(3)]
    buffer, _ = kernarg(kernel, [*arrays, 1000])
    assert struct.unpack_from("<3Qi", buffer.tobytes()) == (*(a.ctypes.data for a in arrays), 1000)
    with pytest.raises(ValueError, match="global_buffer, and 5 is given"):
        kernarg(kernel, [5])
    with pytest.raises(ValueError, match=r"takes \d arguments, and 9 are given"):
        kernarg(kernel, [*arrays, 1, *[1] * 5])


def test_registers_begin_with_what_the_descriptor_wants(code: CodeObject) -> None:
    (kernel,) = code.kernels.values()
    registers = user_registers(kernel, {"arguments": 0x123456789A, "dispatch": 1})
    at = kernel.descriptor.user_registers.index("arguments")
    assert registers[at : at + 2] == [0x3456789A, 0x12]
    assert code.processor == "gfx942" and kernel.descriptor.kernarg_bytes >= 28


def test_a_packet_says_the_sizes() -> None:
    packet = dispatch_packet([3, 2, 1], 256, 7).tobytes()
    assert len(packet) == 64
    assert struct.unpack_from("<3H", packet, 4) == (256, 1, 1) and struct.unpack_from("<3I", packet, 12) == (768, 2, 1)


def test_a_folder_without_an_emulator_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Missing, match="has no test/mockgpu"):
        Emulator.check(tmp_path)
    assert emulated.main([]) == 0
    assert capsys.readouterr().out == "skipped: no folder is given: EMULATOR=folder is a clone of tinygrad/tinygrad\n"


def test_which_mfma_are_executed_by_formulas() -> None:
    assert meanings.mfma_is_wrong("V_MFMA_F32_32X32X8_F16", "gfx942")
    assert not meanings.mfma_is_wrong("V_MFMA_F32_16X16X16_F16", "gfx942")
    assert meanings.mfma_is_wrong("V_MFMA_F32_16X16X32_FP8_BF8", "gfx942")
    assert not meanings.mfma_is_wrong("V_MFMA_F32_16X16X32_FP8_BF8", "gfx950")


@pytest.mark.parametrize("name", [name for name in SMALL if "assertion" not in name])
@pytest.mark.thinned(2)
def test_small_kernels_give_what_numpy_says(name: str) -> None:
    """On the CPU: what the emulator's results are compared with is right."""
    case = SMALL[name]
    given = case.arguments(np.random.default_rng(2))
    expected = case.expected({n: a.copy() if isinstance(a, np.ndarray) else a for n, a in given.items()})
    case.kernel[case.grid](*given.values(), **case.constants, num_warps=case.warps)
    for argument, values in expected.items():
        np.testing.assert_array_equal(given[argument].reshape(-1), np.asarray(values).reshape(-1), err_msg=argument)
