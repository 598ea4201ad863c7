"""Small kernels whose results are exact, for running code objects where it is slow: in an emulator.

Every product is of small integers, so that sums of floats are exact in any order; the answer is NumPy's, and there is
no tolerance. Tiles are as small as a kernel that uses all waves of a block allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import weft
import weft.language as tl

Array = np.ndarray[Any, Any]


E4M3 = ml_dtypes.float8_e4m3fn


@dataclass(frozen=True)
class Small:
    """A kernel, its arguments by name, and what the named arrays hold afterwards."""

    kernel: Any
    arguments: Callable[[np.random.Generator], dict[str, Any]]
    expected: Callable[[dict[str, Any]], Mapping[str, Any]]
    constants: dict[str, Any] = field(default_factory=dict)
    grid: tuple[int, ...] = (1,)
    warps: int = 4
    options: dict[str, Any] = field(default_factory=dict)
    said: Callable[[dict[str, Any]], list[str]] = lambda given: []
    """Lines that it prints, sorted, and behind them what does not hold, and in which program."""
    not_emulated: tuple[str, ...] = ()
    """Processors whose instructions for it the emulator does not have."""


@weft.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@weft.jit
def saying(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i)
    tl.device_print("x", value)
    tl.device_assert(value >= 0, "x is not negative")
    tl.store(out + i, value)


@weft.jit
def product(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, COLUMNS: tl.constexpr, ACC: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), ACC)
    for at in range(0, K, BK):
        left = tl.load(a + i[:, None] * K + (at + k)[None, :])
        if COLUMNS:
            right = tl.load(b + (at + k)[:, None] + j[None, :] * K)
        else:
            right = tl.load(b + (at + k)[:, None] * N + j[None, :])
        acc = tl.dot(left, right, acc, out_dtype=ACC)
    tl.store(c + i[:, None] * N + j[None, :], acc)


@weft.jit
def chained(a, b, d, out, M: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, M)
    at = i[:, None] * M + j[None, :]
    middle = tl.dot(tl.load(a + at), tl.load(b + at))
    tl.store(out + at, tl.dot(middle.to(tl.float16), tl.load(d + at)))


@weft.jit
def row_sums(x, out, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    tl.store(out + i, tl.sum(tl.load(x + i[:, None] * N + j[None, :]), 1))


@weft.jit
def column_maxima(x, out, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    tl.store(out + j, tl.max(tl.load(x + i[:, None] * N + j[None, :]), 0))


@weft.jit
def running_sums(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0))


@weft.jit
def transpose(x, out, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    value = tl.load(x + i[:, None] * N + j[None, :])
    tl.store(out + j[:, None] * M + i[None, :], tl.trans(value))


@weft.jit
def counted(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.atomic_add(out + (tl.load(x + i) & 15), 1)


@weft.jit
def atomics(x, out, old, N: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.load(x + i)
    tl.store(old + i, tl.atomic_add(out + i, value))
    tl.atomic_max(out + N + (i & 7), value)
    tl.atomic_or(out + 2 * N + (i & 7), value)
    tl.atomic_xchg(out + 3 * N + i, value)
    tl.atomic_cas(out + 4 * N + i, i & 1, value)


@weft.jit
def picked(x, index, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.gather(tl.load(x + i), tl.load(index + i), 0))


@weft.jit
def ordered(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.sort(tl.load(x + i)))


@weft.jit
def arithmetic(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    wide = a.to(tl.int64) * b
    tl.store(out + i, a // b + a % b + (wide >> 7).to(tl.int32) + (a << (b & 15)) ^ tl.where(a < b, a, b))


@weft.jit
def places(out, N: tl.constexpr):
    at = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0) + tl.program_id(0)
    i = tl.arange(0, N)
    tl.store(out + at * N + i, at * 1000 + i + tl.num_programs(2))


@weft.jit
def steps(x, out, N: tl.constexpr):
    for k in range(N):
        value = tl.load(x + k)
        count = 0
        while value > 1:
            value = tl.where(value % 2 == 0, value // 2, 3 * value + 1)
            count += 1
        tl.store(out + k, count)


@weft.jit
def widened(x, half, out, N: tl.constexpr):
    """e4m3 as f16 and as f32; 999 in the place of NaN."""
    i = tl.arange(0, N)
    value = tl.load(x + i)
    y, z = value.to(tl.float16), value.to(tl.float32)
    tl.store(half + i, tl.where(y == y, y, 999.0))
    tl.store(out + i, tl.where(z == z, z, 999.0))


@weft.jit
def narrow(x, out8, out16, N: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.load(x + i)
    tl.store(out8 + i, (value + 3).to(tl.int8))
    tl.store(out16 + i, (value.to(tl.float32) * 2).to(tl.float16))


def ints(rng: np.random.Generator, *shape: int, low: int = -4, high: int = 5, kind: Any = np.int32) -> Array:
    """Integers of a type."""
    return rng.integers(low, high, shape).astype(np.float32 if kind is ml_dtypes.bfloat16 else kind).astype(kind)


def _product(kind: Any, total: Any, columns: bool, k: int = 64, side: int = 32) -> Small:
    wide = np.float32 if total == tl.float32 else np.int32

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        a, b = ints(rng, side, k, kind=kind), ints(rng, *((side, k) if columns else (k, side)), kind=kind)
        return {"a": a, "b": b, "c": np.zeros((side, side), wide), "K": k}

    def expected(given: dict[str, Any]) -> dict[str, Any]:
        a, b = given["a"].astype(wide), given["b"].astype(wide)
        return {"c": a @ (b.T if columns else b)}

    return Small(
        product, arguments, expected, {"M": side, "N": side, "BK": 32, "COLUMNS": columns, "ACC": total}
    )  # fmt: skip


def _chained(given: dict[str, Any]) -> dict[str, Any]:
    a, b, d = (given[name].astype(np.float32) for name in "abd")
    return {"out": a @ b @ d}


def _atomics(given: dict[str, Any]) -> dict[str, Any]:
    out, x = given["out"].copy().reshape(5, -1), given["x"]
    n = len(x)
    old = out[0].copy()
    out[0] += x
    i = np.arange(n)
    np.maximum.at(out[1], i & 7, x)
    np.bitwise_or.at(out[2], i & 7, x)
    out[3] = x
    out[4] = np.where(out[4] == (i & 1), x, out[4])
    return {"out": out.reshape(-1), "old": old}


def _arithmetic(given: dict[str, Any]) -> dict[str, Any]:
    a, b = given["x"].astype(np.int64), given["y"].astype(np.int64)
    quotient = (np.abs(a) // np.abs(b)) * np.sign(a) * np.sign(b)
    total = quotient + (a - quotient * b) + (a * b >> 7) + (a << (b & 15))
    return {"out": (total.astype(np.int32) ^ np.where(a < b, a, b).astype(np.int32))}


def _collatz(given: dict[str, Any]) -> dict[str, Any]:
    def count(n: int) -> int:
        return 0 if n <= 1 else 1 + count(n // 2 if n % 2 == 0 else 3 * n + 1)

    return {"out": [count(int(n)) for n in given["x"]]}


def _with_out(
    shape: tuple[int, ...] | int, kind: Any = np.int32, **arrays: Callable[[np.random.Generator], Array]
) -> Any:
    return lambda rng: {**{k: f(rng) for k, f in arrays.items()}, "out": np.zeros(shape, kind)}


SMALL: dict[str, Small] = {
    "add": Small(
        add,
        lambda rng: {"x": ints(rng, 1000), "y": ints(rng, 1000), "out": np.zeros(1024, np.int32), "n": 1000},
        lambda g: {"out": np.append(g["x"] + g["y"], np.zeros(24, np.int32))},
        {"BLOCK": 512}, (2,),
    ),
    "printing, and an assertion": Small(
        saying,
        lambda rng: {"x": np.arange(32, -32, -1, dtype=np.int32), "out": np.zeros(64, np.int32)},
        lambda g: {"out": np.maximum(g["x"], 0)},  # the only warp of the second program ends before it stores
        {"BLOCK": 32}, (2,), warps=1, options={"debug": True},
        said=lambda g: [
            *sorted(f"pid ({i // 32}, 0, 0) idx ({i % 32:2d}) x: {x}\n" for i, x in enumerate(g["x"])),
            "x is not negative in [1, 0, 0]",
        ],
    ),
    "product f16": _product(np.float16, tl.float32, True),
    "product f16, b by rows": _product(np.float16, tl.float32, False),
    "product bf16": _product(ml_dtypes.bfloat16, tl.float32, True),
    "product bf16, b by rows": _product(ml_dtypes.bfloat16, tl.float32, False),
    "product int8": _product(np.int8, tl.int32, True),
    "chained products": Small(
        chained,
        lambda rng: {**{n: ints(rng, 32, 32, low=-2, high=3, kind=np.float16) for n in "abd"},
                     "out": np.zeros((32, 32), np.float32)},
        _chained, {"M": 32},
    ),
    "row sums": Small(
        row_sums, _with_out(16, x=lambda rng: ints(rng, 16, 128)), lambda g: {"out": g["x"].sum(1)}, {"M": 16, "N": 128}
    ),
    "column maxima": Small(
        column_maxima, _with_out(16, x=lambda rng: ints(rng, 64, 16, low=-99, high=99)),
        lambda g: {"out": g["x"].max(0)}, {"M": 64, "N": 16},
    ),
    "running sums": Small(
        running_sums, _with_out(512, x=lambda rng: ints(rng, 512)), lambda g: {"out": g["x"].cumsum()}, {"N": 512}
    ),
    "transposition": Small(
        transpose, _with_out((32, 64), x=lambda rng: ints(rng, 64, 32)), lambda g: {"out": g["x"].T}, {"M": 64, "N": 32}
    ),
    "transposition f16": Small(
        transpose, _with_out((32, 64), np.float16, x=lambda rng: ints(rng, 64, 32, kind=np.float16)),
        lambda g: {"out": g["x"].T}, {"M": 64, "N": 32},
    ),
    "counted by atomics": Small(
        counted, _with_out(16, x=lambda rng: ints(rng, 256, low=0, high=99)),
        lambda g: {"out": np.bincount(g["x"] & 15, minlength=16)}, {"N": 256},
    ),
    "atomics": Small(
        atomics,
        lambda rng: {"x": ints(rng, 128, low=-99, high=99), "out": ints(rng, 640, low=0, high=2),
                     "old": np.zeros(128, np.int32)},
        _atomics, {"N": 128},
    ),
    "picked": Small(
        picked,
        _with_out(
            256, x=lambda rng: ints(rng, 256, low=-99, high=99), index=lambda rng: ints(rng, 256, low=0, high=256)
        ),
        lambda g: {"out": g["x"][g["index"]]}, {"N": 256},
    ),
    "ordered": Small(
        ordered, _with_out(128, x=lambda rng: ints(rng, 128, low=-99, high=99)), lambda g: {"out": np.sort(g["x"])},
        {"N": 128},
    ),
    "arithmetic": Small(
        arithmetic,
        _with_out(
            256, x=lambda rng: ints(rng, 256, low=-9999, high=9999), y=lambda rng: ints(rng, 256, low=1, high=99)
        ),
        _arithmetic, {"N": 256},
    ),
    "places": Small(
        places, lambda rng: {"out": np.zeros(3 * 2 * 2 * 64, np.int32)},
        lambda g: {"out": (np.arange(12)[:, None] * 1000 + np.arange(64) + 2).ravel()}, {"N": 64}, (3, 2, 2), 1,
    ),
    "steps": Small(steps, _with_out(5, x=lambda rng: ints(rng, 5, low=1, high=30)), _collatz, {"N": 5}, warps=1),
    "narrow": Small(
        narrow,
        lambda rng: {"x": ints(rng, 256), "out8": np.zeros(256, np.int8), "out16": np.zeros(256, np.float16)},
        lambda g: {"out8": g["x"] + 3, "out16": g["x"] * 2}, {"N": 256},
    ),
    "floats of 8 bits": Small(
        widened,
        lambda rng: {"x": np.arange(1024).astype(np.uint8).view(E4M3), "half": np.zeros(1024, np.float16),
                     "out": np.zeros(1024, np.float32)},
        lambda g: dict.fromkeys(("half", "out"), np.nan_to_num(g["x"].astype(np.float32), nan=999.0)), {"N": 1024},
        not_emulated=("gfx1201",),  # v_cvt_pk_f32_fp8
    ),
}  # fmt: skip

TYPES = {
    np.dtype(np.int32): "*i32", np.dtype(np.float32): "*fp32", np.dtype(np.float16): "*fp16", np.dtype(np.int8): "*i8",
    np.dtype(ml_dtypes.bfloat16): "*bf16", np.dtype(E4M3): "*fp8e4nv",
}  # fmt: skip


def compiled(small: Small, arguments: Mapping[str, Any], target: str) -> Any:
    """The kernel for `hip:gfx942` or the like."""
    from weft.compiler import compile as compile_source

    signature = {n: TYPES[a.dtype] if isinstance(a, np.ndarray) else "i32" for n, a in arguments.items()}
    kinds = {**signature, **dict.fromkeys(small.constants, "constexpr")}
    facts = {(place,): [["tt.divisibility", 16]] for place, kind in enumerate(signature.values()) if kind[0] == "*"}
    return compile_source(
        weft.ASTSource(small.kernel, kinds, small.constants, facts), target, {"num_warps": small.warps, **small.options}
    )
