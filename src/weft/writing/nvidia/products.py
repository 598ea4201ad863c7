"""Products of warp groups, which go on while the program does other things, and the fence before them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from weft.ir import int_value
from weft.ir.nvidia.ttng import SIDE_BY_SIDE

from ..expressions import Text
from ..products import precision_of
from ..words import HOMES, writes
from ..writer import Writer, shape_of_value


def _word(w: Writer, name: str) -> str:
    return w.module(name, HOMES[name])


@writes("ttng.warp_group_dot")
def _warp_group_dot(w: Writer, op: Any) -> None:
    # arguments with a name are computed before the others
    texts = w.take(*op.operands[3:], *op.operands[:3])
    use, (a, b, acc) = texts[:-3], texts[-3:]
    a = w.whole(a) if a.shape else a
    acc = w.whole(acc)
    used = f", use_acc={use[0].text}" if use and use[0].number is not True else ""
    precision = precision_of(op, a.kind).replace("input_precision", "precision")
    begun = ", is_async=True" if "isAsync" in op.properties and int_value(op.properties["isAsync"]) else ""
    limit = int_value(op.properties["maxNumImpreciseAcc"]) if "maxNumImpreciseAcc" in op.properties else 0
    limited = f", max_num_imprecise_acc={limit}" if limit else ""
    name = _word(w, "warpgroup_mma")
    beside = ", side_by_side=True" if SIDE_BY_SIDE in op.attributes else ""
    text = f"{name}({a.text}, {b.text}, {acc.text}{used}{precision}{limited}{begun}{beside})"
    given = Text(text, acc.kind, shape_of_value(op.results[0]), acc.layout, begun=bool(begun))
    w.give(op, given, effect=True)


@writes("ttng.warp_group_dot_wait")
def _wait(w: Writer, op: Any) -> None:
    texts = w.take(*op.operands)
    name = _word(w, "warpgroup_mma_wait")
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
    w.effect(op, f"{_word(w, 'fence_async_shared')}({flag})")
