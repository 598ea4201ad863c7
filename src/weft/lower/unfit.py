"""Errors about instructions that do not divide a layout: the remainder, drawings of both, and layouts that would fit.

An instruction is used where its tile divides the layouts of its operands from the left. Where none does, the nearest is
named, and the operand that it does not fit is drawn beside what the instruction wants.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from weft.base import CompilationError, LayoutError, Note, Span, Unsupported
from weft.ir import bit_width, is_tensor
from weft.ir.gpu import MemDescType, encoding_of
from weft.layouts import LinearLayout, NVMMASharedLayout, sketch, sketch_memory
from weft.machines import Machine
from weft.targets.instruction import Instruction

from .context import Context

SIDES = ("the left operand", "the right operand", "the result")


def named(value: SSAValue) -> str:
    """The layout of a tile or of memory, as a program writes it."""
    type = value.type
    layout = type.data.layout if isinstance(type, MemDescType) else encoding_of(type)
    return repr(layout.named) if layout is not None else "no layout"


def no_instruction(elems: Sequence[str], machine: Machine, span: Span | None, types: Sequence[str]) -> Unsupported:
    """There is no matrix instruction for these types."""
    left, right, total = elems
    return Unsupported(
        f"a product of {left} and {right} into {total} by a matrix instruction",
        machine.name,
        span,
        hint=f"the instructions multiply {', '.join(types)}; gl.dot_fma, in a BlockedLayout, multiplies in lanes",
    )


def left_over(entry: Instruction, shape: Sequence[int], depth: int, span: Span | None) -> LayoutError | None:
    """The error for a size that is no multiple of the instruction's; None if all are."""
    m, n, k = entry.shape
    for dimension, extent, need in (("M", shape[-2], m), ("N", shape[-1], n), ("K", depth, k)):
        if extent % need and (dimension == "K" or need % extent):  # smaller tiles are repeated in an instruction
            return LayoutError(
                f"no matrix instruction divides a product of M = {shape[-2]}, N = {shape[-1]}, K = {depth}: the "
                f"smallest is {m} x {n} x {k} ({entry.name}); {dimension} = {extent} is {extent // need} times {need}, "
                f"{extent % need} are left over",
                span,
                hint=f"make {dimension} a multiple of {need}",
            )
    return None


def other_lanes(
    entry: Instruction, side: int, value: SSAValue, layout: LinearLayout, span: Span | None, wanted: str
) -> LayoutError:
    """The error for an operand, or the result (2), whose lanes hold other elements than the instruction wants."""
    part = entry.operands[side].layout if side < 2 else entry.results[0].layout
    assert part is not None
    tile = part.transpose_outs(["dim0", "dim1"])
    size = " x ".join(str(n) for n in tile.out_dims.values())
    lines = [
        f"{entry.name} does not divide the layout of {SIDES[side]}: lanes hold other elements than those of its "
        f"{size} tile",
        f"  {SIDES[side]}: {named(value)}",
        *sketch(layout, list(layout.out_dims.values())),
        f"  what the instruction wants of each {size} part",
        *sketch(tile, list(tile.out_dims.values())),
    ]
    return LayoutError("\n".join(lines), span, hint=f"use gl.{wanted}: gl.convert_layout moves a tile to it")


def other_warps(
    side: int, values: Sequence[SSAValue], layouts: Sequence[LinearLayout], span: Span | None
) -> LayoutError:
    """The error for an operand of which warps hold other rows, or columns, than they hold of the result."""
    lines_of = ("rows", "columns")[side]
    lines = [f"a product of which warps hold other {lines_of} of {SIDES[side]} than of the result"]
    for i in (side, 2):
        lines += [f"  {SIDES[i]}: {named(values[i])}", *sketch(layouts[i], list(layouts[i].out_dims.values()))]
    result = named(values[2])
    hint = f"convert it: gl.convert_layout(x, gl.DotOperandLayout({side}, {result}, k_width))"
    return LayoutError("\n".join(lines), span, hint=hint)


