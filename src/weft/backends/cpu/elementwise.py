"""Elementwise operations of tile IR on LLVM scalars and vectors, by `backends/llvm/elementwise.py`.

Half precision is computed by LLVM in single precision and rounded after each operation; bfloat16 is kept as its bits
(`i16`) and widened, computed and rounded, because not every host has instructions for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from weft.backends.cpu import forms
from weft.backends.cpu.program import Op
from weft.backends.llvm.elementwise import ARITHMETIC, Asked, Meaning, library_function, meaning_of, narrow, widen
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import BFLOAT, I8, I16, Type, Value, const, vec
from weft.ops import ELEMENTS
from weft.ops.dtypes import DTYPES
from weft.ops.table import ELEMENTWISE

__all__ = ["ARITHMETIC", "EMITTERS", "const_of", "llvm_type", "memory_type", "narrow", "widen"]

LLVM_ELEMENT = {**{e.name: e.llvm for e in ELEMENTS.values()}, "bf16": Function.bf16, "ptr": "ptr"}


def llvm_type(elem: str, lanes: int = 0) -> Type:
    """The LLVM type that holds an element: bf16 and fp8 as their bits."""
    return vec(LLVM_ELEMENT.get(elem, elem), lanes)


def memory_type(elem: str, lanes: int = 0) -> Type:
    """As `llvm_type`, but as it lies in memory: i1 takes a byte."""
    return vec("i8", lanes) if elem == "i1" else llvm_type(elem, lanes)


Emitter = Callable[[Function, Op, list[Value]], Value]


def _emit(meaning: Meaning, f: Function, op: Op, a: list[Value]) -> Value:
    asked = Asked(op.name, tuple(v.elem for v in op.args), op.result.elem, op.attrs, op.span)
    return meaning(f, asked, a)


def _extern(f: Function, op: Asked, a: list[Value]) -> Value:
    return library_function(f, op, op.attrs["symbol"], a)


def _pointer_cast(llvm: str, elem: str) -> Meaning:
    return lambda f, op, a: f.cast(llvm, a[0], vec(elem, a[0].type.lanes))


_OF_POINTERS: dict[str, Meaning] = {
    "tt.int_to_ptr": _pointer_cast("inttoptr", "ptr"),
    "tt.ptr_to_int": _pointer_cast("ptrtoint", "i64"),
    "tt.extern_elementwise": _extern,
}
EMITTERS: dict[str, Emitter] = {
    name: partial(_emit, emitter)
    for name in sorted(ELEMENTWISE - {"tt.addptr"})
    if (emitter := _OF_POINTERS.get(name) or meaning_of(name)) is not None
}
"""How each operation is emitted."""


def const_of(elem: str, data: float | int) -> Value:
    """A constant of an element type, by value (bf16 and fp8 by rounding)."""
    if elem == "bf16":
        bits = int(const(BFLOAT, float(data)).name.removeprefix("0xR"), 16)  # spelled 0xRhhhh
        return const(I16, forms.wrap(bits, 16))
    if elem.startswith("f8"):
        return const(I8, forms.wrap(int(np.array(float(data), DTYPES[elem]).view(np.uint8)), 8))
    type = llvm_type(elem)
    if not type.is_float and type.bits > 1:
        return const(type, forms.wrap(int(data), type.bits))
    return const(type, data)
