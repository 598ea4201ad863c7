"""Timing on a machine that others use too: interleaved repetitions, medians, and how far they spread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds: the median of the repetitions, and the quartiles' distance as a share of it."""

    median: float
    spread: float


def summary(samples: Sequence[float]) -> Timing:
    """Median and spread of some samples."""
    middle = statistics.median(samples)
    if len(samples) < 4:
        return Timing(middle, (max(samples) - min(samples)) / middle)
    low, _, high = statistics.quantiles(samples, n=4)
    return Timing(middle, (high - low) / middle)


SETTLE = 0.02
"""Seconds between two sides. OpenMP's threads, PyTorch's among them, keep their cores busy for some milliseconds after
their work is done; whoever runs next would share the cores with them."""


def interleaved(
    works: Sequence[Callable[[], object]], budget: float = 5.0, least: int = 8, most: int = 60, runs: int = 2
) -> list[Timing]:
    """Time several works in turns, so that what disturbs the machine disturbs all of them alike.

    Each turn waits until the threads of the turn before are asleep, runs once to wake its own, and counts some runs.
    """
    for work in works:  # the first run compiles and touches memory
        work()
    samples: list[list[float]] = [[] for _ in works]
    begin = time.perf_counter()
    while len(samples[0]) < least or (len(samples[0]) < most and time.perf_counter() - begin < budget):
        for work, times in zip(works, samples, strict=True):
            time.sleep(SETTLE)
            work()
            for _ in range(runs):
                start = time.perf_counter()
                work()
                times.append(time.perf_counter() - start)
    return [summary(times) for times in samples]


def per_call(work: Callable[[], object], calls: int = 2000, rounds: int = 9) -> Timing:
    """The time of one call among many in a row."""
    samples = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            work()
        samples.append((time.perf_counter() - start) / calls)
    return summary(samples)
