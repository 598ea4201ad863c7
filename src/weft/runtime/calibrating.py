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

VERSION = 1
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
TURNS = 64
"""Operations on each element in the kernels that measure arithmetic."""


@jit
def _little(x, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) * 0.5)


@jit
def _read(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + i), 0))


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
def _again(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(n):
        total += tl.load(x + (k % 8) * BLOCK + i)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@jit
def _simple(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i)
    for _ in range(n):
        value = value * 0.5 + 1.0
    tl.store(out + i, value)


@jit
def _special(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i)
    for _ in range(n):
        value = tl.exp(value)
    tl.store(out + i, value)


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
    many = _least(partial(_read[(MANY,)], x, out, BLOCK=LITTLE), cold=False)
    program = max(0.0, many - launch) / MANY
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
    work = _least(lambda: _again[grid](x, out, MANY, BLOCK=1024), cold=False) - launch
    simple, special = (
        grid[0] * BLOCK * TURNS / (_least(partial(each[grid], x, out, TURNS, BLOCK=BLOCK), cold=False) - launch)
        for each in (_simple, _special)
    )
    return Rates(
        processor(), threads, round(launch, 3), round(program, 5), SIZES, _rounded(read), _rounded(written),
        tuple(round(ratio, 3) for ratio in both), _rounded(in_place),
        round(grid[0] * MANY * 1024 * 4 / work, 1), round(2 * simple, 1), round(special, 1),
    )  # fmt: skip


def _rounded(rates: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(rate, 1) for rate in rates)


def _least(run: Callable[[], Any], cold: bool = True) -> float:
    """The least of several times, in microseconds."""
    run()
    best = float("inf")
    for _ in range(TIMES):
        if cold:
            clear_cache()
        sleep(REST)
        begin = perf_counter()
        run()
        best = min(best, perf_counter() - begin)
    return 1e6 * best
