"""What `debug=True` finds (accesses outside of arrays, integers that wrap, false hints), and what it leaves alone.

A faulty kernel marks the line that is at fault with `# fault`; the whole text of the error is compared.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import DeviceAssertionError, OutOfBoundsError
from weft.compiler import ASTSource
from weft.runtime.descriptor import TensorDescriptor

LOAD = "there is no mask: tl.load(pointer, mask=offsets < size, other=0); for a block pointer, boundary_check=(0, 1)"
STORE = "there is no mask: tl.store(pointer, value, mask=offsets < size); for a block pointer, boundary_check=(0, 1)"
ATOMIC = "there is no mask: tl.atomic_add(pointer, value, mask=offsets < size)"
SWAP = "tl.atomic_cas takes no mask: put it into an `if`, or clamp the offsets with tl.minimum"
MASK = "the mask is true at that place: compare it with the sizes and the strides of the array"
WIDEN = (
    "widen an operand first, x.to(tl.int64); where wrapping is meant, use tl.add, tl.sub or tl.mul with "
    "sanitize_overflow=False"
)
GUARD = 64
"""Elements on both sides of every array, which nothing may touch."""


def guarded(count: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """0, 1, ... between two regions of sevens."""
    whole = np.full(count + 2 * GUARD, 7, dtype)
    whole[GUARD : GUARD + count] = np.arange(count)
    return whole[GUARD : GUARD + count]


def untouched(array: np.ndarray[Any, Any]) -> bool:
    """Whether both regions around an array (or a view of one) are as they were."""
    while array.base is not None:
        array = array.base
    return bool((array[:GUARD] == 7).all() and (array[-GUARD:] == 7).all())


# --------------------------------------------------------------------------------------------------------------------
# Kernels


@weft.jit
def no_mask(x, out, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + o)  # fault
    tl.store(out + o, v, mask=o < n)


@weft.jit
def wide_mask(x, out, n, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o, mask=o < n, other=0)  # fault
    tl.store(out + o, v, mask=o < 4)


@weft.jit
def store_no_mask(x, out, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + o, mask=o < n, other=0)
    tl.store(out + o, v)  # fault


@weft.jit
def scalars(x, out, i, j):
    v = tl.load(x + i)  # fault
    tl.store(out + j, v)


@weft.jit
def scalar_store(x, out, i, j):
    v = tl.load(x + i)
    tl.store(out + j, v)  # fault


@weft.jit
def rows(x, out, stride, m, n, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    mask = (i[:, None] < m) & (j[None, :] < n)
    v = tl.load(x + i[:, None] * stride + j[None, :], mask=mask, other=0)  # fault
    tl.store(out + i[:, None] * N + j[None, :], v)


@weft.jit
def gathers(x, index, out, n, B: tl.constexpr):
    o = tl.arange(0, B)
    at = tl.load(index + o, mask=o < n, other=0)
    tl.store(out + o, tl.load(x + at), mask=o < n)  # fault


@weft.jit
def scatters(x, index, out, n, B: tl.constexpr):
    o = tl.arange(0, B)
    at = tl.load(index + o, mask=o < n, other=0)
    tl.store(out + at, tl.load(x + o, mask=o < n), mask=o < n)  # fault


@weft.jit
def adds(x, index, B: tl.constexpr):
    at = tl.load(index + tl.arange(0, B))
    tl.atomic_add(x + at, 1)  # fault


@weft.jit
def adds_masked(x, n, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.atomic_max(x + o, 100, mask=o < n)  # fault


@weft.jit
def swaps(x, out, n, B: tl.constexpr):
    o = tl.arange(0, B)
    old = tl.atomic_cas(x + o, 3, 50)  # fault
    tl.store(out + o, old, mask=o < n)


@weft.jit
def swaps_scalar(x, out, i):
    tl.store(out, tl.atomic_cas(x + i, 3, 50))  # fault


@weft.jit
def loops(x, out, steps, n, B: tl.constexpr):
    p = x + tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for k in range(steps):
        total += tl.load(p)  # fault
        p += B
    tl.store(out + tl.arange(0, B), total)


@weft.jit
def walks(x, out, last):
    k = 0
    p = x
    total = 0.0
    while k < last:
        total += tl.load(p)  # fault
        p += 1
        k += 1
    tl.store(out, total)


@weft.jit
def blocks(x, out, n, at, B: tl.constexpr):
    p = tl.make_block_ptr(x, (n,), (1,), (at,), (B,), (0,))
    v = tl.load(p)  # fault
    tl.store(tl.make_block_ptr(out, (B,), (1,), (0,), (B,), (0,)), v)


@weft.jit
def blocks_checked(x, out, n, at, B: tl.constexpr):
    p = tl.make_block_ptr(x, (n,), (1,), (at,), (B,), (0,))
    v = tl.load(p, boundary_check=(0,))  # fault
    tl.store(tl.make_block_ptr(out, (B,), (1,), (0,), (B,), (0,)), v)


@weft.jit
def describes(x, out, m, n, i, B: tl.constexpr):
    d = tl.make_tensor_descriptor(x, (m, n), (n, 1), (B, B))
    v = d.load([i, 0])  # fault
    o = tl.arange(0, B)
    tl.store(out + o[:, None] * B + o[None, :], v)


@weft.jit
def described(x, out, i, B: tl.constexpr):
    v = x.load([i, 0])  # fault
    o = tl.arange(0, B)
    tl.store(out + o[:, None] * B + o[None, :], v)


@weft.jit
def chooses(x, y, out, n, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(tl.where(o < n, x + o, y + o - n))  # fault
    tl.store(out + o, v)


@weft.jit
def branches(x, y, out, flag, i):
    if flag > 2:
        p = x + i
    else:
        p = y + i
    tl.store(out, tl.load(p))  # fault


@weft.jit
def inner(p, o):
    return tl.load(p + o)  # fault


@weft.jit
def calls(x, out, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out + o, inner(x, o + 1))


@weft.jit
def pairs(both, out, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out + o, tl.load(both[1] + o))  # fault


@weft.jit
def products(out, n, B: tl.constexpr):
    o = tl.arange(0, B)
    v = o * n  # fault
    tl.store(out + o, v)


@weft.jit
def sums(out, n, B: tl.constexpr):
    o = tl.arange(0, B)
    v = o + n  # fault
    tl.store(out + o, v)


@weft.jit
def differences(out, n):
    v = -5 - n  # fault
    tl.store(out, v)


@weft.jit
def row_offsets(x, out, stride, B: tl.constexpr):
    row = tl.program_id(0) * stride  # fault
    tl.store(out + tl.arange(0, B), tl.load(x + row % 8 + tl.arange(0, B)))


@weft.jit
def small_sums(x, out, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o)
    tl.store(out + o, v + v)  # fault


@weft.jit
def multiple(x, out, n, B: tl.constexpr):
    n = tl.multiple_of(n, 16)  # fault
    tl.store(out + tl.arange(0, B), tl.load(x + n + tl.arange(0, B)))


@weft.jit
def multiple_tile(index, out, B: tl.constexpr):
    o = tl.load(index + tl.arange(0, B))
    o = tl.multiple_of(o, 8)  # fault
    tl.store(out + tl.arange(0, B), o)


@weft.jit
def contiguous(index, out, B: tl.constexpr):
    o = tl.load(index + tl.arange(0, B))
    o = tl.max_contiguous(o, 8)  # fault
    tl.store(out + tl.arange(0, B), o)


@weft.jit
def constant(index, out, B: tl.constexpr):
    o = tl.load(index + tl.arange(0, B))
    o = tl.max_constancy(o, 4)  # fault
    tl.store(out + tl.arange(0, B), o)


@weft.jit
def contiguous_rows(index, out, stride, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    o = tl.load(index + i)
    o = tl.max_contiguous(o, (1, N))  # fault
    tl.store(out + i, o)


@weft.jit
def asserted(x, n, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o)
    tl.device_assert(v < n, "too large", mask=o < B - 1)  # fault
    tl.store(x + o, v)


@weft.jit
def assumes(x, n):
    tl.assume(n > 3)  # fault
    tl.store(x, n)


# --------------------------------------------------------------------------------------------------------------------
# Faulty launches


@dataclass
class Fault:
    """A launch that has to fail: at a call on the marked line, with this text."""

    kernel: Any
    args: Callable[[], tuple[Any, ...]]
    constants: dict[str, int]
    call: str
    headline: str
    note: str
    hint: str
    grid: tuple[int, ...] = (1,)
    within: Any = None
    """The function that the marked line is in, if it is not the kernel."""


def far(kernel: str, program: int, position: list[int], shape: list[int]) -> str:
    return f"in program ({program}, 0, 0) of kernel `{kernel}`, at position {position} of a tile of shape {shape}"


def past(what: str, index: int, name: str, last: int, first: int = 0) -> str:
    beyond = f"{index - last} past its last" if index > last else f"{first - index} before its first"
    return f"{what} of element {index} of `{name}`, which has elements {first} to {last}: {beyond}"


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


FAULTS: dict[str, Fault] = {
    "a load without a mask": Fault(
        no_mask, lambda: (guarded(100), guarded(100), 100), {"B": 32}, "tl.load", past("load", 100, "x", 99),
        far("no_mask", 3, [4], [32]), LOAD, (4,),
    ),
    "a load of another type": Fault(
        no_mask, lambda: (guarded(20, np.int8), guarded(20, np.int8), 20), {"B": 32}, "tl.load",
        past("load", 20, "x", 19), far("no_mask", 0, [20], [32]), LOAD,
    ),
    "a load of halves": Fault(
        no_mask, lambda: (guarded(33, np.float16), guarded(33, np.float16), 33), {"B": 64}, "tl.load",
        past("load", 33, "x", 32), far("no_mask", 0, [33], [64]), LOAD,
    ),
    "an empty array": Fault(
        no_mask, lambda: (guarded(4)[:0], guarded(8), 8), {"B": 8}, "tl.load",
        "load of element 0 of `x`, which is empty", far("no_mask", 0, [0], [8]), LOAD,
    ),
    "a mask that is too wide": Fault(
        wide_mask, lambda: (guarded(10), guarded(10), 12), {"B": 16}, "tl.load", past("load", 10, "x", 9),
        far("wide_mask", 0, [10], [16]), MASK,
    ),
    "a store without a mask": Fault(
        store_no_mask, lambda: (guarded(50), guarded(50), 50), {"B": 32}, "tl.store", past("store", 50, "out", 49),
        far("store_no_mask", 1, [18], [32]), STORE, (2,),
    ),
    "a scalar load after the end": Fault(
        scalars, lambda: (guarded(5), guarded(5), 9, 0), {}, "tl.load", past("load", 9, "x", 4),
        "in program (0, 0, 0) of kernel `scalars`", LOAD,
    ),
    "a scalar store before the beginning": Fault(
        scalar_store, lambda: (guarded(5), guarded(5), 0, -3), {}, "tl.store", past("store", -3, "out", 4),
        "in program (0, 0, 0) of kernel `scalar_store`", STORE,
    ),
    "an array that runs backwards": Fault(
        no_mask, lambda: (guarded(16)[::-1], guarded(16), 16), {"B": 16}, "tl.load", past("load", 1, "x", 0, -15),
        far("no_mask", 0, [1], [16]), LOAD,
    ),
    "every other element": Fault(
        no_mask, lambda: (guarded(32)[::2], guarded(32), 32), {"B": 32}, "tl.load", past("load", 31, "x", 30),
        far("no_mask", 0, [31], [32]), LOAD,
    ),
    "a stride that is too large": Fault(
        rows, lambda: (guarded(40).reshape(4, 10), guarded(64), 12, 4, 10), {"M": 4, "N": 16}, "tl.load",
        past("load", 40, "x", 39), far("rows", 0, [3, 4], [4, 16]), MASK,
    ),
    "columns of a view": Fault(
        rows, lambda: (guarded(40).reshape(4, 10)[:, 2:7], guarded(64), 10, 4, 6), {"M": 4, "N": 16}, "tl.load",
        past("load", 35, "x", 34), far("rows", 0, [3, 5], [4, 16]), MASK,
    ),
    "a gather": Fault(
        gathers, lambda: (guarded(10), ints(1, 9, 10, 3), guarded(4), 4), {"B": 4}, "tl.load", past("load", 10, "x", 9),
        far("gathers", 0, [2], [4]), LOAD,
    ),
    "a gather before the beginning": Fault(
        gathers, lambda: (guarded(10), ints(1, 9, 3, -1), guarded(4), 4), {"B": 4}, "tl.load", past("load", -1, "x", 9),
        far("gathers", 0, [3], [4]), LOAD,
    ),
    "a scatter": Fault(
        scatters, lambda: (guarded(4), ints(1, 12, 10, 3), guarded(10), 4), {"B": 4}, "tl.store",
        past("store", 12, "out", 9), far("scatters", 0, [1], [4]), MASK,
    ),
    "an atomic": Fault(
        adds, lambda: (guarded(10, np.int32), ints(1, 9, 10, 3)), {"B": 4}, "tl.atomic_add",
        past("atomic", 10, "x", 9), far("adds", 0, [2], [4]), ATOMIC,
    ),
    "an atomic with a mask": Fault(
        adds_masked, lambda: (guarded(10, np.int32), 11), {"B": 16}, "tl.atomic_max", past("atomic", 10, "x", 9),
        far("adds_masked", 0, [10], [16]), MASK,
    ),
    "compare and swap": Fault(
        swaps, lambda: (guarded(10, np.int32), guarded(10, np.int32), 10), {"B": 16}, "tl.atomic_cas",
        past("atomic", 10, "x", 9), far("swaps", 0, [10], [16]), SWAP,
    ),
    "compare and swap of a scalar": Fault(
        swaps_scalar, lambda: (guarded(10, np.int32), guarded(10, np.int32), 10), {}, "tl.atomic_cas",
        past("atomic", 10, "x", 9), "in program (0, 0, 0) of kernel `swaps_scalar`", SWAP,
    ),
    "one step too many": Fault(
        loops, lambda: (guarded(60), guarded(16), 4, 60), {"B": 16}, "tl.load", past("load", 60, "x", 59),
        far("loops", 0, [12], [16]), LOAD,
    ),
    "a while loop": Fault(
        walks, lambda: (guarded(6), guarded(6), 7), {}, "tl.load", past("load", 6, "x", 5),
        "in program (0, 0, 0) of kernel `walks`", LOAD,
    ),
    "a block pointer that is not checked": Fault(
        blocks, lambda: (guarded(20), guarded(16), 20, 8), {"B": 16}, "tl.load", past("load", 20, "x", 19),
        far("blocks", 0, [12], [16]), LOAD,
    ),
    "a block pointer with a wrong shape": Fault(
        blocks_checked, lambda: (guarded(20), guarded(16), 22, 8), {"B": 16}, "tl.load", past("load", 20, "x", 19),
        far("blocks_checked", 0, [12], [16]), MASK,
    ),
    "a descriptor with a wrong shape": Fault(
        describes, lambda: (guarded(64), guarded(64), 9, 8, 6), {"B": 8}, "d.load", past("load", 64, "x", 63),
        far("describes", 0, [2, 0], [8, 8]), MASK,
    ),
    "a descriptor of a launch": Fault(
        described, lambda: (TensorDescriptor(guarded(64), [9, 8], [8, 1], [8, 8]), guarded(64), 6), {"B": 8}, "x.load",
        past("load", 64, "x", 63), far("described", 0, [2, 0], [8, 8]), MASK,
    ),
    "one of two arrays": Fault(
        chooses, lambda: (guarded(8), guarded(4), guarded(16), 8), {"B": 16}, "tl.load",
        past("load", 4, "y", 3) + "; nor is it an element of `x`", far("chooses", 0, [12], [16]), LOAD,
    ),
    "one of two branches": Fault(
        branches, lambda: (guarded(8), guarded(4), guarded(1), 3, 8), {}, "tl.load",
        past("load", 8, "x", 7) + "; nor is it an element of `y`", "in program (0, 0, 0) of kernel `branches`", LOAD,
    ),
    "inside of a function": Fault(
        calls, lambda: (guarded(16), guarded(16)), {"B": 16}, "tl.load", past("load", 16, "x", 15),
        far("calls", 0, [15], [16]), LOAD, within=inner,
    ),
    "a member of a tuple": Fault(
        pairs, lambda: ((guarded(16), guarded(12)), guarded(16)), {"B": 16}, "tl.load", past("load", 12, "both_1", 11),
        far("pairs", 0, [12], [16]), LOAD,
    ),
    "a product that wraps": Fault(
        products, lambda: (guarded(16, np.int32), 1 << 28), {"B": 16}, "o * n",
        "device assertion failed: int32 overflow detected for operation mul",
        far("products", 0, [8], [16]) + ": the exact result is 2147483648", WIDEN,
    ),
    "a sum that wraps": Fault(
        sums, lambda: (guarded(16, np.int32), (1 << 31) - 4), {"B": 16}, "o + n",
        "device assertion failed: int32 overflow detected for operation add",
        far("sums", 0, [4], [16]) + ": the exact result is 2147483648", WIDEN,
    ),
    "a difference that wraps": Fault(
        differences, lambda: (guarded(1, np.int32), (1 << 31) - 4), {}, "-5 - n",
        "device assertion failed: int32 overflow detected for operation sub",
        "in program (0, 0, 0) of kernel `differences`: the exact result is -2147483649", WIDEN,
    ),
    "an offset of a row that wraps": Fault(
        row_offsets, lambda: (guarded(16), guarded(8), 1 << 30), {"B": 8}, "tl.program_id(0) * stride",
        "device assertion failed: int32 overflow detected for operation mul",
        "in program (2, 0, 0) of kernel `row_offsets`: the exact result is 2147483648", WIDEN, (3,),
    ),
    "a sum of bytes that wraps": Fault(
        small_sums, lambda: (guarded(128, np.int8), guarded(128, np.int8)), {"B": 128}, "v + v",
        "device assertion failed: int8 overflow detected for operation add",
        far("small_sums", 0, [64], [128]) + ": the exact result is 128", WIDEN,
    ),
    "no multiple": Fault(
        multiple, lambda: (guarded(64), guarded(16), 8), {"B": 16}, "tl.multiple_of",
        "device assertion failed: the hint multiple_of(16) is false",
        "in program (0, 0, 0) of kernel `multiple`: the value is 8", "",
    ),
    "a tile of no multiples": Fault(
        multiple_tile, lambda: (ints(0, 1, 2, 3, 16, 17, 20, 21), guarded(8, np.int32)), {"B": 8}, "tl.multiple_of",
        "device assertion failed: the hint multiple_of(8) is false",
        far("multiple_tile", 0, [6], [8]) + ": the value is 20", "",
    ),
    "not contiguous": Fault(
        contiguous, lambda: (np.arange(32, dtype=np.int32) % 12, guarded(32, np.int32)), {"B": 32}, "tl.max_contiguous",
        "device assertion failed: the hint max_contiguous(8) is false",
        far("contiguous", 0, [12], [32]) + ": the value is 0", "",
    ),
    "not constant": Fault(
        constant, lambda: (np.arange(32, dtype=np.int32) // 5, guarded(32, np.int32)), {"B": 32}, "tl.max_constancy",
        "device assertion failed: the hint max_constancy(4) is false",
        far("constant", 0, [5], [32]) + ": the value is 1", "",
    ),
    "rows that are not contiguous": Fault(
        contiguous_rows, lambda: (np.arange(32, dtype=np.int32) // 31, guarded(32, np.int32), 1), {"M": 4, "N": 8},
        "tl.max_contiguous", "device assertion failed: the hint max_contiguous(8) along axis 1 is false",
        far("contiguous_rows", 0, [0, 1], [4, 8]) + ": the value is 0", "",
    ),
    "a false assumption": Fault(
        assumes, lambda: (guarded(1, np.int32), 2), {}, "tl.assume",
        "device assertion failed: what is assumed is false",
        "in program (0, 0, 0) of kernel `assumes`: 2 > 3 does not hold", "",
    ),
    "an assertion of the kernel's own": Fault(
        asserted, lambda: (guarded(16, np.int32), 12), {"B": 16}, "tl.device_assert",
        "device assertion failed: too large", far("asserted", 0, [12], [16]) + ": 12 < 12 does not hold", "",
    ),
}  # fmt: skip


def expected(fault: Fault) -> str:
    """The text of the error, found from the source of the kernel."""
    function = fault.within or fault.kernel
    lines = Path(__file__).read_text().splitlines()
    first = function.fn.__code__.co_firstlineno - 1
    number = next(n for n in range(first, len(lines)) if lines[n].endswith("# fault"))
    column = lines[number].index(fault.call)
    text = [
        f"{__file__}:{number + 1}:{column + 1}: error: {fault.headline}",
        f"{number + 1:>5} | {lines[number]}",
        f"      | {' ' * column}^",
        f"note: {fault.note}",
    ]
    return "\n".join([*text, f"hint: {fault.hint}"] if fault.hint else text)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name: str) -> None:
    fault = FAULTS[name]
    args = fault.args()
    with pytest.raises(DeviceAssertionError) as caught:
        fault.kernel[fault.grid](*args, **fault.constants, debug=True)
    assert str(caught.value) == expected(fault)
    assert isinstance(caught.value, OutOfBoundsError) == (" of element " in fault.headline)
    for array in args:
        if isinstance(array, np.ndarray) and array.base is not None:
            assert untouched(array)


@weft.jit
def promises(x, n, own):
    n = tl.multiple_of(n, 16)
    tl.assume(n > 100)
    tl.device_assert(own == 0, "its own")
    tl.store(x, n)


def test_without_sanitize_overflow_the_own_assertions_are_left() -> None:
    """As PyTorch's Inductor compiles: its products say multiple_of of rows that wrap, and want device_assert."""
    x = np.zeros(1, np.int32)
    promises[(1,)](x, 7, 0, debug=True, sanitize_overflow=False)
    assert x[0] == 7
    with pytest.raises(DeviceAssertionError, match="its own"):
        promises[(1,)](x, 7, 1, debug=True, sanitize_overflow=False)
    with pytest.raises(DeviceAssertionError, match=r"multiple_of\(16\) is false"):
        promises[(1,)](x, 7, 0, debug=True)


