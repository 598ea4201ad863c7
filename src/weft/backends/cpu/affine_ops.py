"""Integer arithmetic that stays uniform or affine across the lanes.

`start + i * 4`, with lanes along `i`, is a scalar and the distances 0, 4, 8, ... of the lanes from it: one scalar
instruction where the vector would take one for all lanes and a gather. Each rule gives None where the result has no
such form, and the operation is then done element by element.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.backends.cpu import forms
from weft.backends.cpu.elementwise import llvm_type
from weft.backends.cpu.forms import Form, Uniform, int_const
from weft.backends.cpu.program import Op
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import const


def _affine_sub(f: Function, op: Op, a: list[Form]) -> Form | None:
    return forms.add(f, a[0], a[1], sign=-1)


def _affine_shl(f: Function, op: Op, a: list[Form]) -> Form | None:
    if not isinstance(a[1], Uniform):
        return None
    shift = int_const(a[1].value)
    if shift is None or not 0 <= shift < a[1].value.type.bits - 1:
        return None
    return forms.mul(f, a[0], Uniform(const(a[1].value.type, 1 << shift)))


def _affine_cast(f: Function, op: Op, a: list[Form]) -> Form | None:
    llvm = {"arith.extsi": "sext", "arith.extui": "zext", "arith.trunci": "trunc"}[op.name]
    if op.args[0].elem == "i1" or op.result.elem == "i1":
        return None
    return forms.cast_int(f, llvm, a[0], llvm_type(op.result.elem))


def _no_bool(fn: Callable[[Function, Form, Form], Form | None]) -> Callable[[Function, Op, list[Form]], Form | None]:
    return lambda f, op, a: None if op.result.elem == "i1" else fn(f, a[0], a[1])


AFFINE_OPS: dict[str, Callable[[Function, Op, list[Form]], Form | None]] = {
    "arith.addi": _no_bool(forms.add),
    "arith.muli": _no_bool(forms.mul),
    "arith.subi": _affine_sub,
    "arith.shli": _affine_shl,
    "arith.extsi": _affine_cast,
    "arith.extui": _affine_cast,
    "arith.trunci": _affine_cast,
}
