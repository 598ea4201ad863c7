"""Classes of operations, by the rows of `ops.table`: of those that no dialect has, one is made for each row.

>>> operation("tt.mulhiui").name, operation("arith.addi").__name__
('tt.mulhiui', 'AddiOp')

An operation of the table needs no class of its own, no form of its text and no rule of the verifier; only those with
properties, as `tt.clampf` and `arith.cmpi` are, have one.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith, math
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, result_def, traits_def
from xdsl.traits import Pure

from weft.ops.row import FLOATS, Row
from weft.ops.table import ELEMENTWISE, ROWS

from . import tt


def _made(row: Row) -> type[Operation]:
    body: dict[str, Any] = {
        "name": row.name,
        "__module__": __name__,
        "__doc__": f"See {row.name} in docs/reference/semantics.md.",
    }
    body |= {name: operand_def() for name in ("x", "y", "z")[: row.arity]}
    if row.kind == FLOATS and row.name.startswith(("arith.", "math.")):
        body["fastmath"] = opt_prop_def()
    body |= {"result": result_def(), "traits": traits_def(Pure())}
    return irdl_op_definition(type(row.name.replace(".", "_"), (IRDLOperation,), body))


CLASSES: dict[str, type[Operation]] = {
    op.name: op
    for op in (*arith.Arith.operations, *math.Math.operations, *vars(tt).values())
    if isinstance(op, type) and issubclass(op, Operation) and op.name in ELEMENTWISE
}
CLASSES |= {name: _made(ROWS[name]) for name in sorted(ELEMENTWISE - CLASSES.keys())}
"""By name, of every row that tile IR has."""


def operation(name: str) -> type[Operation]:
    """The class of an operation."""
    return CLASSES[name]
