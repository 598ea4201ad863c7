"""Mixed-precision products in the simulator: some of every pair of types always, all of them in the long run."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import weft

from .assembling import needs_ptxas
from .mixed import CASES, CASES_OF_PAIR, LANGUAGE_CASES, Mixed, mixed_dot, mixed_mma

TARGETS = ("sim:cuda:80", "sim:cuda:90")


def _check(kernel: Any, case: Mixed, constants: dict[str, Any], target: str) -> None:
    a, b, c = case.operands()
    kernel[(1,)](a, b, c, **constants, num_warps=4, target=target)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


def _by_language(case: Mixed) -> dict[str, Any]:
    m, n, k = case.shape
    return {"M": m, "N": n, "K": k, **case.types()}


def _sample(cases: list[Mixed], of_each: int) -> list[Mixed]:
    """A few of each pair of types, spread over its shapes and widths."""
    found = []
    for pair in {(case.left, case.right): None for case in cases}:
        those = [case for case in cases if (case.left, case.right) == pair]
        found += [those[(2 * i + 1) * len(those) // (2 * of_each)] for i in range(of_each)]
    return found


def test_there_are_as_many_cases_of_each_pair_as_published() -> None:
    assert Counter(case.pair for case in CASES) == CASES_OF_PAIR
    assert len(set(CASES)) == 784


@pytest.mark.parametrize("case", _sample(CASES, 3), ids=str)
@pytest.mark.thinned(2)
def test_some(case: Mixed) -> None:
    _check(mixed_mma, case, case.constants(), TARGETS[CASES.index(case) % 2])


@pytest.mark.parametrize("case", _sample(LANGUAGE_CASES, 1), ids=str)
def test_some_of_the_language(case: Mixed) -> None:
    _check(mixed_dot, case, _by_language(case), TARGETS[LANGUAGE_CASES.index(case) % 2])


NAMES = {"f8": "fp8e5", "e4m3": "fp8e4nv", "f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64"}


@needs_ptxas
@pytest.mark.parametrize("kernel", [mixed_mma, mixed_dot], ids=["gluon", "language"])
@pytest.mark.parametrize("case", _sample(CASES, 1), ids=str)
@pytest.mark.thinned(2)
def test_ptxas_takes_it(case: Mixed, kernel: Any) -> None:
    constants = case.constants() if kernel is mixed_mma else _by_language(case)
    total = "*fp64" if case.float_type == "f64" else "*fp32"
    operands = [f"*{NAMES.get(kind, kind)}" for kind in (case.left, case.right)]
    signature = {"a": operands[0], "b": operands[1], "c": total, **dict.fromkeys(constants, "constexpr")}
    source = weft.ASTSource(kernel, signature, constants)
    target = TARGETS[CASES.index(case) % 2].removeprefix("sim:")
    made = weft.compile(source, target=target)
    assert "mma.sync" in made.asm["ptx"] or "wgmma" in made.asm["ptx"]
    assert made.asm["cubin"][:4] == b"\x7fELF"


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_all(case: Mixed, target: str) -> None:
    _check(mixed_mma, case, case.constants(), target)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", LANGUAGE_CASES, ids=str)
def test_all_of_the_language(case: Mixed, target: str) -> None:
    _check(mixed_dot, case, _by_language(case), target)
