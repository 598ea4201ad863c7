"""`gl.extra.programs`: programs that end before their last line. Weft's own.

programs.end_unless(row < rows)                         a program behind the last row does nothing from here on
"""

from __future__ import annotations

from typing import Any

from weft import ir
from weft.language import dtypes as dt
from weft.language.protocol import GIVEN, builtin
from weft.language.semantic import block_shape

from ...semantic import GluonSemantic

__all__ = ["end_unless"]


@builtin
def end_unless(condition: Any, _semantic: GluonSemantic = GIVEN) -> None:
    """End the program here if a condition, one number for all of its threads, is false.

    What comes after it is in no branch, as it would be behind `if not condition: return`.
    """
    value = _semantic.to_tensor(condition)
    if block_shape(value) or value.dtype != dt.int1:
        raise TypeError(f"end_unless: expected one condition, got {value.type}")
    _semantic.builder.create(ir.EndUnlessOp, (value.handle,), ())