def other_sums(
    entry: Instruction, values: Sequence[SSAValue], layouts: Sequence[LinearLayout], span: Span | None
) -> LayoutError:
    """The error for operands that each fit, but of which a lane holds different parts of the sum."""
    lines = [f"{entry.name}: a lane holds other places along K of the left operand than of the right one"]
    for side, along in ((0, "[M, K]"), (1, "[K, N]")):
        lines.append(f"  {SIDES[side]} {along}: {named(values[side])}")
        lines += sketch(layouts[side], list(layouts[side].out_dims.values()))
    return LayoutError("\n".join(lines), span, hint="give both operands the same k_width")


def not_readable(value: SSAValue, side: str, rows: int, depth: int, bits: int, span: Span | None) -> CompilationError:
    """The error for an operand of wgmma in memory that lies in none of the orders that it reads."""
    type = value.type
    assert isinstance(type, MemDescType)
    shape = list(type.linear.out_dims.values())
    along = "K" if bits != 16 else f"K or {'M' if side == 'left' else 'N'}"
    lines = [
        f"wgmma cannot read its {side} operand, {'x'.join(map(str, type.shape))} elements of {bits} bits: its "
        f"matrices of {rows} by {depth} must be contiguous along {along}, in chunks of 16 bytes that one of the "
        "swizzles of none, 32, 64 or 128 bytes orders, and here they are not",
        f"  here: {named(value)}, by bytes",
        *sketch_memory(type.linear, bits // 8, type.gaps),
    ]
    wanted = NVMMASharedLayout.get_default_for(shape, bits, transposed=bits != 16 and side == "right")
    lines += [f"  what it can read: {wanted!r}", *sketch_memory(wanted.to_linear(shape), bits // 8)]
    hint = f"allocate it with layout={wanted!r}"
    if bits != 16:
        hint += ", so that K is contiguous (transpose it while it is stored)"
    return LayoutError("\n".join(lines), span, hint=hint)


def narrow_copy(
    c: Context, size: int, values: tuple[SSAValue, SSAValue | None, SSAValue], neighbours: int, together: int
) -> Unsupported:
    """The error for an asynchronous copy of less than 4 bytes a lane: which of the things that it needs is missing.

    `values` are pointers, mask or None, and memory. A lane has `neighbours` elements side by side in the tile, of which
    `together` are known to be so in global memory, under one mask.
    """
    pointer, mask, target = values
    memory = target.type
    assert isinstance(memory, MemDescType)
    width = max(1, bit_width(memory.element_type) // 8)
    least = 4 // width
    if neighbours < least:
        note, hint = _no_neighbours(pointer, c.layout(pointer)), f"give each thread {least} or more of them in a row"
    elif together < least:
        note, hint = _not_known(c, pointer, mask)
    else:
        note = "\n".join(
            [
                f"a lane has {neighbours} neighbours of the tile, which do not lie side by side in shared memory",
                f"  the tile: {named(pointer)}",
                *sketch(c.layout(pointer), list(c.layout(pointer).out_dims.values())),
                f"  shared memory: {named(target)}, by bytes",
                *sketch_memory(memory.linear, width, memory.gaps),
            ]
        )
        hint = "let both have the same contiguous dimension (order), and the memory vectors of 4 bytes or more"
        if memory.gaps:
            hint += ", intervals and padding too"
    feature = f"an asynchronous copy of {size} bytes for each lane (4, 8 and 16 can be copied)"
    return Unsupported(feature, c.program.target, c.build.span, notes=[Note(note)], hint=hint)


def _no_neighbours(pointer: SSAValue, layout: LinearLayout) -> str:
    shown = sketch(layout, list(layout.out_dims.values()))
    return "\n".join(["no lane has neighbours along any dimension", f"  the tile: {named(pointer)}", *shown])


def _not_known(c: Context, pointer: SSAValue, mask: SSAValue | None) -> tuple[str, str]:
    """What is known of addresses and mask, and how more of it can be said."""
    facts = c.facts.of(pointer)
    axis = max(range(len(facts.contiguity)), key=lambda d: facts.contiguity[d])
    note = (
        f"along dimension {axis} the addresses are known to be contiguous in runs of {facts.contiguity[axis]}, the "
        f"first a multiple of {facts.divisibility[axis]} bytes"
    )
    if mask is not None and is_tensor(mask.type):
        note += f", and the mask to be the same for {c.facts.of(mask).constancy[axis]} in a row"
    return note, (
        "make addresses and masks of sizes and strides that 16 divides: a launch finds that of its arguments, "
        "gl.multiple_of(x, 16) says it of other numbers"
    )
