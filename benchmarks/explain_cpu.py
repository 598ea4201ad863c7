"""Times that explanations predict for the CPU, beside times measured: kernels that wait for memory.

    weft calibrate && python benchmarks/explain_cpu.py            # as many threads as launches use
    WEFT_NUM_THREADS=1 ...                                        # on one thread, measured and predicted

Caches are cold, as predictions have it: all threads change other memory before each measurement. The least of several
times is taken, in rounds, as other processes can only add to it. Nothing of a kernel's own is measured for its
prediction.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import ml_dtypes
import numpy as np

import weft
import weft.language as tl
from explain_cpu_more import more
from explain_cpu_others import others
from weft.runtime.calibrating import REST, ROUNDS, calibrate, calibrated, chill

RESULTS = Path(__file__).parent / "results" / "explain-cpu.json"
NEAR = 0.25
TYPES: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8}


@weft.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@weft.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@weft.jit
def axpy(x, y, a, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(y + i, a * tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@weft.jit
def relu(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)


@weft.jit
def cast(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n).to(out.dtype.element_ty), mask=i < n)


@weft.jit
def fill(out, value, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.full((BLOCK,), value, tl.float32), mask=i < n)


@weft.jit
def gated(x, gate, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    g = tl.load(gate + i, mask=mask).to(tl.float32)
    tl.store(out + i, (tl.load(x + i, mask=mask) * tl.sigmoid(g)).to(out.dtype.element_ty), mask=mask)


@weft.jit
def chosen(x, y, which, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    w = tl.load(which + i, mask=mask) != 0
    tl.store(out + i, tl.where(w, tl.load(x + i, mask=mask), tl.load(y + i, mask=mask)), mask=mask)


@weft.jit
def adam(p, g, m, v, rate, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    grad = tl.load(g + i, mask=mask)
    first = 0.9 * tl.load(m + i, mask=mask) + 0.1 * grad
    second = 0.999 * tl.load(v + i, mask=mask) + 0.001 * grad * grad
    tl.store(m + i, first, mask=mask)
    tl.store(v + i, second, mask=mask)
    tl.store(p + i, tl.load(p + i, mask=mask) - rate * first / (tl.sqrt(second) + 1e-8), mask=mask)


@weft.jit
def row_sums(x, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        total += tl.load(x + row * columns + start + i, mask=start + i < columns, other=0.0)
    tl.store(out + row, tl.sum(total, 0))


@weft.jit
def column_sums(x, out, rows, columns, BLOCK: tl.constexpr):
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        total += tl.load(x + row * columns + j)
    tl.store(out + j, total)


@weft.jit
def rms_norm(x, w, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    mask = i < columns
    value = tl.load(x + row * columns + i, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / columns + 1e-6)
    tl.store(out + row * columns + i, (value * scale * tl.load(w + i, mask=mask)).to(out.dtype.element_ty), mask=mask)


@weft.jit
def layer_norm(x, w, b, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    mask = i < columns
    value = tl.load(x + row * columns + i, mask=mask, other=0.0)
    value = tl.where(mask, value - tl.sum(value, 0) / columns, 0.0)
    scale = 1 / tl.sqrt(tl.sum(value * value, 0) / columns + 1e-6)
    tl.store(out + row * columns + i, value * scale * tl.load(w + i, mask=mask) + tl.load(b + i, mask=mask), mask=mask)


@weft.jit
def biased(x, bias, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    mask = i < columns
    value = tl.load(x + row * columns + i, mask=mask)
    tl.store(out + row * columns + i, value + tl.load(bias + i, mask=mask), mask=mask)


@weft.jit
def rotary(x, cos, sin, out, HEAD: tl.constexpr, HEADS: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, HEAD // 2)
    at = row * HEADS * HEAD + tl.arange(0, HEADS)[:, None] * HEAD + j[None, :]
    c, s = tl.load(cos + row * HEAD // 2 + j)[None, :], tl.load(sin + row * HEAD // 2 + j)[None, :]
    first, second = tl.load(x + at), tl.load(x + at + HEAD // 2)
    tl.store(out + at, first * c - second * s)
    tl.store(out + at + HEAD // 2, second * c + first * s)


@weft.jit
def looked_up(ids, table, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    mask = i < columns
    tl.store(out + row * columns + i, tl.load(table + tl.load(ids + row) * columns + i, mask=mask), mask=mask)


@weft.jit
def by_vector(a, x, out, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows, j = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, columns, BLOCK):
        total += tl.load(a + rows[:, None] * columns + start + j[None, :]) * tl.load(x + start + j)[None, :]
    tl.store(out + rows, tl.sum(total, 1))


@weft.jit
def transposed(x, out, rows, columns, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)[:, None]
    j = tl.program_id(1) * SIZE + tl.arange(0, SIZE)[None, :]
    mask = (i < rows) & (j < columns)
    tl.store(out + j * rows + i, tl.load(x + i * columns + j, mask=mask), mask=mask)


@dataclass(frozen=True)
class Case:
    name: str
    kernel: Any
    args: Callable[[np.random.Generator], Sequence[Any]]
    grid: tuple[int, ...]
    constants: dict[str, int]


def _array(rng: np.random.Generator, shape: Any, kind: str) -> Any:
    values = rng.integers(-9, 9, shape) if kind == "i8" else rng.random(shape, np.float32)
    return values.astype(TYPES[kind])


def cases() -> list[Case]:
    """All of them; sizes are those of memory, some with edges."""
    found: list[Case] = []

    def flat(name: str, kernel: Any, n: int, kinds: Sequence[str], *more: Any, block: int = 1024) -> None:
        found.append(Case(
            f"{name} {'/'.join(dict.fromkeys(kinds))} of {n:,}", kernel,
            lambda rng: [*(_array(rng, n, kind) for kind in kinds), *more, n], (-(-n // block),), {"BLOCK": block},
        ))  # fmt: skip

    million = 1 << 20
    for kind in ("f32", "f16", "i8"):
        flat("copy", copy, 4 * million, (kind, kind))
    flat("copy", copy, 1_000_003, ("f32", "f32"))
    flat("copy", copy, 1 * million, ("f32", "f32"), block=4096)
    flat("add", add, 2 * million, ("f32", "f32", "f32"))
    flat("add", add, 2_500_000, ("f32", "f32", "f32"))
    flat("axpy", axpy, 2 * million, ("f32", "f32"), 0.5)
    flat("relu", relu, 2 * million, ("f32", "f32"))
    flat("cast", cast, 2 * million, ("f32", "bf16"))
    flat("cast", cast, 2 * million, ("f16", "f32"))
    flat("cast", cast, 2 * million, ("i8", "f32"))
    flat("fill", fill, 4 * million, ("f32",), 1.5)
    flat("gated", gated, 4 * million, ("f32", "f32", "f32"))
    flat("chosen", chosen, 2 * million, ("f32", "f32", "i8", "f32"))
    flat("adam", adam, 4 * million, ("f32", "f32", "f32", "f32"), 1e-3)

    def by_rows(
        name: str, kernel: Any, rows: int, columns: int, kind: str, vectors: int, block: int, out: bool
    ) -> None:
        found.append(Case(
            f"{name} {kind} of {rows:,} x {columns:,}", kernel,
            lambda rng: [
                _array(rng, (rows, columns), kind), *(_array(rng, columns, "f32") for _ in range(vectors)),
                _array(rng, (rows, columns), kind) if out else _array(rng, rows, "f32"), columns,
            ],
            (rows,), {"BLOCK": block},
        ))  # fmt: skip

    by_rows("row sums", row_sums, 1024, 4096, "f32", 0, 1024, False)
    by_rows("row sums", row_sums, 20000, 200, "f32", 0, 256, False)
    by_rows("row sums", row_sums, 32, 131072, "f32", 0, 4096, False)
    by_rows("rms norm", rms_norm, 512, 4096, "f32", 1, 4096, True)
    by_rows("rms norm", rms_norm, 2000, 1000, "f32", 1, 1024, True)
    by_rows("layer norm", layer_norm, 2048, 1024, "f32", 2, 1024, True)
    by_rows("layer norm", layer_norm, 700, 3000, "f32", 2, 4096, True)
    by_rows("bias", biased, 2048, 1024, "f32", 1, 1024, True)
    by_rows("bias", biased, 3000, 768, "f32", 1, 1024, True)
    for rows, columns, block in ((1024, 4096, 1024), (300, 8192, 256)):
        found.append(Case(
            f"column sums f32 of {rows:,} x {columns:,}", column_sums,
            lambda rng, r=rows, c=columns: [_array(rng, (r, c), "f32"), _array(rng, c, "f32"), r, c],
            (columns // block,), {"BLOCK": block},
        ))  # fmt: skip
    found.append(Case(
        "rotary f32, 512 of 32 heads", rotary,
        lambda rng: [_array(rng, (512, 32, 128), "f32"), _array(rng, (512, 64), "f32"),
                     _array(rng, (512, 64), "f32"), _array(rng, (512, 32, 128), "f32")],
        (512,), {"HEAD": 128, "HEADS": 32},
    ))  # fmt: skip
    for columns, block in ((768, 1024), (4096, 4096)):
        rows = 2 * million // columns
        found.append(Case(
            f"rows of a table f32, {columns:,}", looked_up,
            lambda rng, r=rows, c=columns: [
                rng.permutation(r).astype(np.int64), _array(rng, (r, c), "f32"), _array(rng, (r, c), "f32"), c],
            (rows,), {"BLOCK": block},
        ))  # fmt: skip
    for rows, columns, kind in ((1024, 4096, "f32"), (2048, 2048, "f32")):
        found.append(Case(
            f"matrix by vector {kind} of {rows:,} x {columns:,}", by_vector,
            lambda rng, r=rows, c=columns, k=kind: [
                _array(rng, (r, c), k), _array(rng, c, k), _array(rng, r, "f32"), c],
            (rows // 8,), {"ROWS": 8, "BLOCK": 256},
        ))  # fmt: skip
    for size in (32, 64):
        found.append(Case(
            f"transpose f32, tiles of {size}", transposed,
            lambda rng: [_array(rng, (1000, 3000), "f32"), _array(rng, (3000, 1000), "f32"), 1000, 3000],
            (-(-1000 // size), -(-3000 // size)), {"SIZE": size},
        ))  # fmt: skip
    return found


def measured(case: Case, args: Sequence[Any], times: int) -> float:
    """The least of so many times, in microseconds."""
    run = case.kernel[case.grid]
    run(*args, **case.constants)
    best = float("inf")
    for _ in range(times):
        chill()
        sleep(REST)
        begin = perf_counter()
        run(*args, **case.constants)
        best = min(best, perf_counter() - begin)
    return 1e6 * best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", default="", help="only kernels whose name contains this")
    parser.add_argument("--times", type=int, default=12, help="measurements of which the least counts")
    parser.add_argument("--others", action="store_true", help="kernels by which nothing was chosen, alone")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    rates = calibrated() or calibrate()
    found = {"processor": rates.processor, "threads": rates.threads}
    tables = {} if options.others else {"kernels": cases()}
    tables |= {"others": others(_array, Case), "more": more(_array, Case)}
    print(f"{rates.processor}, {rates.threads} threads")
    rows = {name: _table(table, options.k, options.times) for name, table in tables.items()}
    if options.save:
        RESULTS.write_text(json.dumps({**found, **rows}, indent=1) + "\n", encoding="utf-8")


def _table(table: Sequence[Case], part: str, times: int) -> list[dict[str, Any]]:
    """Print the times of kernels, and give them."""
    rows: list[dict[str, Any]] = []
    chosen = [(case, case.args(np.random.default_rng(0))) for case in table if part in case.name]
    took = dict.fromkeys((case.name for case, _ in chosen), float("inf"))
    for _ in range(ROUNDS):  # what disturbs one kernel for a second leaves it other rounds
        for case, args in chosen:
            took[case.name] = min(took[case.name], measured(case, args, -(-times // ROUNDS)))
    print(f"{'kernel':44}{'predicted':>11}{'measured':>11}{'ratio':>7}  bound by")
    for case, args in chosen:
        e = case.kernel.explain(*args, **case.constants, grid=case.grid, target="cpu")
        us = took[case.name]
        if e.time is None:
            print(f"{case.name:44}{'none':>11}{us:11.1f}         {e.counts.note}")
            continue
        ratio = e.time.microseconds / us
        rows.append({"kernel": case.name, "predicted": e.time.microseconds, "measured": round(us, 1)})
        inside = "" if e.time.low <= us <= e.time.high else " (outside of the interval)"
        print(f"{case.name:44}{e.time.microseconds:11.1f}{us:11.1f}{ratio:7.2f}  {e.time.bound}{inside}", flush=True)
    errors = sorted(abs(row["predicted"] / row["measured"] - 1) for row in rows)
    if rows:
        near = sum(error <= NEAR for error in errors)
        print(f"{len(rows)} kernels: median error {statistics.median(errors):.1%}, {near} within {NEAR:.0%}")
    return rows


if __name__ == "__main__":
    main()
