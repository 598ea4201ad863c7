"""What a reduction's function on two elements is known to allow.

^bb0(%a: f32, %b: f32):
  %c = arith.addf %a, %b : f32        # one operation whose operands may be exchanged: elements may take any order
  tt.reduce.return %c : f32
"""

from __future__ import annotations

from xdsl.ir import Block

from weft.ops.table import ROWS

__all__ = ["commutes"]


def commutes(body: Block) -> bool:
    """Whether a combine function is one operation whose operands may be exchanged."""
    first, *rest = body.ops
    row = ROWS.get(first.name)
    if row is None or row.neutral is None:
        return False
    return len(rest) == 1 and len(body.args) == 2 and set(first.operands) == set(body.args)
