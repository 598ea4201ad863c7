"""Two groups of warps that multiply in turns: when, results, and that barriers left out are missed."""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.compiler.gpu import lane_program
from weft.sim import RaceError, run as simulate

from .assembly import parse
from .local import run
from .test_local import without_barriers
from .waits import check


@weft.jit
def product(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr, TILES: tl.constexpr
):
    """c = a b; a program computes TILES tiles below each other."""
    rn, rk = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    for tile in range(TILES):
        rm = (tl.program_id(0) * TILES + tile) * BM + tl.arange(0, BM)
        at_a, at_b = a + rm[:, None] * K + rk[None, :], b + rk[:, None] * N + rn[None, :]
        total = tl.zeros((BM, BN), ACC)
        for _ in range(0, K, BK):
            total = tl.dot(tl.load(at_a), tl.load(at_b), total, out_dtype=ACC)
            at_a += BK
            at_b += BK * N
        tl.store(c + rm[:, None] * N + rn[None, :], total)


SIZES = {"BM": 128, "BN": 128, "BK": 128, "ACC": tl.float32, "TILES": 1}


def source(kind: str = "fp16", **constants: Any) -> weft.ASTSource:
    """The product, of arrays that say that they are small and aligned."""
    signature = {**dict.fromkeys("ab", f"*{kind}"), "c": "*fp32", **dict.fromkeys("MNK", "i32")}
    facts = {(i,): [["tt.divisibility", 16]] + ([["tt.pointer_range", 32]] if i < 3 else []) for i in range(6)}
    return weft.ASTSource(product, signature, {**SIZES, **constants}, facts)


def compiled(target: str, options: dict[str, int] | None = None, **constants: Any) -> Any:
    return weft.compile(source(**constants), target=f"hip:{target}", options={"num_warps": 8, **(options or {})})


LARGE = {"BM": 256, "BN": 256, "BK": 64}


@pytest.mark.parametrize(
    ("target", "sizes", "phases", "each"),
    [("gfx942", LARGE, 4, 16), ("gfx942", {}, 2, 16), ("gfx90a", {}, 2, 16), ("gfx950", LARGE, 2, 16)],
)
def test_memory_and_products_are_apart(target: str, sizes: dict[str, int], phases: int, each: int) -> None:
    """Between a barrier and the next there are products or accesses of memory, never both; waits are complete."""
    kernel = compiled(target, **sizes)
    assert kernel.n_spills == 0 and any(": ping pong: " in str(r) for r in kernel.remarks)
    text = kernel.asm["amdgcn"]
    assert check(text) == []
    (function,) = parse(text).values()
    inside = [function.instructions[i] for i in sorted(min(function.loops, key=len))]
    names = " ".join(i.name for i in inside)
    parts = names.split("s_barrier")
    assert len(parts) == 2 * phases + 1
    kinds = [(len(re.findall(r"\bv_mfma", p)), len(re.findall(r"\b(ds_|buffer_)", p))) for p in parts[:-1]]
    assert [products for products, _ in kinds] == [0, each] * phases
    assert all(bool(products) != bool(accesses) for products, accesses in kinds)
    assert names.count("s_setprio") == 2 * phases
    outside = [i.name for i in function.instructions if i not in inside]
    assert outside.count("s_barrier") >= 3, "one before the loop, and one of each group"


@pytest.mark.parametrize(
    ("target", "sizes", "options"),
    [
        ("gfx942", LARGE, {"num_warps": 4}),
        ("gfx942", {"BK": 64}, {}),
        ("gfx1201", LARGE, {}),
        ("gfx942", {}, {"num_stages": 1}),
        ("gfx950", {"BM": 128, "BN": 128, "BK": 64}, {"num_stages": 2}),
    ],
    ids=["four warps", "too little", "RDNA", "nothing ahead", "room for two blocks"],
)
def test_where_it_hides_nothing_warps_run_in_step(target: str, sizes: dict[str, int], options: dict[str, int]) -> None:
    program = lane_program(source(**{**SIZES, **sizes}), f"sim:hip:{target}", {"num_warps": 8, **options})
    assert not any("ping_pong" in op.attrs for op in program.body.walk())


