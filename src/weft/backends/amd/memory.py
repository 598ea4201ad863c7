"""The dialect of AMDGPU: accesses with a mask or hints for the caches, atomics, copies to LDS.

What has a mask is in a branch (`branches`). Copies to LDS are counted one by one (`counted`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.base import Unsupported
from weft.ir.lane import ELEMENT_BITS, LaneOp

from ..gpu.emitter import CONVERGENT, LLVM, Emitter, Part, Register
from ..gpu.memory import SWAPPED, instead_of, pointer_to
from ..gpu.operands import Access
from .addresses import VECTORS, Addresses, Place, flags_of
from .branches import Branches
from .counted import counted
from .lanes import Lanes
from .processor import GFX12
from .waits import awaiting

NONTEMPORAL = 1_000_010
"""Numbers of metadata; see `lanes.LOCAL`."""
PLACED = NONTEMPORAL + 1
"""Says of memory that it is the GPU's own: additions of floats, and on gfx90a others too, are then instructions."""
COPIED, DOMAIN, SCOPE = PLACED + 1, PLACED + 2, PLACED + 3
"""The copies to LDS, as LLVM's alias analysis names them. Other accesses of LDS are told not to meet them: LLVM would
wait for all copies before each. What orders them are the program's waits and barriers; nothing is moved across."""
METADATA = (
    f"!{NONTEMPORAL} = !{{i32 1}}",
    f"!{PLACED} = !{{}}",
    f"!{COPIED} = !{{!{SCOPE}}}",
    f"!{DOMAIN} = distinct !{{!{DOMAIN}}}",
    f"!{SCOPE} = distinct !{{!{SCOPE}, !{DOMAIN}}}",
)
STREAMED = ("evict_first", "no_allocate")
"""Hints for what is used once: it leaves the caches first."""
UNCACHED = ("cv", "wt")
ONCE = ("cs", "cg")
ORDERS = {"relaxed": "monotonic"}
ZEROS = "@zeros = internal addrspace(1) constant [16 x i8] zeroinitializer, align 16"
COPY = (
    "declare void @llvm.amdgcn.global.load.lds(ptr addrspace(1), ptr addrspace(3), i32 immarg, i32 immarg, i32 immarg)"
)
FLOATS = ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True)
class Hints:
    """What stands before and behind an access in LLVM IR."""

    before: str = ""
    behind: str = ""
    apart: bool = False
    """Whether its addresses are a pointer and distances (`addresses`)."""

    def __bool__(self) -> bool:
        return bool(self.before or self.behind or self.apart)


def _gives_zero(op: LaneOp) -> bool:
    """Whether a load gives 0 where its mask does not hold."""
    if len(op.operands) < 3:
        return True
    maker = op.operands[2].op
    while maker is not None and maker.name in ("rename", "join"):
        maker = maker.operands[0].op if maker.name == "rename" else None
    return maker is not None and maker.name == "constant" and str(maker.attrs["value"]) in ("0", "0.0", "False")


