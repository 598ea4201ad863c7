"""Products whose operands are 2D blocks of memory: which accesses become blocks, and that results are right."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from weft.sim import last_run

BM, BN, BK = 32, 32, 32
LONG = pytest.mark.slow
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@weft.jit
def by_pointers(
    a, b, c, M, N, K, stride_a, stride_b, stride_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SUM: tl.constexpr = tl.float32
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    at_a = a + rows[:, None] * stride_a + depth[None, :]
    at_b = b + depth[:, None] * stride_b + columns[None, :]
    total = tl.zeros((BM, BN), SUM)
    for k in range(tl.cdiv(K, BK)):
        left = tl.load(at_a, mask=(rows[:, None] < M) & (depth[None, :] < K - k * BK), other=0)
        right = tl.load(at_b, mask=(depth[:, None] < K - k * BK) & (columns[None, :] < N), other=0)
        total = tl.dot(left, right, total, input_precision="tf32")
        at_a += BK
        at_b += BK * stride_b
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * stride_c + columns[None, :], total.to(c.dtype.element_ty), mask=inside)


@weft.jit
def by_block_pointers(
    a, b, c, M, N, K, stride_a, stride_b, stride_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SUM: tl.constexpr = tl.float32
):  # fmt: skip
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    at_a = tl.make_block_ptr(a, (M, K), (stride_a, 1), (row, 0), (BM, BK), (1, 0))
    at_b = tl.make_block_ptr(b, (K, N), (stride_b, 1), (0, column), (BK, BN), (1, 0))
    total = tl.zeros((BM, BN), SUM)
    for k in range(0, K, BK):
        total = tl.dot(tl.load(at_a, boundary_check=(0, 1)), tl.load(at_b, boundary_check=(0, 1)), total)
        at_a = tl.advance(at_a, (0, BK))
        at_b = tl.advance(at_b, (BK, 0))
    at_c = tl.make_block_ptr(c, (M, N), (stride_c, 1), (row, column), (BM, BN), (1, 0))
    tl.store(at_c, total.to(c.dtype.element_ty), boundary_check=(0, 1))


@weft.jit
def by_descriptors(
    a, b, c, M, N, K, stride_a, stride_b, stride_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SUM: tl.constexpr = tl.float32
):  # fmt: skip
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    of_a = tl.make_tensor_descriptor(a, (M, K), (stride_a, 1), (BM, BK))
    of_b = tl.make_tensor_descriptor(b, (K, N), (stride_b, 1), (BK, BN))
    of_c = tl.make_tensor_descriptor(c, (M, N), (stride_c, 1), (BM, BN))
    total = tl.zeros((BM, BN), SUM)
    for k in range(0, K, BK):
        total = tl.dot(of_a.load([row, k]), of_b.load([k, column]), total)
    of_c.store([row, column], total.to(c.dtype.element_ty))


@weft.jit
def without_masks(
    a, b, c, M, N, K, stride_a, stride_b, stride_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SUM: tl.constexpr = tl.float32
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), SUM)
    for k in range(0, K, BK):
        depth = k + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * stride_a + depth[None, :])
        total = tl.dot(left, tl.load(b + depth[:, None] * stride_b + columns[None, :]), total)
    tl.store(c + rows[:, None] * stride_c + columns[None, :], total.to(c.dtype.element_ty))


@weft.jit
def of_columns(
    a, b, c, M, N, K, stride_a, stride_b, stride_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SUM: tl.constexpr = tl.float32
):  # fmt: skip
    """The right operand's columns lie in memory as rows: `b` is N x K."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), SUM)
    for k in range(0, K, BK):
        depth = k + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * stride_a + depth[None, :], mask=rows[:, None] < M, other=0)
        right = tl.load(b + columns[:, None] * stride_b + depth[None, :], mask=columns[:, None] < N, other=0)
        total = tl.dot(left, tl.trans(right), total, input_precision="tf32")
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * stride_c + columns[None, :], total.to(c.dtype.element_ty), mask=inside)


KERNELS = {f.fn.__name__: f for f in (by_pointers, by_block_pointers, by_descriptors, without_masks, of_columns)}


