"""What threads of large blocks hold across barriers: made again, parked, or computed by some warps only."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from weft.backends.nvidia import emit
from weft.backends.nvidia.ptxas import assemble, find_tool
from weft.compiler import ASTSource, lane_program
from weft.ir.lane import LaneOp, LaneProgram

TYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}
TARGET = "sim:cuda:90"


@weft.jit
def softmax(x, out, n, B: tl.constexpr):
    row, i = tl.program_id(0).to(tl.int64) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(value - tl.max(value, 0))
    tl.store(out + row + i, (e / tl.sum(e, 0)).to(out.dtype.element_ty), mask=i < n)


@weft.jit
def rms_norm(x, out, n, B: tl.constexpr):
    """With a gain that is read behind the barrier: the row's own first elements."""
    row, i = tl.program_id(0).to(tl.int64) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / n + 1e-6)
    tl.store(out + row + i, (value * scale * tl.load(x + i, mask=i < n)).to(out.dtype.element_ty), mask=i < n)


@weft.jit
def log_softmax(x, out, n, B: tl.constexpr):
    row, i = tl.program_id(0).to(tl.int64) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=-float("inf")).to(tl.float32)
    z = value - tl.max(value, 0)
    tl.store(out + row + i, (z - tl.log(tl.sum(tl.exp(z), 0))).to(out.dtype.element_ty), mask=i < n)


@weft.jit
def centred(x, out, sums, n, B: tl.constexpr):
    """Three sums, a store of each program beside the row, and in place if `out` is `x`."""
    row, i = tl.program_id(0).to(tl.int64) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=0.0).to(tl.float32)
    d = tl.where(i < n, value - tl.sum(value, 0) / n, 0.0)
    variance = tl.sum(d * d, 0) / n
    tl.store(sums + tl.program_id(0), variance)
    tl.store(out + row + i, (d * tl.rsqrt(variance + 1e-5)).to(out.dtype.element_ty), mask=i < n)


@weft.jit
def several(x, out, n, B: tl.constexpr):
    """Five tiles of 32 halves in each thread are held: 80 words. Four elements of eight lie side by side."""
    i = tl.arange(0, B)
    j = i // 4 * 8 + i % 4
    a, b, c = tl.load(x + j), tl.load(x + n + j), tl.load(x + 2 * n + j)
    d, e = tl.load(x + 3 * n + j), tl.load(x + 4 * n + j)
    top = tl.max(tl.maximum(tl.maximum(a, b), tl.maximum(tl.maximum(c, d), e)), 0)
    tl.store(out + i, (a + b * 2 + c * 4 + d * 8 + e * 16 + top).to(tl.float32))


@weft.jit
def losses(x, out, n, B: tl.constexpr):
    """Of rows in pieces, each of which is reduced three times."""
    row, most, powers, total = tl.program_id(0).to(tl.int64) * n, -float("inf"), 0.0, 0.0
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        value = tl.load(x + row + i, mask=i < n, other=-float("inf")).to(tl.float32) * 0.5
        total += tl.sum(tl.where(i < n, value, 0.0))
        new = tl.maximum(most, tl.max(value))
        powers = powers * tl.exp(most - new) + tl.sum(tl.exp(value - new))
        most = new
    tl.store(out + tl.program_id(0), most + tl.log(powers) - total / n)


KERNELS = {"softmax": softmax, "rms_norm": rms_norm, "log_softmax": log_softmax, "centred": centred}


def program_of(name: str, kind: str, block: int, warps: int, aligned: bool) -> LaneProgram:
    kernel: Any = KERNELS[name]
    pointer = f"*{ {'f32': 'fp32', 'f16': 'fp16', 'bf16': 'bf16'}[kind] }"
    types = {
        "x": pointer,
        "out": pointer,
        **({"sums": "*fp32"} if name == "centred" else {}),
        "n": "i32",
        "B": "constexpr",
    }
    facts = {(k,): [["tt.divisibility", 16]] for k in range(len(types) - (1 if aligned else 2))}
    return lane_program(ASTSource(kernel, types, {"B": block}, facts), TARGET, {"num_warps": warps})


def named(program: LaneProgram, name: str, **attrs: object) -> list[LaneOp]:
    found = [op for op in program.body.walk() if op.name == name]
    return [op for op in found if all(op.attrs.get(k) == v for k, v in attrs.items())]


def parked_words(program: LaneProgram) -> int:
    """Words of a thread that have a place in shared memory."""
    buffers = [a.bytes for a in program.shared if a.what == "what registers do not hold"]
    return sum(buffers) // (4 * program.warps * program.lanes)


@pytest.mark.parametrize(
    ("name", "kind", "block", "warps"),
    [("rms_norm", "bf16", 16384, 16), ("rms_norm", "f32", 16384, 16), ("softmax", "bf16", 8192, 8)],
)
@pytest.mark.parametrize("aligned", [True, False])
def test_programs_with_registers_enough_stay_as_they_are(
    name: str, kind: str, block: int, warps: int, aligned: bool
) -> None:
    program = program_of(name, kind, block, warps, aligned)
    assert not named(program, "zero") and not named(program, "keep")
    assert not parked_words(program) and program.at_a_time == 0


