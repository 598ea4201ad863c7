"""Loops that are not divided among warps, whose operands the copy engine copies ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

from . import computed
from .computed import Computed
from .gradients import Gradients
from .running import aligned
from .specialized import SCHEDULES, Product, is_specialized, simulated
from .turned import Turned

scheduled = pytest.mark.parametrize("options", SCHEDULES, ids=lambda o: f"{o.copies}-{o.order}{o.seed}")
slow = pytest.mark.slow
PLAIN = Gradients(n=64, asked=False, stages=3)


def by_engine(made: Any) -> bool:
    """Whether the copy engine copies the operands of a kernel's loops, by the side of nobody."""
    text = made.asm["ttgir"]
    return "async_tma_copy_global_to_local" in text and not is_specialized(made)


def check(case: Gradients, options: Any = None) -> Any:
    """That the copy engine copies, and that this is right."""
    found, made = case.run(options=options)
    assert by_engine(made)
    for x, exact in zip(found, case.exact(), strict=True):
        np.testing.assert_allclose(x, exact, atol=0.03 * np.abs(exact).max())
    return made


def test_rows_are_copied_by_threads_beside_it() -> None:
    """A row is read where it is used: `sums` after the products that begin before it is."""
    made = check(PLAIN, SCHEDULES[3])
    text = made.asm["ttgir"]
    body = text[text.index("scf.for") :]
    assert body.count("async_copy_global_to_local") == 2 and body.count("async_tma_copy_global_to_local") == 2
    first, second = (i for i in range(len(body)) if body.startswith("ttg.local_load", i))
    assert first < body.index("math.exp2") < body.rindex("ttng.warp_group_dot_wait", 0, second) < second


@slow
@scheduled
@pytest.mark.parametrize(
    "case",
    [
        PLAIN,
        Gradients(n=256, asked=False, block=(64, 64), head=64, stages=3, causal=True),
        Gradients(n=128, asked=False, block=(64, 16), of="queries", stages=3),
        Gradients(n=64, asked=False, block=(64, 64), of="all", stages=3),
        Gradients(n=64, asked=False, block=(64, 64), stages=4),
    ],
    ids=["keys", "causal", "queries", "all", "one iteration of four"],
)
def test_gradients(case: Gradients, options: Any) -> None:
    check(case, options)


def test_with_two_buffers_few_copies_land_earlier_by_threads() -> None:
    _, made = Gradients(n=64, asked=False).run()
    assert not by_engine(made)


@pytest.mark.parametrize("options", [SCHEDULES[1], *(pytest.param(x, marks=slow) for x in SCHEDULES[2:])], ids=str)
@pytest.mark.parametrize("warps", [4, pytest.param(8, marks=slow)])
def test_a_product_that_only_adds(warps: int, options: Any) -> None:
    """Copies need no fence, and the threads no addresses. Sums have the bits that threads' copies give."""
    case = Product(trans=False, sizes=(16 * warps, 64, 264), block=(16 * warps, 64, 64), warps=warps, stages=4)
    found, made = case.run(asked=False, options=options)
    assert by_engine(made)
    other, by_threads = case.run(asked=False, stages=2)
    assert not by_engine(by_threads)
    np.testing.assert_array_equal(found, other)
    np.testing.assert_allclose(found, case.exact(), atol=1e-2)


