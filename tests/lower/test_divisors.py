"""What is known of divisors: which of them need no scaling before their reciprocal is taken."""

from __future__ import annotations

from typing import Any

import pytest

import weft
import weft.language as tl
from weft.compiler import ASTSource, lane_program

POINTERS: dict[str, Any] = {"x": "*fp32", "out": "*fp32", "n": "i32"}


@weft.jit
def running_mean(x, out, n):
    i = tl.arange(0, 128)
    mean, weight = tl.zeros([128], tl.float32), 0.0
    for k in range(n):
        weight += 1.0
        mean += (tl.load(x + k * 128 + i) - mean) / weight
    tl.store(out + i, mean)


@weft.jit
def sigmoid(x, out, n):
    i = tl.arange(0, 128)
    tl.store(out + i, n / (1 + tl.exp(-tl.load(x + i))))


@weft.jit
def normalized(x, out, n):
    i = tl.arange(0, 128)
    v = tl.load(x + i)
    tl.store(out + i, v / tl.maximum(tl.sqrt(tl.sum(v * v)), 1e-12))


@weft.jit
def by_difference(x, out, n):
    """What grows and shrinks, so that nothing is known of it."""
    i = tl.arange(0, 128)
    v, divisor = tl.load(x + i), 1.0
    for _ in range(n):
        divisor -= 0.25
    tl.store(out + i, v / divisor)


@weft.jit
def by_product(x, out, n):
    """What is never negative, but as large or as small as can be."""
    i = tl.arange(0, 128)
    v, divisor = tl.load(x + i), 1.0
    for _ in range(n):
        divisor *= 0.5
    tl.store(out + i, v / divisor)


@weft.jit
def by_constant(x, out, n):
    i = tl.arange(0, 128)
    tl.store(out + i, tl.load(x + i) / 3.0)


def scales(kernel: weft.JITFunction) -> set[tuple[str, ...] | None]:
    """What is said of the divisors of a kernel's quotients."""
    program = lane_program(ASTSource(kernel, POINTERS, {}), "sim:cuda:90", {})
    return {op.attrs.get("scaled") for op in program.body.walk() if op.name == "arith.divf"}


@pytest.mark.parametrize(
    ("kernel", "scaled"),
    [
        (running_mean, ()),
        (sigmoid, ("huge",)),
        (normalized, ("huge",)),
        (by_difference, ("tiny", "huge")),
        (by_product, ("tiny", "huge")),
    ],
)
def test_divisors_are_scaled_for_what_they_may_be(kernel: weft.JITFunction, scaled: tuple[str, ...]) -> None:
    assert scales(kernel) == {scaled}


def test_constants_are_left_to_the_assembler() -> None:
    assert scales(by_constant) == {None}