def multiplied(kernel: Any, m: int, n: int, k: int, dtype: Any = np.float16, pad: int = 0, shift: int = 0,
               target: str = "sim:xpu:pvc", **options: Any) -> Any:  # fmt: skip
    """Run a kernel and compare with NumPy; the report. Rows are `pad` longer, arrays begin `shift` elements further."""
    rng = np.random.default_rng(m + n + k)
    turned = kernel is of_columns

    def array(rows: int, columns: int, kind: Any) -> Any:
        flat = np.zeros(rows * (columns + pad) + shift, kind)
        return flat[shift:].reshape(rows, columns + pad)

    a, b, c = array(m, k, dtype), array(n, k, dtype) if turned else array(k, n, dtype), array(m, n, np.float32)
    a[:] = rng.integers(-4, 5, a.shape)
    b[:] = rng.integers(-4, 5, b.shape)
    want = a[:, :k].astype(np.float64) @ (b[:, :k].T if turned else b[:, :n]).astype(np.float64)
    with weft.target(target):
        kernel[-(-m // BM), -(-n // BN)](
            a, b, c, m, n, k, a.shape[1], b.shape[1], c.shape[1], BM=BM, BN=BN, BK=BK,
            SUM=tl.int32 if dtype == np.int8 else tl.float32, num_warps=4, **options
        )
    assert np.array_equal(c[:, :n], want)
    assert not c[:, n:].any(), "nothing is stored outside of the surface"
    return last_run()


def kinds(report: Any) -> set[str]:
    return {name.split(".")[0] + ("." + name.split(".")[3] if name.count(".") > 2 else "")
            for name in report.kinds if "block2d" in name}  # fmt: skip


WHOLE = {"load_block2d", "load_block2d.transform", "prefetch_block2d", "store_block2d"}


@pytest.mark.parametrize("kernel", [by_pointers, by_block_pointers, by_descriptors])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(40, 72, 48), pytest.param(64, 64, 64, marks=LONG), pytest.param(7, 96, 120, marks=LONG)]
)
def test_operands_are_blocks(kernel: Any, m: int, n: int, k: int) -> None:
    assert kinds(multiplied(kernel, m, n, k)) == WHOLE


def test_what_no_mask_limits_is_a_surface_of_its_own() -> None:
    assert kinds(multiplied(without_masks, 64, 128, 128)) == WHOLE


@pytest.mark.parametrize(
    "dtype", [np.int8, *(pytest.param(x, marks=LONG) for x in (np.float16, np.float32, BFLOAT16))]
)
@pytest.mark.parametrize("kernel", [by_pointers, of_columns])
def test_every_type_of_dpas_is_loaded_so(kernel: Any, dtype: Any) -> None:
    report = multiplied(kernel, 48, 64, 128, dtype)
    right = "transpose" if kernel is of_columns else "transform"
    wanted = {"load_block2d", "prefetch_block2d", "store_block2d"}
    if dtype != np.float32 or kernel is of_columns:  # rows of 32 bits share no word
        wanted.add(f"load_block2d.{right}")
    assert kinds(report) == wanted
    assert not report["shared_load_bytes"]


@pytest.mark.parametrize(("m", "n", "k", "more"), [
    (64, 64, 50, {}),  # the pitch of the left operand is no multiple of 16
    (64, 64, 64, {"pad": 3}),
    (64, 64, 16, {}),  # rows of 32 bytes
])  # fmt: skip
def test_surfaces_that_are_none_are_accessed_as_before(m: int, n: int, k: int, more: dict[str, int]) -> None:
    assert "load_block2d.transform" not in kinds(multiplied(by_pointers, m, n, k, **more))


@LONG
def test_arrays_that_begin_anywhere_are_accessed_in_both_ways() -> None:
    for shift in (0, 1, 2, 8, 24, 33):
        for kernel in (by_pointers, by_block_pointers, without_masks):
            multiplied(kernel, 64, 64, 96, pad=40, shift=shift)


def _compiled(kernel: Any, target: str = "xpu:pvc", divides: int = 16, **options: Any) -> Any:
    names = ("M", "N", "K", "stride_a", "stride_b", "stride_c")
    types = {"a": "*fp16", "b": "*fp16", "c": "*fp32", **dict.fromkeys(names, "i32")}
    facts = {(i,): [["tt.divisibility", divides]] for i in range(len(types))} if divides > 1 else {}
    constants = {"BM": BM, "BN": BN, "BK": BK, "SUM": tl.float32}
    return weft.compile(weft.ASTSource(kernel, types, constants, facts), target, {"num_warps": 4, **options})