def arrays(kind: Any, m: int, n: int, k: int) -> tuple[Any, Any, Any]:
    """Operands, and room for their product."""
    rng = np.random.default_rng(0)
    return rng.integers(-4, 5, (m, k)).astype(kind), rng.integers(-4, 5, (k, n)).astype(kind), np.zeros((m, n), "f4")


EXACT: dict[str, tuple[str, dict[str, Any], int, int]] = {
    "gfx942": ("gfx942", {}, 3, 2),
    "one iteration": ("gfx942", {}, 1, 2),
    "two products of a program": ("gfx942", {"TILES": 2}, 2, 2),
    "four phases": ("gfx942", LARGE, 3, 2),
    "copies": ("gfx950", LARGE, 3, 2),
    "copies two iterations ahead": ("gfx950", {"BM": 256}, 4, 3),
}
SLOW = ("four phases", "copies", "copies two iterations ahead")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in EXACT])
def test_results_are_exact(name: str) -> None:
    target, sizes, iterations, stages = EXACT[name]
    sizes = {**SIZES, **sizes}
    m, n, k = sizes["BM"] * sizes["TILES"], sizes["BN"], sizes["BK"] * iterations
    a, b, c = arrays(np.float16, m, n, k)
    with weft.target(f"sim:hip:{target}"):
        program = product[(1, 1)](a, b, c, m, n, k, **sizes, num_warps=8, num_stages=stages)
    assert "ping_pong" in program.asm["lane"]
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()


MISSED = {"gfx942": ({}, 2, [0, 1, 2, 3]), "gfx950": (LARGE, 3, [2, 3])}
"""Sizes, stages, and which barriers of an iteration order accesses; the others of gfx950 only part the two groups."""


@pytest.mark.parametrize("target", MISSED)
def test_a_barrier_that_is_left_out_is_a_race(target: str) -> None:
    """By both groups, so that they stay one barrier apart; each way that the warps may run in."""
    sizes, stages, needed = MISSED[target]
    sizes = {**SIZES, **sizes}
    k = 4 * sizes["BK"]
    found = []
    for left_out in range(4):
        made = lane_program(source(**sizes), f"sim:hip:{target}", {"num_warps": 8, "num_stages": stages})
        (loop,) = (op for op in made.body.walk() if "ping_pong" in op.attrs)
        barriers = [op for op in loop.regions[0].ops if op.name == "barrier"]
        assert len(barriers) == 4
        loop.regions[0].ops.remove(barriers[left_out])
        a, b, c = arrays(np.float16, sizes["BM"], sizes["BN"], k)
        given = {"a": a, "b": b, "c": c, "M": sizes["BM"], "N": sizes["BN"], "K": k}
        try:
            simulate(made, (1, 1, 1), given)
            assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()
        except RaceError:
            found.append(left_out)
    assert found == needed


@pytest.mark.parametrize(
    ("target", "sizes", "stages", "tried"),
    [("gfx942", {}, 2, 0), *(pytest.param(t, s, n, 4, marks=pytest.mark.slow) for t, (s, n, _) in MISSED.items())],
)
def test_waves_meet_before_they_read(target: str, sizes: dict[str, Any], stages: int, tried: int) -> None:
    """Run from the final text, bytes of LDS are read behind a wait and a barrier; not so with a barrier less."""
    text = compiled(target, {"num_stages": stages}, **sizes).asm["amdgcn"]
    (function,) = parse(text).values()
    given = struct.pack("<3Q3i", 1 << 20, 1 << 21, 1 << 22, 256, 256, 256).ljust(128, b"\0")
    assert run(function, text, given, 8) == []
    if tried:
        assert sum(bool(run(changed, text, given, 8)) for changed in without_barriers(function)) >= tried
