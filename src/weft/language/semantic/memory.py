"""Loads and stores, through pointers and through block pointers.

A mask and a value are broadcast to the pointers and never the other way for a store. One-bit elements lie in memory as
bytes, are read as `byte != 0` and written as 1 where `x != 0`, whatever type x has. A place whose mask is false reads
as `other`, or as 0 where there is none.
"""

from __future__ import annotations

import numbers
import struct
from collections.abc import Sequence
from typing import Any

from weft import ir
from weft.base import hinted
from weft.ir import tt

from .. import dtypes as dt
from ..constants import constexpr, unwrap
from ..dtypes import block_type, dtype, pointer_type
from ..tensors import tensor
from .base import SemanticBase, block_shape, shape_text

_LOAD_CACHE = {
    ".ca": tt.CacheModifier.CA,
    ".cg": tt.CacheModifier.CG,
    ".cs": tt.CacheModifier.CS,
    ".cv": tt.CacheModifier.CV,
}
_STORE_CACHE = {
    ".wb": tt.CacheModifier.WB,
    ".cg": tt.CacheModifier.CG,
    ".cs": tt.CacheModifier.CS,
    ".wt": tt.CacheModifier.WT,
}
_EVICTION = {"evict_last": tt.EvictionPolicy.EVICT_LAST, "evict_first": tt.EvictionPolicy.EVICT_FIRST}
_PADDING = {"zero": tt.PaddingOption.PAD_ZERO, "nan": tt.PaddingOption.PAD_NAN}


def _pick(table: dict[str, Any], word: str | None, default: Any, subject: str) -> Any:
    """Look a word up, with the empty word as the default."""
    if not word:
        return default
    if word not in table:
        raise ValueError(f"{subject} {word} not supported; supported: {', '.join(table)}")
    return table[word]


