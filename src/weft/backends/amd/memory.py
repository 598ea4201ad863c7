"""The dialect of AMDGPU: accesses with a mask or hints for the caches, atomics, copies to LDS.

What has a mask is in a branch (`branches`). Copies to LDS are counted one by one (`counted`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.base import Unsupported
from weft.ir.lane import LaneOp

from ..gpu.branched import BranchedMemory, Hints, stored_whole
from ..gpu.branches import Branches
from ..gpu.emitter import CONVERGENT, Emitter, Part, Register
from ..gpu.memory import instead_of
from ..gpu.operands import Access
from .addresses import VECTORS, Addresses, Place, flags_of
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
ZEROS = "@zeros = internal addrspace(1) constant [16 x i8] zeroinitializer, align 16"
COPY = (
    "declare void @llvm.amdgcn.global.load.lds(ptr addrspace(1), ptr addrspace(3), i32 immarg, i32 immarg, i32 immarg)"
)


def _gives_zero(op: LaneOp) -> bool:
    """Whether a load gives 0 where its mask does not hold."""
    if len(op.operands) < 3:
        return True
    maker = op.operands[2].op
    while maker is not None and maker.name in ("rename", "join"):
        maker = maker.operands[0].op if maker.name == "rename" else None
    return maker is not None and maker.name == "constant" and str(maker.attrs["value"]) in ("0", "0.0", "False")


class Memory(Lanes, BranchedMemory):
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
        """Through a descriptor, or in a branch."""
        place = self.addresses.of(access)
        if place is not None:
            return self._buffer_load(e, access, place, hints, other)
        return super().masked_load(e, access, hints, other)

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
        """Through a descriptor, or in a branch."""
        place = self.addresses.of(access)
        if place is None:
            super().masked_store(e, access, hints, words)
            return
        type, whole = stored_whole(e, access, words)
        bits = VECTORS[access.shape.words * access.shape.bits]
        whole = whole if type == bits else e.pure(f"bitcast {type} {whole} to {bits}")
        self.addresses.store(e, access, place, self._policy(hints), whole)

    # -- atomics ------------------------------------------------------------------------------------------------------

    def told(self, op: LaneOp, kind: str, elem: str) -> str:
        """Memory is the GPU's own, but for atomics in scope of the system: what the host or another GPU has at the same
        time is not reached by all instructions."""
        if op.attrs.get("scope", "gpu") not in self.scopes:
            return ""
        text = f", !amdgpu.no.fine.grained.memory !{PLACED}, !amdgpu.no.remote.memory !{PLACED}"
        return text + (f", !amdgpu.ignore.denormal.mode !{PLACED}" if (kind, elem) == ("fadd", "f32") else "")

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
