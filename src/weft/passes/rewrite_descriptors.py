"""Replace tensor descriptors by pointers to their elements, with masks.

    %d = tt.make_tensor_descriptor %base, [%m, %n], [%s, %c1] : <f32>, <tensor<8x16xf32>>
    %v = tt.descriptor_load %d[%i, %j] : !tt.tensordesc<tensor<8x16xf32>> -> tensor<8x16xf32>
becomes
    %rows = ... %i + 0, 1, ..., 7 ...          %cols = ... %j + 0, 1, ..., 15 ...
    %places = %base + %rows * %s + %cols * 1
    %v = tt.load %places, (0 <= %rows < %m) & (0 <= %cols < %n), 0.0 : tensor<8x16x!tt.ptr<f32>>

A descriptor that is an argument of the kernel becomes 2 + 2 * rank arguments: the base, the padding (0 for zero, 1 for
NaN), the shape and the strides, all but the base in 64 bits; the shape and strides that Triton passes after it (see
`weft.ir.flattened_descriptor`) are then taken from these. Loops and branches carry the parts that change.

A block of more than two dimensions is accessed without those of size 1, as long as two are left, and is reshaped:

    %v = tt.descriptor_load %d[%z, %i, %j] : ... -> tensor<1x8x16xf32>
becomes
    %t = tt.load ... %base + %z * %r + %rows * %s + %cols ... : tensor<8x16x!tt.ptr<f32>>
    %v = tt.reshape %t : tensor<1x8x16xf32>

so that the matrix, to which kernels reshape such a block, is what is loaded.

What every descriptor that is an argument fulfils is said of its parts: the base and all strides but the last are
multiples of 16 bytes, the last stride is 1. `tt.row_divisibility` of the argument says how many bytes divide the last
extent, and `tt.zero_padding` that its padding is zero.

If the length of rows is a number from memory, a row may end between elements that one instruction would store. So there
are two versions of the store of a block: without a mask for the ends of rows if the whole block lies within them, and
with that mask otherwise.

For machines whose copy engine takes descriptors, the rewritten accesses are marked: the base of an argument has the
attribute `tt.descriptor`, its number among the descriptors of the kernel, and a load whose mask only says where its
descriptor ends has `tt.described`: whether its padding is known to be zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, Signedness, TensorType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from weft import ir
from weft.base import Span, Unsupported
from weft.base.remarks import NO_REMARKS, InstructionDeclined, RemarkCollector

from .blocks_of_memory import indices_of, inside, places, widen
from .drop_unchanged import drop_unchanged
from .expand import Expander, Handler

DESCRIPTOR, DESCRIBED = "tt.descriptor", "tt.described"
LOADED_END = "weft.loaded_end"
HINT = "tt.divisibility"
ALIGNED = 16
"""What bytes of bases and strides are multiples of."""


def rewrite_descriptors(
    root: Operation, where: str = "cpu", remarks: RemarkCollector = NO_REMARKS, *, marked: bool = False
) -> bool:
    """Rewrite a function, or every function of a module. Gives whether there was anything to do.

    With `marked`, descriptors that are arguments, and loads through descriptors, stay recognisable.

    `where` is what `Unsupported` names: memory that is accessed by pointers has no minimum and maximum of floats.
    """
    functions = [op for op in ir.find(root, ir.tt.FuncOp) if op.body.blocks]
    ops = [
        f
        for f in functions
        if any(isinstance(a.type, ir.TensorDescType) for a in f.entry.args)
        or any(r.type.__class__ is ir.TensorDescType for op in ir.walk(f) for r in op.results)
    ]
    for op in ir.walk(root) if ops and (marked or remarks) else ():
        if marked and isinstance(op, ir.tt.DescriptorLoadOp):
            op.attributes[DESCRIBED] = ir.unit_attr()
        elif marked and isinstance(op, ir.tt.MakeTensorDescriptorOp):
            _note_alignment(op)
        elif marked and isinstance(op, ir.tt.DescriptorStoreOp) and _is_end_loaded(op):
            op.attributes[LOADED_END] = ir.unit_attr()
        elif op.name.startswith("tt.descriptor_"):
            tell_declined(op, remarks)
    for function in ops:
        expander = Expander(_part_types, _HANDLERS, "tensor descriptor")
        _arguments(function, expander, marked)
        try:
            expander.run(function.body)
        except _NoSuchCombination as error:
            raise Unsupported(str(error), where, error.span, hint=_INSTEAD) from None
        entry = function.entry
        outputs = tuple(function.function_type.outputs.data)
        function.properties["function_type"] = ir.function_type(tuple(a.type for a in entry.args), outputs)
        drop_unchanged(function)
    return bool(ops)


class _NoSuchCombination(Exception):
    """A reduction into memory that no operation on pointers does."""

    def __init__(self, message: str, span: Span | None) -> None:
        super().__init__(message)
        self.span = span


_INSTEAD = "blocks of floats are added to memory (atomic_add); minima and maxima are there for integers"


def _part_types(type: Attribute) -> Sequence[Attribute] | None:
    """A descriptor is its base, whether it pads with NaN, then shape and strides."""
    if not isinstance(type, ir.TensorDescType):
        return None
    block = type.block_type
    return (ir.ptr_of(ir.element_of(ir.signless(block))), ir.i1, *(ir.i64,) * (2 * len(ir.shape_of(block))))


def _split(parts: Sequence[SSAValue]) -> tuple[SSAValue, SSAValue, Sequence[SSAValue], Sequence[SSAValue]]:
    rank = (len(parts) - 2) // 2
    return parts[0], parts[1], parts[2 : 2 + rank], parts[2 + rank :]


def unmark(root: Operation, remarks: RemarkCollector = NO_REMARKS) -> None:
    """Take the marks off again, and say of the loads that are left that the copy engine does not do them."""
    for op in ir.walk(root):
        if DESCRIBED in op.attributes:
            del op.attributes[DESCRIBED]
            tell_declined(op, remarks)
        if isinstance(op, ir.tt.FuncOp) and isinstance(attrs := op.properties.get("arg_attrs"), ArrayAttr):
            pairs = zip(op.entry.args, attrs.data, strict=True)
            op.properties["arg_attrs"] = ArrayAttr([_unmarked(a) if ir.is_pointer(v.type) else a for v, a in pairs])


def _unmarked(attributes: DictionaryAttr) -> DictionaryAttr:
    return DictionaryAttr({name: value for name, value in attributes.data.items() if name != DESCRIPTOR})


def tell_declined(op: Operation, remarks: RemarkCollector) -> None:
    """An access through a descriptor is not done by the copy engine."""
    why = "descriptors of the Triton language are accessed by each thread, at addresses and with masks"
    remarks.add(InstructionDeclined(ir.span_of(op), "a bulk copy", why))


def _arguments(function: ir.tt.FuncOp, expander: Expander, marked: bool) -> None:
    """Give the function an argument for each part of each descriptor that it takes, in the place of the descriptor."""

    def is_nan(b: ir.Builder, given: SSAValue, is_zero: bool) -> SSAValue:
        return b.constant(0, ir.i1) if is_zero else b.cmpi("ne", given, b.constant(0, ir.i64))

    expander.parts.update(in_parts(function, marked, is_nan))


def _as_given(b: ir.Builder, given: SSAValue, is_zero: bool) -> SSAValue:
    return given


def in_parts(
    function: ir.tt.FuncOp, marked: bool, padding: Callable[[ir.Builder, SSAValue, bool], SSAValue] = _as_given
) -> list[tuple[BlockArgument, list[SSAValue]]]:
    """Give a function, behind each descriptor that it takes, an argument for each part of it; those that were its shape
    and strides are gone.

    Gives the descriptors and their parts, of which the second is what `padding` makes of the argument, which may be
    known to be zero, and the last stride is a 1.
    """
    entry = function.entry
    b = ir.Builder.at_start(entry, function.location)
    old_attrs = function.properties.get("arg_attrs")
    attrs: list[Attribute] = []
    found: list[tuple[BlockArgument, list[SSAValue]]] = []
    arguments = list(entry.args)
    index = 0
    while index < len(arguments):
        argument = arguments[index]
        attributes = old_attrs.data[index] if isinstance(old_attrs, ArrayAttr) else ir.empty_dict()
        types = _part_types(argument.type)
        if types is None:
            attrs.append(attributes)
            index += 1
            continue
        extra = ir.flattened_descriptor(function, argument.index)
        parts: list[SSAValue] = [
            _new_argument(entry, argument.index + 1 + i, t if i != 1 else ir.i64, argument) for i, t in enumerate(types)
        ]
        facts = _facts(types[0], (len(parts) - 2) // 2, attributes)
        if marked:
            facts[0] = DictionaryAttr({**facts[0].data, DESCRIPTOR: ir.i32_attr(len(found))})
        attrs += facts
        parts[-1] = b.constant(1, ir.i64)
        parts[1] = padding(b, parts[1], "tt.zero_padding" in attributes.data)
        for value, part in zip(arguments[index + 1 : index + 1 + extra], parts[2:], strict=False):
            if value.first_use is not None:
                narrow = part if value.type == ir.i64 else b.create(arith.TruncIOp, (part,), (value.type,)).results[0]
                value.replace_all_uses_with(narrow)
            entry.erase_arg(value)
        found.append((argument, parts))
        index += 1 + extra
    if isinstance(old_attrs, ArrayAttr):
        function.properties["arg_attrs"] = ArrayAttr(attrs)
    return found


def _facts(pointer: Attribute, rank: int, attributes: DictionaryAttr) -> list[DictionaryAttr]:
    """What is known of each part of an argument: of base, padding, shape and strides."""
    size = max(1, ir.bit_width(ir.pointee_of(pointer)) // 8)
    rows = ir.int_value(attributes.data["tt.row_divisibility"]) if "tt.row_divisibility" in attributes.data else 1
    multiples = [16, 1, *(1,) * (rank - 1), max(1, rows // size), *(max(1, 16 // size),) * (rank - 1), 1]
    return [DictionaryAttr({"tt.divisibility": ir.i32_attr(n)}) if n > 1 else ir.empty_dict() for n in multiples]


def _new_argument(entry: Block, index: int, type: Attribute, like: SSAValue) -> BlockArgument:
    argument = entry.insert_arg(type, index)
    argument.name_hint = like.name_hint
    argument.location = like.location  # type: ignore[attr-defined]
    return argument


def _make(expander: Expander, op: Operation, b: ir.Builder) -> None:
    base, *rest = op.operands
    padding = op.properties.get("padding")
    nan = padding is not None and ir.int_value(padding) == ir.tt.PaddingOption.PAD_NAN
    expander.define(op, [base, b.constant(nan, ir.i1), *(widen(b, v) for v in rest)])


def _note_alignment(op: ir.tt.MakeTensorDescriptorOp) -> None:
    """Say what a descriptor requires of its tensor where nothing else can: of addresses and strides from memory.

    Whoever makes a descriptor for a copy engine promises that the base and all strides but the last are multiples of 16
    bytes. Of an argument the launch knows whether it is so.
    """
    base, *rest = op.operands
    type = op.results[0].type
    assert isinstance(type, ir.TensorDescType)
    size = max(1, ir.bit_width(ir.element_of(type.block_type)) // 8)
    strides = rest[len(rest) // 2 : -1]
    for value, number in ((base, ALIGNED), *((x, ALIGNED // size) for x in strides)):
        maker = value.owner
        if isinstance(maker, arith.ExtSIOp):
            maker = maker.operands[0].owner
        is_address = isinstance(maker, ir.tt.IntToPtrOp | ir.tt.BitcastOp)
        loaded = maker.operands[0].owner if isinstance(maker, Operation) and is_address else maker
        if isinstance(maker, Operation) and isinstance(loaded, ir.tt.LoadOp) and HINT not in maker.attributes:
            maker.attributes[HINT] = ir.i32_attr(number)


def _is_end_loaded(op: ir.tt.DescriptorStoreOp) -> bool:
    """Whether rows of the tensor that a store goes to end at a number from memory, of which nothing is known."""
    maker = op.operands[0].owner
    if not isinstance(maker, ir.tt.MakeTensorDescriptorOp):
        return False
    end = maker.operands[len(maker.operands) // 2].owner
    return isinstance(end.operands[0].owner if isinstance(end, arith.ExtSIOp) else end, ir.tt.LoadOp)


def _block(op: Operation, operand: int = 0) -> TensorType[Attribute]:
    type = op.operands[operand].type
    if not isinstance(type, ir.TensorDescType):
        raise ValueError(f"{op.name} without a descriptor")
    return type.block_type


def _known(flag: SSAValue) -> int | None:
    """A padding flag, where it is known."""
    number = ir.splat_value(flag.owner.value) if isinstance(flag.owner, arith.ConstantOp) else None
    return None if number is None else int(number)


def _padding(b: ir.Builder, flag: SSAValue, tile: Attribute) -> SSAValue:
    """The tile of padding: zero, or NaN where the descriptor says so and the elements have one."""
    constant = _known(flag)
    if not ir.is_float(tile) or constant == 0:
        return b.constant(0, tile)
    if constant is not None:
        return b.constant(float("nan"), tile)
    element = ir.element_of(tile)
    chosen = b.select(flag, b.constant(float("nan"), element), b.constant(0, element))
    return b.splat(chosen, ir.shape_of(tile))


def _reach(
    expander: Expander,
    op: Operation,
    b: ir.Builder,
    offsets: Sequence[SSAValue],
    shape: Sequence[int],
    *,
    whole_rows: bool = False,
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """The pointers of a block, without the dimensions that are numbers, where they lie inside the tensor, and the
    padding flag. Rows of the block may be known to lie whole inside the tensor's."""
    base, flag, extents, strides = _split(expander.of(op.operands[0], op))
    kept = _matrix_dims(shape)
    sizes = [shape[d] for d in kept]
    inner = iter(indices_of(b, [offsets[d] for d in kept], sizes))
    one = (1,) * len(kept)
    indices = [next(inner) if d in kept else b.splat(widen(b, x), one) for d, x in enumerate(offsets)]
    mask = inside(b, indices, extents, range(len(shape) - whole_rows), sizes)
    if mask is None:
        raise ValueError("a descriptor has at least one dimension")
    return places(b, base, indices, strides, sizes), mask, flag


