"""Compile time grows in a straight line: for four times as much, no function is called much more than that as often.

Calls are counted, not seconds, so that the test says the same on every machine. What is inside LLVM is not seen here;
`benchmarks/compile_ladder.py` times it.
"""

from __future__ import annotations

import cProfile
import importlib.util
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.backends.llvm import parts
from weft.frontend import chains

LADDER = Path(__file__).resolve().parents[2] / "benchmarks" / "compile_ladder.py"
TARGETS = ("cpu:x86-64-v4", "cuda:90")
"""The widths of vectors decide how long a function is: those of one processor, wherever the test runs."""
STEP = 4
MOST = 8
"""How many times as often a function may be called: 4^1.5, as short kernels do not fill the last round of all."""
MOST_IN_NESTS = 24
"""The same for nests: 4^2, and half as much again."""
FEW = 24
"""Calls for each line of a kernel from which growth counts: some steps begin at a size."""
PAIRS = {
    "placement.py": "every two buffers that are in use at the same time",
    "overlaps": "the same, asked of their lives",
    "global_touches.py": "every two accesses between which nothing is written for sure",
}
"""What looks at pairs, and of what: of a few hundred things at most, in little time for each."""


def load_ladder() -> Any:
    spec = importlib.util.spec_from_file_location("compile_ladder", LADDER)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["compile_ladder"] = module
    spec.loader.exec_module(module)
    return module


ladder = load_ladder()


def calls(name: str, target: str, size: int, folder: Path) -> Counter[str]:
    """How often each function is called while the kernel of a ladder compiles."""
    source = ladder.source_of(ladder.LADDERS[name].program(size), str(folder), f"{name}_{size}")
    profiler = cProfile.Profile()
    with weft.knobs.compilation.scope():
        weft.knobs.compilation.always_compile = True
        profiler.enable()
        try:
            weft.compile(source, target=target)
        finally:
            profiler.disable()
    counted: Counter[str] = Counter()
    for entry in profiler.getstats():  # type: ignore[attr-defined]
        code = entry.code
        name = code if isinstance(code, str) else f"{code.co_filename}:{code.co_firstlineno} {code.co_name}"
        counted[name] += entry.callcount
    return counted


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("operations", 40),
        ("unrolling", 40),
        ("call_tree", 32),
        ("elif_chain", 24),
        ("accesses", 12),
        ("arguments", 12),
        ("loops", 10),
        ("sorts", 1),
        ("reductions", 10),
    ],
)
@pytest.mark.thinned(3)
def test_no_function_is_called_quadratically(
    name: str, size: int, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains, "LONGEST", 5)  # up to there each branch is looked at by all that it is in
    monkeypatch.setattr(parts, "LONG", 0)  # both lengths are divided
    monkeypatch.setattr(parts, "PART", 10)
    assert_growth(name, target, size, tmp_path, MOST)


@pytest.mark.parametrize("target", TARGETS)
def test_no_function_is_called_exponentially_in_nests(target: str, tmp_path: Path) -> None:
    """Python takes 20 loops in each other: each may look at all within it, but not twice at each that does so too."""
    assert_growth("nested_accesses", target, 5, tmp_path, MOST_IN_NESTS)


def assert_growth(name: str, target: str, size: int, folder: Path, most: int) -> None:
    """No function is called more than `most` times as often for a kernel `STEP` times as long."""
    calls(name, target, 2, folder)  # what is made once in a process
    few, many = (calls(name, target, n, folder) for n in (size, STEP * size))
    steep = {
        f"{where}: {few[where]} calls, then {count}"
        for where, count in many.items()
        if count > most * max(few[where], FEW * size) and not any(pair in where for pair in PAIRS)
    }
    assert not steep, "\n".join(sorted(steep))
