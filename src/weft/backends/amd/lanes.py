"""The dialect of AMDGPU: where a thread is, what lanes tell each other, barriers and fences.

A warp runs in lock step, and its accesses of LDS are done in their order: among its lanes only LLVM has to be told that
there is an order. A barrier of the block orders LDS alone (`LOCAL`), unless it is there for global memory.
"""

from __future__ import annotations

from weft.base import Unsupported
from weft.ir.lane import LaneOp, LaneProgram
from weft.machines import Machine

from ..gpu.emitter import CONVERGENT, CONVERGENT_PURE, PURE, Emitter
from .local_size import ATTRIBUTE
from .occupancy import Saving
from .printing import Printing
from .processor import processor_of
from .waits import awaiting_local

LOCAL = 1_000_000
"""The number of metadata which says of a fence that it orders LDS alone; those of source lines are below."""
VERSION = LOCAL + 1
METADATA = (
    f"!llvm.module.flags = !{{!{VERSION}}}",
    f'!{VERSION} = !{{i32 1, !"amdhsa_code_object_version", i32 500}}',
    f'!{LOCAL} = !{{!"amdgpu-synchronize-as", !"local"}}',
)
UNUSED = (
    "amdgpu-no-queue-ptr", "amdgpu-no-implicitarg-ptr", "amdgpu-no-dispatch-id", "amdgpu-no-heap-ptr",
    "amdgpu-no-hostcall-ptr", "amdgpu-no-multigrid-sync-arg", "amdgpu-no-default-queue", "amdgpu-no-completion-action",
    "amdgpu-no-lds-kernel-id", "amdgpu-no-flat-scratch-init", "amdgpu-no-workitem-id-y", "amdgpu-no-workitem-id-z",
)  # fmt: skip
"""What the hardware or the runtime could hand to a kernel, and none here asks for."""
ALL_COMMON = 512
"""From how many threads of a block on all registers are common ones: a thread then has 256 at most, all of which any
instruction can name; LLVM would set half of them aside for products."""
AXES = "xyz"
GRID = 12
"""Where in a dispatch packet the size of the grid is, in threads, 32 bits for each axis."""
DISPATCH, WIDE = "ptr addrspace(4)", 0x07070707
SCOPES = {"block": "workgroup", "device": "agent", "system": ""}


def axes_used(program: LaneProgram) -> tuple[set[str], bool]:
    """The axes of which a program asks for its place, and whether it asks how many there are."""
    used, counted = {"x"}, False
    for op in program.body.walk():
        if op.name == "program_id":
            used.add(AXES[op.attrs["axis"]])
        elif op.name in ("scratch", "print", "assert", "check"):
            used.update(AXES)
        counted = counted or op.name in ("num_programs", "scratch")
    return used, counted


def fence(e: Emitter, scope: str, order: str, *, local: bool = False) -> None:
    """LLVM's fence; with `local` of LDS alone."""
    named = f'syncscope("{scope}") ' if scope else ""
    e.do(f"fence {named}{order}{f', !mmra !{LOCAL}' if local else ''}")


