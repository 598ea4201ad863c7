"""How the operations of `ttg` and `ttng` are written; see `weft.ir.text.forms` for what the pieces are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from .. import tt
from ..attrs import bool_attr, i32_array, i32_attr, int_value, ints_of
from ..text import OPERATIONS, register
from ..text.elements import (
    Attributes,
    Choice,
    Form,
    Hints,
    Maybe,
    Parts,
    Piece,
    Rule,
    Signature,
    Type,
    Types,
    Value,
    Values,
    Writing,
    words,
)
from ..text.values import ValueReader
from ..types import PtrType, element_of, i1, i16, i32, like
from . import rows, ttg, ttng
from .memory import async_token

__all__ = ["AllTypes", "Number", "Numbers", "form"]


# -- pieces that only these operations have ------------------------------------------------------------------------


class Number:
    """A property that is an integer, without its type."""

    def __init__(self, prop: str):
        self.prop = prop

    def read(self, reader: ValueReader, parts: Parts) -> None:
        at = reader.at
        value = reader.integer()
        if not -(1 << 31) <= value < 1 << 31:
            reader.fail(f"{value} does not fit in i32", at)
        parts.properties[self.prop] = i32_attr(value)

    def write(self, writing: Writing, op: Operation) -> str:
        return str(int_value(op.properties[self.prop]))

    def present(self, op: Operation) -> bool:
        return self.prop in op.properties


class Numbers:
    """A property that is a list of integers, `[4, 0]`."""

    def __init__(self, prop: str):
        self.prop = prop

    def read(self, reader: ValueReader, parts: Parts) -> None:
        numbers: list[int] = []
        reader.expect("[")
        while reader.texts[reader.at] != "]":
            numbers.append(reader.integer())
            if not reader.accept(","):
                break
        reader.expect("]")
        parts.properties[self.prop] = i32_array(numbers)

    def write(self, writing: Writing, op: Operation) -> str:
        return f"[{', '.join(map(str, ints_of(op.properties[self.prop])))}]"

    def present(self, op: Operation) -> bool:
        return self.prop in op.properties


class AllTypes:
    """The types of all operands in the order of the operation, `T, T, T`."""

    def __init__(self, *groups: str):
        self.groups = groups

    def read(self, reader: ValueReader, parts: Parts) -> None:
        at = reader.at
        types = reader.type_list()
        if len(types) != len(self.groups):
            reader.fail(f"{len(self.groups)} operands, but {len(types)} types for them", at)
        for group, type in zip(self.groups, types, strict=True):
            parts.types[group] = (type,)

    def write(self, writing: Writing, op: Operation) -> str:
        return ", ".join(writing.type(v.type) for v in op.operands)

    def present(self, op: Operation) -> bool:
        return True


# -- how types follow from each other ------------------------------------------------------------------------------


def _is(type: Attribute) -> Rule:
    """One type, for every operand or for the result of the group."""
    return lambda parts: (type,)


def _each(type: Attribute, group: str) -> Rule:
    return lambda parts: (type,) * len(parts.operands.get(group, ()))


def _as(group: str) -> Rule:
    return lambda parts: tuple(parts.types[group])


def _truth(group: str) -> Rule:
    return lambda parts: (like(parts.type(group), i1),)


def _loaded(parts: Parts) -> Sequence[Attribute]:
    type = parts.type("src")
    element = element_of(type)
    if isinstance(type, TensorType) and isinstance(element, PtrType):
        return (like(type, element.pointee),)
    return (type,)


def _pointee(parts: Parts) -> Sequence[Attribute]:
    element = element_of(parts.type("row"))
    return (element.pointee if isinstance(element, PtrType) else element,)


# -- the table -----------------------------------------------------------------------------------------------------


def form(
    *pieces: Piece | str, hidden: str = "", defaults: Mapping[str, Attribute] | None = None, **infer: Rule
) -> Form:
    """The text of an operation: its pieces, what they show of the properties, and the rules for types left out."""
    return Form(pieces, infer, frozenset(hidden.split()) | {"operandSegmentSizes"}, defaults or {})


ATTRS = Attributes()
_MEMDESC = "!ttg.memdesc"
_CACHE = Choice("cache", words(tt.CacheModifier), tt.CacheModifier.NONE)
_EVICT = Choice("evict", words(tt.EvictionPolicy, NORMAL="evict_normal"), tt.EvictionPolicy.NORMAL)
_HINTS = Hints(cacheModifier=_CACHE, evictionPolicy=_EVICT)
_FALSE = {"isVolatile": bool_attr(False)}
_CAST = (Value("src"), ATTRS, " : ", Type("src"), " -> ", Type("result"))

# fmt: off
_FORMS: dict[type[Operation], Form | None] = {
    # ttg
    ttg.ConvertLayoutOp: form(*_CAST),
    ttg.SetAutoLayoutOp: form(*_CAST),
    ttg.Fp4ToFpOp: form(*_CAST),
    ttg.LocalAllocOp: form(Values("src"), ATTRS, " : ", Signature(["src"], ["result"])),
    ttg.LocalDeallocOp: form(Value("src"), ATTRS, " : ", Type("src")),
    ttg.LocalLoadOp: form(
        Value("src"), Maybe(" token ", Value("token")), ATTRS, " : ", Type("src"), " -> ", Type("result"),
        token=_is(async_token),
    ),
    ttg.LocalStoreOp: form(Value("src"), ", ", Value("dst"), ATTRS, " : ", Type("src"), " -> ", Type("dst")),
    ttg.LocalGatherOp: form(
        Value("src"), "[", Value("indices"), "]", ATTRS, " : ", Type("src"), ", ", Type("indices"), " -> ",
        Type("result"),
    ),
    ttg.LocalScatterOp: form(
        Value("dst"), "[", Value("indices"), "], ", Value("values"), ATTRS, " : ", Type("dst"), ", ", Type("indices"),
        ", ", Type("values"),
    ),
    ttg.LocalAtomicScatterRMWOp: form(
        Choice("atomic_rmw_op", words(tt.RMWOp, XCHG="exch")), ", ", Value("dst"), "[", Value("indices"), "], ",
        Value("values"), Maybe(", ", Value("mask")), ATTRS, " : ",
        Signature(["dst", "values", "indices", "mask"], ["result"]), hidden="atomic_rmw_op",
    ),
    ttg.LocalBarrierOp: form(ATTRS),
    ttg.GlobalScratchAllocOp: form(ATTRS, " : ", Type("result")),
    ttg.MemDescIndexOp: form(
        Value("src"), "[", Value("index"), "]", ATTRS, " : ", Type("src"), " -> ", Type("result"), index=_is(i32),
    ),
    ttg.MemDescSubsliceOp: form(
        Value("src"), Numbers("offsets"), ATTRS, " : ", Type("src"), " -> ", Type("result"), hidden="offsets",
    ),
    ttg.MemDescTransOp: form(*_CAST),
    ttg.MemDescReshapeOp: form(*_CAST),
    ttg.MemDescReinterpretOp: form(*_CAST),
    ttg.AsyncCopyGlobalToLocalOp: form(
        Value("src"), ", ", Value("result"), Maybe(" mask ", Value("mask")), Maybe(" other ", Value("other")), _HINTS,
        ATTRS, " : ", Type("src"), " -> ", Type("result", short=_MEMDESC), hidden="cache evict",
        defaults={**_FALSE, "contiguity": i32_attr(1)}, mask=_truth("src"), other=_loaded, token=_is(async_token),
    ),
    ttg.AsyncCommitGroupOp: form(
        Maybe(" tokens ", Values("inputTokens")), ATTRS, inputTokens=_each(async_token, "inputTokens"),
        asyncToken=_is(async_token),
    ),
    ttg.AsyncWaitOp: form(
        Values("asyncToken"), ATTRS, asyncToken=_each(async_token, "asyncToken"), retToken=_is(async_token),
    ),
    rows.LoadRowOp: form(
        Value("row"), ", ", Value("shift"), ", ", Value("end"), ", ", Value("other"), _HINTS, ATTRS, " : ",
        Type("row"), " -> ", Type("result"), hidden="cache evict", shift=_is(i32), end=_is(i32), other=_pointee,
    ),
    rows.StoreRowOp: form(
        Value("row"), ", ", Value("shift"), ", ", Value("end"), ", ", Value("value"), _HINTS, ATTRS, " : ",
        Type("row"), ", ", Type("value"), hidden="cache evict", shift=_is(i32), end=_is(i32),
    ),
    ttg.WarpYieldOp: form(ATTRS, Maybe(" ", Values("values"), " : ", Types("values"))),
    ttg.WarpReturnOp: form(ATTRS),
    ttg.WarpSpecializePartitionsOp: None,
    ttg.MaskOp: None,
    ttg.MaskReturnOp: None,
    ttg.PredicateStageOp: form(
        Value("iv"), ", ", Value("ub"), ", ", Value("step"), " maxStage ", Number("maxStage"), " stage ",
        Number("stage"), ATTRS, " : ", Type("iv"), " -> ", Type("result"), hidden="maxStage stage", ub=_as("iv"),
        step=_as("iv"),
    ),
    # ttng: products, fences
    ttng.WarpGroupDotOp: form(
        Value("a"), ", ", Value("b"), ", ", Value("c"), Maybe(", ", Value("useC")), ATTRS, " : ", Type("a"), " * ",
        Type("b"), " -> ", Type("d"), defaults={
            "inputPrecision": i32_attr(tt.InputPrecision.IEEE), "maxNumImpreciseAcc": i32_attr(0),
            "isAsync": bool_attr(False),
        }, c=_as("d"), useC=_is(i1),
    ),
    ttng.WarpGroupDotWaitOp: form(
        Values("inputs"), ATTRS, " : ", Types("inputs"), outputs=_as("inputs"),
    ),
    ttng.FenceAsyncSharedOp: form(ATTRS),
    ttng.ClusterArriveOp: form(ATTRS),
    ttng.ClusterWaitOp: form(ATTRS),
    # ttng: mbarriers
    ttng.InitBarrierOp: form(Value("alloc"), ", ", Number("count"), ATTRS, " : ", Type("alloc"), hidden="count"),
    ttng.InvalBarrierOp: form(Value("alloc"), ATTRS, " : ", Type("alloc")),
    ttng.BarrierExpectOp: form(
        Value("alloc"), ", ", Number("size"), ATTRS, ", ", Value("pred"), " : ", Type("alloc"), hidden="size",
        pred=_is(i1),
    ),
    ttng.WaitBarrierOp: form(
        Value("alloc"), ", ", Value("phase"), Maybe(", ", Value("pred")), Maybe(" deps ", Values("deps")), ATTRS,
        " : ", Type("alloc"), Maybe(", ", Types("deps")), phase=_is(i32), pred=_is(i1),
    ),
    ttng.ArriveBarrierOp: form(
        Value("alloc"), ", ", Number("count"), Maybe(", ", Value("pred")), ATTRS, " : ", Type("alloc"), hidden="count",
        pred=_is(i1),
    ),
    ttng.AsyncCopyMbarrierArriveOp: form(Value("barrier"), ATTRS, " : ", Type("barrier")),
    # ttng: tensors
    ttng.AsyncSharedStoreOp: form(
        Value("src"), ", ", Value("dst"), ", ", Value("mbarrier"), ATTRS, " : ", Type("src"), " -> ", Type("dst"),
        ", ", Type("mbarrier"),
    ),
    ttng.AsyncTMACopyGlobalToLocalOp: form(
        Value("desc"), "[", Values("coord"), "] ", Value("result"), ", ", Value("barrier"), ", ", Value("pred"), _HINTS,
        ATTRS, " : ", Type("desc"), ", ", Type("barrier"), " -> ", Type("result"), hidden="cache evict",
        defaults=_FALSE, coord=_each(i32, "coord"), pred=_is(i1),
    ),
    ttng.AsyncTMACopyImagesToLocalOp: form(
        Value("desc"), "[", Values("coord"), "] [", Values("offsets"), "] ", Value("result"), ", ", Value("barrier"),
        ", ", Value("pred"), ATTRS, " : ", Type("desc"), ", ", Type("barrier"), " -> ", Type("result"),
        coord=_each(i32, "coord"), offsets=_each(i16, "offsets"), pred=_is(i1),
    ),
    ttng.AsyncTMACopyLocalToGlobalOp: form(
        Value("desc"), "[", Values("coord"), "] ", Value("src"), ATTRS, " : ", Type("desc"), ", ", Type("src"),
        coord=_each(i32, "coord"),
    ),
    ttng.AsyncTMAReduceOp: form(
        Choice("kind", words(tt.DescriptorReduceKind)), ", ", Value("desc"), "[", Values("coord"), "] ", Value("src"),
        ATTRS, " : ", Type("desc"), ", ", Type("src"), hidden="kind", coord=_each(i32, "coord"),
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
OPERATIONS[ttg.WarpSpecializeOp.name] = ttg.WarpSpecializeOp