@weft.jit
def masked(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    """c = a b through pointers, all that lies outside masked off."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(0, K, BK):
        inner = at + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + inner[None, :], (rows < M)[:, None] & (inner < K)[None, :], 0.0)
        right = tl.load(b + inner[:, None] * N + columns[None, :], (inner < K)[:, None] & (columns < N)[None, :], 0.0)
        acc = tl.dot(left, right, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, (rows < M)[:, None] & (columns < N)[None, :])


@pytest.mark.parametrize("options", [SCHEDULES[3], *(pytest.param(x, marks=slow) for x in SCHEDULES[:3])], ids=str)
def test_through_pointers(options: Any) -> None:
    """A launch makes the tensor maps of products that only add; the sums have the same bits without."""
    m, n, k = 72, 72, 264
    rng, a, b = np.random.default_rng(0), aligned((m, k), np.float16), aligned((k, n), np.float16)
    a[...], b[...] = rng.standard_normal(a.shape), rng.standard_normal(b.shape)
    found = []
    for more in ({}, {"made_tensors": False}):
        c = np.zeros((m, n), np.float32)
        blocks = {"BM": 64, "BN": 64, "BK": 64, "num_warps": 4, "num_stages": 4}
        made = simulated(masked, (2, 2), a, b, c, m, n, k, options=options, **blocks, **more)
        assert by_engine(made) == (not more)
        found.append(c)
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], a.astype(np.float64) @ b.astype(np.float64), atol=1e-2)


TURNED = [
    pytest.param(Turned("ab"), id="ab"),
    *(pytest.param(Turned(which), id=which, marks=slow) for which in ("a", "b")),
    pytest.param(Turned("b", "f32", block=(64, 64, 32)), id="b of 32 bits", marks=slow),
    pytest.param(Turned("b", "fp8", (80, 112, 272), (64, 64, 128)), id="b of 8 bits", marks=slow),
    *(
        pytest.param(case, marks=slow, id=f"{case.which} {case.kind} {'x'.join(map(str, case.block))}")
        for which in ("a", "b", "ab")
        for case in (
            Turned(which, "bf16", (136, 264, 232), (128, 128, 64), 8, 3),
            Turned(which, "f16", (72, 136, 520), (64, 128, 128), 4, 3),
            Turned(which, "f16", (168, 328, 136), (128, 256, 64), 8),
            Turned(which, "f16", (200, 104, 296), (128, 64, 64), 4, 5),
        )
    ),
]


@pytest.mark.parametrize("case", TURNED)
def test_operands_that_lie_transposed(case: Turned) -> None:
    """The engine copies tiles as they lie in memory, and products read a transposed view of them."""
    found, made = case.run(SCHEDULES[3])
    assert by_engine(made)
    assert made.asm["ttgir"].count("ttg.memdesc_trans") == len(case.which)
    np.testing.assert_array_equal(found, case.exact())


@pytest.mark.parametrize("which", ["b", pytest.param("", marks=slow), pytest.param("ab", marks=slow)])
def test_short_rows_are_copied_by_the_engine_where_each_begins_with_a_sector(which: str) -> None:
    """Rows of 64 bytes whose distance is a multiple of 32 bytes, or only of 16."""
    for k, engine in ((272, True), (264, False)):
        case = Turned(which, sizes=(80, 112, k), block=(64, 64, 32))
        found, made = case.run(SCHEDULES[3])
        assert by_engine(made) == engine
        np.testing.assert_array_equal(found, case.exact())


@slow
@scheduled
@pytest.mark.parametrize("which", ["a", "b", "ab"])
def test_transposed_operands_are_awaited(which: str, options: Any) -> None:
    found, made = Turned(which).run(options)
    assert by_engine(made)
    np.testing.assert_array_equal(found, Turned(which).exact())


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Turned("a", sizes=(68, 104, 264)), id="a"),
        pytest.param(Turned("b", sizes=(72, 104, 260)), id="b", marks=slow),
        *(pytest.param(Turned(w, "fp8", (80, 112, 272)), id=f"{w} of 8 bits", marks=slow) for w in ("a", "", "ab")),
        *(pytest.param(Turned(w, "f32"), id=f"{w} of 32 bits", marks=slow) for w in ("a", "", "ab")),
    ],
)
def test_transposed_operands_that_threads_copy(case: Turned) -> None:
    """Threads copy: products read operands of 8 and 32 bits only along the summed dimension, and the engine copies only
    rows of a multiple of 16 bytes."""
    found, made = case.run(SCHEDULES[3])
    assert not by_engine(made)
    np.testing.assert_array_equal(found, case.exact())


@weft.jit
def attention_by_pointers(q, k, v, o, n, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):  # type: ignore[no-untyped-def]
    """One head, n x D, with all rows beyond n masked off."""
    rows, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    queries = tl.load(q + rows[:, None] * D + inner[None, :], (rows < n)[:, None], 0.0)
    m, total = tl.full((BM,), -1.0e30, tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for at in range(0, n, BN):
        keys = at + tl.arange(0, BN)
        turned = tl.load(k + keys[None, :] * D + inner[:, None], (keys < n)[None, :], 0.0)
        scores = tl.where((keys < n)[None, :], tl.dot(queries, turned) * scale, -1.0e30)
        new = tl.maximum(m, tl.max(scores, 1))
        p, shrink = tl.exp2(scores - new[:, None]), tl.exp2(m - new)
        total, m = total * shrink + tl.sum(p, 1), new
        values = tl.load(v + keys[:, None] * D + inner[None, :], (keys < n)[:, None], 0.0)
        acc = tl.dot(p.to(v.dtype.element_ty), values, acc * shrink[:, None])
    tl.store(o + rows[:, None] * D + inner[None, :], acc / total[:, None], (rows < n)[:, None])


@pytest.mark.parametrize("options", [SCHEDULES[3], *(pytest.param(x, marks=slow) for x in SCHEDULES)], ids=str)
def test_results_that_an_iteration_uses(options: Any) -> None:
    """Attention through pointers, which computes with its scores in each iteration: bitwise equal to copies by
    threads."""
    n, d = 200, 64
    rng, arrays = np.random.default_rng(0), [aligned((n, d), np.float16) for _ in range(3)]
    for x in arrays:
        x[...] = rng.standard_normal(x.shape)
    found = []
    for more in ({}, {"made_tensors": False}):
        o = np.zeros((n, d), np.float32)
        blocks = {"D": d, "BM": 64, "BN": 32, "num_warps": 4, "num_stages": 3}
        made = simulated(attention_by_pointers, (4,), *arrays, o, n, 0.2, options=options, **blocks, **more)
        assert by_engine(made) == (not more)
        found.append(o)
    np.testing.assert_array_equal(*found)
    q, k, v = (x.astype(np.float64) for x in arrays)
    weights = np.exp2(0.2 * (q @ k.T))
    np.testing.assert_allclose(found[0], weights @ v / weights.sum(1, keepdims=True), atol=1e-2)


COMPUTED = [
    pytest.param(Computed(), id="bytes"),
    pytest.param(Computed(computed.wrapped), id="columns that wrap around", marks=slow),
    pytest.param(Computed(computed.turned, block=(64, 128, 128)), id="transposed", marks=slow),
    pytest.param(Computed(computed.scaled, "fp8", left="bf16"), id="fp8 by a scale", marks=slow),
    pytest.param(Computed(computed.scaled_by_rows, "bf16", left="bf16"), id="bf16 by rows"),
    pytest.param(Computed(computed.unpacked, "u8", (72, 144, 320), left="bf16"), id="4 bits", marks=slow),
    pytest.param(Computed(sizes=(136, 144, 272), block=(128, 128, 64), warps=8, stages=3), id="8 warps", marks=slow),
]


@pytest.mark.parametrize("case", COMPUTED)
def test_operands_that_are_computed(case: Computed) -> None:
    """The engine copies the tiles that operands are computed from too; rows of numbers are copied by threads."""
    found, made = case.run(SCHEDULES[3])
    assert by_engine(made)
    text = made.asm["ttgir"]
    body = text[text.index("scf.for") :]
    assert body.count("async_tma_copy_global_to_local") == 2
    assert body.count("async_copy_global_to_local") == (case.operand is computed.scaled_by_rows)
    np.testing.assert_array_equal(found, case.exact())


@slow
@scheduled
@pytest.mark.parametrize("operand", [computed.widened, computed.scaled_by_rows])
def test_computed_operands_are_awaited(operand: Any, options: Any) -> None:
    case = Computed(operand)
    found, _ = case.run(options)
    np.testing.assert_array_equal(found, case.exact())


def test_columns_that_wrap_around_are_as_loaded_where_something_else_uses_them() -> None:
    """The engine would write zeros for them: the product's are dropped when it is stored, but not those of the sum."""
    m, n, k = 64, 144, 192
    rng, a, b = np.random.default_rng(0), aligned((m, k), np.float16), aligned((k, n), np.int8)
    a[...], b[...] = rng.integers(-3, 4, a.shape), rng.integers(1, 4, b.shape)
    c, total = aligned((m, n), np.float32), aligned((2,), np.int32)
    made = simulated(computed.summed, (1, 2), a, b, c, total, m, n, k, BM=64, BN=128, BK=64, num_warps=4, num_stages=4)
    assert not by_engine(made)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    around = b.astype(np.int64)[:, np.arange(256) % n]
    np.testing.assert_array_equal(total, [around[:, :128].sum(), around[:, 128:].sum()])
