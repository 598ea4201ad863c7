"""What pages, alignments and values of arrays make of kernels that wait for memory on a CPU.

    WEFT_NUM_THREADS=1 python benchmarks/cpu_pages.py

The same launches with arrays as NumPy makes them one after the other, and in memory of large or of small pages, at so
many bytes behind a page each. Microseconds with warm caches and with cold ones, the least of several.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import cpu_probe
import explain_cpu
from explain_cpu_others import blended
from weft.backends.cpu.driver import get_num_threads
from weft.runtime.calibrating import chill, processor

LARGE_PAGE = 2 << 20


def of_pages(size: int, large: bool) -> Any:
    """Memory of large pages, if the system has such, or of small ones, touched."""
    region = mmap.mmap(-1, size + LARGE_PAGE)
    region.madvise(mmap.MADV_HUGEPAGE if large else mmap.MADV_NOHUGEPAGE)
    memory = np.frombuffer(region, np.uint8)
    first = -memory.ctypes.data % LARGE_PAGE
    memory = memory[first : first + size]
    memory[:] = 0
    return memory


def large_pages_of(array: Any) -> str:
    """Megabytes of large pages of the region that an array lies in, and its size."""
    inside, size = False, ""
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        head = line.split()
        if "-" in head[0] and ":" not in head[0]:
            low, high = (int(part, 16) for part in head[0].split("-"))
            inside = low <= array.ctypes.data < high
            size = f"{(high - low) >> 20}" if inside else size
        elif inside and head[0] == "AnonHugePages:":
            return f"{int(head[1]) >> 10} of {size}"
    return "?"


def least(run: Callable[[], Any], cold: bool) -> float:
    best = float("inf")
    for _ in range(6):
        if cold:
            chill()
        begin = perf_counter()
        run()
        best = min(best, perf_counter() - begin)
    return 1e6 * best


def both(name: str, run: Callable[[], Any]) -> None:
    run()
    print(f"{name:60} warm {least(run, False):7.0f} cold {least(run, True):7.0f}", flush=True)


def placed(regions: Sequence[Any], arrays: Sequence[Any], offsets: Sequence[int]) -> list[Any]:
    """Copies of arrays in memory, at offsets."""
    found = []
    for region, array, offset in zip(regions, arrays, offsets, strict=True):
        found.append(region[offset : offset + array.nbytes].view(array.dtype).reshape(array.shape))
        found[-1][...] = array
    return found


def main() -> None:
    print(f"{processor()}, {get_num_threads()} threads")
    rng = np.random.default_rng(0)
    n = 4 << 20
    regions = {large: [of_pages(32 << 20, large) for _ in range(4)] for large in (True, False)}
    made: dict[str, tuple[Any, int, Any]] = {
        "gated": (explain_cpu.gated, 3, (n,)),
        "adam": (explain_cpu.adam, 4, (1e-3, n)),
        "add": (explain_cpu.add, 3, (n,)),
        "blended": (blended, 4, (n,)),
    }
    for name, (kernel, count, more) in made.items():
        arrays = [explain_cpu._array(rng, n, "f32") for _ in range(count)]
        text = " ".join(f"{a.ctypes.data % 4096}({large_pages_of(a)})" for a in arrays)
        both(f"{name} as made, {text}", partial(kernel[(n // 1024,)], *arrays, *more, BLOCK=1024))
        for large in (True, False):
            for offsets in ((16, 16, 16, 16), (16, 32, 48, 64), (0, 0, 0, 0), (0, 1024, 2048, 3072)):
                there = placed(regions[large][:count], arrays, offsets[:count])
                what = f"{name} {'large' if large else 'small'} {offsets[:count]}"
                both(what, partial(kernel[(n // 1024,)], *there, *more, BLOCK=1024))
        ones = placed(regions[True][:count], [np.ones(n, np.float32)] * count, (16, 16, 16, 16)[:count])
        both(f"{name} large, ones", partial(kernel[(n // 1024,)], *ones, *more, BLOCK=1024))
    for rows, columns in ((1000, 3000), (992, 3008), (1024, 3072), (1008, 3072)):
        for size in (32, 64):
            x = rng.random((rows, columns), np.float32)
            for large, offsets in ((True, (16, 16)), (True, (0, 0)), (False, (16, 16)), (True, (16, 2064))):
                a, b = placed(regions[large][:2], [x, np.ascontiguousarray(x.T)], offsets)
                grid = (-(-rows // size), -(-columns // size))
                run = partial(explain_cpu.transposed[grid], a, b, rows, columns, SIZE=size)
                both(f"transposed {rows}x{columns} {size} {'large' if large else 'small'} {offsets}", run)
    for kind in ("bf16", "f32"):
        few = [explain_cpu._array(rng, 16384, kind) for _ in range(4)]
        both(f"blended {kind} of 16384", partial(blended[(4,)], *few, 16384, BLOCK=4096))
    few = [explain_cpu._array(rng, 16384, "f32") for _ in range(4)]
    both("gated of 16384", partial(explain_cpu.gated[(16,)], *few[:3], 16384, BLOCK=1024))
    both("adam of 16384", partial(explain_cpu.adam[(16,)], *few, 1e-3, 16384, BLOCK=1024))
    both("turned 128x128", partial(cpu_probe.turned[(2, 2)], few[0], few[1], 128, 128, SIZE=64))


if __name__ == "__main__":
    main()
