"""Products of tiles with scales: `mfma_scaled` of gfx950, `wmma_scaled` of gfx1250.

    acc = mfma_scaled(a, a_scale, "e4m3", b, b_scale, "e2m1", acc)

A scale is an exponent for 32 elements along K, [M, K / 32] of uint8, or [N, K / 32] for `b`; a number is the scale of
all of them, and None is 127, which is 1. Elements of e2m1 are two in a byte along K.
"""

from __future__ import annotations

from typing import Any

from weft.base import LayoutError
from weft.ir.amd.scaled import BLOCK, ONE
from weft.language.constants import unwrap
from weft.language.dtypes import float32, uint8
from weft.language.protocol import GIVEN, builtin
from weft.language.semantic import block_shape
from weft.language.tensors import tensor
from weft.layouts import AMDMFMALayout, AMDWMMALayout, DistributedLayout, DotOperandLayout
from weft.targets.amd import operand_layout, scale_layout

from ...semantic import GluonSemantic
from ...types import layout_of
from .processors import check_processor

FORMATS = ("e2m1", "e4m3", "e5m2")


@builtin
def mfma_scaled(
    a: Any,
    a_scale: Any,
    a_format: Any,
    b: Any,
    b_scale: Any,
    b_format: Any,
    acc: Any,
    _semantic: GluonSemantic = GIVEN,
) -> tensor:
    """`(a * a_scale) @ (b * b_scale) + acc` by MFMA of gfx950; formats are "e2m1", "e4m3" and "e5m2".

    `acc` is in an AMDMFMALayout, `a` and `b` in DotOperandLayouts of it with a k_width of 16, scales in layouts that
    get_mfma_scale_layout gives.
    """
    check_processor("mfma_scaled", "hip:gfx950", _semantic)
    layout = _accumulator("mfma_scaled", acc, AMDMFMALayout)
    sides = (a, a_scale, a_format), (b, b_scale, b_format)
    return _product("mfma_scaled", sides, acc, layout, _semantic)


@builtin
def wmma_scaled(
    a: Any,
    a_scale: Any,
    a_format: Any,
    b: Any,
    b_scale: Any,
    b_format: Any,
    acc: Any,
    _semantic: GluonSemantic = GIVEN,
) -> tensor:
    """`(a * a_scale) @ (b * b_scale) + acc` by WMMA of gfx1250; formats are "e2m1", "e4m3" and "e5m2".

    `acc` is in an AMDWMMALayout of version 3 whose instr_shape is [16, 16, 128], `a` and `b` in DotOperandLayouts of it
    with a k_width of 16; those of e2m1, which are counted in bytes, of the same with [16, 16, 64]. Scales are in
    layouts that get_wmma_scale_layout gives.
    """
    check_processor("wmma_scaled", "hip:gfx1250", _semantic)
    layout = _accumulator("wmma_scaled", acc, AMDWMMALayout)
    assert isinstance(layout, AMDWMMALayout)
    if layout.version != 3 or list(layout.instr_shape or ()) != [16, 16, 128]:
        raise LayoutError(
            f"wmma_scaled: the layout of `acc` must have version 3 and instr_shape [16, 16, 128], it is {layout!r}"
        )
    sides = (a, a_scale, a_format), (b, b_scale, b_format)
    return _product("wmma_scaled", sides, acc, layout, _semantic)


def _accumulator(name: str, acc: Any, family: type[DistributedLayout]) -> DistributedLayout:
    layout = layout_of(acc.type) if isinstance(acc, tensor) else None
    if not isinstance(layout, family):
        raise LayoutError(f"{name}: `acc` must have a layout of the class {family.__name__}, it has {layout!r}")
    return layout


def _product(
    name: str, sides: tuple[tuple[Any, Any, Any], ...], acc: tensor, layout: DistributedLayout, semantic: GluonSemantic
) -> tensor:
    operands: list[Any] = []
    for index, (value, scale, given) in enumerate(sides):
        letter, kind = "ab"[index], unwrap(given)
        if kind not in FORMATS:
            raise ValueError(f"{name}: `{letter}_format` must be one of {', '.join(FORMATS)}, got {kind!r}")
        laid = layout_of(value.type) if isinstance(value, tensor) else None
        wanted = operand_layout(index, kind, layout)
        is_operand = isinstance(laid, DotOperandLayout) and laid.operand_index == index
        if not is_operand or laid.parent != wanted.parent:  # type: ignore[union-attr]
            got = getattr(value, "type", value) if laid is None else repr(laid)
            raise LayoutError(
                f"{name}: `{letter}` in {kind} must be in {wanted!r}, as `acc` is in {layout!r}; got {got}",
                hint=f"gl.convert_layout({letter}, ...), or load it from shared memory in that layout",
            )
        assert isinstance(laid, DotOperandLayout)
        operands += [value, _scales(name, letter, value, scale, kind, laid, semantic), kind]
    left, left_scale, left_kind, right, right_scale, right_kind = operands
    result = semantic.dot_scaled(
        left, left_scale, left_kind, right, right_scale, right_kind, acc, False, True, True, float32
    )
    return tensor(result.handle, acc.type)


def _scales(
    name: str, letter: str, value: tensor, given: Any, kind: str, laid: DotOperandLayout, semantic: GluonSemantic
) -> tensor:
    """The scales of an operand: as they are given, or one number for all."""
    scale = unwrap(given)
    if isinstance(scale, tensor) and block_shape(scale) and scale.numel.value != 1:
        return scale
    rows, along = block_shape(value)[-2:] if letter == "a" else block_shape(value)[:-3:-1]
    shape = [rows, along * (2 if kind == "e2m1" else 1) // BLOCK]
    if not isinstance(scale, tensor) and scale is not None and not (type(scale) is int and 0 <= scale < 256):
        raise TypeError(f"{name}: `{letter}_scale` must be a tensor, a number from 0 to 255 or None, got {scale}")
    return semantic.full(shape, ONE if scale is None else scale, uint8, scale_layout(laid, shape))
