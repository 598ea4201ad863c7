"""Loops of products whose operands are copied into LDS iterations ahead: results, copies, waits, and what is not."""

from __future__ import annotations

import re
import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl

from .assembly import parse
from .local import run
from .test_local import without_barriers
from .waits import check, faults, weakened


@weft.jit
def product(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, OTHER: tl.constexpr, ACC: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """c = a b, b by ROWS or by columns; what is beyond K is OTHER."""
    rm, rn = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    at_a = a + rm[:, None] * K + rk[None, :]
    at_b = b + rk[:, None] * N + rn[None, :] if ROWS else b + rk[:, None] + rn[None, :] * K
    total = tl.zeros((BM, BN), ACC)
    for k in range(0, K, BK):
        x = tl.load(at_a, mask=rk[None, :] + k < K, other=OTHER)
        y = tl.load(at_b, mask=rk[:, None] + k < K, other=0.0)
        total = tl.dot(x, y, total)
        at_a += BK
        at_b += BK * N if ROWS else BK
    tl.store(c + rm[:, None] * N + rn[None, :], total)


SIZES = {"BM": 128, "BN": 128, "BK": 64, "OTHER": 0.0, "ACC": tl.float32, "ROWS": 0}


def compiled(constants: dict[str, Any], stages: int, divided: bool = True, target: str = "gfx950") -> Any:
    signature = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
    known = 6 if divided else 3
    facts = {
        (i,): [["tt.divisibility", 16]] + ([["tt.pointer_range", 32]] if i < 3 else []) for i in range(known)
    }
    source = weft.ASTSource(product, signature, {**SIZES, **constants}, facts)
    return weft.compile(source, target=f"hip:{target}", options={"num_stages": stages})


FP8 = ml_dtypes.float8_e4m3fn
EXACT: dict[str, tuple[Any, int, int, int]] = {
    "f16, two stages": (np.float16, 2, 128, 0),
    "f16, four stages": (np.float16, 4, 64, 0),
    "int8": (np.int8, 3, 128, 0),
    "f16, b by rows": (np.float16, 3, 128, 1),
    "int8, b by rows": (np.int8, 2, 128, 1),
    "fp8, b by rows": (FP8, 2, 128, 1),
}


SLOW = ("f16, four stages", "int8")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in EXACT])
def test_results_are_exact(name: str) -> None:
    kind, stages, height, rows = EXACT[name]
    rng = np.random.default_rng(0)
    total = np.int32 if kind == np.int8 else np.float32
    a, b = (rng.integers(-4, 5, (128, 208)).astype(kind) for _ in range(2))
    c = np.zeros((128, 128), total)
    with weft.target("sim:hip:gfx950"):
        program = product[(128 // height, 1)](
            a, np.ascontiguousarray(b.T) if rows else b, c, 128, 128, 208, height, 128, 64, 0.0,
            tl.int32 if kind == np.int8 else tl.float32, rows, num_stages=stages,
        )  # fmt: skip
    assert (c == a.astype(total) @ b.T.astype(total)).all()
    lane = program.asm["lane"]
    assert "copy_async" in lane and ("ds_read_tr" in lane) == bool(rows)


@pytest.mark.parametrize(("stages", "pending", "rows"), [pytest.param(2, 0, 0, marks=pytest.mark.slow), (3, 8, 1)])
def test_waits_leave_the_copies_of_later_iterations(stages: int, pending: int, rows: int) -> None:
    """One barrier an iteration, no store to LDS, and a wait that leaves 8 copies for each iteration ahead of this one.
    Rows of b are read 8 bytes at a time, and transposed. With a wait less, or the barrier, a wave reads what is not
    there."""
    text = compiled({"ROWS": rows}, stages).asm["amdgcn"]
    assert check(text) == []
    (function,) = parse(text).values()
    inside = [function.instructions[i] for i in sorted(min(function.loops, key=len))]
    assert sum(i.name == "buffer_load_dwordx4" and "lds" in i.words for i in inside) == 8
    assert sum(i.name == "s_barrier" for i in inside) == 1
    assert not any(i.name.startswith("ds_write") for i in inside)
    assert sum(i.name == "ds_read_b128" for i in inside) == (8 if rows else 16)
    assert sum(i.name == "ds_read_b64_tr_b16" for i in inside) == 16 * rows
    assert not any(i.name.startswith(("ds_read_u", "ds_bpermute", "v_perm")) for i in inside)
    assert [i.text for i in inside if "vmcnt" in i.text] == [f"s_waitcnt vmcnt({pending}) lgkmcnt(0)"]
    arguments = struct.pack("<3Q3i", 1 << 20, 1 << 21, 1 << 22, 128, 128, 208).ljust(64, b"\0")
    assert run(function, text, arguments, 4) == []
    of_copies = [w for w in weakened(function) if w.what.startswith("vmcnt") and not faults(w.kernel)]
    assert of_copies and run(of_copies[0].kernel, text, arguments, 4) and run(of_copies[1].kernel, text, arguments, 4)
    assert any(run(changed, text, arguments, 4) for changed in without_barriers(function))


THROUGH_REGISTERS: dict[str, tuple[dict[str, Any], bool, str]] = {
    "another number beyond K": ({"OTHER": 1.0}, True, "its value where the mask is false is not 0"),
    "rows that begin anywhere": ({}, False, "a lane has 2 bytes in a row, and copies 16"),
    "a narrow tile": ({"BM": 16, "BK": 32}, True, "it has fewer than 16 bytes for each thread"),
}


@pytest.mark.parametrize("name", THROUGH_REGISTERS)
def test_what_cannot_be_copied_goes_through_registers(name: str) -> None:
    constants, divided, why = THROUGH_REGISTERS[name]
    kernel = compiled(constants, 3, divided=divided)
    assert " lds" not in kernel.asm["amdgcn"]
    (remark,) = [str(r) for r in kernel.remarks if ": pipelined: " in str(r)]
    assert "2 stages of 3 asked for, as registers hold one iteration's loads" in remark and why in remark


def test_words_are_not_copied_one_by_one() -> None:
    """Copies of gfx942 take 4 bytes of a lane, where a load takes 16."""
    assert not re.search(r"\blds\b", compiled({}, 2, target="gfx942").asm["amdgcn"].partition(".amdgpu_metadata")[0])
