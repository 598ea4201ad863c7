"""How each operation is written: tables for all but the few that hold regions or branch (see `special`).

Three families cover most of them: `SAME` (`op %x, %y : T`), `CASTS` (`op %x : T to U`) and the forms in `FORMS` (see
`elements`). To add an operation, add its class to a dialect here, or `register` it, and give it a line below; an
operation without a line is written in MLIR's generic form.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects import arith, cf, math, scf, ub
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation

from weft.ops.table import ROWS

from .. import debugging, extra, tt
from ..attrs import bool_attr, i32_array, i32_attr
from ..elementwise import CLASSES
from ..types import element_of, i1, i32, i64, like, ptr_of
from .elements import PROPERTIES, Choice, Flag, Form, Hints, Named, Parts, Rule, Text, words

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


@cache
def property_names(op: type[Operation]) -> frozenset[str]:
    """The names that belong to the operation itself, not to whoever attached an attribute to it."""
    definition = op.get_irdl_definition()  # type: ignore[attr-defined]
    return frozenset(definition.properties) | {"operandSegmentSizes", "resultSegmentSizes", "isExact"}


# -- how types follow from each other ------------------------------------------------------------------------------


def _pointee(type: Attribute) -> Attribute:
    element = element_of(type)
    return like(type, element.pointee) if isinstance(element, tt.PtrType) else type


def same_as(group: str) -> Rule:
    """The types of another group."""
    return lambda parts: tuple(parts.types[group])


def is_type(type: Attribute) -> Rule:
    """One type, for the operand or result of the group."""
    return lambda parts: (type,)


def _loaded(group: str) -> Rule:
    """What a load through the pointers of another group yields."""
    return lambda parts: (_pointee(parts.type(group)),)


def _mask(group: str) -> Rule:
    """A truth value for each pointer of another group."""
    return lambda parts: (like(_pointee(parts.type(group)), i1),)


def each_is(type: Attribute, group: str) -> Rule:
    """One type for every operand of a group."""
    return lambda parts: (type,) * len(parts.operands.get(group, ()))


def _base(parts: Parts) -> Sequence[Attribute]:
    block = parts.type("result")
    if isinstance(block, tt.PtrType) and isinstance(block.pointee, TensorType):
        return (ptr_of(block.pointee.element_type, block.address_space.data),)
    return (block,)


# -- the tables ----------------------------------------------------------------------------------------------------


PROPERTIES.update(
    allow_reorder=Flag("allow_reorder", "allow_reorder"),
    efficient_layout=Flag("efficient_layout", "efficient_layout"),
    callee=Named("callee"),
    atomic_rmw_op=Choice("atomic_rmw_op", words(tt.RMWOp, XCHG="exch")),
    sem=Choice("sem", words(tt.MemSemantic, ACQUIRE_RELEASE="acq_rel")),
    scope=Choice("scope", words(tt.MemSyncScope, SYSTEM="sys")),
    axis=Choice("axis", words(tt.ProgramDim)),
    kind=Choice("kind", words(tt.DescriptorReduceKind)),
    rounding=Choice("rounding", words(tt.RoundingMode)),
    propagateNan=Choice("propagateNan", words(tt.PropagateNan)),
    inputPrecision=Choice("inputPrecision", words(tt.InputPrecision), tt.InputPrecision.IEEE),
    hints=Hints(
        cacheModifier=Choice("cache", words(tt.CacheModifier), tt.CacheModifier.NONE),
        evictionPolicy=Choice("evict", words(tt.EvictionPolicy, NORMAL="evict_normal"), tt.EvictionPolicy.NORMAL),
    ),
    **{prop: Choice(prop, words(tt.ScaleDotElemType)) for prop in ("a_elem_type", "b_elem_type")},
    **{prop: Text(prop) for prop in ("prefix", "message", "asm_string", "msg")},
)
_LOAD_DEFAULTS: dict[str, Attribute] = {"isVolatile": bool_attr(False), "boundaryCheck": i32_array(())}
_SCALED_DEFAULTS: dict[str, Attribute] = {"lhs_k_pack": bool_attr(True), "rhs_k_pack": bool_attr(True)}

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
    "tt.return": Form("{}?[ %srcs... : <srcs...>]"),
    "tt.call": Form("@callee(%args...){} : <args -> result>"),
    "tt.get_program_id": Form("@axis{} : <result>"),
    "tt.get_num_programs": Form("@axis{} : <result>"),
    "tt.print": Form("@prefix{}?[ : %args... : <args...>]"),
    "tt.assert": Form("%condition, @message{} : <condition>"),
    # element by element
    "tt.addptr": Form("%ptr, %offset{} : <result>, <offset>", ptr=same_as("result")),
    "tt.fp_to_fp": Form("%src{}?[, rounding = @rounding] : <src> -> <result>"),
    "tt.clampf": Form(
        "%x, %min, %max, propagateNan = @propagateNan{} : <result>",
        x=same_as("result"), min=same_as("result"), max=same_as("result"),
    ),
    "math.fpowi": Form("%lhs, %rhs{} : <lhs>, <rhs>", result=same_as("lhs")),
    "arith.mulsi_extended": Form("%lhs, %rhs{} : <lhs>", rhs=same_as("lhs"), low=same_as("lhs"), high=same_as("lhs")),
    "arith.mului_extended": Form("%lhs, %rhs{} : <lhs>", rhs=same_as("lhs"), low=same_as("lhs"), high=same_as("lhs")),
    # shapes
    "tt.make_range": Form("{} : <result>"),
    "tt.splat": Form("%src{} : <src> -> <result>"),
    "tt.broadcast": Form("%src{} : <src> -> <result>"),
    "tt.expand_dims": Form("%src{} : <src> -> <result>"),
    "tt.trans": Form("%src{} : <src> -> <result>"),
    "tt.unsplat": Form("%src{} : <src>", result=lambda parts: (element_of(parts.type("src")),)),
    "tt.reshape": Form("%src@allow_reorder@efficient_layout{} : <src> -> <result>"),
    "tt.cat": Form("%lhs, %rhs{} : <lhs> -> <result>", rhs=same_as("lhs")),
    "tt.join": Form("%lhs, %rhs{} : <lhs> -> <result>", rhs=same_as("lhs")),
    "tt.split": Form("%src{} : <src> -> <outLHS>", outRHS=same_as("outLHS")),
    # memory
    "tt.load": Form(
        "%ptr?[, %mask]?[, %other]@hints{} : <ptr>",
        defaults=_LOAD_DEFAULTS, mask=_mask("ptr"), other=_loaded("ptr"), result=_loaded("ptr"),
    ),
    "tt.store": Form(
        "%ptr, %value?[, %mask]@hints{} : <ptr>",
        defaults=_LOAD_DEFAULTS, value=_loaded("ptr"), mask=_mask("ptr"),
    ),
    "tt.atomic_rmw": Form("@atomic_rmw_op, @sem, @scope, %ptr, %val?[, %mask]{} : <ptr, val, mask -> result>"),
    "tt.atomic_cas": Form("@sem, @scope, %ptr, %cmp, %val{} : <ptr, cmp, val -> result>"),
    "tt.atomic_load": Form("@sem, @scope, %ptr?[, %mask]{} : <ptr, mask -> result>"),
    "tt.atomic_store": Form("@sem, @scope, %ptr, %value?[, %mask]{} : <ptr>", value=_loaded("ptr"), mask=_mask("ptr")),
    "tt.atomic_poll": Form(
        "@sem, @scope, %ptr, %expected?[ timeout %timeout]{} : <ptr>, <expected> -> <result>",
        timeout=is_type(i64),
    ),
    "tt.make_tensor_ptr": Form(
        "%base, [%shape...], [%strides...], [%offsets...]{} : <result: !tt.ptr>",
        base=_base, shape=each_is(i64, "shape"), strides=each_is(i64, "strides"), offsets=each_is(i32, "offsets"),
    ),
    "tt.advance": Form(
        "%ptr, [%offsets...]{} : <result: !tt.ptr>", ptr=same_as("result"), offsets=each_is(i32, "offsets"),
    ),
    "tt.make_tensor_descriptor": Form(
        "%base, [%shape...], [%strides...]{} : <base: !tt.ptr>, <result: !tt.tensordesc>",
        shape=each_is(i32, "shape"), strides=each_is(i64, "strides"),
    ),
    "tt.descriptor_load": Form("%desc[%indices...]@hints{} : <desc> -> <result>", indices=each_is(i32, "indices")),
    "tt.descriptor_store": Form("%desc[%indices...], %src{} : <desc>, <src>", indices=each_is(i32, "indices")),
    "tt.descriptor_reduce": Form("@kind, %desc[%indices...], %src{} : <desc>, <src>", indices=each_is(i32, "indices")),
    "tt.descriptor_gather": Form("%desc[%x_offsets, %y_offset]{} : <desc, x_offsets, y_offset -> result>"),
    "tt.descriptor_scatter": Form("%desc[%x_offsets, %y_offset], %src{} : <desc>, <x_offsets>, <y_offset>, <src>"),
    # many elements at once
    "tt.dot": Form(
        "%a, %b, %c?[, inputPrecision = @inputPrecision]{} : <a> * <b> -> <d>",
        defaults={"maxNumImpreciseAcc": i32_attr(0)}, c=same_as("d"),
    ),
    "tt.dot_scaled": Form(
        "%a?[ scale %a_scale], %b?[ scale %b_scale], %c lhs = @a_elem_type rhs = @b_elem_type{} : <a>?[, "
        "<a_scale>] * <b>?[, <b_scale>] -> <d>",
        defaults=_SCALED_DEFAULTS, c=same_as("d"),
    ),
    "tt.reduce.return": Form("%result...{} : <result...>"),
    "tt.scan.return": Form("%result...{} : <result...>"),
    "tt.map_elementwise.return": Form("{}?[ %result... : <result...>]"),
    "tt.extern_elementwise": Form("%srcs...{} : <srcs -> result>"),
    "tt.elementwise_inline_asm": Form("@asm_string{}?[ %args... : <args...>] -> <result...>"),
    "tt.histogram": Form("%src?[, %mask]{} : <src> -> <result>", mask=lambda parts: (like(parts.type("src"), i1),)),
    "tt.gather": Form("%src[%indices]{} : <src, indices -> result>"),
    # other dialects
    "scf.yield": Form("{}?[ %arguments... : <arguments...>]"),
    "scf.condition": Form("(%condition){}?[ %args... : <args...>]", condition=is_type(i1)),
    "cf.assert": Form("%arg, @msg{}", arg=is_type(i1)),
    "ub.poison": Form("{} : <result>", hidden="value"),
    "ub.unreachable": Form("{}"),
    "llvm.intr.assume": Form("%cond{} : <cond>", defaults={"op_bundle_sizes": i32_array(())}),
    "gpu.barrier": Form("{}"),
}
# fmt: on


def register(op: type[Operation], form: Form | None = None) -> None:
    """Make another operation readable; without a form it is written in MLIR's generic form."""
    OPERATIONS[op.name] = op
    if form is not None:
        FORMS[op.name] = form
