"""Small problems, Weft beside PyTorch eager: whole calls, outputs allocated beforehand, tensors on both sides.

    for problem in problems(): problem.name, problem.ours(), problem.theirs(), problem.check()

There are twenty, and `more_problems` has others, of sizes that nothing was tuned for: odd ones, primes, other types.

Weft is launched with what its user has: a grid and tensors. Where PyTorch has a form with outputs that computes into
them, that is taken; where it has none (norms), or one that computes and copies, the form without.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as functional

import small_kernels as kernels
import table_kernels
import weft
from measure import SETTLE

F32, BF16 = torch.float32, torch.bfloat16


@dataclass(frozen=True)
class Problem:
    """One piece of work, as two functions without arguments; `out` is what ours writes, `expected` what it should."""

    name: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    out: torch.Tensor
    expected: Callable[[], torch.Tensor]

    def check(self, tolerance: float = 2e-2) -> None:
        """A figure for a wrong result is no figure."""
        self.out.zero_()
        self.ours()
        actual, expected = self.out.double(), self.expected().double()
        if not torch.allclose(actual, expected, rtol=tolerance if self.out.dtype == BF16 else 1e-4, atol=1e-4):
            raise SystemExit(f"{self.name}: the result is wrong, by {float((actual - expected).abs().max()):.1e}")


def problems() -> Iterator[Problem]:
    """The twenty."""
    torch.manual_seed(0)
    for n in (1_000, 10_000, 100_000):
        yield _pointwise(f"add {n:,} f32", kernels.add, torch.add, n, 2)
    yield _layer_norm(64, 1000, BF16)
    yield _by_row("sums of 37x300 f32", kernels.row_sums, torch.sum, 37, 300)
    yield _topk(3, 5000, 8)

    yield _addcmul(16_384)
    yield _pointwise("gelu 65,536 f32", table_kernels.gelu_kernel, torch._C._nn.gelu, 65_536, 1)
    yield _pointwise("sigmoid 32,768 bf16", kernels.sigmoid, torch.sigmoid, 32_768, 1, BF16)
    yield _softmax(32, 128)
    yield _softmax(128, 1000)
    yield _layer_norm(128, 768, F32)
    yield _rms_norm(128, 512)
    yield _total(65_536)
    yield _by_row("argmax of 64x1024 f32", kernels.argmax, torch.argmax, 64, 1024, torch.int64)
    yield _cumsum(64, 1024)
    yield _gather_rows(1000, 128, 256)
    yield _gather(64, 1024)
    yield _matmul(64, 64, 64)
    yield _matmul(128, 128, 256)


def more_problems() -> Iterator[Problem]:
    """Twenty-four others."""
    torch.manual_seed(1)
    for n in (4_097, 50_257, 65_536, 150_000, 200_000):
        yield _pointwise(f"add {n:,} f32", kernels.add, torch.add, n, 2)
    yield _pointwise("add 30,011 bf16", kernels.add, torch.add, 30_011, 2, BF16)
    yield _pointwise("add 99,991 int64", kernels.add, torch.add, 99_991, 2, torch.int64)
    yield _pointwise("gelu 10,007 f32", table_kernels.gelu_kernel, torch._C._nn.gelu, 10_007, 1)
    yield _addcmul(131_072)
    yield _layer_norm(37, 768, BF16)
    yield _layer_norm(200, 333, F32)
    yield _rms_norm(17, 4096)
    yield _softmax(100, 1000)
    yield _softmax(1000, 100)
    yield _by_row("sums of 300x300 f32", kernels.row_sums, torch.sum, 300, 300)
    yield _by_row("argmax of 100x999 f32", kernels.argmax, torch.argmax, 100, 999, torch.int64)
    yield _total(150_000)
    yield _cumsum(300, 129)
    yield _topk(64, 300, 4)
    yield _gather_rows(50_257, 64, 512)
    yield _gather(50, 777)
    yield _matmul(100, 100, 100)
    yield _matmul(65, 257, 129)
    yield _matmul(200, 64, 300)


def _pointwise(name: str, kernel: Any, function: Any, n: int, count: int, dtype: torch.dtype = F32) -> Problem:
    inputs = [(100 * torch.randn(n) if dtype == torch.int64 else torch.randn(n)).to(dtype) for _ in range(count)]
    out, theirs = torch.empty(n, dtype=dtype), torch.empty(n, dtype=dtype)
    grid = (weft.cdiv(n, 1024),)
    return Problem(
        name,
        lambda: kernel[grid](*inputs, out, n, BLOCK=1024),
        lambda: function(*inputs, out=theirs),
        out,
        lambda: function(*inputs),
    )


def _addcmul(n: int) -> Problem:
    x, y, z, out, theirs = (torch.randn(n) for _ in range(5))
    grid = (weft.cdiv(n, 1024),)
    return Problem(
        f"addcmul {n:,} f32",
        lambda: kernels.addcmul[grid](x, y, z, out, n, 0.5, BLOCK=1024),
        lambda: torch.addcmul(x, y, z, value=0.5, out=theirs),
        out,
        lambda: torch.addcmul(x, y, z, value=0.5),
    )


def _softmax(rows: int, columns: int) -> Problem:
    x, out, theirs = (torch.randn(rows, columns) for _ in range(3))
    block = weft.next_power_of_2(columns)
    return Problem(
        f"softmax of {rows}x{columns} f32",
        lambda: table_kernels.softmax_kernel[(rows,)](x, out, columns, BLOCK=block),
        lambda: torch.softmax(x, 1, out=theirs),
        out,
        lambda: torch.softmax(x, 1),
    )


def _layer_norm(rows: int, columns: int, dtype: torch.dtype) -> Problem:
    x, out = torch.randn(rows, columns).to(dtype), torch.empty(rows, columns, dtype=dtype)
    weight, bias = torch.randn(columns).to(dtype), torch.randn(columns).to(dtype)
    block = weft.next_power_of_2(columns)

    def theirs() -> torch.Tensor:
        return functional.layer_norm(x, (columns,), weight, bias, 1e-5)

    return Problem(
        f"layer norm of {rows}x{columns} {'f32' if dtype == F32 else 'bf16'}",
        lambda: kernels.layer_norm[(rows,)](x, weight, bias, out, columns, 1e-5, BLOCK=block),
        theirs,
        out,
        theirs,
    )


def _rms_norm(rows: int, columns: int) -> Problem:
    x, out, weight = torch.randn(rows, columns), torch.empty(rows, columns), torch.randn(columns)
    block = weft.next_power_of_2(columns)

    def theirs() -> torch.Tensor:
        return functional.rms_norm(x, (columns,), weight, 1e-5)

    return Problem(
        f"RMS norm of {rows}x{columns} f32",
        lambda: kernels.rms_norm[(rows,)](x, weight, out, columns, 1e-5, BLOCK=block),
        theirs,
        out,
        theirs,
    )


def _by_row(name: str, kernel: Any, function: Any, rows: int, columns: int, result: torch.dtype = F32) -> Problem:
    x, out, theirs = torch.randn(rows, columns), torch.empty(rows, dtype=result), torch.empty(rows, dtype=result)
    block = weft.next_power_of_2(columns)
    return Problem(
        name,
        lambda: kernel[(rows,)](x, out, columns, BLOCK=block),
        lambda: function(x, 1, out=theirs),
        out,
        lambda: function(x, 1),
    )


def _total(n: int) -> Problem:
    x, out, theirs = torch.rand(n), torch.empty(1), torch.empty(1)
    return Problem(
        f"sum of {n:,} f32",
        lambda: kernels.total[(1,)](x, out, n, BLOCK=1024),
        lambda: torch.sum(x, 0, keepdim=True, out=theirs),
        out,
        lambda: x.double().sum().reshape(1),
    )


def _cumsum(rows: int, columns: int) -> Problem:
    x, out, theirs = (torch.rand(rows, columns) for _ in range(3))
    return Problem(
        f"cumsum of {rows}x{columns} f32",
        lambda: kernels.cumsum[(rows,)](x, out, columns, BLOCK=weft.next_power_of_2(columns)),
        lambda: torch.cumsum(x, 1, out=theirs),
        out,
        lambda: torch.cumsum(x.double(), 1),
    )


def _topk(rows: int, columns: int, k: int) -> Problem:
    x, out = torch.randn(rows, columns), torch.empty(rows, k)
    theirs = torch.empty(rows, k), torch.empty(rows, k, dtype=torch.int64)
    return Problem(
        f"top-k {k} of {rows}x{columns} f32",
        lambda: kernels.topk[(rows,)](x, out, columns, K=k, BLOCK=weft.next_power_of_2(columns)),
        lambda: torch.topk(x, k, out=theirs),
        out,
        lambda: torch.topk(x, k)[0],
    )


def _gather_rows(table_rows: int, columns: int, rows: int) -> Problem:
    table, index = torch.randn(table_rows, columns), torch.randint(0, table_rows, (rows,))
    out, theirs = torch.empty(rows, columns), torch.empty(rows, columns)
    return Problem(
        f"{rows} rows of {table_rows}x{columns} f32",
        lambda: kernels.gather_rows[(rows,)](table, index, out, columns, BLOCK=weft.next_power_of_2(columns)),
        lambda: torch.index_select(table, 0, index, out=theirs),
        out,
        lambda: table[index],
    )


def _gather(rows: int, columns: int) -> Problem:
    x, index = torch.randn(rows, columns), torch.randint(0, columns, (rows, columns))
    out, theirs = torch.empty(rows, columns), torch.empty(rows, columns)
    return Problem(
        f"gather of {rows}x{columns} f32",
        lambda: kernels.gather[(rows,)](x, index, out, columns, BLOCK=weft.next_power_of_2(columns)),
        lambda: torch.gather(x, 1, index, out=theirs),
        out,
        lambda: torch.gather(x, 1, index),
    )


def _matmul(m: int, n: int, k: int) -> Problem:
    a, b, out, theirs = torch.randn(m, k), torch.randn(k, n), torch.empty(m, n), torch.empty(m, n)
    grid = (weft.cdiv(m, 32), weft.cdiv(n, 32))
    whole = m % 32 == n % 32 == k % 64 == 0
    kernel, sizes = (kernels.matmul, (n, k)) if whole else (kernels.matmul_any, (m, n, k))
    return Problem(
        f"matmul {m}x{k}x{n} f32",
        lambda: kernel[grid](a, b, out, *sizes, BLOCK_M=32, BLOCK_N=32, BLOCK_K=64),
        lambda: torch.mm(a, b, out=theirs),
        out,
        lambda: torch.mm(a, b),
    )


TURN = 0.004
"""Seconds for which one side is called, again and again, before it is the other's turn."""


