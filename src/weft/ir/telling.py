"""Tiles and operations as remarks tell them.

>>> from weft.ir import tensor_of, f16, tile_text
>>> tile_text(tensor_of((64, 32), f16))
'64x32xf16'
"""

from __future__ import annotations

from functools import lru_cache

from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.base import Span
from weft.base.remarks import Site

from .builder import pointee_of
from .locations import span_of
from .text import type_text
from .types import element_of, is_pointer, is_tensor, shape_of


def tile_text(type: Attribute) -> str:
    """A tile's shape and elements, without its layout; pointers as `ptr<f16>`."""
    kind = _element_text(element_of(type))
    return "x".join((*map(str, shape_of(type)), kind)) if is_tensor(type) else kind


@lru_cache(maxsize=256)
def _element_text(element: Attribute) -> str:
    return f"ptr<{type_text(pointee_of(element))}>" if is_pointer(element) else type_text(element)


def site_of(op: Operation) -> Site:
    """An operation by its name, with its place."""
    return Site(op.name, span_of(op))


def span_of_value(value: SSAValue) -> Span | None:
    """Where a value is made; of what a loop carries, where the loop stands."""
    owner = value.owner
    op = owner.parent_op() if isinstance(owner, Block) else owner
    return span_of(op) if op is not None else None
