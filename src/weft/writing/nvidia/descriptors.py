"""Descriptors that a kernel makes: tensor maps that it writes to memory of its own, as one statement.

    %p = ttg.global_scratch_alloc ...
    %b = arith.muli %s, %two : i64                  strides of a map are in bytes
    ttng.tensormap_create %p, %x, ...
    ttng.tensormap_fenceproxy_acquire %p
    %d = ttng.reinterpret_tensor_descriptor %p
is
    blocks = tma.make_tensor_descriptor(x, [m, n], [s, 1], [64, 64], shared)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from weft.ir import bit_width, int_value, shape_of, splat_value
from weft.ir.gpu import encoding_of
from weft.ir.nvidia import ttng
from weft.layouts import NVMMASharedLayout

from .. import kinds
from ..expressions import ATOM, Text
from ..parameters import DESCRIPTOR
from ..words import ABSORBED, HOMES, no_word, writes
from ..writer import Writer

PARTS = (ttng.TensormapCreateOp, ttng.TensormapFenceproxyAcquireOp, ttng.ReinterpretTensorDescOp)


def _users(memory: SSAValue) -> list[Operation]:
    return [use.operation for use in memory.uses]


@writes("ttg.global_scratch_alloc")
def _scratch(w: Writer, op: Any) -> None:
    """Written with the descriptor that lies there."""
    users = _users(op.results[0])
    if not all(isinstance(user, PARTS) and user.parent is op.parent for user in users) or len(users) != len(PARTS):
        raise no_word(op, "for something else than one descriptor")


ABSORBED["ttng.tensormap_create"] = ABSORBED["ttng.tensormap_fenceproxy_acquire"] = lambda op: True


def _in_bytes(op: Operation) -> bool:
    """Whether it makes bytes of a stride for a tensor map, and nothing else."""
    users = _users(op.results[0])
    return bool(users) and all(isinstance(user, ttng.TensormapCreateOp) for user in users) and _factor(op) is not None


ABSORBED["arith.muli"] = _in_bytes


def _factor(op: Operation) -> int | None:
    """The number that something is multiplied by."""
    by = op.operands[1].owner
    number = splat_value(by.value) if isinstance(by, arith.ConstantOp) else None
    return None if number is None else int(number)


@writes("ttng.reinterpret_tensor_descriptor")
def _descriptor(w: Writer, op: Any) -> None:
    (create,) = [user for user in _users(op.operands[0]) if isinstance(user, ttng.TensormapCreateOp)]
    block = op.results[0].type.block_type
    encoding, shape, width = encoding_of(block), list(shape_of(block)), bit_width(block.element_type) // 8
    layout = encoding.named if encoding is not None else None
    base = create.global_address
    if not isinstance(layout, NVMMASharedLayout):
        raise no_word(op, f"of blocks in {layout!r}")
    strides = [_elements(stride, width, op) for stride in reversed(create.global_stride)]
    sizes = list(reversed(create.global_dim))
    wanted = [base, *sizes, *(s for s in strides if isinstance(s, SSAValue))]
    start, *texts = w.take(*wanted)
    of = start.kind[1:]
    kind = kinds.with_sign(of, unsigned=str(block.element_type).startswith("u")) if kinds.is_integer(of) else of
    if kind != of:
        start = replace(start, text=f"{start.within(ATOM)}.to({kinds.name_of('*' + kind)}, bitcast=True)")
    extents, rest = texts[: len(sizes)], texts[len(sizes) :]
    steps = [rest.pop(0).text if isinstance(s, SSAValue) else str(s) for s in strides]
    nan = ', padding_option="nan"' if int_value(create.properties["fill_mode"]) else ""
    made = f"[{', '.join(t.text for t in extents)}], [{', '.join([*steps, '1'])}], {shape}"
    name = w.module("tma", HOMES["tma"])
    text = f"{name}.make_tensor_descriptor({start.text}, {made}, {w.shared.layouts.text(layout)}{nan})"
    w.give(op, Text(text, DESCRIPTOR), effect=True)


def _elements(stride: SSAValue, width: int, op: Operation) -> SSAValue | int:
    """A stride in elements, of one in bytes."""
    by = stride.owner
    if isinstance(by, arith.ConstantOp):
        return int(splat_value(by.value) or 0) // width
    if isinstance(by, arith.MuliOp) and _factor(by) == width:
        return by.operands[0]
    if width == 1:
        return stride
    raise no_word(op, "of strides that are no whole elements")
