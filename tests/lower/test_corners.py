"""What operations ask for beside their operands: rounding, NaN, hints for caches; simulated, and as PTX."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def corners(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, cache_modifier=".cg")
    b = tl.load(y + i, eviction_policy="evict_first")
    c = tl.load(x + i + n, volatile=True)
    tl.store(out + i, tl.clamp(a, b, c, propagate_nan=tl.PropagateNan.ALL), cache_modifier=".cs")
    tl.store(out + i + n, tl.div_rn(a, b) + tl.sqrt_rn(a))
    tl.store(out + i + 2 * n, a.to(tl.float16, fp_downcast_rounding="rtz").to(tl.float32))
    tl.store(out + i + 3 * n, a / b)


def test_simulated_as_on_the_cpu() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 256)).astype(np.float32)
    x[[3, 7]], x[9], x[11] = np.nan, np.inf, 70000.0
    expected, found = np.zeros((2, 512), np.float32)
    corners[(1,)](x, y, expected, 128, BLOCK=128)
    with weft.target("sim:cuda:80"):
        corners[(1,)](x, y, found, 128, BLOCK=128)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "text",
    [
        "ld.global.cg.b32",
        "ld.global.L1::evict_first.L2::cache_hint.b32",
        "ld.volatile.global.b32",
        "st.global.cs.b32",
        "div.rn.f32",
        "sqrt.rn.f32",
        "cvt.rz.f16.f32",
        "rcp.approx.ftz.f32",
    ],
)
def test_ptx(text: str) -> None:
    source = weft.ASTSource(corners, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 128})
    assert text in weft.compile(source, target="cuda:80").asm["ptx"]
