"""How the operations of `ttng` are written; see `weft.ir.text.forms` for what the pieces are."""

from __future__ import annotations

from xdsl.ir import Operation

from .. import tt
from ..attrs import bool_attr, i32_attr
from ..gpu.forms import ATTRS, HINTS, NOT_VOLATILE, AllTypes, Number, as_group, each_is, form, is_type
from ..text import register
from ..text.elements import Choice, Form, Maybe, Signature, Type, Types, Value, Values, words
from ..types import i1, i16, i32
from . import ttng

# fmt: off
_FORMS: dict[type[Operation], Form | None] = {
    # products, fences
    ttng.WarpGroupDotOp: form(
        Value("a"), ", ", Value("b"), ", ", Value("c"), Maybe(", ", Value("useC")), ATTRS, " : ", Type("a"), " * ",
        Type("b"), " -> ", Type("d"), defaults={
            "inputPrecision": i32_attr(tt.InputPrecision.IEEE), "maxNumImpreciseAcc": i32_attr(0),
            "isAsync": bool_attr(False),
        }, c=as_group("d"), useC=is_type(i1),
    ),
    ttng.WarpGroupDotWaitOp: form(
        Values("inputs"), ATTRS, " : ", Types("inputs"), outputs=as_group("inputs"),
    ),
    ttng.FenceAsyncSharedOp: form(ATTRS),
    ttng.ClusterArriveOp: form(ATTRS),
    ttng.ClusterWaitOp: form(ATTRS),
    # mbarriers
    ttng.InitBarrierOp: form(Value("alloc"), ", ", Number("count"), ATTRS, " : ", Type("alloc"), hidden="count"),
    ttng.InvalBarrierOp: form(Value("alloc"), ATTRS, " : ", Type("alloc")),
    ttng.BarrierExpectOp: form(
        Value("alloc"), ", ", Number("size"), ATTRS, ", ", Value("pred"), " : ", Type("alloc"), hidden="size",
        pred=is_type(i1),
    ),
    ttng.WaitBarrierOp: form(
        Value("alloc"), ", ", Value("phase"), Maybe(", ", Value("pred")), Maybe(" deps ", Values("deps")), ATTRS,
        " : ", Type("alloc"), Maybe(", ", Types("deps")), phase=is_type(i32), pred=is_type(i1),
    ),
    ttng.ArriveBarrierOp: form(
        Value("alloc"), ", ", Number("count"), Maybe(", ", Value("pred")), ATTRS, " : ", Type("alloc"), hidden="count",
        pred=is_type(i1),
    ),
    ttng.AsyncCopyMbarrierArriveOp: form(Value("barrier"), ATTRS, " : ", Type("barrier")),
    # tensors
    ttng.AsyncSharedStoreOp: form(
        Value("src"), ", ", Value("dst"), ", ", Value("mbarrier"), ATTRS, " : ", Type("src"), " -> ", Type("dst"),
        ", ", Type("mbarrier"),
    ),
    ttng.AsyncTMACopyGlobalToLocalOp: form(
        Value("desc"), "[", Values("coord"), "] ", Value("result"), ", ", Value("barrier"), ", ", Value("pred"), HINTS,
        ATTRS, " : ", Type("desc"), ", ", Type("barrier"), " -> ", Type("result"), hidden="cache evict",
        defaults=NOT_VOLATILE, coord=each_is(i32, "coord"), pred=is_type(i1),
    ),
    ttng.AsyncTMACopyImagesToLocalOp: form(
        Value("desc"), "[", Values("coord"), "] [", Values("offsets"), "] ", Value("result"), ", ", Value("barrier"),
        ", ", Value("pred"), ATTRS, " : ", Type("desc"), ", ", Type("barrier"), " -> ", Type("result"),
        coord=each_is(i32, "coord"), offsets=each_is(i16, "offsets"), pred=is_type(i1),
    ),
    ttng.AsyncTMACopyLocalToGlobalOp: form(
        Value("desc"), "[", Values("coord"), "] ", Value("src"), ATTRS, " : ", Type("desc"), ", ", Type("src"),
        coord=each_is(i32, "coord"),
    ),
    ttng.AsyncTMAReduceOp: form(
        Choice("kind", words(tt.DescriptorReduceKind)), ", ", Value("desc"), "[", Values("coord"), "] ", Value("src"),
        ATTRS, " : ", Type("desc"), ", ", Type("src"), hidden="kind", coord=each_is(i32, "coord"),
    ),
    ttng.AsyncTMAGatherOp: form(
        Value("desc"), "[", Value("x_offsets"), ", ", Value("y_offset"), "] ", Value("result"), ", ", Value("barrier"),
        ", ", Value("pred"), ATTRS, " : ", AllTypes("desc", "x_offsets", "y_offset", "barrier", "result", "pred"),
    ),
    ttng.AsyncTMAScatterOp: form(
        Value("desc"), "[", Value("x_offsets"), ", ", Value("y_offset"), "] ", Value("src"), ATTRS, " : ",
        AllTypes("desc", "x_offsets", "y_offset", "src"),
    ),
    ttng.AsyncTMAStoreWaitOp: form(ATTRS),
    ttng.TensormapCreateOp: form(
        Value("desc_ptr"), ", ", Value("global_address"), ", [", Values("box_dim"), "], [", Values("global_dim"),
        "], [", Values("global_stride"), "], [", Values("element_stride"), "]", ATTRS, " : ",
        Signature(["desc_ptr", "global_address", "box_dim", "global_dim", "global_stride", "element_stride"], []),
    ),
    ttng.TensormapFenceproxyAcquireOp: form(Value("desc_ptr"), ATTRS, " : ", Type("desc_ptr")),
    ttng.ReinterpretTensorDescOp: form(
        Value("rawDesc"), ATTRS, " : ", Type("rawDesc"), " to ", Type("result"),
    ),
}
# fmt: on

for _op, _text in _FORMS.items():
    register(_op, _text)
