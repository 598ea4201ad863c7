"""Rows at any address: which are rotated, that they hold what they did, and that nothing else is changed."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl

TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "i8": np.int8}


@weft.jit
def scale(x, w, out, n, B: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, B)
    mask = i < n
    tl.store(out + row * n + i, tl.load(x + row * n + i, mask=mask) * tl.load(w + i, mask=mask), mask=mask)


@weft.jit
def softmax(x, out, n, B: tl.constexpr):
    row, i = tl.program_id(0).to(tl.int64) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(value - tl.max(value, 0))
    tl.store(out + row + i, (e / tl.sum(e, 0)).to(out.dtype.element_ty), mask=i <= n - 1)


@weft.jit
def layer_norm(x, w, b, out, n, B: tl.constexpr):
    """In passes over parts, as long rows are read."""
    row = tl.program_id(0) * n
    total = tl.zeros([B], tl.float32)
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        total += tl.load(x + row + i, mask=i < n, other=0.0).to(tl.float32)
    mean = tl.sum(total, 0) / n
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        value = tl.load(x + row + i, mask=i < n, other=0.0).to(tl.float32) - mean
        found = value * tl.load(w + i, mask=i < n) + tl.load(b + i, mask=i < n)
        tl.store(out + row + i, found.to(out.dtype.element_ty), mask=i < n)


@weft.jit
def place_in_row(x, out, n, B: tl.constexpr):
    """What looks at the numbers of the elements sees those that are there."""
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=5)
    tl.store(out + row + i, tl.where(i % 3 == 0, value, -value), mask=i < n)


@weft.jit
def shift_in_place(x, n, B: tl.constexpr):
    """Each program moves its own row: all is read before anything is written."""
    row, i = tl.program_id(0) * (n + 1), tl.arange(0, B)
    tl.store(x + row + i, tl.load(x + row + i + 1, mask=i < n), mask=i < n)


@weft.jit
def softmax_in_place(x, n, B: tl.constexpr):
    """Row in pieces: the first loop sums up what the second one replaces."""
    row, total = tl.program_id(0) * n, 0.0
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        total += tl.sum(tl.exp(tl.load(x + row + i, mask=i < n, other=-float("inf")).to(tl.float32)))
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        value = tl.exp(tl.load(x + row + i, mask=i < n, other=-float("inf")).to(tl.float32)) / total
        tl.store(x + row + i, value.to(x.dtype.element_ty), mask=i < n)


@weft.jit
def count_in_place(x, n, B: tl.constexpr):
    """Each iteration counts half of the elements of the one before again."""
    row = tl.program_id(0) * n
    for start in range(0, n, B // 2):
        i = start + tl.arange(0, B)
        tl.store(x + row + i, tl.load(x + row + i, mask=i < n) + 1, mask=i < n)


@weft.jit
def add_in_loop(x, n, B: tl.constexpr):
    """The row is loaded once, before the loop that overwrites it."""
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n)
    for k in range(n // 300):
        tl.store(x + row + (k + i) % n, value, mask=i < n)
        tl.store(x + row + k + i, value, mask=i < n - k)


@weft.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def array(kind: str, *shape: int) -> Any:
    rng = np.random.default_rng(sum(shape))
    found = rng.integers(-9, 9, shape) if kind == "i8" else rng.standard_normal(shape) * 3
    return found.astype(TYPES[kind])


def guarded(kind: str, size: int, offset: int) -> tuple[Any, Any]:
    """(an array, memory around it that nobody may touch): it begins so many elements behind an aligned address."""
    memory = np.full(size + 128, 77).astype(TYPES[kind])
    begin = -memory.ctypes.data // memory.itemsize % 64 + offset
    return memory[begin : begin + size], memory


def check_guard(part: Any, memory: Any) -> None:
    begin = (part.ctypes.data - memory.ctypes.data) // memory.itemsize
    assert (memory[:begin].astype(float) == 77).all() and (memory[begin + part.size :].astype(float) == 77).all()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("n", [1000, 1001, 1023, 1024, 513, 3, 7])
@pytest.mark.thinned(3)
def test_rows_of_any_length(kind: str, n: int) -> None:
    """Counted as the simulator counts, sectors are not many more than there are bytes, and nothing else is touched."""
    rows, block = 9, max(16, 1 << (n - 1).bit_length())
    x, w = array(kind, rows, n), array(kind, n)
    out, memory = guarded(kind, x.size, 0)
    with weft.target("sim:cuda:90"):
        scale[(rows,)](x, w, out, n, B=block)
    assert np.array_equal(out.reshape(x.shape), x * w)
    check_guard(out, memory)
    total, least = weft.sim.last_run().total, x.nbytes / 32
    if n > 999:
        assert total["global_store_sectors"] <= 1.2 * least
        # By words, those of w were asked for up to five times. What is asked for once more, the ends of rows and
        # vectors of w by lanes at the edge of a warp, shows most with 1,001 bytes: 677 sectors, where both have 563.
        assert total["global_load_sectors"] <= 1.25 * 2 * least


@pytest.mark.parametrize(("of_rows", "of_weights"), [("bf16", "f32"), ("f32", "bf16"), ("i8", "f32")])
@pytest.mark.parametrize("shift", [0, 1])
def test_weights_of_another_type(of_rows: str, of_weights: str, shift: int) -> None:
    """Sectors are asked for once, or twice where a run is two vectors; `w` may begin anywhere, too."""
    rows, n = 8, 1001
    x, w, out = array(of_rows, rows, n), guarded(of_weights, n, shift)[0], np.empty((rows, n), np.float32)
    w[:] = array(of_weights, n)
    with weft.target("sim:cuda:90"):
        scale[(rows,)](x, w, out, n, B=1024)
    assert np.array_equal(out, x.astype(np.float32) * w.astype(np.float32))
    narrow = min(x.itemsize, w.itemsize)
    least = sum(rows * n * a.itemsize / 32 * min(2, a.itemsize // narrow) for a in (x, w))
    assert weft.sim.last_run().total["global_load_sectors"] <= 1.3 * least


@pytest.mark.parametrize(("n", "block"), [(4097, 8192), (4095, 4096)])
def test_longer_rows(n: int, block: int) -> None:
    x, w = array("bf16", 3, n), array("bf16", n)
    out = np.empty_like(x)
    with weft.target("sim:cuda:90"):
        scale[(3,)](x, w, out, n, B=block, num_warps=8)
    assert np.array_equal(out, x * w)
    assert weft.sim.last_run().total["global_store_sectors"] <= 1.1 * x.nbytes / 32


@pytest.mark.parametrize("offset", [0, 1, 5])
def test_arrays_that_begin_anywhere(offset: int) -> None:
    rows, n = 3, 301
    x, out = guarded("f16", rows * n, offset)[0], None
    x[:] = array("f16", rows * n)
    out, memory = guarded("f16", rows * n, (3 * offset) % 8)
    with weft.target("sim:cuda:90"):
        softmax[(rows,)](x, out, n, B=512)
    e = np.exp(x.reshape(rows, n).astype(float) - x.reshape(rows, n).max(1, keepdims=True).astype(float))
    assert np.allclose(out.reshape(rows, n), e / e.sum(1, keepdims=True), atol=1e-3)
    check_guard(out, memory)


@weft.jit
def moved(x, out, first, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + first + i, mask=i < n, other=7))


@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("kind", ["i8", "f16", "f32"])
@pytest.mark.thinned(3)
def test_tiles_of_any_size_and_distance(kind: str, warps: int) -> None:
    """Tiles with fewer elements than there are threads too, whose warps have the same elements."""
    for block in (16, 32, 64, 128, 256, 512, 2048):
        x, y = array(kind, block + 64), np.empty(block + 16, TYPES[kind])
        for start, first, n in ((0, 33, block // 2), (1, 33, block), (3, 1, block - 1), (0, 5, block)):
            with weft.target("sim:cuda:90"):
                moved[(1,)](x[start:], y[start:], first, n, block, num_warps=warps)
            expected = np.where(np.arange(block) < n, x[start + first :][:block], 7).astype(TYPES[kind])
            np.testing.assert_array_equal(y[start:][:block], expected, f"{block=} {start=} {first=} {n=}")


@weft.jit
def told_in_a_loop(x, out, flag, n, B: tl.constexpr):
    i, first = tl.arange(0, B), tl.program_id(0) * n
    for part in range(3):
        tl.atomic_add(flag, 1, sem="release")
        tl.store(out + first + part * B + i, tl.load(x + first + part * B + i, mask=i < n), mask=i < n)


def test_a_release_waits_for_rows_that_the_turn_before_has_stored() -> None:
    x, flag = array("f16", 3, 1024), np.zeros(1, np.int32)
    with weft.target("sim:cuda:90"):
        made = told_in_a_loop[(1,)](x, np.empty_like(x), flag, 1001, 1024)
    lane = str(made.asm["lane"])
    assert "weft.store_row" in made.asm["ttgir"]
    assert "barrier" in lane[lane.index("loop") : lane.index("atomic")]


def test_in_passes() -> None:
    rows, n = 2, 1501
    x, w, b = array("f16", rows, n), array("f32", n), array("f16", n)
    out, memory = guarded("f16", x.size, 0)
    with weft.target("sim:cuda:90"):
        layer_norm[(rows,)](x, w, b, out, n, B=1024)
    value = x.astype(float) - x.astype(float).mean(1, keepdims=True)
    assert np.allclose(out.reshape(rows, n), value * w + b.astype(float), rtol=2e-2, atol=2e-2)
    check_guard(out, memory)
    assert weft.sim.last_run().total["global_store_sectors"] <= 1.2 * x.nbytes / 32


def test_numbers_of_elements_are_rotated_too() -> None:
    n = 333
    x = array("i8", 4, n)
    out = np.empty_like(x)
    with weft.target("sim:cuda:90"):
        place_in_row[(4,)](x, out, n, B=512)
    assert np.array_equal(out, np.where(np.arange(n) % 3 == 0, x, -x))


def test_what_is_stored_may_be_what_is_read() -> None:
    n = 1001
    x = array("f16", 3, n + 1)
    expected = np.concatenate([x[:, 1:], x[:, -1:]], 1)
    with weft.target("sim:cuda:90"):
        shift_in_place[(3,)](x, n, B=1024)
    assert np.array_equal(x, expected)


@pytest.mark.parametrize("order", ["forward", "backward", "random"])
@pytest.mark.parametrize("n", [1001, 255])
def test_pieces_of_rows_may_be_replaced_in_a_loop(order: str, n: int) -> None:
    x, y = array("f16", 3, n), array("f16", 3, n)
    powers = np.exp(x.astype(np.float32))
    with weft.target("sim:cuda:90"):
        made = softmax_in_place.warmup(x, n, B=256, grid=(3,)), count_in_place.warmup(y, n, B=256, grid=(3,))
    times = np.minimum(np.arange(n) // 128 + 1, 2)
    wanted = y + times.astype(np.float16)
    for kernel, array_of_rows in zip(made, (x, y), strict=True):
        assert "weft.store_row" in kernel.asm["ttgir"] and "weft.load_row" in kernel.asm["ttgir"]
        weft.sim.run(kernel.program, 3, {"x": array_of_rows, "n": n}, weft.sim.Options(order=order))
    np.testing.assert_allclose(x, powers / powers.sum(1, keepdims=True), rtol=2e-3, atol=1e-6)
    np.testing.assert_allclose(y, wanted, rtol=2e-3, atol=2e-3)


def test_an_array_of_any_length_is_read_by_vectors() -> None:
    """The mask may end within a run, but the runs are aligned: the last one is taken element by element."""
    n = 5003
    x, y = array("f16", n), array("f16", n)
    out, memory = guarded("f16", n, 0)
    with weft.target("sim:cuda:90"):
        add[(5,)](x, y, out, n, B=1024)
    assert np.array_equal(out, x + y)
    check_guard(out, memory)
    assert weft.sim.last_run().total["global_store_sectors"] <= 1.1 * x.nbytes / 32


@pytest.mark.parametrize(
    ("kernel", "rotated"),
    [
        *((kernel, True) for kernel in (scale, softmax, place_in_row, softmax_in_place, count_in_place, add)),
        *((kernel, False) for kernel in (shift_in_place, add_in_loop)),
    ],
)
def test_which_are_rotated(kernel: Any, rotated: bool) -> None:
    pointers = [weft.MockTensor("fp16")] * (len(kernel.arg_names) - 2)
    made = kernel.warmup(*pointers, 1001, B=1024, grid=(1,), target="cuda:90")
    assert ("weft.load_row" in str(made.asm["ttgir"])) == rotated


@weft.jit
def running(x, out, n, B: tl.constexpr):
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    tl.store(out + row + i, tl.cumsum(tl.load(x + row + i, mask=i < n), 0), mask=i < n)


@weft.jit
def combined(x, out, n, B: tl.constexpr):
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    tl.store(out + row, tl.reduce(tl.load(x + row + i, mask=i < n), 0, minus))


@weft.jit
def minus(a, b):
    return a - b


@pytest.mark.parametrize("kernel", [running, combined])
def test_what_has_an_order_is_not_rotated(kernel: Any) -> None:
    pointers = [weft.MockTensor("fp16")] * 2
    made = kernel.warmup(*pointers, 1001, B=1024, grid=(1,), target="cuda:90")
    assert "weft.load_row" not in str(made.asm["ttgir"])


def test_what_is_aligned_stays() -> None:
    """Also where some elements are longer than others, and a vector has fewer of them."""
    types = {"x": "*bf16", "w": "*fp32", "b": "*fp32", "out": "*bf16", "n": "i32", "B": "constexpr"}
    known = {(i,): [["tt.divisibility", 16]] for i in range(5)}
    made = weft.compile(weft.ASTSource(layer_norm, types, {"B": 2048}, known), target="cuda:90")
    assert "weft.load_row" not in str(made.asm["ttgir"])
