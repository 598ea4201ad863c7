"""Loads and stores with every kind of address and mask, against NumPy: what is read, what is written, and that nothing
else is touched. Arrays that are read lie between pages that may not be read; the bytes around those that are written
are compared.
"""

from __future__ import annotations

import platform
import re
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from backends.memory import Watched
from fuzz.arrays import Guarded

Array = np.ndarray[Any, np.dtype[Any]]
BLOCK = 64
DTYPES = [np.int8, np.float16, np.float32, np.int64, ml_dtypes.bfloat16, np.bool_, np.uint32, np.float64]


@weft.jit
def offsets(i, table, stride, PATTERN: tl.constexpr):
    if PATTERN == "contiguous":
        k = i
    elif PATTERN == "every other":
        k = i * 2
    elif PATTERN == "every third":
        k = i * 3
    elif PATTERN == "stride at run time":
        k = i * stride
    elif PATTERN == "transposed":
        k = i // 8 + i % 8 * 8
    elif PATTERN == "gathered":
        k = tl.load(table + i)
    elif PATTERN == "broadcast":
        k = i // 16
    elif PATTERN == "repeated":
        k = i % 16
    elif PATTERN == "one place":
        k = i * 0 + 5
    elif PATTERN == "reversed":
        k = 63 - i
    elif PATTERN == "reversed at run time":
        k = 63 * stride - i * stride
    elif PATTERN == "windowed":
        k = i // 8 * 5 + i % 8
    elif PATTERN == "swizzled":
        k = i ^ 5
    elif PATTERN == "far apart":
        k = i * 129
    return k


@weft.jit
def mask_of(i, table, n, MASK: tl.constexpr):
    if MASK == "head":
        m = i >= n
    elif MASK == "tail":
        m = i < n
    elif MASK == "middle":
        m = (i >= n) & (i < n + 20)
    elif MASK == "holes":
        m = i * 7 % 3 != 0
    elif MASK == "pairs":
        m = i // 2 % 2 == 1
    elif MASK == "found":
        m = tl.load(table + i) % 3 == 1
    elif MASK == "never":
        m = i < n - n
    elif MASK == "scalar":
        m = n > 5
    return m


