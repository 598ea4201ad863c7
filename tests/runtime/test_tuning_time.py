"""What tuning on a CPU leaves out: code that is made already, processors that stand idle, runs of clear losers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.runtime import autotuner, many, trials


def add(x, n, BLOCK: tl.constexpr, EXTRA: tl.constexpr = 0):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + EXTRA, mask=i < n)


def launch(kernel: Any) -> None:
    kernel[lambda meta: (weft.cdiv(64, meta["BLOCK"]),)](np.zeros(64, np.float32), 64)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The configurations that were run."""
    found: list[Any] = []
    real = autotuner.Autotuner._bench

    def bench(self: Any, *args: Any, config: Any, **meta: Any) -> Any:
        found.append(config)
        return real(self, *args, config=config, **meta)

    monkeypatch.setattr(autotuner.Autotuner, "_bench", bench)
    return found


def test_options_of_gpus_make_no_other_code(measured: list[Any]) -> None:
    configs = [
        weft.Config({"BLOCK": b, "waves_per_eu": w, "kpack": p}, num_warps=4 * p, num_stages=w)
        for b in (16, 32)
        for w in (1, 2)
        for p in (1, 2)
    ]
    kernel = weft.autotune(configs, key=[])(weft.jit(add))
    launch(kernel)
    assert [c.kwargs["BLOCK"] for c in measured] == [16, 32]
    assert len(kernel.configs_timings) == 8


def test_options_that_heuristics_look_at_make_other_code(measured: list[Any]) -> None:
    configs = [weft.Config({"BLOCK": 32}, num_warps=w, num_stages=s) for w in (1, 2) for s in (1, 2)]
    kernel = weft.jit(add)
    kernel = weft.heuristics({"EXTRA": lambda args: args["num_warps"]})(kernel)
    launch(weft.autotune(configs, key=[])(kernel))
    assert [c.num_warps for c in measured] == [1, 2]


def test_code_is_made_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    compile_many = many.compile_many

    def all_of_them(items: Any, **options: Any) -> Any:
        done.append(f"{len(items)} kernels")
        return compile_many(items, **options)

    monkeypatch.setattr(many, "compile_many", all_of_them)
    monkeypatch.setattr(many, "cores", lambda: 2)
    configs = [weft.Config({"BLOCK": 16 * (i % 4 + 1) if i % 4 != 2 else 128, "EXTRA": i}) for i in range(4)]
    kernel = weft.autotune(configs, key=[], pre_hook=None)(weft.jit(add))
    launch(kernel)
    assert done == ["4 kernels"]
    hooked = weft.autotune([weft.Config(c.kwargs, pre_hook=lambda args: None) for c in configs], key=[])(weft.jit(add))
    launch(hooked)
    assert done == ["4 kernels"]  # a hook may change what is compiled


def _race(times: list[float], best: float, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[list[float], int]:
    """What is measured of runs that take so many milliseconds each, and how many were made."""
    now, runs = [0.0], iter(times)
    monkeypatch.setattr(trials.time, "perf_counter", lambda: now[0])

    def run() -> None:
        now[0] += next(runs) / 1e3

    kernel = weft.autotune([weft.Config({"BLOCK": 16})], key=[])(weft.jit(add))
    kernel.configs_timings = {kernel.configs[0]: [best] * 3}
    race: Callable[..., list[float]] = kernel._race
    measured = race(run, compiled)
    return measured, len(times) - len(list(runs))


@pytest.mark.parametrize(
    ("times", "best", "compiled", "runs", "median"),
    [
        ([500, 450, 1], 100, False, 2, 450),  # the first run compiled; four times as slow in the next
        ([450, 1], 100, True, 1, 450),  # long, and compiled before
        ([9, 5, 1], 1, True, 2, 5),  # short: the first run finds cold caches
        ([180, 1], 100, True, 1, 180),  # more than 1.5 times as slow
        ([140, 130, 1], 100, True, 2, 140),  # more than 1.25 times in the best of two
        ([110, 120, 100, 1], 100, True, 3, 110),  # as fast as the best
        ([9.0] + [1.0] * 100, 1, True, 61, 1),  # short: 60 ms of runs
    ],
)
def test_a_clear_loser_is_not_run_to_the_end(
    times: list[float], best: float, compiled: bool, runs: int, median: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured, made = _race(times, best, compiled, monkeypatch)
    assert made == runs
    assert measured[0] == pytest.approx(median)
    assert measured[1] <= measured[0] <= measured[2]
