"""Atomic operations on memory; each yields what memory held before.

Float extrema are done on integers: of bits with equal signs the order is that of integers, so where the value is not
negative its signed extremum is taken, and where it is negative the opposite unsigned one.
"""

from __future__ import annotations

from functools import partialmethod
from typing import Any

from xdsl.dialects import arith

from weft import ir
from weft.base import hinted
from weft.ir import tt

from .. import dtypes as dt
from ..constants import unwrap
from ..dtypes import pointer_type
from ..tensors import tensor
from .arithmetic import Arithmetic
from .base import block_shape
from .memory import Memory

_SEMANTICS = {
    "acquire": tt.MemSemantic.ACQUIRE,
    "release": tt.MemSemantic.RELEASE,
    "acq_rel": tt.MemSemantic.ACQUIRE_RELEASE,
    "relaxed": tt.MemSemantic.RELAXED,
}
_SCOPES = {"gpu": tt.MemSyncScope.GPU, "cta": tt.MemSyncScope.CTA, "sys": tt.MemSyncScope.SYSTEM}


_LOAD_ORDERS, _STORE_ORDERS = ("acquire", "relaxed"), ("release", "relaxed")
"""Of loads and stores alone, the default first."""


class Atomics(Memory, Arithmetic):
    """`atomic_add` and its kind."""

    def _str_to_sem(self, sem_option: str | None) -> tt.MemSemantic:
        if not sem_option:
            return tt.MemSemantic.ACQUIRE_RELEASE
        if sem_option not in _SEMANTICS:
            raise ValueError(f"Memory semantic {sem_option} not supported; supported: {', '.join(_SEMANTICS)}")
        return _SEMANTICS[sem_option]

    def _str_to_scope(self, scope_option: str | None) -> tt.MemSyncScope:
        if not scope_option:
            return tt.MemSyncScope.GPU
        if scope_option not in _SCOPES:
            raise ValueError(f"Memory scope {scope_option} not supported; supported: {', '.join(_SCOPES)}")
        return _SCOPES[scope_option]

    def _order(self, sem: str | None, scope: str | None) -> dict[str, Any]:
        return {"sem": ir.enum_attr(self._str_to_sem(sem)), "scope": ir.enum_attr(self._str_to_scope(scope))}

    def atomic_cas(self, ptr: tensor, cmp: tensor, val: tensor, sem: str | None, scope: str | None) -> tensor:
        """Write `val` where memory holds `cmp`."""
        order = self._order(sem, scope)
        element = self._pointee(ptr, "atomic_cas")
        if element.primitive_bitwidth not in (16, 32, 64):
            raise ValueError("atomic_cas only supports elements with width {16, 32, 64}, got " + str(element))
        if ptr.type.scalar.is_const():
            raise ValueError("Cannot store to a constant pointer")
        for name, value in (("cmp", cmp), ("val", val)):
            if value.type.scalar.to_ir() != element.to_ir():
                raise TypeError(
                    f"atomic_cas needs `{name}` to have the element type {element}, got {value.type.scalar}: cast it"
                )
        shape = block_shape(ptr)
        if shape:
            cmp, val = self.broadcast_to_tile(cmp, ptr), self.broadcast_to_tile(val, ptr)
        elif block_shape(cmp) or block_shape(val):
            raise hinted(
                ValueError("Value argument cannot be block type if pointer argument is not a block"),
                "one address takes one value: make a tile of addresses, ptr + tl.arange(0, N)",
            )
        result = ptr.type.with_element_ty(element)
        return self._value(tt.AtomicCASOp, (ptr.handle, cmp.handle, val.handle), result, order)

    def _half_order(self, name: str, sem: str | None, allowed: tuple[str, ...], scope: str | None) -> dict[str, Any]:
        if sem and sem not in allowed:
            self._str_to_sem(sem)  # says which there are
            raise ValueError(f"atomic_{name} only supports {allowed[0]} and {allowed[1]} semantics")
        return self._order(sem or allowed[0], scope)

    def _as_bits(self, ptr: tensor, name: str) -> tuple[tensor, dt.dtype, dt.dtype]:
        """(pointers to integers, their type, the element type) of what is loaded or stored as it is."""
        element = self._pointee(ptr, f"atomic_{name}")
        if element.is_ptr() or element.primitive_bitwidth not in (1, 8, 16, 32, 64):
            raise ValueError(f"atomic_{name} does not support {element}")
        bits = dt.get_int_dtype(max(8, element.primitive_bitwidth), signed=True)
        scalar: Any = ptr.type.scalar
        return self.cast(ptr, pointer_type(bits, scalar.address_space, scalar.const)), bits, element

    def atomic_load(self, ptr: tensor, mask: Any, sem: str | None, scope: str | None) -> tensor:
        """Read memory; each element in one step."""
        order = self._half_order("load", sem, _LOAD_ORDERS, scope)
        places, bits, element = self._as_bits(ptr, "load")
        operands = (places.handle, *self._mask_of(ptr, mask))
        loaded = self._value(tt.AtomicLoadOp, operands, ptr.type.with_element_ty(bits), order)
        return self.cast(loaded, dt.int1) if element.is_int1() else self.bitcast(loaded, element)

    def atomic_store(self, ptr: tensor, val: Any, mask: Any, sem: str | None, scope: str | None) -> None:
        """Write memory; each element in one step."""
        order = self._half_order("store", sem, _STORE_ORDERS, scope)
        places, bits, element = self._as_bits(ptr, "store")
        if ptr.type.scalar.is_const():
            raise ValueError("Cannot store to a constant pointer")
        val = unwrap(val)
        if isinstance(val, tensor):
            if not block_shape(ptr) and block_shape(val):
                raise ValueError("Value argument cannot be block type if pointer argument is not a block")
            val = self.broadcast_to_tile(val, ptr) if block_shape(ptr) else val
        else:
            val = self._constant_as(val, self.type_of_number(val) if element.is_int1() else element, ptr.type)
        if element.is_int1():
            val = self._byte_of_bool(val)
        else:
            val = self.bitcast(self.cast(val, element), bits)
        self.builder.create(tt.AtomicStoreOp, (places.handle, val.handle, *self._mask_of(ptr, mask)), (), order)

    def _mask_of(self, ptr: tensor, mask: Any) -> tuple[Any, ...]:
        """(a mask in the shape of the pointers,); nothing where there is none."""
        if mask is None:
            return ()
        checked: tensor = self._checked_mask(mask)
        if block_shape(ptr):
            return (self.broadcast_to_tile(checked, ptr).handle,)
        if block_shape(checked):
            raise ValueError("Mask argument cannot be block type if pointer argument is not a block")
        return (checked.handle,)

    def atomic_poll(self, ptr: tensor, expected: Any, sem: str | None, scope: str | None, timeout: Any) -> tensor:
        """Wait until memory is `expected`, for `timeout` nanoseconds at most: whether it was."""
        order = self._half_order("poll", sem, _LOAD_ORDERS, scope)
        if isinstance(timeout, int) and timeout < 0:
            raise ValueError("atomic_poll timeout_ns must be non-negative")
        if block_shape(ptr):
            raise ValueError("atomic_poll only supports a pointer to a scalar")
        if not ptr.type.is_ptr():
            raise ValueError(f"Unsupported ptr type {ptr.type!r} in `tl.atomic_poll`")
        element = self._pointee(ptr, "atomic_poll")
        if not element.is_int() or element.primitive_bitwidth not in (16, 32, 64):
            raise ValueError("atomic_poll only supports integer elements with width {16, 32, 64}")
        expected = self.to_tensor(expected)
        if block_shape(expected):
            raise ValueError("Expected value argument cannot be block type")
        if isinstance(timeout, tensor) and (block_shape(timeout) or not timeout.type.scalar.is_int()):
            raise ValueError("atomic_poll timeout_ns must be a scalar integer")
        operands = [ptr.handle, self.cast(expected, element).handle]
        if timeout is not None:
            operands.append(self.cast(self.to_tensor(timeout), dt.int64).handle)
        return self._value(tt.AtomicPollOp, tuple(operands), dt.int1, order)

    def atom_red_typechecking_impl(self, ptr: tensor, val: Any, mask: Any, op: str) -> tuple[tensor, tensor, tensor]:
        """Pointers, values and a mask of one shape, values cast to the element type."""
        if not ptr.type.scalar.is_ptr():
            raise ValueError(f"Pointer argument of atomic_{op} is {ptr.type!r}: expected a pointer or a tensor of them")
        element = self._pointee(ptr, f"atomic_{op}")
        if ptr.type.scalar.is_const() or element.is_const():
            raise ValueError("Cannot store to a constant pointer")
        if (element.is_fp16() and op != "add") or (element.is_bf16() and op != "add"):
            raise ValueError(f"atomic_{op} does not support {element}")
        if element.is_fp8() or (element.is_int() and element.int_bitwidth < 32) or element.is_ptr():
            raise ValueError(f"atomic_{op} does not support {element}")
        shape = block_shape(ptr)
        val = unwrap(val)
        if mask is not None:
            mask = self._checked_mask(mask)
        if not shape:
            for name, value in (("Value", val), ("Mask", mask)):
                if isinstance(value, tensor) and block_shape(value):
                    raise ValueError(f"{name} argument cannot be block type if pointer argument is not a block")
        if isinstance(val, tensor):
            val = self.cast(self.broadcast_to_tile(val, ptr) if shape else val, element)
        else:
            val = self._constant_as(val, element, ptr.type)
        if mask is None:
            mask = self._constant(True, ptr.type.with_element_ty(dt.int1))
        elif shape:
            mask = self.broadcast_to_tile(mask, ptr)
        return ptr, val, mask

    def _rmw(self, op: tt.RMWOp, ptr: tensor, val: tensor, mask: tensor, order: dict[str, Any]) -> tensor:
        properties = {"atomic_rmw_op": ir.enum_attr(op), **order}
        return self._value(tt.AtomicRMWOp, (ptr.handle, val.handle, mask.handle), val.type, properties)

    def _extremum_in_memory(
        self, name: str, ptr: tensor, val: Any, mask: Any, sem: str | None, scope: str | None
    ) -> tensor:
        order = self._order(sem, scope)
        ptr, val, mask = self.atom_red_typechecking_impl(ptr, val, mask, name)
        scalar = val.type.scalar
        signed, unsigned = getattr(tt.RMWOp, name.upper()), getattr(tt.RMWOp, "U" + name.upper())
        if scalar.is_int():
            return self._rmw(signed if scalar.is_int_signed() else unsigned, ptr, val, mask, order)
        if not scalar.is_fp32() and not scalar.is_fp64():
            raise TypeError(f"atomic_{name} not supported for dtype {scalar}")
        opposite = tt.RMWOp.UMIN if name == "max" else tt.RMWOp.UMAX
        bits = dt.int32 if scalar.is_fp32() else dt.int64
        int_val = self.bitcast(val, bits)
        pointer: Any = ptr.type.scalar
        int_ptr = self.cast(ptr, pointer_type(bits, pointer.address_space))
        negative = self._signbit(val)
        positive = self.not_(negative)
        at_positive = self._rmw(signed, int_ptr, int_val, self.and_(mask, positive), order)
        at_negative = self._rmw(opposite, int_ptr, int_val, self.and_(mask, negative), order)
        return self.bitcast(self.where(positive, at_positive, at_negative), scalar)

    def _signbit(self, x: tensor) -> tensor:
        """Whether the sign of a float is set."""
        width = x.type.scalar.primitive_bitwidth
        bits = self.bitcast(x, dt.get_int_dtype(width, signed=False))
        top = self._same(arith.ShRUIOp, bits, self._constant(width - 1, bits.type))
        return self.cast(top, dt.int1)

    atomic_max = partialmethod(_extremum_in_memory, "max")
    atomic_min = partialmethod(_extremum_in_memory, "min")

    def atomic_add(self, ptr: tensor, val: Any, mask: Any, sem: str | None, scope: str | None) -> tensor:
        """Add `val` to memory."""
        order = self._order(sem, scope)
        ptr, val, mask = self.atom_red_typechecking_impl(ptr, val, mask, "add")
        op = tt.RMWOp.FADD if val.type.scalar.is_floating() else tt.RMWOp.ADD
        return self._rmw(op, ptr, val, mask, order)

    def _bitwise_in_memory(
        self, name: str, ptr: tensor, val: Any, mask: Any, sem: str | None, scope: str | None
    ) -> tensor:
        order = self._order(sem, scope)
        ptr, val, mask = self.atom_red_typechecking_impl(ptr, val, mask, name)
        if not val.type.scalar.is_int():
            raise ValueError(f"atomic_{name} does not support {val.type.scalar}: only integers")
        return self._rmw(getattr(tt.RMWOp, name.upper()), ptr, val, mask, order)

    atomic_and = partialmethod(_bitwise_in_memory, "and")
    atomic_or = partialmethod(_bitwise_in_memory, "or")
    atomic_xor = partialmethod(_bitwise_in_memory, "xor")

    def atomic_xchg(self, ptr: tensor, val: Any, mask: Any, sem: str | None, scope: str | None) -> tensor:
        """Put `val` into memory."""
        order = self._order(sem, scope)
        ptr, val, mask = self.atom_red_typechecking_impl(ptr, val, mask, "xchg")
        return self._rmw(tt.RMWOp.XCHG, ptr, val, mask, order)