def test_a_narrow_row_is_held_and_extended_again() -> None:
    """64 halves are 32 words: nothing is parked, and no part of them is extended but where it is used."""
    program = program_of("rms_norm", "bf16", 65536, 32, True)
    assert parked_words(program) == 0
    assert len(named(program, "zero")) == 1
    assert {op.result.count for op in named(program, "arith.extf") if op.operands[0].elem == "bf16"} == {8}


def test_halves_are_extended_again_by_one_instruction_each() -> None:
    """What is new to compilers are the distance and the mask, not each word."""
    program = program_of("rms_norm", "bf16", 65536, 32, True)
    [zero] = named(program, "zero")
    hidden = [op for op in program.body.walk() if zero.result in op.operands]
    assert [(op.name, op.result.count) for op in hidden] == 2 * [("arith.xori", 1)]


def test_a_wide_row_is_parked_and_its_places_are_taken_over() -> None:
    """Of 64 words a part has a place in shared memory; the exponentials take those of what they are made of."""
    program = program_of("softmax", "f32", 65536, 32, True)
    assert 24 <= parked_words(program) <= 40
    stores = named(program, "store", space="shared", vector=4)
    loads = [op for op in named(program, "load", space="shared", vector=4) if op.result.elem == "i32"]
    assert sum(op.operands[1].count for op in stores) == 2 * parked_words(program)
    assert sum(op.result.count for op in loads) == 2 * parked_words(program)
    assert program.shared_bytes <= 227 << 10


@weft.jit
def weighted(x, w, out, B: tl.constexpr):
    row, i = tl.program_id(0).to(tl.int64) * B, tl.arange(0, B)
    value = tl.load(x + row + i)
    tl.store(out + row + i, value * tl.rsqrt(tl.sum(value * value, 0)) * tl.load(w + i))


def weighted_rows() -> LaneProgram:
    types = {**dict.fromkeys(("x", "w", "out"), "*fp32"), "B": "constexpr"}
    facts = {(k,): [["tt.divisibility", 16]] for k in range(3)}
    return lane_program(ASTSource(weighted, types, {"B": 262144}, facts), TARGET, {"num_warps": 16})


def test_weights_are_asked_for_while_others_are_used() -> None:
    """What has registers is stored first, and they are taken by weights: the last come four parts before they are
    wanted."""
    ops = weighted_rows().body.ops
    last = max(k for k, op in enumerate(ops) if op.name == "barrier")
    order = [
        "out" if op.name == "store" else "w" if op.attrs["space"] == "global" else "x"
        for op in ops[last + 1 :]
        if op.attrs.get("space") == "global" or (op.name == "load" and op.result.elem == "i32")
    ]
    assert order.index("x") > order.index("out")
    assert order[len(order) - 1 - order[::-1].index("w") :].count("out") >= 4


def test_a_parked_row_leaves_the_cache_to_weights() -> None:
    """A softmax loads nothing that a cache could keep."""

    def hints(program: LaneProgram) -> set[tuple[str, str]]:
        ops = [op for op in program.body.walk() if op.name in ("load", "store") and op.attrs["space"] == "global"]
        return {(op.name, op.attrs.get("evict", "")) for op in ops}

    program = weighted_rows()
    assert parked_words(program)
    assert hints(program) == {("load", "no_allocate"), ("load", ""), ("store", "")}
    assert hints(program_of("softmax", "f32", 65536, 32, True)) == {("load", ""), ("store", "")}
    ptx = emit(program).code
    assert "ld.global.L1::no_allocate.v4.b32" in ptx and "createpolicy" not in ptx


def test_two_blocks_of_512_threads_are_asked_for() -> None:
    program = program_of("softmax", "bf16", 32768, 16, True)
    assert program.at_a_time == 2
    assert 2 * (program.shared_bytes + 1024) <= 228 << 10
    assert ".minnctapersm 2" in emit(program_of("softmax", "bf16", 32768, 16, True)).code


def test_sums_stay_in_front_of_branches() -> None:
    """LLVM would move the sum of a part behind the branches that follow, and hold all that is summed up until then."""
    lines = emit(program_of("softmax", "bf16", 65536, 32, False)).code.splitlines()
    started = [i for i, line in enumerate(lines) if "ex2.approx" in line]
    added = [i for i, line in enumerate(lines) if "\tadd.f32" in line or "\tadd.rn.f32" in line]
    between = [sum(a < i < b for i in added) for a, b in itertools.pairwise(started) if b - a > 20]
    assert len(between) >= 7 and min(between) >= 7