def _matrix_dims(shape: Sequence[int]) -> list[int]:
    """The dimensions of a block but for those of size 1, as long as two are left.

    >>> _matrix_dims([1, 1, 64, 32]), _matrix_dims([64, 1, 32]), _matrix_dims([1, 1, 32]), _matrix_dims([1, 32])
    ([2, 3], [0, 2], [1, 2], [0, 1])
    """
    kept = list(range(len(shape)))
    for d in range(len(shape)):
        if shape[d] == 1 and len(kept) > 2:
            kept.remove(d)
    return kept


def _matrix(b: ir.Builder, value: SSAValue, block: Attribute) -> SSAValue:
    """A tile for a block, in the shape in which it is accessed."""
    shape = ir.shape_of(block)
    return _shaped(b, value, ir.tensor_of([shape[d] for d in _matrix_dims(shape)], ir.element_of(block)))


def _shaped(b: ir.Builder, value: SSAValue, type: Attribute) -> SSAValue:
    return value if value.type == type else b.create(ir.tt.ReshapeOp, (value,), (type,)).results[0]


def _loaded(expander: Expander, op: Operation, b: ir.Builder, offsets: Sequence[SSAValue], tile: Attribute) -> None:
    pointers, mask, flag = _reach(expander, op, b, offsets, ir.shape_of(tile))
    matrix = ir.tensor_of(ir.shape_of(pointers.type), ir.element_of(tile))
    value = b.load(pointers, mask, _padding(b, flag, matrix))
    if isinstance(value.owner, Operation):
        value.owner.properties.update({k: op.properties[k] for k in ("cache", "evict") if k in op.properties})
        if DESCRIBED in op.attributes:
            value.owner.attributes[DESCRIBED] = ir.bool_attr(_known(flag) == 0)
    value = _shaped(b, value, op.results[0].type)
    value.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(value)
    expander.drop(op)


