"""Loads through pointers that become bulk copies: right at ragged edges and under every schedule, and left alone where
the copy engine would load something else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.passes.nvidia.bulk_loads import NO_SUCH_LAYOUT

from .pointed import WAYS, Pointed, by_blocks, described, grouped, masked, whole
from .running import DTYPES, aligned, integers
from .specialized import SCHEDULES, is_specialized, simulated, why_not

slow = pytest.mark.slow


def check(case: Pointed, options: Any = None) -> None:
    """Specialised, right, and bit by bit what the loop gives that is not."""
    found, made = case.run(options=options)
    assert is_specialized(made), why_not(made)
    plain, other = case.run(stages=1)
    assert not is_specialized(other)
    np.testing.assert_array_equal(found, plain)
    np.testing.assert_allclose(found, case.exact(), atol=1e-3)


def test_edges() -> None:
    case = Pointed(grouped)
    found, made = case.run(options=SCHEDULES[3])
    assert is_specialized(made), why_not(made)
    np.testing.assert_allclose(found, case.exact(), atol=1e-3)


CASES = {
    **{kernel.__name__: Pointed(kernel) for kernel in WAYS},
    "transposed": Pointed(grouped, trans=True),
    "transposed, masked": Pointed(masked, trans=True),
    "transposed, blocks": Pointed(by_blocks, trans=True),
    "long rows": Pointed(grouped, further=40),
    "long rows, transposed": Pointed(masked, further=40, trans=True),
    "no edges": Pointed(whole, (128, 128, 192)),
    "no edges, transposed, long rows": Pointed(whole, (128, 128, 192), trans=True, further=8),
    "many blocks": Pointed(grouped, (328, 264, 136), stages=3),
    "odd rows": Pointed(grouped, (101, 72, 72)),
    "odd columns": Pointed(grouped, (72, 101, 72), trans=True),
    "wide": Pointed(grouped, (136, 136, 200), (64, 128, 64), stages=3),
    "wide, 8 warps": Pointed(grouped, (264, 136, 200), (128, 128, 64), warps=8, stages=3),
    "wide, transposed, 8 warps": Pointed(masked, (264, 136, 200), (128, 128, 64), True, warps=8, stages=3),
    "bf16": Pointed(grouped, (136, 72, 200), kind="bf16"),
    "fp8": Pointed(grouped, (144, 80, 272), (64, 64, 128), True, "fp8"),
    "narrow": Pointed(masked, (72, 72, 72), (64, 64, 32)),
    "one block": Pointed(described, (8, 8, 8)),
}


@slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_cases(case: Pointed) -> None:
    check(case)


@slow
@pytest.mark.parametrize("options", SCHEDULES, ids=lambda o: f"{o.copies}-{o.order}{o.seed}")
def test_schedules(options: Any) -> None:
    check(Pointed(grouped, (136, 72, 328), trans=True, stages=3), options)


STAY = {
    "odd rows in memory": (Pointed(grouped, (72, 72, 75)), "have a stride that is not known to be a multiple of 16"),
    "odd columns in memory": (Pointed(masked, (72, 75, 72)), "have a stride that is not known to be a multiple of 16"),
}


@slow
@pytest.mark.parametrize(("case", "why"), STAY.values(), ids=STAY)
def test_strides_that_the_copy_engine_does_not_take(case: Pointed, why: str) -> None:
    found, made = case.run()
    assert not is_specialized(made) and why in why_not(made)[0]
    np.testing.assert_allclose(found, case.exact(), atol=1e-3)


def test_no_columns_at_all() -> None:
    """There is no map of a tensor without elements: the launch is one of the kernel without maps."""
    found, made = Pointed(masked, (72, 72, 0), further=8).run()
    assert not is_specialized(made) and "describe no tensor" in why_not(made)[0]
    assert not found.any()


def test_the_launch_that_is_explained_is_the_one_that_runs() -> None:
    a, b, c = aligned((80, 256), np.float16), aligned((256, 64), np.float16), aligned((64, 64), np.float32)
    for depth, reasons in ((128, 0), (0, 1)):
        given = (a, b, c, 40, depth, 8, np.array([100], np.int32))
        told = tricky.explain(*given, KIND="", BK=64, num_warps=4, num_stages=2, grid=1, target="cuda:90")
        assert len(why_not(told)) == reasons and all("describe no tensor" in why for why in why_not(told))


def test_gluon_source_is_that_of_the_launch() -> None:
    """Without maps where there is nothing along K, as the launch has none."""
    for depth, has_maps in ((128, True), (0, False)):
        a, b, c = integers(1, (64, 256), np.float16), integers(2, (128, 64), np.float16), aligned((64, 64), np.float32)
        given = (a, b, c, 64, depth, 0, np.array([100], np.int32))
        source = tricky.to_gluon(*given, KIND="", BK=64, num_warps=4, num_stages=2, target="cuda:90")
        assert (".made(" in source.text) == has_maps
        with weft.target("sim:cuda:90"):
            source.kernel[(1,)](*source.arguments, **source.options)
        np.testing.assert_array_equal(c, a[:, :depth].astype(np.float32) @ b[:depth].astype(np.float32))


# -- what stays, because the copy engine would load something else ----------------------------------------------------


@weft.jit
def tricky(a, b, c, M, K, shift, lens, KIND: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    """One block of 64 x 64, whose left operand is loaded in a way that is nearly that of a block of a matrix."""
    rows, columns = tl.arange(0, 64), tl.arange(0, 64)
    acc = tl.zeros((64, 64), tl.float32)
    for at in tl.range(0, K, BK, warp_specialize=True):
        inner = at + tl.arange(0, BK)
        row, mask, other = rows[:, None], inner[None, :] < K, 0.0
        if KIND == "wraps and is stored":
            row = (rows % M)[:, None]
        elif KIND == "another value":
            other = 1.0
        elif KIND == "not before the array":
            row = rows[:, None] + shift
        elif KIND == "mask of one side":
            mask = (inner[None, :] < K) & (inner[None, :] % 2 == 0)
        elif KIND == "limit that is loaded":
            mask = inner[None, :] < tl.load(lens)
        elif KIND == "limit that is a minimum":
            mask = inner[None, :] < tl.minimum(K, 12 * shift)
        elif KIND == "another index":
            mask = inner[None, :] + 8 * rows[:, None] < K
        elif KIND == "wraps along the sum":
            inner = inner % M
        left = tl.load(a + row * 256 + inner[None, :], mask, other)
        acc = tl.dot(left, tl.load(b + inner[:, None] * 64 + columns[None, :]), acc)
    tl.store(c + rows[:, None] * 64 + columns[None, :], acc)


TRICKY = {
    "plain": "",
    "wraps and is stored": "results of those past the end may be stored",
    "another value": "another value than 0",
    "not before the array": "",
    "mask of one side": "masked by",
    "limit that is loaded": "masked by limits that are not those of an array",
    "limit that is a minimum": "masked by limits that are not those of an array",
    "another index": "masked by conditions other than limits of rows and columns",
    "wraps along the sum": "taken modulo something",
}


@slow
@pytest.mark.parametrize(("kind", "why"), TRICKY.items(), ids=TRICKY)
def test_what_stays(kind: str, why: str) -> None:
    a, b, c = aligned((80, 256), np.float16), aligned((256, 64), np.float16), aligned((64, 64), np.float32)
    rng = np.random.default_rng(1)
    a[...], b[...] = rng.standard_normal(a.shape), rng.standard_normal(b.shape)
    lens = np.array([100], np.int32)
    given = (a, b, c, 40, 128, 8, lens)
    made = simulated(tricky, (1,), *given, KIND=kind, BK=64, num_warps=4, num_stages=2)
    assert is_specialized(made) == (not why) and all(why in found for found in why_not(made))
    inner, rows = np.arange(128), np.arange(64)[:, None]
    columns = inner % 40 if kind == "wraps along the sum" else inner
    rows = rows % 40 if kind == "wraps and is stored" else rows + 8 if kind == "not before the array" else rows
    keep = {
        "mask of one side": inner % 2 == 0,
        "limit that is loaded": inner < 100,
        "limit that is a minimum": inner < 96,
        "another index": inner + 8 * rows < 128,
    }
    left = np.where(keep.get(kind, True), a.astype(np.float64)[rows, columns], 0)
    np.testing.assert_allclose(c, left @ b.astype(np.float64)[columns], atol=1e-2)


def test_what_begins_before_the_array_is_read_there() -> None:
    """A map that began at the array would give zeros."""
    a, b, c = aligned((80, 256), np.float16), aligned((256, 64), np.float16), aligned((64, 64), np.float32)
    given = (a, b, c, 40, 64, -8, np.array([100], np.int32))
    with pytest.raises(weft.sim.OutOfBoundsError):
        simulated(tricky, (1,), *given, KIND="not before the array", BK=64, num_warps=4, num_stages=2)


@weft.jit
def down_to(a, b, c, K, limit, last, BK: tl.constexpr, KIND: tl.constexpr):  # type: ignore[no-untyped-def]
    """One block of 64 x 64, from the last along K to the first, or to another one."""
    rows, columns = tl.arange(0, 64), tl.arange(0, 64)
    acc = tl.zeros((64, 64), tl.float32)
    at = (tl.cdiv(K, BK) - 1) * BK
    if KIND == "argument":
        at, end = last, limit
    elif KIND == "block":
        at, end = at, tl.maximum(limit, 0)
    else:
        at, end = at, 0
    while at >= end:
        inner = at + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * 256 + inner[None, :], (inner < K)[None, :], 0.0)
        acc = tl.dot(left, tl.load(b + inner[:, None] * 64 + columns[None, :], (inner < K)[:, None], 0.0), acc)
        at -= BK
    tl.store(c + rows[:, None] * 64 + columns[None, :], acc)


@pytest.mark.parametrize(("kind", "limit", "blocks"), [("", 0, 4), ("block", 100, 2), ("argument", 60, 3)])
def test_loops_that_count_down_end_within_the_array(kind: str, limit: int, blocks: int) -> None:
    """Those that end at 0, or at another number that is known not to be negative, which an argument is not."""
    a, b, c = integers(1, (64, 256), np.float16), integers(2, (256, 64), np.float16), aligned((64, 64), np.float32)
    made = simulated(down_to, (1,), a, b, c, 250, limit, 192, KIND=kind, BK=64, num_warps=4, num_stages=3)
    assert ("async_tma_copy_global" in made.asm["ttgir"]) == (kind != "argument")
    first = 256 - 64 * blocks
    np.testing.assert_array_equal(c, a[:, first:250].astype(np.float32) @ b[first:250].astype(np.float32))


# -- tensors of more than rows and columns -----------------------------------------------------------------------------


@weft.jit
def batched(a, b, c, K, start, za, ha, sa, zb, sb, BK: tl.constexpr, KIND: tl.constexpr):  # type: ignore[no-untyped-def]
    """A product for each of so many matrices in each of several batches; the right operand is shared by heads."""
    z, h = tl.program_id(0), tl.program_id(1)
    if KIND == "wide":
        z, h = z.to(tl.int64), h.to(tl.int64)
    rows, columns = tl.arange(0, 64), tl.arange(0, 64)
    left, right = a + z * za + h * ha, b + z * zb + start * sb
    acc = tl.zeros((64, 64), tl.float32)
    for at in tl.range(0, K, BK, warp_specialize=True):
        inner = at + tl.arange(0, BK)
        x = tl.load(left + rows[:, None] * sa + inner[None, :], (inner < K)[None, :], 0.0)
        y = tl.load(right + inner[:, None] * sb + columns[None, :], (inner < K)[:, None], 0.0)
        acc = tl.dot(x, y, acc)
    out = c + (tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)) * 64 * 64
    tl.store(out + rows[:, None] * 64 + columns[None, :], acc)


@slow
@pytest.mark.parametrize("kind", ["narrow", "wide"])
@pytest.mark.parametrize("start", [0, 3])
def test_batches(kind: str, start: int) -> None:
    rng = np.random.default_rng(2)
    a, b = aligned((2, 3, 64, 88), np.float16), aligned((2, 100, 72), np.float16)
    a[...], b[...] = rng.standard_normal(a.shape), rng.standard_normal(b.shape)
    c = aligned((2, 3, 64, 64), np.float32)
    strides = (a[0].size, a[0, 0].size, 88, b[0].size, 72)
    made = simulated(batched, (2, 3), a, b, c, 80, start, *strides, KIND=kind, BK=64, num_warps=4, num_stages=2)
    assert is_specialized(made), why_not(made)
    exact = a[..., :80].astype(np.float64) @ b[:, None, start : start + 80, :64].astype(np.float64)
    np.testing.assert_allclose(c, exact, atol=1e-2)


@weft.jit
def of_columns(a, b, c, k, m):  # type: ignore[no-untyped-def]
    """One block of a^T b^T, of which the first operand is read along its columns."""
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    acc = tl.zeros((64, 64), tl.float32)
    for at in tl.range(0, k, 64, warp_specialize=True):
        left = tl.load(a + i + (at + j) * m, at + j < k, 0.0)
        acc = tl.dot(left, tl.load(b + (at + i) + j * k, at + i < k, 0.0), acc)
    tl.store(c + i * 64 + j, acc)


@pytest.mark.parametrize("kind", ["f16", "fp8"])
def test_columns_of_bytes_stay(kind: str) -> None:
    """No product reads bytes along columns from shared memory: they go through registers, and the loop stays."""
    a, b, c = integers(1, (80, 64), DTYPES[kind]), integers(2, (64, 80), DTYPES[kind]), aligned((64, 64), np.float32)
    made = simulated(of_columns, (1,), a, b, c, 80, 64, num_warps=4, num_stages=2)
    assert is_specialized(made) == (kind == "f16")
    if kind == "fp8":
        assert why_not(made) == [NO_SUCH_LAYOUT]
    np.testing.assert_array_equal(c, a.astype(np.float64).T @ b.astype(np.float64).T)
