"""What `debug=True` finds in values: divisions by 0, shifts too far, gathers outside, floats that no integer holds,
sums that wrap; and what it leaves alone, because a mask leaves it out or it is meant so.

A line that is at fault is marked with `# fault`; the whole text of the error is compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import DeviceAssertionError, gluon
from weft.gluon import language as gl

SOURCE = Path(__file__).read_text().splitlines()


@weft.jit
def divides(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i, mask=i < n, other=0)
    b = tl.load(y + i, mask=i < n, other=0)
    tl.store(o + i, a // b, mask=i < n)  # fault


@weft.jit
def remains(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    d = tl.load(y + i).to(tl.uint32)
    q = tl.load(x + i).to(tl.uint32) % d  # fault
    tl.store(o + i, q, mask=i < n)


@weft.jit
def chooses(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.load(x + i), tl.load(y + i)
    good = (b != 0) & (a // b < n)
    tl.store(o + i, tl.where(b != 0, a % b, -1), mask=good)
    tl.store(o + i, tl.where(b == 0, -1, a // b))


@weft.jit
def gathers_up(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.int32)
    for k in range(3):
        if k < n:
            total += tl.load(x + i, mask=i < n, other=0) // tl.load(y + i, mask=i < n, other=0)  # fault
    tl.store(o + i, total, mask=i < n)


@weft.jit
def adds_up(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    q = tl.load(x + i) // tl.load(y + i)  # fault
    tl.store(o, tl.sum(tl.where(i < n, q, 0)))


@weft.jit
def adds_along(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    q = tl.load(x + i) // tl.load(y + i)  # fault
    tl.store(o + i, tl.cumsum(q), mask=i < n)


@weft.jit
def counts(x, y, o, n, B: tl.constexpr):
    d = tl.load(y + n)
    for k in range(n // d):  # fault
        tl.store(o + k, k)


@weft.jit
def guards(x, y, o, n, B: tl.constexpr):
    d = tl.load(y + 7)
    q = 0
    if d != 0:
        q = n // d
    while q > 0:
        tl.store(o + q, q)
        q -= 1


@weft.jit
def shifts(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i) << tl.load(y + i), mask=i < n)  # fault


@weft.jit
def shifts_back(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    wide = tl.load(x + i).to(tl.int64)
    tl.store(o + i, wide >> tl.load(y + i), mask=i < n)  # fault


@weft.jit
def picks(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.gather(tl.load(x + i), tl.load(y + i), 0)  # fault
    tl.store(o + i, v, mask=i < n)


@weft.jit
def converts(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i).to(tl.int32), mask=i < n)  # fault


@weft.jit
def converts_small(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i).to(tl.uint8), mask=i < n)  # fault


@weft.jit
def sums(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    rows = tl.load(x + i[:, None] * 0 + i[None, :])
    tl.store(o + i, tl.sum(rows, axis=1), mask=i < n)  # fault


@weft.jit
def scans(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.cumsum(tl.load(x + i), 0), mask=i < n)  # fault


@weft.jit
def multiplies(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.cumprod(tl.load(x + i), 0, reverse=True), mask=i < n)  # fault


@weft.jit
def together(a, b):
    return a + b  # fault


@weft.jit
def reduces(x, y, o, n, B: tl.constexpr):
    tl.store(o, tl.reduce(tl.load(x + tl.arange(0, B)), 0, together))


@weft.jit
def addresses(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = i + n // tl.load(y + i)  # fault
    tl.store(o + i, tl.load(x + at - n, mask=i < n))


@weft.jit
def hashes(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    h = tl.load(x + i).to(tl.uint32, bitcast=True)
    h ^= h << 13
    h ^= h >> 17
    h ^= h << 5
    h = tl.umulhi(h, 0x9E3779B9) + tl.sum(h | 0xF0000000, 0) % 7
    r = tl.randint(n, i) % 5 + (tl.rand(n, i) * 10).to(tl.int32)
    tl.store(o + i, (h % 11).to(tl.int32) + (r % 3).to(tl.int32))


@weft.jit
def products(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i[:, None] * B + i[None, :], mask=i[:, None] < n, other=0)
    d = tl.load(y + i[:, None], mask=i[:, None] < n, other=0)
    c = tl.dot((a // d).to(tl.float16), a.to(tl.float16))  # fault
    tl.store(o + i[:, None] * B + i[None, :], c.to(tl.int32), mask=i[:, None] < n)


@weft.jit
def scatters(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + tl.load(y + i), tl.load(x + i), mask=i < n)  # fault


@weft.jit
def strides(o, stride, B: tl.constexpr):
    i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    tl.store(o + i * stride + j, i * 0.5 + j)


@gluon.jit
def laid_out(x, y, o, n, B: gl.constexpr):
    first: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    second: gl.constexpr = gl.BlockedLayout([2], [32], [4], [0])
    i, j = gl.arange(0, B, layout=first), gl.arange(0, B, layout=second)
    q = gl.load(x + i, mask=i < n, other=0) // gl.load(y + i, mask=i < n, other=0)
    gl.store(o + j, gl.convert_layout(gl.where(n > 1000, 0, q), second), mask=j < n)


EIGHT = np.arange(8, dtype=np.int32)
ONES = np.ones(8, np.int32)


def but(array: Any, place: int, value: Any) -> Any:
    """An array with another value at one place."""
    array = array.copy()
    array[place] = value
    return array


@dataclass
class Fault:
    """A launch that has to fail: at a call on the marked line, with this text."""

    kernel: Any
    x: Any
    y: Any
    call: str
    headline: str
    told: str
    hint: str
    n: int = 8
    within: Any = None
    scalar: bool = False


DIVIDE = "divide by something else there: x // tl.where(y != 0, y, 1)"
REMAIN = "divide by something else there: x % tl.where(y != 0, y, 1)"
WIDEN = "widen what is combined first, x.to(tl.int64)"
COMBINE = "let the mask choose one of the places, or combine the values first, with tl.sum or tl.atomic_add"
OVERFLOW = "int32 overflow detected for operation "
BIG = np.full(8, 1 << 29, np.int32)

FAULTS: dict[str, Fault] = {
    "a division": Fault(
        divides, -EIGHT, but(ONES, 5, 0), "a // b", "integer division by 0", "at position [5]: -5 // 0", DIVIDE,
    ),
    "a remainder": Fault(
        remains, EIGHT - 2, but(ONES, 0, 0), "tl.load", "remainder of an integer division by 0",
        "at position [0]: 4294967294 % 0", REMAIN,
    ),
    "in a loop and a branch": Fault(
        gathers_up, EIGHT, but(ONES, 4, 0), "tl.load", "integer division by 0", "at position [4]: 4 // 0", DIVIDE, n=5,
    ),
    "a division whose result is added up": Fault(
        adds_up, -EIGHT, but(ONES, 5, 0), "tl.load", "integer division by 0", ": -5 // 0", DIVIDE, scalar=True,
    ),
    "a division before a scan": Fault(
        adds_along, EIGHT, but(ONES, 2, 0), "tl.load", "integer division by 0", "at position [2]: 2 // 0", DIVIDE, n=3,
    ),
    "the bound of a loop": Fault(
        counts, EIGHT, but(ONES, 7, 0), "n // d", "integer division by 0", ": 7 // 0", DIVIDE, n=7, scalar=True,
    ),
    "an address": Fault(
        addresses, EIGHT, but(ONES, 1, 0), "n // tl", "integer division by 0", "at position [1]: 3 // 0", DIVIDE, n=3,
    ),
    "a shift": Fault(
        shifts, EIGHT, but(EIGHT, 6, 32), "tl.load", "shift by the width of the type or more",
        "at position [6]: 32 bits are shifted by 32",
        "keep the amount below 32: n & 31, or tl.where(n < 32, x << n, 0)",
    ),
    "a shift by a negative amount": Fault(
        shifts_back, EIGHT, but(EIGHT, 2, -1), "wide >>", "shift by the width of the type or more",
        "at position [2]: 64 bits are shifted by -1",
        "keep the amount below 64: n & 63, or tl.where(n < 64, x << n, 0)",
    ),
    "a gather": Fault(
        picks, EIGHT, but(EIGHT, 7, 8), "tl.gather", "gather outside of the axis",
        "at position [7]: the index is 8, and the axis has elements 0 to 7",
        "clamp the index: tl.minimum(tl.maximum(i, 0), 7)",
    ),
    "a gather before the axis": Fault(
        picks, EIGHT, EIGHT - 1, "tl.gather", "gather outside of the axis",
        "at position [0]: the index is -1, and the axis has elements 0 to 7",
        "clamp the index: tl.minimum(tl.maximum(i, 0), 7)",
    ),
    "a float": Fault(
        converts, but(EIGHT.astype(np.float32), 3, 3e9), EIGHT, "tl.load", "float outside of the range of int32",
        "at position [3]: the value is 3000000000.0", "clamp it first: tl.clamp(x, -2147483648.0, 2147483520.0)",
    ),
    "a float that is no number": Fault(
        converts, but(EIGHT.astype(np.float64), 2, np.nan), EIGHT, "tl.load", "NaN converted to int32",
        "at position [2]: the value is nan", "choose an integer for it: tl.where(x == x, x, 0.0)",
    ),
    "a half": Fault(
        converts_small, but(EIGHT.astype(np.float16), 7, -1), EIGHT, "tl.load", "float outside of the range of uint8",
        "at position [7]: the value is -1.0", "clamp it first: tl.clamp(x, 0.0, 255.0)",
    ),
    "a sum": Fault(
        sums, BIG, EIGHT, "tl.sum", OVERFLOW + "sum", "at position [0]: the exact result is 4294967296", WIDEN,
    ),
    "a scan": Fault(
        scans, -BIG, EIGHT, "tl.cumsum", OVERFLOW + "sum", "at position [4]: the exact result is -2684354560", WIDEN,
    ),
    "a product": Fault(
        multiplies, BIG >> 15, EIGHT, "tl.cumprod", OVERFLOW + "product",
        "at position [0]: the exact result is above 2147483647", WIDEN,
    ),
    "two values at one address": Fault(
        scatters, EIGHT + 40, but(EIGHT, 2, 6), "tl.store",
        "two places of a tile store different values to one address",
        "at position [2]: 42 is stored there, and 46 by another place", COMBINE, n=7,
    ),
    "the kernel's own sum": Fault(
        reduces, BIG, EIGHT, "a + b", OVERFLOW + "sum", ": the exact result is 4294967296", WIDEN, within=together,
        scalar=True,
    ),
}  # fmt: skip

CLEAN: dict[str, tuple[Any, Any, Any, int]] = {
    "a division that a mask leaves out": (divides, EIGHT, but(ONES, 5, 0), 5),
    "divisors that were not loaded": (divides, EIGHT, ONES, 3),
    "a remainder": (remains, EIGHT, ONES, 8),
    "a division that is not added up": (adds_up, EIGHT, but(ONES, 5, 0), 5),
    "sums before a division": (adds_along, EIGHT, but(ONES, 5, 0), 5),
    "a choice": (chooses, EIGHT, but(ONES, 5, 0), 8),
    "in a loop and a branch": (gathers_up, EIGHT, but(ONES, 5, 0), 4),
    "a bound": (counts, EIGHT, ONES, 7),
    "a branch": (guards, EIGHT, but(ONES, 7, 0), 5),
    "shifts": (shifts, EIGHT, EIGHT + 24, 8),
    "a shift that a mask leaves out": (shifts, EIGHT, but(EIGHT, 6, 77), 6),
    "a gather": (picks, EIGHT, 7 - EIGHT, 8),
    "a gather that a mask leaves out": (picks, EIGHT, but(EIGHT, 7, 99), 7),
    "the ends of int32": (converts, np.array([-(2.0**31), 2**31 - 0.5, -0.5, 1] * 2), EIGHT, 8),
    "the ends of int32 in single": (converts, np.array([-(2.0**31), 2147483520] * 4, np.float32), EIGHT, 8),
    "the ends of uint8": (converts_small, np.array([-0.9, 255.9, 0, 1] * 2, np.float32), EIGHT, 8),
    "an infinity that a mask leaves out": (converts, but(EIGHT.astype(np.float32), 7, -np.inf), EIGHT, 7),
    "the greatest sum": (sums, np.array([2**31 - 8, 1, 1, 1, 1, 1, 1, 1], np.int32), EIGHT, 8),
    "a sum that goes beyond on the way": (reduces, np.array([1, -1] * 4, np.int32) * (1 << 30), EIGHT, 8),
    "a sum that a mask leaves out": (sums, BIG, EIGHT, 0),
    "a scan": (scans, BIG >> 3, EIGHT, 8),
    "a product that is too large on the way": (
        multiplies, np.array([1, 1, 1, 1, 1, -1, 8, 1 << 28], np.int32), EIGHT, 6,
    ),
    "a product with a zero": (multiplies, np.array([1, 2, 3, 0, 1 << 20, 1, 1, 1], np.int32), EIGHT, 8),
    "one value at one address": (scatters, but(EIGHT, 2, 6), but(EIGHT, 2, 6), 8),
    "two values of which a mask leaves out one": (scatters, EIGHT, but(EIGHT, 2, 6), 6),
    "hashes": (hashes, EIGHT - 4, EIGHT, 8),
}  # fmt: skip


def expected(fault: Fault) -> str:
    """The text of the error, found from the source of the kernel."""
    first = (fault.within or fault.kernel).fn.__code__.co_firstlineno - 1
    number = next(n for n in range(first, len(SOURCE)) if SOURCE[n].endswith("# fault"))
    column = SOURCE[number].index(fault.call)
    place, _, told = fault.told.partition(": ")
    where = f", {place} of a tile of shape [8]" if place else ""
    return (
        f"{__file__}:{number + 1}:{column + 1}: error: device assertion failed: {fault.headline}\n"
        f"{number + 1:>5} | {SOURCE[number]}\n"
        f"      | {' ' * column}^\n"
        f"note: in program (0, 0, 0) of kernel `{fault.kernel.__name__}`{where}: {told}\n"
        f"hint: {fault.hint}"
    )


def launch(kernel: Any, x: Any, y: Any, n: int, **options: Any) -> Any:
    out = np.full(8, -9, np.int32)
    kernel[(1,)](x, y, out, n, B=8, **options)
    return out


IN_SIMULATOR = [
    *("a division", "in a loop and a branch", "the bound of a loop", "a gather", "a float", "a sum"),
    "two values at one address",
]


@pytest.mark.parametrize(
    ("name", "target"), [*((n, "cpu") for n in FAULTS), *((n, "sim:cuda:80") for n in IN_SIMULATOR)]
)
def test_a_fault_is_found(name: str, target: str) -> None:
    fault = FAULTS[name]
    with pytest.raises(DeviceAssertionError) as caught:
        launch(fault.kernel, fault.x, fault.y, fault.n, debug=True, target=target)
    assert str(caught.value) == expected(fault)


CLEAN_IN_SIMULATOR = ["divisors that were not loaded", "a choice", "in a loop and a branch", "a branch", "hashes"]


@pytest.mark.parametrize(
    ("name", "target"), [*((n, "cpu") for n in CLEAN), *((n, "sim:cuda:90") for n in CLEAN_IN_SIMULATOR)]
)
@pytest.mark.thinned(3)
def test_a_clean_launch_does_the_same(name: str, target: str) -> None:
    kernel, x, y, n = CLEAN[name]
    np.testing.assert_array_equal(launch(kernel, x, y, n, debug=True, target=target), launch(kernel, x, y, n))


def test_assertions_of_a_gpu() -> None:
    for kernel, x, what in (
        (divides, EIGHT, "integer division by 0"),
        (sums, EIGHT, OVERFLOW + "sum"),
        (converts, EIGHT.astype(np.float32), "float outside of the range of int32"),
    ):
        ptx = kernel.warmup(x, EIGHT, EIGHT, 8, B=8, grid=(1,), target="cuda:90", debug=True).asm["ptx"]
        assert "__assertfail" in ptx
        assert ", ".join(str(ord(c)) for c in what) in ptx
        plain = kernel.warmup(x, EIGHT, EIGHT, 8, B=8, grid=(1,), target="cuda:90").asm["ptx"]
        assert "__assertfail" not in plain


def test_rows_of_a_product() -> None:
    x = np.ones((16, 16), np.int32)
    y = np.ones(16, np.int32)
    out = np.zeros((16, 16), np.int32)
    products[(1,)](x, y, out, 10, B=16, debug=True)
    assert (out[:10] == 10).all() and (out[10:] == 0).all()
    y[3] = 0
    with pytest.raises(DeviceAssertionError, match=r"at position \[3, 0\] of a tile of shape \[16, 16\]: 1 // 0"):
        products[(1,)](x, y, out, 10, B=16, debug=True)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.uint8])
def test_rows_that_overlap(dtype: Any) -> None:
    out = np.zeros(64, dtype)
    strides[(1,)](out, 8, B=8, debug=True)
    told = "7 is stored there, and 0" if dtype == np.uint8 else "7.0 is stored there, and 0.5"
    with pytest.raises(DeviceAssertionError, match=rf"at position \[0, 7\] of a tile of shape \[8, 8\]: {told}"):
        strides[(1,)](out, 7, B=8, debug=True)


def test_a_gluon_kernel() -> None:
    x, y, out = np.arange(256, dtype=np.int32), but(np.ones(256, np.int32), 100, 0), np.zeros(256, np.int32)
    laid_out[(1,)](x, y, out, 100, B=256, target="sim:cuda:80", debug=True)
    np.testing.assert_array_equal(out[:100], x[:100])
    with pytest.raises(DeviceAssertionError, match=r"at position \[100\] of a tile of shape \[256\]: 100 // 0"):
        laid_out[(1,)](x, y, out, 101, B=256, target="sim:cuda:80", debug=True)
    made = laid_out.warmup(x, y, out, 101, B=256, grid=(1,), target="cuda:90", debug=True)
    assert "__assertfail" in made.asm["ptx"] and "weft.check" not in made.asm["ttir"]


def test_nothing_is_checked_without_sanitize_overflow() -> None:
    for name in ("a division", "a shift", "a gather", "a float", "a sum", "the bound of a loop"):
        fault = FAULTS[name]
        if name == "the bound of a loop":
            launch(fault.kernel, fault.x, fault.y, fault.n, debug=True, sanitize_overflow=False)
            continue
        with_checks = launch(fault.kernel, fault.x, fault.y, fault.n, debug=True, sanitize_overflow=False)
        np.testing.assert_array_equal(with_checks, launch(fault.kernel, fault.x, fault.y, fault.n))