@pytest.mark.skipif(find_tool() is None, reason="there is no ptxas on this machine")
@pytest.mark.parametrize(
    ("name", "kind", "block", "warps", "aligned"),
    [
        ("softmax", "bf16", 65536, 32, False),
        ("softmax", "f32", 65536, 32, False),
        ("rms_norm", "bf16", 32768, 16, False),
        ("rms_norm", "f32", 65536, 32, True),
    ],
)
def test_nothing_is_spilled(name: str, kind: str, block: int, warps: int, aligned: bool) -> None:
    emitted = emit(program_of(name, kind, block, warps, aligned))
    made = assemble(emitted.code, emitted.processor)
    assert (made.spilled_bytes, made.registers <= 64) == (0, True)


def launched(name: str, kind: str, n: int, block: int, warps: int, rows: int = 2, change: Any = None) -> Any:
    """(what comes out, what should)"""
    x = (3 * np.random.default_rng(n).standard_normal((rows, n))).astype(TYPES[kind])
    if change is not None:
        change(x)
    wide = x.astype(np.float64)
    out, sums = np.full_like(x, 77), np.zeros(rows, np.float32)
    more = (sums,) if name == "centred" else ()
    KERNELS[name][(rows,)](x, out, *more, n, B=block, num_warps=warps, target=TARGET)
    with np.errstate(all="ignore"):
        if name == "rms_norm":
            return out.astype(np.float64), wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-6) * wide[0]
        if name == "centred":
            d = wide - wide.mean(1, keepdims=True)
            np.testing.assert_allclose(sums, (d**2).mean(1), rtol=1e-4)
            return out.astype(np.float64), d / np.sqrt((d**2).mean(1, keepdims=True) + 1e-5)
        z = wide - wide.max(1, keepdims=True)
        total = np.exp(z).sum(1, keepdims=True)
        return out.astype(np.float64), np.exp(z) / total if name == "softmax" else z - np.log(total)


ROWS = [(name, kind, n) for name in KERNELS for kind, n in (("bf16", 16385), ("f32", 32768))]


@pytest.mark.parametrize(("name", "kind", "n"), [*ROWS, ("softmax", "f16", 32767), ("softmax", "f32", 700)])
def test_values(name: str, kind: str, n: int) -> None:
    """Of rows that fill a tile, half of it, or little more than nothing."""
    found, expected = launched(name, kind, n, 32768, 16)
    accuracy = 2e-5 if kind == "f32" else 1e-2
    np.testing.assert_allclose(found, expected, rtol=accuracy, atol=accuracy * np.abs(expected).max())


def test_an_iteration_holds_no_more_than_a_program() -> None:
    """64 halves are 32 words, across three barriers in each of three iterations."""
    n = 150001
    x = (3 * np.random.default_rng(n).standard_normal((2, n))).astype(ml_dtypes.bfloat16)
    out, wide = np.zeros(2, np.float32), x.astype(np.float64) / 2
    made = losses[(2,)](x, out, n, B=65536, num_warps=32, target=TARGET)
    most = wide.max(1)
    powers = np.exp(wide - most[:, None]).sum(1)
    np.testing.assert_allclose(out, most + np.log(powers) - wide.mean(1), rtol=1e-4)
    counts = {op.result.count for op in named(made.program, "arith.extf") if op.operands[0].elem == "bf16"}
    assert (counts, made.program.at_a_time) == ({1, 8}, 1)  # the ends of rows have one element a lane


def test_numbers_that_are_none() -> None:
    def change(x: Any) -> None:
        x[0, 10000], x[1, 5], x[2, :], x[3, 100] = np.nan, -np.inf, -np.inf, np.inf

    found, expected = launched("softmax", "bf16", 17001, 32768, 16, 5, change)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found[[1, 4]], expected[[1, 4]], rtol=1e-2, atol=1e-6)


def test_a_row_in_place() -> None:
    """All of a row is read before any of it is written."""
    x = np.random.default_rng(1).standard_normal((2, 32768)).astype(np.float32)
    expected, sums = x - x.mean(1, keepdims=True), np.zeros(2, np.float32)
    centred[(2,)](x, x, sums, 32768, B=32768, num_warps=16, target=TARGET)
    np.testing.assert_allclose(x, expected / np.sqrt((expected**2).mean(1, keepdims=True) + 1e-5), rtol=1e-3, atol=1e-4)


def test_parts_of_a_few_registers_are_parked_in_whole_accesses() -> None:
    x, out = np.random.default_rng(1).integers(-9, 10, (5, 32768)).astype(np.float16), np.zeros(16384, np.float32)
    several[(1,)](x, out, 32768, B=16384, num_warps=16, target=TARGET)
    used = x.reshape(5, -1, 8)[:, :, :4].reshape(5, -1).astype(np.float32)
    np.testing.assert_array_equal(out, used.max() + used.T @ [1, 2, 4, 8, 16])


def test_what_warps_have_not_loaded_is_computed_once() -> None:
    """Of half a tile, half of the exponentials; each parked word is stored and loaded by its own thread."""
    launched("softmax", "bf16", 16384, 32768, 16, 1)
    report = weft.sim.last_run()
    exponentials = report.kinds["math.exp"] / 16
    launched("softmax", "bf16", 32768, 32768, 16, 1)
    whole = weft.sim.last_run().kinds["math.exp"] / 16
    assert whole == 64 and exponentials <= 32 + 4
