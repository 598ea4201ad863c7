"""Replace a kernel's descriptor arguments by their parts: pointer, padding, sizes and strides.

    tt.func @k(%d: !tt.tensordesc<tensor<64x64xf16>>, %m: i32, %n: i32, %s: i64, %one: i64)     as Triton passes one
      %p = amdg.descriptor_base %d
becomes
    tt.func @k(%p: !tt.ptr<f16>, %padding: i64, %m: i64, %n: i64, %s: i64, %one: i64)

which are the arguments that a launch passes for it, and all that a copy by the tensor data mover needs.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, SSAValue

from weft import ir
from weft.base import Unsupported
from weft.ir.amd.tdm import DescriptorBaseOp

from ..inline_calls import inline_calls
from ..removal import remove


def take_descriptors_apart(module: ModuleOp) -> None:
    """Rewrite the kernels of a module of layout IR, if they are given any."""
    given = [f for f in ir.find(module, ir.tt.FuncOp) if any(_is_descriptor(a) for a in f.entry.args)]
    if not given:
        return
    inline_calls(module)
    for function in ir.find(module, ir.tt.FuncOp):
        _rewrite(function)


def _is_descriptor(value: SSAValue) -> bool:
    return isinstance(value.type, ir.TensorDescType)


def _rewrite(function: ir.tt.FuncOp) -> None:
    entry = function.entry
    build = ir.Builder.at_start(entry, function.location)
    old = function.properties.get("arg_attrs")
    attributes: list[Attribute] = [*old.data] if isinstance(old, ArrayAttr) else [ir.empty_dict() for _ in entry.args]
    index = 0
    while index < len(entry.args):
        argument = entry.args[index]
        if not isinstance(argument.type, ir.TensorDescType):
            index += 1
            continue
        block = argument.type.block_type
        rank, extra = len(ir.shape_of(block)), ir.flattened_descriptor(function, index)
        types = [ir.ptr_of(ir.element_of(ir.signless(block))), *(ir.i64,) * (1 + 2 * rank)]
        parts: list[SSAValue] = []
        for i, type in enumerate(types):
            part = entry.insert_arg(type, index + 1 + i)
            part.name_hint, part.location = argument.name_hint, argument.location
            parts.append(part)
        following = list(entry.args[index + 1 + len(parts) : index + 1 + len(parts) + extra])
        wide = [*parts[2:-1], build.constant(1, ir.i64)]  # the last stride is 1, as the host has made sure
        for value, whole in zip(following, wide, strict=False):
            narrow = whole if value.type == ir.i64 else build.create(arith.TruncIOp, (whole,), (value.type,)).results[0]
            value.replace_all_uses_with(narrow)
            entry.erase_arg(value)
        for use in list(argument.uses):
            if not isinstance(use.operation, DescriptorBaseOp):
                raise Unsupported(
                    "a tensor descriptor that a loop or a branch chooses", span=ir.span_of(use.operation),
                    hint="choose among coordinates, or make it by tdm.make_tensor_descriptor",
                )  # fmt: skip
            use.operation.result.replace_all_uses_with(parts[0])
            remove(use.operation)
        entry.erase_arg(argument)
        pointer = DictionaryAttr({"tt.divisibility": ir.i32_attr(16)})
        attributes[index : index + 1 + extra] = [pointer, *(ir.empty_dict() for _ in parts[1:])]
        index += len(parts)
    if isinstance(old, ArrayAttr):
        function.properties["arg_attrs"] = ArrayAttr(attributes)
    outputs = tuple(function.function_type.outputs.data)
    function.properties["function_type"] = ir.function_type(tuple(a.type for a in entry.args), outputs)
