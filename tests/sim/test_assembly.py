"""Inline assembly in the simulator: each instruction against a plain definition, and what has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from weft.base import Unsupported

TARGET = "sim:cuda:90"
N = 64
RNG = np.random.default_rng(0)
WORDS = RNG.integers(0, 2**32, (3, N), dtype=np.uint32)
FLOATS = RNG.uniform(-4, 4, (3, N)).astype(np.float32)
LANE = np.arange(N) % 32


@weft.jit
def words(X, Y, W, OUT, TEXT: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y, w = tl.load(X + i), tl.load(Y + i), tl.load(W + i)
    tl.store(OUT + i, tl.inline_asm_elementwise(TEXT, "=r,r,r,r", [x, y, w], dtype=tl.uint32, is_pure=True, pack=1))


@weft.jit
def floats(X, Y, W, OUT, TEXT: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y, w = tl.load(X + i), tl.load(Y + i), tl.load(W + i)
    tl.store(OUT + i, tl.inline_asm_elementwise(TEXT, "=f,f,f,f", [x, y, w], dtype=tl.float32, is_pure=True, pack=1))


def run_words(text: str, given: np.ndarray = WORDS, num_warps: int = 2) -> np.ndarray:
    out = np.zeros(N, np.uint32)
    words[(1,)](*given, out, TEXT=text, N=N, target=TARGET, num_warps=num_warps)
    return out


def big(x: np.ndarray) -> np.ndarray:
    return x.astype(object)


def signed(x: np.ndarray) -> np.ndarray:
    return x.view(np.int32)


def half_words(function: Callable[..., np.ndarray], dtype: Any, *x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(function(*(v.view(dtype) for v in x)).astype(dtype)).view(np.uint32)


def swapped(x: np.ndarray) -> np.ndarray:
    return x.byteswap()


INTEGERS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], Any]] = {
    "add.u32 $0, $1, $2;": lambda x, y, w: x + y,
    "sub.s32 $0, $1, -5;": lambda x, y, w: x + np.uint32(5),
    "add.sat.s32 $0, $1, $2;": lambda x, y, w: np.clip(signed(x).astype(int) + signed(y), -(2**31), 2**31 - 1),
    "mul.lo.u32 $0, $1, $2;": lambda x, y, w: x * y,
    "mul.hi.u32 $0, $1, $2;": lambda x, y, w: big(x) * big(y) >> 32,
    "mul.hi.s32 $0, $1, $2;": lambda x, y, w: big(signed(x)) * big(signed(y)) >> 32,
    "mad.lo.u32 $0, $1, $2, $3;": lambda x, y, w: x * y + w,
    "{ .reg .b64 t; mul.wide.u32 t, $1, $2; shr.u64 t, t, 8; cvt.u32.u64 $0, t; }": lambda x, y, w: (
        big(x) * big(y) >> 8
    ),
    "{ .reg .b64 t; mov.b64 t, {$1, $2}; mov.b64 {_, $0}, t; }": lambda x, y, w: y,
    "{ .reg .b16 a, b; mov.b32 {a, b}, $1; mov.b32 $0, {b, a}; }": lambda x, y, w: x << 16 | x >> 16,
    "min.s32 $0, $1, $2;": lambda x, y, w: np.minimum(signed(x), signed(y)),
    "max.u32 $0, $1, $2;": lambda x, y, w: np.maximum(x, y),
    "div.s32 $0, $1, 7;": lambda x, y, w: np.trunc(signed(x) / 7).astype(int),
    "rem.u32 $0, $1, $2;": lambda x, y, w: x % y,
    "and.b32 $0, $1, 0xff;": lambda x, y, w: x & 255,
    "not.b32 $0, $1;": lambda x, y, w: ~x,
    "neg.s32 $0, $1;": lambda x, y, w: -signed(x),
    "shl.b32 $0, $1, 33;": lambda x, y, w: x * 0,
    "shr.s32 $0, $1, 40;": lambda x, y, w: signed(x) >> 31,
    "shr.u32 $0, $1, 3;": lambda x, y, w: x >> 3,
    "shf.l.wrap.b32 $0, $1, $2, 5;": lambda x, y, w: (big(y) << 32 | big(x)) << 5 >> 32,
    "shf.r.clamp.b32 $0, $1, $2, 40;": lambda x, y, w: y,
    "prmt.b32 $0, $1, $2, 0x0123;": lambda x, y, w: swapped(x),
    "prmt.b32 $0, $1, $2, 0x7777;": lambda x, y, w: (y >> 24) * np.uint32(0x01010101),
    "prmt.b32 $0, $1, $2, 0xbbbb;": lambda x, y, w: np.where(signed(x) < 0, 0xFFFFFFFF, 0),
    "lop3.b32 $0, $1, $2, $3, 0x96;": lambda x, y, w: x ^ y ^ w,
    "lop3.b32 $0, $1, $2, $3, 0xe8;": lambda x, y, w: x & y | y & w | x & w,
    "bfe.u32 $0, $1, 4, 9;": lambda x, y, w: x >> 4 & 511,
    "bfe.s32 $0, $1, 4, 8;": lambda x, y, w: (x >> 4).astype(np.uint8).view(np.int8).astype(int),
    "bfi.b32 $0, $1, $2, 8, 8;": lambda x, y, w: y & ~np.uint32(0xFF00) | (x & 255) << 8,
    "popc.b32 $0, $1;": lambda x, y, w: np.bitwise_count(x),
    "{ .reg .u32 t; shr.u32 t, $1, 20; clz.b32 $0, t; }": lambda x, y, w: (
        32 - np.array([int(v >> 20).bit_length() for v in x])
    ),
    "brev.b32 $0, $1;": lambda x, y, w: [int(f"{int(v):032b}"[::-1], 2) for v in x],
    "dp4a.u32.s32 $0, $1, $2, $3;": lambda x, y, w: (
        (x.view(np.uint8).reshape(-1, 4).astype(int) * y.view(np.int8).reshape(-1, 4)).sum(1) + signed(w)
    ),
    "{ .reg .pred p; setp.lt.s32 p, $1, $2; selp.b32 $0, $1, $2, p; }": lambda x, y, w: np.minimum(
        signed(x), signed(y)
    ),
    "{ .reg .pred p<2>; setp.hi.u32 p0|p1, $1, $2; mov.b32 $0, 7; @p1 mov.b32 $0, $3; }": lambda x, y, w: np.where(
        x > y, 7, w
    ),
    "{ .reg .pred p, q; setp.ge.u32 p, $1, $2; setp.eq.and.s32 q, $3, $3, !p; selp.u32 $0, 1, 0, q; }": (
        lambda x, y, w: x < y
    ),
    "set.lt.u32.u32 $0, $1, $2;": lambda x, y, w: np.where(x < y, 0xFFFFFFFF, 0),
    "{ .reg .b32 t; mov.b32 t, $1; { .reg .b32 t; mov.b32 t, 1; } mov.b32 $0, t; }": lambda x, y, w: x,
    "add.f16x2 $0, $1, $2;": lambda x, y, w: half_words(np.add, np.float16, x, y),
    "mul.bf16x2 $0, $1, $2; // a comment": lambda x, y, w: half_words(
        lambda a, b: a.astype(np.float32) * b.astype(np.float32), ml_dtypes.bfloat16, x, y
    ),
    "mov.u32 $0, %laneid;": lambda x, y, w: LANE,
    "mov.u32 $0, %tid.x;": lambda x, y, w: np.arange(N),
    "shfl.sync.bfly.b32 $0, $1, 3, 0x1f, -1;": lambda x, y, w: x[np.arange(N) ^ 3],
    "shfl.sync.idx.b32 $0, $1, 5, 0x1f, 0xffffffff;": lambda x, y, w: x[np.arange(N) // 32 * 32 + 5],
    "shfl.sync.up.b32 $0, $1, 1, 0, -1;": lambda x, y, w: x[np.arange(N) - (LANE > 0)],
    "shfl.sync.down.b32 $0, $1, 2, 0x181f, -1;": lambda x, y, w: x[np.arange(N) + 2 * (LANE % 8 < 6)],
    "redux.sync.max.u32 $0, $1, -1;": lambda x, y, w: np.repeat(x.reshape(-1, 32).max(1), 32),
    "redux.sync.add.s32 $0, $1, -1;": lambda x, y, w: np.repeat(x.reshape(-1, 32).sum(1, dtype=np.uint32), 32),
    "{ .reg .pred p; setp.lt.s32 p, $1, 0; vote.sync.ballot.b32 $0, p, -1; }": lambda x, y, w: np.repeat(
        ((signed(x) < 0).reshape(-1, 32) << np.arange(32, dtype=object)).sum(1), 32
    ),
}


@pytest.mark.parametrize("text", INTEGERS)
def test_words(text: str) -> None:
    wanted = [int(v) & 0xFFFFFFFF for v in INTEGERS[text](*WORDS)]
    assert run_words(text).tolist() == wanted


WIDE = FLOATS.astype(np.float64)
FUNCTIONS: dict[str, np.ndarray] = {
    "add.f32 $0, $1, $2;": FLOATS[0] + FLOATS[1],
    "fma.rn.f32 $0, $1, $2, $3;": (WIDE[0] * WIDE[1] + WIDE[2]).astype(np.float32),
    "mul.sat.f32 $0, $1, $2;": np.clip(FLOATS[0] * FLOATS[1], 0, 1),
    "sub.ftz.f32 $0, $1, 0f3F800000;": FLOATS[0] - 1,
    "abs.f32 $0, $1;": np.abs(FLOATS[0]),
    "ex2.approx.ftz.f32 $0, $1;": np.exp2(WIDE[0]),
    "tanh.approx.f32 $0, $1;": np.tanh(WIDE[0]),
    "rcp.approx.ftz.f32 $0, $1;": 1 / WIDE[0],
    "{ .reg .f32 t; abs.f32 t, $1; rsqrt.approx.f32 $0, t; }": 1 / np.sqrt(np.abs(WIDE[0])),
    "min.NaN.f32 $0, $1, 0f7FC00000;": np.full(N, np.nan),
    "max.f32 $0, $1, 0f7FC00000;": FLOATS[0],
    "cvt.rzi.f32.f32 $0, $1;": np.trunc(FLOATS[0]),
    "cvt.rpi.f32.f32 $0, $1;": np.ceil(FLOATS[0]),
    "{ .reg .s32 t; cvt.rni.s32.f32 t, $1; cvt.rn.f32.s32 $0, t; }": np.rint(FLOATS[0]),
    "{ .reg .b16 t; cvt.rn.f16.f32 t, $1; cvt.f32.f16 $0, t; }": FLOATS[0].astype(np.float16),
    "{ .reg .b16 t; cvt.rz.bf16.f32 t, $1; cvt.f32.bf16 $0, t; }": (FLOATS[0].view(np.uint32) & 0xFFFF0000).view(
        np.float32
    ),
    "{ .reg .b32 t; cvt.rna.tf32.f32 t, $1; mov.b32 $0, t; }": (
        FLOATS[0].view(np.uint32) + np.uint32(0x1000) & np.uint32(0xFFFFE000)
    ).view(np.float32),
    "{ .reg .b16 t, u, v; .reg .b32 h; cvt.rn.satfinite.e4m3x2.f32 t, $1, $2;"
    " cvt.rn.f16x2.e4m3x2 h, t; mov.b32 {u, v}, h; cvt.f32.f16 $0, v; }": FLOATS[0].astype(ml_dtypes.float8_e4m3fn),
    "{ .reg .b32 t; .reg .b16 u, v; cvt.rn.bf16x2.f32 t, $1, $2; mov.b32 {u, v}, t; cvt.f32.bf16 $0, u; }": (
        FLOATS[1].astype(ml_dtypes.bfloat16)
    ),
    "{ .reg .pred p; setp.gtu.f32 p, $1, $2; selp.f32 $0, $1, $2, p; }": np.maximum(FLOATS[0], FLOATS[1]),
    "copysign.f32 $0, $1, $2;": np.copysign(FLOATS[1], FLOATS[0]),
}


@pytest.mark.parametrize("text", FUNCTIONS)
def test_floats(text: str) -> None:
    out = np.zeros(N, np.float32)
    floats[(1,)](*FLOATS, out, TEXT=text, N=N, target=TARGET, num_warps=2)
    np.testing.assert_allclose(out, FUNCTIONS[text].astype(np.float64), rtol=1e-6)


def test_directions_of_rounding() -> None:
    out = np.zeros((2, N), np.float32)
    for i, way in enumerate(("rm", "rp")):
        floats[(1,)](*FLOATS, out[i], TEXT=f"mul.{way}.f32 $0, $1, $2;", N=N, target=TARGET)
    exact = WIDE[0] * WIDE[1]
    assert (out[0] <= exact).all() and (out[1] >= exact).all()
    assert ((out[1] == out[0]) | (out[1] == np.nextafter(out[0], np.float32(np.inf)))).all()


@weft.jit
def packed(X, Y, OUT, N: tl.constexpr):
    i = tl.arange(0, N)
    low, high = tl.inline_asm_elementwise(
        "and.b32 $0, $2, 0x0f0f0f0f; { .reg .b32 t; shr.u32 t, $2, 4; and.b32 $1, t, 0x0f0f0f0f; }",
        "=r,=r,r", [tl.load(X + i)], dtype=(tl.int8, tl.int8), is_pure=True, pack=4,
    )  # fmt: skip
    twice = tl.inline_asm_elementwise(
        "add.f16x2 $0, $1, $1;", "=r,r", [tl.load(Y + i)], dtype=tl.float16, is_pure=True, pack=2
    )
    tl.store(OUT + i, low)
    tl.store(OUT + N + i, high)
    tl.store(OUT + 2 * N + i, twice.to(tl.int8))


@pytest.mark.parametrize("size", [8, 256, 1024])
def test_elements_in_words(size: int) -> None:
    x = RNG.integers(0, 256, size).astype(np.uint8)
    y = RNG.integers(-20, 20, size).astype(np.float16)
    out = np.zeros((3, size), np.int8)
    packed[(1,)](x, y, out, N=size, target=TARGET)
    np.testing.assert_array_equal(out, np.stack([x & 15, x >> 4, 2 * y]).astype(np.int8))


@weft.jit
def clocked(OUT):
    before = tl.extra.cuda.globaltimer()
    tl.store(OUT, tl.extra.cuda.num_threads() + tl.extra.cuda.num_warps())
    tl.store(OUT + 1, (tl.extra.cuda.globaltimer() >= before).to(tl.int32))
    tl.store(OUT + 2, tl.extra.cuda.smid())


@weft.jit
def waited(X, OUT, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.extra.cuda.gdc_wait()
    x = tl.load(X + i)
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(OUT + i, x)


def test_what_kernels_ask_of_the_gpu() -> None:
    out = np.full(3, -1, np.int32)
    clocked[(1,)](out, target=TARGET, num_warps=8)
    assert out.tolist() == [264, 1, 0]
    copied = np.zeros(N, np.float32)
    waited[(1,)](FLOATS[0], copied, N=N, target=TARGET)
    np.testing.assert_array_equal(copied, FLOATS[0])
    assert "griddepcontrol.wait" in waited.warmup(FLOATS[0], copied, N=N, grid=(1,), target="cuda:90").asm["ptx"]
    assert "%globaltimer" in clocked.warmup(out, grid=(1,), target="cuda:80").asm["ptx"]
    with pytest.raises(Unsupported, match=r"gdc_wait is not supported on target cuda:80"):
        waited[(1,)](FLOATS[0], copied, N=N, target="sim:cuda:80")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ld.shared.b32 $0, [$1];", "memory in the space .shared"),
        ("ld.global.v2.b32 $0, [$1];", "`ld.global.v2.b32` with 1 registers"),
        ("ld.global.b32 $0, [$1+t];", "`t`, which is declared nowhere"),
        ("LOOP: bra LOOP;", "the label `LOOP`"),
        ("wmma.load.a $0, $1;", "wmma.load.a"),
        ("mov.b32 $0, t;", "`t`, which is declared nowhere"),
        ("{ .reg .b32 t; mov.b32 $0, t; }", "`t`, which is read before it is written"),
        ("add.u32 $0, $1, ^;", "is no PTX"),
        ("mov.u32 $0, %envreg3;", "the register %envreg3"),
    ],
)
def test_what_has_no_meaning_here(text: str, found: str) -> None:
    with pytest.raises(Unsupported) as error:
        run_words(text)
    assert found in str(error.value) and "test_assembly.py:" in str(error.value)


@weft.jit
def half_loaded(X, OUT, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(X + i, mask=i < 32)
    y = tl.inline_asm_elementwise("add.u32 $0, $1, 1;", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(OUT + i, y, mask=i < 32)


def test_elements_that_a_mask_left_out_stay_out() -> None:
    """What is undefined goes in and out element by element: here nothing of it is stored."""
    x, out = np.arange(32, dtype=np.int32), np.zeros(64, np.int32)
    half_loaded[(1,)](x, out, N=64, target=TARGET)
    assert out.tolist() == [*range(1, 33), *[0] * 32]


@weft.jit
def across_warps(X, OUT, N: tl.constexpr):
    i = tl.arange(0, N)
    thread = tl.inline_asm_elementwise("mov.u32 $0, %tid.x;", "=r", [], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(OUT + i, tl.load(X + i))
    tl.inline_asm_elementwise("bar.sync 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
    if thread >= 0:
        tl.store(OUT + N + i, tl.load(OUT + (i ^ 32)))


def test_a_barrier_and_a_branch_on_a_thread() -> None:
    x, out = np.arange(N, dtype=np.int32), np.zeros(2 * N, np.int32)
    report = across_warps[(1,)](x, out, N=N, target=TARGET, num_warps=2)
    assert out[N:].tolist() == (np.arange(N) ^ 32).tolist() and report["barriers"] >= 2


@weft.jit
def with_halves(X, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(X + i, tl.inline_asm_elementwise(
        "cvt.rn.satfinite.e4m3x2.f32 $0, $1, $1;", "=h,f", [tl.load(X + i)], dtype=tl.int16, is_pure=True, pack=1
    ).to(tl.float32))  # fmt: skip


def test_the_version_of_ptx_that_assembly_needs() -> None:
    ptx = with_halves.warmup(FLOATS[0], N=N, grid=(1,), target="cuda:90").asm["ptx"]
    assert ".version 8.1" in ptx


@weft.jit
def moved(X, Y, N: tl.constexpr):
    i = 2 * tl.arange(0, N)
    tl.inline_asm_elementwise(
        "{ .reg .s32 a, b; .reg .pred p; setp.lt.s32 p, $3, 100; ld.acquire.gpu.global.v2.s32 {a, b}, [$1]; "
        "@p st.global.v2.b32 [$2], {b, a}; ld.global.s8 $0, [$1+4]; }",
        "=r,l,l,r",
        [X + i, Y + i, i],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


def test_loads_and_stores_of_global_memory() -> None:
    x, y = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    moved[(1,)](x, y, N=64, target=TARGET, num_warps=2)
    assert y.tolist() == [i ^ 1 if i < 100 else 0 for i in range(128)]
    with pytest.raises(weft.WeftError, match="reads 8 bytes outside of every array, .*: right after the end of `X`"):
        moved[(1,)](x[:64], y, N=64, target=TARGET)


@weft.jit
def counted(X, OLD, TEXT: tl.constexpr, T: tl.constexpr):
    i = tl.arange(0, 64)
    v = (i * 7 % 64).to(T)
    old = tl.inline_asm_elementwise(TEXT, "=r,l,r", [X + i // 32, v], dtype=T, is_pure=False, pack=1)
    tl.store(OLD + i, old)


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("atom.add.release.gpu.global.u32 $0, [$1], $2;", np.int32, lambda a: a.sum()),
        ("atom.global.max.s32 $0, [$1], $2;", np.int32, lambda a: a.max()),
        ("atom.global.or.b32 $0, [$1], $2;", np.int32, np.bitwise_or.reduce),
        ("atom.global.add.f32 $0, [$1], $2;", np.float32, lambda a: a.sum()),
        ("atom.global.cas.b32 $0, [$1], 0, 9; red.global.min.u32 [$1], $2;", np.int32, lambda a: a.min()),
    ],
)
def test_atomics_of_global_memory(text: str, kind: type, found: Callable[[np.ndarray], Any]) -> None:
    x, old = np.zeros(2, kind), np.zeros(64, kind)
    counted[(1,)](x, old, TEXT=text, T=tl.float32 if kind is np.float32 else tl.int32, target=TARGET, num_warps=2)
    given = (np.arange(64) * 7 % 64).astype(kind).reshape(2, 32)
    assert x.tolist() == [found(row) for row in given]
    assert old[0] == 0 == old[32]
