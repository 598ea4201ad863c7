"""Bulk copies of blocks of tensors, by the copy engine (TMA), and tiles that are sent to memory of a cluster."""

from __future__ import annotations

from typing import Any

from weft.ir import int_value, tt
from weft.ir.nvidia.ttng import DIVIDED, EACH_WARP

from ..expressions import Text
from ..words import HOMES, writes
from ..writer import Writer


def _tma(w: Writer) -> str:
    return w.module("tma", HOMES["tma"])


def _listed(texts: list[Text]) -> str:
    return f"[{', '.join(t.text for t in texts)}]"


def _more(op: Any, pred: Text) -> str:
    """The arguments that most loads do not need."""
    text = "" if pred.number is True else f", pred={pred.text}"
    if "multicast" not in op.properties or not int_value(op.properties["multicast"]):
        return text
    return text + (', multicast="divided"' if DIVIDED in op.attributes else ", multicast=True")


@writes("ttng.async_tma_copy_global_to_local")
def _load(w: Writer, op: Any) -> None:
    blocks, *at, barrier, memory, pred = w.take(*op.operands)
    to = f"{_listed(at)}, {barrier.text}, {memory.text}{_more(op, pred)}"
    w.effect(op, f"{_tma(w)}.async_copy_global_to_shared({blocks.text}, {to})")


@writes("ttng.async_tma_copy_im2col_to_local")
def _load_images(w: Writer, op: Any) -> None:
    blocks, *places, barrier, memory, pred = w.take(*op.operands)
    rank = len(places) // 2 + 1  # two offsets less than coordinates
    to = f"{_listed(places[:rank])}, {_listed(places[rank:])}, {barrier.text}, {memory.text}{_more(op, pred)}"
    w.effect(op, f"{_tma(w)}.async_copy_global_to_shared_im2col({blocks.text}, {to})")


@writes("ttng.async_tma_copy_local_to_global")
def _store(w: Writer, op: Any) -> None:
    _from_shared(w, op, "copy_shared_to_global")


@writes("ttng.async_tma_reduce")
def _reduce(w: Writer, op: Any) -> None:
    _from_shared(w, op, f"atomic_{tt.DescriptorReduceKind(int_value(op.properties['kind'])).name.lower()}")


def _from_shared(w: Writer, op: Any, name: str) -> None:
    blocks, *at, memory = w.take(*op.operands)
    alone = ", each_warp=True" if EACH_WARP in op.attributes else ""
    w.effect(op, f"{_tma(w)}.async_{name}({blocks.text}, {_listed(at)}, {memory.text}{alone})")


@writes("ttng.async_tma_store_wait")
def _store_wait(w: Writer, op: Any) -> None:
    is_done = "read_only" in op.properties and not int_value(op.properties["read_only"])
    pending = int_value(op.properties["pendings"])
    w.effect(op, f"{_tma(w)}.store_wait({pending}{', read_only=False' if is_done else ''})")


@writes("ttng.async_shared_store")
def _send(w: Writer, op: Any) -> None:
    value, memory, barrier = w.take(*op.operands)
    name = w.module("async_store", HOMES["async_store"])
    w.effect(op, f"{name}({memory.text}, {w.whole(value).text}, {barrier.text})")
