"""The test kernels in `sim:hip:gfx942`, 64 lanes, and `sim:hip:gfx1201`, 32: they agree with NumPy as on the CPU, and
their lane programs have AMD's instructions.

pytest tests/amd/test_simulated.py -m "slow or not slow"      # all of them; otherwise a part, another one for each
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from kernels import load_cases
from kernels.running import run_case
from weft.machines.amd import ROWS

CASES = load_cases("weft")
TARGETS = ("gfx942", "gfx1201")
ADDRESSES = "sum_lists"
"""Takes addresses of the host as numbers, which lie outside of every array of the simulator."""
OF = 9
"""One case of so many is in the part for each target."""
ALWAYS = ("matmul_f16", "matmul_int8", "sum_both_axes", "running_sums", "gathers", "histograms", "transpose_copy_f16")
DEAR = re.compile(
    "flash_attention_64|matmul_bf16|batched_matmul|matmul_f64|spin_lock|matmul_f32_wide|pointer_matmul|descriptor_matmul"
)


def _cases() -> Iterator[Any]:
    for target in TARGETS:
        for name in CASES:
            if name != ADDRESSES:
                part = zlib.crc32(f"{name} {target}".encode()) % OF == 0 and not DEAR.search(name)
                yield pytest.param(name, target, marks=() if part or name in ALWAYS else pytest.mark.slow)


def lane(name: str, target: str) -> str:
    """The lane program of a case."""
    case = CASES[name]
    types, values, attributes = case.signature(case.make_inputs())
    source = weft.ASTSource(case.kernel, types, values, attributes)
    return str(weft.compile(source, f"sim:hip:{target}", case.options).asm["lane"])


@pytest.mark.parametrize(("name", "target"), list(_cases()))
@pytest.mark.thinned(3)
def test_kernels_agree_with_numpy(name: str, target: str) -> None:
    with weft.target(f"sim:hip:{target}"):
        run_case(CASES[name])


@pytest.mark.parametrize(
    ("name", "target", "wanted"),
    [
        ("matmul_f16", "gfx942", r"mfma\.f32\.16x16x16f16\.transposed"),
        ("matmul_bf16", "gfx90a", r"mfma\.f32\.16x16x16bf16\.1k"),
        ("matmul_int8", "gfx942", r"mfma\.i32\.\d+x\d+x\d+\.i8"),
        ("matmul_f32", "gfx942", r"mfma\.f32\.\d+x\d+x[24]f32"),
        ("matmul_f32_tf32", "gfx942", r"mfma\.f32\.\d+x\d+x[48]\.xf32"),
        ("matmul_f16_acc_f16", "gfx90a", r"mfma\.f32\.\d+x\d+x\d+f16"),
        ("matmul_f64", "gfx90a", r"mfma\.f64\.16x16x4f64"),
        ("matmul_f16", "gfx950", r"mfma\.f32\.\d+x\d+x(16|32)\.f16"),
        ("matmul_fp8_e4m3", "gfx950", r"mfma\.f32\.\d+x\d+x(16|32)\.fp8\.fp8"),
        ("matmul_f16", "gfx1100", r"wmma\.f32\.16x16x16\.f16\.v8f32\.v16f16"),
        ("matmul_int8", "gfx1151", r"wmma\.i32\.16x16x16\.iu8"),
        ("matmul_f16", "gfx1201", r"wmma\.f32\.16x16x16\.f16\.v8f32\.v8f16"),
        ("matmul_fp8_e5m2", "gfx1200", r"wmma\.f32\.16x16x16\.bf8\.bf8"),
        ("flash_attention_128", "gfx942", r"mfma\.f32\.\d+x\d+"),
        ("flash_attention_128", "gfx1201", r"wmma\.f32\.16x16x16"),
        ("matmul_f16", "gfx1250", r"wmma\.f32\.16x16x32\.f16"),
        ("softmax", "gfx942", r"dpp\.row_ror\.8"),
        ("softmax", "gfx1201", r"dpp\.row_xmask\.8"),
        ("softmax", "gfx950", r"permlane32\.swap"),
        ("running_sums", "gfx1100", r"permlane16"),
    ],
)
@pytest.mark.thinned(2)
def test_programs_have_amd_instructions(name: str, target: str, wanted: str) -> None:
    text = lane(name, target)
    assert re.search(rf"isa={wanted}", text)
    assert "shuffle" not in text, "every exchange is one of AMD's instructions"
    if re.match("mfma|wmma", wanted) and "attention" not in name:
        assert "math.fma" not in text, "no product is multiplied lane by lane"


@weft.jit
def _product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):  # type: ignore[no-untyped-def]
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + i[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + j[None, :])
    tl.store(c + i[:, None] * N + j[None, :], tl.dot(x, y, out_dtype=c.dtype.element_ty))


ALWAYS = ("hip:gfx90a", "hip:gfx950", "hip:gfx1100", "hip:gfx1201")
"""Of those whose products have the same shapes, one."""


@pytest.mark.parametrize(
    "target", [pytest.param(r.name, marks=() if r.name in ALWAYS else pytest.mark.slow) for r in ROWS]
)
def test_products_of_every_processor(target: str) -> None:
    """Tiles of a warp and of several, one that is smaller than all warps, and each type of elements."""
    rng = np.random.default_rng(0)
    halves = [(np.float16, np.float32), (ml_dtypes.bfloat16, np.float32)]
    for elem, total in (*halves, (np.int8, np.int32), (np.float32, np.float32), (np.float16, np.float16)):
        for m, n, k, warps in ((64, 32, 32, 4), (16, 16, 16, 8)):
            a, b = (rng.integers(-4, 5, shape).astype(elem) for shape in ((m, k), (k, n)))
            c = np.zeros((m, n), total)
            with weft.target(f"sim:{target}"):
                _product[(1,)](a, b, c, m, n, k, num_warps=warps)
            wide = np.int64 if elem == np.int8 else np.float64
            np.testing.assert_array_equal(c, (a.astype(wide) @ b.astype(wide)).astype(total))


@weft.jit
def _chained(a, b, c, out, M: tl.constexpr, K: tl.constexpr):  # type: ignore[no-untyped-def]
    i, k = tl.arange(0, M), tl.arange(0, K)
    at = i[:, None] * K + k[None, :]
    square = k[:, None] * K + k[None, :]
    x = tl.dot(tl.load(a + at), tl.load(b + square))
    tl.store(out + at, tl.dot(x.to(tl.float16), tl.load(c + square)))


@pytest.mark.parametrize("target", [row.name for row in ROWS])
@pytest.mark.parametrize(
    ("rows", "warps"),
    [(128, 4), pytest.param(64, 4, marks=pytest.mark.slow), pytest.param(32, 2, marks=pytest.mark.slow)],
)
def test_a_result_is_the_next_operand(target: str, rows: int, warps: int) -> None:
    """Not through shared memory: a lane has its elements, but on gfx11, where both halves of a wave have operands."""
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((rows, 64), (64, 64), (64, 64)))
    out = np.zeros((rows, 64), np.float32)
    with weft.target(f"sim:{target}"):
        made = _chained[(1,)](a, b, c, out, rows, 64, num_warps=warps)
    wide = [x.astype(np.float64) for x in (a, b, c)]
    np.testing.assert_array_equal(out, wide[0] @ wide[1] @ wide[2])
    conversions = [str(remark) for remark in made.remarks if "of arith.truncf" in str(remark)]
    assert not [text for text in conversions if "by shared" in text]
    exchanges = {name for name in re.findall(r"isa=([\w.]+)", made.asm["lane"]) if not re.match("mfma|wmma", name)}
    assert exchanges == ({"permlanex16"} if target in ("hip:gfx1100", "hip:gfx1151") else set())


@weft.jit
def _total(x, out, N: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, N))))


@pytest.mark.parametrize(("target", "exchanges"), [("gfx942", 7), ("gfx950", 7), ("gfx1201", 5)])
def test_a_report_counts_exchanges(target: str, exchanges: int) -> None:
    """A sum over all lanes of a wave: one for each bit of the lane's number, two for 4 without row_xmask."""
    x, out = np.ones(64, np.float32), np.zeros(1, np.float32)
    made = _total[(1,)](x, out, 64, num_warps=1, target=f"sim:hip:{target}")
    assert out[0] == 64 and made.report.to_dict()["total"]["shuffles"] == exchanges