def in_turns(works: Sequence[Callable[[], object]], rounds: int = 9) -> list[float]:
    """The median time of a call of each work. The sides take turns; each begins when the other's threads are asleep,
    is called for a millisecond to wake its own, and then each call is timed by itself.
    """
    clock = time.perf_counter
    samples: list[list[float]] = [[] for _ in works]
    for work in works:
        work()
    for _ in range(rounds):
        for work, times in zip(works, samples, strict=True):
            time.sleep(SETTLE)
            until = clock() + TURN / 4
            while clock() < until:
                work()
            until = clock() + TURN
            while (begin := clock()) < until:
                work()
                times.append(clock() - begin)
    return [statistics.median(times) for times in samples]


def calls_per_second(
    work: Callable[[torch.Tensor], object], outs: Sequence[torch.Tensor], seconds: float = 1.0
) -> float:
    """Calls a second of all threads together, one for each output; the median of some turns."""
    rates = []
    for _ in range(5):
        counts = [0] * len(outs)
        until = time.perf_counter() + seconds / 5

        def call(k: int, counts: list[int] = counts, until: float = until) -> None:
            torch.get_num_threads()  # only a thread that has asked for it works with as many as were set
            while time.perf_counter() < until:
                work(outs[k])
                counts[k] += 1

        threads = [threading.Thread(target=call, args=(k,)) for k in range(len(outs))]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rates.append(sum(counts) / (time.perf_counter() - begin))
        time.sleep(SETTLE)
    return statistics.median(rates)
