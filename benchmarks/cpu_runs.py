"""What rows of tiles cost on the CPU by their length: reading, writing through the caches, and around them.

    python benchmarks/cpu_runs.py                  # as many threads as launches use
    WEFT_NUM_THREADS=1 python benchmarks/cpu_runs.py

A matrix of 64 MiB is read, or written, by tiles of 16 KiB whose rows are pages apart. "at a line" and "beside one" say
where rows begin. Gigabytes of a second, the most of several times; where the processor cannot store around the caches
these columns are as the one before. `backends/cpu/streaming.py` has its limits from this table.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import perf_counter
from typing import Any
from unittest import mock

import numpy as np

import weft
import weft.language as tl
from weft.backends.cpu import streaming
from weft.backends.cpu.driver import get_num_threads
from weft.runtime import knobs
from weft.runtime.calibrating import processor

SIDE = 4096
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096, 16384)


@weft.jit
def read(x, out, SIDE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    total = tl.sum(tl.sum(tl.load(x + i * SIDE + j), 1), 0)
    tl.store(out + tl.program_id(1) * tl.num_programs(0) + tl.program_id(0), total)


@weft.jit
def written(x, out, SIDE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + i * SIDE + j, tl.full((ROWS, COLUMNS), 1.5, tl.float32))


def _at(offset: int) -> Any:
    """A matrix that begins so many bytes behind a line."""
    memory = np.ones(SIDE * SIDE + 1024, np.float32)
    first = (-memory.ctypes.data // 4) % 1024 + offset // 4
    return memory[first : first + SIDE * SIDE]


def _most(runs: list[Callable[[], Any]], times: int) -> list[float]:
    """Gigabytes of a second, of one after the other by turns."""
    least = [float("inf")] * len(runs)
    for _ in range(times):
        for k, run in enumerate(runs):
            begin = perf_counter()
            run()
            least[k] = min(least[k], perf_counter() - begin)
    return [4e-9 * SIDE * SIDE / seconds for seconds in least]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5, help="measurements of which the least counts")
    options = parser.parse_args()
    print(f"{processor()}, {get_num_threads()} threads")
    print(f"{'bytes of a row':>14}{'read':>8}{'through':>9}{'around, at a line':>19}{'around, beside one':>20}")
    x, aligned, beside = _at(0), _at(0), _at(16)
    knobs.cache.disabled = True
    for length in LENGTHS:
        columns = length // 4
        rows = max(1, 4096 // columns)
        grid, sizes = (SIDE // rows, SIDE // columns), {"SIDE": SIDE, "ROWS": rows, "COLUMNS": columns}

        def run(kernel: Any, out: Any, grid: Any = grid, sizes: Any = sizes) -> Callable[[], Any]:
            made = weft.jit(kernel.fn)
            made[grid](x, out, **sizes)
            return lambda: made[grid](x, out, **sizes)

        with mock.patch.multiple(streaming, STREAM_BYTES=1 << 60):
            runs = [run(read, aligned), run(written, aligned)]
        with mock.patch.multiple(streaming, STREAM_BYTES=1, SHORT_RUN=0, LONG_RUN=0):
            runs += [run(written, aligned), run(written, beside)]
        rates = _most(runs, options.times)
        print(f"{length:14,}{rates[0]:8.1f}{rates[1]:9.1f}{rates[2]:19.1f}{rates[3]:20.1f}", flush=True)


if __name__ == "__main__":
    main()
