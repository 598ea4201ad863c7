"""The two sides of the GPU benchmarks: one source loaded for Weft and for Triton, timed in turns; or only compiled.

    OURS = load_side("weft", "gpu_kernels", jit=weft.jit, tl=weft.language)
    THEIRS = load_side("triton", "gpu_kernels", jit=triton.jit, tl=triton.language)
    ours, theirs = medians(lambda: OURS.add[grid](...), lambda: THEIRS.add[grid](...))

A benchmark is divided into parts, which `gpu_goals.py` has measured one after the other while other processes compile
the kernels of the parts that follow, so that the GPU need not wait. A benchmark says of itself:

    parts()          the names of its parts
    prepare(part)    launches every kernel of a part, in a process of `compile_only`, where a launch only compiles
    measure(part)    yields what was reached (goals.Line)
"""

from __future__ import annotations

import importlib.util
import itertools
import statistics
import sys
import time
import types
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
import triton

import weft

__all__ = ["Compiled", "alternating", "check", "compile_only", "fastest", "load_side", "medians"]

HERE = Path(__file__).resolve().parent
RUNS = 5
"""Of two sides whose speeds are close, the median of so many runs counts."""
CLEAR = 1.02
"""A side that is so many times faster in two runs needs no third."""
HOPELESS = 1.25
"""A configuration that takes so many times as long as the fastest, in a few launches, is not timed for longer."""
_only_compiles = False


def load_side(name: str, file: str, **provided: Any) -> Any:
    """A file of kernels with what one side provides."""
    sys.modules["sides"] = sides = types.ModuleType("sides")
    vars(sides).update(provided)
    spec = importlib.util.spec_from_file_location(f"{file}_{name}", HERE / f"{file}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.gl = provided.get("gl")  # type: ignore[attr-defined]
    module.Descriptor = provided.get("descriptor")  # type: ignore[attr-defined]
    return module


class Compiled:
    """What a launch gives in a process that only compiles."""

    n_regs = n_spills = 0
    asm = {"ttgir": ""}


def compile_only(share: int, shares: int) -> None:
    """From now on, launches of this process compile, and nothing runs: one in `shares`, beginning with number `share`.

    As many processes as there are shares make all launches of a part, so that each compiles a part of the kernels.
    """
    global _only_compiles
    _only_compiles = True
    numbers = itertools.count()

    def launcher(kernel: Any, grid: Any) -> Callable[..., Compiled]:
        def compiled(*args: Any, **more: Any) -> Compiled:
            if next(numbers) % shares == share:
                kernel.warmup(*args, grid=grid, **more)
            return Compiled()

        return compiled

    for kind in (weft.JITFunction, triton.JITFunction):
        kind.__getitem__ = launcher


def medians(*calls: Callable[[], Any], seconds: float = 0.4, least: int = 10) -> list[float]:
    """The median time of each call on the GPU, in seconds; they take turns, the L2 cache is overwritten between.

    Every other round goes the other way about, so that no side is always behind the same one. The slowest takes about
    so many seconds in all, but is called `least` times.
    """
    if _only_compiles:
        return [1.0] * len(calls)
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    for call in calls:
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    slowest = 0.0
    for call in calls:
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        slowest = max(slowest, time.perf_counter() - begin)
    rounds = max(least, min(200, int(seconds / (slowest + 1e-4))))
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2 * rounds)] for _ in calls]
    for k in range(rounds):
        for call, marks in list(zip(calls, events, strict=True))[:: -1 if k & 1 else 1]:
            flush.zero_()
            marks[2 * k].record()
            call()
            marks[2 * k + 1].record()
    torch.cuda.synchronize()
    return [
        statistics.median(marks[2 * k].elapsed_time(marks[2 * k + 1]) for k in range(rounds)) * 1e-3 for marks in events
    ]


def alternating(ours: Callable[[], Any], theirs: Callable[[], Any], seconds: float = 0.08) -> tuple[float, float]:
    """The times of two sides, of the run whose ratio is the median of five; of two if they say clearly the same."""
    runs: list[tuple[float, float]] = []
    while len(runs) < RUNS and not (len(runs) == 2 and min(b / a for a, b in runs) >= CLEAR):
        first, second = medians(ours, theirs, seconds=seconds)
        runs.append((first, second))
        if _only_compiles:
            break
    return sorted(runs, key=lambda run: run[1] / run[0])[(len(runs) - 1) // 2]


def quickest(calls: Sequence[Callable[[], Any]], seconds: float) -> list[float]:
    """Median times of calls of which only the least matters: what a few launches show to be slow has that time."""
    times = medians(*calls, seconds=0.0, least=3)
    close = [i for i, t in enumerate(times) if t <= HOPELESS * min(times)]
    for i, t in zip(close, medians(*(calls[i] for i in close), seconds=seconds), strict=True):
        times[i] = t
    return times


def fastest(launches: Iterable[tuple[Any, Callable[[], Any]]], seconds: float = 0.05) -> tuple[Any, Callable[[], Any]]:
    """(configuration, what launches it) of least median, of those for which a multiprocessor has enough."""
    fitting = []
    for configuration, launch in launches:
        try:
            launch()
            torch.cuda.synchronize()
        except Exception as error:  # what a side cannot do is out of the list
            if "resource" not in str(error) and "OutOfResources" not in type(error).__name__:
                raise
            continue
        fitting.append((configuration, launch))
    times = quickest([launch for _, launch in fitting], seconds)
    return fitting[times.index(min(times))]


def check(out: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    """Stop where a result is wrong: nothing is timed that is not right."""
    if _only_compiles:
        return
    error = (out.double() - expected.double()).norm() / expected.double().norm().clamp_min(1e-30)
    if not bool(error <= tolerance):
        raise AssertionError(f"wrong result: relative error {float(error):.3g}")
