"""Indices that are computed in hundreds of steps, each of which uses the one before it twice: no question about them
takes 2^n answers, and no pass of LLVM n^2.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from ptx.launching import launch
from weft.analysis import parts_first
from weft.backends.cpu.schedule import MOST_GATHERED
from weft.backends.llvm.names import DEEPEST, further_names
from weft.backends.nvidia import machine

STEPS = 120


@weft.jit
def quotients(x, out, n, STEPS: tl.constexpr):
    i = tl.arange(0, 64)
    k = i + 1000
    for j in tl.static_range(STEPS):
        k = k // (j % 5 + 1) + k % (j + 3) + 7
    tl.store(out + i, tl.load(x + k % 64))


@weft.jit
def doubled(x, out, n, STEPS: tl.constexpr):
    i = tl.arange(0, 64)
    k = i
    for j in tl.static_range(STEPS):
        k = tl.minimum(k + k, k * 3 + n) % 997
    tl.store(out + i, tl.load(x + k % 64))


@weft.jit
def moved(x, out, n, STEPS: tl.constexpr):
    i = tl.arange(0, 64)
    p = x + i % 2
    for j in tl.static_range(STEPS):
        p += i % (j % 3 + 2) * (i > j)
    tl.store(out + i, tl.load(p))


@weft.jit
def widened(x, out, n, STEPS: tl.constexpr):
    i = tl.arange(0, 64)
    k = i
    for _ in tl.static_range(STEPS):
        k = (k.to(tl.int64) + k).to(tl.int32)
    tl.store(out + i, tl.load(x + (k + i) % 64))


def places(kernel: Any, n: int) -> np.ndarray:
    """What the kernels load."""
    i = np.arange(64)
    if kernel is moved:
        return i % 2 + sum(i % (j % 3 + 2) * (i > j) for j in range(STEPS))
    if kernel is widened:
        return i  # 2^STEPS i is 0
    k = i + 1000 if kernel is quotients else i
    for j in range(STEPS):
        k = k // (j % 5 + 1) + k % (j + 3) + 7 if kernel is quotients else np.minimum(k + k, k * 3 + n) % 997
    return k % 64


@pytest.mark.parametrize("kernel", [quotients, doubled, moved, widened], ids=lambda k: k.fn.__name__)
@pytest.mark.parametrize("target", ["cpu", "sim:cuda:90", "ptx:cuda:90"])
@pytest.mark.thinned(3)
def test_values(kernel: Any, target: str) -> None:
    x, out = np.arange(200, dtype=np.int32), np.zeros(64, np.int32)
    if target.startswith("ptx:"):
        launch(kernel, (1,), {"x": x, "out": out, "n": 5, "STEPS": STEPS}, target.removeprefix("ptx:"))
    else:
        with weft.target(target):
            kernel[(1,)](x, out, 5, STEPS=STEPS)
    np.testing.assert_array_equal(out, places(kernel, 5))


def test_llvm_is_given_chains_that_end(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[tuple[str, str | None]] = []

    def watched(text: str) -> str | None:
        handed.append((text, further_names(text)))
        return handed[-1][1]

    monkeypatch.setattr(machine, "further_names", watched)
    source = weft.ASTSource(doubled, {"x": "*i32", "out": "*i32", "n": "i32"}, {"STEPS": STEPS})
    with weft.knobs.compilation.scope():
        weft.knobs.compilation.always_compile = True
        weft.compile(source, target="cuda:90")
    before, after = max(handed, key=lambda pair: len(pair[0]))
    assert after is not None
    assert further_names(after) is None
    stands = dict(re.findall(r"(%named\.\d+) = freeze \S+ (%\S+)", after))
    lines = [line for line in after.splitlines() if "= freeze" not in line]
    assert re.sub(r"%named\.\d+", lambda m: stands[m[0]], "\n".join(lines)).rstrip() == before.rstrip()


def test_a_chain_is_counted_from_where_its_values_come_from() -> None:
    rows = [f"  %x{i} = add i32 %x{i - 1}, %a" for i in range(1, DEEPEST + 1)]
    loads = [*rows, "  %y = load i32, ptr %p", "  %z0 = sub i32 %y, %a"]
    ends = [f"  %z{i} = sub nsw i32 %z{i - 1}, %a" for i in range(1, DEEPEST)]
    assert further_names("\n".join([*loads, *ends])) is None
    assert further_names("\n".join([*loads, *ends, f"  %w = sext i32 %z{DEEPEST - 1} to i64"])) is not None


def test_operands_come_first_and_once() -> None:
    asked: list[int] = []

    def parts(n: int) -> tuple[int, ...]:
        asked.append(n)
        return (n - 1, n - 1) if n else ()

    assert parts_first(3_000, {}, parts) == list(range(3_001))
    assert len(asked) == 3_001


@weft.jit
def of_the_program(x, out, n, STEPS: tl.constexpr):
    i = tl.arange(0, 1024)
    s = tl.program_id(0)
    for j in tl.static_range(STEPS):
        s = s // 3 + s % 5 + j % 2
    a = tl.load(x + s * 1024 + i)
    a = tl.exp(a - tl.max(a, 0))
    tl.store(out + tl.program_id(0) * 1024 + i, a / tl.sum(a, 0))


def test_the_next_programs_addresses_are_computed_once() -> None:
    """They are fetched while this program only computes."""
    x, out = np.zeros((8, 1024), np.float32), np.zeros((4, 1024), np.float32)
    with weft.knobs.compilation.scope():
        weft.knobs.compilation.always_compile = True
        made = of_the_program[(4,)](x, out, 5, STEPS=STEPS)
    assert "llvm.prefetch" in made.asm["llir"]
    np.testing.assert_allclose(out, 1 / 1024, rtol=1e-6)


@weft.jit
def looked_up(x, out, n, STEPS: tl.constexpr):
    i = tl.arange(0, 64)
    a = tl.zeros([64], tl.int32)
    for j in tl.static_range(STEPS):
        a = a * 3 + tl.load(x + tl.load(x + i + j) % n)
    tl.store(out + i, a)


def test_loads_from_loaded_addresses_are_divided_among_nests() -> None:
    """LLVM's time is n^2 in their number in one nest: 200 took 7 s, and take 1.4."""
    x, out = np.arange(200, dtype=np.int32)[::-1].copy(), np.zeros(64, np.int32)
    looked_up[(1,)](x, out, 50, STEPS=STEPS)
    a = np.zeros(64, np.int32)
    for j in range(STEPS):
        a = a * np.int32(3) + x[x[np.arange(64) + j] % 50]
    np.testing.assert_array_equal(out, a)
    source = weft.ASTSource(looked_up, {"x": "*i32", "out": "*i32", "n": "i32"}, {"STEPS": STEPS})
    bodies = re.split(r"^[\w.]+:", weft.compile(source, target="cpu").asm["llir"], flags=re.MULTILINE)
    assert max(body.count("@llvm.masked.gather") for body in bodies) <= MOST_GATHERED < STEPS
