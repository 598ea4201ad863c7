"""Descriptors that a kernel of gfx1250 is given by the host: their pointer comes out of the argument.

In a signature: `tensordesc<fp16[64,64],SwizzledSharedLayout(1, 1, 1, [1, 0])>`.
"""

from __future__ import annotations

from typing import Any

from weft.base import CompilationError
from weft.ir import ptr_of, tensordesc_of
from weft.ir.amd.tdm import DescriptorBaseOp
from weft.language.dtypes import block_type, int32, int64
from weft.language.protocol import base_type, base_value
from weft.language.signatures import laid_descriptors
from weft.language.tuples import tuple_type
from weft.layouts import PaddedSharedLayout, SwizzledSharedLayout

from ...semantic import GluonSemantic

FAMILIES = {family.__name__: family for family in (PaddedSharedLayout, SwizzledSharedLayout)}


class given_type(base_type):
    """The type of what stands for a descriptor's pointer: its blocks."""

    def __init__(self, block_type: block_type) -> None:
        self.block_type = block_type

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple[Any, int]:
        return given(handles[cursor], self), cursor + 1

    def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
        out.append(tensordesc_of(self.block_type.shape, self.block_type.element_ty.to_ir()))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.block_type == other.block_type

    def __hash__(self) -> int:
        return hash(self.block_type)

    def mangle(self) -> str:
        return f"G{self.block_type.mangle()}G"


class given(base_value):
    """What a kernel was given."""

    type: given_type

    def __init__(self, handle: Any, type: given_type) -> None:
        self.handle, self.type = handle, type

    def _flatten_ir(self, handles: list[Any]) -> None:
        handles.append(self.handle)


def pointer_of(base: Any, semantic: GluonSemantic) -> Any:
    """The handle of the pointer of a descriptor, of one that was given taken out of it."""
    if not isinstance(base, given):
        return base.handle
    element = base.type.block_type.element_ty.to_ir()
    return semantic.builder.create(DescriptorBaseOp, (base.handle,), (ptr_of(element),)).result


def register(kind: Any) -> None:
    """Say what makes the type of such a descriptor: `kind(block, base_type, shape_type, strides_type, layout)`."""

    def from_signature(block: block_type, layout: str, images: int = 0) -> Any:
        try:
            made = eval(layout, {"__builtins__": {}, **FAMILIES})
        except (SyntaxError, NameError, TypeError) as error:
            raise CompilationError(f"{layout!r} is not the layout of a descriptor for gfx1250") from error
        rank = len(block.shape)
        return kind(block, given_type(block), tuple_type([int32] * rank), tuple_type([int64] * rank), made)

    laid_descriptors.update(dict.fromkeys(FAMILIES, from_signature))
