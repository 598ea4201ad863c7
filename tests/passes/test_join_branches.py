"""Branches on the same condition, one after the other: which are one, and that they compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import scf

import weft
import weft.language as tl
from weft.ir import parse_module, print_module, verify
from weft.passes.join_branches import join_branches

HEAD = "module {\ntt.func public @f(%q: !tt.ptr<i32>, %n: i32, %c: i1, %d: i1) {\n"
FIRST = """
  %r = scf.if %c -> (i32) {
    tt.store %q, %n : !tt.ptr<i32>
    %1 = arith.addi %n, %n : i32
    scf.yield %1 : i32
  } else {
    scf.yield %n : i32
  }
"""
SECOND = """
  %s = scf.if @ -> (i32) {
    %2 = arith.muli %r, %n : i32
    scf.yield %2 : i32
  } else {
    scf.yield %r : i32
  }
  tt.store %q, %s : !tt.ptr<i32>
"""


def joined(text: str) -> tuple[int, list[str]]:
    """How many branches there are afterwards, and the text of the body."""
    module = parse_module(HEAD + text + "  tt.return\n}\n}", "branches")
    join_branches(module)
    verify(module)
    lines = [line.strip() for line in print_module(module).splitlines()]
    return sum(isinstance(op, scf.IfOp) for op in module.walk()), lines


def test_the_same_condition() -> None:
    count, lines = joined(FIRST + SECOND.replace("@", "%c"))
    assert count == 1
    begin = next(i for i, line in enumerate(lines) if line.startswith("%r:2 ="))
    middle = lines.index("} else {", begin)
    end = lines.index("}", middle)
    there, other = lines[begin + 1 : middle], lines[middle + 1 : end]
    assert there[-1].startswith("scf.yield") and other == ["scf.yield %n, %n : i32, i32"]
    assert [line.split("= ")[-1].split(" ")[0] for line in there] == [
        "tt.store",
        "arith.addi",
        "arith.muli",
        "scf.yield",
    ]
    assert "tt.store %q, %r#1 : !tt.ptr<i32>" in lines


def test_its_negation() -> None:
    negated = "  %true = arith.constant true\n  %not = arith.xori %c, %true : i1\n"
    count, lines = joined(FIRST + negated + SECOND.replace("@", "%not"))
    assert count == 1
    assert "scf.yield %n" in lines[lines.index("} else {") + 2]
    assert lines[lines.index("} else {") + 1].endswith("arith.muli %n, %n : i32")


@pytest.mark.parametrize(
    "between",
    [
        "  tt.store %q, %n : !tt.ptr<i32>\n",
        "  %x = tt.load %q : !tt.ptr<i32>\n",
        "  %x = arith.addi %r, %n : i32\n  tt.store %q, %x : !tt.ptr<i32>\n",
    ],
)
def test_what_is_between_keeps_them_apart(between: str) -> None:
    assert joined(FIRST + between + SECOND.replace("@", "%c"))[0] == 2


def test_other_conditions() -> None:
    assert joined(FIRST + SECOND.replace("@", "%d"))[0] == 2


@weft.jit
def part(x, total, skip):  # type: ignore[no-untyped-def]
    """A step that says whether there is more to do."""
    if tl.max(x) < skip:
        p, stop = x * 0.0, True
    else:
        p, total, stop = x * 2.0, total + tl.sum(x), False
    return p, total, stop


@weft.jit
def steps(x_ptr, out_ptr, skip, STEPS: tl.constexpr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    n = tl.arange(0, N)
    acc, total = tl.zeros((N,), tl.float32), 0.0
    for i in range(STEPS):
        p, total, stop = part(tl.load(x_ptr + i * N + n), total, skip)
        if not stop:
            acc += p
    tl.store(out_ptr + n, acc + total)


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:90"])
def test_they_compute_the_same(target: str) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (6, 64)).astype(np.float32)
    x[[1, 4]] -= 20
    out = np.zeros(64, np.float32)
    steps[(1,)](x, out, 0.0, STEPS=6, N=64, target=target)
    kept = x[[0, 2, 3, 5]]
    assert np.array_equal(out, 2 * kept.sum(0) + kept.sum())
