"""Products of an integer matrix and a float matrix: 784 cases, and 224 of the Triton language.

A case is a pair of types, a shape, and how many elements of K a lane holds together of each operand while it is still
narrow: as many as fill up to 32 bits, so that an element of 8 bits has 3 widths (1, 2, 4), one of 16 bits 2, and wider
ones 1. With the 16 shapes below, and with the integer on either side where both types are wider than 16 bits, that
makes for each pair as many cases as the table of mixed-precision products published for linear layouts has
(`CASES_OF_PAIR`). Of that table only the pairs and these numbers are known: what a case varies is a reconstruction.

The operands are put into the layout of the product's operands first and widened there, register by register. All
values are small multiples of 1/2, so that every product and every sum is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

import weft
import weft.gluon.language as gl
import weft.language as tl
from weft import gluon
from weft.gluon.language.nvidia.ampere import mma_v2

__all__ = ["CASES", "CASES_OF_PAIR", "LANGUAGE_CASES", "Mixed", "mixed_dot", "mixed_mma"]

CASES_OF_PAIR = {
    ("i16", "f16"): 64, ("i16", "f32"): 32, ("i16", "f64"): 32, ("i16", "f8"): 96, ("i32", "f16"): 32,
    ("i32", "f64"): 32, ("i32", "f8"): 48, ("i64", "f16"): 32, ("i64", "f32"): 32, ("i64", "f8"): 48,
    ("i8", "f16"): 96, ("i8", "f32"): 48, ("i8", "f64"): 48, ("i8", "f8"): 144,
}  # fmt: skip
"""Cases of each pair of types in the published table, 784 in all."""

SHAPES = tuple(product((16, 32), (16, 32), (16, 32, 64, 128)))
"""M, N, K: small ones are the hard ones, and a deep one has room for every width."""

DTYPES: dict[str, Any] = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f8": ml_dtypes.float8_e5m2,
    "e4m3": ml_dtypes.float8_e4m3fn, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32,
    "f64": np.float64,
}  # fmt: skip
WIDENED = {"f8": tl.float16, "e4m3": tl.float16, "f16": tl.float16, "bf16": tl.bfloat16, "f32": tl.float32}
LARGEST = {"f16": 1000, "f8": 1000, "e4m3": 1000, "bf16": 200, "f32": 1000, "f64": 30000}
"""The largest integers that go with a float type: what they are widened to holds them exactly, f32 as tf32."""


def _widths(kind: str) -> tuple[int, ...]:
    bits = 8 * np.dtype(DTYPES[kind]).itemsize
    return (1, 2, 4)[: {8: 3, 16: 2}.get(bits, 1)]


@dataclass(frozen=True)
class Mixed:
    """One case; the layouts' widths are those of the narrow operands."""

    left: str
    right: str
    shape: tuple[int, int, int]
    left_width: int = 1
    right_width: int = 1

    def __str__(self) -> str:
        size = "x".join(map(str, self.shape))
        return f"{self.left}w{self.left_width}-{self.right}w{self.right_width}-{size}"

    @property
    def float_type(self) -> str:
        """Whichever of the two is no integer."""
        return self.right if self.left.startswith("i") else self.left

    @property
    def pair(self) -> tuple[str, str]:
        """The integer type and the float type."""
        return (self.left if self.float_type == self.right else self.right), self.float_type

    def constants(self) -> dict[str, Any]:
        """The constants of `mixed_mma`."""
        m, n, k = self.shape
        return {
            "M": m, "N": n, "K": k, "LEFT": self.left_width, "RIGHT": self.right_width,
            "WIDTH": 2 if self.float_type not in ("f32", "f64") else 1, **self.types(),
        }  # fmt: skip

    def types(self) -> dict[str, Any]:
        """What the operands are widened to, and what is summed in."""
        double = self.float_type == "f64"
        return {"KIND": tl.float64 if double else WIDENED[self.float_type], "SUM": tl.float64 if double else tl.float32}

    def operands(self) -> tuple[Any, Any, Any]:
        """The operands, of random values, and room for the result."""
        m, n, k = self.shape
        random = np.random.default_rng([m, n, k, self.left_width, self.right_width])

        def values(kind: str, shape: tuple[int, int]) -> Any:
            if not kind.startswith("i"):
                return (random.integers(-6, 7, shape) / 2).astype(DTYPES[kind])
            most = min(np.iinfo(DTYPES[kind]).max, LARGEST[self.float_type])
            return random.integers(-most, most + 1, shape).astype(DTYPES[kind])

        out = np.full((m, n), np.nan, np.float64 if self.float_type == "f64" else np.float32)
        return values(self.left, (m, k)), values(self.right, (k, n)), out


def _cases() -> Iterator[Mixed]:
    for (one, other), shape in product(CASES_OF_PAIR, SHAPES):
        for first, second in product(_widths(one), _widths(other)):
            yield Mixed(one, other, shape, first, second)
            if first == second == 1 and len(_widths(one)) == len(_widths(other)) == 1:
                yield Mixed(other, one, shape)


CASES = list(_cases())

LANGUAGE_CASES = [
    case
    for (one, other), shape in product((*CASES_OF_PAIR, ("i8", "bf16"), ("i8", "e4m3")), SHAPES[1::2])
    for case in (Mixed(one, other, shape), Mixed(other, one, shape))
]
"""Pairs for `mixed_dot`, the integer once on either side."""


@gluon.jit
def mixed_mma(  # type: ignore[no-untyped-def]
    a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, LEFT: gl.constexpr, RIGHT: gl.constexpr,
    WIDTH: gl.constexpr, KIND: gl.constexpr, SUM: gl.constexpr,
):  # fmt: skip
    """c = a @ b by mma.sync; the operands are widened where the product wants them."""
    rows: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [2, 2], [1, 0])
    mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8])
    am, ak = gl.arange(0, M, layout=gl.SliceLayout(1, rows)), gl.arange(0, K, layout=gl.SliceLayout(0, rows))
    bk, bn = gl.arange(0, K, layout=gl.SliceLayout(1, rows)), gl.arange(0, N, layout=gl.SliceLayout(0, rows))
    x = gl.convert_layout(gl.load(a + am[:, None] * K + ak[None, :]), gl.DotOperandLayout(0, mma, LEFT))
    y = gl.convert_layout(gl.load(b + bk[:, None] * N + bn[None, :]), gl.DotOperandLayout(1, mma, RIGHT))
    x = gl.convert_layout(x.to(KIND), gl.DotOperandLayout(0, mma, WIDTH))
    y = gl.convert_layout(y.to(KIND), gl.DotOperandLayout(1, mma, WIDTH))
    total = mma_v2(x, y, gl.zeros([M, N], SUM, mma))
    cm, cn = gl.arange(0, M, layout=gl.SliceLayout(1, mma)), gl.arange(0, N, layout=gl.SliceLayout(0, mma))
    gl.store(c + cm[:, None] * N + cn[None, :], total)


@weft.jit
def mixed_dot(  # type: ignore[no-untyped-def]
    a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, KIND: tl.constexpr, SUM: tl.constexpr
):
    """c = a @ b of the Triton language: the compiler chooses the layouts."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :]).to(KIND)
    y = tl.load(b + k[:, None] * N + n[None, :]).to(KIND)
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y, out_dtype=SUM))
