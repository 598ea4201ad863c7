"""NVIDIA's part of the simulator: which file does what an instruction does; see `sim/vendor.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.base import Unsupported
from weft.ir.lane import LaneOp, Parameter
from weft.targets.instruction import Instruction

from ..clusters import cluster_arrive, cluster_wait
from ..errors import DivergenceError
from ..machine import Batch, Context, Wait
from ..special import run_instruction
from ..values import Array
from . import asked, bulk, ping_pong, products
from .assembly import assembly
from .assembly_memory import touches_memory
from .barriers import mbarrier
from .fenced import check_fenced
from .maps import tensor_map
from .sent import send

ORDERING = (
    *("wgmma.", "fence.mbarrier_init", "setmaxnreg.", "tensormap.acquire", "tensormap.prefetch"),
    "turn.",
)
"""Instructions that only order others, or tell the hardware something."""


class Nvidia:
    """What instructions do that is no matter of registers and memory alone."""

    def instruction(self, context: Context, op: LaneOp, entry: Instruction) -> Iterator[Wait] | None:
        name = entry.name
        if name.startswith("mbarrier."):
            return mbarrier(context, op)
        if name.startswith(("cp.async.bulk.", "cp.reduce.async.bulk.")):
            return bulk.bulk(context, op)
        if name == "prefetch.bulk.L2":
            return asked.ask(context, op)
        if name.startswith("st.async."):
            return send(context, op)
        if name.startswith("barrier.cluster."):
            return _cluster(context, op)
        if entry.touches == "sync" or name.startswith("wgmma"):
            return _ordering(context, op, entry)
        return None

    def await_(self, context: Context, op: LaneOp) -> None:
        context.batch.report.add_kind(op.span, "wgmma.wait_group", context.count)
        products.await_products(context, op, int(op.attrs["pending"]))

    def assembly(self, context: Context, op: LaneOp) -> Iterator[Wait]:
        return assembly(context, op)

    def touches_memory(self, op: LaneOp) -> bool:
        return touches_memory(str(op.attrs["text"]))

    def watch(self, context: Context, op: LaneOp) -> None:
        products.watch(context, op)

    def carry(self, context: Context, op: LaneOp) -> None:
        products.carry(context, op)

    def finish(self, batch: Batch) -> None:
        bulk.finish(batch)
        ping_pong.finish(batch)

    def tensor_map(self, parameter: Parameter, described: Any, address: int) -> Array:
        return tensor_map(parameter, described, address)

    def written(self, op: LaneOp) -> tuple[str, str] | None:
        if op.name != "instruction" or not op.attrs["isa"].startswith("cp.async.bulk"):
            return None
        hint = "wait for the phase of the copy's mbarrier: with the parity of that phase, before the first access"
        return "a bulk copy by {}, whose mbarrier has not been waited for", hint

    def reading(self, op: LaneOp) -> tuple[str, str]:
        if op.attrs.get("isa", "").startswith("wgmma"):
            return "a wgmma", "wait for the product (warpgroup_mma_wait) before its operands are written"
        return "a bulk copy", "wait for the copy (store_wait) before what it reads is written"


def _ordering(context: Context, op: LaneOp, entry: Instruction) -> Iterator[Wait]:
    """wgmma, its groups and waits; what tells the hardware something."""
    if entry.touches == "sync" and not entry.name.startswith(ORDERING):
        raise Unsupported(f"the instruction `{entry.name}` as `instruction`", context.batch.program.target, op.span)
    if entry.name.startswith("wgmma"):
        _check_warpgroup(context, op)
    if entry.touches != "sync":
        check_fenced(context, op)
        reads = run_instruction(context, op, entry, proxy=True)
        if not context.batch.launch.counting:
            products.issue(context, op, reads)
        return
    context.batch.report.add_kind(op.span, entry.name, context.count)
    if entry.name == "wgmma.commit_group":
        products.end_group(context)
    elif entry.name.startswith("turn."):
        ping_pong.step(context, op)
    elif entry.name == "wgmma.wait_group":
        products.await_products(context, op, int(context.env[op.operands[0]].data.flat[0]))
    yield from ()


def _check_warpgroup(context: Context, op: LaneOp) -> None:
    """wgmma is executed by four warps, the first of which has a number divisible by four."""
    groups = context.warps[: context.count // 4 * 4].reshape(-1, 4)
    if context.count % 4 or (groups[:, 0] % 4).any() or (groups[:, 3] - groups[:, 0] != 3).any():
        warps = sorted({int(w) % context.batch.program.warps for w in context.warps})
        message = f"`{op.attrs['isa']}` needs all four warps of a warpgroup, and is executed by warps {warps}"
        raise DivergenceError(message, op.span, thread=context.thread(0))


def _cluster(context: Context, op: LaneOp) -> Iterator[Wait]:
    """barrier.cluster.arrive and .wait."""
    context.batch.report.add_kind(op.span, op.attrs["isa"], context.count)
    if op.attrs["isa"].endswith("arrive"):
        if ".made." in op.attrs["isa"] and not context.batch.launch.counting:
            context.batch.shadow.clocks.fence(context.warps)
        cluster_arrive(context, op)
    else:
        yield from cluster_wait(context, op)
