"""How the operations of `ttng` are written; see `weft.ir.text.forms` for what the pieces are."""

from __future__ import annotations

from xdsl.ir import Operation

from .. import tt
from ..attrs import bool_attr, i32_attr
from ..gpu.forms import NOT_VOLATILE
from ..text import register
from ..text.elements import Form
from ..text.forms import each_is, is_type, same_as
from ..types import i1, i16, i32
from . import ttng

# fmt: off
_FORMS: dict[type[Operation], Form | None] = {
    # products, fences
    ttng.WarpGroupDotOp: Form(
        "%a, %b, %c?[, %useC]{} : <a> * <b> -> <d>",
        defaults={
            "inputPrecision": i32_attr(tt.InputPrecision.IEEE), "maxNumImpreciseAcc": i32_attr(0),
            "isAsync": bool_attr(False),
        },
        c=same_as("d"), useC=is_type(i1),
    ),
    ttng.WarpGroupDotWaitOp: Form("%inputs...{} : <inputs...>", outputs=same_as("inputs")),
    ttng.FenceAsyncSharedOp: Form("{}"),
    ttng.ClusterArriveOp: Form("{}"),
    ttng.ClusterWaitOp: Form("{}"),
    ttng.WarpGroupTurnOp: Form("{}"),
    # mbarriers
    ttng.InitBarrierOp: Form("%alloc, @count{} : <alloc>"),
    ttng.InvalBarrierOp: Form("%alloc{} : <alloc>"),
    ttng.BarrierExpectOp: Form("%alloc, @size{}, %pred : <alloc>", pred=is_type(i1)),
    ttng.WaitBarrierOp: Form(
        "%alloc, %phase?[, %pred]?[ deps %deps...]{} : <alloc>?[, <deps...>]",
        phase=is_type(i32), pred=is_type(i1),
    ),
    ttng.ArriveBarrierOp: Form("%alloc, @count?[, %pred]{} : <alloc>", pred=is_type(i1)),
    ttng.AsyncCopyMbarrierArriveOp: Form("%barrier{} : <barrier>"),
    # tensors
    ttng.AsyncSharedStoreOp: Form("%src, %dst, %mbarrier{} : <src> -> <dst>, <mbarrier>"),
    ttng.AsyncTMACopyGlobalToLocalOp: Form(
        "%desc[%coord...] %result, %barrier, %pred@hints{} : <desc>, <barrier> -> <result>",
        defaults=NOT_VOLATILE, coord=each_is(i32, "coord"), pred=is_type(i1),
    ),
    ttng.AsyncTMACopyImagesToLocalOp: Form(
        "%desc[%coord...] [%offsets...] %result, %barrier, %pred{} : <desc>, <barrier> -> <result>",
        coord=each_is(i32, "coord"), offsets=each_is(i16, "offsets"), pred=is_type(i1),
    ),
    ttng.AsyncTMACopyLocalToGlobalOp: Form("%desc[%coord...] %src{} : <desc>, <src>", coord=each_is(i32, "coord")),
    ttng.AsyncTMAReduceOp: Form("@kind, %desc[%coord...] %src{} : <desc>, <src>", coord=each_is(i32, "coord")),
    ttng.AsyncTMAGatherOp: Form(
        "%desc[%x_offsets, %y_offset] %result, %barrier, %pred{} : <desc, x_offsets, y_offset, barrier, result, pred>"
    ),
    ttng.AsyncTMAScatterOp: Form("%desc[%x_offsets, %y_offset] %src{} : <desc, x_offsets, y_offset, src>"),
    ttng.AsyncTMAStoreWaitOp: Form("{}"),
    ttng.TensormapCreateOp: Form(
        "%desc_ptr, %global_address, [%box_dim...], [%global_dim...], [%global_stride...], "
        "[%element_stride...]{} : <desc_ptr, global_address, box_dim, global_dim, global_stride, element_stride -> >"
    ),
    ttng.TensormapFenceproxyAcquireOp: Form("%desc_ptr{} : <desc_ptr>"),
    ttng.ReinterpretTensorDescOp: Form("%rawDesc{} : <rawDesc> to <result>"),
}
# fmt: on

for _op, _text in _FORMS.items():
    register(_op, _text)