def test_conditions_are_asked_before_the_loop_which_has_neither_conversions_nor_barriers() -> None:
    made = _compiled(by_pointers)
    text = made.asm["ttgir"]
    loops = text.split("scf.for")[1:]
    fast = loops[0].partition("scf.yield")[0]
    assert fast.count("ttig.block_load") == 2 and fast.count("ttig.block_prefetch") == 2
    assert not any(word in fast for word in ("convert_layout", "scf.if", "tt.load", "!tt.ptr<f16>,", "cmpi sge"))
    assert "tt.load" in loops[1]
    assert made.metadata.extensions.count("SPV_INTEL_2d_block_io") == 1
    remarks = [str(r) for r in made.remarks]
    assert any("block access: 32x32xf16: loaded by 2D blocks, as products take it" in r for r in remarks)
    assert any("block access: 32x32xf32: stored by 2D blocks" in r for r in remarks)


@pytest.mark.parametrize(("stages", "ahead"), [(1, 0), (2, 1), (4, 3)])
def test_as_many_iterations_are_prefetched_as_are_under_way(stages: int, ahead: int) -> None:
    text = _compiled(by_block_pointers, num_stages=stages).asm["ttgir"]
    before, loop = text.split("scf.for")[0], text.split("scf.for")[1].partition("scf.yield")[0]
    assert before.count("ttig.block_prefetch") == 2 * ahead
    assert loop.count("ttig.block_prefetch") == (2 if ahead else 0)


def test_dg2_multiplies_in_subgroups_of_8_and_has_no_blocks() -> None:
    for dtype in (np.float16, np.int8, BFLOAT16):
        report = multiplied(by_pointers, 40, 72, 48, dtype, target="sim:xpu:dg2")
        assert not kinds(report) and any(kind.startswith("dpas.8x8x") for kind in report.kinds)


@weft.jit
def of_rows_that_wrap(a, b, c, M, stride, SIZE: tl.constexpr):
    rows = (tl.program_id(0) * SIZE + tl.arange(0, SIZE)) % M
    at = tl.arange(0, SIZE)
    left = tl.load(a + rows[:, None] * stride + at[None, :])
    right = tl.load(b + at[:, None] * stride + at[None, :], mask=at[:, None] < M, other=1.0)
    tl.store(c + at[:, None] * SIZE + at[None, :], tl.dot(left, right))


@weft.jit
def in_place(a, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    x = tl.load(a + at)
    tl.store(a + at, tl.dot(x, x).to(tl.float16))


@pytest.mark.parametrize(("kernel", "why"), [
    (of_rows_that_wrap, "are taken modulo something (%), so rows may not be consecutive"),
    (of_rows_that_wrap, "are masked, and the value there is not 0"),
    (in_place, "are in memory that the kernel may both load and store"),
])  # fmt: skip
def test_why_an_operand_is_no_block_is_said(kernel: Any, why: str) -> None:
    every = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "M": "i32", "stride": "i32"}
    types = {name: kind for name, kind in every.items() if name in kernel.arg_names}
    made = weft.compile(weft.ASTSource(kernel, types, {"SIZE": 32}), "xpu:pvc")
    said = f"instruction declined: not a 2D block of 32x32xf16: its addresses {why}"
    assert any(said in str(r) for r in made.remarks)


@weft.jit
def shifted_down(a, b, c, low, SIZE: tl.constexpr):
    """An index that may be less than 0, where the array goes on: no mask forbids it."""
    at = tl.arange(0, SIZE)
    rows = at + low
    middle = a + SIZE * SIZE
    left = tl.load(middle + rows[:, None] * SIZE + at[None, :], mask=rows[:, None] < SIZE, other=0)
    total = tl.dot(left, tl.load(b + at[:, None] * SIZE + at[None, :]))
    tl.store(c + at[:, None] * SIZE + at[None, :], total)


@pytest.mark.parametrize("low", [-3, 0, *(pytest.param(x, marks=LONG) for x in (-32, 5))])
def test_rows_before_the_first_one_are_read_where_no_mask_forbids_it(low: int) -> None:
    whole = np.random.default_rng(1).integers(-4, 5, (64, 32)).astype(np.float16)
    b, c = np.eye(32, dtype=np.float16), np.zeros((32, 32), np.float32)
    with weft.target("sim:xpu:pvc"):
        shifted_down[1,](whole, b, c, low, SIZE=32)
    wanted = np.zeros_like(c)
    for i in range(32):
        if i + low < 32:
            wanted[i] = whole[32 + i + low]
    assert np.array_equal(c, wanted)


