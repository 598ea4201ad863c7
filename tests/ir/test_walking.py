"""Finding operations by their class: the same as going through all, in the same order."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerType, TensorType
from xdsl.ir import Operation

from weft.ir import find, parse_module, tt, walk
from weft.ir.text.forms import OPERATIONS
from weft.ir.types import PtrType

NESTED = """module {
tt.func public @f(%n: i32, %c: i1) {
  scf.for %i = %n to %n step %n : i32 {
    %a = arith.addi %i, %n : i32
    scf.if %c {
      scf.for %j = %a to %n step %n : i32 {
        %b = arith.addi %j, %n : i32
      }
    } else {
      %d = arith.addi %i, %i : i32
    }
    %e = arith.muli %a, %a : i32
  }
  %g = arith.addi %n, %n : i32
  tt.return
}
tt.func public @g(%n: i32) {
  %h = arith.addi %n, %n : i32
  tt.return
}
}"""
KINDS = [(tt.FuncOp,), (scf.ForOp,), (arith.AddiOp,), (scf.IfOp, arith.MuliOp), (tt.DotOp,), (scf.ForOp, arith.AddiOp)]


@pytest.mark.parametrize("kinds", KINDS)
def test_what_is_found_is_what_a_walk_meets(kinds: tuple[type[Operation], ...]) -> None:
    module = parse_module(NESTED)
    for root in (module, module.body, module.body.block, *walk(module)):
        assert find(root, *kinds) == [op for op in walk(root) if isinstance(op, kinds)]


def test_an_operation_is_found_in_none_of_its_siblings() -> None:
    loops = find(parse_module(NESTED), scf.ForOp)
    assert [len(find(loop, arith.AddiOp)) for loop in loops] == [3, 1]


def test_no_class_of_operations_derives_from_another() -> None:
    """`find` looks for the class itself."""
    classes = set(OPERATIONS.values())
    assert [c.__name__ for c in classes if classes & set(c.__mro__[1:])] == []


def test_nothing_derives_from_the_types_of_tiles() -> None:
    """`is_tensor` and the others in ir/types.py compare classes."""
    assert [c.__subclasses__() for c in (TensorType, IntegerType, IndexType, PtrType)] == [[], [], [], []]
