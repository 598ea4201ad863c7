"""Check every load, store and atomic against the arrays that its pointers come from; only with the option `debug`.

    tt.func @k(%x: !tt.ptr<f32>) {
      %v = tt.load %p, %m : tensor<64x!tt.ptr<f32>>                     # %p is made of %x
becomes
    tt.func @k(%x: !tt.ptr<f32>, %x_low: i64, %x_high: i64) attributes {weft.checked = array<i32: 0>} {
      %a = tt.ptr_to_int %p : tensor<64x!tt.ptr<f32>> -> tensor<64xi64>
      %in = %x_low <= %a and %a <= %x_high - 4
      "weft.check"(%in or not %m, %a) <{what = "load", arrays = array<i32: 0>, bytes = 4 : i32, ...}>
      %v = tt.load %p, %m and %in : tensor<64x!tt.ptr<f32>>

The two arguments are the addresses between which the array's elements lie, whatever its strides; `weft.checked` lists
the arguments that have such a pair, in the order of the pairs. An access that fails its check is left out, so that
nothing outside is read or written. Where a pointer may come from one of several arrays (a branch, a `tl.where`, a loop
that swaps two), each of its elements must be inside of one of them.

Not done here: pointers of unknown origin (loaded from memory, made of an integer), which stay unchecked; elements
between those of a strided view, which count as inside.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from weft import ir

from .fold import constant_of
from .pointer_roots import roots_of

Masked = ir.tt.LoadOp | ir.tt.StoreOp | ir.tt.AtomicRMWOp | ir.tt.AtomicLoadOp | ir.tt.AtomicStoreOp
Access = Masked | ir.tt.AtomicCASOp

_KINDS: dict[type[Operation], str] = {
    ir.tt.LoadOp: "load",
    ir.tt.StoreOp: "store",
    ir.tt.AtomicRMWOp: "atomic",
    ir.tt.AtomicCASOp: "atomic",
    ir.tt.AtomicLoadOp: "load",
    ir.tt.AtomicStoreOp: "store",
}


def check_bounds(root: Operation) -> None:
    """Rewrite every function with a body."""
    for function in [op for op in ir.find(root, ir.tt.FuncOp) if op.body.blocks]:
        _Checker(function).run()


class _Checker:
    """The accesses of one function, and the arguments added for them so far."""

    def __init__(self, function: ir.tt.FuncOp) -> None:
        self.function = function
        self.limits: dict[SSAValue, tuple[int, SSAValue, SSAValue]] = {}

    def run(self) -> None:
        accesses = [op for op in ir.walk(self.function) if isinstance(op, Access)]
        checked = [(op, roots_of(op.operands[0])) for op in accesses]
        for op, arrays in checked:
            if arrays:
                self.access(op, arrays)
        if self.limits:
            self._declare()

    def access(self, op: Operation, arrays: Sequence[BlockArgument]) -> None:
        """Put the check before an access, and leave out what fails it."""
        b = ir.Builder.before(op)
        pointer = op.operands[0]
        size = _bytes_of(pointer.type)
        address = b.create(ir.tt.PtrToIntOp, (pointer,), (ir.like(pointer.type, ir.i64),)).results[0]
        inside: SSAValue | None = None
        for array in arrays:
            _, low, high = self._limits(array)
            last = b.binary(arith.SubiOp, high, b.constant(size, ir.i64))
            above = b.cmpi("sge", address, _as(b, low, address))
            within = b.binary(arith.AndIOp, above, b.cmpi("sle", address, _as(b, last, address)))
            inside = within if inside is None else b.binary(arith.OrIOp, inside, within)
        if inside is None:
            raise ValueError("an access without arrays has nothing to be checked against")
        mask = _mask_of(op)
        ok = inside
        if mask is not None:
            off = b.binary(arith.XOrIOp, mask, b.constant(1, mask.type))
            ok = b.binary(arith.OrIOp, inside, off)
        properties: dict[str, Attribute] = {
            "what": ir.str_attr(_KINDS[type(op)]),
            "message": ir.str_attr(""),
            "bytes": ir.i32_attr(size),
            "arrays": ir.i32_array([self._limits(array)[0] for array in arrays]),
        }
        if not isinstance(op, ir.tt.AtomicCASOp):  # which takes no mask
            properties["masked"] = ir.bool_attr(mask is not None)
        b.create(ir.CheckOp, (ok, address), (), properties)
        if isinstance(op, ir.tt.AtomicCASOp):
            _only_if_all(b, op, inside)
        else:
            _restrict(b, op, mask, inside)

    def _limits(self, array: BlockArgument) -> tuple[int, SSAValue, SSAValue]:
        """The number of an array among those checked, and the addresses between which its elements lie."""
        limits = self.limits.get(array)
        if limits is None:
            entry = self.function.entry
            name = ir.argument_name(array)
            pair = []
            for end in ("low", "high"):
                argument = entry.insert_arg(ir.i64, len(entry.args))
                argument.name_hint = ir.hint_of(f"{name}_{end}")
                argument.location = array.location
                pair.append(argument)
            limits = self.limits[array] = (len(self.limits), pair[0], pair[1])
        return limits

    def _declare(self) -> None:
        """Make the function's type and attributes those of its arguments."""
        function, entry = self.function, self.function.entry
        outputs = tuple(function.function_type.outputs.data)
        function.properties["function_type"] = ir.function_type(tuple(a.type for a in entry.args), outputs)
        attrs = function.properties.get("arg_attrs")
        if isinstance(attrs, ArrayAttr):
            more = [ir.empty_dict()] * (len(entry.args) - len(attrs.data))
            function.properties["arg_attrs"] = ArrayAttr([*attrs.data, *more])
        checked = [array.index for array in self.limits if isinstance(array, BlockArgument)]
        function.attributes["weft.checked"] = ir.i32_array(checked)