def test_compilers_that_know_no_extension_get_no_blocks() -> None:
    made = _compiled(by_pointers, imported_products=True)
    assert "SPV_INTEL_2d_block_io" not in made.metadata.extensions
    assert "ttig.block_load" not in made.asm["ttgir"] and "isa=dpas" in made.asm["lane"]


@weft.jit
def attention(q, k, v, o, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    at = rows[:, None] * D + d[None, :]
    query = tl.load(q + at, mask=rows[:, None] < N, other=0.0)
    total, most, sums = tl.zeros((BM, D), tl.float32), tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32)
    for start in range(0, N, BN):
        columns = start + tl.arange(0, BN)
        keys = tl.load(k + columns[:, None] * D + d[None, :], mask=columns[:, None] < N, other=0.0)
        scores = tl.where(columns[None, :] < N, tl.dot(query, tl.trans(keys)), -1e30)
        higher = tl.maximum(most, tl.max(scores, 1))
        weights, shrunk = tl.exp(scores - higher[:, None]), tl.exp(most - higher)
        sums, most = sums * shrunk + tl.sum(weights, 1), higher
        values = tl.load(v + columns[:, None] * D + d[None, :], mask=columns[:, None] < N, other=0.0)
        total = total * shrunk[:, None] + tl.dot(weights.to(tl.float16), values)
    tl.store(o + at, total / sums[:, None], mask=rows[:, None] < N)


