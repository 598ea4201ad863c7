"""The dialect of PTX: where a thread is, what lanes tell each other, barriers and fences."""

from __future__ import annotations

from weft.ir.lane import LaneOp, LaneProgram
from weft.machines import oldest_with
from weft.targets.nvidia import instruction

from ..gpu.emitter import CONVERGENT, PURE, Emitter
from ..gpu.registers import thread_index
from .version import Version

BLOCKS = {"thread": "tid.x", "rank": "cluster.ctarank"}
for _axis in "xyz":
    BLOCKS |= {f"block.{_axis}": f"ctaid.{_axis}", f"blocks.{_axis}": f"nctaid.{_axis}"}
CLUSTERS = {**BLOCKS, **{f"program{s}.{x}": f"{n}clusterid.{x}" for s, n in (("", ""), ("s", "n")) for x in "xyz"}}
"""Special registers, where a program is a cluster of several blocks."""
BLOCKS |= {f"program{s}.{x}": f"{n}ctaid.{x}" for s, n in (("", ""), ("s", "n")) for x in "xyz"}
LAST = "31"
"""The last lane of a warp, and all of them as a segment in which lanes are shuffled."""

FENCES = {
    "async": "fence.proxy.async.shared::cta;",
    "async.cluster": "fence.proxy.async.shared::cluster;",
    "block": "fence.acq_rel.cta;",
    "device": "fence.acq_rel.gpu;",
    "system": "fence.acq_rel.sys;",
    "acquire.block": "fence.acquire.cta;",
    "acquire.device": "fence.acquire.gpu;",
    "acquire.system": "fence.acquire.sys;",
}


