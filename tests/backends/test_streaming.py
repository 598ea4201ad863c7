"""Stores around the cache: the same bytes as other stores, whatever the alignment, and nothing beside them.

Most tests make every nest stream that can (`STREAM_BYTES` is one); the last ones write as much as it takes.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from time import perf_counter
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from backends.memory import Watched
from fuzz.compare import AVX2, SSE2, Variant
from weft.backends.cpu.streaming import STREAM_BYTES
from weft.compiler import host_cpu

X86 = platform.machine().lower() in ("x86_64", "amd64")
PROCESSORS: dict[str, dict[str, Any]] = {"host": {}, "narrow": {"vector_bits": 128}}
if X86 and host_cpu().has("avx2"):
    PROCESSORS |= {"avx2": AVX2, "sse2": SSE2}
ALIGNMENTS = range(0, 64, 4)
ELEMENTS = [np.int8, np.float16, ml_dtypes.bfloat16, np.float32, np.int32]


@weft.jit
def copy(out, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@weft.jit
def copy_twice(out, other, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, v, mask=i < n)
    tl.store(other + i, v + v, mask=i < n)


@weft.jit
def double(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(x + i, v + v, mask=i < n)


@weft.jit
def copy_rows(out, x, rows, columns, out_row, x_row, x_column, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (i < rows) & (j < columns)
    tl.store(out + i * out_row + j, tl.load(x + i * x_row + j * x_column, mask=inside), mask=inside)


@weft.jit
def copy_in_a_loop(out, x, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@weft.jit
def store_then_load(out, x, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + 1)
    first = tl.load(out + tl.program_id(0) * BLOCK + (BLOCK - 1 - tl.arange(0, BLOCK)))
    tl.store(out + i, first * 2)


@weft.jit
def interleave(out, x, y, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    both = tl.interleave(tl.load(x + i), tl.load(y + i))
    tl.store(out + tl.program_id(0) * 2 * BLOCK + tl.arange(0, 2 * BLOCK), both)


@weft.jit
def adam(p, g, m, v, rate, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    gradient = tl.load(g + i, mask=mask)
    first = 0.9 * tl.load(m + i, mask=mask) + 0.1 * gradient
    second = 0.999 * tl.load(v + i, mask=mask) + 0.001 * gradient * gradient
    tl.store(m + i, first, mask=mask)
    tl.store(v + i, second, mask=mask)
    tl.store(p + i, tl.load(p + i, mask=mask) - rate * first / (tl.sqrt(second) + 1e-8), mask=mask)


@weft.jit
def step(a, b, c, x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    first = tl.load(x + i, mask=mask) + 1
    second = tl.load(y + i, mask=mask) * first
    tl.store(a + i, first, mask=mask)
    tl.store(b + i, second, mask=mask)
    tl.store(c + i, tl.load(z + i, mask=mask) - first * second, mask=mask)


@weft.jit
def added_by_a_pointer_in_memory(out, address, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(address).to(tl.pointer_type(tl.float32))
    tl.store(out + i, tl.load(x + i) + 1)


def numbers(n: int, dtype: Any, seed: int = 1) -> np.ndarray[Any, np.dtype[Any]]:
    return np.random.default_rng(seed).integers(-60, 60, n).astype(np.float32).astype(dtype)


def streamed(kernel: Any, grid: tuple[int, ...], *arguments: Any, processor: str, **values: Any) -> str:
    """Launch a kernel in a version where all that can be streamed is; gives its LLVM IR."""
    with Variant(PROCESSORS[processor], streams=True).applied() as options:
        compiled = weft.jit(kernel.fn)[grid](*arguments, **values, **options)
    text: str = compiled.asm["llir"]
    return text


def fresh(kernel: Any, processor: str) -> Any:
    """Launches of a kernel, compiled anew, in which all that can be streamed is."""
    made = weft.jit(kernel.fn)

    def launch(grid: tuple[int, ...], *arguments: Any, **values: Any) -> Any:
        with Variant(PROCESSORS[processor], streams=True).applied() as options:
            return made[grid](*arguments, **values, **options)

    return launch


@pytest.mark.parametrize("dtype", ELEMENTS, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.thinned(3)
def test_every_alignment(processor: str, dtype: Any) -> None:
    launch = fresh(copy, processor)
    n = 1024 + 200
    values = numbers(n, dtype)
    for misaligned in ALIGNMENTS:
        x, out = Watched(values, 64 - 4 - misaligned), Watched(np.zeros(n, dtype), misaligned)
        compiled = launch((5,), out.array, x.array, n, BLOCK=256)
        np.testing.assert_array_equal(out.array, values)
        assert out.intact() and "!nontemporal" in compiled.asm["llir"]


@pytest.mark.parametrize("processor", PROCESSORS)
def test_eight_bytes(processor: str) -> None:
    launch = fresh(copy, processor)
    values = numbers(700, np.float64)
    for misaligned in range(0, 64, 8):
        out = Watched(np.zeros(700), misaligned)
        launch((6,), out.array, values, 700, BLOCK=128)
        np.testing.assert_array_equal(out.array, values)
        assert out.intact()


@pytest.mark.parametrize("processor", PROCESSORS)
def test_two_stores_with_alignments_of_their_own(processor: str) -> None:
    launch = fresh(copy_twice, processor)
    values = numbers(1000, np.float32)
    for k, misaligned in enumerate(ALIGNMENTS):
        x, out = Watched(values, 0), Watched(np.zeros(1000, np.float32), misaligned)
        other = Watched(np.zeros(1000, np.float32), ALIGNMENTS[k * 7 % 16])
        launch((4,), out.array, other.array, x.array, 1000, BLOCK=256)
        np.testing.assert_array_equal(out.array, values)
        np.testing.assert_array_equal(other.array, 2 * values)
        assert out.intact() and other.intact()


@pytest.mark.parametrize("processor", PROCESSORS)
def test_in_place(processor: str) -> None:
    launch = fresh(double, processor)
    values = numbers(1000, np.float32)
    for misaligned in ALIGNMENTS:
        x = Watched(values, misaligned)
        launch((4,), x.array, 1000, BLOCK=256)
        np.testing.assert_array_equal(x.array, 2 * values)
        assert x.intact()


@pytest.mark.parametrize("shift", [-16, -5, -1, 1, 4, 16])
def test_shifted_onto_itself(shift: int) -> None:
    """Tiles of one program read before they write, so one program moves its tile whole."""
    launch = fresh(copy, "host")
    for misaligned in (0, 4, 16, 32):
        x = Watched(numbers(300, np.float32), misaligned)
        wanted = x.array.copy()
        start, end = (22, 22 + 256)
        wanted[start + shift : end + shift] = x.array[start:end]
        launch((1,), x.array[start + shift :], x.array[start:], 256, BLOCK=256)
        np.testing.assert_array_equal(x.array, wanted)
        assert x.intact()


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("tile", [(32, 32), (64, 16), (1, 256)])
@pytest.mark.thinned(4)
def test_rows_that_do_not_continue(processor: str, transposed: bool, tile: tuple[int, int]) -> None:
    launch = fresh(copy_rows, processor)
    rows, columns = 128, 256
    values = numbers(rows * columns, np.float32).reshape((columns, rows) if transposed else (rows, columns))
    wanted = values.T if transposed else values
    row, column = (1, rows) if transposed else (columns, 1)
    for out_row, misaligned in [(columns, 0), (columns, 16), (columns, 4), (columns + 4, 48), (columns + 1, 0)]:
        out = Watched(np.zeros((rows, out_row), np.float32), misaligned)
        grid = (rows // tile[0], columns // tile[1])
        sizes = {"ROWS": tile[0], "COLUMNS": tile[1]}
        launch(grid, out.array, values, rows, columns, out_row, row, column, **sizes)
        np.testing.assert_array_equal(out.array[:, :columns], wanted)
        assert out.intact() and not out.array[:, columns:].any()


@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_loop_in_the_program(processor: str) -> None:
    launch = fresh(copy_in_a_loop, processor)
    values = numbers(5000, np.float32)
    for misaligned in ALIGNMENTS:
        out = Watched(np.zeros(5000, np.float32), misaligned)
        launch((1,), out.array, values, 5000, BLOCK=512)
        np.testing.assert_array_equal(out.array, values)
        assert out.intact()


@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_load_sees_what_went_around_the_cache(processor: str) -> None:
    launch = fresh(store_then_load, processor)
    values = numbers(2048, np.float32)
    wanted = (values.reshape(8, 256)[:, ::-1] + 1).reshape(-1) * 2
    for misaligned in ALIGNMENTS:
        out = Watched(np.zeros(2048, np.float32), misaligned)
        launch((8,), out.array, values, BLOCK=256)
        np.testing.assert_array_equal(out.array, wanted)
        assert out.intact()


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64])
@pytest.mark.thinned(3)
def test_interleaved(processor: str, dtype: Any) -> None:
    launch = fresh(interleave, processor)
    x, y = numbers(1024, dtype), numbers(1024, dtype, 2)
    wanted = np.stack([x, y], axis=1).reshape(-1)
    for misaligned in range(0, 64, 8):
        out = Watched(np.zeros(2048, dtype), misaligned)
        launch((4,), out.array, x, y, BLOCK=256)
        np.testing.assert_array_equal(out.array, wanted)
        assert out.intact()


def test_what_is_loaded_too_stays_in_the_cache() -> None:
    """A line that is loaded is in the cache already, and a load of half of a line that is on its way out is slow."""
    x, out = np.zeros(4096, np.float32), np.zeros(4096, np.float32)
    address = np.array([x.ctypes.data])
    assert "!nontemporal" not in streamed(double, (16,), x, 4096, BLOCK=256, processor="host")
    assert "!nontemporal" not in streamed(adam, (16,), x, x + 1, x + 2, x + 3, 0.1, 4096, BLOCK=256, processor="host")
    assert "!nontemporal" not in streamed(store_then_load, (16,), out, x, BLOCK=256, processor="host")
    assert "!nontemporal" not in streamed(
        added_by_a_pointer_in_memory, (16,), out, address, BLOCK=256, processor="host"
    )
    overlapping = weft.jit(copy.fn)
    with Variant(streams=True).applied():
        compiled = overlapping[(16,)](out, x, 4096, BLOCK=256, assume_no_alias=False)
    assert "!nontemporal" not in compiled.asm["llir"]


def test_arrays_given_twice_stay_in_the_cache() -> None:
    """What is stored is compared with what is loaded at each launch."""
    x, out = np.zeros(4096, np.float32), np.zeros(4096, np.float32)
    text = streamed(copy, (16,), out, x, 4096, BLOCK=256, processor="host")
    assert "icmp ne ptr %p0, %p1" in text and "!nontemporal" in text
    n = (STREAM_BYTES // 12) + 4096
    these, others = ([Watched(np.ones(n, np.float32), 16 * k) for k in (1, 2, 3)] for _ in range(2))
    outs = [each.array for each in these]
    times = []
    for given in (outs, [each.array for each in others]):
        times.append(min(_seconds(lambda xs=given: step[(n // 4096,)](*outs, *xs, n, BLOCK=4096)) for _ in range(4)))
    assert times[0] < 4 * times[1], times  # 10 to 80 times as long around the cache
    assert all(each.intact() for each in these)


def _seconds(launch: Callable[[], Any]) -> float:
    begin = perf_counter()
    launch()
    return perf_counter() - begin


@pytest.mark.parametrize(("columns", "alignment"), [(16, 0), (64, 0), (128, 32), (256, 32), (512, 16), (1024, 16)])
@pytest.mark.skipif("avx2" not in PROCESSORS, reason="vectors of 32 bytes")
def test_short_rows_are_not_streamed(columns: int, alignment: int) -> None:
    """Rows of 512 bytes are if they begin at lines; of 2 KiB, anywhere."""
    x = np.zeros((8, 4096), np.float32)
    rows = {"ROWS": 8, "COLUMNS": columns}
    text = streamed(copy_rows, (1, 2), x + 1, x, 8, 4096, 4096, 4096, 1, processor="avx2", **rows)
    assert f"align {alignment}, !nontemporal" in text if alignment else "!nontemporal" not in text


def test_what_is_streamed() -> None:
    """Runs that go on in the next iteration need sixteen bytes; other pieces are not, but for whole lines."""
    x, out = np.zeros(4096, np.float32), np.zeros(4096, np.float32)
    text = streamed(copy, (16,), out, x, 4096, BLOCK=256, processor="host")
    assert "align 16, !nontemporal" in text
    rows = {"ROWS": 32, "COLUMNS": 32}
    text = streamed(copy_rows, (2, 2), out, x, 64, 64, 64, 1, 64, processor="narrow", **rows)
    assert "!nontemporal" not in text  # sixteen bytes of a line at a time, and then those of another row


@pytest.mark.parametrize("more", [0, 1, 300])
def test_a_launch_that_writes_much(more: int) -> None:
    """With the real limit: just below, just above."""
    n = STREAM_BYTES // 4 - 150 + more
    values = np.arange(n, dtype=np.int32)
    for misaligned in ALIGNMENTS if more == 300 else (0, 16, 20):
        out = Watched(np.zeros(n, np.int32), misaligned)
        copy[(weft.cdiv(n, 4096),)](out.array, values, n, BLOCK=4096)
        assert np.array_equal(out.array, values) and out.intact()


def test_a_transposed_copy_that_writes_much() -> None:
    size = 2600
    values = np.arange(size * size, dtype=np.int32).reshape(size, size)
    for misaligned in (0, 16, 36):
        out = Watched(np.zeros((size, size), np.int32), misaligned)
        grid = (weft.cdiv(size, 64), weft.cdiv(size, 64))
        copy_rows[grid](out.array, values, size, size, size, 1, size, ROWS=64, COLUMNS=64)
        assert np.array_equal(out.array, values.T) and out.intact()
