"""Accesses of global memory through one pointer and a tile of offsets, which count elements: buffer operations.

    x = buffer_load(p, offsets, mask, other=0)
    buffer_store(x, p, offsets, mask)
    before = buffer_atomic_add(p, offsets, x)

The pointer is the same in all threads, and offsets have 32 bits: an access needs one register for an address, where a
tile of pointers needs two, and a mask needs no branch. `cdna3`, `cdna4` and `gfx1250` have those that their processors
have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import ir
from weft.ir.amd import amdg
from weft.language.constants import unwrap
from weft.language.dtypes import int1
from weft.language.protocol import GIVEN, builtin
from weft.language.semantic import block_shape
from weft.language.tensors import tensor

from ...semantic import GluonSemantic
from ...types import layout_of
from .processors import check_processor

ATOMICS = ("add", "and", "max", "min", "or", "xchg", "xor")
OF_BITS = ("and", "or", "xor", "xchg")


@builtin
def buffer_load(
    ptr: Any, offsets: Any, mask: Any = None, other: Any = None, cache: Any = None, _semantic: GluonSemantic = GIVEN
) -> tensor:
    """The elements at these offsets from a pointer; where the mask does not hold `other`, or 0."""
    element = _checked("buffer_load", ptr, offsets, _semantic)
    mask, other = unwrap(mask), unwrap(other)
    if other is not None and mask is None:
        raise ValueError("buffer_load: `other` is what masked-off elements are: it needs a mask")
    operands = [ptr.handle]
    if mask is not None:
        offsets, mask = _semantic.broadcast_impl_value(offsets, _semantic._checked_mask(mask))
    if other is not None:
        offsets, other = _semantic.broadcast_impl_value(offsets, _semantic.cast(_semantic.to_tensor(other), element))
    operands += [x.handle for x in (offsets, mask, other) if x is not None]
    sizes = ir.segments(1, 1, 0, int(mask is not None), int(other is not None))
    modifier = _semantic._str_to_load_cache_modifier(unwrap(cache) or "")
    properties = {"operandSegmentSizes": sizes, **_cache(modifier)}
    return _semantic._value(amdg.BufferLoadOp, operands, offsets.type.with_element_ty(element), properties)


@builtin
def buffer_store(
    stored_value: Any, ptr: Any, offsets: Any, mask: Any = None, cache: Any = None, _semantic: GluonSemantic = GIVEN
) -> None:
    """Store elements to these offsets from a pointer, where the mask holds."""
    element = _checked("buffer_store", ptr, offsets, _semantic)
    mask = unwrap(mask)
    if mask is not None:
        offsets, mask = _semantic.broadcast_impl_value(offsets, _semantic._checked_mask(mask))
    value = _semantic.cast(_semantic.to_tensor(unwrap(stored_value)), element)
    value, offsets = _semantic.broadcast_impl_value(value, offsets)
    operands = [x.handle for x in (value, ptr, offsets, mask) if x is not None]
    modifier = _semantic._str_to_store_cache_modifier(unwrap(cache) or "")
    properties = {"operandSegmentSizes": ir.segments(1, 1, 1, 0, int(mask is not None)), **_cache(modifier)}
    _semantic.builder.create(amdg.BufferStoreOp, operands, (), properties)


def _cache(modifier: Any) -> dict[str, Any]:
    return {} if modifier == ir.tt.CacheModifier.NONE else {"cache": ir.enum_attr(modifier)}


def _checked(name: str, ptr: Any, offsets: Any, semantic: GluonSemantic) -> Any:
    """The type of the elements, where a pointer and offsets are such."""
    check_processor(name, "hip:gfx942", semantic)
    if not isinstance(ptr, tensor) or not ptr.type.is_ptr():
        raise TypeError(f"{name}: `ptr` must be a pointer, one for all threads, got {getattr(ptr, 'type', ptr)}")
    if not isinstance(offsets, tensor) or layout_of(offsets.type) is None:
        raise TypeError(f"{name}: `offsets` must be a tensor with a layout, got {getattr(offsets, 'type', offsets)}")
    if not (offsets.dtype.is_int32() or offsets.dtype.is_uint32()):
        raise TypeError(f"{name}: `offsets` must be int32 or uint32, got {offsets.dtype}")
    return semantic._pointee(ptr, name)


def pointers_at(name: str, ptr: Any, offsets: Any, semantic: GluonSemantic) -> tensor:
    """The tile of pointers that a pointer and offsets mean."""
    _checked(name, ptr, offsets, semantic)
    tile = semantic.splat(ptr, block_shape(offsets), layout_of(offsets.type))
    return semantic.add(tile, offsets, False)


def atomic(name: str, module: str, *, adds_bf16: bool) -> Callable[..., tensor]:
    """The builtin `buffer_atomic_NAME` of a module."""

    def buffer_atomic(
        ptr: Any,
        offsets: Any,
        value: Any,
        mask: Any = None,
        sem: Any = None,
        scope: Any = None,
        _semantic: GluonSemantic = GIVEN,
    ) -> tensor:
        called = f"buffer_atomic_{name}"
        pointers = pointers_at(called, ptr, offsets, _semantic)
        kind = ptr.type.element_ty
        wide = kind.primitive_bitwidth in (32, 64)
        fits = wide and kind.is_int()
        if name == "add":
            fits = fits or (kind.is_floating() and kind.primitive_bitwidth >= 16 and (adds_bf16 or not kind.is_bf16()))
        elif name not in OF_BITS:
            fits = fits or kind.is_fp64()
        if not fits:
            raise ValueError(f"{called}: {module} has no such operation for elements of {kind}")
        value, mask = unwrap(value), unwrap(mask)
        if mask is not None:  # unlike those of loads, masks may be numbers: what is not 0 holds
            mask = _semantic.cast(_semantic.to_tensor(mask), int1)
        return getattr(_semantic, f"atomic_{name}")(pointers, value, mask, unwrap(sem), unwrap(scope))  # type: ignore[no-any-return]

    buffer_atomic.__name__ = buffer_atomic.__qualname__ = f"buffer_atomic_{name}"
    buffer_atomic.__doc__ = f"`atomic_{name}` at offsets from a pointer, where the mask holds: what was there before."
    return builtin(buffer_atomic)


def atomics(module: dict[str, Any], place: str, *, adds_bf16: bool) -> list[str]:
    """Give a module all of them; their names."""
    for name in ATOMICS:
        module[f"buffer_atomic_{name}"] = atomic(name, place, adds_bf16=adds_bf16)
    return [f"buffer_atomic_{name}" for name in ATOMICS]