class Memory(SemanticBase):
    """`load`, `store`, block pointers."""

    def _str_to_load_cache_modifier(self, cache_modifier: str) -> Any:
        return _pick(_LOAD_CACHE, cache_modifier, tt.CacheModifier.NONE, "Cache modifier")

    def _str_to_store_cache_modifier(self, cache_modifier: str) -> Any:
        return _pick(_STORE_CACHE, cache_modifier, tt.CacheModifier.NONE, "Cache modifier")

    def _str_to_eviction_policy(self, eviction_policy: str) -> Any:
        return _pick(_EVICTION, eviction_policy, tt.EvictionPolicy.NORMAL, "Eviction policy")

    def _str_to_padding_option(self, padding_option: str) -> Any:
        return _pick(_PADDING, padding_option, None, "Padding option")

    def _canonicalize_boundary_check(self, boundary_check: Any, shape: Sequence[int]) -> tuple[int, ...]:
        """The dimensions to check, in order."""
        if not boundary_check and boundary_check != 0:
            return ()
        if not hasattr(boundary_check, "__iter__"):
            boundary_check = [boundary_check]
        dims = [unwrap(d) for d in boundary_check]
        for dim in dims:
            if not isinstance(dim, int) or not 0 <= dim < len(shape):
                raise ValueError(f"boundary_check dimension {dim} is outside the block's {len(shape)} dimensions")
        if len(dims) != len(set(dims)):
            raise ValueError("Duplicate dimension in `boundary_check`")
        return tuple(sorted(dims))

    # -- load --------------------------------------------------------------------------------------------------

    def load(
        self,
        ptr: tensor,
        mask: Any,
        other: Any,
        boundary_check: Any,
        padding_option: str,
        cache_modifier: str,
        eviction_policy: str,
        is_volatile: bool,
    ) -> tensor:
        """Read what pointers, or a block pointer, point to."""
        cache = self._str_to_load_cache_modifier(cache_modifier)
        eviction = self._str_to_eviction_policy(eviction_policy)
        padding = self._str_to_padding_option(padding_option)
        if ptr.type.is_ptr() and ptr.type.element_ty.is_block():  # type: ignore[attr-defined]
            return self._load_block_pointer(ptr, mask, other, boundary_check, padding, cache, eviction, is_volatile)
        return self._load_legacy(ptr, mask, other, boundary_check, padding, cache, eviction, is_volatile)

    def _load_block_pointer(
        self,
        ptr: Any,
        mask: Any,
        other: Any,
        boundary_check: Any,
        padding: Any,
        cache: Any,
        eviction: Any,
        volatile: Any,
    ) -> tensor:
        if mask is not None or other is not None:
            raise ValueError("`mask` and `other` arguments cannot be specified for loading block pointers")
        block: Any = ptr.type.element_ty
        if block.element_ty.is_int1():
            raise TypeError("`tl.int1` should be rewritten in `tl.make_block_ptr`")
        if block.element_ty.is_int() and padding == tt.PaddingOption.PAD_NAN:
            raise ValueError("Padding option `nan` is not supported for integer block pointers")
        dims = self._canonicalize_boundary_check(boundary_check, block.shape)
        handle = self.builder.load(
            ptr.handle, boundary_check=dims, padding=padding, cache=cache, evict=eviction, volatile=bool(volatile)
        )
        loaded = tensor(handle, block)
        return self._byte_of_bool(loaded) if ptr.type.of_bool else loaded

    def _pointee(self, ptr: tensor, name: str) -> dtype:
        """The element type behind a pointer, or behind a tile of them."""
        scalar = ptr.type.scalar
        if not isinstance(scalar, pointer_type):
            raise ValueError(
                f"Unsupported ptr type {ptr.type!r} in `tl.{name}`: expected a pointer or a tensor of them"
            )
        if scalar.element_ty.is_block():
            raise ValueError(f"`tl.{name}` does not take block pointers: make a tensor of pointers")
        return scalar.element_ty

    def _bool_as_byte(self, ptr: tensor, element: dtype) -> tuple[tensor, dtype]:
        """Pointers to one-bit elements as pointers to bytes."""
        if not element.is_int1():
            return ptr, element
        scalar: Any = ptr.type.scalar
        return self.cast(ptr, pointer_type(dt.int8, scalar.address_space, scalar.const)), dt.int8

    def _byte_of_bool(self, value: tensor) -> tensor:
        """The byte of a bool array for a value: 1 where it is not zero, NaN included, else 0."""
        if value.type.scalar.is_ptr():
            raise TypeError(f"cannot cast {value.type} to int1: cast it to int64 first")
        if value.type.scalar.is_fp8():
            value = self.cast(value, dt.float32)
        return self.cast(self.cast(value, dt.int1), dt.int8)

    def _as_element(self, value: Any, element: dtype, like: dtype, of_bool: bool) -> tensor:
        """A tensor or a number as the element type of memory, a number in the shape of a type."""
        if isinstance(value, tensor):
            return self._byte_of_bool(value) if of_bool else self.cast(value, element)
        number = unwrap(value)
        if of_bool and isinstance(number, numbers.Number):
            number = int(bool(number))
        return self._constant_as(number, element, like)

    def _checked_mask(self, mask: Any) -> tensor:
        mask = self.to_tensor(mask)
        if not mask.type.scalar.is_bool():
            raise ValueError(f"Mask must have boolean scalar type, got {mask.type.scalar}")
        return mask  # type: ignore[no-any-return]

    def _load_legacy(
        self,
        ptr: tensor,
        mask: Any,
        other: Any,
        boundary_check: Any,
        padding: Any,
        cache: Any,
        eviction: Any,
        volatile: Any,
    ) -> tensor:
        element = self._pointee(ptr, "load")
        if mask is None and other is not None:
            raise hinted(
                ValueError("`other` cannot be provided without `mask`"),
                "`other` is what masked-off elements yield: give mask=..., or leave `other` out",
            )
        if padding is not None or boundary_check:
            raise ValueError(
                "`padding_option` or `boundary_check` argument is not supported for loading a tensor of "
                "pointers or loading a scalar. Because the compiler does not know the boundary; please "
                "use block pointers (defined by `make_block_ptr`) instead"
            )
        if mask is not None:
            mask = self._checked_mask(mask)
        if not block_shape(ptr):
            self._refuse_blocks(Mask=mask, Other=other)
        elif mask is not None:
            ptr, mask = self.broadcast_impl_value(ptr, mask)
        was_bool = element.is_int1()
        ptr, element = self._bool_as_byte(ptr, element)
        if isinstance(other, tensor) and block_shape(ptr):
            ptr, other = self._to_shape_of(ptr, other)
        if other is not None:
            other = self._as_element(other, element, ptr.type, was_bool)
        handle = self.builder.load(
            ptr.handle,
            mask.handle if mask is not None else None,
            other.handle if other is not None else None,
            cache=cache,
            evict=eviction,
            volatile=bool(volatile),
        )
        loaded = tensor(handle, ptr.type.with_element_ty(element))
        return self.cast(loaded, dt.int1) if was_bool else loaded

    def _constant_as(self, number: Any, element: dtype, like: dtype) -> tensor:
        """A Python number cast to an element type, as `to_tensor` and `cast` would do it, in the shape of a type."""
        type = self.type_of_number(number)
        target = like.with_element_ty(element)
        if element.is_ptr() or element.is_fp8() or (type.is_floating() and element.is_int()):
            value = self._constant(number, like.with_element_ty(type))
            return self.cast(value, target)
        if type.is_fp32():
            number = struct.unpack("f", struct.pack("f", number))[0]
        return self._constant(number, target)

    def _refuse_blocks(self, **arguments: Any) -> None:
        """What is moved at one address is no block."""
        for name, value in arguments.items():
            if isinstance(value, tensor) and block_shape(value):
                raise hinted(
                    ValueError(f"{name} argument cannot be block type if pointer argument is not a block"),
                    "one address takes one value: make a tile of addresses, ptr + tl.arange(0, N)",
                )

    # -- store -------------------------------------------------------------------------------------------------

    def store(
        self, ptr: tensor, val: Any, mask: Any, boundary_check: Any, cache_modifier: str, eviction_policy: str
    ) -> None:
        """Write to where pointers, or a block pointer, point."""
        cache = self._str_to_store_cache_modifier(cache_modifier)
        eviction = self._str_to_eviction_policy(eviction_policy)
        if ptr.type.is_const() or ptr.type.scalar.is_const():
            raise ValueError("Cannot store to a constant pointer")
        if ptr.type.is_ptr() and ptr.type.element_ty.is_block():  # type: ignore[attr-defined]
            self._store_block_pointer(ptr, val, mask, boundary_check, cache, eviction)
        else:
            self._store_legacy(ptr, val, mask, boundary_check, cache, eviction)

    def _store_block_pointer(
        self, ptr: Any, val: Any, mask: Any, boundary_check: Any, cache: Any, eviction: Any
    ) -> None:
        if mask is not None:
            raise ValueError("`mask` and `other` arguments cannot be specified for loading block pointers")
        block: Any = ptr.type.element_ty
        of_bool = ptr.type.of_bool
        if not isinstance(val, tensor):
            val = self._as_element(val, block.element_ty, block, of_bool)
        elif of_bool:
            val = self._byte_of_bool(val)
        if not block_shape(val):
            val = self.broadcast_impl_shape(val, block.shape)
        if val.type.shape != block.shape:
            raise ValueError(
                f"Block shape({shape_text(block.shape)}) and value shape({shape_text(val.type.shape)}) mismatch"
            )
        if block.element_ty != val.type.element_ty:
            raise TypeError(
                f"Block element type({block.element_ty}) and value element type({val.type.element_ty}) mismatch: "
                f"cast the value with .to({block.element_ty!r})"
            )
        if block.element_ty.is_int1():
            raise TypeError("`tl.int1` should be rewritten in `tl.make_block_ptr`")
        dims = self._canonicalize_boundary_check(boundary_check, block.shape)
        self.builder.store(ptr.handle, val.handle, boundary_check=dims, cache=cache, evict=eviction)

    def _store_legacy(self, ptr: tensor, val: Any, mask: Any, boundary_check: Any, cache: Any, eviction: Any) -> None:
        element = self._pointee(ptr, "store")
        if boundary_check:
            raise ValueError(
                "`boundary_check` argument is not supported for storing a tensor of pointers or storing a "
                "scalar. Because the compiler does not know the boundary; please use block pointers "
                "(defined by `make_block_ptr`) instead"
            )
        shape = block_shape(ptr)
        if mask is not None:
            mask = self._checked_mask(mask)
        if not shape:
            self._refuse_blocks(Value=val, Mask=mask)
        else:
            if isinstance(val, tensor):
                ptr, val = self._to_shape_of(ptr, val)
            if mask is not None:
                ptr, mask = self._to_shape_of(ptr, mask)
        of_bool = element.is_int1()
        ptr, element = self._bool_as_byte(ptr, element)
        val = self._as_element(val, element, ptr.type, of_bool)
        self.builder.store(
            ptr.handle, val.handle, mask.handle if mask is not None else None, cache=cache, evict=eviction
        )

    def _to_shape_of(self, ptr: tensor, value: tensor) -> tuple[tensor, tensor]:
        """A value in the shape of the pointers, which may not be broadcast themselves."""
        shape = block_shape(ptr)
        common = self.broadcast_shapes(shape, block_shape(value))
        if common != shape:
            raise ValueError(
                f"Expected pointer argument to have shape {shape_text(common)} but got {shape_text(shape)}"
            )
        return self.broadcast_impl_value(ptr, value)

    # -- block pointers ----------------------------------------------------------------------------------------

    def _convert_elem_to_ir_value(self, elem: Any, require_i64: bool) -> Any:
        """An integer, constant or not, as a 64-bit or 32-bit IR value."""
        if isinstance(elem, (int, constexpr)):
            value = unwrap(elem)
            if not isinstance(value, int):
                raise TypeError(f"expected an integer, got {value!r} of type {type(value).__name__}")
            bits = 64 if require_i64 else 32
            if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
                raise ValueError(
                    "Block pointers only support 32 bit `offsets/block_shape`, add a `.to(tl.int32)` or use regular "
                    f"indexing for 64 bit support: got {value}"
                )
            return self.builder.constant(value, ir.int_type(bits))
        if isinstance(elem, tensor):
            if elem.numel.value != 1:
                raise ValueError("Expected a scalar in shape/strides/offsets")
            if not elem.type.scalar.is_int():
                raise TypeError("Expected an integer scalar type in shape/strides/offsets")
            if not elem.type.scalar.is_int64() and not elem.type.scalar.is_uint64() and require_i64:
                return self.cast(elem, dt.int64).handle
            if elem.type.scalar.int_bitwidth == 64 and not require_i64:
                raise ValueError(
                    "Block pointers only support 32 bit `offsets/block_shape`, add a `.to(tl.int32)` or use regular "
                    "indexing for 64 bit support"
                )
            return elem.handle if require_i64 else self.cast(elem, dt.int32).handle
        raise TypeError(f"Unsupported element type in shape/strides/offsets: {type(elem)}")

    def _convert_to_ir_values(self, list_like: Any, require_i64: bool = True) -> list[Any]:
        """A list of integers, or one integer, as IR values."""
        if isinstance(list_like, constexpr):
            list_like = list_like.value
        if hasattr(list_like, "__iter__"):
            return [self._convert_elem_to_ir_value(e, require_i64) for e in list_like]
        return [self._convert_elem_to_ir_value(list_like, require_i64)]

    def make_block_ptr(
        self, base: tensor, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any
    ) -> tensor:
        """A block of a tensor in memory."""
        lengths = [len(list(v)) if hasattr(unwrap(v), "__iter__") else 1 for v in (shape, strides, offsets)]
        shape_values = self._convert_to_ir_values(shape)
        stride_values = self._convert_to_ir_values(strides)
        offset_values = self._convert_to_ir_values(offsets, require_i64=False)
        if not isinstance(base.type, pointer_type) or base.type.element_ty.is_block():
            raise ValueError("Expected `base` to be a pointer type (but not a block pointer type or others)")
        of_bool = base.type.element_ty.is_int1()
        if of_bool:
            base = self.cast(base, pointer_type(dt.int8, base.type.address_space, base.type.const))
        dims = unwrap(block_shape)
        dims = [unwrap(d) for d in dims] if hasattr(dims, "__iter__") else [dims]
        for dim in dims:
            if not isinstance(dim, int) or not -(2**31) <= dim < 2**31:
                raise ValueError(f"Expected a list of constant integers (`int32_t` range) in `block_shape`, got {dim}")
        permutation = unwrap(order)
        permutation = [unwrap(d) for d in permutation] if hasattr(permutation, "__iter__") else [permutation]
        if any(type(d) is not int for d in permutation) or sorted(permutation) != list(range(len(permutation))):
            raise ValueError(f"Expected a permutation of (0, 1, ..., len(order)-1) in order, got {permutation}")
        if not all(length == len(dims) for length in (*lengths, len(permutation))):
            raise ValueError("Expected shape/strides/offsets/block_shape to have the same length")
        element: Any = base.type
        result = pointer_type(block_type(element.element_ty, dims), element.address_space, element.const, of_bool)
        handle = self.builder.create(
            tt.MakeTensorPtrOp,
            (base.handle, *shape_values, *stride_values, *offset_values),
            (result.to_ir(),),
            {"order": ir.i32_array(permutation)},
        ).result
        return tensor(handle, result)

    def advance(self, base: tensor, offsets: Any) -> tensor:
        """A block pointer moved."""
        if not (isinstance(base.type, pointer_type) and isinstance(base.type.element_ty, block_type)):
            raise ValueError(f"advance needs a block pointer, got {base.type}")
        values = self._convert_to_ir_values(offsets, require_i64=False)
        rank = len(base.type.element_ty.shape)
        if len(values) != rank:
            raise ValueError(f"advance needs {rank} offsets, one for each dimension, got {len(values)}")
        return self._value(tt.AdvanceOp, (base.handle, *values), base.type)