class Memory(Lanes):
    """Global memory and LDS."""

    scopes: Mapping[str, str] = {"cta": "workgroup", "gpu": "agent"}

    def begin(self, e: Emitter) -> None:
        """Metadata; how many copies each wait lets be pending."""
        super().begin(e)
        e.module.attributes += METADATA
        self.pending = counted(e.program)
        self.copies = any(op.name == "copy_async" for op in e.program.body.walk())
        self.branches = Branches(e)
        self.addresses = Addresses(flags_of(self.target.number), e.program)

    def hints(self, e: Emitter, op: LaneOp) -> Hints:
        """`nt` for what is used once; `sc0 sc1` for what must not come out of a cache."""
        attrs, apart = op.attrs, self.addresses.look(e, op)
        if attrs.get("volatile") or attrs.get("cache") in UNCACHED:
            self.addresses.places = {}
            return Hints(before="volatile ")
        if attrs["space"] == "global" and (attrs.get("evict") in STREAMED or attrs.get("cache") in ONCE):
            return Hints(behind=f", !nontemporal !{NONTEMPORAL}", apart=apart)
        behind = f", !noalias !{COPIED}" if self.copies and attrs["space"] == "shared" else ""
        return Hints(behind=behind, apart=apart)

    # -- masked accesses ----------------------------------------------------------------------------------------------

    def masked_load(
        self, e: Emitter, access: Access, hints: Hints, other: Sequence[Register] | None
    ) -> Sequence[Register]:
        """A branch around a load; of single bytes the lowest parts of words of 32 bits.

        What comes out of the branch is the vector that was loaded: words would be moved, and waited for, inside of it.
        """
        shape = access.shape
        size = shape.words * shape.bits // 8
        whole = shape.word if shape.words == 1 else f"<{shape.words} x {shape.word}>"
        place = self.addresses.of(access)
        if place is not None:
            return self._buffer_load(e, access, place, hints, other)
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

    def _buffer_load(
        self, e: Emitter, access: Access, place: Place, hints: Hints, other: Sequence[Register] | None
    ) -> Sequence[Register]:
        """Words of an access through a descriptor."""
        shape = access.shape
        bits = VECTORS[shape.words * shape.bits]
        name = self.addresses.load(e, access, place, self._policy(hints))
        if shape.bits == 8:
            words = [e.ins(f"zext i8 {name} to i32")]
        elif shape.words == 1:
            words = [name if shape.word == bits else e.ins(f"bitcast {bits} {name} to {shape.word}")]
        else:
            whole = f"<{shape.words} x {shape.word}>"
            name = name if whole == bits else e.ins(f"bitcast {bits} {name} to {whole}")
            words = [e.ins(f"extractelement {whole} {name}, i32 {i}") for i in range(shape.words)]
        if access.mask is not None and not _gives_zero(access.op):
            instead = instead_of(e, access, other)
            mask, type = e.name(access.mask), access.word
            pairs = zip(words, instead, strict=True)
            words = [e.ins(f"select i1 {mask}, {type} {w}, {type} {x}") for w, x in pairs]
        return [Part(w, 0, 4, "i8") for w in words] if shape.bits == 8 else words

    def _policy(self, hints: Hints) -> int:
        """What an intrinsic is told of what is used once: `nt`."""
        return 0 if not hints.behind else 1 if self.target.number >= GFX12 else 2

    def masked_store(self, e: Emitter, access: Access, hints: Hints, words: Sequence[str]) -> None:
        """A branch around a store."""
        shape = access.shape
        size = shape.words * shape.bits // 8

        def stored() -> list[str]:
            type, whole = shape.word, words[0]
            if shape.bits == 8:
                whole = e.ins(f"trunc i32 {whole} to i8")
            elif shape.words > 1:
                type, whole = f"<{shape.words} x {shape.word}>", vector_of(e, words, shape.word)
            pointer = pointer_to(e, access.address, access.space, access.more)
            place = self.addresses.of(access)
            if place is not None:
                bits = VECTORS[8 * size]
                whole = whole if type == bits else e.pure(f"bitcast {type} {whole} to {bits}")
                self.addresses.store(e, access, place, self._policy(hints), whole)
            else:
                pointer = pointer_to(e, access.address, access.space, access.more)
                e.do(f"store {hints.before}{type} {whole}, {pointer}, align {size}{hints.behind}")
            return []

        if self.addresses.of(access) is not None:
            stored()
            return
        self.branches.where(access.op, access.mask, stored)

    # -- atomics ------------------------------------------------------------------------------------------------------

    def _scope(self, op: LaneOp) -> str:
        scope = self.scopes.get(op.attrs.get("scope", "gpu"), "")
        return f'syncscope("{scope}") ' if scope else ""

    def atomic(
        self, e: Emitter, op: LaneOp, elem: str, address: Register, new: Sequence[Register], mask: Register | None
    ) -> list[Register] | None:
        """`atomicrmw`, of which LLVM makes an instruction, or a loop of compare-and-swap where there is none.

        Memory is the GPU's own, but for atomics in scope of the system: what the host or another GPU has at the same
        time is not reached by all instructions.
        """
        kind = SWAPPED.get(op.attrs["kind"])
        if kind is None:
            raise e.fail(op, f"atomic {op.attrs['kind']} of {elem}")
        if kind == "add" and elem in FLOATS:
            kind = "fadd"
        if len(new) > 1 and kind != "fadd":
            raise e.fail(op, f"atomic {kind} of several {elem}")
        type = LLVM[elem] if len(new) == 1 else f"<{len(new)} x {LLVM[elem]}>"
        operand = e.name(new[0])
        if len(new) > 1:
            bits = len(new) * ELEMENT_BITS[elem]
            operand = e.pure(f"bitcast i{bits} {e.word(new, LLVM[elem])} to {type}")
        order = op.attrs.get("order", "acq_rel")
        text = f"atomicrmw {kind} {pointer_to(e, address, op.attrs['space'])}, {type} {operand} {self._scope(op)}"
        text += ORDERS.get(order, order)
        if op.attrs.get("scope", "gpu") in self.scopes:
            text += f", !amdgpu.no.fine.grained.memory !{PLACED}, !amdgpu.no.remote.memory !{PLACED}"
            text += f", !amdgpu.ignore.denormal.mode !{PLACED}" if (kind, elem) == ("fadd", "f32") else ""
        zero = "zeroinitializer" if len(new) > 1 else e.name(e.constant(elem, 0))
        (old,) = self.branches.where(op, mask, lambda: [e.ins(text)], type, [zero])
        if len(new) == 1:
            return [old]
        return list(e.parts(e.ins(f"bitcast {type} {old} to i{bits}"), LLVM[elem], len(new)))

    def ordered(
        self, e: Emitter, op: LaneOp, elem: str, address: Register, new: Register, mask: Register | None
    ) -> Register:
        """An atomic load or store: what is there; of a store nothing."""
        bits, type = ELEMENT_BITS[elem], LLVM[elem]
        pointer, order = pointer_to(e, address, op.attrs["space"]), op.attrs["order"]
        order = f"{self._scope(op)}{ORDERS.get(order, order)}, align {bits // 8}"
        if op.attrs["kind"] == "load":
            text = f"load atomic i{bits}, {pointer} {order}"
            (old,) = self.branches.where(op, mask, lambda: [e.ins(text)], f"i{bits}", ["0"])
            return old if type == f"i{bits}" else e.ins(f"bitcast i{bits} {old} to {type}")
        name = _bits(e, new, elem)

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
        bits, type = ELEMENT_BITS[elem], LLVM[elem]
        if bits < 16:
            raise e.fail(op, f"compare-and-swap of {elem}")
        pointer, order = pointer_to(e, address, op.attrs["space"]), op.attrs.get("order", "acq_rel")
        failed = {"relaxed": "monotonic", "release": "monotonic", "acq_rel": "acquire"}.get(order, order)
        names = [_bits(e, x, elem) for x in (old, new)]
        text = f"cmpxchg {pointer}, i{bits} {names[0]}, i{bits} {names[1]} {self._scope(op)}"
        text += f"{ORDERS.get(order, order)} {failed}"

        def swapped() -> list[str]:
            return [e.ins(f"extractvalue {{ i{bits}, i1 }} {e.ins(text)}, 0")]

        (found,) = self.branches.where(op, mask, swapped, f"i{bits}", ["0"])
        return found if type == f"i{bits}" else e.ins(f"bitcast i{bits} {found} to {type}")

    # -- other blocks, and asynchronous copies ------------------------------------------------------------------------

    def remote(self, e: Emitter, address: str, rank: str) -> str:
        """There are no clusters."""
        raise Unsupported("the shared memory of another block", e.program.target)

    def copy(self, e: Emitter, op: LaneOp, target: Register, source: Register, mask: Register | None) -> None:
        """`global_load_lds`: lanes follow each other from where the first one's part goes.

        Where the mask does not hold zeros are copied, out of memory that has nothing else.
        """
        size = int(op.attrs["bytes"])
        there = e.pure(e.call("llvm.amdgcn.readfirstlane.i32", "i32", [("i32", e.name(target))]))
        there = e.pure(f"inttoptr i32 {there} to ptr addrspace(3)")
        here = e.name(source)
        if mask is not None:
            if ZEROS not in e.module.globals:
                e.module.globals.append(ZEROS)
            zeros = e.early("ptrtoint ptr addrspace(1)", "@zeros", to="i64")
            here = e.pure(f"select i1 {e.name(mask)}, i64 {here}, i64 {zeros}")
        here = e.pure(f"inttoptr i64 {here} to ptr addrspace(1)")
        arguments = [("ptr addrspace(1)", here), ("ptr addrspace(3)", there), ("i32", str(size)), ("i32", "0")]
        name = "llvm.amdgcn.global.load.lds"
        e.module.declarations.setdefault(name, COPY)
        e.do(f"{e.call(name, 'void', [*arguments, ('i32', '0')], CONVERGENT)}, !alias.scope !{COPIED}")

    def await_copies(self, e: Emitter, op: LaneOp) -> None:
        """By the number of single copies that may be pending."""
        if op.name == "wait_async":
            name, type, number = awaiting(self.number, self.pending[id(op)])
            e.do(e.call(name, "void", [(type, str(number))], CONVERGENT))


def vector_of(e: Emitter, words: Sequence[str], type: str) -> str:
    """Words as one vector."""
    if all(word in ("0", "0.0") for word in words):
        return "zeroinitializer"
    vector, whole = f"<{len(words)} x {type}>", "poison"
    for i, word in enumerate(words):
        whole = e.pure(f"insertelement {vector} {whole}, {type} {word}, i32 {i}")
    return whole


def _bits(e: Emitter, register: Register, elem: str) -> str:
    """A register as an integer."""
    type, name = LLVM[elem], e.name(register)
    return name if type[0] == "i" else e.pure(f"bitcast {type} {name} to i{ELEMENT_BITS[elem]}")
