"""Products of every type, with a batch and without, for targets with different instructions, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from weft.ir import parse_module
from weft.ir.lane import LaneProgram
from weft.lower import lower
from weft.machines import machine_of
from weft.passes import tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline
from weft.sim import run
from weft.targets.nvidia import INSTRUCTIONS

TYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "i8": np.int8,
    "i32": np.int32, "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip


def loaded(name: str, shape: tuple[int, ...], elem: str) -> str:
    n, flat = int(np.prod(shape)), "x".join(map(str, shape))
    return f"""
    %{name}_r = tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32>
    %{name}_s = tt.splat %{name}_ptr : !tt.ptr<{elem}> -> tensor<{n}x!tt.ptr<{elem}>>
    %{name}_p = tt.addptr %{name}_s, %{name}_r : tensor<{n}x!tt.ptr<{elem}>>, tensor<{n}xi32>
    %{name}_v = tt.load %{name}_p : tensor<{n}x!tt.ptr<{elem}>>
    %{name} = tt.reshape %{name}_v : tensor<{n}x{elem}> -> tensor<{flat}x{elem}>"""


def program_of(shape: tuple[int, ...], depth: int, left: str, right: str, out: str, precision: str, target: str, warps: int = 4) -> LaneProgram:  # fmt: skip  # noqa: E501
    *batch, m, n = shape
    size = int(np.prod(shape))
    a, b, c = ("x".join(map(str, s)) for s in ((*batch, m, depth), (*batch, depth, n), shape))
    how = f", inputPrecision = {precision}" if precision else ""
    arguments = ", ".join(
        f"%{n}_ptr: !tt.ptr<{e}> {{tt.divisibility = 16 : i32}}" for n, e in (("a", left), ("b", right), ("c", out))
    )
    text = f"""module {{
  tt.func public @product({arguments}) {{{loaded("a", (*batch, m, depth), left)}{loaded("b", (*batch, depth, n), right)}
    %zero = arith.constant dense<{"0" if out[0] == "i" else "0.0"}> : tensor<{c}x{out}>
    %d = tt.dot %a, %b, %zero{how} : tensor<{a}x{left}> * tensor<{b}x{right}> -> tensor<{c}x{out}>
    %f = tt.reshape %d : tensor<{c}x{out}> -> tensor<{size}x{out}>
    %r = tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>
    %s = tt.splat %c_ptr : !tt.ptr<{out}> -> tensor<{size}x!tt.ptr<{out}>>
    %p = tt.addptr %s, %r : tensor<{size}x!tt.ptr<{out}>>, tensor<{size}xi32>
    tt.store %p, %f : tensor<{size}x!tt.ptr<{out}>>
    tt.return
  }}
}}"""
    return lower(gpu_pipeline(tile_pipeline(parse_module(text, "product.ttir")), machine_of(target), warps))


def instructions(program: LaneProgram) -> set[str]:
    return {op.attrs["isa"] for op in program.body.walk() if op.name == "instruction" and "mma" in op.attrs["isa"]}


def multiplied(program: LaneProgram, shape: tuple[int, ...], depth: int, left: str, right: str, out: str) -> tuple[Any, Any]:  # fmt: skip  # noqa: E501
    """(what the program computes, the exact product)."""
    *batch, m, n = shape
    rng = np.random.default_rng(m + n + depth)

    def operand(size: tuple[int, ...], elem: str) -> Any:
        if elem == "f32" and left == "f32":
            return rng.standard_normal(size).astype(np.float32)
        return rng.integers(-4, 5, size).astype(np.float32).astype(TYPES[elem])

    a, b = operand((*batch, m, depth), left), operand((*batch, depth, n), right)
    found = np.zeros(shape, TYPES[out])
    run(program, 1, {"a_ptr": a, "b_ptr": b, "c_ptr": found})
    return found.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64)


CASES = [
    # left, right, result, target, what multiplies
    ("f16", "f16", "f32", "cuda:80", "mma.sync.m16n8k16.f32.f16.f16.f32"),
    ("f16", "f16", "f16", "cuda:80", "mma.sync.m16n8k16.f16.f16.f16.f16"),
    ("bf16", "bf16", "f32", "cuda:80", "mma.sync.m16n8k16.f32.bf16.bf16.f32"),
    ("i8", "i8", "i32", "cuda:80", "mma.sync.m16n8k32.s32.s8.s8.s32.satfinite"),
    ("f64", "f64", "f64", "cuda:80", "mma.sync.m8n8k4.f64.f64.f64.f64"),
    ("f64", "f64", "f64", "cuda:90", "mma.sync.m16n8k16.f64.f64.f64.f64"),
    ("f8E4M3FN", "f8E4M3FN", "f32", "cuda:80", "mma.sync.m16n8k16.f32.f16.f16.f32"),
    ("f8E5M2", "f8E4M3FN", "f32", "cuda:80", "mma.sync.m16n8k16.f32.f16.f16.f32"),
    ("f8E4M3FN", "f8E5M2", "f32", "cuda:90", "mma.sync.m16n8k32.f32.e4m3.e5m2.f32"),
    ("f8E5M2", "f8E5M2", "f32", "cuda:90", "mma.sync.m16n8k32.f32.e5m2.e5m2.f32"),
]


@pytest.mark.parametrize("shape", [(32, 32), (64, 16), (16, 128), (2, 32, 16), (8, 16, 16)])
@pytest.mark.parametrize(("left", "right", "out", "target", "isa"), CASES)
@pytest.mark.thinned(2)
def test_types(left: str, right: str, out: str, target: str, isa: str, shape: tuple[int, ...]) -> None:
    program = program_of(shape, 32, left, right, out, "", target)
    if target == "cuda:90" and shape[-2] % 64 == 0 and left != "f64":
        assert all(name.startswith("wgmma.") for name in instructions(program))
    else:
        assert instructions(program) == {isa}
    found, wanted = multiplied(program, shape, 32, left, right, out)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    ("precision", "error"), [("tf32", 3e-3), ("tf32x3", 3e-6), ("bf16x3", 2e-4), ("bf16x6", 3e-6), ("ieee", 2e-6)]
)
def test_precision(precision: str, error: float) -> None:
    program = program_of((64, 64), 64, "f32", "f32", "f32", precision, "cuda:80")
    assert bool(instructions(program)) == (precision != "ieee")
    found, wanted = multiplied(program, (64, 64), 64, "f32", "f32", "f32")
    wrong = np.abs(found - wanted).max() / np.abs(wanted).max()
    assert wrong < error
    if precision == "tf32":
        assert wrong > 1e-5  # it is not computed exactly after all


@pytest.mark.parametrize("shape", [(8, 8), (4, 64), (16, 4), (2, 4, 8)])
@pytest.mark.parametrize(("left", "out"), [("f16", "f32"), ("f16", "f16"), ("i8", "i32"), ("f64", "f64")])
@pytest.mark.thinned(2)
def test_too_small_for_an_instruction(shape: tuple[int, ...], left: str, out: str) -> None:
    program = program_of(shape, 16, left, left, out, "", "cuda:80")
    assert not instructions(program)
    found, wanted = multiplied(program, shape, 16, left, left, out)
    assert np.array_equal(found, wanted)


def test_short_sums() -> None:
    program = program_of((16, 8), 8, "f16", "f16", "f32", "", "cuda:80")
    assert instructions(program) == {"mma.sync.m16n8k8.f32.f16.f16.f32"}
    found, wanted = multiplied(program, (16, 8), 8, "f16", "f16", "f32")
    assert np.array_equal(found, wanted)


def test_an_infinity_stays_one_in_parts() -> None:
    program = program_of((16, 16), 16, "f32", "f32", "f32", "tf32x3", "cuda:80")
    a, b = np.ones((16, 16), np.float32), np.ones((16, 16), np.float32)
    a[3, 5] = np.inf
    found = np.zeros((16, 16), np.float32)
    run(program, 1, {"a_ptr": a, "b_ptr": b, "c_ptr": found})
    assert np.array_equal(found, a @ b)


@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("shape", [(64, 32), (128, 64), (64, 128), (256, 16)])
@pytest.mark.parametrize(
    ("left", "right", "out", "isa"),
    [
        ("f16", "f16", "f32", "f32.f16.f16"),
        ("f16", "f16", "f16", "f16.f16.f16"),
        ("bf16", "bf16", "f32", "f32.bf16.bf16"),
        ("i8", "i8", "i32", "s32.s8.s8"),
        ("f8E5M2", "f8E4M3FN", "f32", "f32.e5m2.e4m3"),
    ],
)
@pytest.mark.thinned(3)
def test_warp_groups(left: str, right: str, out: str, isa: str, shape: tuple[int, int], warps: int) -> None:
    program = program_of(shape, 64, left, right, out, "", "cuda:90", warps)
    found = [name for name in instructions(program) if name.startswith("wgmma.m64")]
    assert found
    assert all(isa in name for name in found)
    values, wanted = multiplied(program, shape, 64, left, right, out)
    assert np.array_equal(values, wanted)


def test_tf32_of_warp_groups() -> None:
    program = program_of((64, 64), 32, "f32", "f32", "f32", "tf32", "cuda:90")
    assert any("tf32" in name for name in instructions(program))
    found, wanted = multiplied(program, (64, 64), 32, "f32", "f32", "f32")
    assert np.abs(found - wanted).max() / np.abs(wanted).max() < 3e-3


@weft.jit
def added(a, b, c, N: tl.constexpr, LOADED: tl.constexpr):
    i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    total = tl.load(c + i) if LOADED else tl.zeros((16, 16), tl.int32)
    for k in range(N):
        total = tl.dot(tl.load(a + i + 256 * k), tl.load(b + i + 256 * k), total, out_dtype=tl.int32)
    tl.store(c + i, total)


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:80", "sim:cuda:90"])
@pytest.mark.parametrize(("iterations", "loaded"), [(1, False), (1, True), (4, True)])
def test_sums_of_int8_wrap_and_saturate_only_where_that_is_the_same(iterations: int, loaded: bool, target: str) -> None:
    a = np.full((iterations, 16, 16), -128, np.int8)
    c = np.full((16, 16), 2**31 - 1 - 16 * 128 * 128, np.int32)
    before = c.astype(np.int64) if loaded else np.zeros((16, 16), np.int64)
    made = added[(1,)](a, a, c, iterations, loaded, target=target)
    assert np.array_equal(c, (before + iterations * 16 * 128 * 128).astype(np.int32))
    if target != "cpu":
        assert (".satfinite.s32.s8.s8.s32" in made.asm["ptx"]) == (not loaded) and "mma.sync" in made.asm["ptx"]
    entry = INSTRUCTIONS["mma.sync.m16n8k16.s32.s8.s8.s32"]
    operands = [
        np.full((1, 32, o.count), v, d)
        for o, v, d in zip(entry.operands, (-128, -128, 2**31 - 1), (np.int8, np.int8, np.int32), strict=True)
    ]
    (wraps,), (stays,) = (INSTRUCTIONS[entry.name + end].semantics(*operands) for end in ("", ".satfinite"))
    assert (wraps == -(2**31) + 16 * 128 * 128 - 1).all() and (stays == 2**31 - 1).all()