class Lanes(Version):
    """Threads, lanes, barriers."""

    def place(self, e: Emitter, index: str, below: int = 0) -> str:
        """A special register."""
        return e.given(f"llvm.nvvm.read.ptx.sreg.{(BLOCKS if e.program.blocks == 1 else CLUSTERS)[index]}", below)

    def same(self, e: Emitter, key: object, number: str) -> str:
        """By a shuffle from lane 0: ptxas sees that it is uniform, and wgmma takes descriptors in such registers."""
        arguments = [("i32", n) for n in ("-1", number, "0", LAST)]
        return e.once(key, e.call("llvm.nvvm.shfl.sync.idx.i32", "i32", arguments))

    def shuffle(self, e: Emitter, word: str, lane: str, *, xor: bool) -> str:
        """`shfl.sync`."""
        arguments = [("i32", "-1"), ("i32", word), ("i32", lane), ("i32", LAST)]
        return e.ins(e.call(f"llvm.nvvm.shfl.sync.{'bfly' if xor else 'idx'}.i32", "i32", arguments))

    def ballot(self, e: Emitter, bit: str) -> str:
        """`vote.sync.ballot`."""
        return e.ins(e.call("llvm.nvvm.vote.ballot.sync", "i32", [("i32", "-1"), ("i1", bit)]))

    def elect(self, e: Emitter) -> str:
        """Where only the lane so chosen uses addresses, ptxas needs no loop over lanes that may differ in them."""
        pair = e.ins(e.call("llvm.nvvm.elect.sync", "{ i32, i1 }", [("i32", "-1")]))
        return e.ins(f"extractvalue {{ i32, i1 }} {pair}, 1")

    def permute(self, e: Emitter, a: str, b: str, selector: str) -> str:
        """`prmt`."""
        return e.pure(e.call("llvm.nvvm.prmt", "i32", [("i32", a), ("i32", b), ("i32", selector)], PURE))

    # -- barriers -----------------------------------------------------------------------------------------------------

    def begin(self, e: Emitter) -> None:
        """The mbarriers of partitions that have barriers of the cluster."""
        ops = (op for op in e.program.body.walk() if op.name == "barrier" and "at" in op.attrs)
        places = sorted({int(op.attrs["at"]) for op in ops})
        if not places:
            return
        first = e.early("icmp eq i32", thread_index(e), "0")
        for place in places:
            arguments = [("i32", str(e.program.blocks)), ("i1", first)]
            self._on_mbarrier(e, "cluster_barrier.make", place, arguments)
        _whole_cluster(e)

    def barrier(self, e: Emitter, op: LaneOp) -> None:
        """All threads of a warp, of a block, of a partition, of a cluster."""
        scope, warps = op.attrs["scope"], e.program.warps
        if scope == "cluster" and e.program.blocks > 1:
            if "at" in op.attrs:
                self._partition_of_cluster(e, op)
            else:
                _whole_cluster(e)
        elif "id" in op.attrs:
            _partition(e, op)
        elif scope == "warp" or warps == 1:
            e.do(e.call("llvm.nvvm.bar.warp.sync", "void", [("i32", "-1")]))
        else:
            e.do(e.call("llvm.nvvm.barrier.cta.sync.aligned.all", "void", [("i32", "0")]))

    def _partition_of_cluster(self, e: Emitter, op: LaneOp) -> None:
        """All threads of a partition of all blocks of the cluster, by the mbarriers that `begin` made."""
        _partition(e, op)
        rank = self.place(e, "rank", e.program.blocks)
        arguments = [("i32", rank), ("i32", thread_index(e)), ("i32", str(e.program.blocks))]
        self._on_mbarrier(e, "cluster_barrier.pass", int(op.attrs["at"]), arguments)
        e.do(e.call("llvm.nvvm.bar.warp.sync", "void", [("i32", "-1")]))
        _partition(e, op)

    def _on_mbarrier(self, e: Emitter, name: str, place: int, arguments: list[tuple[str, str]]) -> None:
        """An instruction on an mbarrier at a place of shared memory."""
        entry = instruction(name)
        self.needs(entry.version)
        text, constraints = entry.asm()
        base = e.early("ptrtoint ptr addrspace(3)", "@shared_memory", to="i32")
        address = e.early("add i32", base, str(place))
        e.asm(text, constraints, (), [("i32", address), *arguments], CONVERGENT)

    def fence(self, e: Emitter, op: LaneOp) -> None:
        """Between threads, and between those and the copy engine."""
        if op.attrs["kind"].startswith("async") and not e.program.machine.async_proxy:
            raise e.fail(op, "a fence for the asynchronous proxy", *oldest_with("async_proxy"))
        text = FENCES[op.attrs["kind"]]
        if "acquire" in text:
            if self.capability < 90:  # which knows none that orders one way only
                text = text.replace("acquire", "acq_rel")
            else:
                self.version = max(self.version, 86)
        e.asm(text, "~{memory}", (), (), CONVERGENT)

    # -- the kernel ---------------------------------------------------------------------------------------------------

    def attributes(self, program: LaneProgram, registers: int) -> str:
        """What becomes `.reqntid`, `.maxnreg` and so on."""
        text = f'"nvvm.reqntid"="{program.warps * program.lanes}"'
        if program.blocks > 1:
            text += f' "nvvm.cluster_dim"="{program.blocks}"'
        if registers:
            text += f' "nvvm.maxnreg"="{registers}"'
        elif program.at_a_time > 1:
            text += f' "nvvm.minctasm"="{program.at_a_time}"'
        return text

    def pointers(self, program: LaneProgram) -> tuple[str, ...]:
        """None."""
        return ()

    def anywhere(self, e: Emitter, bit: str) -> str:
        """Each warp stops by itself."""
        return bit

    def shared_memory(self, program: LaneProgram, alignment: int) -> str:
        """Dynamic: the launch says how much."""
        return f"@shared_memory = external addrspace(3) global [0 x i8], align {alignment}"


def _partition(e: Emitter, op: LaneOp) -> None:
    """All threads of a partition of the block."""
    warps = int(op.attrs.get("warps", e.program.warps))
    if warps == 1:
        e.do(e.call("llvm.nvvm.bar.warp.sync", "void", [("i32", "-1")]))
        return
    arguments = [("i32", str(op.attrs["id"])), ("i32", str(warps * e.program.lanes))]
    e.do(e.call("llvm.nvvm.barrier.cta.sync.aligned.count", "void", arguments))


def _whole_cluster(e: Emitter) -> None:
    for phase in ("arrive", "wait"):
        e.asm(f"barrier.cluster.{phase}.aligned;", "~{memory}", (), (), CONVERGENT)
