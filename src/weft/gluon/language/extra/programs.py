"""`gl.extra.programs`: end a program early. Only in Weft.

programs.end_unless(row < rows)                         a program behind the last row ends here
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
    """End the program here if a condition is false, which is a scalar and so the same for all threads.

    Unlike behind `if not condition: return`, the operations that follow are not in a branch.
    """
    value = _semantic.to_tensor(condition)
    if block_shape(value) or value.dtype != dt.int1:
        raise TypeError(f"end_unless: expected one condition, got {value.type}")
    _semantic.builder.create(ir.EndUnlessOp, (value.handle,), ())