@weft.jit
def read(out, x, table, stride, n, PATTERN: tl.constexpr, MASK: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    k = offsets(i, table, stride, PATTERN)
    if MASK == "all":
        tl.store(out + i, tl.load(x + k))
    elif MASK == "head":
        tl.store(out + i, tl.load(x + k, mask=mask_of(i, table, n, MASK)))
    else:
        tl.store(out + i, tl.load(x + k, mask=mask_of(i, table, n, MASK), other=1))


@weft.jit
def write(out, x, table, stride, n, PATTERN: tl.constexpr, MASK: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    k = offsets(i, table, stride, PATTERN)
    if MASK == "all":
        tl.store(out + k, tl.load(x + i))
    else:
        tl.store(out + k, tl.load(x + i), mask=mask_of(i, table, n, MASK))


I = np.arange(BLOCK)
TABLE = np.random.default_rng(2).integers(0, 90, BLOCK).astype(np.int32)
STRIDE, N = 3, 27
PATTERNS: dict[str, Array] = {
    "contiguous": I, "every other": I * 2, "every third": I * 3, "stride at run time": I * STRIDE,
    "transposed": I // 8 + I % 8 * 8, "gathered": TABLE, "broadcast": I // 16, "repeated": I % 16,
    "one place": I * 0 + 5, "reversed": 63 - I, "reversed at run time": (63 - I) * STRIDE,
    "windowed": I // 8 * 5 + I % 8, "swizzled": I ^ 5, "far apart": I * 129,
}  # fmt: skip
MASKS: dict[str, Array] = {
    "all": I >= 0, "head": I >= N, "tail": I < N, "middle": (I >= N) & (I < N + 20), "holes": I * 7 % 3 != 0,
    "pairs": I // 2 % 2 == 1, "found": TABLE % 3 == 1, "never": I < 0, "scalar": I >= 0,
}  # fmt: skip
WIDTHS: list[dict[str, Any]] = [{}, {"vector_bits": 128}, {"vector_bits": 256}]
CASES = [
    (pattern, mask, DTYPES[(k + which) % len(DTYPES)], WIDTHS[(k // 3 + which) % 3])
    for which, pattern in enumerate(PATTERNS)
    for k, mask in enumerate(MASKS)
]


def numbers(count: int, dtype: Any) -> Array:
    """Values to move: any number, so that no two are equal for long."""
    return np.random.default_rng(count).integers(-100, 100, count).astype(np.float32).astype(dtype)


def cases(which: int) -> pytest.MarkDecorator:
    """Half of the patterns with half of the masks, and the other half with the others; or (1) the other way round."""
    chosen = [case for k, case in enumerate(CASES) if (k % len(MASKS) + k // len(MASKS)) % 2 == which]
    names = [f"{p}-{m}-{np.dtype(d).name}" for p, m, d, _ in chosen]
    return pytest.mark.parametrize(("pattern", "mask", "dtype", "width"), chosen, ids=names)


@cases(0)
@pytest.mark.skipif(sys.platform == "win32", reason="pages are protected with mprotect")
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.thinned(3)
def test_loads(pattern: str, mask: str, dtype: Any, width: dict[str, Any]) -> None:
    k, m = PATTERNS[pattern], MASKS[mask]
    touched = k[m] if m.any() else np.array([8])
    first, last = int(touched.min()), int(touched.max())
    values = numbers(last + 1 - first, dtype)
    for at_end in (False, True):  # nothing may be read below `first` or above `last`
        memory = Guarded(values.nbytes, at_end)
        inside = memory.array(values.dtype)
        inside[:] = values
        start = _before(inside, first)
        out = Watched(np.zeros(BLOCK, dtype), 0 if at_end else np.dtype(dtype).itemsize)
        sizes = {"PATTERN": pattern, "MASK": mask, "BLOCK": BLOCK}
        read[(1,)](out.array, start, TABLE, STRIDE, N, **sizes, **width)
        other = np.array(0 if mask == "head" else 1, np.float32).astype(dtype)
        wanted = np.where(m, values[np.where(m, k - first, 0)], other)
        np.testing.assert_array_equal(out.array, wanted)
        assert out.intact()


class Pointer:
    """An address with a type, as kernels take it."""

    def __init__(self, address: int, dtype: Any, keep: Any) -> None:
        self.address, self.dtype, self.keep = address, weft_type(dtype), keep

    def data_ptr(self) -> int:
        return self.address


def weft_type(dtype: Any) -> Any:
    """The element type of the language for one of NumPy."""
    names = {"bool": "int1"}
    name = np.dtype(dtype).name
    return getattr(tl, names.get(name, name))


def _before(inside: Array, first: int) -> Pointer:
    return Pointer(inside.ctypes.data - first * inside.itemsize, inside.dtype, inside)


@cases(1)
@pytest.mark.thinned(3)
def test_stores(pattern: str, mask: str, dtype: Any, width: dict[str, Any]) -> None:
    k, m = PATTERNS[pattern], MASKS[mask]
    size = int(k.max()) + 3
    x = numbers(BLOCK, dtype)
    before = np.zeros(size, dtype) if dtype == np.bool_ else numbers(size, dtype)
    wanted = before.copy()
    for lane in I[m]:  # one after the other: the last of equal addresses stays
        wanted[k[lane]] = x[lane]
    item = np.dtype(dtype).itemsize
    for misaligned in (0, item, 3 * item, 64 - item):
        out = Watched(before, misaligned)
        sizes = {"PATTERN": pattern, "MASK": mask, "BLOCK": BLOCK}
        write[(1,)](out.array, x, TABLE, STRIDE, N, **sizes, **width)
        np.testing.assert_array_equal(out.array, wanted)
        assert out.intact()


@weft.jit
def add_at(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.int64])
def test_addresses_that_are_no_multiple_of_the_element(dtype: Any) -> None:
    """A byte more than a multiple: NumPy makes such arrays, and the instructions allow it."""
    for shift in range(1, np.dtype(dtype).itemsize + 1):
        raw = np.zeros(16 + 300 * np.dtype(dtype).itemsize, np.uint8)
        x = raw[shift : shift + 200 * np.dtype(dtype).itemsize].view(dtype)
        x[:] = np.arange(200) % 100
        add_at[(4,)](x, x, 200, BLOCK=64)
        np.testing.assert_array_equal(x, (np.arange(200) % 100 + 1).astype(dtype))
        assert not raw[:shift].any() and not raw[shift + x.nbytes :].any()


@pytest.mark.parametrize("misaligned", range(0, 64, 4))
@pytest.mark.parametrize("n", [1, 63, 64, 65, 200, 256])
def test_every_misaligned_base(n: int, misaligned: int) -> None:
    values = numbers(n, np.float32)
    x, y = Watched(values, misaligned), Watched(np.zeros(n, np.float32), 60 - misaligned)
    add_at[(4,)](x.array, y.array, n, BLOCK=64)
    np.testing.assert_array_equal(y.array, values + 1)
    assert x.intact() and y.intact()


@weft.jit
def rows(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0)
    tl.store(out + tl.program_id(0) * n + i, row - tl.sum(row, axis=0), mask=i < n)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="is about x86-64")
@pytest.mark.parametrize(("cpu", "around"), [("x86-64-v3", True), ("x86-64-v4", False)])
def test_masked_stores_are_branched_around_where_they_take_long(cpu: str, around: bool) -> None:
    """They took half of the time of a layer norm whose rows of 768 are tiles of 1,024 (Zen 3)."""
    x = np.zeros((2, 768), np.float32)
    text = rows.warmup(x, x, 768, BLOCK=1024, grid=(2,), cpu=cpu).asm["llir"]
    assert "masked.store" in text and ("llvm.vector.reduce.and" in text) == around


@pytest.mark.skipif(platform.machine() != "x86_64", reason="is about x86-64")
@pytest.mark.parametrize("cpu", ["x86-64-v3", "x86-64-v4"])
def test_loads_of_no_lanes_are_of_a_place_that_is_there(cpu: str) -> None:
    """A masked load from a page that is not there takes hundreds of cycles, though no lane is wanted (Zen 3)."""
    x = np.zeros((2, 768), np.float32)
    text = rows.warmup(x, x, 768, BLOCK=1024, grid=(2,), cpu=cpu).asm["llir"]
    addresses = re.findall(r"@llvm\.masked\.load[.\w]*\(ptr align 4 (%\w+)", text)
    assert addresses and all(re.search(rf"{a} = select i1 %\w+, ptr %\w+, ptr %\w+", text) for a in addresses)


@weft.jit
def sums_with_gaps(out, FIRST: tl.constexpr):
    i = tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :]
    x = tl.load(out + i)
    tl.store(out + i, tl.sort(x))
    at = tl.arange(0, 4)[:, None] * 17 + tl.arange(0, 16)[None, :]
    tl.store(out + at, x + 5, mask=(at < 1) | (not FIRST))


@pytest.mark.parametrize("first", [True, False])
def test_sums_that_are_stored_with_gaps_are_compiled_for_avx512(first: bool) -> None:
    """LLVM took the sum before and behind the shuffle that makes the gaps in turns, without end."""
    source = weft.ASTSource(sums_with_gaps, {"out": "*u8", "FIRST": "constexpr"}, {"FIRST": first})
    assert "arithmetic.fence" in weft.compile(source, "cpu", {"cpu": "sapphirerapids"}).asm["llir"]