class Lanes:
    """Threads, lanes, barriers."""

    convention = "amdgpu_kernel"
    past_copies = ""
    """What is said of accesses of LDS in a program that copies there; see `memory`."""
    tensor_map = ""

    def __init__(self, machine: Machine, warps: int = 0, saving: Saving = Saving.NOTHING) -> None:
        """`warps` of them are to fit on a SIMD, by the registers that a thread has; 0 is any number."""
        self.target, self.warps, self.saving = processor_of(machine), warps, saving
        self.processor, self.number, self.lanes = self.target.name, self.target.number, self.target.lanes
        self.word = f"i{self.lanes}"
        """The type of a bit for each lane."""
        self.printing = Printing()
        self.inlined: list[LaneOp] = []
        """Inline assembly that was written."""

    # -- the kernel ---------------------------------------------------------------------------------------------------

    def attributes(self, program: LaneProgram, registers: int) -> str:
        """How large a block is, what the kernel does not ask for, how many registers it may have."""
        threads = program.warps * program.lanes
        used, counted = axes_used(program)
        unused = [*UNUSED, *(f"amdgpu-no-workgroup-id-{axis}" for axis in AXES if axis not in used)]
        if not counted:
            unused.append("amdgpu-no-dispatch-ptr")
        text = f'"amdgpu-flat-work-group-size"="{threads},{threads}" "uniform-work-group-size"="true"'
        if registers:
            text += f' "amdgpu-num-vgpr"="{registers}"'
        if Saving.LOCAL in self.saving and program.shared_bytes:
            text += f' "{ATTRIBUTE}"="{program.shared_bytes}"'
        if self.warps:
            text += f' "amdgpu-waves-per-eu"="{self.warps}"'
        if self.target.is_cdna and threads >= ALL_COMMON:
            text += ' "amdgpu-agpr-alloc"="0"'
        return " ".join([text, *(f'"{name}"' for name in unused)])

    def pointers(self, program: LaneProgram) -> tuple[str, ...]:
        """None."""
        return ()

    def anywhere(self, e: Emitter, bit: str) -> str:
        """Each warp stops by itself."""
        return bit

    def shared_memory(self, program: LaneProgram, alignment: int) -> str:
        """As large as it is: the code object says so, and launches add nothing. LLVM does not see it where registers
        are few (`local_size`)."""
        if Saving.LOCAL in self.saving:
            return f"@shared_memory = external addrspace(3) global [0 x i8], align {alignment}"
        return f"@shared_memory = internal addrspace(3) global [{program.shared_bytes} x i8] poison, align {alignment}"

    def begin(self, e: Emitter) -> None:
        """Metadata of the module."""
        e.module.stack = 5
        e.module.attributes += METADATA

    # -- where a thread is --------------------------------------------------------------------------------------------

    def place(self, e: Emitter, index: str, below: int = 0) -> str:
        """A register that the hardware sets; how many blocks there are stands in the dispatch packet."""
        what, _, axis = index.partition(".")
        if what == "rank":
            return "0"
        if what in ("blocks", "programs"):
            return self._blocks(e, axis)
        name = "llvm.amdgcn.workitem.id.x" if what == "thread" else f"llvm.amdgcn.workgroup.id.{axis}"
        return e.given(name, below)

    def _blocks(self, e: Emitter, axis: str) -> str:
        """The threads of the grid along an axis, by those of a block, which all lie along x."""
        packet = e.once("dispatch", e.call("llvm.amdgcn.dispatch.ptr", DISPATCH, ()), ())
        place = e.early(f"getelementptr i8, {DISPATCH}", packet, f"i32 {GRID + 4 * AXES.index(axis)}")
        threads = e.once(("grid", axis), f"load i32, {DISPATCH} {place}, align 4", (place,))
        if axis != "x":
            return threads
        return e.early("udiv i32", threads, str(e.program.warps * e.program.lanes))

    def same(self, e: Emitter, key: object, number: str) -> str:
        """`v_readfirstlane_b32`: it is in a scalar register."""
        return e.once(key, e.call("llvm.amdgcn.readfirstlane.i32", "i32", [("i32", number)]))

    # -- between lanes ------------------------------------------------------------------------------------------------

    def lane(self, e: Emitter) -> str:
        """The thread's number in its warp."""
        thread = self.place(e, "thread", e.program.warps * e.program.lanes)
        return thread if e.program.warps == 1 else e.early("and i32", thread, str(self.lanes - 1))

    def shuffle(self, e: Emitter, word: str, lane: str, *, xor: bool) -> str:
        """`ds_bpermute_b32`, which counts bytes: what is cheaper, the lowering has written (`lower/amd`)."""
        number = e.early("xor i32", self.lane(e), lane) if xor else lane
        place = e.early("shl i32", number, "2")
        arguments = [("i32", place), ("i32", word)]
        return e.ins(e.call("llvm.amdgcn.ds.bpermute", "i32", arguments, CONVERGENT_PURE))

    def ballot(self, e: Emitter, bit: str) -> str:
        """A bit for each lane, in a scalar register."""
        return e.ins(e.call(f"llvm.amdgcn.ballot.{self.word}", self.word, [("i1", bit)], CONVERGENT_PURE))

    def elect(self, e: Emitter) -> str:
        """The first lane."""
        return e.early("icmp eq i32", self.lane(e), "0")

    def permute(self, e: Emitter, a: str, b: str, selector: str) -> str:
        """`v_perm_b32`, whose selectors have a byte each; 0 to 3 are of its second word."""
        if selector.lstrip("-").isdigit():
            bits = int(selector)
            wide = str(sum((bits >> 4 * i & 7) << 8 * i for i in range(4)))
        else:
            wide = e.early("and i32", selector, "15")
            for i in range(1, 4):
                nibble = e.early("shl i32", e.early("and i32", selector, str(15 << 4 * i)), str(4 * i))
                wide = e.early("or i32", wide, nibble)
            wide = e.early("and i32", wide, str(WIDE))
        return e.pure(e.call("llvm.amdgcn.perm", "i32", [("i32", b), ("i32", a), ("i32", wide)], PURE))

    # -- order --------------------------------------------------------------------------------------------------------

    def barrier(self, e: Emitter, op: LaneOp) -> None:
        """Of a warp or of the block.

        LLVM takes it that waves see each other's accesses of LDS in the order in which they were issued, and lets a
        fence of LDS alone wait for none. But the SIMDs of a compute unit have queues of their own: what a wave has
        stored there must be there before it is at the barrier. A fence of a block waits for all copies to LDS that are
        on their way, where a program has waited for those that it needs: one of a wave orders as much in LLVM IR. Where
        there are no copies it is one of a block: LLVM's scheduler then holds fewer registers.
        """
        scope, warps = op.attrs["scope"], e.program.warps
        if "id" in op.attrs and int(op.attrs.get("warps", warps)) != warps and int(op.attrs.get("warps", 1)) > 1:
            raise Unsupported("a barrier of some warps of a block", e.program.target, op.span)
        alone = scope == "warp" or warps == 1 or int(op.attrs.get("warps", warps)) == 1
        local = op.attrs.get("of") != "global" and bool(op.attrs.get("inserted"))
        around = "wavefront" if alone or (local and self.past_copies) else "workgroup"
        fence(e, around, "release", local=local)
        if local and not alone:
            name, type, number = awaiting_local(self.number)
            e.do(e.call(name, "void", [(type, str(number))], CONVERGENT))
        e.do(e.call(f"llvm.amdgcn.{'wave' if alone else 's'}.barrier", "void", (), CONVERGENT))
        fence(e, around, "acquire", local=local)

    def fence(self, e: Emitter, op: LaneOp) -> None:
        """Between threads; there is no copy engine with a path of its own."""
        order, _, scope = op.attrs["kind"].rpartition(".")
        if op.attrs["kind"].startswith("async"):
            raise e.fail(op, "a fence for the asynchronous proxy")
        fence(e, SCOPES[scope], order or "acq_rel")
