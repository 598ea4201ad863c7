"""Rows at any address, as they are lowered: ends by themselves, reductions run by run, nothing done beyond the row."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from weft.compiler import ASTSource, lane_program
from weft.language.extra import libdevice

TYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32, "i8": np.int8}


@weft.jit
def scale(x, w, out, n, B: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, B)
    value = tl.load(x + row * n + i, mask=i < n) * tl.load(w + i, mask=i < n)
    tl.store(out + row * n + i, value, mask=i < n)


@weft.jit
def softmax(x, w, out, n, B: tl.constexpr):
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(value - tl.max(value, 0))
    tl.store(out + row + i, (e / tl.sum(e, 0)).to(out.dtype.element_ty), mask=i < n)


@weft.jit
def rms_norm(x, w, out, n, B: tl.constexpr):
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=0.0).to(tl.float32)
    root = tl.sqrt(tl.sum(value * value, 0) / n + 1.0)
    weight = tl.load(w + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out + row + i, (value / root * weight).to(out.dtype.element_ty), mask=i < n)


@weft.jit
def shifted_sum(x, w, out, n, B: tl.constexpr):
    """What is beyond the row counts: B - n times f(other), which is not neutral."""
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=3).to(tl.float32) + 1.0
    least = tl.min(value * value, 0)
    tl.store(out + row + i, (value + tl.sum(value, 0) + least).to(out.dtype.element_ty), mask=i < n)


@weft.jit
def centred(x, w, out, n, B: tl.constexpr):
    """What is reduced looks at the mask, what is stored at the numbers of the elements."""
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=0.0).to(tl.float32)
    apart = tl.where(i < n, value - tl.sum(value, 0) / n, 0.0)
    found = apart / tl.sqrt(tl.sum(apart * apart, 0) / n + 1.0)
    tl.store(out + row + i, (found + i % 3).to(out.dtype.element_ty), mask=i < n)


@weft.jit
def other_mask(x, w, out, n, B: tl.constexpr):
    """What is loaded ends before what is stored does, and at a place of its own."""
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n - 9, other=2) + tl.load(w + i, mask=i < n, other=1)
    tl.store(out + row + i, value, mask=i < n)


@weft.jit
def twice(x, w, out, n, B: tl.constexpr):
    """Stored twice, the second time over the first."""
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.exp(tl.load(x + row + i, mask=i < n).to(tl.float32))
    tl.store(out + row + i, value.to(out.dtype.element_ty), mask=i < n)
    tl.store(out + row + i, (value + tl.load(w + i, mask=i < n)).to(out.dtype.element_ty), mask=i < n)


@weft.jit
def some_rows(x, w, out, n, B: tl.constexpr):
    """Of odd programs nothing is loaded or stored."""
    pid, i = tl.program_id(0), tl.arange(0, B)
    mask = (i < n) & (pid % 2 == 0)
    value = tl.load(x + pid * n + i, mask=mask, other=1)
    tl.store(out + pid * n + i, value + value * tl.load(w + i, mask=i < n), mask=mask)


@weft.jit
def functions(x, w, out, n, B: tl.constexpr):
    """Operations that a lane program spells otherwise than tile IR."""
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n).to(tl.float32)
    value = tl.div_rn(tl.clamp(value, -2.0, 1.0), tl.sqrt_rn(value * value + 1.0))
    tl.store(out + row + i, value.to(out.dtype.element_ty), mask=i < n)


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _shifted(x: Any, block: int) -> Any:
    value, beyond = x + 1, block - x.shape[1]
    least = np.minimum((value**2).min(1, keepdims=True), 16.0 if beyond else np.inf)
    return value + value.sum(1, keepdims=True) + 4.0 * beyond + least


def _centred(x: Any) -> Any:
    apart = x - x.mean(1, keepdims=True)
    return apart / np.sqrt((apart**2).mean(1, keepdims=True) + 1.0) + np.arange(x.shape[1]) % 3


def _other_mask(x: Any, w: Any) -> Any:
    return np.where(np.arange(x.shape[1]) < x.shape[1] - 9, x, 2) + w


def _some_rows(x: Any, w: Any) -> Any:
    return np.where(np.arange(len(x))[:, None] % 2 == 0, x + x * w, 77)


EXPECTED = {
    scale: lambda x, w, block: x * w,
    softmax: lambda x, w, block: _softmax(x),
    rms_norm: lambda x, w, block: x / np.sqrt((x**2).mean(1, keepdims=True) + 1.0) * w,
    shifted_sum: lambda x, w, block: _shifted(x, block),
    centred: lambda x, w, block: _centred(x),
    other_mask: lambda x, w, block: _other_mask(x, w),
    functions: lambda x, w, block: x.clip(-2, 1) / np.sqrt(x * x + 1),
    twice: lambda x, w, block: np.exp(x) + w,
    some_rows: lambda x, w, block: _some_rows(x, w),
}


def run(kernel: Any, kind: str, n: int, block: int, warps: int, rows: int = 2) -> tuple[Any, Any]:
    """(what a kernel stores, what it should) for small integers; nobody may write around it."""
    rng = np.random.default_rng(n)
    x, w = (rng.integers(-3, 4, shape).astype(TYPES[kind]) for shape in ((rows, n), (n,)))
    memory = np.full(rows * n + 128, 77).astype(TYPES[kind])
    begin = -memory.ctypes.data // memory.itemsize % 64
    with weft.target("sim:cuda:90"):
        kernel[(rows,)](x, w, memory[begin : begin + rows * n], n, B=block, num_warps=warps)
    found = memory.astype(np.float64)
    assert (found[:begin] == 77).all()
    assert (found[begin + rows * n :] == 77).all()
    expected = EXPECTED[kernel](x.astype(np.float64), w.astype(np.float64), block)
    return found[begin : begin + rows * n].reshape(rows, n), expected.astype(TYPES[kind]).astype(np.float64)


@pytest.mark.parametrize("kernel", EXPECTED, ids=lambda k: k.fn.__name__)
@pytest.mark.parametrize(
    ("kind", "n", "block", "warps"),
    [
        ("bf16", 1025, 2048, 4),
        ("bf16", 2043, 2048, 4),
        ("f32", 517, 1024, 4),
        ("bf16", 12, 1024, 4),
        ("f32", 1, 512, 1),
    ],
)
@pytest.mark.thinned(3)
def test_values(kernel: Any, kind: str, n: int, block: int, warps: int) -> None:
    found, expected = run(kernel, kind, n, block, warps)
    np.testing.assert_allclose(found, expected, rtol=1e-2 if kind == "bf16" else 1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", [scale, other_mask, some_rows], ids=lambda k: k.fn.__name__)
@pytest.mark.parametrize(("n", "block"), [(1001, 1024), (1025, 2048), (2047, 2048), (19, 2048)])
@pytest.mark.thinned(3)
def test_bytes(kernel: Any, n: int, block: int) -> None:
    found, expected = run(kernel, "i8", n, block, 4, rows=3)
    np.testing.assert_array_equal(found, expected)


@weft.jit
def numbered(x, w, out, n, B: tl.constexpr):
    pid, i = tl.program_id(0), tl.arange(0, B)
    row = pid.to(tl.int64) * n
    weight = tl.load(w + i, mask=i < n, other=0).to(tl.int32)
    table = tl.load(w + i * 0 + (i % 7), mask=i < n, other=1).to(tl.int32)
    least = tl.min(tl.where(i % 3 == 0, weight, tl.maximum(weight, weight * 3)), 0)
    found = tl.load(x + row + i, mask=i < n, other=0).to(tl.int32) + table + least
    tl.store(out + row + i, found.to(tl.int8), mask=i < n)


@weft.jit
def respelt(x, w, out, n, B: tl.constexpr):
    """Operations that a lane program spells in another way than tile IR."""
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=0.0)
    value += tl.rand(3, i)
    value = tl.sqrt_rn(tl.clamp(value, 0.25, 2.0)) + tl.div_rn(value, 3.0)
    value += libdevice.rint(value) + (value.to(tl.float8e5).to(tl.float32).to(tl.int32, bitcast=True) > 0)
    tl.store(out + row + i, value, mask=i < n)


def test_operations_that_have_another_name_in_lanes() -> None:
    n, rng = 1001, np.random.default_rng(2)
    x = rng.normal(size=(2, n)).astype(np.float32)
    found, expected = np.zeros_like(x), np.zeros_like(x)
    respelt[(2,)](x, x, expected, n, B=1024)
    with weft.target("sim:cuda:90"):
        made = respelt[(2,)](x, x, found, n, B=1024)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert made.asm["ptx"]


def test_numbers_of_elements_in_two_layouts() -> None:
    """A tile has two layouts at first, that of a table too, and twice the numbers of its elements."""
    n, rng = 4095, np.random.default_rng(0)
    x, w = rng.integers(-3, 4, (2, n)).astype(np.int16), rng.integers(-3, 4, n).astype(np.int16)
    out = np.zeros((2, n), np.int8)
    with weft.target("sim:cuda:90"):
        numbered[(2,)](x, w, out, n, B=4096)
    i, most = np.arange(n), np.maximum(w, 3 * w)
    assert np.array_equal(out, x + w[i % 7] + np.where(i % 3 == 0, w, most).min())


@pytest.mark.parametrize("place", [0, 500, 1024])
def test_what_is_no_number(place: int) -> None:
    """It gets into sums and maxima from the ends of a row as from elsewhere."""
    n = 1025
    x, out = np.zeros((2, n), np.float32), np.zeros((2, n), np.float32)
    x[0, place], x[1, place] = np.nan, np.inf
    with weft.target("sim:cuda:90"):
        softmax[(2,)](x, x, out, n, B=2048)
    assert np.isnan(out[0]).all()
    assert np.isnan(out[1, place])
    assert (np.delete(out[1], place) == 0).all() or np.isnan(out[1]).all()


def program(kernel: Any, block: int, warps: int, kind: str = "bf16") -> Any:
    types = {**dict.fromkeys(("x", "w", "out"), f"*{kind}"), "n": "i32", "B": "constexpr"}
    facts = {(i,): [["tt.divisibility", 16]] for i in range(3)}
    return lane_program(ASTSource(kernel, types, {"B": block}, facts), "sim:cuda:90", {"num_warps": warps})


def test_ends_are_stored_once() -> None:
    """Eight runs of eight elements take eight vectors, in code for each of four distances of `w`, and their row's ends
    one store of single elements."""
    stores = [op for op in program(scale, 16384, 8).body.walk() if op.name == "store"]
    assert sorted(op.attrs["vector"] * op.operands[0].count for op in stores) == [1, *[8] * 8 * 4]


def test_long_stores_are_written_once() -> None:
    """Thirty-two runs would be more code than the instruction cache holds, in code for each distance."""
    stores = [op for op in program(scale, 65536, 8).body.walk() if op.name == "store"]
    assert sorted(op.attrs["vector"] * op.operands[0].count for op in stores) == [1, *[8] * 32]


def test_weights_are_on_their_way_before_they_are_needed() -> None:
    """Of three parts before the first part is stored, where nothing else is loaded then."""
    ops = list(program(rms_norm, 16384, 16, "fp32").body.walk())
    stored = next(k for k, op in enumerate(ops) if op.name == "store" and op.attrs["space"] == "global")
    loads = [op for op in ops[:stored] if op.name == "load" and op.attrs["space"] == "global"]
    assert [(op.attrs["vector"], op.results[0].count) for op in loads].count((4, 4)) == 3


def test_what_is_stored_alone_is_not_shuffled() -> None:
    """Rows that are only stored need none of their ends among the others; of `w`, words are."""
    shuffles = [op for op in program(scale, 16384, 8).body.walk() if op.name == "shuffle"]
    assert {op.results[0].elem for op in shuffles} == {"i32"}
    assert sorted(op.results[0].count for op in shuffles) == [1] * 16 + [2] * 16  # 1, 2, 2 and 1 words for each run


def test_whole_runs_go_without_masks() -> None:
    """A copy of what is reduced under a mask has no choices by it; it is taken where all of a warp's runs is there."""
    branches = [op for op in program(centred, 16384, 8).body.walk() if op.name == "if" and len(op.results) > 1]
    chooses = [[x.name for x in region.ops].count("select") for op in branches for region in op.regions]
    assert chooses.count(1) == 8 and chooses.count(0) == len(chooses) - 8, chooses


