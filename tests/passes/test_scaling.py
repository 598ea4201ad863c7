"""Time grows with the number of operations, not with its square, and no chain of operations is explored twice."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest

from one_in import one_in
from weft.ir import parse_module, print_module, verify
from weft.passes import cpu_pipeline, tile_pipeline


def chain(n: int) -> str:
    """A chain in which every value is used twice, with a check at each step."""
    lines = ["  %v0 = tt.get_program_id x : i32", "  %zero = arith.constant 0 : i32"]
    for i in range(n):
        lines.append(f"  %v{i + 1} = arith.addi %v{i}, %v{i} : i32")
        lines.append(f"  %c{i} = arith.cmpi sge, %v{i + 1}, %zero : i32")
        lines.append(f"  tt.store %q, %v{i}, %c{i} : !tt.ptr<i32>")
    return "\n".join(lines)


def same(n: int) -> str:
    """The same few operations over and over."""
    lines = []
    for i in range(n):
        lines.append(f"  %a{i} = arith.muli %n, %n : i32")
        lines.append(f"  %b{i} = arith.addi %a{i}, %n : i32")
        lines.append(f"  tt.store %q, %b{i} : !tt.ptr<i32>")
    return "\n".join(lines)


def loops(n: int) -> str:
    """Loops one after the other, each carrying what the one before yields."""
    lines = ["  %one = arith.constant 1 : i32", "  %r0 = arith.constant 0 : i32"]
    for i in range(n):
        lines.append(f"  %r{i + 1} = scf.for %i{i} = %one to %n step %one iter_args(%s{i} = %r{i}) -> (i32) : i32 {{")
        lines.append(f"    %t{i} = arith.addi %s{i}, %i{i} : i32")
        lines.append(f"    scf.yield %t{i} : i32\n  }}")
    lines.append(f"  tt.store %q, %r{n} : !tt.ptr<i32>")
    return "\n".join(lines)


def seconds(make: Callable[[int], str], n: int) -> float:
    text = f"module {{\ntt.func public @f(%q: !tt.ptr<i32>, %n: i32) {{\n{make(n)}\n  tt.return\n}}\n}}"
    best = float("inf")
    for _ in range(3):
        gc.collect()
        start = time.process_time()
        module = parse_module(text)
        verify(module)
        cpu_pipeline(tile_pipeline(module))
        print_module(module)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize("make", one_in(3, [loops, chain, same]))
def test_time_grows_with_size(make: Callable[[int], str]) -> None:
    small, large = seconds(make, 100), seconds(make, 800)
    assert large < small * 8**1.5 + 0.2, f"{small:.3f} s for 100, {large:.3f} s for 800"
