"""The dialect of SPIR-V: where a thread is, what lanes tell each other, barriers and fences.

What OpenCL has is called by its mangled name, which LLVM makes an instruction of. A thread's number is its lane's in
its subgroup, which is a warp, and that subgroup's in the block: so that shuffles reach the lanes which the lane program
means, whichever way a device deals out threads.
"""

from __future__ import annotations

from weft.base import Unsupported
from weft.ir.lane import LaneOp, LaneProgram
from weft.machines import Machine

from ..gpu.emitter import CONVERGENT, CONVERGENT_PURE, PURE, Emitter
from .assertions import pointers

AXES = "xyz"
SCOPES = {"block": "workgroup", "device": "device", "system": ""}
BARRIER = "_Z22__spirv_ControlBarrieriii"
BLOCK_SCOPE, WARP_SCOPE = 2, 3
ORDERED, SHARED_MEMORY, GLOBAL_MEMORY = 0x8, 0x100, 0x200
"""What a barrier orders: SPIR-V's numbers."""


class Lanes:
    """Threads, lanes, barriers."""

    convention = "spir_kernel"
    tensor_map = ""

    def __init__(self, machine: Machine) -> None:
        self.processor, self.lanes = machine.name.partition(":")[2], machine.lanes

    # -- the kernel ---------------------------------------------------------------------------------------------------

    def attributes(self, program: LaneProgram, registers: int) -> str:
        """The size of a block and of a subgroup, as metadata of OpenCL's."""
        return f"!reqd_work_group_size !{BLOCK} !intel_reqd_sub_group_size !{BLOCK + 1}"

    def pointers(self, program: LaneProgram) -> tuple[str, ...]:
        """Where a failing assertion is written to."""
        return pointers(program)

    def shared_memory(self, program: LaneProgram, alignment: int) -> str:
        """A variable of the block's: launches add nothing."""
        return f"@shared_memory = internal addrspace(3) global [{program.shared_bytes} x i8] undef, align {alignment}"

    def begin(self, e: Emitter) -> None:
        """Metadata of the module; what LLVM cannot write for the target."""
        e.module.widest = 64
        e.module.attributes += (
            f"!{BLOCK} = !{{i32 {e.program.warps * e.program.lanes}, i32 1, i32 1}}",
            f"!{BLOCK + 1} = !{{i32 {e.program.lanes}}}",
        )

    # -- where a thread is --------------------------------------------------------------------------------------------

    def place(self, e: Emitter, index: str, below: int = 0) -> str:
        """What the device says."""
        what, _, axis = index.partition(".")
        if what == "rank":
            return "0"
        if what == "thread":
            number = self._thread(e)
            if below:
                e.largest[number] = below - 1
            return number
        name = "_Z14get_num_groupsj" if what in ("blocks", "programs") else "_Z12get_group_idj"
        wide = e.once((name, axis), e.call(name, "i64", [("i32", str(AXES.index(axis)))], PURE), ())
        return e.early("trunc i64", wide, to="i32")

    def _thread(self, e: Emitter) -> str:
        lane = self.lane(e)
        if e.program.warps == 1:
            return lane
        warp = e.once("warp", e.call("_Z16get_sub_group_idv", "i32", (), PURE), ())
        return e.early("or i32", e.early("mul i32", warp, str(self.lanes)), lane)

    def lane(self, e: Emitter) -> str:
        """The thread's number in its warp."""
        return e.once("lane", e.call("_Z22get_sub_group_local_idv", "i32", (), PURE), ())

    def same(self, e: Emitter, key: object, number: str) -> str:
        """That of the first lane."""
        return e.once(key, e.call("_Z19sub_group_broadcastij", "i32", [("i32", number), ("i32", "0")], CONVERGENT_PURE))

    # -- between lanes ------------------------------------------------------------------------------------------------

    def shuffle(self, e: Emitter, word: str, lane: str, *, xor: bool) -> str:
        """A shuffle of the subgroup."""
        name = "_Z27intel_sub_group_shuffle_xorij" if xor else "_Z23intel_sub_group_shuffleij"
        number = lane if xor else e.early("and i32", lane, str(self.lanes - 1))
        return e.ins(e.call(name, "i32", [("i32", word), ("i32", number)], CONVERGENT_PURE))

    def ballot(self, e: Emitter, bit: str) -> str:
        """A bit for each lane: their sum."""
        mine = e.pure(f"shl i32 {e.early('zext i1', bit, to='i32')}, {self.lane(e)}")
        return e.ins(e.call("_Z20sub_group_reduce_addi", "i32", [("i32", mine)], CONVERGENT_PURE))

    def elect(self, e: Emitter) -> str:
        """The first lane."""
        return e.early("icmp eq i32", self.lane(e), "0")

    def permute(self, e: Emitter, a: str, b: str, selector: str) -> str:
        """A shuffle of the bytes of two vectors; by shifts where the selector is not known."""
        if selector.lstrip("-").isdigit():
            places = [int(selector) >> 4 * i & 7 for i in range(4)]
            x, y = (e.pure(f"bitcast i32 {word} to <4 x i8>") for word in (a, b))
            mask = ", ".join(f"i32 {place}" for place in places)
            four = e.pure(f"shufflevector <4 x i8> {x}, <4 x i8> {y}, <4 x i32> <{mask}>")
            return e.pure(f"bitcast <4 x i8> {four} to i32")
        low, high = (e.early("zext i32", word, to="i64") for word in (a, b))
        both = e.early("or i64", e.early("shl i64", high, "32"), low)
        word = "0"
        for i in range(4):
            place = e.early("and i32", e.early("lshr i32", selector, str(4 * i)), "7")
            by = e.early("zext i32", e.early("shl i32", place, "3"), to="i64")
            byte = e.early("and i32", e.early("trunc i64", e.early("lshr i64", both, by), to="i32"), "255")
            word = e.early("or i32", word, e.early("shl i32", byte, str(8 * i)))
        return word

    # -- order --------------------------------------------------------------------------------------------------------

    def barrier(self, e: Emitter, op: LaneOp) -> None:
        """Of a warp or of the block."""
        scope, warps = op.attrs["scope"], e.program.warps
        if "id" in op.attrs and int(op.attrs.get("warps", warps)) != warps and int(op.attrs.get("warps", 1)) > 1:
            raise Unsupported("a barrier of some warps of a block", e.program.target, op.span)
        alone = scope == "warp" or warps == 1 or int(op.attrs.get("warps", warps)) == 1
        local = op.attrs.get("of") != "global" and bool(op.attrs.get("inserted"))
        numbers = [WARP_SCOPE if alone else BLOCK_SCOPE] * 2
        numbers.append(ORDERED | SHARED_MEMORY | (0 if local else GLOBAL_MEMORY))
        e.do(e.call(BARRIER, "void", [("i32", str(n)) for n in numbers], CONVERGENT))

    def fence(self, e: Emitter, op: LaneOp) -> None:
        """Between threads; there is no copy engine with a path of its own."""
        order, _, scope = op.attrs["kind"].rpartition(".")
        if op.attrs["kind"].startswith("async"):
            raise e.fail(op, "a fence for the asynchronous proxy")
        named = f'syncscope("{SCOPES[scope]}") ' if SCOPES[scope] else ""
        e.do(f"fence {named}{order or 'acq_rel'}")


BLOCK = 1_000_000
"""The number of metadata that says how large a block is; those of source lines are below."""
