"""The rates of this machine's CPU, measured by kernels: what `weft calibrate` does, once for each number of threads.

    rates = calibrated()             # those that were measured before, from the cache; None if there are none
    rates = calibrate()              # some ten seconds

Before each measurement other memory is read, so that caches are cold, and the least of several times counts: another
process can only add to it.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np

from weft import language as tl
from weft.backends.cpu.driver import get_num_threads
from weft.base import LaunchError
from weft.explain.processor import Rates

from . import knobs
from .jit import jit
from .testing import clear_cache

__all__ = ["calibrate", "calibrated", "path_of"]

VERSION = 3
SIZES = tuple(1 << log for log in range(16, 28, 2))
"""Bytes that are moved: 64 KiB to 64 MiB."""
TIMES = 16
"""Measurements of which the least counts."""
REST = 0.002
"""Seconds of sleep before a measurement, after which the system lets a thread run for a while without a break."""
BLOCK = 4096
LITTLE = 64
"""Elements of a program that measures what a program takes."""
MANY = 4096
"""Programs of a launch that measures what a program takes."""
TURNS = 16
"""Operations on each element in the kernels that measure arithmetic."""
LENGTHS = (128, 256, 1024, 4096)
"""Bytes of rows that are on different pages."""
SIDE = 4096
"""Elements of a row of the matrix of which they are parts."""
LARGE = 1 << 24
"""Bytes of it, and of what is moved beside arithmetic."""
SIDE_OF_PRODUCT = 64


@jit
def _little(x, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) * 0.5)


@jit
def _read(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + i), 0))


@jit
def _read_of_four(x, out, part, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first, second = tl.load(x + i) + tl.load(x + part + i), tl.load(x + 2 * part + i) + tl.load(x + 3 * part + i)
    tl.store(out + tl.program_id(0), tl.sum(first + second, 0))


@jit
def _read_in_a_loop(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + tl.program_id(0) * n + start + i)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@jit
def _scaled(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i) * 0.5
    tl.store(out + i, value * tl.sum(value * value, 0))


@jit
def _written(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.full((BLOCK,), 1.5, tl.float32))


@jit
def _copied(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


@jit
def _changed(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(out + i) + 1.0)


@jit
def _again(x, out, n, different, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(n):
        total += tl.load(x + (k % different) * BLOCK + i)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@jit
def _simple(x, out, n: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b, c, d = a + 1.0, a + 2.0, a + 3.0
    for _ in tl.static_range(n):
        a = a * 0.5 + 1.0
        b = b * 0.5 + 1.0
        c = c * 0.5 + 1.0
        d = d * 0.5 + 1.0
    tl.store(out + i, (a + b) + (c + d))


@jit
def _special(x, out, n: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i) * 0.01
    b = a
    for k in tl.static_range(n):
        a += tl.exp(b - k)
    tl.store(out + i, a)


@jit
def _divided(x, out, n: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = a + 2.0
    for k in tl.static_range(n):
        a += 1.5 / (b + k)
    tl.store(out + i, a)


@jit
def _rounded_to(x, out, n: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = a
    for k in tl.static_range(n):
        a += (b + k).to(tl.bfloat16).to(tl.float32)
    tl.store(out + i, a)


@jit
def _summed(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x + i), 0)
    for _ in range(n):
        total += tl.sum(tl.load(x + i) * total, 0)
    tl.store(out + tl.program_id(0) * BLOCK + i, tl.full((BLOCK,), total, tl.float32))


@jit
def _both(x, out, n: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    b = tl.load(x + i)
    a = b
    for k in tl.static_range(n):
        a += tl.exp(b - k)
    tl.store(out + i, a)


@jit
def _turned(x, out, SIDE: tl.constexpr, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)[:, None]
    j = tl.program_id(1) * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(out + j * SIDE + i, tl.load(x + i * SIDE + j))


@jit
def _rows_read(x, out, SIDE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    total = tl.sum(tl.sum(tl.load(x + i * SIDE + j), 1), 0)
    tl.store(out + tl.program_id(1) * tl.num_programs(0) + tl.program_id(0), total)


@jit
def _rows_written(x, out, SIDE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + i * SIDE + j, tl.full((ROWS, COLUMNS), 1.5, tl.float32))


@jit
def _product(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(n):
        total += tl.dot(tl.load(x + k % 2 * BLOCK * BLOCK + at), tl.load(x + at), input_precision="ieee")
    tl.store(out + tl.program_id(0) * BLOCK * BLOCK + at, total)


def path_of(threads: int) -> Path | None:
    """The file with the rates for so many threads; None where there is no cache."""
    directory = knobs.cache.dir
    return Path(directory) / f"cpu-rates-{threads}.json" if directory else None


def calibrated() -> Rates | None:
    """The rates that were measured on this processor with as many threads as launches use now; None if none were."""
    path = path_of(get_num_threads())
    try:
        plain = json.loads(path.read_text(encoding="utf-8")) if path is not None else None
    except (OSError, ValueError):
        return None
    if not isinstance(plain, dict) or plain.pop("weft calibrate", None) != VERSION:
        return None
    if plain.get("processor") != processor():
        return None
    facts: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()}
    return Rates(**facts)


def calibrate() -> Rates:
    """Measure the rates, and keep them in the cache. LaunchError where there is none."""
    threads = get_num_threads()
    path = path_of(threads)
    if path is None:
        raise LaunchError("there is no cache to keep the rates in (WEFT_NO_CACHE)", hint="set WEFT_CACHE_DIR")
    rates = _measured(threads)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_text(json.dumps({"weft calibrate": VERSION, **asdict(rates)}, indent=1), encoding="utf-8")
    beside.replace(path)
    return rates


def processor() -> str:
    """What this processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _measured(threads: int) -> Rates:
    x, out = np.ones(SIZES[-1] // 4, np.float32), np.zeros(SIZES[-1] // 4, np.float32)
    launch = _least(partial(_little[(1,)], x, BLOCK=LITTLE), cold=False)
    many, few = (_least(partial(_little[(MANY // k,)], x, BLOCK=LITTLE * k), cold=False) for k in (1, 64))
    program = max(0.0, many - few) / (MANY - MANY // 64)
    read, written, both, in_place = [], [], [], []
    for size in SIZES:
        took = []
        kernels: tuple[tuple[Any, int], ...] = ((_read, 1), (_written, 1), (_copied, 2), (_changed, 1))
        for kernel, part in kernels:
            grid = (size // 4 // BLOCK // part,)
            run = partial(kernel[grid], x, out, BLOCK=BLOCK)
            took.append(max(1e-3, _least(run) - launch - grid[0] * program))
        read.append(size / took[0])
        written.append(size / took[1])
        in_place.append(size / max(took[3] - took[0], took[0] / 8))
        both.append(took[2] / (took[0] + took[1]) * 2)
    grid = (8 * threads,)
    near, far = (
        KEPT * 4096 * grid[0] * MANY / (_least(partial(_again[grid], x, out, MANY, k, BLOCK=1024), False) - launch)
        for k in (4, 64)
    )
    simple, special, divided, rounded = (
        grid[0] * BLOCK * TURNS / (_least(partial(each[grid], x, out, TURNS, BLOCK=BLOCK), cold=False) - launch)
        for each in (_simple, _special, _divided, _rounded_to)
    )
    sums = _least(partial(_summed[grid], x, out, MANY, BLOCK=LITTLE), cold=False) - launch
    multiplied = []
    for dtype in (np.float32, np.float16):
        run = partial(_product[grid], x.astype(dtype), out, TURNS, BLOCK=SIDE_OF_PRODUCT)
        multiplied.append(2 * grid[0] * TURNS * SIDE_OF_PRODUCT**3 / (_least(run, cold=False) - launch))
    slow = [_by_length(kernel, x, out) for kernel in (_rows_read, _rows_written)]
    return Rates(
        processor(), threads, round(launch, 3), round(program, 5), SIZES, _rounded(read), _rounded(written),
        tuple(round(ratio, 3) for ratio in both), _rounded(in_place), LENGTHS, slow[0], slow[1],
        *_by_ways(x, out), round(near, 1), round(far, 1), round(8 * simple, 1), round(special, 1), round(divided, 1),
        round(rounded, 1), round(sums / grid[0] / MANY, 5), _together(x, out, special), *_rounded(multiplied),
    )  # fmt: skip


KEPT = 3
"""Bytes that caches move for each that `_again` loads: the tile that its loop carries is read and written."""


def _by_ways(x: Any, out: Any) -> tuple[float, float, tuple[float, float], float]:
    """How many times as long as reading one array, tile by tile, it takes to read four arrays at a time, and to read in
    loops that carry a tile; and how many times as long as a copy, to read tiles of 4 KiB and of 16 KiB, add
    them up, and store them, and to transpose a matrix."""
    count = LARGE // 4 // BLOCK
    side, size = SIDE // 2, SIDE_OF_PRODUCT  # a square of as many bytes
    one, four, looped, whole, turned, copied, short, scaled = _alternating(
        partial(_read[(count,)], x, out, BLOCK=BLOCK),
        partial(_read_of_four[(count // 4,)], x, out, LARGE // 16, BLOCK=BLOCK),
        partial(_read_in_a_loop[(count // 4,)], x, out, 4 * BLOCK, BLOCK=BLOCK // 4),
        partial(_copied[(count,)], x, out, BLOCK=BLOCK),
        partial(_turned[(side // size, side // size)], x, out, SIDE=side, SIZE=size),
        partial(_copied[(count // 2,)], x, out, BLOCK=BLOCK),
        partial(_scaled[(2 * count,)], x, out, BLOCK=BLOCK // 4),
        partial(_scaled[(count // 2,)], x, out, BLOCK=BLOCK),
    )
    by_rows = round(short / copied, 3), round(scaled / copied, 3)
    return round(four / one, 3), round(looped / one, 3), by_rows, round(turned / whole, 3)


def _alternating(*runs: Callable[[], Any]) -> list[float]:
    """The least times of several, in microseconds, measured by turns, so that they can be compared."""
    best = [_least(run, times=1) for run in runs]
    for _ in range(2 * TIMES):
        best = [min(least, _least(run, times=1)) for least, run in zip(best, runs, strict=True)]
    return best


def _by_length(kernel: Any, x: Any, out: Any) -> tuple[float, ...]:
    """How many times as long rows of each of the lengths take as a matrix that is read or written as a whole."""
    took = []
    for length in (*LENGTHS, 4 * SIDE):
        columns = length // 4
        rows = BLOCK // columns
        grid = (LARGE // (4 * SIDE) // rows, SIDE // columns)
        took.append(_least(partial(kernel[grid], x, out, SIDE=SIDE, ROWS=rows, COLUMNS=columns)))
    return tuple(round(max(1.0, each / took[-1]), 3) for each in took[:-1])


def _together(x: Any, out: Any, special: float) -> float:
    """The power of the mean in which memory and arithmetic are combined, from a kernel that has as much of both: 1
    where one waits for the other, 8 where both go on at once."""
    elements = LARGE // 4
    grid = (elements // BLOCK,)
    turns = max(1, round(_least(partial(_both[grid], x, out, 0, BLOCK=BLOCK)) * special / elements))
    memory, took = _alternating(*(partial(_both[grid], x, out, n, BLOCK=BLOCK) for n in (0, turns)))
    arithmetic = turns * elements / special
    took = max(1.05 * max(memory, arithmetic), took)
    low, high = 1.0, 8.0
    for _ in range(20):
        middle = (low + high) / 2
        more = (memory**middle + arithmetic**middle) ** (1 / middle) > took
        low, high = (middle, high) if more else (low, middle)
    return round(low, 2)


def _rounded(rates: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(rate, 1) for rate in rates)


def _least(run: Callable[[], Any], cold: bool = True, times: int = TIMES) -> float:
    """The least of several times, in microseconds."""
    run()
    best = float("inf")
    for _ in range(times):
        if cold:
            clear_cache()
        sleep(REST)
        begin = perf_counter()
        run()
        best = min(best, perf_counter() - begin)
    return 1e6 * best
