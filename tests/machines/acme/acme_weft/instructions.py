"""Acme's instructions: a product of 8 x 16 x 16, of which a lane has a column.

There is no text: whoever emits one calls the host, which does what `semantics` says.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.layouts import LinearLayout
from weft.targets.instruction import Instruction, Operand

__all__ = ["INSTRUCTIONS"]

LANES = 16


def _by_columns(rows: int) -> LinearLayout:
    """A matrix of 16 columns: registers have rows, lanes columns."""
    bases = {"register": [(1 << i, 0) for i in range(rows.bit_length() - 1)], "lane": [(0, 1 << i) for i in range(4)]}
    return LinearLayout.from_bases(bases, {"dim0": rows, "dim1": LANES})


def _product(_a: Any, _b: Any, _c: Any) -> tuple[Any]:
    """Operands are [warp, lane, register], and a lane is a column: the lanes of `a` are k."""
    left, right, total = (x.astype(np.float64).swapaxes(1, 2) for x in (_a, _b, _c))
    return ((total + left @ right).astype(np.float32).swapaxes(1, 2),)


def _entry(elem: str) -> Instruction:
    return Instruction(
        name=f"acme.multiply.{elem}",
        since=1,
        text="",
        operands=(
            Operand("a", elem, 8, "r", _by_columns(8)),
            Operand("b", elem, 16, "r", _by_columns(16)),
            Operand("c", "f32", 8, "f", _by_columns(8)),
        ),
        results=(Operand("d", "f32", 8, "f", _by_columns(8)),),
        semantics=_product,
        params={"shape": (8, 16, 16), "accumulator": "f32", "multiplies": (elem, elem)},
    )


INSTRUCTIONS = {entry.name: entry for entry in map(_entry, ("f16", "bf16"))}