@weft.jit
def looked_up(x, out, n, B: tl.constexpr):
    at = tl.load(x + tl.arange(0, B))
    tl.device_assert((at >= 0) & (at < n), "index out of bounds")
    tl.store(out + tl.arange(0, B), tl.load(out + at) + 1)


def test_without_sanitize_overflow_accesses_are_not_checked() -> None:
    """And a program ends at an assertion that fails: the address is wild."""
    x, out = np.arange(32, dtype=np.int64), np.zeros(32, np.int32)
    plain = looked_up.warmup(x, out, 32, B=32, grid=(1,), debug=True, sanitize_overflow=False)
    assert not plain.metadata.checked
    assert [a["message"] for a in plain.metadata.asserts] == ["index out of bounds"]
    every = looked_up.warmup(x, out, 32, B=32, grid=(1,), debug=True)
    assert len(every.metadata.asserts) == 5
    looked_up[(1,)](x, out, 32, B=32, debug=True, sanitize_overflow=False)
    assert (out == 1).all()
    x[3] = 1 << 60
    with pytest.raises(DeviceAssertionError, match=r"index out of bounds"):
        looked_up[(1,)](x, out, 32, B=32, debug=True, sanitize_overflow=False)
    assert (out == 1).all()


# --------------------------------------------------------------------------------------------------------------------
# Clean launches


