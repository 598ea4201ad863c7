"""How much is followed for an explanation: few programs, and few iterations of loops, however large a launch is.

Seconds depend on the machine, so that programs and iterations are what is bounded here; benchmarks/explain_cost.py
has the seconds.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import weft
import weft.language as tl
from weft.explain import Explanation, programs
from weft.runtime import explaining
from weft.sim import control, count


@weft.jit
def causal(x, y, out, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Rows of a triangle: program i multiplies i + 1 blocks."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM, BK):
        left = tl.load(x + m[:, None] * 4096 + start + k[None, :])
        right = tl.load(y + (start + k)[:, None] * BN + tl.arange(0, BN)[None, :])
        total = tl.dot(left, right, total)
    tl.store(out + m[:, None] * BN + tl.arange(0, BN)[None, :], total.to(tl.float16))


@weft.jit
def persistent(x, out, tiles, K, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    """Tile after tile; some programs have one more than the others."""
    for tile in range(tl.program_id(0), tiles, PROGRAMS):
        total = tl.zeros((BLOCK,), tl.float32)
        for step in range(K):
            total += tl.load(x + (tile * K + step) * BLOCK + tl.arange(0, BLOCK))
        tl.store(out + tile * BLOCK + tl.arange(0, BLOCK), total)


class Work:
    """Programs that were followed, and iterations of loops."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.programs = self.turns = 0
        step, follow = control._step, programs._followed

        def stepped(context: Any, op: Any) -> None:
            self.turns += 1
            step(context, op)

        def followed(program: Any, given: Any, numbers: Any, *more: Any) -> Any:
            self.programs += len(numbers)
            return follow(program, given, numbers, *more)

        monkeypatch.setattr(control, "_step", stepped)
        monkeypatch.setattr(programs, "_followed", followed)


def _whole(monkeypatch: pytest.MonkeyPatch, kernel: Any, *args: Any, **given: Any) -> tuple[Explanation, Counter[str]]:
    """The explanation, and what the counter says of all programs and all iterations."""
    compiled: list[Any] = []
    explained = explaining.explained

    def noted(made: Any, target: str, grid: Any, values: Any, *more: Any) -> Explanation:
        compiled.extend((made.program, grid, explaining._scalars(made.program, values)))
        return explained(made, target, grid, values, *more)

    monkeypatch.setattr(explaining, "explained", noted)
    e = kernel.explain(*args, target="cuda:90", **given)
    program, grid, scalars = compiled
    return e, Counter({name: n for name, n in count(program, grid, scalars).total.items() if n})


def test_a_triangle(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = weft.like((768, 4096), "fp16"), weft.like((4096, 64), "fp16")
    e, whole = _whole(monkeypatch, causal, x, y, x, BM=64, BN=64, BK=32, grid=(12,))
    assert e.counts.exact and Counter(e.counts.total) == whole


def test_a_large_triangle_takes_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    x, y = weft.like((1 << 15, 4096), "fp16"), weft.like((1 << 15, 64), "fp16")
    e = causal.explain(x, y, x, BM=64, BN=64, BK=32, grid=(512,), target="cuda:90")
    assert e.counts.exact
    assert work.programs <= 16 and work.turns <= 300  # of 512 programs with 262,656 iterations


def test_tile_after_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    x, out = weft.like((30 * 30, 256), "fp32"), weft.like((30, 256), "fp32")
    e, whole = _whole(monkeypatch, persistent, x, out, 30, 30, BLOCK=256, PROGRAMS=12, grid=(12,))
    assert e.counts.exact and Counter(e.counts.total) == whole


def test_many_tiles_take_little_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    x, out = weft.like((1000 * 4000, 256), "fp32"), weft.like((1000, 256), "fp32")
    e = persistent.explain(x, out, 1000, 4000, BLOCK=256, PROGRAMS=132, grid=(132,), target="cuda:90")
    assert e.counts.exact
    assert work.programs <= 8 and work.turns <= 600  # of 132 programs with 4,000,000 iterations


def test_what_is_known_of_other_arguments_changes_nothing() -> None:
    x, y = weft.like((1 << 12, 4096), "fp16"), weft.like((1 << 12, 64), "fp16")

    def explained(grid: int) -> dict[str, Any]:
        counts = causal.explain(x, y, x, BM=64, BN=64, BK=32, grid=(grid,), target="cuda:90").counts
        return dict(counts.total) | {"exact": counts.exact}

    explained(64)
    afterwards = explained(9)
    programs._EXPLAINED.clear()
    assert explained(9) == afterwards