def _bytes_of(type: Attribute) -> int:
    """The size in memory of what a pointer, or each of a tile of them, points to."""
    pointee = ir.element_of(ir.pointee_of(type))
    return 8 if ir.is_pointer(pointee) else max(1, ir.bit_width(pointee) // 8)


def _as(b: ir.Builder, scalar: SSAValue, like_: SSAValue) -> SSAValue:
    return b.splat(scalar, ir.shape_of(like_.type)) if ir.is_tensor(like_.type) else scalar


def _mask_of(op: Operation) -> SSAValue | None:
    if isinstance(op, Masked):
        mask = op.mask
        return mask if mask is None or not _always(mask) else None
    return None


def _always(mask: SSAValue) -> bool:
    """Whether a mask is the constant true, which the language gives atomics without a mask."""
    while isinstance(mask.owner, ir.tt.SplatOp | ir.tt.BroadcastOp):
        mask = mask.owner.operands[0]
    constant = constant_of(mask)
    return constant is not None and bool(constant)


def _restrict(b: ir.Builder, op: Operation, mask: SSAValue | None, inside: SSAValue) -> None:
    """Let an access touch only what is inside too."""
    both = inside if mask is None else b.binary(arith.AndIOp, mask, inside)
    if isinstance(op, ir.tt.LoadOp):
        other = op.other
        op.operands = [op.operands[0], both, *([other] if other is not None else [])]
        op.properties["operandSegmentSizes"] = ir.segments(1, 1, int(other is not None))
    elif isinstance(op, ir.tt.AtomicLoadOp):
        op.operands = [op.operands[0], both]
    else:
        op.operands = [op.operands[0], op.operands[1], both]


def _only_if_all(b: ir.Builder, op: Operation, inside: SSAValue) -> None:
    """Do something that has no mask only where every element is inside; what it yields is zero elsewhere."""
    everywhere = inside
    for _ in ir.shape_of(inside.type) if ir.is_tensor(inside.type) else ():
        everywhere = _all(b, everywhere)
    result = op.results[0]
    choice = b.if_(everywhere, (result.type,))
    result.replace_all_uses_with(choice.results[0])
    then, other = choice.regions[0].blocks[0], choice.regions[1].blocks[0]
    op.detach()
    then.add_op(op)
    with b.inside(then):
        b.yield_([result])
    with b.inside(other):
        b.yield_([b.constant(0, result.type)])


def _all(b: ir.Builder, truth: SSAValue) -> SSAValue:
    """Whether a tile holds along its last axis."""
    *left, _ = ir.shape_of(truth.type)
    body = Block(arg_types=(ir.i1, ir.i1))
    with b.inside(body):
        both = b.binary(arith.AndIOp, body.args[0], body.args[1])
        b.create(ir.tt.ReduceReturnOp, (both,))
    type = ir.tensor_of(left, ir.i1) if left else ir.i1
    properties = {"axis": ir.i32_attr(len(left))}
    return b.create(ir.tt.ReduceOp, (truth,), (type,), properties, regions=(Region(body),)).results[0]
