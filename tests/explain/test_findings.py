"""Every rule finds what it is for in a kernel that was made for it, and nothing of the kind in the cured one.

The pairs are those of docs/findings.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
import weft.language as tl
from weft import gluon, like
from weft.explain import Explanation
from weft.explain.findings import RULES
from weft.gluon import language as gl

from .kernels import matmul, softmax, transpose
from .test_limits import turned

PAGE = Path(__file__).resolve().parents[2] / "docs" / "findings.md"
F32, F16 = like((4096, 4096), "fp32"), like((4096, 4096), "fp16")


def rows(stride: int) -> Explanation:
    return transpose.explain(F16, F16, stride, SIZE=64, grid=(64, 64), target="cuda:90")


def strided(step: int) -> Explanation:
    return every.explain(F32, F32, STEP=step, BLOCK=1024, grid=(1024,), target="cuda:90")


@weft.jit
def every(x, out, STEP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i * STEP))


@weft.jit
def masked_sum(x, out, n, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        if MASKED:
            total += tl.load(x + tl.program_id(0) * n + start + i, mask=start + i < n, other=0.0)
        else:
            total += tl.load(x + tl.program_id(0) * n + start + i)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@weft.jit
def scaled(x, by, out, n, BLOCK: tl.constexpr, BEFORE: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    factor = tl.load(by + i)
    for k in range(n):
        if not BEFORE:
            factor = tl.load(by + i)
        total += tl.load(x + k * BLOCK + i) * factor
    tl.store(out + i, total)


@weft.jit
def added(x, total, BLOCK: tl.constexpr, APART: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + i), 0)
    tl.atomic_add(total + (tl.program_id(0) if APART else 0), part)


@weft.jit
def far(x, out, WIDE: tl.constexpr):
    i = tl.arange(0, 1024)
    tl.store(out + i, tl.load(x + (i.to(tl.int64) if WIDE else i) * 4194304))


@weft.jit
def normed(x, out, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INSIDE: tl.constexpr):
    """A transposed tile that is added up in a loop: by turning each one, or by turning the sum."""
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    if INSIDE:
        total = tl.zeros((COLUMNS, ROWS), tl.float32)
        for k in range(n):
            total += tl.trans(tl.load(x + k * ROWS * COLUMNS + i[:, None] * COLUMNS + j[None, :]))
            tl.store(out + k * ROWS * COLUMNS + j[:, None] * ROWS + i[None, :], total)
    else:
        turned = tl.zeros((ROWS, COLUMNS), tl.float32)
        for k in range(n):
            turned += tl.load(x + k * ROWS * COLUMNS + i[:, None] * COLUMNS + j[None, :])
        tl.store(out + j[:, None] * ROWS + i[None, :], tl.trans(turned))


@gluon.jit
def authored(x, out, EACH: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([EACH], [32], [4], [0])
    i = gl.program_id(0) * 4096 + gl.arange(0, 4096, layout)
    gl.store(out + i, gl.load(x + i))


@weft.jit
def scaled_product(a, b, by, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, INSIDE: tl.constexpr):
    """Weights that go through a table on their way to the product, or are loaded as they are."""
    i, j, k = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :], tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a + i * K + start + k[None, :])
        at = b + (start + k[:, None]) * BN + j
        right = tl.load(by + tl.load(at)).to(tl.float16) if INSIDE else tl.load(by + (start + k[:, None]) * BN + j)
        total = tl.dot(left, right, total)
    tl.store(c + i * BN + j, total)


def product(dtype: str, size: int = 4096, **blocks: int) -> Explanation:
    blocks = {"BM": 128, "BN": 128, "BK": 64, **blocks}
    a = like((size, size), dtype)
    grid = (size // blocks["BM"], size // blocks["BN"])
    return matmul.explain(a, a, like((size, size), "fp16"), size, size, size, **blocks, grid=grid, target="cuda:90")


@weft.jit
def halved(x, out, BLOCK: tl.constexpr, SINGLE: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i)
    tl.store(out + i, value * 0.5 if SINGLE else (value.to(tl.float64) * 0.5).to(tl.float32))


@weft.jit
def copied(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


@weft.jit
def looked_up(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * BLOCK
    tl.store(out + at + i, tl.sort(tl.load(x + at + i)))


def copy(programs: int, **more: Any) -> Explanation:
    return copied.explain(F32, F32, BLOCK=4096, grid=(programs,), target="cuda:90", **more)


def sums(programs: int, size: int) -> Explanation:
    return masked_sum.explain(F32, F32, size, BLOCK=1024, MASKED=False, grid=(programs,), target="cuda:90")


Maker = Callable[[], Explanation]
PAIRS: dict[str, tuple[Maker, Maker]] = {
    "narrow-access": (lambda: rows(4097), lambda: rows(4112)),
    "uncoalesced-access": (lambda: strided(16), lambda: strided(1)),
    "mask-always-true": (
        lambda: masked_sum.explain(F32, F32, 4096, BLOCK=1024, MASKED=True, grid=(64,), target="cuda:90"),
        lambda: masked_sum.explain(F32, F32, 4096, BLOCK=1024, MASKED=False, grid=(64,), target="cuda:90"),
    ),
    "idle-lanes": (
        lambda: softmax.explain(F32, F32, 4096, 520, BLOCK=1024, grid=(64,), target="cuda:90"),
        lambda: softmax.explain(F32, F32, 4096, 1000, BLOCK=1024, grid=(64,), target="cuda:90"),
    ),
    "repeated-load": (
        lambda: scaled.explain(F32, F32, F32, 64, BLOCK=1024, BEFORE=False, grid=(8,), target="cuda:90"),
        lambda: scaled.explain(F32, F32, F32, 64, BLOCK=1024, BEFORE=True, grid=(8,), target="cuda:90"),
    ),
    "colliding-atomics": (
        lambda: added.explain(F32, F32, BLOCK=1024, APART=False, grid=(64,), target="cuda:90"),
        lambda: added.explain(F32, F32, BLOCK=1024, APART=True, grid=(64,), target="cuda:90"),
    ),
    "wrapped-offset": (
        lambda: far.explain(F32, F32, WIDE=False, grid=(1,), target="cuda:90"),
        lambda: far.explain(F32, F32, WIDE=True, grid=(1,), target="cuda:90"),
    ),
    "conversion-in-loop": (
        lambda: normed.explain(F32, F32, 8, ROWS=64, COLUMNS=64, INSIDE=True, grid=(1,), target="cuda:90"),
        lambda: normed.explain(F32, F32, 8, ROWS=64, COLUMNS=64, INSIDE=False, grid=(1,), target="cuda:90"),
    ),
    "bank-conflicts": (
        lambda: turned.explain(F32, F32, 1, grid=(1,), target="cuda:90"),
        lambda: turned.explain(F32, F32, 32, grid=(1,), target="cuda:90"),
    ),
    "author-layout": (
        lambda: authored.explain(F32, F32, EACH=16, grid=(64,), target="cuda:90"),
        lambda: authored.explain(F32, F32, EACH=16, grid=(64,), target="cuda:90", relayout=True),
    ),
    "not-pipelined": (
        lambda: scaled_product.explain(
            F16, like(64, "i32"), F16, F32, 1024, BM=64, BN=64, BK=64, INSIDE=True, grid=(1,), target="cuda:90"
        ),
        lambda: scaled_product.explain(
            F16, like(64, "i32"), F16, F32, 1024, BM=64, BN=64, BK=64, INSIDE=False, grid=(1,), target="cuda:90"
        ),
    ),
    "fewer-stages": (
        lambda: product("fp16", BM=128, BN=256, BK=128, num_stages=4, num_warps=8),
        lambda: product("fp16", BM=128, BN=256, BK=64, num_stages=3, num_warps=8),
    ),
    "no-matrix-unit": (
        lambda: product("fp32", size=256, BM=64, BN=64, BK=32, default_dot_input_precision="ieee"),
        lambda: product("fp32", size=256, BM=64, BN=64, BK=32, default_dot_input_precision="tf32"),
    ),
    "weaker-instruction": (
        lambda: product("fp16", size=256, BM=32, BN=64, BK=64),
        lambda: product("fp16", size=256, BM=64, BN=64, BK=64),
    ),
    "double-precision": (
        lambda: halved.explain(F32, F32, BLOCK=1024, SINGLE=False, grid=(64,), target="cuda:90"),
        lambda: halved.explain(F32, F32, BLOCK=1024, SINGLE=True, grid=(64,), target="cuda:90"),
    ),
    "replicated-work": (
        lambda: copied.explain(F32, F32, BLOCK=64, grid=(64,), target="cuda:90"),
        lambda: copied.explain(F32, F32, BLOCK=64, grid=(64,), target="cuda:90", num_warps=1),
    ),
    "half-empty-wave": (lambda: copy(132 * 9), lambda: copy(132 * 4 * 16)),
    "small-grid": (lambda: sums(8, 1 << 20), lambda: sums(1024, 1 << 13)),
    "spills": (
        lambda: looked_up.explain(F32, F32, 1, BLOCK=8192, grid=(1,), target="cuda:90", num_warps=1),
        lambda: looked_up.explain(F32, F32, 1, BLOCK=1024, grid=(1,), target="cuda:90", num_warps=4),
    ),
    "low-occupancy": (
        lambda: copied.explain(F32, F32, BLOCK=8192, grid=(4096,), target="cuda:90", num_warps=1),
        lambda: copied.explain(F32, F32, BLOCK=8192, grid=(4096,), target="cuda:90", num_warps=8),
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::weft.base.OffsetOverflowWarning")
@pytest.mark.parametrize("code", PAIRS)
def test_found_and_cured(code: str) -> None:
    failing, cured = (make() for make in PAIRS[code])
    found = [f for f in failing.findings if f.code == code]
    assert found and all(f.what and f.why and f.cure for f in found), [f.code for f in failing.findings]
    assert [f for f in cured.findings if f.code == code] == []


GAINS = (
    "bank-conflicts", "double-precision", "half-empty-wave", "low-occupancy", "narrow-access", "no-matrix-unit",
    "repeated-load", "replicated-work", "small-grid", "uncoalesced-access",
)  # fmt: skip
"""Rules whose cures bring a known time."""


@pytest.mark.parametrize("code", GAINS)
def test_what_a_cure_brings(code: str) -> None:
    e = PAIRS[code][0]()
    gains = [f.microseconds for f in e.findings]
    (gain, *_) = [f.microseconds for f in e.findings if f.code == code]
    assert gain is not None and e.time is not None and 0 <= gain < e.time.microseconds
    assert gains == sorted(gains, key=lambda us: -(us or 0))


def test_every_rule_has_a_pair_and_a_section() -> None:
    assert RULES.keys() == PAIRS.keys()
    sections = re.findall(r"^## ([\w-]+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(sections) == sorted(RULES)


def test_a_good_kernel_has_none() -> None:
    e = softmax.explain(F32, F32, 4096, 1024, BLOCK=1024, grid=(4096 * 16,), target="cuda:90")
    assert e.findings == ()


def test_the_whole_text_of_a_finding() -> None:
    first, *_ = rows(4097).findings
    assert (first.code, first.span.line if first.span else 0) == ("narrow-access", 25)
    assert first.what == "a load of 2 bytes at a time, of 16"
    assert first.why == "`stride` is not known to be a multiple of 8 (`stride` = 4097, and 4097 % 8 = 1)"
    assert first.cure == "pad it to 4104, and mask what is more"


def test_a_loop_that_waits_for_narrow_loads_is_cured_by_wider_ones() -> None:
    a = like((1024, 1024), "fp16")
    e = matmul.explain(
        a, a, a, 1023, 1023, 1023, BM=64, BN=64, BK=32, grid=(16, 16), target="cuda:90", num_warps=4
    )  # rows of 1,023: a thread has one element of two bytes in a row
    waits = [f for f in e.findings if f.code == "not-pipelined"]
    assert [f.cure for f in waits] == ["pad it to 1024, and mask what is more"] * 2
