"""Operands of 8 bits that are widened behind LDS, in parts, and how e4m3 becomes f16 without an instruction for it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl

from .assembly import parse


@weft.jit
def product(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, COLUMNS: tl.constexpr):
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    left = a + m[:, None] * K + k
    right = b + k[:, None] + n * K if COLUMNS else b + k[:, None] * BN + n
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += BK
        right += BK if COLUMNS else BK * BN
    tl.store(c + m[:, None] * BN + n, total)


def compiled(target: str, columns: int) -> Any:
    signature = {"a": "*fp8e4nv", "b": "*fp8e4nv", "c": "*fp32", "K": "i32"}
    facts = {(i,): [["tt.divisibility", 16]] + ([["tt.pointer_range", 32]] if i < 3 else []) for i in range(4)}
    constants = {"BM": 128, "BN": 128, "BK": 128, "COLUMNS": columns}
    return weft.compile(weft.ASTSource(product, signature, constants, facts), target=f"hip:{target}")


@pytest.mark.parametrize("columns", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_bytes_go_through_memory(columns: int) -> None:
    """384 bytes of a lane in LDS, where f16 took 768; a fourth or third wave fits, and Triton 3.6.0's loop spills."""
    kernel = compiled("gfx90a", columns)
    assert kernel.n_spills == 0 and kernel.n_regs <= 168
    (function,) = parse(kernel.asm["amdgcn"]).values()
    inside = [function.instructions[i].name for i in sorted(min(function.loops, key=len))]
    words = {"b32": 1, "b64": 2, "b128": 4}
    moved = sum(words[n.rpartition("_")[2]] * (1 + ("2" in n.split("_")[1])) for n in inside if n.startswith("ds_"))
    assert moved == 96
    assert sum(n.startswith("v_pk_fma_f16") for n in inside) == 128
    loop = kernel.asm["lane"].partition("= for ")[2]
    assert "f16x4 = arith.extf" in loop and "f16x128 = arith.extf" not in loop


@pytest.mark.parametrize(("target", "columns"), [("gfx90a", 0), ("gfx90a", 1), ("gfx1100", 0), ("gfx942", 1)])
def test_results_are_exact(target: str, columns: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(ml_dtypes.float8_e4m3fn) for shape in ((64, 192), (192, 64)))
    c = np.zeros((64, 64), np.float32)
    with weft.target(f"sim:hip:{target}"):
        product[(1,)](a, np.ascontiguousarray(b.T) if columns else b, c, 192, 64, 64, 64, columns)
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()


def test_the_formula_is_exact() -> None:
    """Of `_from_e4m3`, step by step on every code. The emulator executes what is emitted ("floats of 8 bits")."""
    codes = np.arange(256, dtype=np.uint16)
    small = (codes << 8 >> 1 & 0x3F80 | codes << 8 & 0x8000).view(np.float16)
    with np.errstate(all="ignore"):
        value, large = small * np.float16(256), small * np.float16(256 * 140)
        widened = large * np.float16(0) + value
    expected = codes.astype(np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float16)
    np.testing.assert_array_equal(widened, expected)
    assert (np.signbit(widened) == np.signbit(expected))[~np.isnan(expected)].all()
