"""The rates of this machine's CPU, measured by kernels: what `weft calibrate` does, once for each number of threads.

    rates = calibrated()             # those that were measured before, from the cache; None if there are none
    rates = calibrate()              # half a minute

Everything is measured by turns, in rounds, and the least time of all rounds counts: what disturbs a machine for a
second disturbs one round, and each measurement has others. Before a measurement all threads change other memory, more
than their caches hold, so that what is measured comes from memory, as in the launches whose times are predicted.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from math import log
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

import numpy as np

from weft.backends.cpu.driver import get_num_threads, host_cpu
from weft.base import LaunchError
from weft.explain.processor import Rates

from . import calibration_kernels as kernels, knobs

__all__ = ["calibrate", "calibrated", "chill", "path_of"]

VERSION = 6
SIZES = tuple(1 << log for log in range(16, 28, 2))
"""Bytes that are moved: 64 KiB to 64 MiB."""
ROUNDS, TIMES = 4, 3
"""Rounds, and measurements of each thing in a round; the least of all counts."""
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
APART = 64
"""Elements of a row fewer, so that rows do not begin at the same place of their pages."""
LARGE = 1 << 24
"""Bytes of it, and of what is moved beside arithmetic."""
SIDE_OF_PRODUCT = 64
KEPT = 3
"""Bytes that caches move for each that `again` loads: the tile that its loop carries is read and written."""
BESIDE = (0, 1, 2, 4, 8, 16)
"""Exponentials of each element beside which memory is read and written."""
COLD = 256 << 20
"""Bytes that are changed to have caches cold, at least: virtual machines do not say how large their caches are."""

Runs = dict[str, tuple[Callable[[], Any], bool]]
"""What is measured: a launch, and whether caches are cold before it."""
_cold: np.ndarray[Any, Any] | None = None


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


def chill() -> None:
    """Let all threads change more memory than caches hold."""
    global _cold
    if _cold is None:
        _cold = np.ones(max(COLD, host_cpu().l3_bytes * 9 // 8) // 4 // BLOCK * BLOCK, np.float32)
    kernels.changed[(_cold.size // BLOCK,)](_cold, _cold, BLOCK=BLOCK)


def _measured(threads: int) -> Rates:
    x, out = np.ones(SIZES[-1] // 4, np.float32), np.zeros(SIZES[-1] // 4, np.float32)
    return _rates(_took(dict(_runs(x, out, threads))), threads)


def _took(runs: Runs) -> dict[str, float]:
    """The least microseconds of each, measured by turns."""
    took = dict.fromkeys(runs, float("inf"))
    for run, _ in runs.values():
        run()  # compiled, and its memory touched
    for _ in range(ROUNDS):
        for name, (run, cold) in runs.items():
            took[name] = min(took[name], _least(run, cold))
    return took


def _least(run: Callable[[], Any], cold: bool) -> float:
    """The least of several times, in microseconds."""
    best = float("inf")
    for _ in range(TIMES):
        if cold:
            chill()
        sleep(REST)
        begin = perf_counter()
        run()
        best = min(best, perf_counter() - begin)
    return 1e6 * best


def _runs(x: Any, out: Any, threads: int) -> Iterator[tuple[str, tuple[Callable[[], Any], bool]]]:
    """What is measured, by names that `_rates` knows."""

    def cold(name: str, kernel: Any, grid: tuple[int, ...], *args: Any, **sizes: int) -> Any:
        return name, (partial(kernel[grid], x, out, *args, **sizes), True)

    def warm(name: str, kernel: Any, grid: tuple[int, ...], *args: Any, **sizes: int) -> Any:
        return name, (partial(kernel[grid], x, out, *args, **sizes), False)

    grid = (8 * threads,)
    for programs in (1, MANY // 64, MANY):
        block = LITTLE * 64 if programs == MANY // 64 else LITTLE
        yield warm(f"{programs} programs", kernels.little, (programs,), BLOCK=block)
    yield cold("launch", kernels.little, (1,), BLOCK=LITTLE)
    kernel: Any
    for size in SIZES:
        for kernel, part in ((kernels.read, 1), (kernels.written, 1), (kernels.copied, 2), (kernels.changed, 1)):
            yield cold(f"{kernel.__name__} {size}", kernel, (size // 4 // BLOCK // part,), BLOCK=BLOCK)
    for name, different in (("near", 4), ("far", 64)):
        yield warm(name, kernels.again, grid, MANY, different, BLOCK=1024)
    arithmetic = (kernels.simple, kernels.special, kernels.divided, kernels.special_and_divided, kernels.rounded_to)
    for kernel in arithmetic:
        yield warm(kernel.__name__, kernel, grid, TURNS, BLOCK=BLOCK)
    yield warm("summed", kernels.summed, grid, MANY, BLOCK=LITTLE)
    for dtype in (np.float32, np.float16):
        run = partial(kernels.product[grid], x.astype(dtype), out, TURNS, BLOCK=SIDE_OF_PRODUCT)
        yield f"product {np.dtype(dtype)}", (run, False)
    by_rows: tuple[Any, ...] = (kernels.rows_read, kernels.rows_written)
    for kernel in by_rows:
        for length in (*LENGTHS, 4 * SIDE):
            rows, columns = 4 * BLOCK // length, length // 4
            many = LARGE // (4 * SIDE) // rows, SIDE // columns
            yield cold(f"{kernel.__name__} {length}", kernel, many, SIDE=SIDE, ROWS=rows, COLUMNS=columns)
    count = LARGE // 4 // BLOCK
    yield cold("one", kernels.read, (count,), BLOCK=BLOCK)
    yield cold("four", kernels.read_of_four, (count // 4,), LARGE // 16, BLOCK=BLOCK)
    yield cold("looped", kernels.read_in_a_loop, (count // 4,), 4 * BLOCK, BLOCK=BLOCK // 4)
    yield cold("alone", kernels.read_in_a_loop, (1,), LARGE // 4 // threads, BLOCK=BLOCK // 4)
    for more in (0, APART):  # columns of about a square of as many bytes, and rows of what is stored
        for size in (32, 64):
            columns, rows = SIDE // 2, SIDE // 2 - more
            tiles = rows // size, columns // size
            yield cold(f"turned {size} {more}", kernels.turned, tiles, rows, columns, SIZE=size)
    yield cold("copied", kernels.copied, (count // 2,), BLOCK=BLOCK)
    yield cold("copied whole", kernels.copied, (count,), BLOCK=BLOCK)
    for length in (BLOCK // 4, BLOCK):
        yield cold(f"scaled {length}", kernels.scaled, (LARGE // 8 // length,), BLOCK=length)
    for n in BESIDE:
        yield cold(f"both {n}", kernels.both, (count,), n, BLOCK=BLOCK)


def _rates(took: Mapping[str, float], threads: int) -> Rates:
    """The rates that follow from microseconds."""
    launch, warm = took["launch"], took["1 programs"]
    program = max(0.0, took[f"{MANY} programs"] - took[f"{MANY // 64} programs"]) / (MANY - MANY // 64)
    read, written, both, in_place = [], [], [], []
    for size in SIZES:
        programs = {"read": 1, "written": 1, "copied": 2, "changed": 1}
        net = {
            name: max(1e-3, took[f"{name} {size}"] - launch - size // 4 // BLOCK // part * program)
            for name, part in programs.items()
        }
        read.append(size / net["read"])
        written.append(size / net["written"])
        in_place.append(size / max(net["changed"] - net["read"], net["read"] / 8))
        both.append(net["copied"] / (net["read"] + net["written"]) * 2)
    all, each = 8 * threads, 8 * threads * BLOCK * TURNS
    slow = [
        tuple(round(max(1.0, took[f"{name} {n}"] / took[f"{name} {4 * SIDE}"]), 3) for n in LENGTHS)
        for name in ("rows_read", "rows_written")
    ]
    near, far = (KEPT * 4096 * all * MANY / (took[name] - warm) for name in ("near", "far"))
    products = [
        2 * all * TURNS * SIDE_OF_PRODUCT**3 / (took[f"product {name}"] - warm) for name in ("float32", "float16")
    ]
    special = each / (took["special"] - warm)
    return Rates(
        processor=processor(),
        threads=threads,
        launch=round(launch, 3),
        program=round(program, 5),
        sizes=SIZES,
        read=_rounded(read),
        written=_rounded(written),
        both=tuple(round(ratio, 3) for ratio in both),
        in_place=_rounded(in_place),
        alone=round(min(1.0, (took["looped"] - launch) / (took["alone"] - launch) / threads), 4),
        lengths=LENGTHS,
        slow_read=slow[0],
        slow_written=slow[1],
        of_four=round(took["four"] / took["one"], 3),
        looped=round(took["looped"] / took["one"], 3),
        by_rows=(
            round(took[f"scaled {BLOCK // 4}"] / took["copied"], 3),
            round(took[f"scaled {BLOCK}"] / took["copied"], 3),
        ),
        turned=_turned(took, 0),
        turned_apart=_turned(took, APART),
        again=round(near, 1),
        far=round(far, 1),
        simple=round(8 * each / (took["simple"] - warm), 1),
        special=round(special, 1),
        divided=round(each / (took["divided"] - warm), 1),
        beside=round(_power(*(took[name] - warm for name in ("special", "divided", "special_and_divided"))), 2),
        rounded=round(each / (took["rounded_to"] - warm), 1),
        reduction=round((took["summed"] - warm) / all / MANY, 5),
        together=_together(took, special),
        product=round(products[0], 1),
        product_16=round(products[1], 1),
    )


def _turned(took: Mapping[str, float], more: int) -> tuple[float, float]:
    """How many times as long as a copy transposing takes, for tiles of 32 and 64."""
    part = 1 - more / (SIDE // 2)
    small, large = (round(took[f"turned {size} {more}"] / part / took["copied whole"], 3) for size in (32, 64))
    return small, large


def _together(took: Mapping[str, float], special: float) -> float:
    """The power of the mean in which memory and arithmetic are combined, from kernels that have about as much of both:
    1 where one waits for the other, 8 where both go on at once. The middle one of three."""
    memory = took["both 0"]
    turns = sorted(BESIDE[1:], key=lambda n: abs(log(n * LARGE / 4 / special / memory)))[:3]
    powers = [_power(memory, n * LARGE / 4 / special, took[f"both {n}"]) for n in turns]
    return round(median(powers), 2)


def _power(first: float, second: float, both: float) -> float:
    """The power of the mean that makes what both take of what each takes alone.

    >>> round(_power(3.0, 4.0, 5.0), 3)
    2.0
    """
    both = max(1.05 * max(first, second), both)
    low, high = 1.0, 8.0
    for _ in range(20):
        middle = (low + high) / 2
        more = (first**middle + second**middle) ** (1 / middle) > both
        low, high = (middle, high) if more else (low, middle)
    return low


def _rounded(rates: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(rate, 1) for rate in rates)
