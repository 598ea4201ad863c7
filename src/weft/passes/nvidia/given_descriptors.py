"""Replace descriptors of the Triton language that a Gluon kernel takes by their parts and tensor maps of their blocks.

    tt.func @k(%d: !tt.tensordesc<tensor<64x64xf16>>, %m: i32, %n: i32, %s: i64, %t: i64)
      %base, %padding, ... = weft.descriptor_parts %d
      %blocks = weft.descriptor_blocks %d : ... -> !tt.tensordesc<tensor<128x64xf16, #shared>>
becomes
    tt.func @k(%base: !tt.ptr<f16>, %padding: i64, %m: i64, %n: i64, %s: i64, %t: i64, %blocks: !tt.tensordesc<...>)

which are the arguments that a launch passes, as for loops of products whose operands the copy engine loads (see
`bulk_loads`). The map of a tensor that several parameters describe together (`weft.descriptor_made`) comes after all
parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft import ir
from weft.base import Unsupported
from weft.base.made_tensors import MadeTensor, Polynomial
from weft.ir.gpu import name_of
from weft.ir.gpu.described import DescriptorBlocksOp, DescriptorMadeOp, DescriptorPartsOp

from ..inline_calls import inline_calls
from ..removal import remove
from ..rewrite_descriptors import in_parts, unmark
from .bulk_loads import map_for


def take_apart(module: ModuleOp) -> None:
    """Rewrite the kernels of a module of layout IR, if they are given descriptors without layouts."""
    made = ir.find(module, DescriptorMadeOp)
    if not made and not any(_is_plain(a) for f in ir.find(module, ir.tt.FuncOp) for a in f.entry.args):
        return
    inline_calls(module)
    for function in ir.find(module, ir.tt.FuncOp):
        given = [_is_plain(a) for a in function.entry.args if isinstance(a.type, ir.TensorDescType)]
        if any(given) and not all(given):
            raise Unsupported(
                "a kernel that is given descriptors with a layout and such without one",
                span=ir.span_of(function),
                hint="give them all as one of weft.TensorDescriptor and gluon.nvidia.hopper.TensorDescriptor",
            )
        taken = [(list(d.uses), d, parts) for d, parts in in_parts(function, marked=True)]
        for _, descriptor, parts in taken:
            descriptor.replace_all_uses_with(parts[0])
            function.entry.erase_arg(descriptor)
        types, outputs = tuple(a.type for a in function.entry.args), tuple(function.function_type.outputs.data)
        function.properties["function_type"] = ir.function_type(types, outputs)
        for uses, _, parts in taken:
            for use in uses:
                _replace(use.operation, parts)
    for op in ir.find(module, DescriptorMadeOp):
        _make(op)
    unmark(module)


def _is_plain(value: BlockArgument) -> bool:
    return isinstance(value.type, ir.TensorDescType) and name_of(value.type.block_type) is None


def _replace(op: Operation, parts: Sequence[SSAValue]) -> None:
    """An operation on a descriptor that has these parts."""
    if isinstance(op, DescriptorPartsOp):
        for result, part in zip(op.parts, parts, strict=True):
            result.replace_all_uses_with(part)
    elif isinstance(op, DescriptorBlocksOp):
        base, type = parts[0], op.result.type
        assert isinstance(base, BlockArgument) and isinstance(type, ir.TensorDescType)
        op.result.replace_all_uses_with(map_for(base, type))
    else:
        raise Unsupported(
            f"`{op.name}` in a Gluon kernel",
            span=ir.span_of(op),
            hint="gl.extra.descriptors.bulk(x, block_shape, layout) is a descriptor for the copies of hopper.tma",
        )
    remove(op)


def _make(op: DescriptorMadeOp) -> None:
    """Let a map that the launch makes take the place of an operation."""
    base, type, rank = op.base, op.result.type, (len(op.sums) - 1) // 2
    assert isinstance(type, ir.TensorDescType)
    further, *sums = (_polynomial(value, op) for value in op.sums)
    least = zip((_number(value, op) for value in op.limited), ir.ints_of(op.least), strict=True)
    tensor = MadeTensor(_number(base, op), further, tuple(sums[:rank]), tuple(sums[rank:]), tuple(sorted(least)))
    assert isinstance(base, BlockArgument)
    op.result.replace_all_uses_with(map_for(base, type, tensor))
    operands = list(op.operands)
    remove(op)
    _drop(operands)


def _drop(values: Sequence[SSAValue]) -> None:
    """Remove what nothing uses any more."""
    for value in values:
        owner = value.owner
        if isinstance(owner, Operation) and owner.parent is not None and value.first_use is None:
            operands = list(owner.operands)
            remove(owner)
            _drop(operands)


def _number(value: SSAValue, op: Operation) -> int:
    """Which parameter a value is, tensor maps not counted."""
    if not isinstance(value, BlockArgument) or not isinstance(value.block.parent_op(), ir.tt.FuncOp):
        raise Unsupported(
            "a tensor that is made of something else than parameters of the kernel",
            span=ir.span_of(op),
            hint="a launch makes its tensor map: give what it is made of as parameters, or sums and products of them",
        )
    return sum(not isinstance(a.type, ir.TensorDescType) for a in value.block.args[: value.index])


def _polynomial(value: SSAValue, op: Operation) -> Polynomial:
    return tuple(sorted((factor, numbers) for numbers, factor in _terms(value, op).items() if factor))


def _terms(value: SSAValue, op: Operation) -> dict[tuple[int, ...], int]:
    """The factors of products of parameters, in a value that is a sum of such."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp):
        return {(): int(ir.splat_value(owner.value) or 0)}
    if isinstance(owner, arith.ExtSIOp | arith.ExtUIOp):
        return _terms(owner.operands[0], op)
    if not isinstance(owner, arith.AddiOp | arith.SubiOp | arith.MuliOp):
        return {(_number(value, op),): 1}
    left, right = (_terms(x, op) for x in owner.operands)
    if isinstance(owner, arith.MuliOp):
        pairs = [(tuple(sorted(m + n)), a * b) for m, a in left.items() for n, b in right.items()]
    else:
        sign = -1 if isinstance(owner, arith.SubiOp) else 1
        pairs = [*left.items(), *((n, sign * b) for n, b in right.items())]
    total: dict[tuple[int, ...], int] = {}
    for numbers, factor in pairs:
        total[numbers] = total.get(numbers, 0) + factor
    return total
