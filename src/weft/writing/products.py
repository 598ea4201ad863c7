"""Products of matrices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, SSAValue

from weft.ir import int_value
from weft.layouts import NVMMADistributedLayout

from .expressions import Text
from .words import AMPERE, HOPPER, writes
from .writer import Writer, shape_of_value


@writes("tt.dot")
def _dot(w: Writer, op: Any) -> None:
    a, b, acc = (w.whole(t) for t in w.take(*op.operands))
    value = op.results[0]
    if isinstance(acc.layout, NVMMADistributedLayout):
        text = f"{w.module('mma_v2', AMPERE)}({a.text}, {b.text}, {acc.text}{_precision(op, a.kind)})"
    else:
        text = f"gl.dot_fma({a.text}, {b.text}, {acc.text})"
    w.give(op, Text(text, acc.kind, shape_of_value(value), acc.layout))


PRECISIONS = {0: "tf32", 1: "tf32x3", 2: "ieee"}


def _precision(op: Any, kind: str) -> str:
    """How operands are rounded, which is asked of float32 alone; nothing where it is as without a word."""
    number = int_value(op.properties["inputPrecision"]) if "inputPrecision" in op.properties else 0
    return f', input_precision="{PRECISIONS[number]}"' if number and kind == "f32" else ""


@writes("ttng.warp_group_dot")
def _warp_group_dot(w: Writer, op: Any) -> None:
    a, b, acc, *use = w.take(*op.operands)
    a = w.whole(a) if a.shape else a
    acc = w.whole(acc)
    used = f", {use[0].text}" if use and use[0].number is not True else ""
    precision = _precision(op, a.kind).replace("input_precision", "precision")
    begun = ", is_async=True" if "isAsync" in op.properties and int_value(op.properties["isAsync"]) else ""
    limit = int_value(op.properties["maxNumImpreciseAcc"]) if "maxNumImpreciseAcc" in op.properties else 0
    limited = f", max_num_imprecise_acc={limit}" if limit else ""
    name = w.module("warpgroup_mma", HOPPER)
    text = f"{name}({a.text}, {b.text}, {acc.text}{used}{precision}{limited}{begun})"
    given = Text(text, acc.kind, shape_of_value(op.results[0]), acc.layout, begun=bool(begun))
    w.give(op, given, effect=True)


@writes("ttng.warp_group_dot_wait")
def _wait(w: Writer, op: Any) -> None:
    texts = w.take(*op.operands)
    name = w.module("warpgroup_mma_wait", HOPPER)
    number = int_value(op.properties["pendings"])
    comma = "," if len(texts) == 1 else ""
    text = f"{name}({number}, deps=({', '.join(t.text for t in texts)}{comma}))"
    if len(texts) == 1:
        w.give(op, Text(text, texts[0].kind, texts[0].shape, texts[0].layout), effect=True)
        return
    w.several(op, text, [replace(given, begun=False) for given in texts])


@writes("ttng.fence_async_shared")
def _fence(w: Writer, op: Any) -> None:
    flag = "cluster=True" if int_value(op.properties["bCluster"]) else ""
    w.effect(op, f"{w.module('fence_async_shared', HOPPER)}({flag})")



def is_begun(value: SSAValue, seen: frozenset[SSAValue] = frozenset()) -> bool:
    """Whether a value is a product under way, or what a loop or a branch leaves is one."""
    if value in seen:
        return False
    seen = seen | {value}
    owner = value.owner
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op()
        if not isinstance(loop, scf.ForOp) or value.index == 0:
            return False
        return is_begun(loop.results[value.index - 1], seen)
    if isinstance(owner, scf.ForOp):
        last = owner.regions[0].blocks[0].last_op
        assert last is not None
        return is_begun(last.operands[value.index], seen)  # type: ignore[attr-defined]
    if isinstance(owner, scf.IfOp):
        ends = [region.blocks[0].last_op for region in owner.regions if region.blocks]
        return any(is_begun(end.operands[value.index], seen) for end in ends if end)  # type: ignore[attr-defined]
    return owner.name == "ttng.warp_group_dot" and "isAsync" in owner.properties  # type: ignore[union-attr]


def begun(w: Writer, text: Text) -> Text:
    """A value as a product that may be under way, as a loop carries it."""
    if text.begun:
        return text
    return replace(w.whole(text), text=f"{w.module('warpgroup_mma_init', HOPPER)}({w.whole(text).text})", begun=True)
