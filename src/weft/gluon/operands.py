"""What operands must be: layouts of a product that belong together, shapes that do, numbers that are known."""

from __future__ import annotations

from typing import Any

from weft.base import CompilationError, LayoutError
from weft.language.constants import unwrap
from weft.language.dtypes import float32
from weft.language.semantic import block_shape, shape_text
from weft.language.tensors import tensor
from weft.layouts import DistributedLayout, DotOperandLayout

from .types import layout_of


def check_operands(name: str, a: Any, b: Any, acc: Any, family: type[DistributedLayout]) -> DistributedLayout:
    """The layout of the accumulator, where operands and accumulator fit together. LayoutError where they do not."""
    for operand, value in (("a", a), ("b", b), ("acc", acc)):
        if not isinstance(value, tensor) or not block_shape(value):
            raise TypeError(f"{name}: `{operand}` must be a tensor, got {value}")
    layout = layout_of(acc.type)
    if not isinstance(layout, family):
        raise LayoutError(f"{name}: `acc` must have a layout of the class {family.__name__}, it has {layout!r}")
    for index, operand, value in ((0, "a", a), (1, "b", b)):
        laid = layout_of(value.type)
        wanted = f"gl.DotOperandLayout({index}, {layout!r}, k_width)"
        hint = f"gl.convert_layout({operand}, {wanted}), or load it from shared memory in that layout"
        if not isinstance(laid, DotOperandLayout):
            raise LayoutError(f"{name}: `{operand}` must have a DotOperandLayout, it has {laid!r}", hint=hint)
        if laid.operand_index != index:
            raise LayoutError(
                f"{name}: `{operand}` must have operand_index {index}, its layout is that of operand "
                f"{laid.operand_index}: {laid!r}",
                hint=hint,
            )
        if laid.parent != layout:
            raise LayoutError(
                f"{name}: `{operand}` is an operand of another product: its parent is {laid.parent!r}, `acc` has "
                f"{layout!r}",
                hint=hint,
            )
    _check_shapes(name, a, b, acc)
    return layout


def _check_shapes(name: str, a: tensor, b: tensor, acc: tensor) -> None:
    (m, k), (k2, n), shape = block_shape(a)[-2:], block_shape(b)[-2:], block_shape(acc)
    if k != k2 or shape[-2:] != (m, n):
        raise LayoutError(
            f"{name}: {shape_text(block_shape(a))} times {shape_text(block_shape(b))} into {shape_text(shape)}: "
            f"{'K differs, ' + str(k) + ' and ' + str(k2) if k != k2 else 'the product is ' + shape_text((m, n))}",
            hint="[M, K] times [K, N] into [M, N]",
        )


def check_precision(name: str, a: tensor, precision: str | None) -> None:
    """The matrix instructions for float32 are of one precision; what they cannot do is no product of less precision."""
    if a.dtype == float32 and precision not in (None, "tf32"):
        raise CompilationError(
            f'{name}: the instruction for fp32 is of precision "tf32", got {precision!r}',
            hint='leave it out, add products of parts of the operands ("tf32x3"), or use gl.dot_fma ("ieee")',
        )


def known_number(name: str, value: Any, least: int = 0) -> int:
    """A number that must be known when compiling."""
    number = unwrap(value)
    if type(number) is not int or number < least:
        raise TypeError(f"{name} must be a number known when compiling, {least} or more, got {number}")
    return number
