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


def interleaved(
    works: Sequence[Callable[[], object]], budget: float = 4.0, least: int = 7, most: int = 60
) -> list[Timing]:
    """Time several works in turns, so that what disturbs the machine disturbs all of them alike."""
    for work in works:  # the first run compiles, touches memory, wakes threads
        work()
        work()
    samples: list[list[float]] = [[] for _ in works]
    begin = time.perf_counter()
    while len(samples[0]) < least or (len(samples[0]) < most and time.perf_counter() - begin < budget):
        for work, times in zip(works, samples, strict=True):
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
