"""Launches that follow each other after a while, Weft beside PyTorch: what waking threads costs.

    python benchmarks/gaps.py --threads 16

Each side does the same work again and again, and its caller does something else in between, for as long as the second
column says. Weft's threads sleep when there was nothing to do for 45 us, or nap until shortly before the next launch;
OpenMP's wait busily for milliseconds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from measure import SETTLE
from table_kernels import softmax_kernel
from weft.backends.cpu.driver import set_num_threads

GAPS = 0, 10, 30, 60, 100, 200, 500, 1000
"""Microseconds."""
ROUNDS, CALLS = 9, 40


def after_gap(work: Callable[[], object], gap: float) -> list[float]:
    """Seconds of each call, after a few that do not count, with a gap before each."""
    clock, samples = time.perf_counter, []
    for _ in range(CALLS):
        until = clock() + gap
        while clock() < until:
            pass
        begin = clock()
        work()
        samples.append(clock() - begin)
    return samples[CALLS // 4 :]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", default="64,256,1024", help="of the matrix of 1,000 columns whose softmax is taken")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    set_num_threads(options.threads)
    print(f"{'rows':>5s} {'gap':>8s} {'Weft':>10s} {'PyTorch':>10s}  reached (medians, and lower quartiles)")
    for rows in map(int, options.rows.split(",")):
        x, out, theirs = (torch.randn(rows, 1000) for _ in range(3))
        works = (lambda: softmax_kernel[(rows,)](x, out, 1000, BLOCK=1024)), (lambda: torch.softmax(x, 1, out=theirs))
        for gap in GAPS:
            samples: tuple[list[float], ...] = [], []
            for _ in range(ROUNDS):
                for work, times in zip(works, samples, strict=True):
                    time.sleep(SETTLE)
                    times += after_gap(work, gap * 1e-6)
            quartiles = [statistics.quantiles(times, n=4) for times in samples]
            (low, ours, _), (their_low, middle, _) = quartiles
            print(
                f"{rows:5d} {gap:5d} us {ours * 1e6:7.1f} us {middle * 1e6:7.1f} us  {middle / ours:5.2f}"
                f"  ({low * 1e6:.1f} against {their_low * 1e6:.1f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