def test_nothing_is_computed_beyond_a_row() -> None:
    """Rows that fill an eighth of their tile take few of its instructions."""
    issued = []
    for n in (1031, 8189):
        x, out = np.ones((1, n), ml_dtypes.bfloat16), np.ones((1, n), ml_dtypes.bfloat16)
        with weft.target("sim:cuda:90"):
            softmax[(1,)](x, x, out, n, B=8192, num_warps=8)
        issued.append(weft.sim.last_run().total["instructions"])
    assert issued[0] < 0.6 * issued[1], issued


def test_parts_of_rows_are_operations_of_lane_programs() -> None:
    """Quotients, roots and limits are lowered for a part of a row as they are for a whole tile."""
    assert not [op.name for op in program(functions, 1024, 4).body.walk() if op.name.startswith("tt.")]


def test_a_row_is_kept_as_it_is_loaded() -> None:
    """What a reduction and a store extend is extended for each of them, so that 16 bits are what waits between them."""
    ops = [op for op in program(rms_norm, 8192, 8).body.walk() if op.name == "arith.extf"]
    assert max(op.results[0].count for op in ops) <= 8


def test_a_loop_over_sizes_compiles_four_kernels() -> None:
    """For multiples of 16, 8 and 4, and for all others."""
    pointers = [weft.MockTensor("int8")] * 3
    made = [scale.warmup(*pointers, n, B=64, num_warps=1, grid=(1,), target="cuda:90") for n in range(1000, 1101, 4)]
    odd = [scale.warmup(*pointers, n, B=64, num_warps=1, grid=(1,), target="cuda:90") for n in range(1001, 1100, 2)]
    assert [len(set(map(id, kernels))) for kernels in (made, odd, made + odd)] == [3, 1, 4]
