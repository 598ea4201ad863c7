"""How long the simulator takes: a tile product by matrix instructions, and a vector add over a large grid.

    python benchmarks/simulator.py                 # both, with every checker, and without
    python benchmarks/simulator.py --profile       # where the time goes

Times are the process' own (CPU seconds), the best of several launches after the first, which compiles.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Callable

import ml_dtypes
import numpy as np

import weft
import weft.language as tl
from weft.sim import Options


@weft.jit
def product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y))


@weft.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


def tile_product(options: Options) -> None:
    """128 x 128 x 64 of bf16, one block of four warps."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, s).astype(ml_dtypes.bfloat16) for s in ((128, 64), (64, 128)))
    c = np.zeros((128, 128), np.float32)
    with weft.target("sim:cuda:80"), weft.sim.options(options):
        product[(1,)](a, b, c, M=128, N=128, K=64)
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()


def vector_add(options: Options) -> None:
    """1,024 programs of 1,024 elements."""
    x = np.arange(1 << 20, dtype=np.float32)
    out = np.zeros_like(x)
    with weft.target("sim:cuda:80"), weft.sim.options(options):
        add[(1024,)](x, x, out, len(x), BLOCK=1024)
    assert (out == x + x).all()


CASES: dict[str, tuple[Callable[[Options], None], float]] = {
    "tile product, 128 x 128 x 64, bf16": (tile_product, 0.5),
    "vector add, 1,024 programs of 1,024": (vector_add, 2.0),
}
"""What is measured, and the seconds that it may take."""
UNCHECKED = Options(races=False, bounds=False, uninitialized=False)


def seconds(run: Callable[[Options], None], options: Options, launches: int = 5) -> float:
    """The best of several launches, the first left out."""
    run(options)
    taken = []
    for _ in range(launches):
        start = time.process_time()
        run(options)
        taken.append(time.process_time() - start)
    return min(taken)


def profile(run: Callable[[Options], None]) -> None:
    """Print the functions that take most."""
    run(Options())
    profiler = cProfile.Profile()
    profiler.runcall(run, Options())
    pstats.Stats(profiler).sort_stats("tottime").print_stats(20)


def main() -> int:
    """Print the table; 1 where one takes longer than it may."""
    parser = argparse.ArgumentParser(description="How long the simulator takes.")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    arguments = parser.parse_args()
    late = 0
    print(f"{'':38}{'checked':>10}{'unchecked':>12}{'may take':>10}")
    for name, (run, limit) in CASES.items():
        checked, unchecked = seconds(run, Options()), seconds(run, UNCHECKED)
        late += checked > limit
        print(f"{name:38}{checked:>8.3f} s{unchecked:>10.3f} s{limit:>8.1f} s")
        if arguments.profile:
            profile(run)
    return int(late > 0)


if __name__ == "__main__":
    raise SystemExit(main())
