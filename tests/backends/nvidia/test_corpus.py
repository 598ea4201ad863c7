"""The test kernels for both processors: ptxas takes their PTX. Some of them always, all in the slow tests."""

from __future__ import annotations

import pytest

from weft.base import Unsupported

from .assembling import NAMES, OF_TRITON, TARGETS, assembled, needs_ptxas, program_of, program_of_layout_ir

SOME = (
    "vector_add",
    "softmax",
    "matmul_f16",
    "batched_matmul",
    "flash_attention_64",
    "cast_float32_to_float8_e4m3fn",
    "cast_float8_e5m2_to_float16",
    "every_atomic_int64",
    "half_atomic_add_bfloat16",
    "collatz",
    "carried_pointers_transposed",
    "early_return",
)


def test_there_are_kernels() -> None:
    assert len([n for n in SOME if n in NAMES]) >= 10
    assert len(NAMES) >= 150


def _check(name: str, target: str) -> None:
    try:
        program = program_of(name, target)
    except Unsupported as error:
        pytest.skip(f"not lowered: {error}")
    emitted, machine = assembled(program)
    assert emitted.name in emitted.code
    assert emitted.threads == 128
    if machine.by == "ptxas":
        assert 0 < machine.registers <= 255


@needs_ptxas
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", [n for n in SOME if n in NAMES])
def test_some(name: str, target: str) -> None:
    _check(name, target)


@needs_ptxas
@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_all(name: str, target: str) -> None:
    _check(name, target)


OF_TRITON_ALWAYS = [n for n in OF_TRITON if n.endswith("_sm90") and ("matmul" in n or "attention" in n)][:6]


def _check_layout_ir(name: str) -> None:
    try:
        program = program_of_layout_ir(name)
    except Unsupported as error:
        pytest.skip(f"not lowered: {error}")
    _, machine = assembled(program)
    assert machine.spilled_bytes == 0


def test_there_is_layout_ir() -> None:
    assert len(OF_TRITON) >= 60 and len(OF_TRITON_ALWAYS) >= 3


@needs_ptxas
@pytest.mark.parametrize("name", OF_TRITON_ALWAYS)
def test_layout_ir_of_triton(name: str) -> None:
    _check_layout_ir(name)


@needs_ptxas
@pytest.mark.slow
@pytest.mark.parametrize("name", OF_TRITON)
def test_all_layout_ir_of_triton(name: str) -> None:
    _check_layout_ir(name)
