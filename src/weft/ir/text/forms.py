"""How each operation is written: tables for all but the few that hold regions or branch (see `special`).

Three families cover most of them: `SAME` (`op %x, %y : T`), `CASTS` (`op %x : T to U`) and the forms listed piece by
piece in `FORMS`. To add an operation, add its class to a dialect here, or `register` it, and give it a line below; an
operation without a line is written in MLIR's generic form.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, cf, math, scf, ub
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation

from weft.ops.table import ROWS

from .. import debugging, extra, tt
from ..attrs import bool_attr, i32_array, i32_attr
from ..elementwise import CLASSES
from ..types import element_of, i1, i32, i64, like, ptr_of
from .elements import (
    Attributes,
    Choice,
    Flag,
    Form,
    Hints,
    Maybe,
    Named,
    Parts,
    Piece,
    Rule,
    Signature,
    Text,
    Type,
    Types,
    Value,
    Values,
    words,
)

OPERATIONS: dict[str, type[Operation]] = {
    op.name: op
    for op in (
        ModuleOp,
        *arith.Arith.operations,
        *math.Math.operations,
        *scf.Scf.operations,
        *cf.Cf.operations,
        *ub.UB.operations,
        *CLASSES.values(),
        *(op for op in vars(tt).values() if isinstance(op, type) and issubclass(op, Operation)),
        *(getattr(extra, name) for name in extra.__all__),
        debugging.CheckOp,
    )
}
"""Every operation that may be read, by name."""

_PROPERTIES: dict[type[Operation], frozenset[str]] = {}


def property_names(op: type[Operation]) -> frozenset[str]:
    """The names that belong to the operation itself, not to whoever attached an attribute to it."""
    names = _PROPERTIES.get(op)
    if names is None:
        definition = op.get_irdl_definition()  # type: ignore[attr-defined]
        names = frozenset(definition.properties) | {"operandSegmentSizes", "resultSegmentSizes", "isExact"}
        _PROPERTIES[op] = names
    return names


# -- how types follow from each other ------------------------------------------------------------------------------


def _pointee(type: Attribute) -> Attribute:
    element = element_of(type)
    return like(type, element.pointee) if isinstance(element, tt.PtrType) else type


def _as(group: str) -> Rule:
    """The same type as another group's."""
    return lambda parts: (parts.type(group),)


def _loaded(group: str) -> Rule:
    """What a load through the pointers of another group yields."""
    return lambda parts: (_pointee(parts.type(group)),)


def _mask(group: str) -> Rule:
    """A truth value for each pointer of another group."""
    return lambda parts: (like(_pointee(parts.type(group)), i1),)


def _all(type: Attribute, group: str) -> Rule:
    """One type for every operand of a group."""
    return lambda parts: (type,) * len(parts.operands.get(group, ()))


def _base(parts: Parts) -> Sequence[Attribute]:
    block = parts.type("result")
    if isinstance(block, tt.PtrType) and isinstance(block.pointee, TensorType):
        return (ptr_of(block.pointee.element_type, block.address_space.data),)
    return (block,)


# -- the tables ----------------------------------------------------------------------------------------------------


def _form(*pieces: Piece | str, hidden: str = "", defaults: dict[str, Attribute] | None = None, **infer: Rule) -> Form:
    return Form(pieces, infer, frozenset(hidden.split()) | {"operandSegmentSizes"}, defaults or {})


ATTRS = Attributes()
_CACHE = Choice("cache", words(tt.CacheModifier), tt.CacheModifier.NONE)
_EVICT = Choice("evict", words(tt.EvictionPolicy, NORMAL="evict_normal"), tt.EvictionPolicy.NORMAL)
_HINTS = Hints(cacheModifier=_CACHE, evictionPolicy=_EVICT)
_SEM = Choice("sem", words(tt.MemSemantic, ACQUIRE_RELEASE="acq_rel"))
_SCOPE = Choice("scope", words(tt.MemSyncScope, SYSTEM="sys"))
_AXIS = Choice("axis", words(tt.ProgramDim))
_PRECISION = Choice("inputPrecision", words(tt.InputPrecision), tt.InputPrecision.IEEE)
_LOAD_DEFAULTS: dict[str, Attribute] = {"isVolatile": bool_attr(False), "boundaryCheck": i32_array(())}
_SCALED_DEFAULTS: dict[str, Attribute] = {"lhs_k_pack": bool_attr(True), "rhs_k_pack": bool_attr(True)}

