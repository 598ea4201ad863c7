"""How the operations of `ttg` are written; see `weft.ir.text.forms` for what the pieces are."""

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
from ..types import PtrType, element_of, i1, i32, like
from . import rows, ttg
from .memory import async_token

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


def is_type(type: Attribute) -> Rule:
    """One type, for every operand or for the result of the group."""
    return lambda parts: (type,)


def each_is(type: Attribute, group: str) -> Rule:
    """The same for each operand of a group of several."""
    return lambda parts: (type,) * len(parts.operands.get(group, ()))


def as_group(group: str) -> Rule:
    """The types of another group."""
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
HINTS = Hints(cacheModifier=_CACHE, evictionPolicy=_EVICT)
NOT_VOLATILE = {"isVolatile": bool_attr(False)}
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
        token=is_type(async_token),
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
        Value("src"), "[", Value("index"), "]", ATTRS, " : ", Type("src"), " -> ", Type("result"), index=is_type(i32),
    ),
    ttg.MemDescSubsliceOp: form(
        Value("src"), Numbers("offsets"), ATTRS, " : ", Type("src"), " -> ", Type("result"), hidden="offsets",
    ),
    ttg.MemDescTransOp: form(*_CAST),
    ttg.MemDescReshapeOp: form(*_CAST),
    ttg.MemDescReinterpretOp: form(*_CAST),
    ttg.AsyncCopyGlobalToLocalOp: form(
        Value("src"), ", ", Value("result"), Maybe(" mask ", Value("mask")), Maybe(" other ", Value("other")), HINTS,
        ATTRS, " : ", Type("src"), " -> ", Type("result", short=_MEMDESC), hidden="cache evict",
        defaults={**NOT_VOLATILE, "contiguity": i32_attr(1)}, mask=_truth("src"), other=_loaded,
        token=is_type(async_token),
    ),
    ttg.AsyncCommitGroupOp: form(
        Maybe(" tokens ", Values("inputTokens")), ATTRS, inputTokens=each_is(async_token, "inputTokens"),
        asyncToken=is_type(async_token),
    ),
    ttg.AsyncWaitOp: form(
        Values("asyncToken"), ATTRS, asyncToken=each_is(async_token, "asyncToken"), retToken=is_type(async_token),
    ),
    rows.LoadRowOp: form(
        Value("row"), ", ", Value("shift"), ", ", Value("end"), ", ", Value("other"), HINTS, ATTRS, " : ",
        Type("row"), " -> ", Type("result"), hidden="cache evict", shift=is_type(i32), end=is_type(i32), other=_pointee,
    ),
    rows.StoreRowOp: form(
        Value("row"), ", ", Value("shift"), ", ", Value("end"), ", ", Value("value"), HINTS, ATTRS, " : ",
        Type("row"), ", ", Type("value"), hidden="cache evict", shift=is_type(i32), end=is_type(i32),
    ),
    ttg.WarpYieldOp: form(ATTRS, Maybe(" ", Values("values"), " : ", Types("values"))),
    ttg.WarpReturnOp: form(ATTRS),
    ttg.WarpSpecializePartitionsOp: None,
    ttg.MaskOp: None,
    ttg.MaskReturnOp: None,
    ttg.PredicateStageOp: form(
        Value("iv"), ", ", Value("ub"), ", ", Value("step"), " maxStage ", Number("maxStage"), " stage ",
        Number("stage"), ATTRS, " : ", Type("iv"), " -> ", Type("result"), hidden="maxStage stage", ub=as_group("iv"),
        step=as_group("iv"),
    ),
}
# fmt: on

for _op, _text in _FORMS.items():
    register(_op, _text)
OPERATIONS[ttg.WarpSpecializeOp.name] = ttg.WarpSpecializeOp
