"""Copies from global to shared memory that go on while the program does other things; waited for by their groups."""

from __future__ import annotations

from typing import Any

from weft import ir
from weft.ir.gpu import async_token, ttg
from weft.language.constants import unwrap
from weft.language.protocol import GIVEN, builtin
from weft.language.semantic import block_shape, shape_text

from .memory import shared_memory_descriptor
from .operands import known_number
from .semantic import GluonSemantic

__all__ = ["begin_copy", "commit_group", "wait_group"]


def begin_copy(
    smem: Any,
    pointer: Any,
    mask: Any,
    semantic: GluonSemantic,
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    volatile: Any = False,
) -> None:
    """Begin to copy an element for each pointer to shared memory of the same shape; masked-off elements become 0."""
    if not isinstance(smem, shared_memory_descriptor):
        raise TypeError(f"expected shared memory to copy to, got {getattr(smem, 'type', smem)}")
    mask = unwrap(mask)
    cache = semantic._str_to_load_cache_modifier(unwrap(cache_modifier))
    evict = semantic._str_to_eviction_policy(unwrap(eviction_policy))
    if mask is not None:
        pointer, mask = semantic.broadcast_impl_value(pointer, semantic._checked_mask(mask))
    semantic._pointee(pointer, "async_copy_global_to_shared")
    if tuple(smem.shape) != block_shape(pointer):
        raise ValueError(
            f"expected the shape of the shared memory to match that of the pointers, got {shape_text(smem.shape)} "
            f"and {shape_text(block_shape(pointer))}"
        )
    if pointer.dtype.element_ty != smem.dtype:
        raise ValueError(f"pointers to {pointer.dtype.element_ty} cannot be copied to shared memory of {smem.dtype}")
    operands = [pointer.handle, smem.handle, *([] if mask is None else [mask.handle])]
    properties: dict[str, Any] = {"operandSegmentSizes": ir.segments(1, 1, int(mask is not None), 0)}
    properties |= ir.access_hints(cache, evict)
    if unwrap(volatile):
        properties["isVolatile"] = ir.bool_attr(True)
    semantic.builder.create(ttg.AsyncCopyGlobalToLocalOp, operands, (async_token,), properties)


@builtin
def commit_group(_semantic: GluonSemantic = GIVEN) -> None:
    """The copies since the last group are a group."""
    _semantic.builder.create(ttg.AsyncCommitGroupOp, (), (async_token,))


@builtin
def wait_group(num_outstanding: Any = 0, _semantic: GluonSemantic = GIVEN) -> None:
    """Wait until at most so many of this thread's groups are under way."""
    count = known_number("num_outstanding", num_outstanding)
    _semantic.builder.create(ttg.AsyncWaitOp, (), (async_token,), {"num": ir.i32_attr(count)})