def _load(expander: Expander, op: Operation, b: ir.Builder) -> None:
    _loaded(expander, op, b, op.operands[1:], ir.signless(_block(op)))


def _gather(expander: Expander, op: Operation, b: ir.Builder) -> None:
    _loaded(expander, op, b, op.operands[1:], op.results[0].type)


def _store(expander: Expander, op: Operation, b: ir.Builder) -> None:
    tile = ir.signless(_block(op))
    at, shape = op.operands[2:], ir.shape_of(tile)

    def store(*, whole_rows: bool) -> None:
        pointers, mask, _ = _reach(expander, op, b, at, shape, whole_rows=whole_rows)
        b.store(pointers, _matrix(b, op.operands[1], tile), mask)

    if LOADED_END in op.attributes and len(shape) > 1:
        begin, end = widen(b, at[-1]), _split(expander.of(op.operands[0], op))[2][-1]
        past = b.binary(arith.AddiOp, begin, b.constant(shape[-1], begin.type))
        starts, ends = b.cmpi("sge", begin, b.constant(0, begin.type)), b.cmpi("sle", past, end)
        choice = b.if_(b.binary(arith.AndIOp, starts, ends), ())
        for region, whole_rows in zip(choice.regions, (True, False), strict=True):
            with b.inside(region.blocks[0]):
                store(whole_rows=whole_rows)
                b.yield_()
    else:
        store(whole_rows=False)
    expander.drop(op)