@pytest.mark.parametrize("n", [pytest.param(64, marks=LONG), 100])
def test_attention_has_blocks_of_both_kinds(n: int) -> None:
    rng = np.random.default_rng(n)
    q, k, v = (rng.standard_normal((n, 64)).astype(np.float16) / 2 for _ in range(3))
    o = np.zeros((n, 64), np.float32)
    with weft.target("sim:xpu:pvc"):
        attention[-(-n // 32),](q, k, v, o, n, D=64, BM=32, BN=32, num_warps=4)
    scores = np.exp(q.astype(np.float64) @ k.T.astype(np.float64))
    assert np.allclose(o, scores / scores.sum(1, keepdims=True) @ v, atol=1e-3)
    assert kinds(last_run()) == {*WHOLE, "load_block2d.transpose"}


@weft.jit
def of_any_stride(a, b, c, stride, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    left = tl.load(a + at[:, None] * stride + at[None, :])
    right = tl.load(b + at[:, None] * SIZE + at[None, :])
    tl.store(c + at[:, None] * SIZE + at[None, :], tl.dot(left, right))


@pytest.mark.parametrize("stride", [8, 40, *(pytest.param(x, marks=LONG) for x in (0, 31, 32, 64))])
def test_rows_that_overlap_or_lie_anywhere(stride: int) -> None:
    rng = np.random.default_rng(stride)
    a, b = rng.integers(-3, 4, 4096).astype(np.float16), rng.integers(-3, 4, (32, 32)).astype(np.float16)
    c = np.zeros((32, 32), np.float32)
    with weft.target("sim:xpu:pvc"):
        of_any_stride[1,](a, b, c, stride, SIZE=32, num_warps=2)
    left = np.array([[a[i * stride + j] for j in range(32)] for i in range(32)], np.float64)
    assert np.array_equal(c, left @ b.astype(np.float64))


@weft.jit
def between_two_limits(a, b, c, low, high, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    rows = at - 4
    mask = (rows[:, None] >= low) & (rows[:, None] < high) & (at[None, :] <= high)
    left = tl.load(a + rows[:, None] * 64 + at[None, :], mask=mask, other=0.0)
    total = tl.dot(left, tl.load(b + at[:, None] * SIZE + at[None, :]))
    tl.store(c + at[:, None] * SIZE + at[None, :], total, mask=at[:, None] < high)


@pytest.mark.parametrize(("low", "high"), [(0, 20), (3, 9), *(pytest.param(*x, marks=LONG) for x in ((0, 64), (0, 1)))])
def test_masks_with_limits_from_below(low: int, high: int) -> None:
    rng = np.random.default_rng(low + high)
    a, b = rng.integers(-3, 4, (64, 64)).astype(np.float16), rng.integers(-3, 4, (32, 32)).astype(np.float16)
    c = np.full((32, 32), 7, np.float32)
    with weft.target("sim:xpu:pvc"):
        between_two_limits[1,](a, b, c, low, high, SIZE=32, num_warps=2)
    left = [[a[i - 4, j] if low <= i - 4 < high and j <= high else 0 for j in range(32)] for i in range(32)]
    wanted = np.array(left, np.float64) @ b.astype(np.float64)
    wanted[high:] = 7
    assert np.array_equal(c, wanted)


@weft.jit
def persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0)):
        rows, columns = (tile // across) * BM + tl.arange(0, BM), (tile % across) * BN + tl.arange(0, BN)
        total = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            depth = k + tl.arange(0, BK)
            of_left = (rows[:, None] < M) & (depth[None, :] < K)
            of_right = (depth[:, None] < K) & (columns[None, :] < N)
            left = tl.load(a + rows[:, None] * K + depth[None, :], mask=of_left, other=0)
            right = tl.load(b + depth[:, None] * N + columns[None, :], mask=of_right, other=0)
            total = tl.dot(left, right, total)
        inside = (rows[:, None] < M) & (columns[None, :] < N)
        tl.store(c + rows[:, None] * N + columns[None, :], total, mask=inside)


@weft.jit
def divided_within(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    of_a = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    of_b = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    of_c = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    across = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0), flatten=True):
        total = tl.zeros((BM, BN), tl.float32)
        for k in range(tl.cdiv(K, BK)):
            left = of_a.load([tile // across * BM, k * BK])
            total = tl.dot(left, of_b.load([k * BK, tile % across * BN]), total)
        of_c.store([tile // across * BM, tile % across * BN], total)


@pytest.mark.parametrize(
    ("kernel", "m", "n", "k"),
    [
        pytest.param(persistent, 64, 96, 64, marks=LONG),
        (persistent, 70, 64, 40),
        (divided_within, 70, 64, 40),
        pytest.param(divided_within, 64, 96, 64, marks=LONG),
    ],
)
def test_loops_in_loops(kernel: Any, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m)
    a, b = rng.integers(-3, 4, (m, k)).astype(np.float16), rng.integers(-3, 4, (k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float32)
    with weft.target("sim:xpu:pvc"):
        kernel[2,](a, b, c, m, n, k, BM=32, BN=32, BK=32, num_warps=4)
    assert np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    assert kinds(last_run()) == WHOLE


@weft.jit
def of_some_iterations(a, b, c, last, K, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for k in range(0, K, SIZE):
        is_there = (i[:, None] < SIZE) & (k < last)
        left = tl.load(a + i[:, None] * K + (k + i)[None, :], mask=is_there, other=0)
        total = tl.dot(left, tl.load(b + (k + i)[:, None] * SIZE + i[None, :]), total)
    tl.store(c + i[:, None] * SIZE + i[None, :], total)


@pytest.mark.parametrize("last", [0, 33])
def test_what_a_condition_of_each_iteration_guards_is_not_prefetched(last: int) -> None:
    rng = np.random.default_rng(last)
    a, b = rng.integers(-3, 4, (32, 96)).astype(np.float16), rng.integers(-3, 4, (96, 32)).astype(np.float16)
    c = np.zeros((32, 32), np.float32)
    with weft.target("sim:xpu:pvc"):
        of_some_iterations[1,](a, b, c, last, 96, SIZE=32, num_warps=4)
    there = -(-last // 32) * 32
    assert np.array_equal(c, a[:, :there].astype(np.float64) @ b[:there].astype(np.float64))
    assert {"load_block2d", "prefetch_block2d"} & kinds(last_run()) == {"load_block2d"}


def test_accesses_without_caches_stay() -> None:
    with_hint = weft.compile(weft.ASTSource(uncached, {"a": "*fp16", "c": "*fp32"}), "xpu:pvc").asm["ttgir"]
    assert "block_load" not in with_hint


@weft.jit
def uncached(a, c):
    at = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    x = tl.load(a + at, cache_modifier=".cv")
    tl.store(c + at, tl.dot(x, x))
