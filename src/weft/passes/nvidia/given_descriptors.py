"""Descriptors of the Triton language that a Gluon kernel is given: their parts, and tensor maps of their blocks.

    tt.func @k(%d: !tt.tensordesc<tensor<64x64xf16>>, %m: i32, %n: i32, %s: i64, %t: i64)
      %base, %padding, ... = weft.descriptor_parts %d
      %blocks = weft.descriptor_blocks %d : ... -> !tt.tensordesc<tensor<128x64xf16, #shared>>
becomes
    tt.func @k(%base: !tt.ptr<f16>, %padding: i64, %m: i64, %n: i64, %s: i64, %t: i64, %blocks: !tt.tensordesc<...>)

which is what launches hand over, and what loops of products get that have the copy engine load (see `bulk_loads`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft import ir
from weft.base import Unsupported
from weft.ir.gpu import name_of
from weft.ir.gpu.described import DescriptorBlocksOp, DescriptorPartsOp

from ..inline_calls import inline_calls
from ..removal import remove
from ..rewrite_descriptors import in_parts, unmark
from .bulk_loads import map_for


def take_apart(module: ModuleOp) -> None:
    """Rewrite the kernels of a module of layout IR, if they are given descriptors without layouts."""
    if not any(_is_plain(a) for f in ir.find(module, ir.tt.FuncOp) for a in f.entry.args):
        return
    inline_calls(module)
    for function in ir.find(module, ir.tt.FuncOp):
        if any(isinstance(a.type, ir.TensorDescType) and not _is_plain(a) for a in function.entry.args):
            raise Unsupported(
                "a kernel that is given descriptors with a layout and such without one",
                span=ir.span_of(function),
                hint="give them all as one of weft.TensorDescriptor and gluon.nvidia.hopper.TensorDescriptor",
            )
        given = [(list(d.uses), d, parts) for d, parts in in_parts(function, marked=True)]
        for _, descriptor, parts in given:
            descriptor.replace_all_uses_with(parts[0])
            function.entry.erase_arg(descriptor)
        for uses, _, parts in given:
            for use in uses:
                _replace(use.operation, parts)
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
