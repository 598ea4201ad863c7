"""Barriers in shared memory that count arrivals and bytes, those of a cluster's blocks, turns of warp groups."""

from __future__ import annotations

from typing import Any

from weft.ir import int_value
from weft.ir.nvidia.ttng import EACH_WARP, EVERY_BLOCK

from ..words import HOMES, writes
from ..writer import Writer


def _mbarrier(w: Writer) -> str:
    return w.module("mbarrier", HOMES["mbarrier"])


def _routed(op: Any) -> str:
    """From which block of the cluster arrivals come, as an argument."""
    return f", from_cta={int_value(op.properties['fromCTA'])}" if "fromCTA" in op.properties else ""


@writes("ttng.init_barrier")
def _init(w: Writer, op: Any) -> None:
    (barrier,) = w.take(*op.operands)
    w.effect(op, f"{_mbarrier(w)}.init({barrier.text}, count={int_value(op.properties['count'])})")


@writes("ttng.inval_barrier")
def _invalidate(w: Writer, op: Any) -> None:
    (barrier,) = w.take(*op.operands)
    w.effect(op, f"{_mbarrier(w)}.invalidate({barrier.text})")


@writes("ttng.barrier_expect")
def _expect(w: Writer, op: Any) -> None:
    barrier, pred = w.take(*op.operands)
    where = "" if pred.number is True else f", pred={pred.text}"
    size = int_value(op.properties["size"])
    w.effect(op, f"{_mbarrier(w)}.expect({barrier.text}, {size}{where}{_routed(op)})")


@writes("ttng.wait_barrier")
def _wait(w: Writer, op: Any) -> None:
    sizes = [int(x) for x in op.properties["operandSegmentSizes"].get_values()]
    barrier, phase, *rest = w.take(*op.operands)
    text = f"{_mbarrier(w)}.wait({barrier.text}, {phase.text}"
    if sizes[2]:
        pred = rest.pop(0)
        text += "" if pred.number is True else f", pred={pred.text}"
    if rest:
        text += f", deps=[{', '.join(t.text for t in rest)}]"
    w.effect(op, f"{text})")


@writes("ttng.arrive_barrier")
def _arrive(w: Writer, op: Any) -> None:
    """Where every warp arrives for itself, it is by an argument that Triton's Gluon does not have."""
    barrier, *preds = w.take(*op.operands)
    where = f", pred={preds[0].text}" if preds and preds[0].number is not True else ""
    if EACH_WARP in op.attributes:
        everywhere = ", every_block=True" if EVERY_BLOCK in op.attributes else ""
        w.effect(op, f"{_mbarrier(w)}.arrive({barrier.text}{where}, each_warp=True{everywhere})")
        return
    count = int_value(op.properties["count"])
    shown = f", count={count}" if count != 1 else ""
    w.effect(op, f"{_mbarrier(w)}.arrive({barrier.text}{shown}{where}{_routed(op)})")


@writes("ttng.async_copy_mbarrier_arrive")
def _arrive_after_copies(w: Writer, op: Any) -> None:
    (barrier,) = w.take(*op.operands)
    more = ", increment_count=False" if "noIncrement" in op.properties else ""
    w.effect(op, f"{w.module('async_copy', HOMES['async_copy'])}.mbarrier_arrive({barrier.text}{more})")


@writes("ttng.warp_group_turn")
def _turn(w: Writer, op: Any) -> None:
    step = str(op.properties["step"].data)
    w.effect(op, f"{w.module('turns', HOMES['turns'])}.{'pass_on' if step == 'pass' else step}()")


@writes("ttng.cluster_arrive")
def _cluster_arrive(w: Writer, op: Any) -> None:
    is_relaxed = "relaxed" in op.properties and int_value(op.properties["relaxed"])
    w.effect(op, f"{w.module('cluster', HOMES['cluster'])}.arrive({'relaxed=True' if is_relaxed else ''})")


@writes("ttng.cluster_wait")
def _cluster_wait(w: Writer, op: Any) -> None:
    w.effect(op, f"{w.module('cluster', HOMES['cluster'])}.wait()")