_CAST = (Value("src"), ATTRS, " : ", Type("src"), " -> ", Type("result"))
_PAIR = (Value("lhs"), ", ", Value("rhs"), ATTRS, " : ", Type("lhs"), " -> ", Type("result"))
_RETURN = (Values("result"), ATTRS, " : ", Types("result"))
_PROGRAM = (_AXIS, ATTRS, " : ", Type("result"))
_EXTENDED = (Value("lhs"), ", ", Value("rhs"), ATTRS, " : ", Type("lhs"))

SAME: dict[str, int] = {
    **{name: ROWS[name].arity for name in CLASSES if ROWS[name].kind.how == "same" and name != "tt.clampf"},
    "math.ipowi": 2,
}
"""Operations whose operands and result are all of one type, with how many operands each has."""

CASTS: dict[str, str] = {
    name: " -> " if name.startswith("tt.") else " to "
    for name in CLASSES
    if ROWS[name].arity == 1 and ROWS[name].kind.how != "same" and name != "tt.fp_to_fp"
}
"""Operations with one operand and a result of another type, with the word between the types."""

# fmt: off
FORMS: dict[str, Form] = {
    # functions and programs
    "tt.return": _form(ATTRS, Maybe(" ", Values("srcs"), " : ", Types("srcs"))),
    "tt.call": _form(
        Named("callee"), "(", Values("args"), ")", ATTRS, " : ", Signature(["args"], ["result"]), hidden="callee",
    ),
    "tt.get_program_id": _form(*_PROGRAM, hidden="axis"),
    "tt.get_num_programs": _form(*_PROGRAM, hidden="axis"),
    "tt.print": _form(Text("prefix"), ATTRS, Maybe(" : ", Values("args"), " : ", Types("args")), hidden="prefix"),
    "tt.assert": _form(Value("condition"), ", ", Text("message"), ATTRS, " : ", Type("condition"), hidden="message"),
    # element by element
    "tt.addptr": _form(
        Value("ptr"), ", ", Value("offset"), ATTRS, " : ", Type("result"), ", ", Type("offset"), ptr=_as("result"),
    ),
    "tt.fp_to_fp": _form(
        Value("src"), ATTRS, Maybe(", ", "rounding", " = ", Choice("rounding", words(tt.RoundingMode))), " : ",
        Type("src"), " -> ", Type("result"), hidden="rounding",
    ),
    "tt.clampf": _form(
        Value("x"), ", ", Value("min"), ", ", Value("max"), ", ", "propagateNan", " = ",
        Choice("propagateNan", words(tt.PropagateNan)), ATTRS, " : ", Type("result"), hidden="propagateNan",
        x=_as("result"), min=_as("result"), max=_as("result"),
    ),
    "math.fpowi": _form(
        Value("lhs"), ", ", Value("rhs"), ATTRS, " : ", Type("lhs"), ", ", Type("rhs"), result=_as("lhs"),
    ),
    "arith.mulsi_extended": _form(*_EXTENDED, rhs=_as("lhs"), low=_as("lhs"), high=_as("lhs")),
    "arith.mului_extended": _form(*_EXTENDED, rhs=_as("lhs"), low=_as("lhs"), high=_as("lhs")),
    # shapes
    "tt.make_range": _form(ATTRS, " : ", Type("result")),
    "tt.splat": _form(*_CAST),
    "tt.broadcast": _form(*_CAST),
    "tt.expand_dims": _form(*_CAST),
    "tt.trans": _form(*_CAST),
    "tt.unsplat": _form(Value("src"), ATTRS, " : ", Type("src"), result=lambda parts: (element_of(parts.type("src")),)),
    "tt.reshape": _form(
        Value("src"), Flag("allow_reorder", "allow_reorder"), Flag("efficient_layout", "efficient_layout"), ATTRS,
        " : ", Type("src"), " -> ", Type("result"), hidden="allow_reorder efficient_layout",
    ),
    "tt.cat": _form(*_PAIR, rhs=_as("lhs")),
    "tt.join": _form(*_PAIR, rhs=_as("lhs")),
    "tt.split": _form(Value("src"), ATTRS, " : ", Type("src"), " -> ", Type("outLHS"), outRHS=_as("outLHS")),
    # memory
    "tt.load": _form(
        Value("ptr"), Maybe(", ", Value("mask")), Maybe(", ", Value("other")), _HINTS, ATTRS, " : ", Type("ptr"),
        hidden="cache evict", defaults=_LOAD_DEFAULTS, mask=_mask("ptr"), other=_loaded("ptr"), result=_loaded("ptr"),
    ),
    "tt.store": _form(
        Value("ptr"), ", ", Value("value"), Maybe(", ", Value("mask")), _HINTS, ATTRS, " : ", Type("ptr"),
        hidden="cache evict", defaults=_LOAD_DEFAULTS, value=_loaded("ptr"), mask=_mask("ptr"),
    ),
    "tt.atomic_rmw": _form(
        Choice("atomic_rmw_op", words(tt.RMWOp, XCHG="exch")), ", ", _SEM, ", ", _SCOPE, ", ", Value("ptr"), ", ",
        Value("val"), Maybe(", ", Value("mask")), ATTRS, " : ", Signature(["ptr", "val", "mask"], ["result"]),
        hidden="atomic_rmw_op sem scope",
    ),
    "tt.atomic_cas": _form(
        _SEM, ", ", _SCOPE, ", ", Value("ptr"), ", ", Value("cmp"), ", ", Value("val"), ATTRS, " : ",
        Signature(["ptr", "cmp", "val"], ["result"]), hidden="sem scope",
    ),
    "tt.atomic_load": _form(
        _SEM, ", ", _SCOPE, ", ", Value("ptr"), Maybe(", ", Value("mask")), ATTRS, " : ",
        Signature(["ptr", "mask"], ["result"]), hidden="sem scope",
    ),
    "tt.atomic_store": _form(
        _SEM, ", ", _SCOPE, ", ", Value("ptr"), ", ", Value("value"), Maybe(", ", Value("mask")), ATTRS, " : ",
        Type("ptr"), hidden="sem scope", value=_loaded("ptr"), mask=_mask("ptr"),
    ),
    "tt.atomic_poll": _form(
        _SEM, ", ", _SCOPE, ", ", Value("ptr"), ", ", Value("expected"), Maybe(" timeout ", Value("timeout")), ATTRS,
        " : ", Type("ptr"), ", ", Type("expected"), " -> ", Type("result"), hidden="sem scope",
        timeout=lambda parts: (i64,),
    ),
    "tt.make_tensor_ptr": _form(
        Value("base"), ", [", Values("shape"), "], [", Values("strides"), "], [", Values("offsets"), "]", ATTRS,
        " : ", Type("result", "!tt.ptr"), base=_base, shape=_all(i64, "shape"), strides=_all(i64, "strides"),
        offsets=_all(i32, "offsets"),
    ),
    "tt.advance": _form(
        Value("ptr"), ", [", Values("offsets"), "]", ATTRS, " : ", Type("result", "!tt.ptr"), ptr=_as("result"),
        offsets=_all(i32, "offsets"),
    ),
    "tt.make_tensor_descriptor": _form(
        Value("base"), ", [", Values("shape"), "], [", Values("strides"), "]", ATTRS, " : ", Type("base", "!tt.ptr"),
        ", ", Type("result", "!tt.tensordesc"), shape=_all(i32, "shape"), strides=_all(i64, "strides"),
    ),
    "tt.descriptor_load": _form(
        Value("desc"), "[", Values("indices"), "]", _HINTS, ATTRS, " : ", Type("desc"), " -> ",
        Type("result"), hidden="cache evict", indices=_all(i32, "indices"),
    ),
    "tt.descriptor_store": _form(
        Value("desc"), "[", Values("indices"), "], ", Value("src"), ATTRS, " : ", Type("desc"),
        ", ", Type("src"), indices=_all(i32, "indices"),
    ),
    "tt.descriptor_reduce": _form(
        Choice("kind", words(tt.DescriptorReduceKind)), ", ", Value("desc"), "[", Values("indices"), "], ",
        Value("src"), ATTRS, " : ", Type("desc"), ", ", Type("src"), hidden="kind",
        indices=_all(i32, "indices"),
    ),
    "tt.descriptor_gather": _form(
        Value("desc"), "[", Value("x_offsets"), ", ", Value("y_offset"), "]", ATTRS, " : ",
        Signature(["desc", "x_offsets", "y_offset"], ["result"]),
    ),
    "tt.descriptor_scatter": _form(
        Value("desc"), "[", Value("x_offsets"), ", ", Value("y_offset"), "], ", Value("src"), ATTRS, " : ",
        Type("desc"), ", ", Type("x_offsets"), ", ", Type("y_offset"), ", ", Type("src"),
    ),
    # many elements at once
    "tt.dot": _form(
        Value("a"), ", ", Value("b"), ", ", Value("c"), Maybe(", ", "inputPrecision", " = ", _PRECISION), ATTRS,
        " : ", Type("a"), " * ", Type("b"), " -> ", Type("d"), hidden="inputPrecision",
        defaults={"maxNumImpreciseAcc": i32_attr(0)}, c=_as("d"),
    ),
    "tt.dot_scaled": _form(
        Value("a"), Maybe(" scale ", Value("a_scale")), ", ", Value("b"), Maybe(" scale ", Value("b_scale")), ", ",
        Value("c"), " lhs = ", Choice("a_elem_type", words(tt.ScaleDotElemType)), " rhs = ",
        Choice("b_elem_type", words(tt.ScaleDotElemType)), ATTRS, " : ", Type("a"), Maybe(", ", Type("a_scale")),
        " * ", Type("b"), Maybe(", ", Type("b_scale")), " -> ", Type("d"), hidden="a_elem_type b_elem_type",
        defaults=_SCALED_DEFAULTS, c=_as("d"),
    ),
    "tt.reduce.return": _form(*_RETURN),
    "tt.scan.return": _form(*_RETURN),
    "tt.map_elementwise.return": _form(ATTRS, Maybe(" ", Values("result"), " : ", Types("result"))),
    "tt.extern_elementwise": _form(Values("srcs"), ATTRS, " : ", Signature(["srcs"], ["result"])),
    "tt.elementwise_inline_asm": _form(
        Text("asm_string"), ATTRS, Maybe(" ", Values("args"), " : ", Types("args")), " -> ", Types("result"),
        hidden="asm_string",
    ),
    "tt.histogram": _form(
        Value("src"), Maybe(", ", Value("mask")), ATTRS, " : ", Type("src"), " -> ", Type("result"),
        mask=lambda parts: (like(parts.type("src"), i1),),
    ),
    "tt.gather": _form(
        Value("src"), "[", Value("indices"), "]", ATTRS, " : ", Signature(["src", "indices"], ["result"]),
    ),
    # other dialects
    "scf.yield": _form(ATTRS, Maybe(" ", Values("arguments"), " : ", Types("arguments"))),
    "scf.condition": _form(
        "(", Value("condition"), ")", ATTRS, Maybe(" ", Values("args"), " : ", Types("args")),
        condition=lambda parts: (i1,),
    ),
    "cf.assert": _form(Value("arg"), ", ", Text("msg"), ATTRS, hidden="msg", arg=lambda parts: (i1,)),
    "ub.poison": _form(ATTRS, " : ", Type("result"), hidden="value"),
    "ub.unreachable": _form(ATTRS),
    "llvm.intr.assume": _form(Value("cond"), ATTRS, " : ", Type("cond"), defaults={"op_bundle_sizes": i32_array(())}),
    "gpu.barrier": _form(ATTRS),
}
# fmt: on


def register(op: type[Operation], form: Form | None = None) -> None:
    """Make another operation readable; without a form it is written in MLIR's generic form."""
    OPERATIONS[op.name] = op
    if form is not None:
        FORMS[op.name] = form
