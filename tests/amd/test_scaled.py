"""`tl.dot_scaled` on gfx950 and gfx1250 by their instructions, elsewhere without; `mfma_scaled` and `wmma_scaled`."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from weft import gluon
from weft.base import CompilationError, LayoutError, Unsupported
from weft.gluon import language as gl

FP8 = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
FORMATS = ("e4m3", "e5m2", "e2m1")
TARGETS = {"gfx950": "mfma", "gfx1250": "wmma"}


@weft.jit
def _scaled(
    a, sa, b, sb, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, FA: tl.constexpr, FB: tl.constexpr,
    HA: tl.constexpr, HB: tl.constexpr, PACKED: tl.constexpr,
):  # type: ignore[no-untyped-def]  # fmt: skip
    PA: tl.constexpr = 2 if FA == "e2m1" else 1
    PB: tl.constexpr = 2 if FB == "e2m1" and PACKED else 1
    PN: tl.constexpr = 1 if PACKED else 2
    m, n, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
    ka, kb, columns = tl.arange(0, K // PA), tl.arange(0, K // PB), tl.arange(0, N // PN)
    x = tl.load(a + m[:, None] * (K // PA) + ka[None, :])
    y = tl.load(b + kb[:, None] * (N // PN) + columns[None, :])
    s = tl.load(sa + m[:, None] * (K // 32) + ks[None, :]) if HA else None
    t = tl.load(sb + n[:, None] * (K // 32) + ks[None, :]) if HB else None
    acc = tl.full((M, N), 2, tl.float32)
    tl.store(c + m[:, None] * N + n[None, :], tl.dot_scaled(x, s, FA, y, t, FB, acc, rhs_k_pack=PACKED))


def _side(rng: np.random.Generator, kind: str, rows: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """An operand as it lies in memory, [row or column, k], and its values."""
    if kind == "e2m1":
        codes = rng.integers(0, 16, (rows, depth)).astype(np.uint8)
        return codes[:, ::2] | codes[:, 1::2] << 4, codes.view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    types = {**FP8, "bf16": ml_dtypes.bfloat16, "fp16": np.float16}
    x = rng.integers(-4, 5, (rows, depth)).astype(np.float32).astype(types[kind])
    return x, x.astype(np.float64)


def _factors(scales: np.ndarray) -> np.ndarray:
    return np.repeat(np.where(scales == 255, np.nan, 2.0 ** (scales.astype(float) - 127)), 32, axis=1)


def _run(
    target: str, formats: tuple[str, str], shape: tuple[int, int, int], have: str = "ab", warps: int = 4,
    packed: bool = True, wrong: bool = False,
) -> Any:  # fmt: skip
    """The kernel, once its results are those of the formula."""
    (m, n, k), rng = shape, np.random.default_rng(0)
    (a, left), (b, right) = (_side(rng, f, rows, k) for f, rows in zip(formats, (m, n), strict=True))
    sa, sb = (rng.integers(125, 130, (rows, k // 32)).astype(np.uint8) for rows in (m, n))
    if wrong:
        sb[3, 1] = 255
    if not packed:
        codes = np.stack([b & 15, b >> 4], axis=2).reshape(n, k).T
        b = np.ascontiguousarray((codes[:, ::2] | codes[:, 1::2] << 4).T)
    c = np.zeros((m, n), np.float32)
    with weft.target(f"sim:hip:{target}"):
        arguments = a, sa, np.ascontiguousarray(b.T), sb, c, m, n, k, *formats, "a" in have, "b" in have, packed
        made = _scaled[(1,)](*arguments, num_warps=warps)
    if "a" in have:
        left = left * _factors(sa)
    if "b" in have:
        right = right * _factors(sb)
    np.testing.assert_array_equal(c, (2 + left @ right.T).astype(np.float32))
    return made


def _instructions(made: Any) -> list[str]:
    return re.findall(r"isa=((?:mfma|wmma)[\w.]*)", made.asm["lane"])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("left", [pytest.param(f, marks=() if f == "e2m1" else pytest.mark.slow) for f in FORMATS])
def test_every_pair_of_formats(target: str, left: str) -> None:
    names = {**dict.fromkeys(FORMATS, "e2m1"), "e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}
    for right in FORMATS:
        instructions = _instructions(_run(target, (left, right), (32, 64, 128)))
        assert instructions and all(f".f8f6f4.{names[left]}.{names[right]}" in x for x in instructions)
        assert all(x.startswith(f"{TARGETS[target]}.scale") for x in instructions)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("have", ["a", "b", ""])
def test_a_scale_that_is_missing_is_1(target: str, have: str) -> None:
    assert ".scale." in _instructions(_run(target, ("e5m2", "e2m1"), (32, 32, 128), have))[0]
    plain = _instructions(_run(target, ("e4m3", "e5m2"), (64, 64, 128), have))
    assert (".scale." in plain[0]) == bool(have), "without any it is a product of fp8"


@pytest.mark.parametrize("target", TARGETS)
def test_255_is_no_number(target: str) -> None:
    assert ".scale." in _instructions(_run(target, ("e4m3", "e4m3"), (16, 16, 128), wrong=True))[0]


@pytest.mark.parametrize(
    ("target", "formats", "shape", "packed"),
    [
        ("gfx950", ("e4m3", "bf16"), (32, 32, 64), True),
        ("gfx950", ("fp16", "e2m1"), (32, 32, 64), True),
        ("gfx950", ("e4m3", "e2m1"), (32, 32, 64), False),
        ("gfx950", ("e4m3", "e4m3"), (16, 32, 64), True),  # 16 x 16 takes 128 along K
        ("gfx1250", ("e4m3", "e4m3"), (32, 32, 64), True),
        ("gfx942", ("e5m2", "e2m1"), (32, 32, 64), True),
        ("gfx1201", ("e5m2", "e2m1"), (32, 32, 64), True),
    ],
)
def test_what_no_instruction_does_is_taken_apart(
    target: str, formats: tuple[str, str], shape: tuple[int, int, int], packed: bool
) -> None:
    have = "b" if formats[0] == "fp16" else "a" if formats[1] == "bf16" else "ab"
    instructions = _instructions(_run(target, formats, shape, have, packed=packed))
    assert instructions and not [x for x in instructions if ".scale." in x]


OF_TRITON = {
    ("gfx950", "e4m3", "e2m1"): (
        16,
        "#ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [32, 32, 64], isTransposed = true}>",
        "#ttg.linear<{register = [[0, 2], [0, 4], [64, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1]], "
        "warp = [[0, 0], [32, 0]], block = []}>",
    ),
    ("gfx1250", "e4m3", "e2m1"): (
        32,
        "#ttg.amd_wmma<{version = 3, isTranspose = true, warpsPerCTA = [2, 2], instrShape = [16, 16, 128]}>",
        "#ttg.amd_wmma<{version = 3, isTranspose = true, warpsPerCTA = [2, 2], instrShape = [16, 16, 64]}>",
        "#ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [32, 0], [64, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], "
        "[0, 0]], warp = [[0, 0], [16, 0]], block = []}>",
    ),
}
"""Of a product of 128 x 128 x 256: how many instructions a warp has by Triton 3.6.0, and layouts of its layout IR."""


@pytest.mark.parametrize(("target", "left", "right"), OF_TRITON)
def test_layouts_and_counts_as_in_triton(target: str, left: str, right: str) -> None:
    count, *layouts = OF_TRITON[target, left, right]
    types = {"a": "*fp8e4nv", "sa": "*u8", "b": "*u8", "sb": "*u8", "c": "*fp32"}
    constants = {"M": 128, "N": 128, "K": 256, "FA": left, "FB": right, "HA": True, "HB": True, "PACKED": True}
    made = weft.compile(weft.ASTSource(_scaled, types, constants), f"hip:{target}")
    assert not [x for x in layouts if x not in made.asm["ttgir"]]
    assert len(re.findall(r"v_(?:mfma|wmma)_scale_f32_\w+_f8f6f4", made.asm["amdgcn"])) == count
    product = next(line for line in made.asm["ttgir"].splitlines() if "tt.dot_scaled" in line)
    assert product.count("kWidth = 16") == 2 and "lhs = e4m3 rhs = e2m1" in product


@weft.jit
def _along(a, sa, b, sb, c, K, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    m, n, k, ks = tl.arange(0, 64), tl.arange(0, 64), tl.arange(0, BK), tl.arange(0, BK // 32)
    acc = tl.zeros((64, 64), tl.float32)
    for at in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (at + k)[None, :])
        y = tl.load(b + (at + k)[:, None] * 64 + n[None, :])
        s = tl.load(sa + m[:, None] * (K // 32) + (at // 32 + ks)[None, :])
        t = tl.load(sb + n[:, None] * (K // 32) + (at // 32 + ks)[None, :])
        acc += tl.dot_scaled(x, s, "e4m3", y, t, "e4m3")
    tl.store(c + m[:, None] * 64 + n[None, :], acc)


@pytest.mark.parametrize("target", TARGETS)
def test_operands_and_scales_are_loaded_ahead(target: str) -> None:
    rng, k = np.random.default_rng(1), 512
    (a, left), (b, right) = (_side(rng, "e4m3", 64, k) for _ in range(2))
    sa, sb = (rng.integers(125, 130, (64, k // 32)).astype(np.uint8) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    with weft.target(f"sim:hip:{target}"):
        made = _along[(1,)](a, sa, np.ascontiguousarray(b.T), sb, c, k, 128)
    np.testing.assert_array_equal(c, ((left * _factors(sa)) @ (right * _factors(sb)).T).astype(np.float32))
    pipelined = next(str(r) for r in made.remarks if "pipelined: 2 stages" in str(r))
    assert all(tile in pipelined for tile in ("64x128xf8E4M3FN", "128x64xf8E4M3FN", "64x4xi8"))


# -- Gluon ---------------------------------------------------------------------------------------------------------


@gluon.jit
def _multiplied(
    a, sa, b, sb, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, FA: gl.constexpr, FB: gl.constexpr,
    LEFT: gl.constexpr, RIGHT: gl.constexpr, TILE: gl.constexpr, LOADED: gl.constexpr, multiply: gl.constexpr,
    scales: gl.constexpr, HAVE: gl.constexpr,
):  # fmt: skip
    KA: gl.constexpr = K // 2 if FA == "e2m1" else K
    KB: gl.constexpr = K // 2 if FB == "e2m1" else K
    m, n = gl.arange(0, M, layout=gl.SliceLayout(1, LOADED)), gl.arange(0, N, layout=gl.SliceLayout(0, LOADED))
    ka, kb = gl.arange(0, KA, layout=gl.SliceLayout(0, LOADED)), gl.arange(0, KB, layout=gl.SliceLayout(1, LOADED))
    x = gl.convert_layout(gl.load(a + m[:, None] * KA + ka[None, :]), LEFT)
    y = gl.convert_layout(gl.load(b + kb[:, None] * N + n[None, :]), RIGHT)
    LS: gl.constexpr = scales(LEFT, [M, K // 32])
    RS: gl.constexpr = scales(RIGHT, [N, K // 32])
    ms, ks = gl.arange(0, M, layout=gl.SliceLayout(1, LS)), gl.arange(0, K // 32, layout=gl.SliceLayout(0, LS))
    ns, kt = gl.arange(0, N, layout=gl.SliceLayout(1, RS)), gl.arange(0, K // 32, layout=gl.SliceLayout(0, RS))
    s = gl.load(sa + ms[:, None] * (K // 32) + ks[None, :])
    t = gl.load(sb + ns[:, None] * (K // 32) + kt[None, :])
    acc = gl.full((M, N), 3, gl.float32, layout=TILE)
    if HAVE == "ab":
        total = multiply(x, s, FA, y, t, FB, acc)
    elif HAVE == "a":
        total = multiply(x, s, FA, y, None, FB, acc)
    else:
        total = multiply(x, 128, FA, y, t, FB, acc)
    rows, columns = gl.arange(0, M, layout=gl.SliceLayout(1, TILE)), gl.arange(0, N, layout=gl.SliceLayout(0, TILE))
    gl.store(c + rows[:, None] * N + columns[None, :], total)


def _layouts(target: str, formats: tuple[str, str], warps: list[int], small: bool = False) -> tuple[Any, ...]:
    """The layouts of both operands and the result, that of loads, what multiplies, what lays out scales."""
    if target == "gfx950":
        tile: Any = gl.amd.AMDMFMALayout(4, [16, 16, 128] if small else [32, 32, 64], True, warps)
        parents, lanes, made = (tile, tile), 64, gl.amd.cdna4
        of = made.mfma_scaled, made.get_mfma_scale_layout
    else:
        tile = gl.amd.AMDWMMALayout(3, True, warps, [16, 16, 128])
        packed = gl.amd.AMDWMMALayout(3, True, warps, [16, 16, 64])
        parents, lanes = tuple(packed if f == "e2m1" else tile for f in formats), 32
        of = gl.amd.gfx1250.wmma_scaled, gl.amd.gfx1250.get_wmma_scale_layout
    left, right = (gl.DotOperandLayout(i, parent, 16) for i, parent in enumerate(parents))
    return left, right, tile, gl.BlockedLayout([1, 4], [lanes // 8, 8], [4, 1], [1, 0]), *of


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("formats", "have", "warps", "small"),
    [
        pytest.param(("e4m3", "e5m2"), "ab", [2, 2], False, marks=pytest.mark.slow),
        (("e2m1", "e4m3"), "a", [1, 4], True),
        pytest.param(("e2m1", "e2m1"), "b", [4, 1], False, marks=pytest.mark.slow),
    ],
)
def test_gluon(target: str, formats: tuple[str, str], have: str, warps: list[int], small: bool) -> None:
    (m, n, k), rng = (128, 64, 256), np.random.default_rng(0)
    (a, left), (b, right) = (_side(rng, f, rows, k) for f, rows in zip(formats, (m, n), strict=True))
    sa, sb = (rng.integers(125, 130, (rows, k // 32)).astype(np.uint8) for rows in (m, n))
    c = np.zeros((m, n), np.float32)
    with weft.target(f"sim:hip:{target}"):
        arguments = a, sa, np.ascontiguousarray(b.T), sb, c, m, n, k, *formats
        made = _multiplied[(1,)](*arguments, *_layouts(target, formats, warps, small), have)
    left = left * (_factors(sa) if "a" in have else 2)
    right = right * (_factors(sb) if "b" in have else 1)
    np.testing.assert_array_equal(c, (3 + left @ right.T).astype(np.float32))
    assert {x.split(".")[1] for x in _instructions(made)} == {"scale"}


def _compiled(target: str, formats: tuple[str, str], change: dict[str, Any], on: str = "") -> Any:
    names = "LEFT RIGHT TILE LOADED multiply scales".split()
    constants = {
        "M": 128, "N": 64, "K": 256, "FA": formats[0], "FB": formats[1], "HAVE": "ab",
        **dict(zip(names, _layouts(target, formats, [2, 2]), strict=True)), **change,
    }  # fmt: skip
    kinds = {"e4m3": "*fp8e4nv", "e5m2": "*fp8e5", "e2m1": "*u8", "e3m2": "*u8"}
    types = {"a": kinds[formats[0]], "sa": "*u8", "b": kinds[formats[1]], "sb": "*u8", "c": "*fp32"}
    return weft.compile(weft.ASTSource(_multiplied, types, constants), on or f"hip:{target}")


@pytest.mark.parametrize("target", TARGETS)
def test_gluon_kernels_are_compiled(target: str) -> None:
    text = _compiled(target, ("e4m3", "e2m1"), {}).asm["amdgcn"]
    assert f"v_{TARGETS[target]}_scale_f32_" in text and ("cbsz:4" in text or "MATRIX_FMT_FP4" in text)


def test_what_gluon_refuses() -> None:
    tile = gl.amd.AMDMFMALayout(4, [32, 32, 64], True, [4, 1])
    short = gl.amd.AMDWMMALayout(3, True, [2, 2], [16, 16, 64])
    with pytest.raises(LayoutError, match=r"mfma_scaled: `a` in e4m3 must be in DotOperandLayout\(0, .*\[2, 2\]\), 16"):
        _compiled("gfx950", ("e4m3", "e4m3"), {"LEFT": gl.DotOperandLayout(0, tile, 16)})
    with pytest.raises(LayoutError, match=r"wmma_scaled: the layout of `acc` must have version 3 and instr_shape"):
        _compiled("gfx1250", ("e4m3", "e4m3"), {"TILE": short})
    with pytest.raises(LayoutError, match=r"wmma_scaled: `b` in e2m1 must be in .*\[16, 16, 64\]"):
        change = {"RIGHT": _layouts("gfx1250", ("e4m3", "e4m3"), [2, 2])[1]}
        _compiled("gfx1250", ("e4m3", "e2m1"), change)
    with pytest.raises(CompilationError, match=r"`a_format` must be one of e2m1, e4m3, e5m2, got 'e3m2'"):
        _compiled("gfx950", ("e3m2", "e4m3"), {})
    with pytest.raises(LayoutError, match="lanes hold other elements than those of its 64 x 32 tile"):
        parent = _layouts("gfx950", ("e4m3", "e4m3"), [2, 2])[2]
        _compiled("gfx950", ("e4m3", "e4m3"), {"RIGHT": gl.DotOperandLayout(1, parent, 8)})
    with pytest.raises(Unsupported, match=r"with scales by one instruction \(mfma_scale_f32, wmma_scale_f32\) is not"):
        _compiled("gfx950", ("e4m3", "e4m3"), {}, on="hip:gfx942")
    with pytest.raises(Unsupported, match=r"amd.mfma_scaled, which is for hip:gfx950, is not supported on .*cuda:90"):
        layouts = dict.fromkeys(("LEFT", "RIGHT", "TILE", "LOADED"), gl.BlockedLayout([1, 1], [4, 8], [4, 1], [1, 0]))
        _compiled("gfx950", ("e4m3", "e4m3"), {**layouts, "scales": _any_layout}, on="cuda:90")


@gluon.constexpr_function
def _any_layout(layout, shape):  # type: ignore[no-untyped-def]
    return gl.BlockedLayout([1, 1], [4, 8], [4, 1], [1, 0])
