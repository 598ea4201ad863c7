"""Turn descriptors that a kernel makes into tensor maps in memory, which bulk copies need.

    %d = tt.make_tensor_descriptor %x, [%m, %n], [%s, %one] : <f16>, <tensor<64x64xf16, #shared>>
becomes
    %p = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
    %b = arith.muli %s, %two : i64
    ttng.tensormap_create %p, %x, [%c64, %c64], [%n, %m], [%b], [%c1, %c1] {elem_type = 6, ...} : (...) -> ()
    ttng.tensormap_fenceproxy_acquire %p : !tt.ptr<i8>
    %d = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !tt.tensordesc<tensor<64x64xf16, #shared>>

A map has the innermost dimension first, and strides in bytes. The box is what one copy moves; the swizzle is that of
the layout in shared memory. Not done here: descriptors without a layout (see rewrite_descriptors).
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue

from weft import ir
from weft.base import Unsupported
from weft.ir.gpu import name_of, ttg
from weft.ir.nvidia import ttng
from weft.layouts import NVMMASharedLayout

from ..removal import remove

BYTES = 128
# The numbers of PTX's tensormap.replace.
FLOATS = {"f16": 6, "f32": 7, "f64": 9, "bf16": 10}
INTEGERS = {8: (0, 0), 16: (1, 1), 32: (3, 2), 64: (5, 4)}


def create_tensormaps(module: ModuleOp) -> None:
    """Rewrite all descriptors with layouts. Raises Unsupported for elements that no map has."""
    for op in list(ir.walk(module)):
        if isinstance(op, ir.tt.MakeTensorDescriptorOp) and name_of(op.result.type.block_type) is not None:  # type: ignore
            _rewrite(op)


def _element_type(element: Attribute, op: ir.tt.MakeTensorDescriptorOp) -> int:
    """The number that a map has for a type of elements."""
    if ir.is_int(element):
        signed, unsigned = INTEGERS[ir.bit_width(element)]
        return unsigned if str(element).startswith("u") else signed
    number = FLOATS.get(str(element), 0 if ir.bit_width(element) == 8 else -1)
    if number < 0:
        raise Unsupported(f"a tensor descriptor of elements {element}", span=ir.span_of(op))
    return number


def _rewrite(op: ir.tt.MakeTensorDescriptorOp) -> None:
    block = op.result.type.block_type  # type: ignore[attr-defined]
    layout, shape, element = name_of(block), ir.shape_of(block), ir.element_of(block)
    if not isinstance(layout, NVMMASharedLayout) or layout.fp4_padded:
        raise Unsupported(f"a tensor descriptor of blocks in {layout!r}", span=ir.span_of(op))
    rank, width = len(shape), ir.bit_width(element) // 8
    base, sizes, strides = op.operands[0], op.operands[1 : 1 + rank], op.operands[1 + rank :]
    build = ir.Builder.before(op)

    def number(value: int) -> SSAValue:
        return build.constant(value, ir.int_type(32))

    memory = build.value(
        ttg.GlobalScratchAllocOp, (), ir.ptr_of(ir.i8), {"alignment": ir.i32_attr(BYTES), "nbytes": ir.i32_attr(BYTES)}
    )
    bytes_ = [build.binary(arith.MuliOp, s, build.constant(width, s.type)) for s in reversed(strides[:-1])]
    box = [number(size) for size in reversed(layout.box(shape))]
    steps = [number(1) for _ in shape]
    padding = op.properties.get("padding")
    nan = padding is not None and ir.int_value(padding) == ir.tt.PaddingOption.PAD_NAN.value
    properties: dict[str, Attribute] = {
        "elem_type": ir.i32_attr(_element_type(element, op)),
        "interleave_layout": ir.i32_attr(0),
        "swizzle_mode": ir.i32_attr((0, 32, 64, 128).index(layout.swizzle_byte_width)),
        "fill_mode": ir.i32_attr(int(nan)),
        "operandSegmentSizes": ir.segments(1, 1, rank, rank, rank - 1, rank),
    }
    operands = [memory, base, *box, *reversed(sizes), *bytes_, *steps]
    build.create(ttng.TensormapCreateOp, operands, (), properties)
    build.create(ttng.TensormapFenceproxyAcquireOp, (memory,))
    descriptor = build.value(ttng.ReinterpretTensorDescOp, (memory,), op.result.type)
    op.result.replace_all_uses_with(descriptor)
    remove(op)
