"""The block sizes that Inductor's heuristics choose for a CPU, against others: how far from the best they are.

    python benchmarks/inductor_blocks.py --only softmax,norm     # graphs whose names contain one of these

For each kernel that Inductor writes for some graphs, configurations with sides from a quarter to four times as large
are compiled and timed with one thread (processor time, the lower quartile), each in turns with the chosen one.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Iterator
from time import CLOCK_PROCESS_CPUTIME_ID, clock_gettime
from typing import Any

import inductor  # first: it installs Weft as Triton

# isort: split
import torch
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

from inductor_graphs import GRAPHS
from inductor_more import MORE
from inductor_neighbours import NEIGHBOURS
from inductor_wide import WIDE
from weft.backends.cpu.driver import set_num_threads

LARGEST, ROUNDS = 4096, 15
"""Elements of a tile; runs of each configuration."""


def others(chosen: dict[str, int]) -> Iterator[dict[str, int]]:
    """The blocks that could be chosen instead: each side a quarter to four times as large, in any combination."""
    names = [name for name in chosen if name.endswith("BLOCK")]
    sizes = [[chosen[n] * 4**k // 16 for k in range(5) if chosen[n] * 4**k >= 16] for n in names]

    def combined(k: int, blocks: dict[str, int]) -> Iterator[dict[str, int]]:
        if k == len(names):
            if math.prod(blocks.values()) <= LARGEST and blocks != chosen:
                yield blocks
            return
        for size in sizes[k]:
            yield from combined(k + 1, {**blocks, names[k]: size})

    yield from combined(0, {})


def quartiles(*works: Callable[[], object]) -> list[float]:
    """The lower quartile of the processor time of each, run in turns."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, taken in zip(works, times, strict=True):
            begin = clock_gettime(CLOCK_PROCESS_CPUTIME_ID)
            work()
            taken.append(clock_gettime(CLOCK_PROCESS_CPUTIME_ID) - begin)
    return [statistics.quantiles(taken, n=4)[0] for taken in times]


def launches(make: Callable[[], inductor.Work]) -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """The kernels that a graph launches, with arguments."""
    calls: dict[int, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {}
    run = CachingAutotuner.run

    def recorded(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls[id(self)] = (self, args, kwargs)
        return run(self, *args, **kwargs)

    CachingAutotuner.run = recorded  # type: ignore[method-assign]
    try:
        inductor.compiled(make, "triton")[0]()
    finally:
        CachingAutotuner.run = run  # type: ignore[method-assign]
    return list(calls.values())


def compare(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[float, dict[str, int], dict[str, int]]:
    """How many times as long the chosen configuration takes as the best; both."""
    config = kernel.launchers[0].config
    chosen = {n: v for n, v in config.kwargs.items() if n.endswith("BLOCK")}
    own, most, best = kernel.launchers[0], 1.0, chosen
    for blocks in others(chosen):
        other = type(config)({**config.kwargs, **blocks}, config.num_warps, config.num_stages)
        launcher = kernel._precompile_config(other).make_launcher()
        a, b = quartiles(lambda: own(*args, **kwargs), lambda x=launcher: x(*args, **kwargs))  # type: ignore[misc]
        if a / b > most:
            most, best = a / b, blocks
    return most, chosen, best


def main() -> None:
    """Print a line for each kernel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="graphs whose names contain one of some words, with commas between")
    options = parser.parse_args()
    torch.set_num_threads(1)
    set_num_threads(1)
    ratios = []
    for name, make in [*GRAPHS, *MORE, *WIDE, *NEIGHBOURS]:
        if not any(word in name for word in options.only.split(",")):
            continue
        torch._dynamo.reset()
        for kernel, args, kwargs in launches(make):
            ratio, chosen, best = compare(kernel, args, kwargs)
            ratios.append(ratio)
            blocks, better = (" ".join(f"{n[0]}{v}" for n, v in b.items()) for b in (chosen, best))
            print(f"{name:24s} {kernel.fn.__name__[:48]:48s} {blocks:16s} {ratio:5.2f}x  {better}", flush=True)
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"\n{len(ratios)} kernels: {mean:.2f}x the best in the geometric mean, at most {max(ratios):.2f}x")


if __name__ == "__main__":
    main()
