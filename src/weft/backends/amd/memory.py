"""The dialect of AMDGPU: accesses with a mask or hints for the caches, atomics, copies to LDS.

What has a mask is in a branch (`branches`). Copies to LDS are counted one by one (`counted`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from weft.base import Unsupported
from weft.ir.lane import LaneOp, Value

from ..gpu.branched import BranchedMemory, Hints, stored_whole
from ..gpu.branches import Branches
from ..gpu.emitter import CONVERGENT, Emitter, Part, Register, Sum
from ..gpu.memory import instead_of
from ..gpu.operands import Access
from .addresses import VECTORS, Addresses, Place, flags_of
from .counted import counted
from .first_lane import Alike, from_first_lane
from .lanes import Lanes
from .processor import GFX12, GFX1250
from .waits import awaiting, awaiting_local

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
ONCE = (("cs", "cg"), ("cs",))
"""Of loads, and of stores: these go past the first level (`.cg`) anyway."""
ZEROS = "@zeros = internal addrspace(1) constant [16 x i8] zeroinitializer, align 16"
GLOBAL_LDS, BUFFER_LDS = "llvm.amdgcn.global.load.lds", "llvm.amdgcn.raw.ptr.buffer.load.lds"
SCHEDULED = "llvm.amdgcn.sched.barrier"
"""No instruction: LLVM's scheduler moves nothing across, where the number of what may move is 0."""
COPIES = {
    GLOBAL_LDS: f"declare void @{GLOBAL_LDS}(ptr addrspace(1), ptr addrspace(3), i32 immarg, i32 immarg, i32 immarg)",
    BUFFER_LDS: f"declare void @{BUFFER_LDS}(ptr addrspace(8), ptr addrspace(3), i32 immarg, i32, i32, i32 immarg, "
    "i32 immarg)",
}


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

    counts_shared = False
    scopes: Mapping[str, str] = {"cta": "workgroup", "gpu": "agent"}

    def begin(self, e: Emitter) -> None:
        """Metadata; how many copies each wait lets be pending."""
        super().begin(e)
        e.module.attributes += METADATA
        self.pending = counted(e.program)
        copies = any(op.name == "copy_async" for op in e.program.body.walk())
        self.past_copies = f", !noalias !{COPIED}" if copies else ""
        self.branches = Branches(e)
        self.addresses = Addresses(flags_of(self.target.number), e.program)
        self.first_lane = Alike(e.program, "load") if self.target.number >= GFX1250 else None
        self.copied: LaneOp | None = None
        self.targets: dict[str, str] = {}

    def hints(self, e: Emitter, op: LaneOp) -> Hints:
        """`nt` for what is used once; `sc0 sc1` for what must not come out of a cache."""
        attrs, apart = op.attrs, self.addresses.look(e, op)
        uncached = attrs.get("cache") in UNCACHED
        streamed = uncached or attrs.get("evict") in STREAMED or attrs.get("cache") in ONCE[op.name == "store"]
        behind = f", !nontemporal !{NONTEMPORAL}" if streamed and attrs["space"] == "global" else ""
        if attrs.get("volatile") or uncached:
            self.addresses.places = {}
            return Hints(before="volatile ", behind=behind)
        if behind:
            return Hints(behind=behind, apart=apart)
        behind = self.past_copies if attrs["space"] == "shared" else ""
        return Hints(behind=behind, apart=apart or self.is_shared(op))

    def is_shared(self, op: LaneOp) -> bool:
        """Whether the address of a load or a store has to be in scalar registers."""
        if self.first_lane is None or op.name not in ("load", "store") or op.attrs["space"] != "global":
            return False
        return op.operands[0].count == 1 and self.first_lane.is_alike(op.operands[0])

    # -- masked accesses ----------------------------------------------------------------------------------------------

    def masked_load(
        self, e: Emitter, access: Access, hints: Hints, other: Sequence[Register] | None
    ) -> Sequence[Register]:
        """Through a descriptor, or in a branch."""
        place = self.addresses.of(access)
        if place is not None:
            return self._buffer_load(e, access, place, hints, other)
        return super().masked_load(e, self._shared(e, access), hints, other)

    def _shared(self, e: Emitter, access: Access) -> Access:
        """The access, by an address in scalar registers if all lanes share it."""
        return replace(access, address=from_first_lane(e, access.address)) if self.is_shared(access.op) else access

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
            super().masked_store(e, self._shared(e, access), hints, words)
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
        """A load into LDS: lanes follow each other from where the first one's part goes.

        Where the mask does not hold zeros are copied: a buffer gives them out of its range, and without one they come
        out of memory that has nothing else.
        """
        if self.number >= GFX1250:
            self._copy_apart(e, op, target, source, mask)
            return
        if op is not self.copied:
            self.copied = op
            self.addresses.look(e, op)
            places = self._first_lane(e, op.operands[0])
            self.targets = dict(zip(map(e.name, e.env[op.operands[0]]), places, strict=True))
            if any(self.addresses.at(register) is None for register in e.env[op.operands[1]]):
                self._without_local_accesses(e)
        there = e.early("inttoptr i32", self.targets[e.name(target)], to="ptr addrspace(3)")
        size, policy = ("i32", str(op.attrs["bytes"])), ("i32", str(_policy_of(op)))
        place = self.addresses.at(source)
        if place is not None:
            buffer, distance = self.addresses.descriptor(e, mask, place)
            name, arguments = BUFFER_LDS, [("ptr addrspace(8)", buffer), ("ptr addrspace(3)", there), size]
            arguments += [("i32", distance), ("i32", "0"), ("i32", "0"), policy]
        else:
            here = self._or_zeros(e, source, mask)
            arguments = [("ptr addrspace(1)", here), ("ptr addrspace(3)", there), size, ("i32", "0"), policy]
            name = GLOBAL_LDS
        e.module.declarations.setdefault(name, COPIES[name])
        e.do(f"{e.call(name, 'void', arguments, CONVERGENT)}, !alias.scope !{COPIED}")
        if place is None:
            e.do(e.call(SCHEDULED, "void", [("i32", "0")], CONVERGENT))

    def _copy_apart(self, e: Emitter, op: LaneOp, target: Register, source: Register, mask: Register | None) -> None:
        """`global_load_async_to_lds`, by which each lane's part goes where it says: gfx1250's."""
        if e.program.warps == 1 and op is not self.copied:  # with more of them there is a barrier, which waits for them
            self._without_local_accesses(e)
        self.copied = op
        there = e.pure(f"inttoptr i32 {e.name(target)} to ptr addrspace(3)")
        name = f"llvm.amdgcn.global.load.async.to.lds.b{8 * int(op.attrs['bytes'])}"
        e.module.declarations.setdefault(
            name, f"declare void @{name}(ptr addrspace(1), ptr addrspace(3), i32 immarg, i32 immarg)"
        )
        arguments = [("ptr addrspace(1)", self._or_zeros(e, source, mask)), ("ptr addrspace(3)", there)]
        text = e.call(name, "void", [*arguments, ("i32", "0"), ("i32", "0")], CONVERGENT)
        e.do(f"{text}, !alias.scope !{COPIED}")

    @staticmethod
    def _or_zeros(e: Emitter, source: Register, mask: Register | None) -> str:
        """A pointer to what is copied: zeros where a mask does not hold."""
        here = e.name(source)
        if mask is not None:
            if ZEROS not in e.module.globals:
                e.module.globals.append(ZEROS)
            zeros = e.early("ptrtoint ptr addrspace(1)", "@zeros", to="i64")
            here = e.pure(f"select i1 {e.name(mask)}, i64 {here}, i64 {zeros}")
        return e.pure(f"inttoptr i64 {here} to ptr addrspace(1)")

    def _without_local_accesses(self, e: Emitter) -> None:
        """Wait for this wave's accesses of LDS, and let none move across.

        LLVM counts a copy that is no buffer's as an access of LDS too, and no document of AMD says that the hardware
        does. If no access of LDS is on its way while such copies begin, LLVM's waits are right in either case.
        """
        name, type, number = awaiting_local(self.number)
        e.do(e.call(SCHEDULED, "void", [("i32", "0")], CONVERGENT))
        e.do(e.call(name, "void", [(type, str(number))], CONVERGENT))
        e.do(e.call(SCHEDULED, "void", [("i32", "0")], CONVERGENT))

    def _first_lane(self, e: Emitter, value: Value) -> list[str]:
        """The registers of a value as the first lane of a wave has them, for scalar registers. What is added to all
        lanes alike is added afterwards, so that a loop which moves it reads no lane."""
        if self.addresses.is_alike(value):
            return [e.name(register) for register in e.env[value]]
        op = value.op
        if op is not None and op.name == "rename":
            names = self._first_lane(e, op.operands[0])
            return [names[i] for i in op.attrs["table"]]
        if op is not None and op.name == "arith.addi":
            parts = [self._first_lane(e, x) for x in op.operands]
            a, b = (names * (value.count // len(names)) for names in parts)
            return [e.early("add i32", x, y) for x, y in zip(a, b, strict=True)]
        names = []
        for register in e.env[value]:
            base, more = (register.base, register.offset) if isinstance(register, Sum) else (e.name(register), 0)
            name = "0"
            if base:
                text = e.call("llvm.amdgcn.readfirstlane.i32", "i32", [("i32", base)])
                name = e.once(text, text, [base])
            names.append(e.early("add i32", name, str(more)) if more else name)
        return names

    def await_copies(self, e: Emitter, op: LaneOp) -> None:
        """By the number of single copies that may be pending."""
        if op.name == "wait_async":
            name, type, number = awaiting(self.number, self.pending[id(op)])
            e.do(e.call(name, "void", [(type, str(number))], CONVERGENT))


def _policy_of(op: LaneOp) -> int:
    """What a copy asks of the caches: `sc0 sc1` for what must not come out of them, `nt` for what is used once."""
    if op.attrs.get("volatile") or op.attrs.get("cache") in UNCACHED:
        return 17
    return 2 if op.attrs.get("evict") in STREAMED or op.attrs.get("cache") in ONCE else 0