def _scatter(expander: Expander, op: Operation, b: ir.Builder) -> None:
    value = op.operands[3]
    pointers, mask, _ = _reach(expander, op, b, op.operands[1:3], ir.shape_of(value.type))
    b.store(pointers, value, mask)
    expander.drop(op)


def _reduce(expander: Expander, op: Operation, b: ir.Builder) -> None:
    block = _block(op)
    tile = ir.signless(block)
    pointers, mask, _ = _reach(expander, op, b, op.operands[2:], ir.shape_of(tile))
    value = _matrix(b, op.operands[1], tile)
    properties: dict[str, Attribute] = {
        "atomic_rmw_op": ir.enum_attr(_combiner(op, block)),
        "sem": ir.enum_attr(ir.tt.MemSemantic.RELAXED),
        "scope": ir.enum_attr(ir.tt.MemSyncScope.GPU),
    }
    b.create(ir.tt.AtomicRMWOp, (pointers, value, mask), (value.type,), properties)
    expander.drop(op)


def _combiner(op: Operation, block: TensorType[Attribute]) -> ir.tt.RMWOp:
    kind = ir.tt.DescriptorReduceKind(ir.int_value(op.properties["kind"]))
    element = block.element_type
    simple = {
        ir.tt.DescriptorReduceKind.AND: ir.tt.RMWOp.AND,
        ir.tt.DescriptorReduceKind.OR: ir.tt.RMWOp.OR,
        ir.tt.DescriptorReduceKind.XOR: ir.tt.RMWOp.XOR,
        ir.tt.DescriptorReduceKind.ADD: ir.tt.RMWOp.FADD if ir.is_float(block) else ir.tt.RMWOp.ADD,
    }
    if kind in simple:
        return simple[kind]
    if kind in (ir.tt.DescriptorReduceKind.MIN, ir.tt.DescriptorReduceKind.MAX) and not ir.is_float(block):
        low = kind == ir.tt.DescriptorReduceKind.MIN
        if element.signedness.data == Signedness.UNSIGNED:  # type: ignore[attr-defined]
            return ir.tt.RMWOp.UMIN if low else ir.tt.RMWOp.UMAX
        return ir.tt.RMWOp.MIN if low else ir.tt.RMWOp.MAX
    raise _NoSuchCombination(f"combining a block of {element} with memory by {kind.name.lower()}", ir.span_of(op))


_HANDLERS: dict[type[Operation], Handler] = {
    ir.tt.MakeTensorDescriptorOp: _make,
    ir.tt.DescriptorLoadOp: _load,
    ir.tt.DescriptorStoreOp: _store,
    ir.tt.DescriptorReduceOp: _reduce,
    ir.tt.DescriptorGatherOp: _gather,
    ir.tt.DescriptorScatterOp: _scatter,
}
