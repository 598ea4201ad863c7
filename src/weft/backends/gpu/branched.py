"""Accesses with a mask or hints, and atomics, of vendors whose instructions have no mask: in a branch (`branches`),
by LLVM's own loads, stores, `atomicrmw` and `cmpxchg`.

A vendor's `Dialect` derives from `BranchedMemory`, and makes `self.branches` when a program begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.ir.lane import ELEMENT_BITS, LaneOp

from .branches import Branches
from .emitter import Emitter, Part, Register
from .memory import SWAPPED, instead_of, pointer_to
from .operands import Access

ORDERS = {"relaxed": "monotonic"}
FLOATS = ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True)
class Hints:
    """What stands before and behind an access in LLVM IR."""

    before: str = ""
    behind: str = ""
    apart: bool = False
    """Whether its addresses are a pointer and distances."""

    def __bool__(self) -> bool:
        return bool(self.before or self.behind or self.apart)


class BranchedMemory:
    """Global and shared memory."""

    scopes: Mapping[str, str]
    branches: Branches

    def masked_load(
        self, e: Emitter, access: Access, hints: Any, other: Sequence[Register] | None
    ) -> Sequence[Register]:
        """A branch around a load; of single bytes the lowest parts of words of 32 bits.

        What comes out of the branch is the vector that was loaded: words would be moved, and waited for, inside of it.
        """
        shape = access.shape
        size = shape.words * shape.bits // 8
        whole = shape.word if shape.words == 1 else f"<{shape.words} x {shape.word}>"
        instead = []
        if access.mask is not None:
            words = instead_of(e, access, other)
            instead = words if shape.words == 1 else [vector_of(e, words, shape.word)]

        def loaded() -> list[str]:
            pointer = pointer_to(e, access.address, access.space, access.more)
            name = e.ins(f"load {hints.before}{whole}, {pointer}, align {size}{hints.behind}")
            return [e.ins(f"zext i8 {name} to i32") if shape.bits == 8 else name]

        type = access.word if shape.words == 1 else whole
        (made,) = self.branches.where(access.op, access.mask, loaded, type, instead)
        if shape.words > 1:
            return [e.ins(f"extractelement {whole} {made}, i32 {i}") for i in range(shape.words)]
        return [Part(made, 0, 4, "i8")] if shape.bits == 8 else [made]

    def masked_store(self, e: Emitter, access: Access, hints: Any, words: Sequence[str]) -> None:
        """A branch around a store."""
        size = access.shape.words * access.shape.bits // 8

        def stored() -> list[str]:
            type, whole = stored_whole(e, access, words)
            pointer = pointer_to(e, access.address, access.space, access.more)
            e.do(f"store {hints.before}{type} {whole}, {pointer}, align {size}{hints.behind}")
            return []

        self.branches.where(access.op, access.mask, stored)

    # -- atomics ------------------------------------------------------------------------------------------------------

    def scope(self, op: LaneOp) -> str:
        """LLVM's words for the threads among which an atomic is ordered."""
        scope = self.scopes.get(op.attrs.get("scope", "gpu"), "")
        return f'syncscope("{scope}") ' if scope else ""

    def told(self, op: LaneOp, kind: str, elem: str) -> str:
        """Metadata of an `atomicrmw`."""
        return ""

    def atomic(
        self, e: Emitter, op: LaneOp, elem: str, address: Register, new: Sequence[Register], mask: Register | None
    ) -> list[Register] | None:
        """`atomicrmw`, of which LLVM makes an instruction, or a loop of compare-and-swap where there is none."""
        kind = SWAPPED.get(op.attrs["kind"])
        if kind is None:
            raise e.fail(op, f"atomic {op.attrs['kind']} of {elem}")
        if kind == "add" and elem in FLOATS:
            kind = "fadd"
        if len(new) > 1 and kind != "fadd":
            raise e.fail(op, f"atomic {kind} of several {elem}")
        type = e.llvm[elem] if len(new) == 1 else f"<{len(new)} x {e.llvm[elem]}>"
        operand = e.name(new[0])
        if len(new) > 1:
            bits = len(new) * ELEMENT_BITS[elem]
            operand = e.pure(f"bitcast i{bits} {e.word(new, e.llvm[elem])} to {type}")
        order = op.attrs.get("order", "acq_rel")
        text = f"atomicrmw {kind} {pointer_to(e, address, op.attrs['space'])}, {type} {operand} {self.scope(op)}"
        text += ORDERS.get(order, order) + self.told(op, kind, elem)
        zero = "zeroinitializer" if len(new) > 1 else e.name(e.constant(elem, 0))
        (old,) = self.branches.where(op, mask, lambda: [e.ins(text)], type, [zero])
        if len(new) == 1:
            return [old]
        return list(e.parts(e.ins(f"bitcast {type} {old} to i{bits}"), e.llvm[elem], len(new)))

    def ordered(
        self, e: Emitter, op: LaneOp, elem: str, address: Register, new: Register, mask: Register | None
    ) -> Register:
        """An atomic load or store: what is there; of a store nothing."""
        bits, type = ELEMENT_BITS[elem], e.llvm[elem]
        pointer, order = pointer_to(e, address, op.attrs["space"]), op.attrs["order"]
        order = f"{self.scope(op)}{ORDERS.get(order, order)}, align {bits // 8}"
        if op.attrs["kind"] == "load":
            text = f"load atomic i{bits}, {pointer} {order}"
            (old,) = self.branches.where(op, mask, lambda: [e.ins(text)], f"i{bits}", ["0"])
            return old if type == f"i{bits}" else e.ins(f"bitcast i{bits} {old} to {type}")
        name = bits_of(e, new, elem)

        def stored() -> list[str]:
            e.do(f"store atomic i{bits} {name}, {pointer} {order}")
            return []

        self.branches.where(op, mask, stored)
        return e.constant(elem, 0)

    def compare_and_swap(
        self, e: Emitter, op: LaneOp, address: Register, old: Register, new: Register, mask: Register | None
    ) -> Register:
        """`cmpxchg`."""
        elem = op.operands[2].elem
        bits, type = ELEMENT_BITS[elem], e.llvm[elem]
        if bits < 16:
            raise e.fail(op, f"compare-and-swap of {elem}")
        pointer, order = pointer_to(e, address, op.attrs["space"]), op.attrs.get("order", "acq_rel")
        failed = {"relaxed": "monotonic", "release": "monotonic", "acq_rel": "acquire"}.get(order, order)
        names = [bits_of(e, x, elem) for x in (old, new)]
        text = f"cmpxchg {pointer}, i{bits} {names[0]}, i{bits} {names[1]} {self.scope(op)}"
        text += f"{ORDERS.get(order, order)} {failed}"

        def swapped() -> list[str]:
            return [e.ins(f"extractvalue {{ i{bits}, i1 }} {e.ins(text)}, 0")]

        (found,) = self.branches.where(op, mask, swapped, f"i{bits}", ["0"])
        return found if type == f"i{bits}" else e.ins(f"bitcast i{bits} {found} to {type}")


def stored_whole(e: Emitter, access: Access, words: Sequence[str]) -> tuple[str, str]:
    """(type, operand) of the words of a store, as one value."""
    shape = access.shape
    if shape.bits == 8:
        return shape.word, e.ins(f"trunc i32 {words[0]} to i8")
    if shape.words > 1:
        return f"<{shape.words} x {shape.word}>", vector_of(e, words, shape.word)
    return shape.word, words[0]


def vector_of(e: Emitter, words: Sequence[str], type: str) -> str:
    """Words as one vector."""
    if all(word in ("0", "0.0") for word in words):
        return "zeroinitializer"
    vector, whole = f"<{len(words)} x {type}>", "poison"
    for i, word in enumerate(words):
        whole = e.pure(f"insertelement {vector} {whole}, {type} {word}, i32 {i}")
    return whole


def bits_of(e: Emitter, register: Register, elem: str) -> str:
    """A register as an integer."""
    type, name = e.llvm[elem], e.name(register)
    return name if type[0] == "i" else e.pure(f"bitcast {type} {name} to i{ELEMENT_BITS[elem]}")
