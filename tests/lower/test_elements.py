"""Functions on single elements whose branches and loops differ from element to element."""

from __future__ import annotations

import numpy as np

from lower.tile_text import launched, loaded, program_of, stored, tile

LAYOUT = "#ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"
ONE = tile((512,), "i32", "#l")


def mapped(x: np.ndarray, function: str, pack: int = 1) -> np.ndarray:
    """A function, the lines of its region, on each element."""
    body = (
        loaded("x", "a", (512,), "i32", "#l")
        + f"""
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %y = "tt.map_elementwise"(%x) <{{pack = {pack} : i32}}> ({{
{function}
    }}) : ({ONE}) -> {ONE}"""
        + stored("y", "b", (512,), "i32", "#l")
    )
    program = program_of({"l": LAYOUT}, [("a", "i32"), ("b", "i32")], body)
    found = np.zeros_like(x)
    launched(program, 1, a=x, b=found)
    return found


def test_nested_branches() -> None:
    x = np.arange(-256, 256, dtype=np.int32)
    found = mapped(
        x,
        """
    ^bb0(%v: i32):
      %minus = arith.cmpi slt, %v, %c0 : i32
      %r = scf.if %minus -> (i32) {
        %small = arith.cmpi slt, %v, %c3 : i32
        %odd = arith.andi %v, %c1 : i32
        %is = arith.cmpi ne, %odd, %c0 : i32
        %t = scf.if %is -> (i32) {
          %u = arith.subi %c0, %v : i32
          scf.yield %u : i32
        } else {
          scf.yield %c2 : i32
        }
        scf.yield %t : i32
      } else {
        %w = arith.muli %v, %v : i32
        scf.yield %w : i32
      }
      tt.map_elementwise.return %r : i32""",
    )
    assert np.array_equal(found, np.where(x < 0, np.where(x & 1, -x, 2), x * x))


def collatz(n: int) -> int:
    steps = 0
    while n > 1:
        n = 3 * n + 1 if n & 1 else n // 2
        steps += 1
    return steps


def test_loop_of_each_element() -> None:
    x = np.arange(512, dtype=np.int32)
    found = mapped(
        x,
        """
    ^bb0(%v: i32):
      %r:2 = scf.while (%n = %v, %s = %c0) : (i32, i32) -> (i32, i32) {
        %more = arith.cmpi sgt, %n, %c1 : i32
        scf.condition(%more) %n, %s : i32, i32
      } do {
      ^bb0(%n: i32, %s: i32):
        %low = arith.andi %n, %c1 : i32
        %odd = arith.cmpi ne, %low, %c0 : i32
        %next = scf.if %odd -> (i32) {
          %triple = arith.muli %n, %c3 : i32
          %up = arith.addi %triple, %c1 : i32
          scf.yield %up : i32
        } else {
          %half = arith.shrsi %n, %c1 : i32
          scf.yield %half : i32
        }
        %t = arith.addi %s, %c1 : i32
        scf.yield %next, %t : i32, i32
      }
      tt.map_elementwise.return %r#1 : i32""",
    )
    assert found.tolist() == [collatz(int(n)) for n in x]


def test_bound_of_each_element() -> None:
    x = np.arange(512, dtype=np.int32)[::-1] % 23
    found = mapped(
        x,
        """
    ^bb0(%v: i32):
      %r = scf.for %i = %c1 to %v step %c2 iter_args(%s = %c0) -> (i32) : i32 {
        %t = arith.addi %s, %i : i32
        scf.yield %t : i32
      }
      tt.map_elementwise.return %r : i32""",
    )
    assert found.tolist() == [sum(range(1, int(n), 2)) for n in x]


def test_bound_of_all() -> None:
    x = np.arange(512, dtype=np.int32)
    found = mapped(
        x,
        """
    ^bb0(%v: i32):
      %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %v) -> (i32) : i32 {
        %t = arith.muli %s, %c2 : i32
        scf.yield %t : i32
      }
      tt.map_elementwise.return %r : i32""",
    )
    assert np.array_equal(found, x * 8)


def test_packed() -> None:
    x = np.random.default_rng(0).integers(-9, 9, 512, np.int32)
    found = mapped(
        x,
        """
    ^bb0(%v: i32, %w: i32):
      %p = arith.addi %v, %c1 : i32
      %q = arith.addi %w, %c1 : i32
      tt.map_elementwise.return %p, %q : i32, i32""",
        pack=2,
    )
    assert np.array_equal(found, x + 1)
