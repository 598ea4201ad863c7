"""What a reduction's function on two elements is known to allow.

^bb0(%a: f32, %b: f32):
  %c = arith.addf %a, %b : f32        # one operation whose operands may be exchanged: elements may take any order
  tt.reduce.return %c : f32
"""

from __future__ import annotations

from xdsl.ir import Block

__all__ = ["commutes"]

COMMUTATIVE = {
    *("arith.addi", "arith.addf", "arith.muli", "arith.mulf", "arith.andi", "arith.ori", "arith.xori"),
    *(f"arith.{way}{kind}" for way in ("max", "min") for kind in ("si", "ui", "numf", "imumf")),
}


def commutes(body: Block) -> bool:
    """Whether a combine function is one operation whose operands may be exchanged."""
    first, *rest = body.ops
    return (
        first.name in COMMUTATIVE and len(rest) == 1 and len(body.args) == 2 and set(first.operands) == set(body.args)
    )