@weft.jit
def transposes(x, out, sx, sy, m, n, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    mask = (i < m) & (j < n)
    tl.store(out + j * m + i, tl.load(x + i * sx + j * sy, mask=mask, other=0), mask=mask)


@weft.jit
def softmax(x, out, stride, width, B: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, B)
    mask = column < width
    value = tl.load(x + row * stride + column, mask=mask, other=-float("inf"))
    e = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * stride + column, e / tl.sum(e, axis=0), mask=mask)


@weft.jit
def multiplies(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    pa = a + i[:, None] * K + k[None, :]
    pb = b + k[:, None] * N + j[None, :]
    for done in range(0, K, BK):
        left = tl.load(pa, mask=(i[:, None] < M) & (k[None, :] < K - done), other=0.0)
        right = tl.load(pb, mask=(k[:, None] < K - done) & (j[None, :] < N), other=0.0)
        acc = tl.dot(left, right, acc)
        pa += BK
        pb += BK * N
    tl.store(c + i[:, None] * N + j[None, :], acc, mask=(i[:, None] < M) & (j[None, :] < N))


@weft.jit
def block_copies(x, out, m, n, B: tl.constexpr):
    p = tl.make_block_ptr(x, (m, n), (n, 1), (0, 0), (B, B), (1, 0))
    q = tl.make_block_ptr(out, (m, n), (n, 1), (0, 0), (B, B), (1, 0))
    for _ in range(0, m, B):
        tl.store(q, tl.load(p, boundary_check=(0, 1), padding_option="zero"), boundary_check=(0, 1))
        p = tl.advance(p, (B, 0))
        q = tl.advance(q, (B, 0))


@weft.jit
def descriptor_copies(x, out, m, n, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x, (m, n), (n, 1), (B, B))
    target = tl.make_tensor_descriptor(out, (m, n), (n, 1), (B, B))
    for i in range(0, m, B):
        for j in range(0, n, B):
            target.store([i, j], source.load([i, j]))


@weft.jit
def host_descriptor_copies(source, target, m, B: tl.constexpr):
    for i in range(0, m, B):
        target.store([i, 0], source.load([i, 0]) + 1)


@weft.jit
def histogram(x, bins, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(bins + tl.load(x + o, mask=o < n, other=0) % 10, 1, mask=o < n)


@weft.jit
def locks(lock, x, B: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    o = tl.arange(0, B)
    tl.store(x + o, tl.load(x + o) + 1)
    tl.atomic_xchg(lock, 0)


@weft.jit
def scans(x, out, n, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out + o, tl.cumsum(tl.load(x + o, mask=o < n, other=0), axis=0), mask=o < n)


@weft.jit
def pingpong(x, y, steps, n, B: tl.constexpr):
    o = tl.arange(0, B)
    a = x
    b = y
    for _ in range(steps):
        tl.store(b + o, tl.load(a + o, mask=o < n) + 1, mask=o < n)
        a, b = b, a


@weft.jit
def concatenates(x, y, out, n, m, B: tl.constexpr):
    o = tl.arange(0, B)
    p = tl.where(o < n, x + o, y + (o - n))
    tl.store(out + o, tl.load(p, mask=o < n + m), mask=o < n + m)


@weft.jit
def optional(x, bias, out, n, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o, mask=o < n)
    if bias is not None:
        v += tl.load(bias + o, mask=o < n)
    tl.store(out + o, v, mask=o < n)


@weft.jit
def through_addresses(addresses, out, n, B: tl.constexpr):
    o = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for k in range(n):
        p = tl.load(addresses + k).to(tl.pointer_type(tl.float32))
        total += tl.load(p + o)
    tl.store(out + o, total)


@weft.jit
def hinted(x, out, n, B: tl.constexpr):
    n = tl.multiple_of(n, 16)
    o = tl.max_contiguous(tl.multiple_of(tl.program_id(0) * B + tl.arange(0, B), B), B)
    x = tl.multiple_of(x, 4)
    group = tl.max_constancy(o // 4, 4)
    tl.store(out + o, tl.load(x + o, mask=o < n, other=0) + group, mask=o < n)


@weft.jit
def hashes(x, out, B: tl.constexpr):
    o = tl.arange(0, B)
    h = tl.mul(tl.load(x + o), 1664525, sanitize_overflow=False)
    tl.store(out + o, tl.add(h, 1013904223, sanitize_overflow=False))


@weft.jit
def randoms(out, seed, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out + o, tl.rand(seed, o))


@weft.jit
def wide_offsets(x, out, stride, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * stride
    tl.store(out + tl.arange(0, B), tl.load(x + row % 8 + tl.arange(0, B)))


@weft.jit
def flags(x, out, n, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out + o, ~tl.load(x + o, mask=o < n, other=False), mask=o < n)


def square(count: int) -> np.ndarray[Any, Any]:
    return guarded(count * count).reshape(count, count)


CLEAN: dict[str, tuple[Any, Callable[[], tuple[Any, ...]], dict[str, int], tuple[int, ...]]] = {
    "no mask needed": (no_mask, lambda: (guarded(128), guarded(128), 128), {"B": 32}, (4,)),
    "a masked tail": (wide_mask, lambda: (guarded(10), guarded(10), 10), {"B": 16}, (1,)),
    "a tail of the grid": (store_no_mask, lambda: (guarded(50), guarded(64), 50), {"B": 32}, (2,)),
    "one element": (scalars, lambda: (guarded(1), guarded(1), 0, 0), {}, (1,)),
    "backwards": (scalars, lambda: (guarded(8)[::-1], guarded(8)[::-1], -7, -3), {}, (1,)),
    "every third": (transposes, lambda: (square(12)[::3, 1::2], guarded(24), 36, 2, 4, 6), {"M": 4, "N": 8}, (1,)),
    "both backwards": (
        transposes, lambda: (square(8)[::-1, ::-1], guarded(64), -8, -1, 8, 8), {"M": 8, "N": 8}, (1,),
    ),
    "columns of a view": (rows, lambda: (square(10)[:, 2:7], guarded(64), 10, 4, 5), {"M": 4, "N": 16}, (1,)),
    "a gather": (gathers, lambda: (guarded(10), ints(1, 9, 0, 3), guarded(4), 4), {"B": 4}, (1,)),
    "a scatter": (scatters, lambda: (guarded(4), ints(1, 9, 0, 3), guarded(10), 4), {"B": 8}, (1,)),
    "an atomic": (adds, lambda: (guarded(10, np.int32), ints(1, 9, 9, 3)), {"B": 4}, (1,)),
    "an atomic with a mask": (adds_masked, lambda: (guarded(10, np.int32), 10), {"B": 16}, (1,)),
    "compare and swap": (swaps, lambda: (guarded(16, np.int32), guarded(16, np.int32), 16), {"B": 16}, (1,)),
    "a histogram": (histogram, lambda: (guarded(100, np.int32), guarded(10, np.int32), 100), {"B": 32}, (4,)),
    "a lock": (locks, lambda: (np.zeros(1, np.int32), guarded(8)), {"B": 8}, (16,)),
    "a loop": (loops, lambda: (guarded(64), guarded(16), 4, 64), {"B": 16}, (1,)),
    "a while loop": (walks, lambda: (guarded(6), guarded(6), 6), {}, (1,)),
    "a block pointer": (blocks, lambda: (guarded(20), guarded(16), 20, 4), {"B": 16}, (1,)),
    "a block pointer past the end": (blocks_checked, lambda: (guarded(20), guarded(16), 20, 8), {"B": 16}, (1,)),
    "a block pointer that moves": (block_copies, lambda: (square(10), square(10), 10, 10), {"B": 4}, (1,)),
    "descriptors": (descriptor_copies, lambda: (square(12), square(12), 12, 12), {"B": 8}, (1,)),
    "descriptors of a launch": (
        host_descriptor_copies,
        lambda: (
            TensorDescriptor(square(12), [12, 12], [12, 1], [8, 8]),
            TensorDescriptor(square(12), [12, 12], [12, 1], [8, 8]), 12,
        ),
        {"B": 8}, (1,),
    ),
    "rows": (softmax, lambda: (guarded(300).reshape(10, 30), guarded(300), 30, 30), {"B": 32}, (10,)),
    "a product": (
        multiplies, lambda: (guarded(600).reshape(20, 30), guarded(750).reshape(30, 25), guarded(500), 20, 25, 30),
        {"BM": 16, "BN": 16, "BK": 16}, (2, 2),
    ),
    "a scan": (scans, lambda: (guarded(30), guarded(30), 30), {"B": 32}, (1,)),
    "two arrays in turn": (pingpong, lambda: (guarded(20), guarded(20), 5, 20), {"B": 32}, (1,)),
    "two arrays in one": (concatenates, lambda: (guarded(9), guarded(5), guarded(14), 9, 5), {"B": 16}, (1,)),
    "no array": (optional, lambda: (guarded(9), None, guarded(9), 9), {"B": 16}, (1,)),
    "an array that may be none": (optional, lambda: (guarded(9), guarded(9), guarded(9), 9), {"B": 16}, (1,)),
    "in place": (no_mask, lambda: (lambda a: (a, a, 32))(guarded(32)), {"B": 32}, (1,)),
    "overlapping": (scans, lambda: (lambda a: (a[:20], a[10:], 20))(guarded(30)), {"B": 32}, (1,)),
    "a tuple": (pairs, lambda: ((guarded(1), guarded(16)), guarded(16)), {"B": 16}, (1,)),
    "hints": (hinted, lambda: (guarded(64), guarded(64), 48), {"B": 32}, (2,)),
    "a true assumption": (assumes, lambda: (guarded(1, np.int32), 4), {}, (1,)),
    "a hash": (hashes, lambda: (guarded(64, np.uint32), guarded(64, np.uint32)), {"B": 64}, (1,)),
    "random numbers": (randoms, lambda: (guarded(64), 12345), {"B": 64}, (1,)),
    "offsets of 64 bits": (wide_offsets, lambda: (guarded(16), guarded(8), 1 << 30), {"B": 8}, (3,)),
    "flags": (flags, lambda: (guarded(20) > 5, guarded(20) > 5, 20), {"B": 32}, (1,)),
    "halves": (softmax, lambda: (guarded(64, np.float16), guarded(64, np.float16), 32, 32), {"B": 32}, (2,)),
    "no programs": (no_mask, lambda: (guarded(0), guarded(0), 0), {"B": 32}, (0,)),
}  # fmt: skip


def arrays_of(args: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays among arguments, in order."""
    found: list[np.ndarray[Any, Any]] = []
    for value in args:
        if isinstance(value, tuple):
            found += arrays_of(value)
        elif isinstance(value, np.ndarray):
            found.append(value)
        elif isinstance(value, TensorDescriptor):
            found.append(value.base)
    return found


@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.thinned(4)
def test_a_clean_kernel_does_the_same(name: str) -> None:
    kernel, make, constants, grid = CLEAN[name]
    plain, checked = make(), make()
    kernel[grid](*plain, **constants)
    kernel[grid](*checked, **constants, debug=True)
    for left, right in zip(arrays_of(plain), arrays_of(checked), strict=True):
        np.testing.assert_array_equal(left, right)


def test_there_are_enough_of_each() -> None:
    assert len(FAULTS) >= 25
    assert len(CLEAN) >= 25


# --------------------------------------------------------------------------------------------------------------------
# The rest of the way


def test_pointers_of_unknown_origin_are_not_checked() -> None:
    parts = [guarded(8), guarded(8)]
    out = guarded(8)
    through_addresses[(1,)](np.array([p.ctypes.data for p in parts]), out, 2, B=8, debug=True)
    np.testing.assert_array_equal(out, parts[0] + parts[1])
    with pytest.raises(OutOfBoundsError, match="load of element 2 of `addresses`"):
        through_addresses[(1,)](np.array([p.ctypes.data for p in parts]), out, 3, B=8, debug=True)


def test_a_program_ends_where_a_check_fails() -> None:
    x, out = guarded(50), guarded(50)
    out[:] = -1
    with pytest.raises(OutOfBoundsError):
        store_no_mask[(2,)](x, out, 50, B=32, debug=True)
    assert (out[32:] == -1).all()
    assert untouched(out)


@weft.jit
def probes(table, out, key):
    slot = 0
    while tl.load(table + slot) != key:
        slot += 1
    tl.store(out, slot)


def test_a_loop_that_runs_off_an_array_ends() -> None:
    table, out = guarded(10, np.int32), guarded(1, np.int32)
    probes[(1,)](table, out, 9, debug=True)
    assert out[0] == 9
    with pytest.raises(OutOfBoundsError, match="load of element 10 of `table`, which has elements 0 to 9: 1 past"):
        probes[(1,)](table, out, 10, debug=True)
    assert out[0] == 9


@weft.jit
def waits(ready, x):
    if tl.program_id(0) == 0:
        tl.store(x + 4, 1.0)
        tl.atomic_xchg(ready, 1)
    else:
        while tl.atomic_add(ready, 0) == 0:
            pass


def test_programs_that_wait_for_one_that_failed_end_too() -> None:
    with pytest.raises(OutOfBoundsError, match="store of element 4 of `x`"):
        waits[(2,)](np.zeros(1, np.int32), guarded(4), debug=True)


def test_the_error_as_data() -> None:
    with pytest.raises(OutOfBoundsError) as caught:
        no_mask[(4,)](guarded(100), guarded(100), 100, B=32, debug=True)
    error = caught.value
    assert isinstance(error, IndexError)
    assert (error.argument, error.index, error.program, error.kernel) == ("x", 100, (3, 0, 0), "no_mask")
    assert (error.position, error.shape) == ((4,), (32,))
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert error.to_dict()["index"] == 100


def test_every_way_to_switch_it_on() -> None:
    args = (guarded(10), guarded(10), 10)
    no_mask[(1,)](*args, B=8)
    with weft.knobs.runtime.scope():
        weft.knobs.runtime.debug = True
        with pytest.raises(OutOfBoundsError):
            no_mask[(2,)](*args, B=8)
    with pytest.raises(OutOfBoundsError):
        weft.jit(no_mask.fn, debug=True)[(2,)](*args, B=8)
    weft.jit(no_mask.fn, debug=False)[(1,)](*args, B=8)


def test_a_compiled_kernel_checks_what_it_is_given() -> None:
    source = ASTSource(no_mask, {"x": "*fp32", "out": "*fp32", "n": "i32", "B": "constexpr"}, {"B": 16})
    kernel = weft.compile(source, options={"debug": True})
    kernel[(1, 1, 1)](guarded(16), guarded(16), 16)
    with pytest.raises(OutOfBoundsError, match="load of element 10 of `x`"):
        kernel[(1, 1, 1)](guarded(10), guarded(16), 16)


def test_tile_ir_is_checked(tmp_path: Path) -> None:
    plain = no_mask.warmup(guarded(16), guarded(16), 16, B=16, grid=(1,))
    path = tmp_path / "no_mask.ttir"
    path.write_text(plain.asm["ttir"])
    kernel = weft.compile(str(path), options={"debug": True})
    with pytest.raises(OutOfBoundsError, match="load of element 10 of `x`"):
        kernel[(1, 1, 1)](guarded(10), guarded(16), 16)


def test_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    x, out = torch.arange(40.0).reshape(4, 10), torch.zeros(64)
    rows[(1,)](x[:, 2:7], out, 10, 4, 5, M=4, N=16, debug=True)
    with pytest.raises(
        OutOfBoundsError, match="load of element 35 of `x`, which has elements 0 to 34: 1 past its last"
    ):
        rows[(1,)](x[:, 2:7], out, 10, 4, 6, M=4, N=16, debug=True)
    with pytest.raises(
        OutOfBoundsError, match="load of element 40 of `x`, which has elements 0 to 39: 1 past its last"
    ):
        rows[(1,)](x, out, 10, 4, 11, M=4, N=16, debug=True)


def test_each_launch_has_its_own_arrays() -> None:
    for count in (32, 31, 64, 10, 32):
        x, out = guarded(count), guarded(32)
        if count >= 32:
            no_mask[(1,)](x, out, 32, B=32, debug=True)
            np.testing.assert_array_equal(out, x[:32])
        else:
            with pytest.raises(OutOfBoundsError, match=f"which has elements 0 to {count - 1}: 1 past its last"):
                no_mask[(1,)](x, out, 32, B=32, debug=True)


def test_the_first_place_of_a_large_tile() -> None:
    for last in (5, 63, 64, 1000, 1023):
        with pytest.raises(OutOfBoundsError) as caught:
            no_mask[(1,)](guarded(last), guarded(1024), 1024, B=1024, debug=True)
        assert caught.value.position == (last,)


def test_without_debug_nothing_is_added() -> None:
    kernel = no_mask.warmup(guarded(16), guarded(16), 16, B=16, grid=(1,))
    assert kernel.metadata.checked == []
    assert "cmpxchg" not in kernel.asm["llir"]
    checked = no_mask.warmup(guarded(16), guarded(16), 16, B=16, grid=(1,), debug=True)
    assert [array["name"] for array in checked.metadata.checked] == ["x", "out"]
    assert "weft.check" not in checked.asm["ttir"]


def test_hooks_see_a_checked_launch() -> None:
    seen: list[str] = []
    with weft.knobs.runtime.scope():
        weft.knobs.runtime.launch_enter_hook = lambda facts: seen.append(facts.get()["name"])
        no_mask[(1,)](guarded(16), guarded(16), 16, B=16, debug=True)
    assert seen == ["no_mask"]


@pytest.mark.parametrize("value", [0, -4])
def test_hints_take_positive_numbers(value: int) -> None:
    with pytest.raises(weft.CompilationError, match=f"multiple_of takes positive integers, got {value}"):
        multiple_by[(1,)](guarded(4), 4, V=value)


def test_hints_take_constants() -> None:
    with pytest.raises(weft.CompilationError, match="values element 0 must have type `constexpr`"):
        multiple_by_argument[(1,)](guarded(4), 4)


@weft.jit
def multiple_by(x, n, V: tl.constexpr):
    tl.store(x, tl.multiple_of(n, V))


@weft.jit
def multiple_by_argument(x, n):
    tl.store(x, tl.multiple_of(n, n))


@weft.jit(do_not_specialize=["at", "sx", "sy", "m", "n"])
def strided(x, out, at, sx, sy, m, n, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    v = tl.load(x + at + i * sx + j * sy, mask=(i < m) & (j < n), other=0)
    tl.store(out + i * N + j, v)


def test_random_views_offsets_and_masks() -> None:
    """Which place of which launch fails is what NumPy says of the addresses."""
    random = np.random.default_rng(20)
    whole = np.arange(4096, dtype=np.float32)
    i, j = np.arange(8)[:, None], np.arange(16)[None, :]
    found = 0
    for _ in range(400):
        rows_, columns = (int(v) for v in random.integers(1, 12, 2))
        steps = [int(v) for v in random.choice([-3, -2, -1, 1, 2, 3], 2)]
        size = rows_ * abs(steps[0]) * columns * abs(steps[1])
        block = whole[1024 : 1024 + size].reshape(rows_ * abs(steps[0]), columns * abs(steps[1]))
        view = block[:: steps[0], :: steps[1]]
        sx, sy = (s // 4 for s in view.strides)
        at, m, n = int(random.integers(-3, 4)) * int(random.integers(2)), *(int(v) for v in random.integers(0, 12, 2))
        if random.integers(2):  # as a correct kernel would
            at, m, n = 0, min(m, rows_), min(n, columns)
        reach = [(rows_ - 1) * sx, (columns - 1) * sy]
        low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
        offsets = at + i * sx + j * sy
        wrong = (i < m) & (j < n) & ((offsets < low) | (offsets > high))
        out = np.full((8, 16), -1, np.float32)
        arguments = (view, out, at, sx, sy, m, n)
        if not wrong.any():
            strided[(1,)](*arguments, M=8, N=16, debug=True)
            begin = (view.ctypes.data - whole.ctypes.data) // 4
            np.testing.assert_array_equal(out, np.where((i < m) & (j < n), whole[begin + offsets], 0))
            continue
        found += 1
        with pytest.raises(OutOfBoundsError) as caught:
            strided[(1,)](*arguments, M=8, N=16, debug=True)
        first = np.unravel_index(np.flatnonzero(wrong)[0], wrong.shape)
        assert caught.value.position == tuple(int(p) for p in first)
        assert caught.value.index == offsets[first]
        assert (out == -1).all()
    assert 50 < found < 350


@weft.jit
def row_pointers(x, out, stride, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    pointers = tl.multiple_of(x + i * stride + j, [16, 16])
    tl.store(out + i * N + j, tl.load(pointers))


def test_a_hint_on_the_pointers_to_rows_is_about_where_rows_begin() -> None:
    whole = np.zeros(1040, np.float32)
    at = -whole.ctypes.data % 64 // 4
    x, out = whole[at : at + 1024], np.zeros(64, np.float32)
    row_pointers[(1,)](x, out, 64, M=4, N=16, debug=True)
    for array, stride in ((x[1:], 64), (x, 65)):
        with pytest.raises(DeviceAssertionError, match=r"the hint multiple_of\(16\) along axis 0 is false"):
            row_pointers[(1,)](array, out, stride, M=4, N=16, debug=True)
