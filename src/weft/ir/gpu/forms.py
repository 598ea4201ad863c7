"""How the operations of `ttg` are written; see `weft.ir.text.forms` for what the pieces are."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from ..attrs import bool_attr, i32_array, i32_attr, int_value, ints_of
from ..text import OPERATIONS, register
from ..text.elements import PROPERTIES, Form, Parts, Property, Rule, Writing
from ..text.forms import each_is, is_type, same_as
from ..text.values import ValueReader
from ..types import PtrType, element_of, i1, i32, like
from . import described, rows, ttg
from .memory import async_token

# -- pieces that only these operations have ------------------------------------------------------------------------


class Number(Property):
    """A property that is an integer, without its type."""

    def read(self, reader: ValueReader, parts: Parts) -> None:
        at = reader.at
        value = reader.integer()
        if not -(1 << 31) <= value < 1 << 31:
            reader.fail(f"{value} does not fit in i32", at)
        parts.properties[self.prop] = i32_attr(value)

    def write(self, writing: Writing, op: Operation) -> str:
        return str(int_value(op.properties[self.prop]))


class Numbers(Property):
    """A property that is a list of integers, `[4, 0]`."""

    def read(self, reader: ValueReader, parts: Parts) -> None:
        reader.expect("[")
        parts.properties[self.prop] = i32_array([reader.integer() for _ in reader.items("]")])

    def write(self, writing: Writing, op: Operation) -> str:
        return f"[{', '.join(map(str, ints_of(op.properties[self.prop])))}]"


# -- how types follow from each other ------------------------------------------------------------------------------


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


PROPERTIES.update(
    offsets=Numbers("offsets"),
    **{prop: Number(prop) for prop in ("count", "size", "maxStage", "stage", "priority", "mask")},
)
NOT_VOLATILE = {"isVolatile": bool_attr(False)}

# fmt: off
_FORMS: dict[type[Operation], Form | None] = {
    # ttg
    ttg.ConvertLayoutOp: Form("%src{} : <src> -> <result>"),
    ttg.SetAutoLayoutOp: Form("%src{} : <src> -> <result>"),
    ttg.Fp4ToFpOp: Form("%src{} : <src> -> <result>"),
    ttg.LocalAllocOp: Form("%src...{} : <src -> result>"),
    ttg.LocalDeallocOp: Form("%src{} : <src>"),
    ttg.LocalLoadOp: Form("%src?[ token %token]{} : <src> -> <result>", token=is_type(async_token)),
    ttg.LocalStoreOp: Form("%src, %dst{} : <src> -> <dst>"),
    ttg.LocalGatherOp: Form("%src[%indices]{} : <src>, <indices> -> <result>"),
    ttg.LocalScatterOp: Form("%dst[%indices], %values{} : <dst>, <indices>, <values>"),
    ttg.LocalAtomicScatterRMWOp: Form(
        "@atomic_rmw_op, %dst[%indices], %values?[, %mask]{} : <dst, values, indices, mask -> result>"
    ),
    ttg.LocalBarrierOp: Form("{}"),
    ttg.GlobalScratchAllocOp: Form("{} : <result>"),
    ttg.MemDescIndexOp: Form("%src[%index]{} : <src> -> <result>", index=is_type(i32)),
    ttg.MemDescSubsliceOp: Form("%src@offsets{} : <src> -> <result>"),
    ttg.MemDescTransOp: Form("%src{} : <src> -> <result>"),
    ttg.MemDescReshapeOp: Form("%src{} : <src> -> <result>"),
    ttg.MemDescReinterpretOp: Form("%src{} : <src> -> <result>"),
    ttg.AsyncCopyGlobalToLocalOp: Form(
        "%src, %result?[ mask %mask]?[ other %other]@hints{} : <src> -> <result: !ttg.memdesc>",
        defaults={**NOT_VOLATILE, "contiguity": i32_attr(1)}, mask=_truth("src"), other=_loaded,
        token=is_type(async_token),
    ),
    ttg.AsyncCommitGroupOp: Form(
        "?[ tokens %inputTokens...]{}",
        inputTokens=each_is(async_token, "inputTokens"), asyncToken=is_type(async_token),
    ),
    ttg.AsyncWaitOp: Form(
        "%asyncToken...{}",
        asyncToken=each_is(async_token, "asyncToken"), retToken=is_type(async_token),
    ),
    described.DescriptorPartsOp: Form("%descriptor{} : <descriptor> -> (<parts...>)"),
    described.DescriptorBlocksOp: Form("%descriptor{} : <descriptor> -> <result>"),
    described.DescriptorMadeOp: None,
    rows.LoadRowOp: Form(
        "%row, %shift, %end, %other@hints{} : <row> -> <result>",
        shift=is_type(i32), end=is_type(i32), other=_pointee,
    ),
    rows.StoreRowOp: Form("%row, %shift, %end, %value@hints{} : <row>, <value>", shift=is_type(i32), end=is_type(i32)),
    ttg.WarpYieldOp: Form("{}?[ %values... : <values...>]"),
    ttg.WarpReturnOp: Form("{}"),
    ttg.WarpSpecializePartitionsOp: None,
    ttg.MaskOp: None,
    ttg.MaskReturnOp: None,
    ttg.PredicateStageOp: Form(
        "%iv, %ub, %step maxStage @maxStage stage @stage{} : <iv> -> <result>",
        ub=same_as("iv"), step=same_as("iv"),
    ),
}
# fmt: on

for _op, _text in _FORMS.items():
    register(_op, _text)
OPERATIONS[ttg.WarpSpecializeOp.name] = ttg.WarpSpecializeOp
