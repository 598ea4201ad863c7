"""Reads of LDS that transpose, on gfx1250: simulated, as instructions, at the addresses of Triton's; see also
test_direct_loops.py for gfx950's."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
from weft import gluon
from weft.gluon import language as gl
from weft.machines import machine_of
from weft.targets.amd.transposed import transposed_read

from .waits import check

HALVES = gl.DotOperandLayout(1, gl.amd.AMDWMMALayout(3, True, [2, 2], instr_shape=[16, 16, 32]), 8)
BYTES = gl.DotOperandLayout(1, gl.amd.AMDWMMALayout(3, True, [2, 2], instr_shape=[16, 16, 64]), 8)
PADDED = gl.PaddedSharedLayout.with_identity_for([[64, 16]], [64, 64], [1, 0])
PLAIN = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])


@gluon.jit
def through(x, y, L: gl.constexpr, S: gl.constexpr, B: gl.constexpr):
    at = gl.arange(0, 64, layout=gl.SliceLayout(1, L))[:, None] * 64
    memory = gl.allocate_shared_memory(
        x.dtype.element_ty, [64, 64], S, gl.load(x + at + gl.arange(0, 64, layout=gl.SliceLayout(0, L))[None, :])
    )
    at = gl.arange(0, 64, layout=gl.SliceLayout(1, B))[:, None] * 64
    gl.store(y + at + gl.arange(0, 64, layout=gl.SliceLayout(0, B))[None, :], memory.load(B))


@pytest.mark.parametrize(
    ("elem", "operand", "vector", "name"),
    [(np.float16, HALVES, 8, "ds_load_tr16_b128"), (np.int8, BYTES, 16, "ds_load_tr8_b64")],
)
@pytest.mark.parametrize(
    "memory", [PLAIN, gl.SwizzledSharedLayout(16, 1, 4, [1, 0]), PADDED]
)
def test_rows_are_read_as_columns(elem: Any, operand: Any, vector: int, name: str, memory: Any) -> None:
    x = np.arange(4096).astype(elem).reshape(64, 64)
    y = np.zeros_like(x)
    lanes = 64 // vector
    constants = {"L": gl.BlockedLayout([1, vector], [32 // lanes, lanes], [4, 1], [1, 0]), "S": memory, "B": operand}
    with weft.target("sim:hip:gfx1250"):
        through[(1,)](x, y, **constants, num_warps=4)
    np.testing.assert_array_equal(y, x)
    type = "*fp16" if elem == np.float16 else "*i8"
    text = weft.compile(weft.ASTSource(through, {"x": type, "y": type}, constants), "hip:gfx1250").asm["amdgcn"]
    assert len(re.findall(rf"^\s+{name}\b", text, re.M)) == 8  # as many as Triton 3.6.0 has
    assert not re.findall(r"^\s+ds_load_(?!tr)", text, re.M) and not check(text)


@pytest.mark.parametrize(
    ("operand", "bits", "lanes"), [(HALVES, 16, (64, 128, 256, 8, 512)), (BYTES, 8, (64, 128, 8, 256, 512))]
)
def test_addresses_are_those_of_triton(operand: Any, bits: int, lanes: tuple[int, ...]) -> None:
    """What each bit of a lane's number adds, in elements: read off the LLVM IR of Triton 3.6.0."""
    memory = PLAIN.to_linear([64, 64])
    read = transposed_read(operand.to_linear([64, 64]), memory, bits, machine_of("hip:gfx1250"))
    assert read is not None and (read.lanes, read.warps) == (lanes, (16, 0))
