"""What moves data in lane programs, counted, beside what Triton's PTX has for the same kernel: never more.

Triton's figures are instructions in the PTX of Triton 3.6.0 for cuda:80 and four warps, ldmatrix and stmatrix with the
loads and stores of shared memory. Where a figure is left out, the comment says why.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import weft
import weft.language as tl
from weft.compiler import ASTSource, lane_program
from weft.ir.lane import ELEMENT_BITS, LaneOp


@weft.jit
def softmax_rows(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + at)
    e = tl.exp(v - tl.max(v, axis=1)[:, None])
    tl.store(out + at, e / tl.sum(e, axis=1)[:, None])


@weft.jit
def norm_rows(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + at)
    d = v - (tl.sum(v, axis=1) / N)[:, None]
    tl.store(out + at, d * tl.rsqrt(tl.sum(d * d, axis=1) / N + 1e-5)[:, None])


@weft.jit
def sum_rows(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + tl.arange(0, M), tl.sum(tl.load(x + at), axis=1))


@weft.jit
def sum_columns(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + tl.arange(0, N), tl.sum(tl.load(x + at), axis=0))


@weft.jit
def sum_all(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out, tl.sum(tl.load(x + at)))


@weft.jit
def largest(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + tl.arange(0, M), tl.argmax(tl.load(x + at), axis=1))


@weft.jit
def sums_along(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.cumsum(tl.load(x + at), axis=1))


@weft.jit
def sort_rows(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.sort(tl.load(x + at), dim=1))


@weft.jit
def transpose(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    to = tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]
    tl.store(out + to, tl.trans(tl.load(x + at)))


@weft.jit
def columns_first(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] + tl.arange(0, N)[None, :] * M
    tl.store(out + at, tl.load(x + at) * 2)


@weft.jit
def product(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + at)
    tl.store(out + at, tl.dot(v, v).to(tl.float16))


KINDS = ("ld.shared", "st.shared", "shfl", "bar.sync", "bytes", "ld.global", "st.global", "mma")
F32, F16, I32 = "*fp32", "*fp16", "*i32"
# kernel, (M, N), types of x and out, Triton's figures in the order of KINDS; None: not compared
CASES: list[tuple[Any, tuple[int, int], tuple[str, str], tuple[int | None, ...]]] = [
    (softmax_rows, (32, 128), (F32, F32), (0, 0, 80, 0, 0, 8, 8, 0)),
    (softmax_rows, (8, 1024), (F16, F16), (18, 18, 84, 5, 128, 8, 8, 0)),
    (norm_rows, (4, 1024), (F32, F32), (10, 10, 44, 5, 64, 8, 8, 0)),
    (sum_rows, (4, 2048), (F32, F32), (6, 6, 22, 4, 64, 16, 1, 0)),
    (sum_columns, (128, 64), (F32, F32), (7, 7, 8, 4, 1024, 16, 1, 0)),
    (sum_all, (64, 128), (F32, F32), (2, 2, 7, 2, 16, 16, 1, 0)),
    # values and indices share bytes one after the other, which takes a barrier more and half of the memory
    (largest, (2, 2048), (F32, I32), (4, 6, 25, None, 64, 8, 1, 0)),
    (sums_along, (32, 128), (F32, F32), (0, 0, 48, 0, 0, 8, 8, 0)),
    (sums_along, (1, 4096), (F32, F32), (9, 8, 48, 1, 128, 8, 8, 0)),
    (sort_rows, (32, 64), (F32, F32), (0, 0, 160, 0, 0, 4, 4, 0)),
    (sort_rows, (1, 1024), (F32, F32), (80, 80, 280, 14, 4096, 2, 2, 0)),
    (transpose, (64, 64), (F32, F32), (32, 32, 0, 1, 16384, 8, 8, 0)),
    (columns_first, (64, 32), (F32, F32), (0, 0, 0, 0, 0, 4, 4, 0)),
    # Triton stores the tile once and reads both operands of it; Weft stores it twice, before one barrier
    (product, (64, 64), (F16, F16), (24, 12, 0, 4, None, 4, 4, 32)),
]


def kind_of(op: LaneOp) -> tuple[str, int] | None:
    """The kind of an operation, and how many instructions it is."""
    if op.name in ("load", "store"):
        return ("ld." if op.name == "load" else "st.") + op.attrs["space"], op.operands[0].count
    if op.name == "shuffle":
        return "shfl", op.result.count * max(1, ELEMENT_BITS[op.result.elem] // 32)
    if op.name == "barrier" and op.attrs["scope"] == "block":
        return "bar.sync", 1
    if op.name == "instruction":
        isa = op.attrs["isa"]
        kind = "ld.shared" if "ldmatrix" in isa else "st.shared" if "stmatrix" in isa else "mma" if "mma" in isa else ""
        return (kind, op.operands[0].count) if kind != "mma" else ("mma", 1)
    return None


def counted(kernel: Any, sizes: tuple[int, int], types: tuple[str, str]) -> Counter[str]:
    signature = {"x": types[0], "out": types[1], "M": "constexpr", "N": "constexpr"}
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(2)}
    source = ASTSource(kernel, signature, {"M": sizes[0], "N": sizes[1]}, aligned)
    program = lane_program(source, "sim:cuda:80", {})
    found: Counter[str] = Counter(bytes=program.shared_bytes)
    for op in program.body.walk():
        kind = kind_of(op)
        if kind is not None:
            found[kind[0]] += kind[1]
    return found


@pytest.mark.parametrize(
    ("kernel", "sizes", "types", "limits"), CASES, ids=[f"{c[0].fn.__name__}-{c[1][0]}x{c[1][1]}" for c in CASES]
)
def test_never_more_than_triton(
    kernel: Any, sizes: tuple[int, int], types: tuple[str, str], limits: tuple[int | None, ...]
) -> None:
    found = counted(kernel, sizes, types)
    more = {k: (found[k], n) for k, n in zip(KINDS, limits, strict=True) if n is not None and found[k] > n}
    assert not more, "more than Triton: (Weft, Triton)"
